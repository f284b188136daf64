#include "lacunar/primal/algorithm_one.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include "lacunar/observed/observed.hpp"
#include "lacunar/parallel/parallel.hpp"
#include "lacunar/primal/primal_wide.hpp"

namespace lacunar {
namespace {

constexpr Offset kWaveGroups = 4;             // groups a thread takes between two visits of the steps
constexpr Offset kPairsForThreads = 1 << 20;  // kernel values that are worth waking threads for
constexpr Offset kRowsAtOnce = 1 << 14;       // rows that room is made for

template <class V>
auto at(V& values, Offset place) -> decltype(values[0]) {
  return values[static_cast<std::size_t>(place)];
}

// Longer where it is shorter than `size`, by at least its own length.
template <class V>
void lengthen(std::vector<V>& values, Offset size) {
  if (static_cast<Offset>(values.size()) < size)
    values.resize(std::max(static_cast<std::size_t>(size), 2 * values.size()));
}

template <class T>
Offset entries_in(const TrainingSet<T>& part) {
  Offset entries = 0;
  for (Offset i = 0; i < part.n_order; ++i)
    entries += part.rows.offsets[part.order[i] + 1] - part.rows.offsets[part.order[i]];
  return entries;
}

// One more row, without its coefficients, where there is room for it.
template <class T>
void copy_row(const Rows<T>& rows, Offset row, Support<T>& to) {
  const Offset from = rows.offsets[row], size = rows.offsets[row + 1] - from, end = to.entries();
  std::copy_n(rows.indices + from, size, to.indices.data() + end);
  std::copy_n(rows.values + from, size, to.values.data() + end);
  at(to.offsets, ++to.count) = end + size;
}

}  // namespace

// Steps over stored rows, and tables that these enter later: rows are taken in groups of lanes, of which values from
// the rows stored before come from one walk over those, the rest from rows of the same group as they are stored.
template <class T>
class AlgorithmOne<T>::Descent {
 public:
  Descent(AlgorithmOne& model, const RowKernel<T>& kernel, const TrainingSet<T>& training, const StepRule& rule,
          double* values)
      : model_(model),
        kernel_(kernel),
        training_(training),
        rule_(rule),
        values_(values),
        clock_(model.clock_),
        steps_(rule, model.clock_),
        first_(static_cast<std::size_t>(training.outputs)),
        second_(first_.size()) {}

  // Steps of the whole order, or of its first rows where a fold left the sums of the others behind; -1 - k where
  // order[k] is not finite. Threads work ahead inside a block.
  Offset run(InterruptCheck& check, int n_threads) {
    const Offset lanes = kernels_of<T>().online.wide.lanes, block = model_.layout_.block;
    const Offset groups_in_block = (std::min(block, training_.n_order) + lanes - 1) / lanes;
    const Offset together = n_threads > 1 ? std::min(kWaveGroups * n_threads, groups_in_block) : 1;
    std::vector<LaneBlock<T>> groups(static_cast<std::size_t>(together));
    for (Offset start = 0; start < training_.n_order; check.look()) {
      const Offset rows = std::min({block, lanes * together, training_.n_order - start});
      const Offset known = model_.stored_->count, n_groups = (rows + lanes - 1) / lanes;
      const auto size_of = [&](Offset group) { return std::min(lanes, rows - group * lanes); };
      parallel_tasks(known * rows < kPairsForThreads ? 1 : n_threads, n_groups, [&](Offset g, InterruptCheck& busy) {
        auto& group = at(groups, g);
        group.load(training_.rows, training_.scale, training_.base, training_.order + start + g * lanes, size_of(g),
                   training_.outputs);
        add(group, 0, known, busy);
      });
      for (Offset g = 0; g < n_groups; ++g) {
        const Offset from = start + g * lanes, reached = follow(at(groups, g), from, size_of(g), known, check);
        if (reached != from + size_of(g) || folded_) return reached;
      }
      for (Offset g = 0; g < n_groups; ++g) at(groups, g).clear();
      start += rows;
    }
    return training_.n_order;
  }

 private:
  void add(LaneBlock<T>& block, Offset first, Offset last, InterruptCheck& check) const {
    const Support<T>& stored = *model_.stored_;
    block.add(stored.rows(training_.rows.n_cols), training_.scale == nullptr ? nullptr : stored.scale.data(),
              stored.first.data(), first, last, kernel_, check);
  }

