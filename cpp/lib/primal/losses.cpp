#include "lacunar/primal/losses.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {
namespace {

double times_log(double x, double ratio) { return x > 0 ? x * std::log(ratio) : 0.0; }

// a = upper sigmoid(t) with t + z + k (a - before) = 0, by safeguarded Newton: the left side rises with t.
double logistic_weight(double before, double z, double upper, double k) {
  double low = -z - k * (upper - before), high = -z + k * before;  // a = upper and a = 0 bound the root
  double t = std::clamp(std::log(std::max(before, 1e-12 * upper) / std::max(upper - before, 1e-12 * upper)), low, high);
  for (int i = 0; i < 30 && high - low > 1e-13 * (1 + std::abs(t)); ++i) {
    const double share = sigmoid(t), value = t + z + k * (upper * share - before);
    (value > 0 ? high : low) = t;
    const double next = t - value / (1 + k * upper * share * (1 - share));
    if (std::abs(next - t) < 1e-14 * (1 + std::abs(t))) break;
    t = next > low && next < high ? next : (low + high) / 2;
  }
  return upper * sigmoid(t);
}

}  // namespace

double loss_at(PointLoss loss, double f, double y, double epsilon) {
  const double miss = std::max(0.0, 1 - y * f), off = std::abs(f - y);
  switch (loss) {
    case PointLoss::hinge: return miss;
    case PointLoss::squared_hinge: return miss * miss;
    case PointLoss::logistic: return softplus(-y * f);
    case PointLoss::squared: return off * off;
    case PointLoss::absolute: return off;
    case PointLoss::epsilon_insensitive: return std::max(0.0, off - epsilon);
  }
  return 0;
}

double slope_at(PointLoss loss, double f, double y, double epsilon) {
  const double off = f - y, sign = off > 0 ? 1.0 : off < 0 ? -1.0 : 0.0;
  switch (loss) {
    case PointLoss::hinge: return y * f < 1 ? -y : 0.0;
    case PointLoss::squared_hinge: return y * f < 1 ? -2 * y * (1 - y * f) : 0.0;
    case PointLoss::logistic: return -y * sigmoid(-y * f);
    case PointLoss::squared: return 2 * off;
    case PointLoss::absolute: return sign;
    case PointLoss::epsilon_insensitive: return std::abs(off) > epsilon ? sign : 0.0;
  }
  return 0;
}

bool is_quadratic(PointLoss loss) { return loss == PointLoss::squared || loss == PointLoss::squared_hinge; }

double best_beta(PointLoss loss, double beta, double f, double y, double upper, double k, double epsilon) {
  const double curvature = std::max(k, 1e-300), ridge = 0.5 / upper;
  switch (loss) {
    case PointLoss::hinge: return y * std::clamp(y * beta + (1 - y * f) / curvature, 0.0, upper);
    case PointLoss::squared_hinge: return y * std::max(0.0, y * beta + (1 - y * f - ridge * y * beta) / (k + ridge));
    case PointLoss::logistic: return y * logistic_weight(y * beta, y * f, upper, k);
    case PointLoss::squared: return beta + (y - f - ridge * beta) / (k + ridge);
    case PointLoss::absolute: return std::clamp(beta + (y - f) / curvature, -upper, upper);
    case PointLoss::epsilon_insensitive: {
      const double z = beta + (y - f) / curvature, soft = std::max(0.0, std::abs(z) - epsilon / curvature);
      return std::clamp(std::copysign(soft, z), -upper, upper);
    }
  }
  return beta;
}

double coordinate_gap(PointLoss loss, double beta, double f, double y, double upper, double epsilon) {
  const double a = y * beta, value = upper * loss_at(loss, f, y, epsilon) + beta * f;
  switch (loss) {
    case PointLoss::hinge: return value - a;
    case PointLoss::squared_hinge: return value - a + a * a / (4 * upper);
    case PointLoss::logistic: return value + times_log(a, a / upper) + times_log(upper - a, (upper - a) / upper);
    case PointLoss::squared: return value - beta * y + beta * beta / (4 * upper);
    case PointLoss::absolute: return value - beta * y;
    case PointLoss::epsilon_insensitive: return value - beta * y + epsilon * std::abs(beta);
  }
  return value;
}

std::vector<double> coordinate_sums(const double* beta, const double* f, const double* y, const double* upper, Offset n,
                                    Offset outputs, PointLoss loss, double epsilon) {
  std::vector<double> sums(static_cast<std::size_t>(2 * outputs));
  InterruptCheck check;
  for (Offset i = 0; i < n; ++i) {
    check.after(16 * outputs);
    if (!(upper[i] > 0)) continue;
    for (Offset k = 0; k < outputs; ++k) {
      const Offset at = i * outputs + k;
      sums[static_cast<std::size_t>(k)] += coordinate_gap(loss, beta[at], f[at], y[at], upper[i], epsilon);
      sums[static_cast<std::size_t>(outputs + k)] += upper[i] * loss_at(loss, f[at], y[at], epsilon);
    }
  }
  return sums;
}

}  // namespace lacunar
