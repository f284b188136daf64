// The steps of Algorithm 1: v = scale * (sum of what rows added), so that shrinking v costs one product.
#pragma once

#include "lacunar/primal/losses.hpp"

namespace lacunar {

// What predicts: v_(T+1), Theorem 2's mean of v_1 .. v_T, or the mean in which iterate t weighs t.
enum class Iterate { last, average, weighted };

struct StepRule {
  const PointLoss* loss;
  double epsilon;
  double rho;                                          // 1/2 rho |v|^2 + mean loss
  enum class Kind { theory, printed, constant } kind;  // printed: 1 / (rho t) for every loss; theory: capped
  double eta0;                                         // the constant step
  Iterate iterate;                                     // whose sum the second table and second coefficients are part of
};

// Whether steps need k(x, x) of the rows.
bool needs_curvature(const StepRule& rule);

// After T steps v_(T+1) = scale first. A row's step enters every later iterate, so that sums of iterates need one more
// table: sum_t t v_(t+1) = reach first - second, and v_1 + ... + v_T = (reach - scale) first - second.
enum ClockEntry { kT, kScale, kReach, kStepClock };

class StepClock {
 public:
  StepClock(const StepRule& rule, double* clock) : rule_(rule), clock_(clock) {}

  // Whether sums must be folded (first <- scale first, second <- second - reach first) before the next row: scale is
  // about to leave the floats, or reach * first outgrows the sum of iterates that it is part of.
  bool due() const;
  // Whether a row's step forgets all before it (eta rho = 1): sums must be folded with a scale of 0 before `advance`.
  bool forgets(double curvature) const;
  void folded();  // v = first from here on

  // What a row's slopes are multiplied by when they are added, after v has shrunk for its step; `curvature` is k(x, x)
  // times the row's weight.
  double advance(double curvature);
  // The slope that a row's step takes after `advance`, for the value f before it. Of a loss with a kink it is that
  // where the step ends (a proximal step), so that no step of length 1 / (rho t) passes the kink: the first ones are
  // long.
  double slope(double f, double y, double curvature) const;

  // What the row's share of the second sum is, per share of the first: iterates before it did not have the row.
  double late() const { return late_; }

 private:
  double rate(double t, double curvature) const;
  double shrink(double t, double curvature) const { return 1 - rate(t, curvature) * rule_.rho; }
  bool proximal() const { return rule_.loss->has_kink && rule_.kind == StepRule::Kind::theory; }
  bool capped() const { return rule_.loss->curvature > 0 && rule_.kind != StepRule::Kind::printed; }
  bool keeps_slopes() const {
    return rule_.kind == StepRule::Kind::printed || (rule_.kind == StepRule::Kind::theory && !capped());
  }

  const StepRule& rule_;
  double* clock_;
  double late_ = 0;
};

}  // namespace lacunar
