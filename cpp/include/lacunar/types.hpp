// The vocabulary of the core: index widths and borrowed views of the observed-entries format.
#pragma once

#include <cstdint>

namespace lacunar {

using Index = std::int32_t;   // a column number
using Offset = std::int64_t;  // a row number, or a position among the observed entries

// Rows of a partially observed table, borrowed. Contract: offsets (n_rows + 1) start at 0 and never fall, indices of a
// row are sorted, unique and in [0, n_cols), values are finite.
template <class T>
struct Rows {
  const Offset* offsets;
  const Index* indices;
  const T* values;
  Offset n_rows;
  Offset n_cols;

  Offset n_observed() const { return offsets[n_rows] - offsets[0]; }
};

// Entries of the longest of some rows, at least 1.
template <class T>
Offset longest_row(const Rows<T>& rows, const Offset* order, Offset n_order) {
  Offset longest = 1;
  for (Offset k = 0; k < n_order; ++k) {
    const Offset entries = rows.offsets[order[k] + 1] - rows.offsets[order[k]];
    longest = entries > longest ? entries : longest;
  }
  return longest;
}

}  // namespace lacunar
