#include "lacunar/rls/cell_screen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

constexpr double kBeyond = 4;      // deviations of its column is how far a cell may lie from the row's code
constexpr double kClipped = .516;  // mean square of a normal number that is clipped at one deviation
constexpr int kMostSteps = 6;      // towards Huber's code
constexpr double kSettled = .8;    // a step that leaves so much of the row's deviation is the last
// By which a column's deviation moves in a row, relatively, and the share of it that brings their mean back to 1: the
// level holds what they have in common.
constexpr double kColumnRate = .05, kBack = .1;
// The level follows the deviations of rows at this rate, and one odd row counts at most this much (in logs). Rows of
// twice as many entries as directions are judged by their own deviation where that is more: the cells of a subspace that
// has changed are no outliers.
constexpr double kLevelRate = .1, kOdd = 3, kOwn = 2;
constexpr double kRounding = 1e-8;  // of a row's root mean square: smaller residuals are no outliers

}  // namespace

CellScreen::CellScreen(const ScreenState& state, int d, Offset largest) : s_(state), d_(d) {
  if (s_.deviation == nullptr) return;
  const auto entries = static_cast<std::size_t>(largest);
  for (auto* line : {&code_, &step_}) line->resize(static_cast<std::size_t>(padded(d)));
  for (auto* line : {&deviation_, &precision_, &residual_, &clipped_, &sizes_}) line->resize(entries);
  places_.reserve(entries);
  columns_.resize(entries);
}

const Index* CellScreen::clean(RowCode& row, const Index* seen, double ridge) {
  const int m = row.m;
  if (s_.deviation == nullptr || m <= d_ + 1 || !row.factorise(ridge, nullptr, kSingular)) return seen;
  load_deviations(seen, m);
  huber_code(row);
  const double least = kRounding * std::sqrt(row.size / m);
  remember(seen, m);
  const double level = m >= kOwn * d_ ? std::max(*s_.level, own_) : *s_.level;
  places_.clear();
  for (int i = 0; i < m; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (!(std::abs(residual_[at]) > std::max(kBeyond * level, least * precision_[at]))) places_.push_back(i);
  }
  if (static_cast<int>(places_.size()) == m || places_.empty()) return seen;
  for (std::size_t k = 0; k < places_.size(); ++k) columns_[k] = seen[places_[k]];
  row.keep(places_);
  return columns_.data();
}

void CellScreen::load_deviations(const Index* seen, int m) {
  std::size_t known = 0;
  for (int i = 0; i < m; ++i) {
    const double deviation = deviation_[static_cast<std::size_t>(i)] = s_.deviation[seen[i]];
    if (deviation > 0) sizes_[known++] = deviation;
  }
  if (known < static_cast<std::size_t>(m)) fill_deviations(known, m);
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) precision_[i] = 1 / deviation_[i];
}

// Those of columns that are new: the median of the `known` others', or 1 in the first row.
void CellScreen::fill_deviations(std::size_t known, int m) {
  const auto middle = sizes_.begin() + static_cast<Offset>(known / 2);
  std::nth_element(sizes_.begin(), middle, sizes_.begin() + static_cast<Offset>(known));
  const double usual = known > 0 ? *middle : 1.0;
  for (int i = 0; i < m; ++i)
    if (double& deviation = deviation_[static_cast<std::size_t>(i)]; !(deviation > 0)) deviation = usual;
}

// Residuals in units of their columns'.
void CellScreen::residuals(const RowCode& row) {
  kernels().small.project(row.rows.data(), code_.data(), row.m, row.leading, residual_.data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(row.m); ++i)
    residual_[i] = (row.x[i] - residual_[i]) * precision_[i];
}

// Root of the mean square of the residuals, each cut at `most`, of a row of m entries.
double CellScreen::mean_size(int m, double most) {
  for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i) clipped_[i] = std::clamp(residual_[i], -most, most);
  return std::sqrt(dot(clipped_.data(), clipped_.data(), m) / (m - d_));
}

// Huber's code and deviation (his proposal 2) by modified residuals: code += (gram + ridge)^-1 V^T clipped residuals,
// with the row's factor.
void CellScreen::huber_code(const RowCode& row) {
  const int m = row.m;
  row.solve(row.right, code_);
  residuals(row);
  own_ = mean_size(m, std::numeric_limits<double>::infinity());
  for (int step = 0; step < kMostSteps; ++step) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(m); ++i)
      clipped_[i] = std::clamp(residual_[i], -own_, own_) * deviation_[i];
    kernels().small.combine(row.rows.data(), clipped_.data(), m, row.leading, step_.data());
    row.solve(step_, step_);
    for (std::size_t k = 0; k < code_.size(); ++k) code_[k] += step_[k];
    residuals(row);
    const double before = own_;
    own_ = mean_size(m, own_) / std::sqrt(kClipped);
    if (!(own_ < kSettled * before)) return;
  }
}

// The level follows the row's deviation, and every column's deviation the size of its residual in the row.
void CellScreen::remember(const Index* seen, int m) {
  if (!(own_ > 0) || !std::isfinite(own_)) return;
  double &level = *s_.level, total = 0;
  level = level > 0 ? level * std::exp(kLevelRate * std::clamp(std::log(own_ / level), -kOdd, kOdd)) : own_;
  const auto entries = static_cast<std::size_t>(m);
  for (std::size_t i = 0; i < entries; ++i) total += deviation_[i];
  const double usual = kClipped * own_ * own_ * (m - d_) / m, back = kColumnRate * std::clamp(kBack * (1 - total / m), -1.0, 1.0);
  for (std::size_t i = 0; i < entries; ++i) {
    const double square = residual_[i] * residual_[i];
    const double move = kColumnRate / 2 * (std::min(square / usual, 1 / kClipped) - 1) + back;
    s_.deviation[seen[i]] = deviation_[i] * (2 + move) / (2 - move);  // of exp(move), for the small one that it is
  }
}

}  // namespace lacunar
