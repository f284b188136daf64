// Products of rows with matrices: with one given, and with the Gram matrix of the rows' own columns, never formed.
#pragma once

#include "lacunar/types.hpp"

namespace lacunar {

// out (n_cols, width) = X^T X v for v (n_cols, width), X the rows with 0 where nothing is observed. One pass: an entry
// is read for t = x_a v and again, from cache, for out += x_a t. Rows are cut into parts by the table alone, each part
// has an `out` of its own and parts are added in order: the same bits for any number of threads. O(n_observed width).
template <class T>
void column_gram_product(const Rows<T>& rows, const double* v, int width, double* out, int n_threads);

// out (n, width) = a (n, depth) b (depth, width), all C ordered. The bits of a row of out are those of its row of a
// alone.
template <class T>
void row_product(const T* a, Offset n, Offset depth, const double* b, Offset width, double* out, int n_threads);

}  // namespace lacunar
