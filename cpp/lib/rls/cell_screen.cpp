#include "lacunar/rls/cell_screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

// A cell is far beyond so many deviations of its column. Far cells are left out beyond the distance at which, as often
// as they come, they would add this share to the noise: at least kBeyond, at most kMostBeyond. Where far cells are
// rare, a subspace that moves has more of them than errors have.
constexpr double kBeyond = 4, kMostBeyond = 12, kAdded = .2;
// A column has changed, and is learned, where so many of its cells in succession are far as chance has less often.
constexpr double kChance = 1e-4;
// The running share of far cells: its first value, for how many rows that counts, its rate and its bounds.
constexpr double kFirstShare = .0125, kFirstRows = 20, kShareRate = .002, kLeastShare = 1e-3, kMostShare = .5;
constexpr double kClipped = .516;  // mean square of a normal number that is clipped at one deviation
constexpr double kUsual = 3;       // levels: a row all of whose residuals are smaller needs no Huber code
constexpr int kMostSteps = 2;      // towards Huber's code
constexpr int kMostScales = 8;     // towards the deviation of its errors
constexpr double kSettled = .64;   // a step that leaves so much of the row's square deviation is the last
constexpr double kMostCut = .8;    // of kClipped (m - d) errors: where more are cut, no Newton step
constexpr double kMostReach = 2;   // of a step towards Huber's code
constexpr double kNear = 1.5;      // ... or one that brings it below so many levels
// By which a column's deviation moves in a row, relatively, and the share of it that brings their mean back to 1: the
// level holds what they have in common.
constexpr double kColumnRate = .05, kBack = .1;
// The level follows the deviations of rows at this rate, and one odd row counts at most this much (in logs). Rows of
// twice as many entries as directions are judged by their own deviation where that is more: the cells of a subspace
// that has changed are no outliers.
constexpr double kLevelRate = .1, kOdd = 3, kOwn = 2;
constexpr double kRounding = 1e-8;  // of a row's root mean square: smaller residuals are no outliers

// Sum of the first `count` numbers of a padded line, each cut at `most`, and how many are cut.
double clipped_sum(const std::vector<double>& x, int count, double* n_cut,
                   double most = std::numeric_limits<double>::infinity()) {
  return kernels().small.clipped_sum(x.data(), padded(count), most, n_cut);
}

}  // namespace

CellScreen::CellScreen(const ScreenState& state, int d, Offset largest) : s_(state), d_(d) {
  if (s_.deviation == nullptr) return;
  const auto entries = static_cast<std::size_t>(padded(static_cast<int>(largest)));
  for (auto* line : {&code_, &step_}) line->resize(static_cast<std::size_t>(padded(d)));
  for (auto* line : {&deviation_, &error_, &squares_, &sizes_}) line->resize(entries);
  places_.reserve(entries);
  columns_.resize(entries);
}

const Index* CellScreen::clean(RowCode& row, const Index* seen) {
  const int m = row.m;
  usual_ = false;
  if (s_.deviation == nullptr || m <= d_ + 1) return seen;
  load_deviations(seen, m);
  huber_code(row);
  follow(m);
  choose(seen, m, m >= kOwn * d_ ? std::max(*s_.level, own_) : *s_.level, kRounding * std::sqrt(row.size / m));
  if (places_.empty() || static_cast<int>(places_.size()) == m) return seen;
  std::copy_n(seen, m, columns_.begin());
  row.leave_out(places_, columns_.data());
  return columns_.data();
}

bool CellScreen::take_errors(std::vector<double>& code, std::vector<double>& errors) {
  if (!usual_) return false;
  code.swap(code_);
  errors.swap(error_);
  return true;
}

// Places of the cells to leave out, from deviations `level` in units of their columns', and `least` of a cell. Stores
// what the row says of its columns.
void CellScreen::choose(const Index* seen, int m, double level, double least) {
  double &share = s_.level[1], &rows = s_.level[2];
  if (rows == 0) share = kFirstShare, rows = kFirstRows;
  const double most = level * std::clamp(std::sqrt(kAdded / share), kBeyond, kMostBeyond);
  find_far(m, kBeyond * level, least);
  double most_in_succession = 0;
  for (std::size_t k = 0; k < far_.size(); ++k) {
    sizes_[k] = squares_[static_cast<std::size_t>(far_[k])] > most * most ? s_.left_out[seen[far_[k]]] + 1 : 0;
    most_in_succession = std::max(most_in_succession, sizes_[k]);
  }
  const double limit = most_in_succession > 1 ? std::log(kChance) / std::log(share) : 1;
  for (int i = 0; i < m; ++i) {
    s_.left_out[seen[i]] = 0;
    s_.deviation[seen[i]] = deviation_[static_cast<std::size_t>(i)];
  }
  places_.clear();
  for (std::size_t k = 0; k < far_.size(); ++k) {
    s_.left_out[seen[far_[k]]] = sizes_[k];
    if (sizes_[k] > 0 && sizes_[k] <= limit) places_.push_back(far_[k]);
  }
  const double move = std::max(kShareRate, 1 / rows) * (static_cast<double>(far_.size()) / m - share);
  share = std::clamp(share + move, kLeastShare, kMostShare);
  rows += 1;
}

