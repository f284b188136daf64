// The choice of a path.
#include <cassert>

#include "lacunar/gram/karma_gram.hpp"
#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {

namespace {

std::vector<double> column_counts(const Offset* offsets, Offset n_rows, const Index* indices, Offset n_cols) {
  std::vector<double> counts(static_cast<std::size_t>(n_cols));
  InterruptCheck check;
  for (Offset i = 0; i < n_rows; ++i, check.after(2 * (offsets[i] - offsets[i - 1])))
    for (Offset p = offsets[i]; p < offsets[i + 1]; ++p) counts[static_cast<std::size_t>(indices[p])] += 1;
  return counts;
}

// Cycles per pair of each path, fitted on synthetic tables of 50 to 4,000 columns; lanes is that of the fit.
struct Costs {
  double lanes, dense, dense_0, spmm, spmm_far, spmm_0, inverted, inverted_o, inverted_0;
};
constexpr Costs kCosts32{16, 1.16, 1.0, 2.0, 1.26, 1.0, 4.1, 0.06, 0.3};
constexpr Costs kCosts64{8, 1.18, 2.0, 1.9, 1.4, 1.7, 5.0, 0.07, 0.5};
constexpr double kFarColumns = 800;     // beyond, a block of columns exceeds half of the second-level cache
constexpr double kSpmmLimit = 2 << 20;  // bytes of one block of columns beyond which the path is not an option

}  // namespace

template <class T>
GramPath choose_gram_path(const Rows<T>& x, const Rows<T>& y) {
  const Costs c = sizeof(T) == 4 ? kCosts32 : kCosts64;
  const double pairs = static_cast<double>(x.n_rows) * static_cast<double>(y.n_rows);
  if (pairs == 0) return GramPath::inverted;
  const auto d = static_cast<double>(x.n_cols);
  const auto in_x = column_counts(x.offsets, x.n_rows, x.indices, x.n_cols);
  const auto in_y = column_counts(y.offsets, y.n_rows, y.indices, y.n_cols);
  double common = 0;
  for (std::size_t k = 0; k < in_x.size(); ++k) common += in_x[k] * in_y[k];
  const double overlap = common / pairs;
  const double observed = static_cast<double>(x.n_observed()) / static_cast<double>(x.n_rows);
  const double dense = c.dense * d / c.lanes + c.dense_0;
  const double spmm = (c.spmm + (d > kFarColumns ? c.spmm_far : 0)) * observed / c.lanes + c.spmm_0;
  const double inverted = c.inverted * overlap + c.inverted_o * observed + c.inverted_0;
  const double block_bytes = static_cast<double>(kernels_of<T>().gram.lanes) * (sizeof(T) + 1) * d;
  if (block_bytes <= kSpmmLimit && spmm <= dense && spmm <= inverted) return GramPath::spmm;
  return dense <= inverted ? GramPath::dense : GramPath::inverted;
}

template <class T>
void karma_gram(const GramTask<T>& task, GramPath path, int n_threads) {
  assert(well_ordered(task.x) && well_ordered(task.y));
  if (task.x.n_rows == 0 || task.y.n_rows == 0) return;
  switch (path == GramPath::automatic ? choose_gram_path(task.x, task.y) : path) {
    case GramPath::dense: return gram_dense(task, n_threads);
    case GramPath::spmm: return gram_spmm(task, n_threads);
    default: return gram_inverted(task, n_threads);
  }
}

#define LACUNAR_INSTANTIATE(T)                                        \
  template GramPath choose_gram_path(const Rows<T>&, const Rows<T>&); \
  template void karma_gram(const GramTask<T>&, GramPath, int);
LACUNAR_INSTANTIATE(float)
LACUNAR_INSTANTIATE(double)
#undef LACUNAR_INSTANTIATE

}  // namespace lacunar
