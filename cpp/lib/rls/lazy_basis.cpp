#include "lacunar/rls/lazy_basis.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/interrupt.hpp"
#include "lacunar/parallel/prefetch.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

constexpr int kAhead = 8;                  // rows of V prefetched ahead of a gather
constexpr Offset kPanel = 1024;            // columns of the table turned at once
constexpr Offset kRefresh = 1024;          // steps after which a narrow U is made orthonormal afresh
constexpr double kSmallestCosine = .1;     // of a rotation that T can follow
constexpr double kLargestCondition = 1e3;  // of T, per d: beyond, U is multiplied out

}  // namespace

void gather_rows(const double* v, int d, const Index* seen, int m, int leading, double* rows) {
  for (int i = 0; i < m; ++i) {
    if (i + kAhead < m) prefetch<For::writing>(v + static_cast<Offset>(seen[i + kAhead]) * d, 0, d);
    std::copy_n(v + static_cast<Offset>(seen[i]) * d, d, rows + static_cast<Offset>(i) * leading);
  }
}

void turn_columns(double* v, Offset n_cols, int d, int leading, const std::vector<double>& by) {
  const Offset at_once = std::min<Offset>(n_cols, kPanel);
  std::vector<double> panel(static_cast<std::size_t>(at_once * leading)), turned(panel);
  InterruptCheck check;  // callers take half a turn back
  for (Offset first = 0; first < n_cols; first += at_once, check.look()) {
    const Offset last = std::min(first + at_once, n_cols);
    for (Offset j = first; j < last; ++j) std::copy_n(v + j * d, d, panel.begin() + (j - first) * leading);
    kernels().small.multiply(panel.data(), by.data(), static_cast<int>(last - first), leading, turned.data());
    for (Offset j = first; j < last; ++j) std::copy_n(turned.begin() + (j - first) * leading, d, v + j * d);
  }
}

void columns_gram(const double* v, Offset n_cols, int d, int leading, std::vector<double>& out) {
  const Offset at_once = std::min<Offset>(n_cols, kPanel);
  std::vector<double> panel(static_cast<std::size_t>(at_once * leading)), part(out.size());
  std::fill(out.begin(), out.end(), 0.0);
  InterruptCheck check;
  for (Offset first = 0; first < n_cols; first += at_once, check.look()) {
    const Offset last = std::min(first + at_once, n_cols);
    for (Offset j = first; j < last; ++j) std::copy_n(v + j * d, d, panel.begin() + (j - first) * leading);
    kernels().small.gram(panel.data(), static_cast<int>(last - first), leading, part.data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += part[i];
  }
}

LazyBasis::LazyBasis(double* v, Offset n_cols, int d, double* t, double* t_inverse)
    : v_(v), t_out_(t), t_inverse_out_(t_inverse), n_cols_(n_cols), d_(d), leading_(padded(d)) {
  const auto square = static_cast<std::size_t>(leading_ * leading_);
  for (auto* matrix : {&t_, &t_inverse_, &delta_, &root_, &moved_}) matrix->resize(square);
  work_.resize(3 * square);
  for (int i = 0; i < d; ++i) {
    std::copy_n(t + i * d, d, t_.begin() + i * leading_);
    std::copy_n(t_inverse + i * d, d, t_inverse_.begin() + i * leading_);
  }
}

LazyBasis::~LazyBasis() {
  for (int i = 0; i < d_; ++i) {
    std::copy_n(t_.begin() + i * leading_, d_, t_out_ + i * d_);
    std::copy_n(t_inverse_.begin() + i * leading_, d_, t_inverse_out_ + i * d_);
  }
}

double& LazyBasis::at(std::vector<double>& matrix, int i, int k) const {
  return matrix[static_cast<std::size_t>(i * leading_ + k)];
}

void LazyBasis::gather(const Index* seen, int m, double* rows) const { gather_rows(v_, d_, seen, m, leading_, rows); }

void LazyBasis::scatter(const Index* seen, int m, const double* rows) {
  for (int i = 0; i < m; ++i)
    std::copy_n(rows + static_cast<Offset>(i) * leading_, d_, v_ + static_cast<Offset>(seen[i]) * d_);
}

void LazyBasis::to_u(const double* x, double* out) const {
  kernels().small.project(t_inverse_.data(), x, leading_, leading_, out);
}

void LazyBasis::from_u(const double* x, double* out) const {
  kernels().small.project(t_.data(), x, leading_, leading_, out);
}

void LazyBasis::to_v(const double* x, double* out) const {
  kernels().small.combine(t_inverse_.data(), x, leading_, leading_, out);
}

// U multiplied out into V, and made orthonormal from its own Gram: what rounding had left is gone.
void LazyBasis::materialise(double& lazy) {
  const int ld = leading_;
  turn_columns(v_, n_cols_, d_, leading_, t_);
  columns_gram(v_, n_cols_, d_, leading_, delta_);
  for (int i = 0; i < d_; ++i) at(delta_, i, i) -= 1;
  if (inverse_root(delta_.data(), d_, ld, root_.data(), work_.data())) turn_columns(v_, n_cols_, d_, leading_, root_);
  for (auto* matrix : {&t_, &t_inverse_}) {
    std::fill(matrix->begin(), matrix->end(), 0.0);
    for (int i = 0; i < d_; ++i) at(*matrix, i, i) = 1;
  }
  lazy = 0;
}

// delta = T^T (V'^T V' - V^T V) T is what these rows added to U^T U = I; S = (I + delta)^(-1/2), T <- T S.
void LazyBasis::orthonormalise(const double* rows, int m, const double* before, Offset steps, double& lazy) {
  const int ld = leading_;
  const auto& multiply = kernels().small.multiply;
  kernels().small.gram(rows, m, ld, moved_.data());
  for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] -= before[i];
  double* half = work_.data();
  multiply(moved_.data(), t_.data(), ld, ld, half);
  for (int i = 0; i < ld; ++i)  // delta = T^T half, row i is T's column i against half
    for (int k = 0; k < ld; ++k) at(moved_, i, k) = at(t_, k, i);
  multiply(moved_.data(), half, ld, ld, delta_.data());
  for (int i = 0; i < d_; ++i)
    for (int k = 0; k < i; ++k) {
      double &low = at(delta_, i, k), &high = at(delta_, k, i);
      low = high = (low + high) / 2;
    }
  if (!inverse_root(delta_.data(), d_, ld, root_.data(), work_.data())) return materialise(lazy);
  const bool narrow = n_cols_ < 2 * static_cast<Offset>(m) && lazy == 0;
  if (narrow) {  // turning all of V costs less than keeping T
    turn_columns(v_, n_cols_, d_, leading_, root_);
    if (steps % kRefresh == 0) materialise(lazy);
    return;
  }
  multiply(t_.data(), root_.data(), ld, ld, moved_.data());
  t_.swap(moved_);
  multiply(root_.data(), t_inverse_.data(), ld, ld, moved_.data());
  for (int i = 0; i < d_; ++i) at(delta_, i, i) += 1;
  multiply(delta_.data(), moved_.data(), ld, ld, t_inverse_.data());  // S^-1 = (I + delta) S
  lazy += 1;
  refresh_when_due(m, lazy);
}

