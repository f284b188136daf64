// Exponentials of small symmetric tridiagonal matrices: the scalar end of every Lanczos process.
#pragma once

#include <vector>

namespace lacunar {

// log(e_1^T exp(T) e_1) for T symmetric tridiagonal of order k, diagonal a (k) and off-diagonal b (k - 1), by implicit
// QL on the eigenvalues and first components alone (Golub, Welsch 1969). largest receives the largest eigenvalue. NaN
// when an entry is not finite or QL does not converge. O(k^2).
class TridiagonalExponential {
 public:
  double log_first(const double* a, const double* b, int k);
  double largest() const { return largest_; }

 private:
  bool diagonalise(int k);

  std::vector<double> d_, e_, z_;
  double largest_ = 0;
};

}  // namespace lacunar
