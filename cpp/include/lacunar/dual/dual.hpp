// Greedy coordinate ascent on the duals of kernel machines without bias, over a float32 Gram with float64 gradients.
#pragma once

#include <algorithm>

#include "lacunar/primal/losses.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Minimises 1/2 |v|^2 + sum_i upper_i loss(y_i f(x_i)), f = gram beta with beta_i = y_i alpha_i.
struct DualProblem {
  const float* gram;    // (n, n), symmetric, row-major
  const double* y;      // (n), +1 or -1
  const double* upper;  // (n), >= 0; zero keeps beta_i = 0
  Offset n;
  const PointLoss* loss;  // the logistic loss, or max(0, 1 - y f) or its square: by the table's curvature
};

// What a slice starts from and leaves behind.
struct DualState {
  double* beta;  // (n)
  // (n), of the dual in beta: y - f (hinge), less beta/(2 upper) (squared) or -f - y logit (logistic)
  double* gradient;
  double* logit;  // (n), log(alpha / (upper - alpha)); read and written by the logistic loss only
};

struct DualProgress {
  Offset steps = 0;
  double primal = 0, dual = 0;
  bool stalled = false;  // no coordinate can gain anything in the arithmetic used
  bool finite = true;    // false: a kernel value or gradient is NaN or infinite

  double gap() const;  // (primal - dual) / max(|primal|, tiny)
};

// What both solvers do: steps, with a look at the gap every `period` of them. first() and step(i) return the coordinate
// to move next, -1 where none gains.
template <class Solver>
DualProgress ascend_by_periods(Solver& solver, Offset period, Offset max_steps, double tol) {
  DualProgress progress = solver.measure();
  Offset chosen = progress.finite ? solver.first() : -1;
  while (progress.finite && progress.gap() > tol && progress.steps < max_steps) {
    const Offset target = std::min(progress.steps + period, max_steps);
    Offset steps = progress.steps;
    for (; steps < target && chosen >= 0; ++steps) chosen = solver.step(chosen);
    progress = solver.measure();
    progress.steps = steps;
    progress.stalled = chosen < 0;
    if (progress.stalled) break;
  }
  return progress;
}

// At most max_steps steps, fewer once the gap is at most tol. O(n) a step.
DualProgress ascend(const DualProblem& problem, const DualState& state, Offset max_steps, double tol);

// Crammer & Singer (2002): minimises 1/2 sum_k |v_k|^2 + sum_i upper_i max_k (f_k + [k != label_i] - f_label_i).
struct MulticlassProblem {
  const float* gram;    // (n, n)
  const Offset* label;  // (n), in [0, k)
  const double* upper;  // (n)
  Offset n, k;
};

// tau (k, n): coefficients, columns sum to 0; score (k, n): tau gram + [k != label]. O(n k) a step.
DualProgress ascend(const MulticlassProblem& problem, double* tau, double* score, Offset max_steps, double tol);

}  // namespace lacunar
