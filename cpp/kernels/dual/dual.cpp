// Compiled once per instruction set into its own namespace: the sweeps of the dual solvers. Raw pointers, no std::.
#include <math.h>  // HUGE_VAL

#include "table.hpp"

namespace lacunar::LACUNAR_KERNEL_NAMESPACE {

namespace {

// One loop that compilers vectorise as it stands.
void dual_sweep(const float* __restrict row, double c, double* __restrict gradient, const float* __restrict scale,
                const float* __restrict low, const float* __restrict high, float* __restrict gains, Offset count) {
  for (Offset j = 0; j < count; ++j) {
    gradient[j] -= c * static_cast<double>(row[j]);
    const float g = static_cast<float>(gradient[j]) * scale[j];
    float step = g > low[j] ? g : low[j];
    step = step < high[j] ? step : high[j];
    gains[j] = step * (2 * g - step);
  }
}

void class_sweep(const float* __restrict row, const double* __restrict change, Offset classes, Offset stride,
                 const ClassRows& rows, double* __restrict gains, Offset count) {
  double top[kSweep], bottom[kSweep];
  for (Offset j = 0; j < count; ++j) top[j] = -HUGE_VAL, bottom[j] = HUGE_VAL;
  for (Offset c = 0; c < classes; ++c) {
    double* __restrict score = rows.score + c * stride;
    const float* __restrict room = rows.room + c * stride;
    const double moved = change[c];
    for (Offset j = 0; j < count; ++j) {
      const double s = score[j] + moved * static_cast<double>(row[j]);
      score[j] = s;
      top[j] = s > top[j] ? s : top[j];
      const double low = static_cast<double>(room[j]) > 0 ? s : HUGE_VAL;
      bottom[j] = low < bottom[j] ? low : bottom[j];
    }
  }
  for (Offset j = 0; j < count; ++j) {
    const double psi = top[j] - bottom[j], upper = rows.upper[j], step = psi / rows.diagonal[j];
    const double size = top[j] > 0 ? top[j] : -top[j];
    const bool gains_none = !(upper > 0) | !(rows.diagonal[j] > 0) | !(psi > 1e-14 * (1 + size));
    gains[j] = gains_none ? 0.0 : psi * (step < upper ? step : upper);
  }
}

}  // namespace

void set_dual(Kernels& to) {
  to.dual_sweep = dual_sweep;
  to.class_sweep = class_sweep;
}

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
