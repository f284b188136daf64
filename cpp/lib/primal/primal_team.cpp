#include "lacunar/primal/primal_team.hpp"

#include <algorithm>

namespace lacunar {
namespace {

constexpr Offset kAhead = 8;        // rows of data that helpers prefetch ahead
constexpr Offset kLeast = 1 << 14;  // entries of the table that a row must meet for a round: 1.5 us of work
constexpr Offset kCopies = 128;     // times the entries of the table that rows meet in a call to be worth copies of it
constexpr Offset kWaiting = 64;     // rows of a backlog: bits of a word
constexpr Offset kFew = 16;         // rows of a call that need no backlog
constexpr Offset kGathering = 14;   // entries swept in the time of one that is gathered

template <class T>
Offset longest_of(const TrainingSet<T>& training) {
  const Offset* starts = training.rows.offsets;
  return *std::max_element(training.order, training.order + training.n_order, [&](Offset one, Offset other) {
    return starts[one + 1] - starts[one] < starts[other + 1] - starts[other];
  });
}

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
  const auto& kernels = kernels_of<T>().primal;
  const Offset column = output * width_ + kernels.part_start(width_, begin);
  kernels.add_waiting(table + column, outputs_ * width_, rows, width_, begin, end);
}

template <class T>
void Backlog<T>::clear() {
  rows_ = 0;
  std::fill(met_.begin(), met_.end(), 0);
  std::fill(wanted_.begin(), wanted_.end(), 0);
}

template <class T>
PrimalTeam<T>::PrimalTeam(const FeatureMap& map, const TrainingSet<T>& training, T* first, T* second, int n_threads)
    : map_(map), training_(training), first_(first), second_(second), own_(map, training.rows, training.scale) {
  if (backlog_worth()) backlog_.emplace(map, training.outputs, training.n_order);
  const int members = members_worth(n_threads);
  if (members == 1) return;
  own_.load(longest_of(training));  // takes all the memory that it will ever need
  for (int member = 1; member < members; ++member)
    others_.emplace_back(map, training.rows, training.scale).load(longest_of(training));
  added_.reserve(static_cast<std::size_t>(training.outputs));
  sums_.resize(static_cast<std::size_t>(training.outputs * map.gamma * own_.parts()));
  rounds_.emplace(members, [this](int member) { share(member); });
  if (rounds_->size() > 1 && pieces_worth()) make_pieces();
}

template <class T>
PrimalTeam<T>::~PrimalTeam() {
  finish();
}

template <class T>
bool PrimalTeam<T>::backlog_worth() const {
  if (second_ == nullptr || map_.gamma != 2 || training_.n_order < kFew) return false;
  return own_.is_dense(own_.entries(training_.rows.n_observed() / training_.rows.n_rows));
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
  for (Offset k = 0; k < training_.outputs; ++k) backlog_->write(second_, k, 0, own_.parts());
  backlog_->clear();
}

// As many as have work in rows of the mean length, in a call that is longer than starting them.
template <class T>
int PrimalTeam<T>::members_worth(int n_threads) const {
  const Rows<T>& rows = training_.rows;
  if (n_threads < 2 || training_.n_order == 0) return 1;
  const Offset mean = own_.entries(rows.n_observed() / rows.n_rows), work = work_of(mean);
  const Offset most = std::min({Offset{n_threads}, units_of(cut_of(mean)), 2 * work / kLeast});
  return threads_worth(static_cast<int>(most), static_cast<double>(work) * static_cast<double>(training_.n_order));
}

// Entries of the table that a row with so many meets, in the time of those that are swept.
template <class T>
Offset PrimalTeam<T>::work_of(Offset entries) const {
  const Offset seen = map_.indicator != 0 ? entries / 2 : entries;
  const Offset rows = 1 + (map_.gamma > 1 ? seen : 0) + (map_.gamma > 2 ? seen * (seen - 1) / 2 : 0);
  return rows * training_.outputs * (own_.is_dense(entries) ? map_.width() : entries * kGathering);
}

template <class T>
auto PrimalTeam<T>::cut_of(Offset entries) const -> Cut {
  if (work_of(entries) < kLeast) return Cut::none;
  if (own_.is_dense(entries)) return Cut::by_part;
  return training_.outputs > 1 ? Cut::by_output : Cut::none;
}

// Of the units of every row, member m has [m units / members, (m + 1) units / members).
template <class T>
Offset PrimalTeam<T>::units_of(Cut cut) const {
  if (cut == Cut::none) return 1;
  return training_.outputs * (cut == Cut::by_part ? own_.parts() : 1);
}

// Pieces save a fifth of the time of two threads. Copies pay where the call is long enough and no row needs the table
// whole.
template <class T>
bool PrimalTeam<T>::pieces_worth() const {
  const Offset* starts = training_.rows.offsets;
  Offset shortest = map_.n_cols, total = 0;
  for (Offset i = 0; i < training_.n_order; ++i) {
    const Offset row = training_.order[i], seen = starts[row + 1] - starts[row];
    shortest = std::min(shortest, seen);
    total += seen;
  }
  const Offset work = work_of(own_.entries(total / training_.n_order));
  return cut_of(own_.entries(shortest)) == Cut::by_part &&
         work * training_.n_order >= kCopies * map_.table_size() * training_.outputs;
}

template <class T>
void PrimalTeam<T>::make_pieces() {
  pieces_.resize(static_cast<std::size_t>(rounds_->size()));
  for (int member = 0; member < rounds_->size(); ++member)
    pieces_[static_cast<std::size_t>(member)].reserve(static_cast<std::size_t>(map_.rows() * piece_of(member).stride));
}

template <class T>
Offset PrimalTeam<T>::column_of(Offset part) const {
  return part / own_.parts() * map_.width() + own_.part_start(part % own_.parts());
}

template <class T>
auto PrimalTeam<T>::piece_of(int member) -> Piece {
  if (pieces_.empty()) return {first_, map_.width() * training_.outputs, 0};
  const Offset parts = units_of(Cut::by_part), members = rounds_->size();
  const Offset begin = column_of(member * parts / members), end = column_of((member + 1) * parts / members);
  return {pieces_[static_cast<std::size_t>(member)].data(), end - begin, begin};
}

// By the member itself, and without taking memory.
template <class T>
void PrimalTeam<T>::fill_piece(int member) {
  const Piece piece = piece_of(member);
  auto& to = pieces_[static_cast<std::size_t>(member)];
  to.clear();
  for (Offset r = 0; r < map_.rows(); ++r) {
    const T* row = first_ + r * map_.width() * training_.outputs + piece.begin;
    to.insert(to.end(), row, row + piece.stride);
  }
}

template <class T>
void PrimalTeam<T>::join_pieces() {
  for (int member = 0; member < rounds_->size(); ++member) {
    const Piece piece = piece_of(member);
    for (Offset r = 0; r < map_.rows(); ++r)
      std::copy_n(piece.table + r * piece.stride, piece.stride,
                  first_ + r * map_.width() * training_.outputs + piece.begin);
  }
  in_pieces_ = false;
}

// Calls visit(output, begin, end) for what a member has of every row: parts of an output, or the one unit of it.
template <class T>
template <class Visit>
void PrimalTeam<T>::each_share(Cut cut, int member, Visit visit) const {
  const Offset units = units_of(cut), units_an_output = units / training_.outputs, members = rounds_->size();
  const Offset first = member * units / members, last = (member + 1) * units / members;
  for (Offset k = first / units_an_output; k * units_an_output < last; ++k)
    visit(k, std::max(first - k * units_an_output, Offset{0}), std::min(last - k * units_an_output, units_an_output));
}

template <class T>
void PrimalTeam<T>::dot_parts(int member, const Featurizer<T>& features) {
  const Piece piece = piece_of(member);
  each_share(Cut::by_part, member, [&](Offset k, Offset begin, Offset end) {
    const Offset column = column_of(k * own_.parts() + begin) - piece.begin;
    features.dot_parts(piece.table + column, piece.stride, begin, end, sums_.data() + k * map_.gamma * own_.parts());
  });
}

template <class T>
void PrimalTeam<T>::add_parts(int member, const Featurizer<T>& features, const Addition& addition) {
  const Piece piece = piece_of(member);
  each_share(Cut::by_part, member, [&](Offset k, Offset begin, Offset end) {
    if (k != addition.output) return;
    const Offset column = column_of(k * own_.parts() + begin);
    features.add_parts(piece.table + column - piece.begin, piece.stride, begin, end, addition.c);
    if (addition.d != 0) features.add_parts(second_ + column, map_.width() * training_.outputs, begin, end, addition.d);
  });
}

template <class T>
void PrimalTeam<T>::values_of_sums(double* f) const {
  for (Offset k = 0; k < training_.outputs; ++k) f[k] = own_.dot_of(sums_.data() + k * map_.gamma * own_.parts());
}

template <class T>
void PrimalTeam<T>::values_alone(Offset row, double* f) {
  if (backlog_ && backlog_->full()) write_backlog();
  own_.load(row);
  if (!in_pieces_) {
    for (Offset k = 0; k < training_.outputs; ++k) f[k] = own_.dot(first_, training_.outputs, k);
    return;
  }
  for (int member = 0; member < rounds_->size(); ++member) dot_parts(member, own_);
  values_of_sums(f);
}

template <class T>
void PrimalTeam<T>::add_now(const Addition& addition) {
  if (in_pieces_) {
    for (int member = 0; member < rounds_->size(); ++member) add_parts(member, own_, addition);
    return;
  }
  own_.add(first_, training_.outputs, addition.output, addition.c);
  if (addition.d != 0) own_.add(second_, training_.outputs, addition.output, addition.d);
}

template <class T>
void PrimalTeam<T>::values_by_all(Offset place, double* f) {
  const Offset row = training_.order[place];
  const Cut cut = rounds_->ready() ? cut_of(own_.entries_of(row)) : Cut::none;
  if (cut != cut_) write_added();  // the parts of the tables change hands
  cut_ = cut;
  if (cut == Cut::none) return values_alone(row, f);
  const bool writes = backlog_ && backlog_->full();
  if (writes && cut != Cut::by_part) write_backlog();
  filling_ = !pieces_.empty() && !in_pieces_;
  in_pieces_ = !pieces_.empty();
  place_ = place;
  rounds_->run([this] { share(0); });
  added_.clear();
  if (cut == Cut::by_output) {
    std::copy_n(sums_.begin(), training_.outputs, f);
    return;
  }
  if (writes) backlog_->clear();  // written by all
  values_of_sums(f);
}

template <class T>
void PrimalTeam<T>::write_added() {
  for (const Addition& addition : added_) add_now(addition);
  added_.clear();
}

// Alone: helpers may not be there, and have nothing to do but to wait.
template <class T>
void PrimalTeam<T>::finish() {
  write_added();
  if (in_pieces_) join_pieces();
  if (backlog_ && !backlog_->empty()) write_backlog();
}

template <class T>
void PrimalTeam<T>::share(int member) {
  auto& features = member == 0 ? own_ : others_[static_cast<std::size_t>(member - 1)];
  if (cut_ == Cut::by_part)
    share_parts(member, features);
  else
    share_outputs(member, features);
}

template <class T>
void PrimalTeam<T>::share_parts(int member, Featurizer<T>& features) {
  if (filling_) fill_piece(member);
  if (backlog_ && backlog_->full())
    each_share(cut_, member, [&](Offset k, Offset begin, Offset end) { backlog_->write(second_, k, begin, end); });
  for (const Addition& addition : added_) add_parts(member, features, addition);
  next_row(features);
  dot_parts(member, features);
}

template <class T>
void PrimalTeam<T>::share_outputs(int member, Featurizer<T>& features) {
  each_share(cut_, member, [&](Offset k, Offset, Offset) {
    for (const Addition& addition : added_) {
      if (addition.output != k) continue;
      features.add(first_, training_.outputs, k, addition.c);
      if (addition.d != 0) features.add(second_, training_.outputs, k, addition.d);
    }
  });
  next_row(features);
  each_share(cut_, member, [&](Offset k, Offset, Offset) {
    sums_[static_cast<std::size_t>(k)] = features.dot(first_, training_.outputs, k);
  });
}

template <class T>
void PrimalTeam<T>::next_row(Featurizer<T>& features) const {
  if (place_ + kAhead < training_.n_order) features.prefetch(training_.order[place_ + kAhead]);
  features.load(training_.order[place_]);
}

template class Backlog<float>;
template class Backlog<double>;
template class PrimalTeam<float>;
template class PrimalTeam<double>;

}  // namespace lacunar
