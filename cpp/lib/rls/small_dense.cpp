#include "lacunar/rls/small_dense.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"

namespace lacunar {
namespace {

constexpr double kSeriesReach = 0.25;  // beyond this norm the series needs more products than rotations cost
constexpr int kMaxSweeps = 40;
constexpr double kLargestInverse = 1e12;
constexpr double kSameRank = 1e-10;  // of a direction's length, in units of the longest row

// (I + delta)^(-1/2) = sum_k C(-1/2, k) delta^k, by Horner; the rest after `order` terms is below norm^(order + 1).
void series(const double* delta, int d, int leading, double norm, double* root, double* product) {
  int order = 1;
  for (double remainder = norm * norm; remainder > 1e-17 && order < 40; remainder *= norm) ++order;
  const auto coefficient = [](int k) { return -(2.0 * k - 1) / (2.0 * k); };  // C(-1/2, k) / C(-1/2, k - 1)
  std::fill(root, root + leading * leading, 0.0);
  for (int i = 0; i < d; ++i) root[i * leading + i] = 1;
  for (int k = order; k >= 1; --k) {  // root <- I + coefficient(k) delta root
    kernels().small.multiply(delta, root, leading, leading, product);
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

void subtract(double factor, const double* from, int count, double* x) {
  for (int k = 0; k < count; ++k) x[k] -= factor * from[k];
}

void divide(double by, int count, double* x) {
  for (int k = 0; k < count; ++k) x[k] /= by;
}

int longest(const double* rows, int m, int leading, double* length) {
  int index = 0;
  *length = 0;
  for (int i = 0; i < m; ++i) {
    const double size = dot(rows + i * leading, rows + i * leading, leading);
    if (size > *length) *length = size, index = i;
  }
  *length = std::sqrt(*length);
  return index;
}

// rows ~ columns^T axes with orthonormal axes (rank, leading) and columns (rank, m): the longest row that is left gives
// the next axis, made orthogonal twice.
int row_axes(double* rows, int m, int d, int leading, LeastNormWork& work) {
  double first = 0, length = 0;
  int rank = 0;
  for (; rank < std::min(m, d); ++rank) {
    const int pivot = longest(rows, m, leading, &length);
    if (rank == 0) first = length;
    if (!(length > kSameRank * first)) break;
    double* axis = work.axes.data() + rank * leading;
    std::copy_n(rows + static_cast<Offset>(pivot) * leading, leading, axis);
    for (int again = 0; again < 2; ++again)
      for (int k = 0; k < rank; ++k) {
        const double* before = work.axes.data() + k * leading;
        subtract(dot(before, axis, leading), before, leading, axis);
      }
    divide(std::sqrt(dot(axis, axis, leading)), leading, axis);
    double* column = work.columns.data() + static_cast<Offset>(rank) * m;
    for (int i = 0; i < m; ++i) {
      double* row = rows + static_cast<Offset>(i) * leading;
      column[i] = dot(row, axis, leading);
      subtract(column[i], axis, leading, row);
    }
  }
  return rank;
}

// The z that minimises |columns^T z - right|, left in the diagonal of `triangle` (rank, rank).
void solve_axes(int rank, int m, double* right, LeastNormWork& work) {
  double* triangle = work.triangle.data();
  std::vector<double>& columns = work.columns;
  for (int k = 0; k < rank; ++k) {
    double* column = columns.data() + static_cast<Offset>(k) * m;
    const double length = std::sqrt(dot(column, column, m));
    divide(length, m, column);
    for (int l = k + 1; l < rank; ++l) {
      double* other = columns.data() + static_cast<Offset>(l) * m;
      triangle[k * rank + l] = dot(column, other, m) / length;
      subtract(triangle[k * rank + l] * length, column, m, other);
    }
    const double along = dot(column, right, m);
    subtract(along, column, m, right);
    triangle[k * rank + k] = along / length;
  }
  for (int k = rank - 2; k >= 0; --k)
    for (int l = k + 1; l < rank; ++l) triangle[k * rank + k] -= triangle[k * rank + l] * triangle[l * rank + l];
}

}  // namespace

// Four sums do not wait for one another.
double dot(const double* x, const double* y, Offset count) {
  double sums[4] = {};
  Offset k = 0;
  for (; k + 4 <= count; k += 4)
    for (int r = 0; r < 4; ++r) sums[r] += x[k + r] * y[k + r];
  for (; k < count; ++k) sums[0] += x[k] * y[k];
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

double advance_inverse(double* inverse, int d, const double* a, double kept, double* gain) {
  double largest = 0;
  for (int i = 0; i < d; ++i) largest = std::max(largest, inverse[i * (d + 1)]);
  const double grow = largest / kept > kLargestInverse ? 1.0 : 1 / kept;
  for (int i = 0; i < d; ++i) gain[i] = grow * dot(inverse + i * d, a, d);
  const double tau = dot(a, gain, d);
  const double root = 1 / std::sqrt(1 + tau);
  for (int i = 0; i < d; ++i) {
    const double u = root * gain[i];
    for (int k = 0; k < d; ++k) inverse[i * d + k] = grow * inverse[i * d + k] - u * (root * gain[k]);
  }
  return tau;
}

int least_norm(double* rows, double* right, int m, int d, int leading, double* out, LeastNormWork& work) {
  const auto side = static_cast<std::size_t>(leading), tall = static_cast<std::size_t>(std::max(m, 1));
  work.axes.resize(std::max(work.axes.size(), side * side));
  work.columns.resize(std::max(work.columns.size(), side * tall));
  work.triangle.resize(std::max(work.triangle.size(), side * side));
  const int rank = row_axes(rows, m, d, leading, work);
  solve_axes(rank, m, right, work);
  std::fill(out, out + leading, 0.0);
  for (int k = 0; k < rank; ++k)
    subtract(-work.triangle[static_cast<std::size_t>(k * rank + k)], work.axes.data() + k * leading, leading, out);
  return rank;
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
  kernels().small.gram(scaled, d, leading, root);
  return true;
}

}  // namespace lacunar
