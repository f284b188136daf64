#include "lacunar/meg.hpp"

#include <cmath>
#include <limits>

namespace lacunar {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUpdatesBetweenLooks = 40;

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
  answer.positive = answer.log_score >= 0;
  answer.update = margin != nullptr && asks_update(*margin, answer.log_score);
  return answer;
}

MegAnswer Meg::value(Index i, Index j) {
  form_->open(i, j);
  const MegAnswer answer = ask(nullptr);
  form_->close();
  return answer;
}

// The bound only has to hold; now and then it is looked at, because a loose one costs steps.
bool Meg::look() {
  if (clock_.updates - clock_.looked < kUpdatesBetweenLooks) return true;
  const double largest = lanczos_.largest(*form_, static_cast<std::uint64_t>(clock_.updates));
  if (std::isnan(largest)) return false;
  clock_.bound = std::min(clock_.bound, 1.05 * std::max(largest, 0.0) + 0.2);
  clock_.looked = clock_.updates;
  return true;
}

MegAnswer Meg::decide(Index i, Index j, const MegMargin& margin) {
  MegAnswer answer;
  if (!look()) {
    answer.status = MegStatus::not_finite;
    return answer;
  }
  form_->open(i, j);
  answer = ask(&margin);
  form_->close();
  return answer;
}

bool Meg::add(double change) {
  const double norm2 = form_->norm2();
  if (!form_->add(change)) return false;
  if (change > 0) clock_.bound += change * norm2;
  clock_.updates += 1;
  return true;
}

bool Meg::learn(Index i, Index j, double change) {
  form_->open(i, j);
  const bool added = add(change);
  form_->close();
  return added;
}

MegStatus Meg::trial(const MegStream& stream, Offset t) {
  const MegMargin margin{stream.y[t], stream.gamma, stream.strict};
  if (!stream.values && !look()) return MegStatus::not_finite;
  form_->open(stream.i[t], stream.j[t]);
  MegAnswer answer = ask(stream.values ? nullptr : &margin);
  if (answer.status == MegStatus::ok) {
    answer.update = asks_update(margin, answer.log_score);
    stream.out[t] = stream.values ? answer.log_score : answer.positive ? 1 : -1;
    stream.updated[t] = answer.update;
    if (answer.update && !add(stream.step[t] * stream.y[t])) answer.status = MegStatus::not_finite;
  }
  form_->close();
  return answer.status;
}

Offset Meg::run(const MegStream& stream, MegStatus& status) {
  const MegClock before = clock_;
  form_->mark();
  Offset t = 0;
  const auto undo = [&] {
    form_->rollback();
    clock_ = before;
  };
  try {
    while (t < stream.count && (status = trial(stream, t)) == MegStatus::ok) ++t;
  } catch (...) {  // from a product that the caller defines
    undo();
    throw;
  }
  if (t == stream.count) {
    form_->forget_mark();
    return -1;
  }
  undo();
  return t;
}

}  // namespace lacunar
