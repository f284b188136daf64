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
constexpr int kMostSteps = 3;      // towards Huber's code
constexpr int kMostScales = 8;     // towards the deviation of its residuals
constexpr double kSettled = .8;    // a step that leaves so much of the row's deviation is the last
constexpr double kNear = 1.5;      // ... or one that brings it below so many levels
// By which a column's deviation moves in a row, relatively, and the share of it that brings their mean back to 1: the
// level holds what they have in common.
constexpr double kColumnRate = .05, kBack = .1;
// The level follows the deviations of rows at this rate, and one odd row counts at most this much (in logs). Rows of
// twice as many entries as directions are judged by their own deviation where that is more: the cells of a subspace
// that has changed are no outliers.
constexpr double kLevelRate = .1, kOdd = 3, kOwn = 2;
constexpr double kRounding = 1e-8;  // of a row's root mean square: smaller residuals are no outliers

double sum_of(const std::vector<double>& x, int count) {
  return kernels().small.clipped_sum(x.data(), padded(count), std::numeric_limits<double>::infinity());
}

// Of a padded line, without branches that a processor would have to foresee.
double largest_of(const double* x, int count) {
  double largest[8] = {};
  for (int i = 0; i < count; i += 8)
    for (int r = 0; r < 8; ++r) largest[r] = x[i + r] > largest[r] ? x[i + r] : largest[r];
  return *std::max_element(largest, largest + 8);
}

}  // namespace

CellScreen::CellScreen(const ScreenState& state, int d, Offset largest) : s_(state), d_(d) {
  if (s_.deviation == nullptr) return;
  const auto entries = static_cast<std::size_t>(padded(static_cast<int>(largest)));
  for (auto* line : {&code_, &step_}) line->resize(static_cast<std::size_t>(padded(d)));
  for (auto* line : {&deviation_, &precision_, &residual_, &squares_, &sizes_}) line->resize(entries);
  places_.reserve(entries);
  columns_.resize(entries);
}

const Index* CellScreen::clean(RowCode& row, const Index* seen) {
  const int m = row.m;
  if (s_.deviation == nullptr || m <= d_ + 1) return seen;
  load_deviations(seen, m);
  huber_code(row);
  remember(seen, m);
  const double level = m >= kOwn * d_ ? std::max(*s_.level, own_) : *s_.level;
  choose(seen, m, level, kRounding * std::sqrt(row.size / m));
  if (places_.empty() || static_cast<int>(places_.size()) == m) return seen;
  std::copy_n(seen, m, columns_.begin());
  row.leave_out(places_, columns_.data());
  return columns_.data();
}

// Places of the cells to leave out, from deviations `level` in units of their columns', and `least` of a cell.
void CellScreen::choose(const Index* seen, int m, double level, double least) {
  double &share = s_.level[1], &rows = s_.level[2];
  if (rows == 0) share = kFirstShare, rows = kFirstRows;
  const double most = level * std::clamp(std::sqrt(kAdded / share), kBeyond, kMostBeyond);
  const double most_in_row = std::log(kChance) / std::log(share);
  find_far(m, kBeyond * level, least);
  for (std::size_t k = 0; k < far_.size(); ++k)
    sizes_[k] = squares_[static_cast<std::size_t>(far_[k])] > most * most ? s_.left_out[seen[far_[k]]] + 1 : 0;
  for (int i = 0; i < m; ++i) s_.left_out[seen[i]] = 0;
  places_.clear();
  for (std::size_t k = 0; k < far_.size(); ++k) {
    s_.left_out[seen[far_[k]]] = sizes_[k];
    if (sizes_[k] > 0 && sizes_[k] <= most_in_row) places_.push_back(far_[k]);
  }
  const double move = std::max(kShareRate, 1 / rows) * (static_cast<double>(far_.size()) / m - share);
  share = std::clamp(share + move, kLeastShare, kMostShare);
  rows += 1;
}

