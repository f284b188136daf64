// Columns of a table over their observed entries: moments, and the table standardised by them.
#pragma once

#include "lacunar/kernels.hpp"

namespace lacunar {

// total (d,): summed weights of the entries; mean and variance (d,) with these weights, 0 where total is 0. Sums run in
// the order of the rows. weight (n,) or null for ones. O(n_observed), two passes: a variance by differences of squares
// cancels.
template <class T>
void column_moments(const Rows<T>& rows, const double* weight, double* total, double* mean, double* variance,
                    int n_threads);

// `count` entries standardised, rounded once to Out, then clipped. False where one is beyond 1e150 (1e30 in
// float), or, where it is clipped, not finite.
template <class T, class Out>
bool standardise(const T* values, const Index* columns, Offset count, const Columns& by, Out* out, int n_threads);

}  // namespace lacunar