  // Steps of order[from, from + count), laid in the block, whose sums are those over `known` stored rows. As `run`.
  Offset follow(LaneBlock<T>& block, Offset from, Offset count, Offset known, InterruptCheck& check) {
    for (Offset lane = 0; lane < count; ++lane) {
      if (steps_.due()) {
        fold(clock_[kScale], clock_[kReach]);
        steps_.folded();
        return from + lane;
      }
      add(block, known, model_.stored_->count, check);
      known = model_.stored_->count;
      const Offset row = training_.order[from + lane];
      if (!value(block, lane, row) || !step(row)) return -1 - (from + lane);
      if (folded_) return from + lane + 1;
    }
    return from + count;
  }

  // Both: whether what they made is finite.
  bool value(const LaneBlock<T>& block, Offset lane, Offset row) {
    double* f = values_ + row * training_.outputs;
    bool finite = true;
    for (Offset k = 0; k < training_.outputs; ++k) {
      f[k] = clock_[kT] > 0 ? clock_[kScale] * block.sum(lane, k) : 0.0;
      finite = finite && std::isfinite(f[k]);
    }
    return finite;
  }

  bool step(Offset row) {
    const double mass = training_.weight == nullptr ? 1.0 : training_.weight[row];
    const double curved = training_.curvature == nullptr ? 0.0 : training_.curvature[row] * mass;
    const bool forgets = steps_.forgets(curved);
    double next[kStepClock] = {clock_[kT], clock_[kScale], clock_[kReach]};
    StepClock steps(rule_, next);
    if (forgets) steps.folded();
    const double size = mass * steps.advance(curved);
    if (!slopes(row, size, curved, steps)) return false;
    if (forgets) fold(0, clock_[kReach]);
    std::copy_n(next, kStepClock, clock_);
    if (std::any_of(first_.begin(), first_.end(), [](double c) { return c != 0; })) store(row, steps.late());
    return true;
  }

  // The row's coefficients; whether they are finite, and remain so in the tables.
  bool slopes(Offset row, double size, double curved, const StepClock& steps) {
    const double late = steps.late();
    bool finite = true;
    for (Offset k = 0; k < training_.outputs; ++k) {
      const Offset place = row * training_.outputs + k;
      const double slope = steps.slope(values_[place], training_.target[place], curved);
      const double c = slope == 0 ? 0.0 : size * slope;
      finite = finite && std::isfinite(c) && std::isfinite(c * late) &&
               (!model_.layout_.map || model_.range_.admits(c, late));
      at(first_, k) = c;
      at(second_, k) = c * late;
    }
    return finite;
  }

  void fold(double scale, double reach) {
    model_.fold_sums(scale, reach);
    folded_ = true;
  }

  void store(Offset row, double late) {
    Support<T>& stored = *model_.stored_;
    const Offset outputs = training_.outputs, from = stored.count * outputs;
    std::copy_n(first_.begin(), outputs, stored.first.begin() + from);
    std::copy_n(second_.begin(), outputs, stored.second.begin() + from);
    if (training_.scale != nullptr) at(stored.scale, stored.count) = static_cast<T>(training_.scale[row]);
    if (model_.layout_.budget > 0) at(stored.curvature, stored.count) = training_.curvature[row];
    if (model_.layout_.map)
      for (const double c : first_) model_.range_.add(c, late);
    copy_row(training_.rows, row, stored);
  }

