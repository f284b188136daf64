// Rows cut into parts with about equally many entries, by the table alone: sums of parts, added in order, have the same
// bits for any number of threads.
#pragma once

#include <algorithm>

#include "lacunar/parallel/parallel.hpp"

namespace lacunar {

// Parts of at least `entries_a_column` entries a column, so that adding up sums by columns is little beside making
// them.
template <class T>
Offset part_count(const Rows<T>& rows, Offset entries_a_column, Offset most) {
  return std::clamp<Offset>(rows.n_observed() / (entries_a_column * std::max<Offset>(rows.n_cols, 1)), 1, most);
}

// The first row of part k; of k = n_parts, n_rows.
template <class T>
Offset part_start(const Rows<T>& rows, Offset k, Offset n_parts) {
  if (k == n_parts) return rows.n_rows;
  const Offset entry = rows.offsets[0] + rows.n_observed() / n_parts * k;
  return std::lower_bound(rows.offsets, rows.offsets + rows.n_rows, entry) - rows.offsets;
}

// The end of rows from `begin` that have some `entries` entries, at least one row and not beyond `end`.
template <class T>
Offset row_behind(const Rows<T>& rows, Offset begin, Offset end, Offset entries) {
  const Offset* const stop =
      std::lower_bound(rows.offsets + begin + 1, rows.offsets + end, rows.offsets[begin] + entries);
  return stop - rows.offsets;
}

// to += each of n_parts - 1 arrays of `size`, one after the other.
inline void add_parts(const double* others, Offset n_parts, Offset size, double* to, int n_threads) {
  constexpr Offset kAtOnce = 1 << 12;  // of `to`, which stays in cache while all are added
  const int threads = threads_worth(n_threads, 8.0 * static_cast<double>((n_parts - 1) * size));
  parallel_tasks(threads, (size + kAtOnce - 1) / kAtOnce, [&](Offset task, InterruptCheck&) {
    const Offset first = task * kAtOnce, last = std::min(first + kAtOnce, size);
    for (Offset part = 1; part < n_parts; ++part)
      for (Offset k = first; k < last; ++k) to[k] += others[(part - 1) * size + k];
  });
}

}  // namespace lacunar
