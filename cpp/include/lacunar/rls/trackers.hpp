// Subspace trackers of O(o d^2 + d^3) a row and O(n_cols d) memory: PETRELS with one shared correlation matrix, and
// GROUSE.
#pragma once

#include "lacunar/rls/rls.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Running sums behind the automatic ridge and the label weights; all discounted like the correlation.
enum SharedSum { kTotal, kLabelled, kLooks, kLeft, kFreedom, kSize, kEntries, kGramTrace, kSharedSum };

struct SharedRule {
  double lam1 = 0;  // as in RlsRule
  double ridge = 0;
  bool automatic = false;  // ridge = sigma^2 / tau from the running sums, `ridge` until they mean something
  Forgetting forgetting;
};

// U is V itself; what a tracker of per-column correlations R_j ~ (c_j / c) R needs. Borrowed and updated in place.
struct SharedState {
  Offset n_cols;
  int d;
  double* v;         // (n_cols, d)
  double* inverse;   // (d, d), R^-1
  double* count;     // (n_cols), discounted number of rows that saw a column, when last seen
  double* discount;  // (n_cols), log of the discount when a column was last seen
  double* sums;      // kSharedSum numbers
  double* codes;     // (d, d): sum of a a^T over labelled rows, a not having seen the label
  double* labelled;  // (d): sum of y a
  double* w;         // (d), label weights; turned with V
  double* clock;     // kRlsClock numbers
  MemoryState memories = {};
  ScreenState screen = {};
  ScoutState scout = {};
};

// As rls_pass. All columns share a gain, so that a row of o entries costs o d^2 / 2 + d^3 / 3.
template <class T>
Offset shared_pass(const Rows<T>& rows, const Offset* order, Offset n_order, const double* label,
                   const SharedRule& rule, const SharedState& state, const RlsTrace& trace);

// The automatic ridge of running sums, or `otherwise` while they are empty: sigma^2 = left / freedom is the noise of an
// entry, tau = (size - entries sigma^2) / gram trace the variance of a code.
double ridge_of(const double* sums, int d, double otherwise);

struct GrouseState {
  Offset n_cols;
  int d;
  double* v;          // (n_cols, d)
  double* t;          // (d, d), U = V T orthonormal
  double* t_inverse;  // (d, d)
  double* clock;      // kRlsClock numbers
  ScreenState screen = {};
};

// Balzano, Nowak, Recht (2010), the greedy step with its angle times `damping`; codes with a ridge.
template <class T>
Offset grouse_pass(const Rows<T>& rows, const Offset* order, Offset n_order, double damping, double ridge,
                   const GrouseState& state, const RlsTrace& trace);

}  // namespace lacunar
