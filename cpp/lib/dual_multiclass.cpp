#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "lacunar/dual.hpp"

namespace lacunar {
namespace {

class MulticlassSolver {
 public:
  MulticlassSolver(const MulticlassProblem& problem, double* tau, double* score)
      : p_(problem), tau_(tau), score_(score), sorted_(static_cast<std::size_t>(p_.k)), change_(sorted_) {}

  Offset first() {
    std::fill(change_.begin(), change_.end(), 0.0);
    return move_and_choose(0);
  }

  Offset step(Offset i) {
    solve_row(i);
    return move_and_choose(i);
  }

  DualProgress measure() const {
    DualProgress out;
    double norm = 0, loss = 0, linear = 0;
    for (Offset i = 0; i < p_.n; ++i) {
      const double *tau = tau_ + i * p_.k, *score = score_ + i * p_.k;
      const Offset label = p_.label[i];
      out.finite = out.finite && std::isfinite(diagonal(i));
      for (Offset c = 0; c < p_.k; ++c) {
        out.finite = out.finite && std::isfinite(score[c]);
        norm += tau[c] * (score[c] - (c == label ? 0.0 : 1.0));
      }
      loss += p_.upper[i] * (*std::max_element(score, score + p_.k) - score[label]);
      linear += tau[label];
    }
    out.primal = 0.5 * norm + loss;
    out.dual = linear - 0.5 * norm;
    return out;
  }

 private:
  double diagonal(Offset i) const { return static_cast<double>(p_.gram[i * p_.n + i]); }

  // Row i exactly: min 1/2 a |t|^2 + b t with sum t = 0, t_k <= upper [k = label]; t_k = cap_k + min(0, (nu - s_k) / a)
  // with s_k = b_k + a cap_k and sum_k max(0, s_k - nu) = a upper: nu by sorting (Crammer & Singer 2002, Section 5).
  void solve_row(Offset i) {
    const double u = p_.upper[i], a = diagonal(i);
    double *tau = tau_ + i * p_.k, *score = score_ + i * p_.k;
    for (Offset c = 0; c < p_.k; ++c) {
      const double cap = c == p_.label[i] ? u : 0.0;
      change_[static_cast<std::size_t>(c)] = score[c] + a * (cap - tau[c]);
    }
    const double nu = threshold(a * u);
    for (Offset c = 0; c < p_.k; ++c) {
      const double cap = c == p_.label[i] ? u : 0.0, s = change_[static_cast<std::size_t>(c)];
      const double updated = cap + std::min(0.0, (nu - s) / a);
      change_[static_cast<std::size_t>(c)] = updated - tau[c];
      tau[c] = updated;
    }
  }

  double threshold(double mass) {  // nu with sum_k max(0, change_k - nu) = mass
    sorted_ = change_;
    std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
    double sum = 0, nu = 0;
    for (std::size_t r = 0; r < sorted_.size(); ++r) {
      if (r > 0 && sorted_[r] <= nu) break;
      sum += sorted_[r];
      nu = (sum - mass) / static_cast<double>(r + 1);
    }
    return nu;
  }

  // score += gram[i]^T change, and the row of the largest estimated gain; -1 if every row is optimal.
  Offset move_and_choose(Offset i) {
    const float* row = p_.gram + i * p_.n;
    double best = 0;
    Offset chosen = -1;
    for (Offset j = 0; j < p_.n; ++j) {
      const double weight = static_cast<double>(row[j]);
      double* score = score_ + j * p_.k;
      for (Offset c = 0; c < p_.k; ++c) score[c] += weight * change_[static_cast<std::size_t>(c)];
      const double gain = estimate(j);
      if (gain > best) {
        best = gain;
        chosen = j;
      }
    }
    return chosen;
  }

  // The violation psi of row j, max over classes of the score less its minimum over those that may still grow
  // (Crammer & Singer 2002, Section 6), times the largest step it could take.
  double estimate(Offset j) const {
    const double *tau = tau_ + j * p_.k, *score = score_ + j * p_.k, u = p_.upper[j], a = diagonal(j);
    if (u <= 0 || a <= 0) return 0;
    double top = -std::numeric_limits<double>::infinity(), bottom = -top;
    for (Offset c = 0; c < p_.k; ++c) {
      top = std::max(top, score[c]);
      if (tau[c] < (c == p_.label[j] ? u : 0.0)) bottom = std::min(bottom, score[c]);
    }
    const double psi = top - bottom;
    return psi > 1e-14 * (1 + std::abs(top)) ? psi * std::min(psi / a, u) : 0;
  }

  MulticlassProblem p_;
  double *tau_, *score_;
  std::vector<double> sorted_, change_;  // (k) each
};

}  // namespace

DualProgress ascend(const MulticlassProblem& problem, double* tau, double* score, Offset max_steps, double tol) {
  MulticlassSolver solver(problem, tau, score);
  return ascend_by_periods(solver, std::max<Offset>(problem.n / 8, 16), max_steps, tol);
}

}  // namespace lacunar
