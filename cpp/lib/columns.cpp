#include "lacunar/columns.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <type_traits>

#include "lacunar/interrupt.hpp"
#include "lacunar/observed.hpp"
#include "lacunar/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kEntriesATask = 1 << 17;
constexpr double kWork = 16;  // of an entry that is standardised, in products of vectors

void divide(double* sum, const double* total, Offset n) {
  for (Offset j = 0; j < n; ++j) sum[j] = total[j] > 0 ? sum[j] / total[j] : 0.0;
}

}  // namespace

template <class T>
void column_moments(const Rows<T>& rows, const double* weight, double* total, double* mean, double* variance) {
  assert(well_ordered(rows));
  InterruptCheck check;
  for (Offset j = 0; j < rows.n_cols; ++j) total[j] = mean[j] = variance[j] = 0.0;
  for (Offset i = 0; i < rows.n_rows; ++i) {
    const double w = weight ? weight[i] : 1.0;
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p) {
      const Index j = rows.indices[p];
      total[j] += w;
      mean[j] += w * static_cast<double>(rows.values[p]);
    }
    check.after(2 * (rows.offsets[i + 1] - rows.offsets[i]));
  }
  divide(mean, total, rows.n_cols);
  for (Offset i = 0; i < rows.n_rows; ++i) {
    const double w = weight ? weight[i] : 1.0;
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p) {
      const Index j = rows.indices[p];
      const double away = static_cast<double>(rows.values[p]) - mean[j];
      variance[j] += w * (away * away);
    }
    check.after(2 * (rows.offsets[i + 1] - rows.offsets[i]));
  }
  divide(variance, total, rows.n_cols);
}

template <class T, class Out>
bool standardise(const T* values, const Index* columns, Offset count, const Columns& by, Out* out, int n_threads) {
  const auto& dense = kernels_of<T>().dense;
  std::atomic<bool> finite{true};
  const int threads = threads_worth(n_threads, kWork * static_cast<double>(count));
  parallel_tasks(threads, (count + kEntriesATask - 1) / kEntriesATask, [&](Offset task, InterruptCheck&) {
    const Offset first = task * kEntriesATask, some = std::min(kEntriesATask, count - first);
    const bool sound = [&] {
      if constexpr (std::is_same_v<Out, float>)
        return dense.standardise_float(values + first, columns + first, by, some, out + first);
      else
        return dense.standardise_double(values + first, columns + first, by, some, out + first);
    }();
    if (!sound) finite = false;
  });
  return finite;
}

template void column_moments(const Rows<float>&, const double*, double*, double*, double*);
template void column_moments(const Rows<double>&, const double*, double*, double*, double*);
template bool standardise(const float*, const Index*, Offset, const Columns&, float*, int);
template bool standardise(const float*, const Index*, Offset, const Columns&, double*, int);
template bool standardise(const double*, const Index*, Offset, const Columns&, double*, int);

}  // namespace lacunar
