#include "lacunar/rls/memories.hpp"

#include <algorithm>
#include <cmath>

#include "lacunar/kernels.hpp"
#include "lacunar/rls/small_dense.hpp"

namespace lacunar {
namespace {

static_assert(kMemories == 8, "the kernels take eight memories side by side");
constexpr double kFactors[kMemories] = {.8, .9, .95, .98, .99, .995, .998, 1};
// Of all weight, what is shared out to all memories alike: so much over the rows that the tracker remembers, and at one
// row at most. What it remembers for long it puts in question seldom.
constexpr double kShared = 2, kMostShared = .05;
constexpr double kTrust = .25;  // of a row's evidence: its entries share a code, and rows the memories
constexpr double kFreedom = 2;  // of Student's likelihood
constexpr double kNormal = 3;   // kurtosis of equal noise
// The tracker's memory over the mean of the memories: these follow its turns within the subspace, too, which it does
// without cost itself.
constexpr double kLonger = 1.4;
constexpr double kDetermined = .5;  // times its unknowns is how often the tracker's memory must have seen a column
constexpr double kLongest = 2;      // times the tracker's memory is the longest: what it forgot is forgotten
constexpr double kLeastKept = .5;   // at one row
// The subspace is lost where the fast average exceeds the slow one by log 3. One odd row moves the first by less.
constexpr double kFastRate = .1, kSlowRate = .01, kLost = 1.1, kOdd = 9, kEnough = 50;
// Of a basis's row, in units of the usual square: a row whose columns are all new has a code of about 0, not of any
// size.
constexpr double kLeastSquare = .01;
constexpr double kLeastLeft = 1e-12;      // of a row's squares: rounding
constexpr double kLeastFree = 1e-8;       // of an entry: 1 - its leverage
constexpr double kLargestInverse = 1e12;  // inverse correlations grow no further
constexpr double kSmallestUnit = 1e-100;

}  // namespace

Memories::Memories(const MemoryState& state, Offset n_cols, int d, Offset largest)
    : s_(state), n_cols_(n_cols), slots_((n_cols + kMemoryEvery - 1) / kMemoryEvery), d_(d) {
  if (s_.v == nullptr) return;
  entries_.reserve(static_cast<std::size_t>(largest));
  places_.reserve(static_cast<std::size_t>(largest));
  gain_.resize(static_cast<std::size_t>(d) * kMemories);
  without_.resize(static_cast<std::size_t>(d));
}

double Memories::keep(RowCode& row, const Index* seen, const std::vector<double>& code,
                      const std::vector<double>& learned, double relative, bool factored) {
  gather(row, seen);
  error_ = 0;
  if (factored && !entries_.empty()) weigh(row, code);
  double& rows = *s_.rows;
  const double least = kDetermined * d_ * static_cast<double>(n_cols_) / row.m;
  const double wanted_rows = lost(row, relative) ? least : std::max(kLonger * mean_rows(), least);
  const double kept_share = rows > 1 ? std::clamp(wanted_rows / rows, kLeastKept, 1.0) : 1.0;
  discount();
  advance_inverses(learned);
  learn(learned);
  rows = kept_share * rows + 1;
  return kept_share;
}

void Memories::gather(const RowCode& row, const Index* seen) {
  entries_.clear();
  places_.clear();
  for (int i = 0; i < row.m; ++i) {
    if (seen[i] % kMemoryEvery != 0) continue;
    const Offset slot = seen[i] / kMemoryEvery;
    const double x = row.values[static_cast<std::size_t>(i)];
    places_.push_back(i);
    entries_.push_back({s_.v + slot * d_ * kMemories, s_.seen + slot * kMemories, x});
  }
}

// Weights after the errors that the memories make at the row's entries, each predicted from the code of the others.
void Memories::weigh(RowCode& row, const std::vector<double>& code) {
  double loss[kMemories] = {};
  error_ = row.hide(places_, code, cells_);
  for (std::size_t at = 0; at < entries_.size(); ++at)
    add_errors(code, entries_[at], cells_.error[at] / std::max(cells_.free[at], kLeastFree),
               cells_.back.data() + static_cast<Offset>(at) * row.leading, loss);
  move_weights(loss);
}

// loss (kMemories) += squared errors at this entry, from the code that leaves it out: code - step back, where back =
// (gram + ridge I)^-1 v_j and step is the error of the tracker's own basis over 1 - v_j back.
void Memories::add_errors(const std::vector<double>& code, const Entry& entry, double step, const double* back,
                          double* loss) {
  double error[kMemories];
  for (std::size_t k = 0; k < static_cast<std::size_t>(d_); ++k) without_[k] = code[k] - step * back[k];
  kernels().small.errors_of_eight(entry.v, d_, without_.data(), entry.x, error);
  for (int m = 0; m < kMemories; ++m) loss[m] += error[m] * error[m];
}

// How many entries of equal noise the errors of the tracker's own basis are worth, by their kurtosis: where columns
// differ in noise, few of them make up the loss.
double Memories::evidence() const {
  double squares = 0, fourths = 0;
  for (std::size_t at = 0; at < entries_.size(); ++at) {
    const double told = cells_.error[at] / std::max(cells_.free[at], kLeastFree), square = told * told;
    squares += square;
    fourths += square * square;
  }
  const double count = static_cast<double>(entries_.size());
  const double worth = kNormal * squares * squares / fourths;
  return std::isfinite(worth) ? std::min(worth, count) : count;
}

// Student's likelihood in units of the row's own weighted mean, so that neither scale nor an odd row matters; then
// every memory gets the same share.
void Memories::move_weights(const double* loss) {
  double *log_weight = line(kLogWeight), mean = 0, total = 0, weight[kMemories];
  for (int m = 0; m < kMemories; ++m) mean += std::exp(log_weight[m]) * loss[m];
  if (!(mean > 0) || !std::isfinite(mean)) return;
  const double count = evidence();
  for (int m = 0; m < kMemories; ++m)
    log_weight[m] -= kTrust * (kFreedom + count) / 2 * std::log1p(count / kFreedom * loss[m] / mean);
  const double share = std::min(kShared / std::max(*s_.rows, 1.0), kMostShared);
  const double largest = *std::max_element(log_weight, log_weight + kMemories);
  for (int m = 0; m < kMemories; ++m) total += weight[m] = std::exp(log_weight[m] - largest);
  for (int m = 0; m < kMemories; ++m) log_weight[m] = std::log((1 - share) * weight[m] / total + share / kMemories);
}

// Whether rows leave over far more than they did: codes in a subspace that is gone let no memory predict.
bool Memories::lost(const RowCode& row, double relative) {
  const double free = 1 - static_cast<double>(d_) / row.m;
  if (free <= 0 || row.size <= 0) return false;
  double &watched = s_.clock[kAge], &fast = s_.clock[kFast], &slow = s_.clock[kSlow];
  const double level = std::log(std::max(relative / free, kLeastLeft));
  if (watched == 0) fast = slow = level;
  watched += 1;
  fast += free * std::max(kFastRate, 1 / watched) * (std::clamp(level, slow - kOdd, slow + kOdd) - fast);
  slow += free * std::max(kSlowRate, 1 / watched) * (level - slow);
  return watched > kEnough && fast > slow + kLost;
}

double Memories::ridge(const RowCode& row, double most) const {
  if (s_.v == nullptr || s_.clock[kAge] <= kEnough) return most;
  const double noise = std::exp(std::max(s_.clock[kFast], s_.clock[kSlow]));  // share of the squares
  const double usual = d_ / static_cast<double>(n_cols_);                     // square of an orthonormal basis's row
  const double square = std::max(row.gram_trace() / row.m, kLeastSquare * usual);
  return noise < 1 ? std::min(most, noise / (1 - noise) * square) : most;
}

double Memories::mean_rows() const {
  double sum = 0;
  for (int m = 0; m < kMemories; ++m)
    sum += std::exp(line(kLogWeight)[m]) * std::log(std::max(kFactors[m] * line(kRowsKept)[m], 1.0));
  return std::exp(sum);
}

void Memories::discount() {
  double *rows = line(kRowsKept), *unit = line(kUnit);
  for (int m = 0; m < kMemories; ++m) {
    const double most = rows[m] > 1 ? kLongest * *s_.rows / rows[m] : 1.0;
    kept_[m] = std::min(kFactors[m], std::max(most, kLeastKept));
    rows[m] = kept_[m] * rows[m] + 1;
    unit[m] *= kept_[m];
    if (unit[m] > kSmallestUnit) continue;
    for (Offset slot = 0; slot < slots_; ++slot) s_.seen[slot * kMemories + m] *= unit[m];
    unit[m] = 1;
  }
}

// R^-1 <- (kept R + a a^T)^-1 with gain = (kept R)^-1 a and tau = a gain.
void Memories::advance_inverses(const std::vector<double>& learned) {
  double grow[kMemories], largest[kMemories] = {};
  for (int i = 0; i < d_; ++i)
    for (int m = 0; m < kMemories; ++m) largest[m] = std::max(largest[m], s_.inverse[i * (d_ + 1) * kMemories + m]);
  for (int m = 0; m < kMemories; ++m) grow[m] = largest[m] / kept_[m] > kLargestInverse ? 1.0 : 1 / kept_[m];
  kernels().small.advance_by_eight(s_.inverse, d_, learned.data(), grow, gain_.data(), tau_);
}

// v_j += e_j s_j / (1 + s_j tau) gain with s_j = c / c_j: the correlation scaled to how often this column was seen.
void Memories::learn(const std::vector<double>& learned) {
  const EightLines lines{line(kRowsKept), line(kUnit), tau_};
  for (const Entry& entry : entries_)
    kernels().small.learn_by_eight(entry.v, entry.seen, d_, learned.data(), entry.x, gain_.data(), lines);
}

void Memories::start_from(const double* v, double rows) {
  if (s_.v == nullptr) return;
  for (Offset slot = 0; slot < slots_; ++slot)
    for (int k = 0; k < d_; ++k)
      std::fill_n(s_.v + (slot * d_ + k) * kMemories, kMemories, v[slot * kMemoryEvery * d_ + k]);
  std::fill_n(line(kLogWeight), kMemories, -std::log(static_cast<double>(kMemories)));
  for (int m = 0; m < kMemories; ++m) line(kRowsKept)[m] = std::min(line(kRowsKept)[m], rows);
  *s_.rows = std::min(*s_.rows, rows);
}

// Rows of v times `by`, and by R^-1 by, symmetric to the last bit.
void Memories::turn(const std::vector<double>& by, int leading) {
  if (s_.v == nullptr) return;
  const Offset row_step = static_cast<Offset>(d_) * kMemories;
  std::vector<double> row_of(static_cast<std::size_t>(d_));
  const auto turn_rows = [&](double* first, Offset count, Offset step, Offset next) {
    for (Offset i = 0; i < count; ++i, first += step) {
      for (int k = 0; k < d_; ++k) row_of[static_cast<std::size_t>(k)] = first[k * next];
      for (int k = 0; k < d_; ++k)
        first[k * next] = dot(by.data() + static_cast<Offset>(k) * leading, row_of.data(), d_);
    }
  };
  for (int m = 0; m < kMemories; ++m) {
    turn_rows(s_.v + m, slots_, row_step, kMemories);
    turn_rows(s_.inverse + m, d_, row_step, kMemories);
    turn_rows(s_.inverse + m, d_, kMemories, row_step);
    for (int i = 0; i < d_; ++i)
      for (int k = 0; k < i; ++k) {
        double& low = s_.inverse[i * row_step + k * kMemories + m];
        double& high = s_.inverse[k * row_step + i * kMemories + m];
        low = high = (low + high) / 2;
      }
  }
}

}  // namespace lacunar
