// Solves with a sparse symmetric matrix by its factor.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// out (n, k) = A^-1 right (n, k), row major, for P A P^T = L diag(pivots) L^T, n columns, L unit lower triangular:
// `lower` holds column j of L below its diagonal as row j, and row i of A is row place[i] of P A P^T. O(k nnz(L)). The
// bits of a column do not depend on the others.
void factor_solve(const Rows<double>& lower, const double* pivots, const Index* place, const double* right, Offset k,
                  double* out);

}  // namespace lacunar
