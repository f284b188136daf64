#include "lacunar/primal/step_clock.hpp"

#include <algorithm>

namespace lacunar {
namespace {

constexpr double kSmallestScale = 1e-18, kLargestReach = 1e3;

}  // namespace

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

}  // namespace lacunar
