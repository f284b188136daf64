// The code of a partially observed row in a basis V: normal equations over its observed entries and their factor.
#pragma once

#include <vector>

#include "lacunar/rls/small_dense.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

constexpr double kLeastTold = .05;  // of a cell whose error is told: 1 - its leverage

// Cells of a row, each predicted from the code of the others: what the row's own code misses of them, 1 - leverage, and
// back (., leading) = (gram + ridge inner)^-1 v.
struct HiddenCells {
  std::vector<double> error, free, back;
};

class RowCode {
 public:
  RowCode(int d, Offset largest);  // room for rows of up to `largest` entries

  // From `rows` (m, leading), which the caller has gathered: gram = V_O^T V_O, right = V_O^T x, size = |x|^2. m d^2
  // / 2.
  template <class T>
  void load(const T* of, int m);

  // Leaves the entries at these places (rising) out of the loaded row: the last ones take theirs, also in `columns`
  // (m). k d^2 / 2 + m d for k places.
  void leave_out(const std::vector<Index>& places, Index* columns);

  // Factor of gram + ridge inner, where inner (leading, leading) is null for the identity. False, and no factor, when a
  // pivot falls below `least` in units of the mean diagonal. d^3 / 3.
  bool factorise(double ridge, const double* inner, double least);

  // Factor of gram with a small ridge of its own, after `factorise` said that it is singular.
  void rescue(double ridge);

  // Without a factor: the shortest code in the coordinates of U = V T, T (leading, leading) or null for V itself, among
  // those that minimise |x - U_O a|^2 + (label - along a)^2; `along` (leading) may be null. Returns the rank. O(m d^2).
  int shortest(const double* t, const double* along, double label, std::vector<double>& code);

  // out = (gram + ridge inner)^-1 of `of`. 2 d^2.
  void solve(const std::vector<double>& of, std::vector<double>& out) const;

  // |x - V_O code|^2, from the normal equations.
  double left(const std::vector<double>& code);

  // Predicts the cells at `places`, each from the code of the others, and returns the mean of the squared errors, or 0
  // where there are none; `code` is that of all. 2 d^3 / 3 and d^2 a cell.
  double hide(const std::vector<int>& places, const std::vector<double>& code, HiddenCells& cells);

  // packed (d (d + 1) / 2) = the lower triangle of (gram + ridge inner)^-1, by rows. 2 d^3 / 3.
  void inverse(double* packed);

  // trace of (gram + ridge inner)^-1. d^3 / 3.
  double inverse_trace();

  double gram_trace() const;

  int d, leading, m = 0;
  std::vector<double> rows, values, x, gram, right;  // x: the values, until a step writes its residuals there
  double size = 0;

 private:
  void invert();

  std::vector<double> factor_, scratch_, root_, inverse_, tall_, aim_, out_;
  LeastNormWork work_;
};

}  // namespace lacunar
