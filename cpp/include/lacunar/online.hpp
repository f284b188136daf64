// Algorithm 1 of KARMA over support rows, block by block: values of a block from the rows kept so far come from the batch
// kernel, those from rows of the same block from a triangular part. Sums run in order of arrival, one lane a row, so that
// blocks of any size give the same bits.
#pragma once

#include "lacunar/step_clock.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// out (outputs, n) += (kernel^T coef)^T for kernel (support, n) and coef (support, outputs), support rows one after the other.
template <class T>
void add_support(const T* kernel, const double* coef, Offset support, Offset n, Offset outputs, double* out);

// What a block reads and leaves behind; (n, outputs) where not said, weight (n) or null.
struct OnlineBlock {
  Offset n, outputs;
  const double *target, *weight;
  double* sums;    // (outputs, n); in: what the rows kept so far give; out: that and what earlier rows of the block give
  double* values;  // before every row's own step
  double* coef;    // what a row adds to v = scale * first, and to second
  double* late;
};

// Rows [from, n) of a block with kernel (n, n) among themselves, until a fold is due: the next row to go on with, n at the
// end, or -1 - row at a value that is not finite. After a fold the caller has rescaled sums and coefficients.
template <class T>
Offset online_block(const T* kernel, const StepRule& rule, Offset from, const OnlineBlock& block, double* clock);

}  // namespace lacunar
