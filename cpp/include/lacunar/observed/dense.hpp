// Dense tables with NaN where missing, as observed entries: a pass that counts and a pass that fills, over blocks of
// rows. Cells are read where they are; what standardises them is applied as they are read.
#pragma once

#include <vector>

#include "lacunar/types.hpp"

namespace lacunar {

// Cells side by side, and the bits (least significant first, from `bit` on) that say which of them are not null.
template <class S>
struct DenseColumn {
  const S* cells;
  const std::uint8_t* valid = nullptr;  // or null, where all are
  Offset bit = 0;
};

template <class S>
struct DenseTable {
  Offset n_rows, n_cols;
  const S* cells = nullptr;  // row i begins at cells + i pitch,
  Offset pitch = 0;
  std::vector<DenseColumn<S>> columns{};  // or, where there are any, the table lies column by column
  const double* center = nullptr;         // (n_cols): a cell x is read as (x - center) / scale,
  const double* scale = nullptr;          // or both null; columns whose scale is NaN are missing
};

// offsets (n_rows + 1) of the observed entries. False where a cell is infinite.
template <class S>
bool count_dense(const DenseTable<S>& table, Offset* offsets, int n_threads);

// The entries themselves, rounded once to T. False where one is not finite, or, standardised, beyond
// 1e150 (1e30 in float).
template <class S, class T>
bool fill_dense(const DenseTable<S>& table, const Offset* offsets, Index* indices, T* values, int n_threads);

}  // namespace lacunar
