// Compiled once per instruction set into its own namespace: the sweep of the dual solver. Raw pointers, no std::.
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

}  // namespace

void set_dual(Kernels& to) { to.dual_sweep = dual_sweep; }

}  // namespace lacunar::LACUNAR_KERNEL_NAMESPACE
