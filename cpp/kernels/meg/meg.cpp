// Compiled once per instruction set into its own namespace: the vector passes of a Lanczos step of matrix exponentiated
// gradient. Lengths are multiples of eight, vectors padded with zeros. Raw pointers, no std:: templates.
#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {
namespace {

#include "eight.inc"

// to_rows += matrix x_cols and to_cols += matrix^T x_rows in one pass; matrix (rows, width), rows `leading` apart.
void rectangle(const double* matrix, Offset leading, Offset rows, Offset width, const double* x_rows,
               const double* x_cols, double* to_rows, double* to_cols) {
  for (Offset first = 0; first < rows; first += 8, matrix += 8 * leading) {
    Eight dot[8] = {};
    for (Offset k = 0; k < width; k += 8) {
      const Eight across = load(x_cols + k);
      Eight down = load(to_cols + k);
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        const Eight x = load(matrix + r * leading + k);
        add(dot[r], x, across);
        add(down, x_rows[first + r], x);
      }
      store(down, to_cols + k);
    }
    for (int r = 0; r < 8; ++r) to_rows[first + r] += total(dot[r]);
  }
}

double dot(const double* x, const double* y, Offset length) {
  Eight sum[2] = {};
  Offset k = 0;
  for (; k + 16 <= length; k += 16) {
    add(sum[0], load(x + k), load(y + k));
    add(sum[1], load(x + k + 8), load(y + k + 8));
  }
  if (k < length) add(sum[0], load(x + k), load(y + k));
  add(sum[0], 1.0, sum[1]);
  return total(sum[0]);
}

// u -= alpha q + beta before.
void recur(double* u, double alpha, const double* q, double beta, const double* before, Offset length) {
  for (Offset k = 0; k < length; k += 8) {
    Eight x = load(u + k);
    add(x, -alpha, load(q + k));
    add(x, -beta, load(before + k));
    store(x, u + k);
  }
}

// The lower triangle of a symmetric matrix kept as rows i of 8 (i / 8 + 1) doubles += factor x x^T.
void grow_symmetric(double* matrix, Offset length, double factor, const double* x) {
  for (Offset i = 0; i < length; ++i) {
    const Offset width = i / 8 * 8 + 8;
    for (Offset k = 0; k < width; k += 8) {
      Eight row = load(matrix + k);
      add(row, factor * x[i], load(x + k));
      store(row, matrix + k);
    }
    matrix += width;
  }
}

}  // namespace

void set_meg(Kernels& to) { to.meg = {rectangle, dot, recur, grow_symmetric}; }

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
