// An orthonormal basis U (n_cols, d) kept as V T, so that a step that changes a few rows of V costs nothing for the
// others.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

// rows (m, leading) = the rows `seen` of v (., d); the padding is left alone.
void gather_rows(const double* v, int d, const Index* seen, int m, int leading, double* rows);

// v <- v by, and out = v^T v, for v (n_cols, d) and padded squares. n_cols d^2.
void turn_columns(double* v, Offset n_cols, int d, int leading, const std::vector<double>& by);
void columns_gram(const double* v, Offset n_cols, int d, int leading, std::vector<double>& out);

class LazyBasis {
 public:
  // v (n_cols, d), t and t_inverse (d, d) are borrowed; the last two are written back at the end.
  LazyBasis(double* v, Offset n_cols, int d, double* t, double* t_inverse);
  ~LazyBasis();
  LazyBasis(const LazyBasis&) = delete;
  LazyBasis& operator=(const LazyBasis&) = delete;

  int leading() const { return leading_; }
  const std::vector<double>& t() const { return t_; }
  const std::vector<double>& t_inverse() const { return t_inverse_; }

  // rows (m, leading) = rows of V.
  void gather(const Index* seen, int m, double* rows) const;
  void scatter(const Index* seen, int m, const double* rows);

  // out = T^-1 x, T x, or T^-T x.
  void to_u(const double* x, double* out) const;
  void from_u(const double* x, double* out) const;
  void to_v(const double* x, double* out) const;

  // U <- U (U^T U)^(-1/2) after m rows of V changed from ones of Gram `before` (leading, leading) to `rows`, when U was
  // orthonormal before. `steps` and `lazy` count steps, all and since U was last multiplied out. O(m d^2 + d^3).
  void orthonormalise(const double* rows, int m, const double* before, Offset steps, double& lazy);

  // U <- U (I + (cos angle - 1) a a^T) + sin angle (r / |r|) a^T on the rows `seen`, with a (leading) the unit vector
  // `direction` and r (m) of norm `size`: a rotation of U towards r. O(m d + d^2), and n_cols d where it is near 90
  // degrees.
  void rotate(const Index* seen, int m, const double* r, double size, const std::vector<double>& direction,
              double angle, double& lazy);

 private:
  void refresh_when_due(int m, double& lazy);
  double& at(std::vector<double>& matrix, int i, int k) const;
  void materialise(double& lazy);

  double *v_, *t_out_, *t_inverse_out_;
  Offset n_cols_;
  int d_, leading_;
  std::vector<double> t_, t_inverse_, delta_, root_, moved_, work_;
};

}  // namespace lacunar
