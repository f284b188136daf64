#include "lacunar/meg/meg.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAbove = 0.05;  // of the bound over what it bounds: Gauss-Radau needs it larger

// y y_bar <= gamma where y_bar + 1 meets 1 + y gamma, in logarithms; below zero the scale has no such point.
double turning_point(const MegMargin& margin) {
  const double at = 1 + margin.y * margin.gamma;
  return at > 0 ? std::log1p(margin.y * margin.gamma) : -kInfinity;
}

bool asks_update(const MegMargin& margin, double log_score) {
  const double at = turning_point(margin);
  if (margin.strict) return margin.y > 0 ? log_score < at : log_score > at;
  return margin.y > 0 ? log_score <= at : log_score >= at;
}

// The pair that is asked about, closed again whatever happens.
class Opened {
 public:
  Opened(MegForm& form, Index i, Index j) : form_(form) { form_.open(i, j); }
  ~Opened() { form_.close(); }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

 private:
  MegForm& form_;
};

}  // namespace

MegAnswer Meg::ask(const MegMargin* margin) {
  thresholds_.clear();
  if (margin != nullptr) {
    thresholds_.push_back(-log_scale_);
    const double at = turning_point(*margin);
    if (at > -kInfinity) thresholds_.push_back(at - log_scale_);
  }
  MegAnswer answer = lanczos_.ask(*form_, tol_, thresholds_, clock_.bound);
  answer.log_score += log_scale_;
  answer.high += log_scale_;
  answer.positive = answer.log_score >= 0;
  answer.update = margin != nullptr && asks_update(*margin, answer.log_score);
  return answer;
}

MegAnswer Meg::value(Index i, Index j) {
  const Opened pair(*form_, i, j);
  return ask(nullptr);
}

MegAnswer Meg::decide(Index i, Index j, const MegMargin& margin) {
  const Opened pair(*form_, i, j);
  return ask(&margin);
}

// low <= log(y_bar + 1) <= high of the open pair before the change.
bool Meg::add(double change, double low, double high) {
  const double norm2 = form_->norm2();
  const Offset fresh = form_->fresh();
  if (!form_->add(change)) return false;
  clock_.updates += 1;
  if (norm2 == 0) return true;
  const double most = std::min(high - log_scale_, std::log(norm2) + clock_.bound);
  const double factor = std::expm1(change * norm2) / norm2;
  clock_.trace += static_cast<double>(fresh) + factor * std::exp(change > 0 ? most : low - log_scale_);
  clock_.trace *= 1 + 1e-15;
  if (change > 0) clock_.bound += change * norm2;
  // A direction not yet touched has the eigenvalue 0.
  const double certain = std::max(0.0, std::log(clock_.trace)) + kAbove;
  if (certain < clock_.bound) clock_.bound = certain;
  return true;
}

bool Meg::learn(Index i, Index j, double change, double log_score) {
  constexpr double kSlack = 1e-9;
  const bool known = !std::isnan(log_score);
  const Opened pair(*form_, i, j);
  const bool finite = add(change, known ? log_score - kSlack : -kInfinity, known ? log_score + kSlack : kInfinity);
  n_seen_ += finite;
  return finite;
}

MegStatus Meg::trial(const MegStream& stream, Offset t) {
  const MegMargin margin{stream.y[t], stream.gamma, stream.strict};
  const Opened pair(*form_, stream.i[t], stream.j[t]);
  MegAnswer answer = ask(stream.values ? nullptr : &margin);
  if (answer.status == MegStatus::ok) {
    answer.update = asks_update(margin, answer.log_score);
    stream.out[t] = stream.values ? answer.log_score : answer.positive ? 1 : -1;
    stream.updated[t] = answer.update;
    const double high = margin.y > 0 ? std::min(answer.high, turning_point(margin)) : answer.high;
    if (answer.update && !add(stream.step[t] * stream.y[t], answer.log_score - tol_, high + tol_))
      answer.status = MegStatus::not_finite;
  }
  return answer.status;
}

Offset Meg::run(const MegStream& stream, MegStatus& status) {
  InterruptCheck check;
  for (Offset t = 0; t < stream.count; ++t, check.look()) {
    status = trial(stream, t);
    if (status != MegStatus::ok) return t;
    ++n_seen_;
  }
  return -1;
}

}  // namespace lacunar
