#include "lacunar/primal/step_clock.hpp"

#include <algorithm>
#include <cmath>

namespace lacunar {
namespace {

constexpr double kSmallestScale = 1e-18, kLargestReach = 1e3;

}  // namespace

bool needs_curvature(const StepRule& rule) { return rule.loss->curvature > 0 || rule.loss->has_kink; }

bool StepClock::due() const {
  const double t = clock_[kT], scale = clock_[kScale];
  const double total = rule_.iterate == Iterate::weighted ? t * (t + 1) / 2 : t;  // weight of t iterates
  return t > 0 && (scale < kSmallestScale || clock_[kReach] > kLargestReach * total * scale);
}

bool StepClock::forgets(double curvature) const {
  return clock_[kT] > 0 && !keeps_slopes() && shrink(clock_[kT] + 1, curvature) == 0;
}

void StepClock::folded() {
  clock_[kScale] = 1;
  clock_[kReach] = 0;
}

double StepClock::rate(double t, double curvature) const {
  double eta = rule_.eta0;
  if (rule_.kind == StepRule::Kind::theory || rule_.kind == StepRule::Kind::printed) eta = 1 / (rule_.rho * t);
  if (capped()) eta = std::min(eta, 1 / (rule_.rho + rule_.loss->curvature * curvature));
  return eta;
}

double StepClock::advance(double curvature) {
  double &t = clock_[kT], &scale = clock_[kScale];
  t += 1;
  double step;
  if (keeps_slopes()) {
    scale = 1 / (rule_.rho * t);  // eta_t = 1 / (rho t): every slope so far has the same factor, exactly
    step = -1;
  } else {
    const double left = shrink(t, curvature);
    if (t > 1 && left != 0) scale *= left;  // v = 0 has nothing to shrink, and eta = 1 / rho would leave no scale
    step = -rate(t, curvature) / scale;
  }
  late_ = clock_[kReach];
  clock_[kReach] += rule_.iterate == Iterate::weighted ? t * scale : scale;
  return step;
}

double StepClock::slope(double f, double y, double curvature) const {
  if (!proximal()) return rule_.loss->slope(f, y, rule_.epsilon);
  const double t = clock_[kT], off = (1 - 1 / t) * f - y;  // after v has shrunk
  const double beyond = std::copysign(std::max(std::abs(off) - (rule_.loss->has_tube ? rule_.epsilon : 0), 0.0), off);
  // A step of slope s moves f by -s curvature / (rho t).
  return beyond == 0 ? 0.0 : std::clamp(beyond * rule_.rho * t / curvature, -1.0, 1.0);
}

}  // namespace lacunar
