// Passes over the observed-entries format itself.
#pragma once

#include "lacunar/status.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Checks the whole contract of Rows, offsets included, without trusting any of it. O(n_rows + n_observed).
template <class T>
Failure find_fault(const Rows<T>& rows, Offset n_stored);

// Column view: entry p of column j is row[p], found at positions[p] of the row-wise values. O(n_observed + n_cols).
void transpose(const Rows<double>& rows, Offset* column_offsets, Offset* row_of, Offset* positions);

}  // namespace lacunar
