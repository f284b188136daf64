#include "lacunar/meg/tridiagonal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lacunar {

namespace {

constexpr double kEps = std::numeric_limits<double>::epsilon();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The end of the unreduced block that starts at l: the first m >= l with e[m] negligible.
int block_end(const double* d, const double* e, int l, int k) {
  int m = l;
  while (m < k - 1 && std::abs(e[m]) > kEps * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
  return m;
}

// One implicit QL sweep with Wilkinson's shift over the block l..m, rotating the first components z along.
void sweep(double* d, double* e, double* z, int l, int m) {
  double g = (d[l + 1] - d[l]) / (2 * e[l]);
  g = d[m] - d[l] + e[l] / (g + std::copysign(std::sqrt(g * g + 1), g));
  double s = 1, c = 1, p = 0;
  for (int i = m - 1; i >= l; --i) {
    const double f = s * e[i], b = c * e[i];
    const double r = std::sqrt(f * f + g * g);
    e[i + 1] = r;
    if (r == 0) {
      d[i + 1] -= p;
      e[m] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const double t = (d[i] - g) * s + 2 * c * b;
    p = s * t;
    d[i + 1] = g + p;
    g = c * t - b;
    const double first = z[i + 1];
    z[i + 1] = s * z[i] + c * first;
    z[i] = c * z[i] - s * first;
  }
  d[l] -= p;
  e[l] = g;
  e[m] = 0;
}

}  // namespace

bool TridiagonalExponential::diagonalise(int k) {
  for (int l = 0; l < k; ++l)
    for (int turn = 0;; ++turn) {
      const int m = block_end(d_.data(), e_.data(), l, k);
      if (m == l) break;
      if (turn == 60) return false;
      sweep(d_.data(), e_.data(), z_.data(), l, m);
    }
  return true;
}

double TridiagonalExponential::log_first(const double* a, const double* b, int k) {
  d_.assign(a, a + k);
  e_.assign(k, 0);
  std::copy_n(b, k - 1, e_.begin());  // b may be null where k is 1
  z_.assign(k, 0);
  z_[0] = 1;
  // A NaN makes every comparison false and would pass for converged.
  for (int i = 0; i < k; ++i)
    if (!std::isfinite(d_[i]) || !std::isfinite(e_[i])) return kNan;
  if (!diagonalise(k)) return kNan;
  largest_ = *std::max_element(d_.begin(), d_.begin() + k);
  double sum = 0;
  for (int i = 0; i < k; ++i) sum += z_[i] * z_[i] * std::exp(d_[i] - largest_);
  return largest_ + std::log(sum);
}

}  // namespace lacunar
