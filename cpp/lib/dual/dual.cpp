#include "lacunar/dual/dual.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lacunar/kernels.hpp"
#include "lacunar/parallel/prefetch.hpp"
#include "lacunar/primal/losses.hpp"

namespace lacunar {

double DualProgress::gap() const {
  return (primal - dual) / std::max(std::abs(primal), std::numeric_limits<double>::min());
}

namespace {

constexpr Offset block = 256;  // gains kept in L1 while their maximum is sought
constexpr float unbounded = std::numeric_limits<float>::infinity();

// The model by which the next coordinate is chosen: gain of the step clamp(g / h, low, high) under curvature h, kept in
// units of 1 / sqrt(h), where every curvature is 1. It only ranks, so float32 does; the chosen step itself is computed
// in float64.
struct Model {
  std::vector<float> scale, low, high;  // (n) each: 1 / sqrt(h), and the bounds times sqrt(h)
  explicit Model(Offset n) : scale(static_cast<std::size_t>(n)), low(scale), high(scale) {}
};

// Maximum of a block by halving: every level vectorises, a running maximum would not.
float largest(const float* __restrict gains) {
  float top[block / 2];
  for (Offset j = 0; j < block / 2; ++j) top[j] = gains[j] > gains[j + block / 2] ? gains[j] : gains[j + block / 2];
  for (Offset j = 0; j < block / 4; ++j) top[j] = top[j] > top[j + block / 4] ? top[j] : top[j + block / 4];
  for (Offset j = 0; j < block / 8; ++j) top[j] = top[j] > top[j + block / 8] ? top[j] : top[j + block / 8];
  for (Offset j = 0; j < block / 16; ++j) top[j] = top[j] > top[j + block / 16] ? top[j] : top[j + block / 16];
  return *std::max_element(top, top + block / 16);
}

// Moves along coordinate `row` by c and returns the coordinate of the largest gain (the first of equals), -1 if none
// gains.
Offset move_and_choose(const float* row, double c, double* gradient, const Model& model, Offset n) {
  float best = 0;
  Offset chosen = -1;
  float gains[block];
  const auto sweep = kernels().dual_sweep;
  for (Offset start = 0; start < n; start += block) {
    const Offset count = std::min(block, n - start);
    std::fill(gains + count, gains + block, 0.0F);
    // The row comes from main memory and the hardware's own prefetch stops at every page.
    prefetch<For::reading>(row, start + 4 * block, std::min(start + 5 * block, n));
    const auto at = static_cast<std::size_t>(start);
    sweep(row + start, c, gradient + start, &model.scale[at], &model.low[at], &model.high[at], gains, count);
    const float top = largest(gains);
    if (top > best) {
      best = top;
      chosen = start + (std::find(gains, gains + count, top) - gains);
    }
  }
  return chosen;
}

class Solver {
 public:
  Solver(const DualProblem& problem, const DualState& state)
      : p_(problem),
        s_(state),
        model_(problem.n),
        is_logistic_(problem.loss->is_logistic),
        has_ridge_(problem.loss->curvature > 0) {
    for (Offset i = 0; i < p_.n; ++i) {
      diagonal_finite_ = diagonal_finite_ && std::isfinite(diagonal(i));
      refresh(i);
    }
  }

  Offset first() { return move_and_choose(p_.gram, 0.0, s_.gradient, model_, p_.n); }

  Offset step(Offset i) {
    const double before = s_.beta[i];
    if (is_logistic_) {
      const double z = best_logit(i), change = z - s_.logit[i];
      s_.logit[i] = z;
      s_.beta[i] = p_.y[i] * p_.upper[i] * sigmoid(z);
      s_.gradient[i] -= p_.y[i] * change;
    } else {
      const double curvature = std::max(diagonal(i) + ridge(i), 1e-30);
      s_.beta[i] = std::clamp(before + s_.gradient[i] / curvature, low(i), high(i));
      s_.gradient[i] -= (s_.beta[i] - before) * ridge(i);
    }
    refresh(i);
    return move_and_choose(p_.gram + i * p_.n, s_.beta[i] - before, s_.gradient, model_, p_.n);
  }

  DualProgress measure() const { return has_ridge_ ? measure_of<true>() : measure_of<false>(); }

