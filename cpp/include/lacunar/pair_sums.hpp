// Sums over the pairs of observed entries of a row: what covariances of partially observed rows are made of.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// Tables (n_cols, n_cols) that are added to. With z = x - shift on observed entries:
struct PairTables {
  double* product;  // upper triangle: sum of z_i z_j over rows that observe i and j
  Offset* count;    // upper triangle: the number of those rows; or null
  double* cross;    // whole: sum of z_i over rows that observe i and j; or null
};

// A task owns `stripe` rows of the tables, which should stay in cache, and reads every row: no atomics, no private tables,
// and each sum is in the order of the rows for any stripe and number of threads. O(sum of squared entries of a row).
template <class T>
void column_pair_sums(const Rows<T>& rows, const double* shift, Offset stripe, const PairTables& out, int n_threads);

}  // namespace lacunar
