#include "lacunar/columns.hpp"

#include <cassert>
#include <cmath>

#include "lacunar/interrupt.hpp"
#include "lacunar/observed.hpp"

namespace lacunar {
namespace {

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
bool standardise(const Rows<T>& rows, const double* center, const double* scale, Out* out) {
  assert(well_ordered(rows));
  bool finite = true;
  InterruptCheck check;
  for (Offset i = 0; i < rows.n_rows; ++i, check.after(2 * (rows.offsets[i] - rows.offsets[i - 1])))
    for (Offset p = rows.offsets[i]; p < rows.offsets[i + 1]; ++p) {
      const Index j = rows.indices[p];
      out[p] = static_cast<Out>((static_cast<double>(rows.values[p]) - center[j]) / scale[j]);
      finite &= std::isfinite(out[p]);
    }
  return finite;
}

template void column_moments(const Rows<float>&, const double*, double*, double*, double*);
template void column_moments(const Rows<double>&, const double*, double*, double*, double*);
template bool standardise(const Rows<float>&, const double*, const double*, float*);
template bool standardise(const Rows<float>&, const double*, const double*, double*);
template bool standardise(const Rows<double>&, const double*, const double*, double*);

}  // namespace lacunar