  AlgorithmOne& model_;
  const RowKernel<T>& kernel_;
  const TrainingSet<T>& training_;
  const StepRule& rule_;
  double *values_, *clock_;
  StepClock steps_;
  std::vector<double> first_, second_;  // of one row
  bool folded_ = false;
};

template <class T>
Offset AlgorithmOne<T>::learn(const RowKernel<T>& kernel, const TrainingSet<T>& training, const StepRule& rule,
                              double largest, double* values, int n_threads) {
  range_.expect(largest);
  if (layout_.map && layout_.block == 0)
    return primal_descend(*layout_.map, training, rule, layout_.first, layout_.second, clock_, range_, values,
                          n_threads);
  try {
    const Offset row = learn_stored(kernel, training, rule, values, n_threads);
    keep_to_budget(rule.iterate);
    return row;
  } catch (...) {
    keep_to_budget(rule.iterate);
    throw;
  }
}

template <class T>
Offset AlgorithmOne<T>::learn_stored(const RowKernel<T>& kernel, const TrainingSet<T>& training, const StepRule& rule,
                                     double* values, int n_threads) {
  TrainingSet<T> part = training;
  std::vector<double> base(static_cast<std::size_t>(layout_.map ? training.rows.n_rows * training.outputs : 0));
  if (layout_.map) part.base = base.data();
  InterruptCheck check;  // of all blocks: one by itself may be short
  for (Offset done = 0; done < training.n_order; check.look()) {
    enter_tables(n_threads);
    part.order = training.order + done;
    part.n_order = std::min(training.n_order - done, rows_at_once(done));
    if (layout_.map) values_of_table(part, base.data(), n_threads);
    make_room(part);
    const Offset reached = Descent(*this, kernel, part, rule, values).run(check, n_threads);
    if (reached < 0) return part.order[-1 - reached];
    done += reached;
    if (done % layout_.block == 0) keep_to_budget(rule.iterate);
  }
  enter_tables(n_threads);
  return -1;
}

// To the end of a block: of tables counted from the first row ever seen, so that how calls are cut makes no difference.
template <class T>
Offset AlgorithmOne<T>::rows_at_once(Offset done) const {
  const Offset block = layout_.block;
  if (layout_.map) return block - static_cast<Offset>(clock_[kT]) % block;
  return layout_.budget > 0 ? block - done % block : std::max(block, kRowsAtOnce);
}

// What the tables say of the rows of a part, each in its place of base (n_rows, outputs).
template <class T>
void AlgorithmOne<T>::values_of_table(const TrainingSet<T>& part, double* base, int n_threads) const {
  const Offset entries = entries_in(part), outputs = part.outputs;
  Support<T> block;
  lengthen(block.offsets, part.n_order + 1), lengthen(block.indices, entries), lengthen(block.values, entries);
  std::vector<double> scale, values(static_cast<std::size_t>(part.n_order * outputs));
  for (Offset i = 0; i < part.n_order; ++i) {
    copy_row(part.rows, part.order[i], block);
    if (part.scale != nullptr) scale.push_back(part.scale[part.order[i]]);
  }
  wide_decide(*layout_.map, block.rows(part.rows.n_cols), part.scale == nullptr ? nullptr : scale.data(), outputs,
              layout_.first, values.data(), n_threads);
  for (Offset i = 0; i < part.n_order; ++i)
    std::copy_n(values.data() + i * outputs, outputs, base + part.order[i] * outputs);
}

// For all rows of a part. Longer arrays are others: whoever has these keeps them.
template <class T>
void AlgorithmOne<T>::make_room(const TrainingSet<T>& part) {
  const Support<T>& now = *stored_;
  const Offset rows = now.count + part.n_order, entries = now.entries() + entries_in(part);
  if (static_cast<Offset>(now.offsets.size()) > rows && static_cast<Offset>(now.indices.size()) >= entries) return;
  auto longer = std::make_shared<Support<T>>(now);
  lengthen(longer->offsets, rows + 1), lengthen(longer->indices, entries), lengthen(longer->values, entries);
  const Offset size = static_cast<Offset>(longer->offsets.size()) - 1;
  longer->first.resize(static_cast<std::size_t>(size * layout_.outputs));
  longer->second.resize(longer->first.size());
  if (part.scale != nullptr) longer->scale.resize(static_cast<std::size_t>(size));
  if (layout_.budget > 0) longer->curvature.resize(static_cast<std::size_t>(size));
  stored_ = std::move(longer);
}

// Where a block is full.
template <class T>
void AlgorithmOne<T>::enter_tables(int n_threads) {
  if (!layout_.map || static_cast<Offset>(clock_[kT]) % layout_.block != 0 || stored_->count == 0) return;
  auto none = std::make_shared<Support<T>>();
  add_stored(layout_.first, layout_.second, n_threads);
  stored_ = std::move(none);
}

template <class T>
void AlgorithmOne<T>::add_stored(T* first, T* second, int n_threads) const {
  const std::vector<double> scale(stored_->scale.begin(), stored_->scale.end());
  const Addition<T> one{first, stored_->first.data()}, other{second, stored_->second.data()};
  wide_add(*layout_.map, stored_->rows(layout_.n_cols), scale.empty() ? nullptr : scale.data(), layout_.outputs, one,
           other, n_threads);
}

template <class T>
void AlgorithmOne<T>::fold_sums(double scale, double reach) {
  auto folded = std::make_shared<Support<T>>(*stored_);
  fold(static_cast<std::size_t>(folded->count * layout_.outputs), folded->first.data(), folded->second.data(), scale,
       reach);
  if (layout_.map) {
    fold(static_cast<std::size_t>(layout_.map->table_size() * layout_.outputs), layout_.first, layout_.second, scale,
         reach);
    range_.fold(scale, reach);
  }
  stored_ = std::move(folded);
}

// Without the rows of least |coef| sqrt(k(x, x)) beyond the budget: no f(x) moves by more than what `lost` grows by
// times sqrt(k(x, x)).
template <class T>
void AlgorithmOne<T>::keep_to_budget(Iterate iterate) {
  const Support<T>& now = *stored_;
  if (layout_.budget == 0 || now.count <= layout_.budget) return;
  const Offset outputs = layout_.outputs;
  const std::vector<double> coef = coefficients(iterate);
  std::vector<double> size(static_cast<std::size_t>(now.count));
  for (Offset i = 0; i < now.count; ++i) {
    for (Offset k = 0; k < outputs; ++k) at(size, i) = std::max(at(size, i), std::abs(at(coef, i * outputs + k)));
    at(size, i) *= std::sqrt(at(now.curvature, i));
  }
  std::vector<Offset> order(size.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Offset i, Offset j) { return at(size, i) > at(size, j); });
  std::sort(order.begin(), order.begin() + layout_.budget);
  auto rest = std::make_shared<Support<T>>(now);
  rest->count = 0;
  for (Offset i = 0; i < layout_.budget; ++i) {
    const Offset row = at(order, i), to = rest->count;
    std::copy_n(now.first.data() + row * outputs, outputs, rest->first.data() + to * outputs);
    std::copy_n(now.second.data() + row * outputs, outputs, rest->second.data() + to * outputs);
    if (!now.scale.empty()) at(rest->scale, to) = at(now.scale, row);
    at(rest->curvature, to) = at(now.curvature, row);
    copy_row(now.rows(layout_.n_cols), row, *rest);
  }
  for (auto i = order.begin() + layout_.budget; i != order.end(); ++i) lost_ += at(size, *i);
  stored_ = std::move(rest);
}

