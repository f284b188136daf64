#include <algorithm>
#include <cmath>
#include <limits>

#include "lacunar/kernels.hpp"
#include "lacunar/meg/meg.hpp"
#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {

namespace {

constexpr int kMaxSteps = 1000;
constexpr Offset kCheapLength = 128;  // up to which a step costs less than to diagonalise T
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Whether every threshold lies outside [low, high] by more than rounding.
bool settled(const std::vector<double>& thresholds, double low, double high, double slack) {
  return std::all_of(thresholds.begin(), thresholds.end(),
                     [&](double t) { return low > t + slack || high < t - slack; });
}

}  // namespace

void MegLanczos::make_room(Offset length) {
  length_ = length;
  for (auto* vector : {&q_, &before_, &p_, &u_, &w_})
    if (static_cast<Offset>(vector->size()) < length) vector->resize(length);
  std::fill_n(before_.data(), length, 0.0);
  alpha_.clear();
  beta_.clear();
}

void MegLanczos::multiply(MegForm& form) {
  form.by_a(p_.data(), u_.data());
  alpha_.push_back(kernels().meg.dot(p_.data(), u_.data(), length_));
}

bool MegLanczos::advance(MegForm& form) {
  const double alpha = alpha_.back(), last = beta_.empty() ? 0 : beta_.back();
  kernels().meg.recur(u_.data(), alpha, q_.data(), last, before_.data(), length_);
  form.by_k(u_.data(), w_.data());
  const double square = kernels().meg.dot(u_.data(), w_.data(), length_);
  if (std::isnan(square)) {
    beta_.push_back(square);
    return true;
  }
  if (square <= 1e-30 * (1 + alpha * alpha)) return false;
  const double beta = std::sqrt(square), scale = 1 / beta;
  beta_.push_back(beta);
  before_.swap(q_);
  for (Offset k = 0; k < length_; ++k) q_[k] = scale * u_[k];
  for (Offset k = 0; k < length_; ++k) p_[k] = scale * w_[k];
  return true;
}

double MegLanczos::upper(double& bound) {
  const int k = static_cast<int>(alpha_.size());
  double d = alpha_[0] - bound;
  for (int j = 1; j < k && d < 0; ++j) d = alpha_[j] - bound - beta_[j - 1] * beta_[j - 1] / d;
  if (!(d < 0)) {  // a Ritz value has reached the bound, by rounding
    bound = std::max(bound, 1.05 * exponential_.largest() + 0.05);
    return kInfinity;
  }
  alpha_.push_back(bound + beta_.back() * beta_.back() / d);
  const double high = exponential_.log_first(alpha_.data(), beta_.data(), k + 1);
  alpha_.pop_back();
  return high;
}

MegAnswer MegLanczos::ask(MegForm& form, double tol, const std::vector<double>& thresholds, double& bound) {
  make_room(form.length());
  MegAnswer answer;
  const double norm2 = form.start(q_.data(), p_.data());
  if (norm2 == 0) {
    answer.log_score = answer.high = -kInfinity;
    return answer;
  }
  const double base = std::log(norm2);
  double low = -kInfinity, high = kInfinity;
  int next = 1;  // at which T is diagonalised again: at every step first, and then so that all of it stays O(k^2)
  InterruptCheck check;  // nothing has changed while a pair is asked about
  for (answer.steps = 1; answer.steps <= kMaxSteps; ++answer.steps) {
    multiply(form);
    check.after(length_ * length_);
    const bool exhausted = answer.steps < next && !advance(form);
    if (answer.steps < next && !exhausted) continue;
    next = answer.steps + 1 + answer.steps / (length_ <= kCheapLength ? 4 : 12);
    const double before = low;
    low = base + exponential_.log_first(alpha_.data(), beta_.data(), answer.steps);
    answer.log_score = answer.high = low;
    if (std::isnan(low)) {
      answer.status = MegStatus::not_finite;
      return answer;
    }
    const bool still = answer.steps >= 3 && std::abs(low - before) < 0.1 * tol;
    if (exhausted || still) return answer;
    if (!thresholds.empty() && settled(thresholds, low, high, 0.1 * tol)) {
      answer.high = high;
      return answer;
    }
    if (!advance(form)) return answer;
    if (thresholds.empty()) continue;
    answer.high = high = std::min(high, base + upper(bound));
    if (settled(thresholds, low, high, 0.1 * tol)) return answer;
  }
  answer.status = MegStatus::not_converged;
  return answer;
}

}  // namespace lacunar
