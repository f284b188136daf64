// Recursive least squares over the observed entries of a stream of rows: PETRELS (Chi, Eldar, Calderbank 2012) and SLRM
// (Ganti, Willett: Algorithms 1 and 2), with the subspace kept as U = V T so that a row costs nothing per unseen
// column.
#pragma once

#include "lacunar/rls/cell_screen.hpp"
#include "lacunar/rls/memories.hpp"
#include "lacunar/rls/scout.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

constexpr int kMaxRank = 1024;  // of a basis; the layouts above hold for any, but 32-bit positions must count its squares

// How much of the past a step keeps.
struct Forgetting {
  enum class Kind { fixed, window, adaptive } kind = Kind::fixed;  // adaptive: as its memories say
  double keep = 1;               // fixed: what a step multiplies the past by
  double lost = 3, start = 300;  // window: keep = 1 - lost / (age + start)
};

// What this step multiplies the past by, where that does not depend on the rows; advances the clock's age.
double keep_of(const Forgetting& rule, double* clock);

struct RlsRule {
  double lam1 = 0;                     // weight of the entries against the label; infinite: codes do not see the label
  double lam2 = 0, lam3 = 0, rho = 0;  // proximal step on w; rho = 0 leaves w alone
  Offset constant_until = 1;           // steps at rho before it falls as 1 / t
  bool continuous = true;              // ... from rho (rho t0 / t), not from rho / t as printed
  double ridge = 0;                    // on codes
  bool automatic = false;              // ... or less, where the memories say that there is less noise
  double cap = 1e6;                    // largest diagonal of an inverse correlation after growth, in units of `delta`
  double delta = 1;                    // what inverse correlations start from, times the identity
  bool orthonormal = false;            // step 7: U <- U (U^T U)^(-1/2) after every row
  Forgetting forgetting;
};

// Borrowed and updated in place. Contract: d <= kMaxRank; slot[j] >= 0 for every column of the rows given.
template <class P>
struct RlsState {
  Offset n_cols;
  int d;
  double* v;          // (n_cols, d)
  double* t;          // (d, d), U = V T
  double* t_inverse;  // (d, d)
  double* w;          // (d)
  const Index* slot;  // (n_cols), position in the pool
  P* pool;            // (slots, rls_stride<P>(d)): inverse correlations R_j, lower triangles
  double* discount;   // (n_cols), log of the discount when a column was last seen
  double* clock;      // kRlsClock numbers, below
  double* codes;      // (d, d), labelled (d), labels (1): the sums of LabelSums, in V's coordinates; null to keep none
  double* labelled;
  double* labels;
  MemoryState memories = {};
  ScreenState screen = {};
  ScoutState scout = {};
};

// Of the step of one row in a basis of rank d, about.
template <class T>
Offset operations_of(const Rows<T>& rows, Offset row, int d) {
  return (2 * (rows.offsets[row + 1] - rows.offsets[row]) + 4 * static_cast<Offset>(d)) * d * d;
}

// Discounted sums over labelled rows behind label weights: a a^T, y a and 1, where a has not seen the label.
struct LabelSums {
  double *codes, *labelled, *labels;  // (d, d), (d), (1)
};
void remember_label(const LabelSums& sums, int d, double discount, double label, const double* code);

// Elements of one stored inverse correlation: blocks of eight columns for double, the packed triangle for float.
template <class P>
constexpr Offset rls_stride(int d);
template <>
constexpr Offset rls_stride<float>(int d) {
  return static_cast<Offset>(d) * (d + 1) / 2;
}
template <>
constexpr Offset rls_stride<double>(int d) {
  Offset total = 0;
  for (int i = 0; i < d; ++i) total += i / 8 * 8 + 8;
  return total;
}

// What a row was before its own step: w a and |x - U a|^2 / |x|^2 with its code a that has not seen the label.
struct RlsTrace {
  double* prediction;  // (n_rows), or null
  double* residual;    // (n_rows), or null
};

// Rows in order (row numbers, n_order of them); label (n_rows) may be null, NaN is unlabelled; rows without entries are
// skipped. Stops before the first row that would leave the finite numbers and returns its position in order, else -1.
// O(o d^2 + d^3) a row of o entries.
template <class P, class T>
Offset rls_pass(const Rows<T>& rows, const Offset* order, Offset n_order, const double* label, const RlsRule& rule,
                const RlsState<P>& state, const RlsTrace& trace);

}  // namespace lacunar
