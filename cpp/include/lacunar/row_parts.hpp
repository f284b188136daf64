// Rows cut into parts with about equally many entries, by the table alone: sums of parts, added in order, have the same
// bits for any number of threads.
#pragma once

#include <algorithm>

#include "lacunar/types.hpp"

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
inline void add_parts(const double* others, Offset n_parts, Offset size, double* to) {
  for (Offset part = 1; part < n_parts; ++part, others += size)
    for (Offset k = 0; k < size; ++k) to[k] += others[k];
}

}  // namespace lacunar