 private:
  template <bool has_ridge>
  DualProgress measure_of() const {
    DualProgress out;
    out.finite = diagonal_finite_;
    double norm = 0, loss = 0, conjugate = 0;
    for (Offset i = 0; i < p_.n; ++i) {
      const double beta = s_.beta[i], y = p_.y[i], u = p_.upper[i], g = s_.gradient[i];
      out.finite = out.finite && std::isfinite(g);
      if (is_logistic_) {
        const double z = s_.logit[i], f = -g - y * z, p = sigmoid(z);
        norm += beta * f;
        loss += u * softplus(-y * f);
        conjugate += u * (p * softplus(-z) + (1 - p) * softplus(z));
      } else {  // the loss that the table's conjugate belongs to, inline: a look at the gap is a tenth of a small solve
        const double r = has_ridge ? ridge(i) : 0.0, f = y - g - r * beta, slack = std::max(0.0, 1 - y * f);
        norm += beta * f;
        loss += u * (has_ridge ? slack * slack : slack);
        conjugate += y * beta - 0.5 * r * beta * beta;
      }
    }
    out.primal = 0.5 * norm + loss;
    out.dual = conjugate - 0.5 * norm;
    return out;
  }

  double diagonal(Offset i) const { return static_cast<double>(p_.gram[i * p_.n + i]); }
  double ridge(Offset i) const {  // what the loss adds to the curvature
    return has_ridge_ && p_.upper[i] > 0 ? p_.loss->ridge(p_.upper[i]) : 0.0;
  }
  double low(Offset i) const { return p_.y[i] > 0 ? 0.0 : -reach(i); }
  double high(Offset i) const { return p_.y[i] > 0 ? reach(i) : 0.0; }
  double reach(Offset i) const {
    return has_ridge_ && p_.upper[i] > 0 ? std::numeric_limits<double>::infinity() : p_.upper[i];
  }

  void refresh(Offset i) {  // model of coordinate i after beta_i or logit_i changed
    const auto at = static_cast<std::size_t>(i);
    double curvature = diagonal(i) + ridge(i);
    if (is_logistic_) {
      const double spread = std::max(p_.upper[i] * sigmoid(s_.logit[i]) * sigmoid(-s_.logit[i]), 1e-30);
      curvature += 1 / spread;
    }
    const bool fixed = p_.upper[i] <= 0, free = is_logistic_;
    const double unit = std::sqrt(std::max(curvature, 1e-30));
    model_.scale[at] = static_cast<float>(1 / unit);
    model_.low[at] = fixed ? 0 : free ? -unbounded : static_cast<float>(unit * (low(i) - s_.beta[i]));
    model_.high[at] = fixed ? 0 : free ? unbounded : static_cast<float>(unit * (high(i) - s_.beta[i]));
  }

  // Root of K_ii (upper sigmoid(z) - alpha) + y f + z, increasing in z with slope >= 1: Newton inside a bracket
  // (Yu, Huang, Lin 2011, in the logit, where the dual's logarithms are linear).
  double best_logit(Offset i) const {
    const double k = diagonal(i), u = p_.upper[i], alpha = p_.y[i] * s_.beta[i];
    const double margin = -p_.y[i] * s_.gradient[i] - s_.logit[i];  // y f
    double below = -margin - k * (u - alpha), above = -margin + k * alpha;
    double z = std::clamp(s_.logit[i], below, above);
    for (int round = 0; round < 100 && below < above; ++round) {
      const double p = sigmoid(z), value = k * (u * p - alpha) + margin + z;
      (value > 0 ? above : below) = z;
      double next = z - value / (1 + k * u * p * (1 - p));
      if (!(next > below && next < above)) next = 0.5 * (below + above);
      const bool settled = std::abs(next - z) <= 1e-14 * (1 + std::abs(z));
      z = next;
      if (settled) break;
    }
    return z;
  }

  DualProblem p_;
  DualState s_;
  Model model_;
  bool is_logistic_, has_ridge_;  // of the loss; one with a ridge has no upper bound
  bool diagonal_finite_ = true;  // read once: the diagonal is a cache line a row
};

}  // namespace

DualProgress ascend(const DualProblem& problem, const DualState& state, Offset max_steps, double tol) {
  Solver solver(problem, state);
  return ascend_by_periods(solver, std::max<Offset>(problem.n / 32, 16), max_steps, tol);
}

}  // namespace lacunar