void LazyBasis::refresh_when_due(int m, double& lazy) {
  const Offset count = static_cast<Offset>(t_.size());
  const double condition =
      std::sqrt(dot(t_.data(), t_.data(), count) * dot(t_inverse_.data(), t_inverse_.data(), count));
  const double patience = std::max(64.0, 4.0 * static_cast<double>(n_cols_) / m);
  if (lazy >= patience || condition > kLargestCondition * d_) materialise(lazy);
}

// With H = I + (cos - 1) a a^T: T <- T H, T^-1 <- H^-1 T^-1, and V_O += sin / (|r| cos) r (T^-T a)^T with the T before.
void LazyBasis::rotate(const Index* seen, int m, const double* r, double size, const std::vector<double>& direction,
                       double angle, double& lazy) {
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const bool singular = cosine < kSmallestCosine;  // H is not inverted there: U is multiplied out and turned as a whole
  if (singular) materialise(lazy);
  std::vector<double> along(direction.size()), turned(direction.size());
  to_v(direction.data(), along.data());
  if (singular) {
    for (int i = 0; i < d_; ++i)
      for (int k = 0; k < d_; ++k)
        at(root_, i, k) =
            (i == k) + (cosine - 1) * direction[static_cast<std::size_t>(i)] * direction[static_cast<std::size_t>(k)];
    turn_columns(v_, n_cols_, d_, leading_, root_);
  }
  const double reach = sine / (size * (singular ? 1.0 : cosine));
  for (int i = 0; i < m; ++i) {
    double* row = v_ + static_cast<Offset>(seen[i]) * d_;
    for (int k = 0; k < d_; ++k) row[k] += reach * r[i] * along[static_cast<std::size_t>(k)];
  }
  if (singular) return;
  kernels().small.project(t_.data(), direction.data(), leading_, leading_, turned.data());  // T a
  for (int i = 0; i < d_; ++i)
    for (int k = 0; k < d_; ++k) {
      const double a_i = direction[static_cast<std::size_t>(i)], a_k = direction[static_cast<std::size_t>(k)];
      at(t_, i, k) += (cosine - 1) * turned[static_cast<std::size_t>(i)] * a_k;
      at(t_inverse_, i, k) += (1 / cosine - 1) * a_i * along[static_cast<std::size_t>(k)];
    }
  lazy += 1;
  refresh_when_due(m, lazy);
}

}  // namespace lacunar
