// The expectation step of a low-rank model of partially observed rows, x_j = mean_j + v_j z + noise, in one pass.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// Lengths of the rows of the two tables of `factor_sums` for codes of k numbers.
constexpr Offset factor_width(int k) { return static_cast<Offset>(k) * (k + 1) / 2 + k + 1; }
constexpr Offset factor_sums_width(int k) { return static_cast<Offset>(k + 1) * (k + 2) / 2 + k + 1; }

// model (n_cols, factor_width): packed lower triangle of E v_j v_j^T, then v_j, then mean_j.
// sums (n_cols, factor_sums_width), added to: over the rows that observe j, packed lower triangle of E u u^T and x_j E
// u, with u = (z, 1). moment (k (k + 1) / 2), added to: E z z^T over the rows with an entry. Each z has the normal
// posterior of precision (noise I + sum_j E v_j v_j^T) / noise. The number of rows that a ridge had to rescue.
// O(n_observed k^2 + n_rows k^3); the same bits for any number of threads.
template <class T>
Offset factor_sums(const Rows<T>& rows, const double* model, int k, double noise, double* sums, double* moment,
                   int n_threads);

}  // namespace lacunar
