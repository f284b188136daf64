#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "lacunar/dual/dual.hpp"
#include "lacunar/kernels.hpp"
#include "lacunar/parallel/prefetch.hpp"

namespace lacunar {
namespace {

class MulticlassSolver {
 public:
  MulticlassSolver(const MulticlassProblem& problem, double* tau, double* score)
      : p_(problem),
        tau_(tau),
        score_(score),
        sorted_(static_cast<std::size_t>(p_.k)),
        change_(sorted_),
        diagonal_(static_cast<std::size_t>(p_.n)),
        room_(static_cast<std::size_t>(p_.n * p_.k)) {
    for (Offset i = 0; i < p_.n; ++i) {
      diagonal_[static_cast<std::size_t>(i)] = static_cast<double>(p_.gram[i * p_.n + i]);
      for (Offset c = 0; c < p_.k; ++c) look_for_room(i, c);
    }
  }

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
      const Offset label = p_.label[i];
      double top = score_[i];
      out.finite = out.finite && std::isfinite(diagonal(i));
      for (Offset c = 0; c < p_.k; ++c) {
        const double score = score_[place(i, c)];
        out.finite = out.finite && std::isfinite(score);
        norm += tau_[place(i, c)] * (score - (c == label ? 0.0 : 1.0));
        top = std::max(top, score);
      }
      loss += p_.upper[i] * (top - score_[place(i, label)]);
      linear += tau_[place(i, label)];
    }
    out.primal = 0.5 * norm + loss;
    out.dual = linear - 0.5 * norm;
    return out;
  }

 private:
  Offset place(Offset i, Offset c) const { return c * p_.n + i; }
  double diagonal(Offset i) const { return diagonal_[static_cast<std::size_t>(i)]; }
  double cap(Offset i, Offset c) const { return c == p_.label[i] ? p_.upper[i] : 0.0; }
  void look_for_room(Offset i, Offset c) {
    room_[static_cast<std::size_t>(place(i, c))] = tau_[place(i, c)] < cap(i, c) ? 1.0F : 0.0F;
  }

  // Row i exactly: min 1/2 a |t|^2 + b t with sum t = 0, t_k <= upper [k = label]; t_k = cap_k + min(0, (nu - s_k) / a)
  // with s_k = b_k + a cap_k and sum_k max(0, s_k - nu) = a upper: nu by sorting (Crammer & Singer 2002, Section 5).
  void solve_row(Offset i) {
    const double a = diagonal(i);
    for (Offset c = 0; c < p_.k; ++c)
      change_[static_cast<std::size_t>(c)] = score_[place(i, c)] + a * (cap(i, c) - tau_[place(i, c)]);
    const double nu = threshold(a * p_.upper[i]);
    for (Offset c = 0; c < p_.k; ++c) {
      double &tau = tau_[place(i, c)], &change = change_[static_cast<std::size_t>(c)];
      const double updated = cap(i, c) + std::min(0.0, (nu - change) / a);
      change = updated - tau;
      tau = updated;
      look_for_room(i, c);
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

  // score += gram[i] change^T, and the row of the largest estimated gain (the first of equals); -1 if every row is
  // optimal.
  Offset move_and_choose(Offset i) {
    const float* row = p_.gram + i * p_.n;
    double best = 0, gains[kSweep];
    Offset chosen = -1;
    for (Offset start = 0; start < p_.n; start += kSweep) {
      const Offset count = std::min(kSweep, p_.n - start);
      // The row comes from main memory and the hardware's own prefetch stops at every page.
      prefetch<For::reading>(row, start + 4 * kSweep, std::min(start + 5 * kSweep, p_.n));
      const ClassRows rows{score_ + start, room_.data() + start, p_.upper + start, diagonal_.data() + start};
      kernels().class_sweep(row + start, change_.data(), p_.k, p_.n, rows, gains, count);
      const double* const top = std::max_element(gains, gains + count);
      if (*top > best) {
        best = *top;
        chosen = start + (top - gains);
      }
    }
    return chosen;
  }

  MulticlassProblem p_;
  double *tau_, *score_;
  std::vector<double> sorted_, change_;  // (k) each
  std::vector<double> diagonal_;         // (n): in the Gram it is a cache line a row
  std::vector<float> room_;              // (k, n): 0 where tau is at its cap
};

}  // namespace

DualProgress ascend(const MulticlassProblem& problem, double* tau, double* score, Offset max_steps, double tol) {
  MulticlassSolver solver(problem, tau, score);
  return ascend_by_periods(solver, std::max<Offset>(problem.n / 8, 16), max_steps, tol);
}

}  // namespace lacunar
