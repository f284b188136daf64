// Factorisations of matrices of some tens of rows: row-major (leading, leading) with leading = padded(d), the padding
// zero. Their products come per instruction set; see SmallKernels.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

constexpr int padded(int d) { return (d + 7) / 8 * 8; }

// In units of a matrix's mean diagonal: least pivots of a factor, below the first of which the matrix is singular and
// below the second its inverse has lost digits, and the ridge that rescues a singular one.
constexpr double kSingular = 1e-13, kExact = 1e-5, kRescue = 1e-8;

double dot(const double* x, const double* y, Offset count);

// out = x + factor y, of `count` numbers.
inline void add_scaled(const double* x, double factor, const double* y, int count, double* out) {
  for (int k = 0; k < count; ++k) out[k] = x[k] + factor * y[k];
}

// R^-1 (d, d) becomes (kept R + a a^T)^-1, symmetric to the last bit, with gain = (kept R)^-1 a; returns a gain. It grows
// no further than 1e12.
double advance_inverse(double* inverse, int d, const double* a, double kept, double* gain);

// Room for `least_norm`; it grows as rows need.
struct LeastNormWork {
  std::vector<double> axes, columns, triangle;  // (d, leading), (d, m), (d, d)
};

// out (leading) = the shortest x among those that minimise |rows x - right|, for rows (m, leading) and right (m), which
// are overwritten. Returns the rank: directions below 1e-10 of the longest row count as none. Gram-Schmidt by rows with
// pivots and then by columns (a complete orthogonal decomposition): no normal equations, so no squared condition. 6 m
// d^2.
int least_norm(double* rows, double* right, int m, int d, int leading, double* out, LeastNormWork& work);

// root = (I + delta)^(-1/2) for symmetric delta, by its binomial series where that converges fast and by Jacobi
// rotations elsewhere; work holds 3 matrices. False when I + delta is not positive definite.
bool inverse_root(const double* delta, int d, int leading, double* root, double* work);

}  // namespace lacunar
