// Entries of the inverse of a sparse symmetric matrix where its factor has entries, of which the diagonal is kept.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// A = L diag(pivots) L^T, n columns, L unit lower triangular: `lower` holds column j of L below its diagonal as row j,
// rows ascending. Contract: the pattern is closed under elimination (any two rows of a column j meet in a later
// column), as a factor without cancellation has it. `tail` (k, k) is the inverse's last block, symmetric, C order, when
// k > 0. inverse_diagonal (n,) out. Takahashi, Fagan and Chen (1973): Z_ij = -sum_k Z_ik L_kj, columns from the last to
// the first. O(sum over columns of what their rows' columns hold); memory O(nnz).
void selected_inverse(const Rows<double>& lower, const double* pivots, const double* tail, Offset k,
                      double* inverse_diagonal);

}  // namespace lacunar
