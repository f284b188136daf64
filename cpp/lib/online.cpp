#include "lacunar/online.hpp"

#include <cmath>

#include "lacunar/kernels.hpp"

namespace lacunar {

template <class T>
void add_support(const T* kernel, const double* coef, Offset support, Offset n, Offset outputs, double* out) {
  const auto add = add_scaled<T>();
  for (Offset j = 0; j < support; ++j)
    for (Offset k = 0; k < outputs; ++k)
      if (coef[j * outputs + k] != 0) add(kernel + j * n, coef[j * outputs + k], out + k * n, n);
}

template <class T>
Offset online_block(const T* kernel, const StepRule& rule, Offset from, const OnlineBlock& block, double* clock) {
  StepClock steps(rule, clock);
  const auto add = add_scaled<T>();
  for (Offset i = from; i < block.n; ++i) {
    if (steps.due()) return i;
    for (Offset k = 0; k < block.outputs; ++k) {
      const double value = clock[kT] > 0 ? clock[kScale] * block.sums[k * block.n + i] : 0.0;
      if (!std::isfinite(value)) return -1 - i;
      block.values[i * block.outputs + k] = value;
    }
    const double mass = block.weight == nullptr ? 1.0 : block.weight[i];
    const double step = mass * steps.advance(static_cast<double>(kernel[i * block.n + i]) * mass);
    for (Offset k = 0; k < block.outputs; ++k) {
      const Offset at = i * block.outputs + k;
      const double slope = slope_at(rule.loss, block.values[at], block.target[at], rule.epsilon);
      block.coef[at] = slope == 0 ? 0.0 : step * slope;
      block.late[at] = block.coef[at] * steps.late();
      if (slope != 0)
        add(kernel + i * block.n + i + 1, block.coef[at], block.sums + k * block.n + i + 1, block.n - i - 1);
    }
  }
  return block.n;
}

template void add_support<float>(const float*, const double*, Offset, Offset, Offset, double*);
template void add_support<double>(const double*, const double*, Offset, Offset, Offset, double*);
template Offset online_block<float>(const float*, const StepRule&, Offset, const OnlineBlock&, double*);
template Offset online_block<double>(const double*, const StepRule&, Offset, const OnlineBlock&, double*);

}  // namespace lacunar
