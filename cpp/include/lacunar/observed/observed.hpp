// Passes over the observed-entries format itself.
#pragma once

#include "lacunar/observed/status.hpp"
#include "lacunar/types.hpp"

namespace lacunar {

// Checks the whole contract of Rows, offsets included, without trusting any of it. O(n_rows + n_observed).
template <class T>
Failure find_fault(const Rows<T>& rows, Offset n_stored);

// For assertions at the core's doors: offsets do not fall, and columns ascend within every row and lie below n_cols.
// The rows may be a slice, whose offsets begin after 0. O(n_observed).
template <class T>
bool well_ordered(const Rows<T>& rows) {
  for (Offset row = 0; row < rows.n_rows; ++row) {
    if (rows.offsets[row] < 0 || rows.offsets[row + 1] < rows.offsets[row]) return false;
    Index before = -1;
    for (Offset p = rows.offsets[row]; p < rows.offsets[row + 1]; before = rows.indices[p++])
      if (rows.indices[p] <= before || rows.indices[p] >= rows.n_cols) return false;
  }
  return true;
}

// Column view: entry p of column j is row[p], found at positions[p] of the row-wise values. O(n_observed + n_cols).
void transpose(const Rows<double>& rows, Offset* column_offsets, Offset* row_of, Offset* positions);

}  // namespace lacunar
