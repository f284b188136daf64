#include "lacunar/lazy_basis.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/small_dense.hpp"

namespace lacunar {
namespace {

constexpr int kAhead = 8;                 // rows of V prefetched ahead of a gather
constexpr Offset kPanel = 1024;           // columns of the table turned at once
constexpr Offset kRefresh = 1024;         // steps after which a narrow U is made orthonormal afresh
constexpr double kLargestCondition = 1e3;  // of T, per d: beyond, U is multiplied out

}  // namespace

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

void LazyBasis::gather(const Index* seen, int m, double* rows) const {
  for (int i = 0; i < m; ++i) {
    if (i + kAhead < m) prefetch(v_ + static_cast<Offset>(seen[i + kAhead]) * d_, d_ * static_cast<Offset>(sizeof(double)));
    std::copy_n(v_ + static_cast<Offset>(seen[i]) * d_, d_, rows + static_cast<Offset>(i) * leading_);
  }
}

void LazyBasis::scatter(const Index* seen, int m, const double* rows) {
  for (int i = 0; i < m; ++i)
    std::copy_n(rows + static_cast<Offset>(i) * leading_, d_, v_ + static_cast<Offset>(seen[i]) * d_);
}

void LazyBasis::to_u(const double* x, double* out) const {
  small_kernels().project(t_inverse_.data(), x, leading_, leading_, out);
}

void LazyBasis::to_v(const double* x, double* out) const {
  small_kernels().combine(t_inverse_.data(), x, leading_, leading_, out);
}

// V <- V by, for all columns of the table. n_cols d^2.
void LazyBasis::turn_all(const std::vector<double>& by) {
  const Offset at_once = std::min<Offset>(n_cols_, kPanel);
  std::vector<double> panel(static_cast<std::size_t>(at_once * leading_)), turned(panel);
  for (Offset first = 0; first < n_cols_; first += at_once) {
    const Offset last = std::min(first + at_once, n_cols_);
    load_panel(first, last, panel);
    small_kernels().multiply(panel.data(), by.data(), static_cast<int>(last - first), leading_, turned.data());
    for (Offset j = first; j < last; ++j) std::copy_n(turned.begin() + (j - first) * leading_, d_, v_ + j * d_);
  }
}

// V^T V over all columns of the table.
void LazyBasis::whole_gram(std::vector<double>& out) const {
  const Offset at_once = std::min<Offset>(n_cols_, kPanel);
  std::vector<double> panel(static_cast<std::size_t>(at_once * leading_)), part(out.size());
  std::fill(out.begin(), out.end(), 0.0);
  for (Offset first = 0; first < n_cols_; first += at_once) {
    const Offset last = std::min(first + at_once, n_cols_);
    load_panel(first, last, panel);
    small_kernels().gram(panel.data(), static_cast<int>(last - first), leading_, part.data());
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += part[i];
  }
}

void LazyBasis::load_panel(Offset first, Offset last, std::vector<double>& panel) const {
  for (Offset j = first; j < last; ++j) std::copy_n(v_ + j * d_, d_, panel.begin() + (j - first) * leading_);
}

// U multiplied out into V, and made orthonormal from its own Gram: what rounding had left is gone.
void LazyBasis::materialise(double& lazy) {
  const int ld = leading_;
  turn_all(t_);
  whole_gram(delta_);
  for (int i = 0; i < d_; ++i) at(delta_, i, i) -= 1;
  if (inverse_root(delta_.data(), d_, ld, root_.data(), work_.data())) turn_all(root_);
  for (auto* matrix : {&t_, &t_inverse_}) {
    std::fill(matrix->begin(), matrix->end(), 0.0);
    for (int i = 0; i < d_; ++i) at(*matrix, i, i) = 1;
  }
  lazy = 0;
}

// delta = T^T (V'^T V' - V^T V) T is what these rows added to U^T U = I; S = (I + delta)^(-1/2), T <- T S.
void LazyBasis::orthonormalise(const double* rows, int m, const double* before, Offset steps, double& lazy) {
  const int ld = leading_;
  const auto& multiply = small_kernels().multiply;
  small_kernels().gram(rows, m, ld, moved_.data());
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
    turn_all(root_);
    if (steps % kRefresh == 0) materialise(lazy);
    return;
  }
  multiply(t_.data(), root_.data(), ld, ld, moved_.data());
  t_.swap(moved_);
  multiply(root_.data(), t_inverse_.data(), ld, ld, moved_.data());
  for (int i = 0; i < d_; ++i) at(delta_, i, i) += 1;
  multiply(delta_.data(), moved_.data(), ld, ld, t_inverse_.data());  // S^-1 = (I + delta) S
  lazy += 1;
  const double condition = std::sqrt(dot(t_.data(), t_.data(), ld * ld) * dot(t_inverse_.data(), t_inverse_.data(), ld * ld));
  const double patience = std::max(64.0, 4.0 * static_cast<double>(n_cols_) / m);
  if (lazy >= patience || condition > kLargestCondition * d_) materialise(lazy);
}

}  // namespace lacunar
