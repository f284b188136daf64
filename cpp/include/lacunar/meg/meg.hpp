// Matrix exponentiated gradient for matrix completion with side information (Herbster, Pasteris, Tse 2020): predictions
// by Lanczos processes, decisions by their Gauss and Gauss-Radau bracket, whole streams of trials.
#pragma once

#include <memory>
#include <vector>

#include "lacunar/meg/meg_forms.hpp"
#include "lacunar/meg/tridiagonal.hpp"

namespace lacunar {

enum class MegStatus { ok, not_finite, not_converged };

struct MegAnswer {
  MegStatus status = MegStatus::ok;
  double log_score = 0;  // log(y_bar + 1): the value, or the lower end of the bracket that settled the decision
  double high = 0;       // the upper end
  bool positive = true;  // y_bar >= 0
  bool update = false;   // the margin rule asks for an update
  int steps = 0;
};

// The margin rule y y_bar <= gamma, < when strict, through log(y_bar + 1).
struct MegMargin {
  double y, gamma;
  bool strict;
};

// Trials in order; step[t] is the step of trial t if it updates.
struct MegStream {
  Offset count;
  const Index *i, *j;
  const double *y, *step;
  double gamma;
  bool strict, values;    // values: log(y_bar + 1) of every trial; else the sign of y_bar, for a third of the cost
  double* out;            // (count)
  std::uint8_t* updated;  // (count)
};

// What is kept of the past beside the form, saved with it. Both bounds are certain: an update raises the
// largest eigenvalue of S A S by step |x|^2 at most, and by Golden and Thompson (as in the paper's proof)
//   tr exp(S A S + s x x^T) <= tr exp(S A S) + (e^(s |x|^2) - 1) / |x|^2 x^T exp(S A S) x,
// whose last factor is the y_bar + 1 just bracketed.
struct MegClock {
  double updates = 0;
  double bound = 0.05;  // > the largest eigenvalue of S A S, and > 0
  double trace = 0;     // >= tr exp(S A S) over the directions that updates have touched
};

// One Lanczos process in the K inner product: q_1 = z / |x|, p = K q, u = A p, alpha = p^T u, u -= alpha q + beta
// q_before, beta^2 = u^T K u. No reorthogonalisation: an eigenvalue found twice costs a step and nothing else.
class MegLanczos {
 public:
  // log e_1^T exp(T) e_1 for the open pair, to the relative accuracy tol / 10 between two steps; with thresholds on it,
  // only until it is certain on which side of each it lies. `bound` >= the largest eigenvalue of S A S rises when a
  // Ritz value passes it.
  MegAnswer ask(MegForm& form, double tol, const std::vector<double>& thresholds, double& bound);

 private:
  void make_room(Offset length);
  void multiply(MegForm& form);  // u = A p, alpha
  bool advance(MegForm& form);   // the next q and p, beta; false where the process is exhausted
  double upper(double& bound);   // Gauss-Radau with the extra node at the bound: an upper end

  TridiagonalExponential exponential_;
  Offset length_ = 0;
  std::vector<double> q_, before_, p_, u_, w_, alpha_, beta_;
};

class Meg {
 public:
  Meg(std::unique_ptr<MegForm> form, double log_scale, double tol)
      : form_(std::move(form)), log_scale_(log_scale), tol_(tol) {
    clock_.trace = static_cast<double>(form_->dimension());
  }

  MegAnswer value(Index i, Index j);
  MegAnswer decide(Index i, Index j, const MegMargin& margin);
  // log_score: of the pair as things stand, or NaN where nobody asked; it keeps the bound tight.
  bool learn(Index i, Index j, double change, double log_score);

  // The first trial that failed, or -1; after a failure, or an exception, those before it are learned.
  Offset run(const MegStream& stream, MegStatus& status);
  Offset n_seen() const { return n_seen_; }  // trials of `run` and `learn` so far

  MegForm& form() { return *form_; }
  MegClock& clock() { return clock_; }

 private:
  MegAnswer ask(const MegMargin* margin);
  bool add(double change, double low, double high);
  MegStatus trial(const MegStream& stream, Offset t);

  std::unique_ptr<MegForm> form_;
  double log_scale_, tol_;
  Offset n_seen_ = 0;
  std::vector<double> thresholds_;
  MegClock clock_;
  MegLanczos lanczos_;
};

}  // namespace lacunar
