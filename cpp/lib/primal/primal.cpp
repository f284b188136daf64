#include "lacunar/primal/primal.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/parallel/prefetch.hpp"
#include "lacunar/primal/primal_team.hpp"

namespace lacunar {
namespace {

constexpr Offset kAhead = 8;         // rows of data prefetched ahead
constexpr Offset kRowsATask = 1024;  // of primal_decide
constexpr Index kLongestRest = 4;    // a row at rest is visited in one sweep of two, four, eight or at most 2^4

// Whether a row that was left as it is the last times may wait: rows take turns, each in a sweep of its own number.
bool rests(const Ascent& ascent, Offset row) {
  const Index idle = std::min(ascent.idle[row], kLongestRest);
  return ((ascent.sweep + row) & ((Offset{1} << idle) - 1)) != 0;
}

template <class T>
void prefetch_row(const TrainingSet<T>& training, const Ascent& ascent, const PrimalTeam<T>& team, Offset row) {
  team.prefetch_start(row);
  prefetch<For::reading>(ascent.idle + row);
  prefetch<For::reading>(training.weight + row);
  prefetch<For::reading>(training.curvature + row);
  prefetch<For::reading>(training.target + row * training.outputs);
  prefetch<For::writing>(ascent.beta + row * training.outputs);
}

}  // namespace

template <class V>
void fold(std::size_t size, V* first, V* second, double scale, double reach) {
  for (std::size_t i = 0; i < size; ++i) {
    const double value = static_cast<double>(first[i]);
    if (second != nullptr) second[i] = static_cast<V>(static_cast<double>(second[i]) - reach * value);
    first[i] = static_cast<V>(scale * value);
  }
}

template <class T>
Offset primal_descend(const FeatureMap& map, const TrainingSet<T>& training, const StepRule& rule, T* first, T* second,
                      double* clock, TableRange<T>& range, double* values, int n_threads) {
  assert(well_ordered(training.rows));
  PrimalTeam<T> team(map, training, first, second, n_threads);
  StepClock steps(rule, clock);
  InterruptCheck check;
  const Offset outputs = training.outputs, n_order = training.n_order, *order = training.order;
  const auto size = static_cast<std::size_t>(map.table_size() * outputs);
  std::vector<double> coefficients(static_cast<std::size_t>(outputs));  // of one row
  double* c = coefficients.data();
  const auto fold_tables = [&](double scale, double reach) {
    team.finish();
    fold(size, first, second, scale, reach);
    range.fold(scale, reach);
  };
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + 2 * kAhead < n_order) team.prefetch_start(order[i + 2 * kAhead]);
    if (i + kAhead < n_order) team.prefetch(order[i + kAhead]);
    const double mass = training.weight == nullptr ? 1.0 : training.weight[row];
    const double curved = training.curvature == nullptr ? 0.0 : training.curvature[row] * mass;
    if (steps.due()) {
      fold_tables(clock[kScale], clock[kReach]);
      steps.folded();
    }
    double* f = values + row * outputs;
    team.values(i, f);
    for (Offset k = 0; k < outputs; ++k) {
      f[k] = clock[kT] > 0 ? clock[kScale] * f[k] : 0.0;
      if (!std::isfinite(f[k])) return row;
    }
    const bool forgets = steps.forgets(curved);
    const double before[kStepClock] = {clock[kT], clock[kScale], clock[kReach]};
    if (forgets) steps.folded();
    const double step = mass * steps.advance(curved), late = second == nullptr ? 0.0 : steps.late();
    bool admitted = true;
    for (Offset k = 0; k < outputs; ++k) {
      const double slope = steps.slope(f[k], training.target[row * outputs + k], curved);
      c[k] = slope == 0 ? 0.0 : step * slope;
      admitted = admitted && range.admits(c[k], late);
    }
    if (!admitted) {
      std::copy_n(before, kStepClock, clock);
      return row;
    }
    if (forgets) fold_tables(0, before[kReach]);
    for (Offset k = 0; k < outputs; ++k) {
      if (c[k] == 0) continue;
      range.add(c[k], late);
      team.add(k, c[k], c[k] * late);
    }
    check.after(3 * outputs * team.operations());  // the row is learned whole
  }
  return -1;
}

template <class T>
Offset primal_ascend(const FeatureMap& map, const TrainingSet<T>& training, const Ascent& ascent, const PointLoss& loss,
                     double epsilon, T* table, int n_threads) {
  assert(well_ordered(training.rows));
  PrimalTeam<T> team(map, training, table, nullptr, n_threads);
  InterruptCheck check;
  const Offset outputs = training.outputs, n_order = training.n_order, *order = training.order;
  std::vector<double> values(static_cast<std::size_t>(outputs));
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + 2 * kAhead < n_order) prefetch_row(training, ascent, team, order[i + 2 * kAhead]);
    if (i + kAhead < n_order && !rests(ascent, order[i + kAhead])) team.prefetch(order[i + kAhead]);
    const double upper = training.weight[row];
    if (!(upper > 0) || rests(ascent, row)) continue;
    team.values(i, values.data());
    bool changed = false;
    for (Offset k = 0; k < outputs; ++k) {
      const double f = values[static_cast<std::size_t>(k)], y = training.target[row * outputs + k];
      if (!std::isfinite(f)) return row;
      double& mine = ascent.beta[row * outputs + k];
      ascent.gap[k] += coordinate_gap(loss, mine, f, y, upper, epsilon);
      const double next = best_beta(loss, mine, f, y, upper, training.curvature[row], epsilon);
      if (next == mine) continue;
      team.add(k, next - mine);
      mine = next;
      changed = true;
    }
    ascent.idle[row] = changed ? 0 : ascent.idle[row] + 1;
    check.after(2 * outputs * team.operations());
  }
  return -1;
}

template <class T>
void primal_decide(const FeatureMap& map, const Rows<T>& rows, const double* row_scale, Offset outputs, const T* table,
                   double* values, int n_threads) {
  assert(well_ordered(rows));
  const Offset tasks = (rows.n_rows + kRowsATask - 1) / kRowsATask;
  const auto work = [&](Featurizer<T>& features, Offset task, InterruptCheck& check) {
    const Offset last = std::min((task + 1) * kRowsATask, rows.n_rows);
    for (Offset row = task * kRowsATask; row < last; ++row) {
      features.load(row);
      for (Offset k = 0; k < outputs; ++k) values[row * outputs + k] = features.dot(table, outputs, k);
      check.after(outputs * features.operations());
    }
  };
  parallel_tasks(n_threads, tasks, [&] { return Featurizer<T>(map, rows, row_scale); }, work);
}

#define LACUNAR_PRIMAL(T)                                                                                             \
  template Offset primal_descend<T>(const FeatureMap&, const TrainingSet<T>&, const StepRule&, T*, T*, double*,       \
                                    TableRange<T>&, double*, int);                                                    \
  template Offset primal_ascend<T>(const FeatureMap&, const TrainingSet<T>&, const Ascent&, const PointLoss&, double, \
                                   T*, int);                                                                          \
  template void primal_decide<T>(const FeatureMap&, const Rows<T>&, const double*, Offset, const T*, double*, int);
LACUNAR_PRIMAL(float)
LACUNAR_PRIMAL(double)
#undef LACUNAR_PRIMAL
template void fold<float>(std::size_t, float*, float*, double, double);
template void fold<double>(std::size_t, double*, double*, double, double);

}  // namespace lacunar
