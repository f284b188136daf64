// Sums over the pairs of observed entries of a row: what covariances of partially observed rows are made of.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

// Tables (n_cols, n_cols) that are added to. With z = x - shift on observed entries:
struct PairTables {
  double* product;  // upper triangle: sum of z_i z_j over rows that observe i and j
  Offset* count;    // upper triangle: the number of those rows; or null
  double* cross;    // whole: sum of z_i over rows that observe i and j; or null
};

// A task owns `stripe` rows of the tables, which should stay in cache, and reads every row: no atomics, no private
// tables, and each sum is in the order of the rows for any stripe and number of threads. Where that is one task, there
// are as many of about equal work as threads have enough to do. O(sum of squared entries of a row).
template <class T>
void column_pair_sums(const Rows<T>& rows, const double* shift, Offset stripe, const PairTables& out, int n_threads);

// Where stripes of `height` rows of the tables start, and the end. Where one would do, every thread that has enough to
// do gets one of about the same work: the first rows of a triangle are the longest.
template <class T>
std::vector<Offset> stripe_starts(const Rows<T>& rows, Offset height, const PairTables& out, int n_threads);

// The entries of columns, borrowed: entry e of column j, offsets[j] <= e < offsets[j + 1], is entry positions[e] of the
// rows and lies in row rows[e]; rows of a column ascend.
struct ColumnView {
  const Offset* offsets;
  const Offset* rows;
  const Offset* positions;
};

// The same sums, bit for bit, a row of the tables at a time (Gustavson): for each entry of column i the rest of its
// row. For tables whose stripes would be a few rows high. 8 bytes an entry for z.
template <class T>
void column_pair_sums(const Rows<T>& rows, const ColumnView& columns, const double* shift, const PairTables& out,
                      int n_threads);

// count (n_places, n_places), upper triangle, added to: rows that observe the columns at places i and j, from bit
// columns of blocks of rows. A column's place is -1 if it is left out; without `place` all columns count, n_places =
// n_cols. O(n_observed + n_rows n_places^2 / 64), whatever the density.
template <class T>
void column_pair_counts(const Rows<T>& rows, const Index* place, Offset n_places, Offset* count, int n_threads);

// The upper triangle of table (n, n) written to the lower.
template <class T>
void mirror_upper(T* table, Offset n, int n_threads);

}  // namespace lacunar
