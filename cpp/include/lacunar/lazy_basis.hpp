// An orthonormal basis U (n_cols, d) kept as V T, so that a step that changes a few rows of V costs nothing for the others.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

class LazyBasis {
 public:
  // v (n_cols, d), t and t_inverse (d, d) are borrowed; the last two are written back at the end.
  LazyBasis(double* v, Offset n_cols, int d, double* t, double* t_inverse);
  ~LazyBasis();
  LazyBasis(const LazyBasis&) = delete;
  LazyBasis& operator=(const LazyBasis&) = delete;

  int leading() const { return leading_; }
  const std::vector<double>& t_inverse() const { return t_inverse_; }

  // rows (m, leading) = rows of V.
  void gather(const Index* seen, int m, double* rows) const;
  void scatter(const Index* seen, int m, const double* rows);

  // out = T^-1 x, or T^-T x.
  void to_u(const double* x, double* out) const;
  void to_v(const double* x, double* out) const;

  // U <- U (U^T U)^(-1/2) after m rows of V changed from ones of Gram `before` (leading, leading) to `rows`, when U was
  // orthonormal before. `steps` and `lazy` count steps, all and since U was last multiplied out. O(m d^2 + d^3).
  void orthonormalise(const double* rows, int m, const double* before, Offset steps, double& lazy);

 private:
  double& at(std::vector<double>& matrix, int i, int k) const;
  void materialise(double& lazy);
  void turn_all(const std::vector<double>& by);
  void whole_gram(std::vector<double>& out) const;
  void load_panel(Offset first, Offset last, std::vector<double>& panel) const;

  double *v_, *t_out_, *t_inverse_out_;
  Offset n_cols_;
  int d_, leading_;
  std::vector<double> t_, t_inverse_, delta_, root_, moved_, work_;
};

}  // namespace lacunar
