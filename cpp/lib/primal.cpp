#include "lacunar/primal.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/parallel.hpp"

namespace lacunar {
namespace {

constexpr Offset kAhead = 8;          // rows of data prefetched ahead
constexpr Offset kRowsATask = 1024;   // of primal_decide
constexpr double kSmallestScale = 1e-18, kLargestReach = 1e3;

template <class T>
class Descent {
 public:
  Descent(const FeatureMap& map, Offset outputs, const StepRule& rule, T* first, T* second, double* clock)
      : size_(static_cast<std::size_t>(map.table_size() * outputs)), rule_(rule), first_(first), second_(second),
        clock_(clock) {}

  // What multiplies the slopes when they are added to the first table, after v has shrunk for this step; `curvature` is
  // k(x, x) times the row's weight.
  double advance(double curvature) {
    double &t = clock_[kT], &scale = clock_[kScale];
    t += 1;
    double step;
    if (rule_.kind == StepRule::Kind::theory && !is_quadratic(rule_.loss)) {
      scale = 1 / (rule_.rho * t);  // eta_t = 1 / (rho t): every slope so far has the same factor, exactly
      step = -1;
    } else {
      const double eta = rate(t, curvature);
      scale *= 1 - eta * rule_.rho;
      if (scale < kSmallestScale || clock_[kReach] > kLargestReach * total(t) * scale) fold();
      step = -eta / scale;
    }
    late_ = clock_[kReach];
    clock_[kReach] += rule_.averaging_by_step ? t * scale : scale;
    return step;
  }

  // What the second table's share of this row is: iterates before it did not have the row.
  double late() const { return late_; }

 private:
  double rate(double t, double curvature) const {
    double eta = rule_.eta0;
    if (rule_.kind == StepRule::Kind::theory) eta = 1 / (rule_.rho * t);
    if (rule_.kind == StepRule::Kind::inverse) eta = rule_.eta0 / std::pow(t, rule_.power);
    if (is_quadratic(rule_.loss)) eta = std::min(eta, 1 / (rule_.rho + 2 * curvature));
    return eta;
  }

  // Weight of t iterates.
  double total(double t) const { return rule_.averaging_by_step ? t * (t + 1) / 2 : t; }

  // v = scale * first becomes v = first, before scale leaves the floats, or reach * first outgrows the sum it is part of.
  void fold() {
    const double scale = clock_[kScale], reach = clock_[kReach];
    for (std::size_t i = 0; i < size_; ++i) {
      if (second_ != nullptr) second_[i] = static_cast<T>(static_cast<double>(second_[i]) - reach * static_cast<double>(first_[i]));
      first_[i] = static_cast<T>(static_cast<double>(first_[i]) * scale);
    }
    clock_[kScale] = 1;
    clock_[kReach] = 0;
  }

  std::size_t size_;
  const StepRule& rule_;
  T *first_, *second_;
  double* clock_;
  double late_ = 0;
};

}  // namespace

template <class T>
Offset primal_descend(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, const double* curvature,
                      const double* target, const double* weight, Offset outputs, const Offset* order, Offset n_order,
                      const StepRule& rule, T* first, T* second, double* clock, double* values) {
  Featurizer<T> features(map, rows, row_scale);
  Descent<T> descent(map, outputs, rule, first, second, clock);
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + kAhead < n_order) features.prefetch(order[i + kAhead]);
    features.load(row);
    double* f = values + row * outputs;
    for (Offset k = 0; k < outputs; ++k) {
      f[k] = clock[kT] > 0 ? clock[kScale] * features.dot(first, outputs, k) : 0.0;
      if (!std::isfinite(f[k])) return row;
    }
    const double mass = weight == nullptr ? 1.0 : weight[row];
    const double step = mass * descent.advance(curvature == nullptr ? 0.0 : curvature[row] * mass), late = descent.late();
    for (Offset k = 0; k < outputs; ++k) {
      const double slope = slope_at(rule.loss, f[k], target[row * outputs + k], rule.epsilon);
      if (slope == 0) continue;
      features.add(first, outputs, k, step * slope);
      if (second != nullptr && late != 0) features.add(second, outputs, k, step * slope * late);
    }
  }
  return -1;
}

template <class T>
Offset primal_ascend(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, const double* curvature,
                     const double* target, const double* upper, Offset outputs, const Offset* order, Offset n_order,
                     PointLoss loss, double epsilon, T* table, double* beta, double* gap) {
  Featurizer<T> features(map, rows, row_scale);
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + kAhead < n_order) features.prefetch(order[i + kAhead]);
    if (!(upper[row] > 0)) continue;
    features.load(row);
    for (Offset k = 0; k < outputs; ++k) {
      const double f = features.dot(table, outputs, k), y = target[row * outputs + k];
      if (!std::isfinite(f)) return row;
      double& mine = beta[row * outputs + k];
      gap[k] += coordinate_gap(loss, mine, f, y, upper[row], epsilon);
      const double next = best_beta(loss, mine, f, y, upper[row], curvature[row], epsilon);
      if (next == mine) continue;
      features.add(table, outputs, k, next - mine);
      mine = next;
    }
  }
  return -1;
}

template <class T>
void primal_decide(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs, const T* table,
                   double* values, int n_threads) {
  const Offset tasks = (rows.n_rows + kRowsATask - 1) / kRowsATask;
  parallel_tasks(n_threads, tasks, [&](int, Offset task) {
    Featurizer<T> features(map, rows, row_scale);
    const Offset last = std::min((task + 1) * kRowsATask, rows.n_rows);
    for (Offset row = task * kRowsATask; row < last; ++row) {
      features.load(row);
      for (Offset k = 0; k < outputs; ++k) values[row * outputs + k] = features.dot(table, outputs, k);
    }
  });
}

#define LACUNAR_PRIMAL(T)                                                                                              \
  template Offset primal_descend<T>(const FeatureMap&, const Rows<T>&, const double*, const double*, const double*,    \
                                    const double*, Offset, const Offset*, Offset, const StepRule&, T*, T*, double*,    \
                                    double*);                                                                          \
  template Offset primal_ascend<T>(const FeatureMap&, const Rows<T>&, const double*, const double*, const double*,     \
                                   const double*, Offset, const Offset*, Offset, PointLoss, double, T*, double*,       \
                                   double*);                                                                           \
  template void primal_decide<T>(const FeatureMap&, const Rows<T>&, const double*, Offset, const T*, double*, int);
LACUNAR_PRIMAL(float)
LACUNAR_PRIMAL(double)
#undef LACUNAR_PRIMAL

}  // namespace lacunar
