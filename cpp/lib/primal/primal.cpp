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
void prefetch_row(const Lesson<T, double>& lesson, const Ascent& ascent, const PrimalTeam<T>& team, Offset row) {
  team.prefetch_start(row);
  prefetch<For::reading>(ascent.idle + row);
  prefetch<For::reading>(lesson.weight + row);
  prefetch<For::reading>(lesson.curvature + row);
  prefetch<For::reading>(lesson.target + row * lesson.outputs);
  prefetch<For::writing>(ascent.beta + row * lesson.outputs);
}

// first <- scale first and second <- second - reach first: v = first from here on.
template <class T>
void fold(std::size_t size, T* first, T* second, double scale, double reach) {
  for (std::size_t i = 0; i < size; ++i) {
    const double value = static_cast<double>(first[i]);
    if (second != nullptr) second[i] = static_cast<T>(static_cast<double>(second[i]) - reach * value);
    first[i] = static_cast<T>(scale * value);
  }
}

}  // namespace

template <class T>
Offset primal_descend(const FeatureMap& map, const Lesson<T, double>& lesson, const StepRule& rule, T* first, T* second,
                      double* clock, double* values, int n_threads) {
  assert(well_ordered(lesson.rows));
  PrimalTeam<T> team(map, lesson, first, second, n_threads);
  StepClock steps(rule, clock);
  InterruptCheck check;
  const Offset outputs = lesson.outputs, n_order = lesson.n_order, *order = lesson.order;
  const auto size = static_cast<std::size_t>(map.table_size() * outputs);
  const auto fold_sums = [&] {
    team.finish();
    fold(size, first, second, clock[kScale], clock[kReach]);
    steps.folded();
  };
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + 2 * kAhead < n_order) team.prefetch_start(order[i + 2 * kAhead]);
    if (i + kAhead < n_order) team.prefetch(order[i + kAhead]);
    const double mass = lesson.weight == nullptr ? 1.0 : lesson.weight[row];
    const double curved = lesson.curvature == nullptr ? 0.0 : lesson.curvature[row] * mass;
    if (steps.due()) fold_sums();
    double* f = values + row * outputs;
    team.values(i, f);
    for (Offset k = 0; k < outputs; ++k) {
      f[k] = clock[kT] > 0 ? clock[kScale] * f[k] : 0.0;
      if (!std::isfinite(f[k])) return row;
    }
    if (steps.forgets(curved)) fold_sums();
    const double step = mass * steps.advance(curved), late = second == nullptr ? 0.0 : steps.late();
    for (Offset k = 0; k < outputs; ++k) {
      const double slope = rule.loss->slope(f[k], lesson.target[row * outputs + k], rule.epsilon);
      if (slope != 0) team.add(k, step * slope, step * slope * late);
    }
    check.after(3 * outputs * team.operations());  // the row is learned whole
  }
  return -1;
}

template <class T>
Offset primal_ascend(const FeatureMap& map, const Lesson<T, double>& lesson, const Ascent& ascent,
                     const PointLoss& loss, double epsilon, T* table, int n_threads) {
  assert(well_ordered(lesson.rows));
  PrimalTeam<T> team(map, lesson, table, nullptr, n_threads);
  InterruptCheck check;
  const Offset outputs = lesson.outputs, n_order = lesson.n_order, *order = lesson.order;
  std::vector<double> values(static_cast<std::size_t>(outputs));
  for (Offset i = 0; i < n_order; ++i) {
    const Offset row = order[i];
    if (i + 2 * kAhead < n_order) prefetch_row(lesson, ascent, team, order[i + 2 * kAhead]);
    if (i + kAhead < n_order && !rests(ascent, order[i + kAhead])) team.prefetch(order[i + kAhead]);
    const double upper = lesson.weight[row];
    if (!(upper > 0) || rests(ascent, row)) continue;
    team.values(i, values.data());
    bool changed = false;
    for (Offset k = 0; k < outputs; ++k) {
      const double f = values[static_cast<std::size_t>(k)], y = lesson.target[row * outputs + k];
      if (!std::isfinite(f)) return row;
      double& mine = ascent.beta[row * outputs + k];
      ascent.gap[k] += coordinate_gap(loss, mine, f, y, upper, epsilon);
      const double next = best_beta(loss, mine, f, y, upper, lesson.curvature[row], epsilon);
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

#define LACUNAR_PRIMAL(T)                                                                                           \
  template Offset primal_descend<T>(const FeatureMap&, const Lesson<T, double>&, const StepRule&, T*, T*, double*,  \
                                    double*, int);                                                                  \
  template Offset primal_ascend<T>(const FeatureMap&, const Lesson<T, double>&, const Ascent&, const PointLoss&,    \
                                   double, T*, int);                                                                \
  template void primal_decide<T>(const FeatureMap&, const Rows<T>&, const double*, Offset, const T*, double*, int);
LACUNAR_PRIMAL(float)
LACUNAR_PRIMAL(double)
#undef LACUNAR_PRIMAL

}  // namespace lacunar