// Places of the cells beyond `most` whose residual is more than `least`; the first loop has no branch that a processor
// would have to foresee.
void CellScreen::find_far(int m, double most, double least) {
  far_.clear();
  if (!(largest_square_ > most * most)) return;
  far_.resize(static_cast<std::size_t>(m) + 1);
  std::size_t count = 0;
  for (int i = 0; i < m; ++i) {
    far_[count] = i;
    count += squares_[static_cast<std::size_t>(i)] > most * most ? 1U : 0U;
  }
  far_.resize(count);
  const auto is_rounding = [&](Index at) {
    return std::abs(residual_[static_cast<std::size_t>(at)]) <= least * precision_[static_cast<std::size_t>(at)];
  };
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
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) precision_[i] = 1 / deviation_[i];
  for (auto* line : {&deviation_, &precision_}) std::fill(line->begin() + m, line->begin() + padded(m), 0.0);
}

// Those of columns that are new: the median of the others', or 1 in the first row.
void CellScreen::fill_deviations(int m) {
  const auto row_end = deviation_.begin() + m;
  const auto known = std::copy_if(deviation_.begin(), row_end, sizes_.begin(), [](double size) { return size > 0; });
  const auto middle = sizes_.begin() + (known - sizes_.begin()) / 2;
  std::nth_element(sizes_.begin(), middle, known);
  std::replace(deviation_.begin(), row_end, 0.0, known > sizes_.begin() ? *middle : 1.0);
}

// Residuals in units of their columns', and their squares; 0 beyond the row's cells.
void CellScreen::residuals(const RowCode& row) {
  const int count = padded(row.m);
  kernels().small.project(row.rows.data(), code_.data(), count, row.leading, residual_.data());
  kernels().small.weigh(row.x.data(), residual_.data(), precision_.data(), count, residual_.data(), squares_.data());
}

// Deviation of the residuals of a row of m entries by Huber's proposal 2, from one that is no smaller.
double CellScreen::size_of(int m, double size) const {
  for (int step = 0; step < kMostScales; ++step) {
    const double before = size;
    size = std::sqrt(kernels().small.clipped_sum(squares_.data(), padded(m), size * size) / (kClipped * (m - d_)));
    if (!(size < kSettled * before)) break;
  }
  return size;
}

// Huber's code by modified residuals: code += (gram + ridge)^-1 V^T clipped residuals, with the row's factor.
void CellScreen::huber_code(const RowCode& row) {
  const int m = row.m;
  row.solve(row.right, code_);
  residuals(row);
  own_ = size_of(m, std::sqrt(sum_of(squares_, m) / (m - d_)));
  const double level = *s_.level;
  largest_square_ = largest_of(squares_.data(), m);
  if (!(largest_square_ > kUsual * kUsual * level * level)) return;
  largest_square_ = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kMostSteps; ++step) {
    kernels().small.clip(residual_.data(), deviation_.data(), m, own_, squares_.data());
    kernels().small.combine(row.rows.data(), squares_.data(), m, row.leading, step_.data());
    row.solve(step_, step_);
    for (std::size_t k = 0; k < code_.size(); ++k) code_[k] += step_[k];
    residuals(row);
    const double before = own_;
    own_ = size_of(m, own_);
    if (own_ < kNear * level || !(own_ < kSettled * before)) return;
  }
}

// The level follows the row's deviation, and every column's deviation the size of its residual in the row.
void CellScreen::remember(const Index* seen, int m) {
  if (!(own_ > 0) || !std::isfinite(own_)) return;
  double& level = *s_.level;
  level = level > 0 ? level * std::exp(kLevelRate * std::clamp(std::log(own_ / level), -kOdd, kOdd)) : own_;
  const double shrink = m / (kClipped * own_ * own_ * (m - d_));
  const double usual = sum_of(deviation_, m) / m;
  const double back = kColumnRate * (std::clamp(kBack * (1 - usual), -1.0, 1.0) - .5);
  const double rate = kColumnRate / 2 * shrink, most = kColumnRate / 2 / kClipped;
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) {
    const double move = rate * squares_[i];
    deviation_[i] *= 1 + back + (most < move ? most : move);
  }
  for (int i = 0; i < m; ++i) s_.deviation[seen[i]] = deviation_[static_cast<std::size_t>(i)];
}

}  // namespace lacunar