template <class T>
std::vector<double> AlgorithmOne<T>::coefficients(Iterate iterate) const {
  const auto size = static_cast<std::size_t>(stored_->count * layout_.outputs);
  const double t = clock_[kT], scale = clock_[kScale], reach = clock_[kReach];
  const bool weighted = iterate == Iterate::weighted;
  const double whole = weighted ? reach : reach - scale, total = weighted ? t * (t + 1) / 2 : t;
  std::vector<double> coef(size);
  for (std::size_t i = 0; i < size; ++i)
    coef[i] = iterate == Iterate::last || t == 0 ? scale * stored_->first[i]
                                                 : (whole * stored_->first[i] - stored_->second[i]) / total;
  return coef;
}

template <class T>
void AlgorithmOne<T>::decide(const RowKernel<T>& kernel, const Rows<T>& rows, const double* scale, const double* coef,
                             double* values, int n_threads) const {
  assert(well_ordered(rows));
  const Support<T>& stored = *stored_;
  const Offset lanes = kernels_of<T>().online.wide.lanes, outputs = layout_.outputs;
  const auto work = [&](LaneBlock<T>& block, Offset task, InterruptCheck& check) {
    std::vector<Offset> members;
    for (Offset row = task * lanes; row < std::min((task + 1) * lanes, rows.n_rows); ++row) members.push_back(row);
    block.load(rows, scale, nullptr, members.data(), static_cast<Offset>(members.size()), outputs);
    block.add(stored.rows(rows.n_cols), scale == nullptr ? nullptr : stored.scale.data(), coef, 0, stored.count, kernel,
              check);
    for (std::size_t lane = 0; lane < members.size(); ++lane)
      for (Offset k = 0; k < outputs; ++k)
        values[members[lane] * outputs + k] = block.sum(static_cast<Offset>(lane), k);
    block.clear();
  };
  parallel_tasks(n_threads, (rows.n_rows + lanes - 1) / lanes, [] { return LaneBlock<T>(); }, work);
}

template <class T>
void AlgorithmOne<T>::restore(const double* clock, double lost, std::shared_ptr<Support<T>> stored) {
  std::copy_n(clock, kStepClock, clock_);
  lost_ = lost;
  stored_ = std::move(stored);
  if (layout_.map) range_.measure(layout_.first, layout_.second, layout_.map->table_size() * layout_.outputs);
}

template class AlgorithmOne<float>;
template class AlgorithmOne<double>;

}  // namespace lacunar
