#include "lacunar/small_dense.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"

namespace lacunar {
namespace {

constexpr double kSeriesReach = 0.25;  // beyond this norm the series needs more products than rotations cost
constexpr int kMaxSweeps = 40;

// (I + delta)^(-1/2) = sum_k C(-1/2, k) delta^k, by Horner; the rest after `order` terms is below norm^(order + 1).
void series(const double* delta, int d, int leading, double norm, double* root, double* product) {
  int order = 1;
  for (double rest = norm * norm; rest > 1e-17 && order < 40; rest *= norm) ++order;
  const auto coefficient = [](int k) { return -(2.0 * k - 1) / (2.0 * k); };  // C(-1/2, k) / C(-1/2, k - 1)
  std::fill(root, root + leading * leading, 0.0);
  for (int i = 0; i < d; ++i) root[i * leading + i] = 1;
  for (int k = order; k >= 1; --k) {  // root <- I + coefficient(k) delta root
    small_kernels().multiply(delta, root, leading, leading, product);
    for (int i = 0; i < leading * leading; ++i) root[i] = coefficient(k) * product[i];
    for (int i = 0; i < d; ++i) root[i * leading + i] += 1;
  }
}

// One rotation of rows and columns p and q that clears a(p, q), applied to the vectors too.
void rotate(double* a, double* vectors, int d, int leading, int p, int q) {
  const double off = a[p * leading + q];
  if (off == 0) return;
  const double theta = (a[q * leading + q] - a[p * leading + p]) / (2 * off);
  const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));
  const double c = 1 / std::hypot(t, 1.0), s = t * c;
  for (int k = 0; k < d; ++k) {
    const double x = a[k * leading + p], y = a[k * leading + q];
    a[k * leading + p] = c * x - s * y;
    a[k * leading + q] = s * x + c * y;
  }
  for (int k = 0; k < d; ++k) {
    const double x = a[p * leading + k], y = a[q * leading + k];
    a[p * leading + k] = c * x - s * y;
    a[q * leading + k] = s * x + c * y;
  }
  for (int k = 0; k < d; ++k) {
    const double x = vectors[p * leading + k], y = vectors[q * leading + k];
    vectors[p * leading + k] = c * x - s * y;
    vectors[q * leading + k] = s * x + c * y;
  }
}

// a becomes diagonal, vectors its eigenvectors by rows.
void jacobi(double* a, double* vectors, int d, int leading) {
  std::fill(vectors, vectors + leading * leading, 0.0);
  for (int i = 0; i < d; ++i) vectors[i * leading + i] = 1;
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    double off = 0, all = 0;
    for (int p = 0; p < d; ++p)
      for (int q = 0; q < d; ++q) (p == q ? all : off) += a[p * leading + q] * a[p * leading + q];
    if (off <= 1e-32 * all) return;
    for (int p = 0; p + 1 < d; ++p)
      for (int q = p + 1; q < d; ++q) rotate(a, vectors, d, leading, p, q);
  }
}

}  // namespace

double dot(const double* x, const double* y, Offset count) {
  double sum = 0;
  for (Offset k = 0; k < count; ++k) sum += x[k] * y[k];
  return sum;
}

bool cholesky(double* matrix, int d, int leading, double smallest) {
  for (int j = 0; j < d; ++j) {
    double* row = matrix + j * leading;
    for (int i = 0; i < j; ++i) {
      const double* above = matrix + i * leading;
      double sum = row[i];
      for (int k = 0; k < i; ++k) sum -= row[k] * above[k];
      row[i] = sum / above[i];
    }
    double pivot = row[j];
    for (int k = 0; k < j; ++k) pivot -= row[k] * row[k];
    if (!(pivot > smallest)) return false;
    row[j] = std::sqrt(pivot);
  }
  return true;
}

void cholesky_solve(const double* factor, int d, int leading, double* x) {
  for (int i = 0; i < d; ++i) {
    for (int k = 0; k < i; ++k) x[i] -= factor[i * leading + k] * x[k];
    x[i] /= factor[i * leading + i];
  }
  for (int i = d - 1; i >= 0; --i) {
    x[i] /= factor[i * leading + i];
    for (int k = 0; k < i; ++k) x[k] -= factor[i * leading + k] * x[i];
  }
}

bool inverse_root(const double* delta, int d, int leading, double* root, double* work) {
  const int size = leading * leading;
  double norm = 0;
  for (int i = 0; i < size; ++i) norm += delta[i] * delta[i];
  norm = std::sqrt(norm);
  if (norm < kSeriesReach) {
    series(delta, d, leading, norm, root, work);
    return true;
  }
  double *values = work, *vectors = work + size, *scaled = work + 2 * size;
  std::copy(delta, delta + size, values);
  for (int i = 0; i < d; ++i) values[i * leading + i] += 1;
  jacobi(values, vectors, d, leading);
  for (int i = 0; i < d; ++i) {
    const double value = values[i * leading + i];
    if (!(value > 0)) return false;
    const double quarter = std::sqrt(std::sqrt(value));
    for (int k = 0; k < leading; ++k) scaled[i * leading + k] = vectors[i * leading + k] / quarter;
  }
  small_kernels().gram(scaled, d, leading, root);
  return true;
}

}  // namespace lacunar
