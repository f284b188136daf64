#include "lacunar/rls/scout.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/rls/lazy_basis.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

// It remembers as many rows as show a column so many times its unknowns, and takes the tracker's place where the mean
// of the relative differences of their errors, at this rate, is so many deviations above 0, and so many rows after it
// did so before. Columns that are out for long say nothing of what the tracker knows of them and the scout has
// forgotten: the deviations are divided by the root of the share of columns that it knows.
constexpr double kSees = 2.5, kRate = .02, kSurely = 3, kBetween = 50, kLeastRows = 20;
constexpr double kSmallestUnit = 1e-100;

}  // namespace

Scout::Scout(const ScoutState& state, Offset n_cols, int d, double ridge, Offset largest)
    : s_(state), n_cols_(n_cols), d_(d), ridge_(ridge), row_(d, state.v == nullptr ? 0 : largest) {
  for (auto* line : {&code_, &gain_}) line->resize(static_cast<std::size_t>(row_.leading));
  fitted_.resize(row_.x.size());
}

void Scout::learn(const RowCode& of, const Index* seen, const std::vector<int>& hidden) {
  gather_rows(s_.v, d_, seen, of.m, row_.leading, row_.rows.data());
  row_.load(of.values.data(), of.m);
  const bool factored = row_.factorise(ridge_, nullptr, kSingular);
  if (!factored) row_.rescue(ridge_);
  row_.solve(row_.right, code_);
  error_ = factored ? row_.hide(hidden, code_, cells_) : 0.0;
  kernels().small.project(row_.rows.data(), code_.data(), row_.m, row_.leading, fitted_.data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(row_.m); ++i) row_.x[i] -= fitted_[i];
  if (!std::isfinite(dot(row_.x.data(), row_.x.data(), row_.m)) || !std::isfinite(row_.size)) return;
  rows_kept_ = std::max(kSees * d_ * static_cast<double>(n_cols_) / row_.m, kLeastRows);
  move_columns(seen, advance_inverse(s_.inverse, d_, code_.data(), 1 - 1 / rows_kept_, gain_.data()));
}

// v_j += e_j s_j / (1 + s_j tau) gain with s_j = c / c_j: the shared correlation scaled to how often this column was
// seen.
void Scout::move_columns(const Index* seen, double tau) {
  const double total = s_.line[kScoutRows] + 1, unit = s_.line[kScoutUnit];
  discount();
  for (int i = 0; i < row_.m; ++i) {
    const Index j = seen[i];
    const double share = total / (s_.seen[j] * unit + 1);
    const double f = row_.x[static_cast<std::size_t>(i)] * share / (1 + share * tau);
    add_scaled(row_.rows.data() + static_cast<Offset>(i) * row_.leading, f, gain_.data(), d_,
               s_.v + static_cast<Offset>(j) * d_);
    s_.seen[j] += 1 / s_.line[kScoutUnit];
  }
}

void Scout::discount() {
  double &rows = s_.line[kScoutRows], &unit = s_.line[kScoutUnit];
  const double kept = 1 - 1 / rows_kept_;
  rows = kept * rows + 1;
  unit *= kept;
  if (unit > kSmallestUnit) return;
  for (Offset j = 0; j < n_cols_; ++j) s_.seen[j] *= unit;
  unit = 1;
}

bool Scout::better(double error) {
  double &mean = s_.line[kGain], &square = s_.line[kGainSquare], &since = s_.line[kSince];
  since += 1;
  if (!(error > 0 && error_ > 0)) return false;
  const double gain = (error - error_) / (error + error_);
  mean += kRate * (gain - mean);
  square += kRate * (gain * gain - square);
  const double sure = kSurely * kSurely * kRate / 2 * square;
  if (since <= kBetween || mean <= 0 || mean * mean <= sure || known_share() * mean * mean <= sure) return false;
  mean = since = 0;
  return true;
}

double Scout::known_share() const {
  const double least = d_ / s_.line[kScoutUnit];
  const auto known = std::count_if(s_.seen, s_.seen + n_cols_, [&](double seen) { return seen >= least; });
  return static_cast<double>(known) / static_cast<double>(n_cols_);
}

void Scout::column_inverse(Offset j, double* blocks) const {
  const double share = s_.line[kScoutRows] / std::max(s_.seen[j] * s_.line[kScoutUnit], 1.0);
  for (int i = 0; i < d_; ++i)
    for (int k = 0; k < i / 8 * 8 + 8; ++k) *blocks++ = k < d_ ? share * s_.inverse[i * d_ + k] : 0.0;
}

}  // namespace lacunar
