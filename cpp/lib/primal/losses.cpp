#include "lacunar/primal/losses.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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

double short_of(double f, double y) { return std::max(0.0, 1 - y * f); }
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }

constexpr double kFree = std::numeric_limits<double>::infinity();

constexpr PointLoss kLosses[] = {
    {.name = "squared",
     .value = [](double f, double y, double) { return (f - y) * (f - y); },
     .slope = [](double f, double y, double) { return 2 * (f - y); },
     .low = -kFree,
     .high = kFree,
     .curvature = 2,
     .has_dual = true,
     .has_closed_form = true},
    {.name = "hinge",
     .value = [](double f, double y, double) { return short_of(f, y); },
     .slope = [](double f, double y, double) { return y * f < 1 ? -y : 0.0; },
     .is_margin = true,
     .high = 1,
     .has_dual = true,
     .has_gram_dual = true},
    {.name = "squared_hinge",
     .value = [](double f, double y, double) { return short_of(f, y) * short_of(f, y); },
     .slope = [](double f, double y, double) { return y * f < 1 ? -2 * y * (1 - y * f) : 0.0; },
     .is_margin = true,
     .high = kFree,
     .curvature = 2,
     .has_dual = true,
     .has_gram_dual = true},
    {.name = "logistic",
     .value = [](double f, double y, double) { return softplus(-y * f); },
     .slope = [](double f, double y, double) { return -y * sigmoid(-y * f); },
     .is_margin = true,
     .high = 1,
     .is_logistic = true,
     .has_dual = true,
     .has_gram_dual = true},
    {.name = "absolute",
     .value = [](double f, double y, double) { return std::abs(f - y); },
     .slope = [](double f, double y, double) { return sign(f - y); },
     .low = -1,
     .high = 1,
     .has_kink = true,
     .has_dual = true},
    {.name = "epsilon_insensitive",
     .value = [](double f, double y, double epsilon) { return std::max(0.0, std::abs(f - y) - epsilon); },
     .slope = [](double f, double y, double epsilon) { return std::abs(f - y) > epsilon ? sign(f - y) : 0.0; },
     .low = -1,
     .high = 1,
     .has_kink = true,
     .has_tube = true,
     .has_dual = true},
};

}  // namespace

std::span<const PointLoss> all_losses() { return kLosses; }

const PointLoss* find_loss(std::string_view name) {
  for (const PointLoss& loss : kLosses)
    if (loss.name == name) return &loss;
  return nullptr;
}

void loss_values(const PointLoss& loss, const double* f, const double* y, Offset n, double epsilon, double* out) {
  for (Offset i = 0; i < n; ++i) out[i] = loss.value(f[i], y[i], epsilon);
}

double best_beta(const PointLoss& loss, double beta, double f, double y, double upper, double k, double epsilon) {
  if (loss.is_logistic) return y * logistic_weight(y * beta, y * f, upper, k);
  const double ridge = loss.ridge(upper), curvature = std::max(k + ridge, 1e-300);
  double free = beta + (y - f - ridge * beta) / curvature;
  if (loss.has_tube) free = std::copysign(std::max(0.0, std::abs(free) - epsilon / curvature), free);
  const double side = loss.is_margin ? y : 1;
  return side * std::clamp(side * free, loss.low * upper, loss.high * upper);
}

double coordinate_gap(const PointLoss& loss, double beta, double f, double y, double upper, double epsilon) {
  const double sum = upper * loss.value(f, y, epsilon) + beta * f, a = y * beta;
  if (loss.is_logistic) return sum + times_log(a, a / upper) + times_log(upper - a, (upper - a) / upper);
  if (loss.curvature > 0) return sum - a + beta * beta / (2 * loss.curvature * upper);
  return loss.has_tube ? sum - a + epsilon * std::abs(beta) : sum - a;
}

std::vector<double> coordinate_sums(const double* beta, const double* f, const double* y, const double* upper, Offset n,
                                    Offset outputs, const PointLoss& loss, double epsilon) {
  std::vector<double> sums(static_cast<std::size_t>(2 * outputs));
  InterruptCheck check;
  for (Offset i = 0; i < n; ++i) {
    check.after(16 * outputs);
    if (!(upper[i] > 0)) continue;
    for (Offset k = 0; k < outputs; ++k) {
      const Offset at = i * outputs + k;
      sums[static_cast<std::size_t>(k)] += coordinate_gap(loss, beta[at], f[at], y[at], upper[i], epsilon);
      sums[static_cast<std::size_t>(outputs + k)] += upper[i] * loss.value(f[at], y[at], epsilon);
    }
  }
  return sums;
}

}  // namespace lacunar
