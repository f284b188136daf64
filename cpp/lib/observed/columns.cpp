#include "lacunar/observed/columns.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <type_traits>
#include <vector>

#include "lacunar/observed/observed.hpp"
#include "lacunar/observed/row_parts.hpp"
#include "lacunar/parallel/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kEntriesATask = 1 << 17;
constexpr double kWork = 16;  // of an entry that is standardised, in products of vectors

constexpr Offset kEntriesAColumn = 1 << 11, kMostParts = 8;  // of sums over rows

void divide(double* sum, const double* total, Offset n) {
  for (Offset j = 0; j < n; ++j) sum[j] = total[j] > 0 ? sum[j] / total[j] : 0.0;
}

// Sums (width) over the entries, part by part: add(sums, column, weight of the row, value).
template <class T, class Add>
std::vector<double> summed(const Rows<T>& rows, const double* weight, Offset width, int n_threads, const Add& add) {
  const Offset n_parts = part_count(rows, kEntriesAColumn, kMostParts);
  std::vector<double> sums(static_cast<std::size_t>(n_parts * width), 0.0);
  parallel_tasks(n_threads, n_parts, [&](Offset part, InterruptCheck& check) {
    const Add add_here = add;  // in registers
    const Rows<T> from = rows;
    double* const to = sums.data() + part * width;
    const Offset last = part_start(from, part + 1, n_parts);
    for (Offset i = part_start(from, part, n_parts); i < last; ++i) {
      const double w = weight ? weight[i] : 1.0;
      for (Offset p = from.offsets[i]; p < from.offsets[i + 1]; ++p)
        add_here(to, from.indices[p], w, static_cast<double>(from.values[p]));
      check.after(2 * (from.offsets[i + 1] - from.offsets[i]));
    }
  });
  add_parts(sums.data() + width, n_parts, width, sums.data(), n_threads);
  return sums;
}

}  // namespace

template <class T>
void column_moments(const Rows<T>& rows, const double* weight, double* total, double* mean, double* variance,
                    int n_threads) {
  assert(well_ordered(rows));
  const Offset d = rows.n_cols;
  const auto sums = summed(rows, weight, 2 * d, n_threads, [d](double* to, Index j, double w, double x) {
    to[j] += w;
    to[d + j] += w * x;
  });
  std::copy_n(sums.begin(), d, total);
  std::copy_n(sums.begin() + d, d, mean);
  divide(mean, total, d);
  const auto squares = summed(rows, weight, d, n_threads, [mean](double* to, Index j, double w, double x) {
    const double away = x - mean[j];
    to[j] += w * (away * away);
  });
  std::copy_n(squares.begin(), d, variance);
  divide(variance, total, d);
}

template <class T, class Out>
bool standardise(const T* values, const Index* columns, Offset count, const Columns& by, Out* out, int n_threads) {
  const auto& dense = kernels_of<T>().dense;
  std::atomic<bool> finite{true};
  const int threads = threads_worth(n_threads, kWork * static_cast<double>(count));
  parallel_tasks(threads, (count + kEntriesATask - 1) / kEntriesATask, [&](Offset task, InterruptCheck&) {
    const Offset first = task * kEntriesATask, size = std::min(kEntriesATask, count - first);
    const bool sound = [&] {
      if constexpr (std::is_same_v<Out, float>)
        return dense.standardise_float(values + first, columns + first, by, size, out + first);
      else
        return dense.standardise_double(values + first, columns + first, by, size, out + first);
    }();
    if (!sound) finite = false;
  });
  return finite;
}

template void column_moments(const Rows<float>&, const double*, double*, double*, double*, int);
template void column_moments(const Rows<double>&, const double*, double*, double*, double*, int);
template bool standardise(const float*, const Index*, Offset, const Columns&, float*, int);
template bool standardise(const float*, const Index*, Offset, const Columns&, double*, int);
template bool standardise(const double*, const Index*, Offset, const Columns&, double*, int);

}  // namespace lacunar