// Places of the cells beyond `most` whose error is more than `least`; the first loop has no branch that a processor
// would have to foresee.
void CellScreen::find_far(int m, double most, double least) {
  far_.clear();
  if (usual_) return;
  far_.resize(static_cast<std::size_t>(m) + 1);
  std::size_t count = 0;
  for (int i = 0; i < m; ++i) {
    far_[count] = i;
    count += squares_[static_cast<std::size_t>(i)] > most * most ? 1U : 0U;
  }
  far_.resize(count);
  const auto is_rounding = [&](Index at) { return std::abs(error_[static_cast<std::size_t>(at)]) <= least; };
  far_.erase(std::remove_if(far_.begin(), far_.end(), is_rounding), far_.end());
}

void CellScreen::load_deviations(const Index* seen, int m) {
  int n_new = 0;
  for (int i = 0; i < m; ++i) {
    const double deviation = s_.deviation[seen[i]];
    deviation_[static_cast<std::size_t>(i)] = deviation;
    n_new += deviation == 0 ? 1 : 0;
  }
  if (n_new > 0) fill_deviations(m);
  std::fill(deviation_.begin() + m, deviation_.begin() + padded(m), 0.0);
}

// Those of columns that are new: the median of the others', or 1 in the first row.
void CellScreen::fill_deviations(int m) {
  const auto row_end = deviation_.begin() + m;
  const auto known = std::copy_if(deviation_.begin(), row_end, sizes_.begin(), [](double size) { return size > 0; });
  const auto middle = sizes_.begin() + (known - sizes_.begin()) / 2;
  std::nth_element(sizes_.begin(), middle, known);
  std::replace(deviation_.begin(), row_end, 0.0, known > sizes_.begin() ? *middle : 1.0);
}

// Errors of the code, and their squares in units of their columns'.
void CellScreen::load_errors(const RowCode& row) {
  kernels().small.errors_of_rows(row.rows.data(), code_.data(), row.x.data(), deviation_.data(), row.m, row.leading,
                                 error_.data(), squares_.data());
}

// The square of the deviation of a row of m entries by Huber's proposal 2: the root of sum min(squares, u) = kClipped
// (m - d) u, by Newton's steps, which fall from any u above it. Where most are cut they do not, and u is taken from
// all. `all_below` says whether no square is more than the first u.
double CellScreen::square_of(int m, double square, bool* all_below) {
  const double entries = kClipped * (m - d_);
  for (int step = 0; step < kMostScales; ++step) {
    const double before = square, sum = clipped_sum(squares_, m, &n_cut_, square);
    if (step == 0) *all_below = n_cut_ == 0;
    if (step == 0 && *all_below)
      square = sum / (m - d_);
    else if (n_cut_ < kMostCut * entries)
      square = (sum - n_cut_ * square) / (entries - n_cut_);
    else
      square = step == 0 ? clipped_sum(squares_, m, &n_cut_) / (m - d_) : sum / entries;
    if (step > 0 && square >= kSettled * before && square <= before) break;
  }
  return square;
}

// Huber's code by modified residuals: code += (gram + ridge)^-1 V^T clipped errors times 1 over the share that is not
// clipped, with the row's factor.
void CellScreen::huber_code(const RowCode& row) {
  const int m = row.m;
  row.solve(row.right, code_);
  load_errors(row);
  const double level = *s_.level * *s_.level;
  double square = square_of(m, kUsual * kUsual * level, &usual_);
  for (int step = 0; step < kMostSteps && !usual_; ++step) {
    kernels().small.clip(error_.data(), deviation_.data(), m, std::sqrt(square), squares_.data());
    kernels().small.combine(row.rows.data(), squares_.data(), m, row.leading, step_.data());
    row.solve(step_, step_);
    const double reach = m / std::max(m - n_cut_, m / kMostReach);
    for (std::size_t k = 0; k < code_.size(); ++k) code_[k] += reach * step_[k];
    load_errors(row);
    const double before = square;
    bool all_below = false;
    square = square_of(m, square, &all_below);
    if (square < kNear * kNear * level || !(square < kSettled * before)) break;
  }
  own_ = std::sqrt(square);
}

// The level follows the row's deviation, and every column's deviation the size of its error in the row.
void CellScreen::follow(int m) {
  if (!(own_ > 0) || !std::isfinite(own_)) return;
  double& level = *s_.level;
  level = level > 0 ? level * std::exp(kLevelRate * std::clamp(std::log(own_ / level), -kOdd, kOdd)) : own_;
  const double shrink = m / (kClipped * own_ * own_ * (m - d_));
  const double usual = clipped_sum(deviation_, m, &n_cut_) / m;
  const double back = kColumnRate * (std::clamp(kBack * (1 - usual), -1.0, 1.0) - .5);
  const double rate = kColumnRate / 2 * shrink, most = kColumnRate / 2 / kClipped;
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
    const double move = rate * squares_[i];
    deviation_[i] *= 1 + back + (most < move ? most : move);
  }
}

}  // namespace lacunar
