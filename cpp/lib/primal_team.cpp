#include "lacunar/primal_team.hpp"

#include <algorithm>

namespace lacunar {
namespace {

constexpr Offset kAhead = 8;        // rows of data that helpers prefetch ahead
constexpr Offset kLeast = 1 << 14;  // entries of the table that a row must meet for a round: 1.5 us of work
constexpr Offset kGathering = 14;   // entries swept in the time of one that is gathered

template <class T>
Offset longest_of(const Lesson<T, double>& lesson) {
  const Offset* starts = lesson.rows.offsets;
  return *std::max_element(lesson.order, lesson.order + lesson.n_order, [&](Offset one, Offset other) {
    return starts[one + 1] - starts[one] < starts[other + 1] - starts[other];
  });
}

constexpr Offset kWaiting = 64;  // bits of a word
constexpr Offset kFew = 8;       // rows of a call, for which a backlog is not worth its memory

}  // namespace

template <class T>
Backlog<T>::Backlog(const FeatureMap& map, Offset outputs, Offset most_rows)
    : width_(map.width()),
      outputs_(outputs),
      most_(std::min(most_rows, kWaiting)),
      x_(static_cast<std::size_t>(most_ * width_)),
      met_(static_cast<std::size_t>(map.rows())),
      c_(static_cast<std::size_t>(outputs * kWaiting)),
      wanted_(static_cast<std::size_t>(outputs)) {}

template <class T>
void Backlog<T>::begin_row(const Featurizer<T>& features) {
  features.copy(x_.data() + rows_ * width_, met_.data(), std::uint64_t{1} << rows_);
  ++rows_;
}

template <class T>
void Backlog<T>::add(Offset output, double c) {
  c_[static_cast<std::size_t>(output * kWaiting + rows_ - 1)] = static_cast<T>(c);
  wanted_[static_cast<std::size_t>(output)] |= std::uint64_t{1} << (rows_ - 1);
}

template <class T>
void Backlog<T>::write(T* table, Offset output, Offset begin, Offset end) const {
  const WaitingRows<T> rows{x_.data(), c_.data() + output * kWaiting, met_.data(), static_cast<Offset>(met_.size()),
                            wanted_[static_cast<std::size_t>(output)]};
  kernels_of<T>().primal.add_waiting(table + output * width_, outputs_ * width_, rows, width_, begin, end);
}

template <class T>
void Backlog<T>::clear() {
  rows_ = 0;
  std::fill(met_.begin(), met_.end(), 0);
  std::fill(wanted_.begin(), wanted_.end(), 0);
}

template <class T>
PrimalTeam<T>::PrimalTeam(const FeatureMap& map, const Lesson<T, double>& lesson, T* first, T* second, int n_threads)
    : map_(map), lesson_(lesson), first_(first), second_(second), own_(map, lesson.rows, lesson.scale) {
  if (backlog_worth()) backlog_.emplace(map, lesson.outputs, lesson.n_order);
  const int members = members_worth(n_threads);
  if (members == 1) return;
  own_.load(longest_of(lesson));  // takes all the memory that it will ever need
  for (int member = 1; member < members; ++member)
    others_.emplace_back(map, lesson.rows, lesson.scale).load(longest_of(lesson));
  added_.reserve(static_cast<std::size_t>(lesson.outputs));
  sums_.resize(static_cast<std::size_t>(lesson.outputs * map.gamma * own_.parts()));
  rounds_.emplace(members, [this](int member) { share(member); });
}

template <class T>
PrimalTeam<T>::~PrimalTeam() {
  finish();
}

template <class T>
bool PrimalTeam<T>::backlog_worth() const {
  if (second_ == nullptr || map_.gamma != 2 || lesson_.n_order < kFew) return false;
  return own_.is_dense(own_.entries(lesson_.rows.n_observed() / lesson_.rows.n_rows));
}

template <class T>
double PrimalTeam<T>::put_off(Offset output, double d) {
  if (!own_.is_dense()) {
    if (!backlog_->empty()) write_backlog();  // sums are added up in the order of the rows
    return d;
  }
  if (new_row_) backlog_->begin_row(own_);
  new_row_ = false;
  backlog_->add(output, d);
  return 0;
}

template <class T>
void PrimalTeam<T>::write_backlog() {
  for (Offset k = 0; k < lesson_.outputs; ++k) backlog_->write(second_, k, 0, own_.parts());
  backlog_->clear();
}

// As many as have work in rows of the mean length, in a call that is longer than starting them.
template <class T>
int PrimalTeam<T>::members_worth(int n_threads) const {
  const Rows<T>& rows = lesson_.rows;
  if (n_threads < 2 || lesson_.n_order == 0) return 1;
  const Offset mean = own_.entries(rows.n_observed() / rows.n_rows), work = work_of(mean);
  const Offset most = std::min({Offset{n_threads}, units_of(cut_of(mean)), 2 * work / kLeast});
  return threads_worth(static_cast<int>(most), static_cast<double>(work) * static_cast<double>(lesson_.n_order));
}

// Entries of the table that a row with so many meets, in the time of those that are swept.
template <class T>
Offset PrimalTeam<T>::work_of(Offset entries) const {
  const Offset seen = map_.indicator != 0 ? entries / 2 : entries;
  const Offset rows = 1 + (map_.gamma > 1 ? seen : 0) + (map_.gamma > 2 ? seen * (seen - 1) / 2 : 0);
  return rows * lesson_.outputs * (own_.is_dense(entries) ? map_.width() : entries * kGathering);
}

template <class T>
auto PrimalTeam<T>::cut_of(Offset entries) const -> Cut {
  if (work_of(entries) < kLeast) return Cut::none;
  if (own_.is_dense(entries)) return Cut::by_part;
  return lesson_.outputs > 1 ? Cut::by_output : Cut::none;
}

// Of the units of every row, member m has [m units / members, (m + 1) units / members).
template <class T>
Offset PrimalTeam<T>::units_of(Cut cut) const {
  if (cut == Cut::none) return 1;
  return lesson_.outputs * (cut == Cut::by_part ? own_.parts() : 1);
}

template <class T>
void PrimalTeam<T>::values_by_all(Offset place, double* f) {
  const Offset row = lesson_.order[place];
  const Cut cut = rounds_->ready() ? cut_of(own_.entries_of(row)) : Cut::none;
  if (cut != cut_) finish();  // the parts of the tables change hands
  cut_ = cut;
  if (cut == Cut::none) return values_alone(row, f);
  const bool writes = backlog_ && backlog_->full();
  if (writes && cut != Cut::by_part) write_backlog();
  place_ = place;
  rounds_->run([this] { share(0); });
  added_.clear();
  if (writes && cut == Cut::by_part) backlog_->clear();  // written by all
  const Offset sums = cut == Cut::by_part ? map_.gamma * own_.parts() : 1;
  for (Offset k = 0; k < lesson_.outputs; ++k)
    f[k] = cut == Cut::by_part ? own_.dot_of(sums_.data() + k * sums) : sums_[static_cast<std::size_t>(k)];
}

// Alone: helpers may not be there, and have nothing to do but to wait.
template <class T>
void PrimalTeam<T>::finish() {
  for (const Addition& addition : added_) add_now(addition);
  added_.clear();
  if (backlog_ && !backlog_->empty()) write_backlog();
}

template <class T>
void PrimalTeam<T>::share(int member) {
  auto& features = member == 0 ? own_ : others_[static_cast<std::size_t>(member - 1)];
  const Offset outputs = lesson_.outputs, units = units_of(cut_), each = units / outputs, members = rounds_->size();
  const Offset mine = member * units / members, others = (member + 1) * units / members;
  const auto begin = [&](Offset k) { return std::clamp(mine - k * each, Offset{0}, each); };
  const auto end = [&](Offset k) { return std::clamp(others - k * each, Offset{0}, each); };
  const auto add = [&](T* table, Offset k, double c) {
    if (cut_ == Cut::by_part)
      features.add_parts(table, outputs, k, begin(k), end(k), c);
    else
      features.add(table, outputs, k, c);
  };
  const bool writes = cut_ == Cut::by_part && backlog_ && backlog_->full();
  for (Offset k = 0; writes && k < outputs; ++k) backlog_->write(second_, k, begin(k), end(k));
  for (const Addition& addition : added_) {
    if (begin(addition.output) == end(addition.output)) continue;
    add(first_, addition.output, addition.c);
    if (addition.d != 0) add(second_, addition.output, addition.d);
  }
  if (place_ + kAhead < lesson_.n_order) features.prefetch(lesson_.order[place_ + kAhead]);
  features.load(lesson_.order[place_]);
  for (Offset k = 0; k < outputs; ++k) {
    if (begin(k) == end(k)) continue;
    if (cut_ == Cut::by_part)
      features.dot_parts(first_, outputs, k, begin(k), end(k), sums_.data() + k * map_.gamma * features.parts());
    else
      sums_[static_cast<std::size_t>(k)] = features.dot(first_, outputs, k);
  }
}

template class Backlog<float>;
template class Backlog<double>;
template class PrimalTeam<float>;
template class PrimalTeam<double>;

}  // namespace lacunar
