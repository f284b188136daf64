#include "lacunar/primal/online.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/primal/lane_block.hpp"

namespace lacunar {
namespace {

constexpr Offset kWaveGroups = 4;             // groups a thread takes between two visits of the steps
constexpr Offset kPairsForThreads = 1 << 20;  // kernel values that are worth waking threads for

template <class T>
Rows<T> rows_in(const Support<T>& support, Offset n_cols) {
  return {support.offsets, support.indices, support.values, support.count, n_cols};
}

template <class T>
class Descent {
 public:
  Descent(const RowKernel<T>& kernel, const Lesson<T, T>& lesson, const StepRule& rule, Support<T>& support,
          double* clock, double* values)
      : kernel_(kernel),
        lesson_(lesson),
        rule_(rule),
        support_(support),
        clock_(clock),
        values_(values),
        steps_(rule, clock) {}

  bool valued;  // the next row's values are there

  void add(LaneBlock<T>& block, Offset first, Offset last, InterruptCheck& check) const {
    block.add(rows_in(support_, lesson_.rows.n_cols), support_.scale, support_.first, first, last, kernel_, check);
  }

  // Steps of order[from, from + count), laid in the block, whose sums are those over `known` support rows. As
  // online_descend.
  Offset follow(LaneBlock<T>& block, Offset from, Offset count, Offset known, InterruptCheck& check) {
    for (Offset lane = 0; lane < count; ++lane) {
      if (!valued && steps_.due()) return from + lane;
      add(block, known, support_.count, check);
      known = support_.count;
      const Offset row = lesson_.order[from + lane];
      const double mass = lesson_.weight == nullptr ? 1.0 : lesson_.weight[row];
      const double curvature = lesson_.curvature == nullptr ? 0.0 : lesson_.curvature[row] * mass;
      if (!valued) {
        if (!value(block, lane, row)) return -1 - (from + lane);
        if (steps_.forgets(curvature)) return from + lane;
      }
      valued = false;
      if (!step(row, mass, curvature)) return -1 - (from + lane);
    }
    return from + count;
  }

 private:
  // Both: whether what they made is finite.
  bool value(const LaneBlock<T>& block, Offset lane, Offset row) {
    double* f = values_ + row * lesson_.outputs;
    bool finite = true;
    for (Offset k = 0; k < lesson_.outputs; ++k) {
      f[k] = clock_[kT] > 0 ? clock_[kScale] * block.sum(lane, k) : 0.0;
      finite = finite && std::isfinite(f[k]);
    }
    return finite;
  }

  bool step(Offset row, double mass, double curvature) {
    const Offset outputs = lesson_.outputs;
    const double* f = values_ + row * outputs;
    const double size = mass * steps_.advance(curvature);
    double* first = support_.first + support_.count * outputs;
    double* second = support_.second + support_.count * outputs;
    bool any_slope = false;
    for (Offset k = 0; k < outputs; ++k) {
      const double slope = rule_.loss->slope(f[k], lesson_.target[row * outputs + k], rule_.epsilon);
      first[k] = slope == 0 ? 0.0 : size * slope;
      second[k] = first[k] * steps_.late();
      if (!std::isfinite(first[k]) || !std::isfinite(second[k])) return false;
      any_slope = any_slope || first[k] != 0;
    }
    if (any_slope) keep(row);
    return true;
  }

  void keep(Offset row) {
    const Rows<T>& rows = lesson_.rows;
    const Offset from = rows.offsets[row], size = rows.offsets[row + 1] - from, at = support_.offsets[support_.count];
    std::copy_n(rows.indices + from, size, support_.indices + at);
    std::copy_n(rows.values + from, size, support_.values + at);
    if (support_.scale != nullptr) support_.scale[support_.count] = lesson_.scale[row];
    support_.offsets[++support_.count] = at + size;
  }

  const RowKernel<T>& kernel_;
  const Lesson<T, T>& lesson_;
  const StepRule& rule_;
  Support<T>& support_;
  double *clock_, *values_;
  StepClock steps_;
};

}  // namespace

template <class T>
Offset online_descend(const RowKernel<T>& kernel, const Lesson<T, T>& lesson, const StepRule& rule, Offset block,
                      Support<T>& support, double* clock, double* values, bool valued, int n_threads) {
  Descent<T> descent(kernel, lesson, rule, support, clock, values);
  descent.valued = valued;
  const Offset lanes = kernels_of<T>().online.wide.lanes,
               together = n_threads > 1
                              ? std::min(kWaveGroups * n_threads, (std::min(block, lesson.n_order) + lanes - 1) / lanes)
                              : 1;
  std::vector<LaneBlock<T>> groups(static_cast<std::size_t>(together));
  InterruptCheck check;  // of all waves: one by itself may be short
  for (Offset start = 0; start < lesson.n_order; check.look()) {
    const Offset rows = std::min({block, lanes * together, lesson.n_order - start}), known = support.count;
    const auto size_of = [&](Offset group) { return std::min(lanes, rows - group * lanes); };
    const Offset n_groups = (rows + lanes - 1) / lanes;
    parallel_tasks(known * rows < kPairsForThreads ? 1 : n_threads, n_groups, [&](Offset g, InterruptCheck& busy) {
      auto& group = groups[static_cast<std::size_t>(g)];
      group.load(lesson.rows, lesson.scale, lesson.base, lesson.order + start + g * lanes, size_of(g), lesson.outputs);
      descent.add(group, 0, known, busy);
    });
    for (Offset g = 0; g < n_groups; ++g) {
      const Offset from = start + g * lanes;
      const Offset reached = descent.follow(groups[static_cast<std::size_t>(g)], from, size_of(g), known, check);
      if (reached != from + size_of(g)) return reached;
    }
    for (Offset g = 0; g < n_groups; ++g) groups[static_cast<std::size_t>(g)].clear();
    start += rows;
  }
  return lesson.n_order;
}

template <class T>
void online_decide(const RowKernel<T>& kernel, const Rows<T>& rows, const T* scale, const Support<T>& support,
                   const double* coef, Offset outputs, double* values, int n_threads) {
  assert(well_ordered(rows));
  const Offset lanes = kernels_of<T>().online.wide.lanes;
  const auto work = [&](LaneBlock<T>& block, Offset task, InterruptCheck& check) {
    std::vector<Offset> members;
    for (Offset row = task * lanes; row < std::min((task + 1) * lanes, rows.n_rows); ++row) members.push_back(row);
    block.load(rows, scale, nullptr, members.data(), static_cast<Offset>(members.size()), outputs);
    block.add(rows_in(support, rows.n_cols), support.scale, coef, 0, support.count, kernel, check);
    for (std::size_t lane = 0; lane < members.size(); ++lane)
      for (Offset k = 0; k < outputs; ++k)
        values[members[lane] * outputs + k] = block.sum(static_cast<Offset>(lane), k);
    block.clear();
  };
  parallel_tasks(n_threads, (rows.n_rows + lanes - 1) / lanes, [] { return LaneBlock<T>(); }, work);
}

#define LACUNAR_ONLINE(T)                                                                                           \
  template Offset online_descend<T>(const RowKernel<T>&, const Lesson<T, T>&, const StepRule&, Offset, Support<T>&, \
                                    double*, double*, bool, int);                                                   \
  template void online_decide<T>(const RowKernel<T>&, const Rows<T>&, const T*, const Support<T>&, const double*,   \
                                 Offset, double*, int);
LACUNAR_ONLINE(float)
LACUNAR_ONLINE(double)
#undef LACUNAR_ONLINE

}  // namespace lacunar
