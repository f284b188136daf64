// Compiled once per instruction set into its own namespace: factors of symmetric matrices of some tens of rows, and
// what is solved with them. A factor is U of A = U^T U by rows, `leading` = a multiple of eight apart, with 1 / U(i, i)
// in the place of U(i, i); the padding of A and U is zero. All of it goes by blocks of eight rows, whose eight sums run
// side by side in registers. Raw pointers, no std:: templates; everything but the table is internal.
#include <math.h>  // the sqrt of C, which MSVC lacks as a builtin

#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "eight.inc"

// Eight rows of `to`, one block wide, -= sum over k in [from, until) of factor(k, column + r) with(k, :); `to` and
// `with` point to their columns.
void reduce(const double* factor, const double* with, int leading, int column, int from, int until, double* to) {
  for (int s = 0; s < kSteps; ++s, with += kWidth, to += kWidth) {
    Part sum[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) sum[r] = *reinterpret_cast<const Part*>(to + r * leading);
    for (int k = from; k < until; ++k) {
      const double* scale = factor + k * leading + column;
      const Part x = *reinterpret_cast<const Part*>(with + k * leading);
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) sum[r] -= scale[r] * x;
    }
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) *reinterpret_cast<Part*>(to + r * leading) = sum[r];
  }
}

// Eight rows of `to`, one block wide, <- U^-T to, for the block of U on the diagonal.
void finish(const double* block, int leading, double* to) {
  for (int s = 0; s < kSteps; ++s, to += kWidth) {
    Part row[8];
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) row[r] = *reinterpret_cast<const Part*>(to + r * leading);
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) {
      const double* above = block + q * leading;
      row[q] *= above[q];
#pragma GCC unroll 8
      for (int r = q + 1; r < 8; ++r) row[r] -= above[r] * row[q];
    }
#pragma GCC unroll 8
    for (int r = 0; r < 8; ++r) *reinterpret_cast<Part*>(to + r * leading) = row[r];
  }
}

// The block on the diagonal becomes its factor, `count` rows of it, at most `most`; false when a pivot is not above
// `smallest`. The pivots come without roots first: none of them waits for the root of the one before.
template <int most>
bool factor_block(double* block, int leading, int count, double smallest) {
  double x[most][most], pivot[most];
  for (int r = 0; r < most; ++r)
    for (int c = r; c < most; ++c) x[r][c] = block[r * leading + c];
#pragma GCC unroll 8
  for (int q = 0; q < most; ++q) {
    if (q == count) break;
    if (!(x[q][q] > smallest)) return false;
    pivot[q] = x[q][q];
    const double inverse = 1 / pivot[q];
#pragma GCC unroll 8
    for (int r = q + 1; r < most; ++r) {
      const double scale = x[q][r] * inverse;
#pragma GCC unroll 8
      for (int c = r; c < most; ++c) x[r][c] -= scale * x[q][c];
    }
  }
  for (int q = 0; q < count; ++q) {
    const double root = 1 / sqrt(pivot[q]);
    for (int c = q + 1; c < most; ++c) block[q * leading + c] = x[q][c] * root;
    block[q * leading + q] = root;
  }
  return true;
}

// The upper triangle of matrix (leading, leading) becomes its factor; false, half done, when a pivot is not above
// `smallest`. d^3 / 3.
bool factorise(double* matrix, int d, int leading, double smallest) {
  if (d <= 4) return factor_block<4>(matrix, leading, d, smallest);
  for (int b = 0; b < d; b += 8) {
    double *rows = matrix + b * leading, *diagonal = rows + b;
    for (int c = b; c < leading; c += 8) {
      if (b > 0) reduce(matrix, matrix + c, leading, b, 0, b, rows + c);
      if (c > b)
        finish(diagonal, leading, rows + c);
      else if (!factor_block<8>(diagonal, leading, d - b < 8 ? d - b : 8, smallest))
        return false;
    }
  }
  return true;
}

// x (leading) <- (U^T U)^-1 x. 2 d^2.
void solve(const double* factor, int d, int leading, double* x) {
  for (int b = 0; b < d; b += 8) {
    const double* rows = factor + b * leading;
    double own[8];
    for (int r = 0; r < 8; ++r) own[r] = x[b + r];
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) {
      const double* row = rows + q * leading + b;
      own[q] *= row[q];
#pragma GCC unroll 8
      for (int r = q + 1; r < 8; ++r) own[r] -= row[r] * own[q];
    }
    for (int r = 0; r < 8; ++r) x[b + r] = own[r];
    for (int c = b + 8; c < leading; c += 8) {
      Eight sum = load(x + c), more = {};
#pragma GCC unroll 4
      for (int r = 0; r < 8; r += 2) {
        add(sum, -own[r], load(rows + r * leading + c));
        add(more, -own[r + 1], load(rows + (r + 1) * leading + c));
      }
      add(sum, 1.0, more);
      store(sum, x + c);
    }
  }
  for (int b = (d - 1) / 8 * 8; b >= 0; b -= 8) {
    const double* rows = factor + b * leading;
    double own[8] = {};
    if (b + 8 < leading) {
      Eight sum[8] = {};
      for (int c = b + 8; c < leading; c += 8) {
        const Eight known = load(x + c);
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r) add(sum[r], load(rows + r * leading + c), known);
      }
      totals(sum, own);
    }
    for (int r = 0; r < 8; ++r) own[r] = x[b + r] - own[r];
#pragma GCC unroll 8
    for (int q = 7; q >= 0; --q) {
      own[q] *= rows[q * leading + b + q];
#pragma GCC unroll 8
      for (int r = 0; r < q; ++r) own[r] -= rows[r * leading + b + q] * own[q];
    }
    for (int r = 0; r < 8; ++r) x[b + r] = own[r];
  }
}

// root (leading, leading) = U^-T, lower triangular. d^3 / 3.
void invert_root(const double* factor, int d, int leading, double* root) {
  for (int k = 0; k < leading * leading; ++k) root[k] = 0;
  for (int i = 0; i < d; ++i) root[i * leading + i] = 1;
  for (int b = 0; b < d; b += 8)
    for (int c = 0; c <= b; c += 8) {
      double* to = root + b * leading + c;
      reduce(factor, root + c, leading, b, c, b, to);
      finish(factor + b * leading + b, leading, to);
    }
}

}  // namespace

void set_factor(Kernels& to) { to.factor = {factorise, solve, invert_root}; }

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
