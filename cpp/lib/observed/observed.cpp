#include "lacunar/observed/observed.hpp"

#include <cmath>

#include "lacunar/parallel/interrupt.hpp"

namespace lacunar {

namespace {

// Whether entries [begin, end) keep the contract: without a branch, so that it runs in vectors.
template <class T>
bool sound(const Rows<T>& rows, Offset begin, Offset end) {
  const auto n_cols = static_cast<std::uint32_t>(rows.n_cols);  // negative columns lie beyond it, too
  std::int32_t outside = 0, late = 0, infinite = 0;
  for (Offset p = begin; p < end; ++p)
    outside |= static_cast<std::int32_t>(static_cast<std::uint32_t>(rows.indices[p]) >= n_cols);
  for (Offset p = begin + 1; p < end; ++p) late |= static_cast<std::int32_t>(rows.indices[p] <= rows.indices[p - 1]);
  for (Offset p = begin; p < end; ++p)
    infinite |= static_cast<std::int32_t>(!(rows.values[p] - rows.values[p] == 0));  // NaN for NaN and infinities
  return (outside | late | infinite) == 0;
}

// The first entry of a row that breaks it.
template <class T>
Failure fault_in(const Rows<T>& rows, Offset row, Offset begin, Offset end) {
  Index previous = -1;
  for (Offset p = begin; p < end; ++p) {
    const Index j = rows.indices[p];
    if (j < 0) return {Status::index_negative, row, p};
    if (j >= rows.n_cols) return {Status::index_too_large, row, p};
    if (j == previous) return {Status::index_repeated, row, p};
    if (j < previous) return {Status::index_unsorted, row, p};
    if (!std::isfinite(rows.values[p])) return {Status::not_finite, row, p};
    previous = j;
  }
  return {};
}

}  // namespace

template <class T>
Failure find_fault(const Rows<T>& rows, Offset n_stored) {
  if (rows.offsets[0] != 0) return {Status::offsets_decrease, 0, rows.offsets[0]};
  InterruptCheck check;
  for (Offset row = 0; row < rows.n_rows; ++row) {
    check.after(1);
    const Offset begin = rows.offsets[row], end = rows.offsets[row + 1];
    if (end < begin || end > n_stored) return {Status::offsets_decrease, row, end};
    if (!sound(rows, begin, end))
      if (const Failure fault = fault_in(rows, row, begin, end); !fault.ok()) return fault;
    check.after(end - begin);
  }
  if (rows.offsets[rows.n_rows] != n_stored) return {Status::offsets_decrease, rows.n_rows, rows.offsets[rows.n_rows]};
  return {};
}

template Failure find_fault(const Rows<float>&, Offset);
template Failure find_fault(const Rows<double>&, Offset);

void transpose(const Rows<double>& rows, Offset* column_offsets, Offset* row_of, Offset* positions) {
  const Offset n_observed = rows.n_observed();
  for (Offset j = 0; j <= rows.n_cols; ++j) column_offsets[j] = 0;
  InterruptCheck check;
  for (Offset p = 0; p < n_observed; ++p) ++column_offsets[rows.indices[p] + 1];
  for (Offset j = 0; j < rows.n_cols; ++j) column_offsets[j + 1] += column_offsets[j];
  for (Offset row = 0; row < rows.n_rows; ++row) {
    for (Offset p = rows.offsets[row]; p < rows.offsets[row + 1]; ++p) {
      const Offset slot = column_offsets[rows.indices[p]]++;  // the offsets serve as cursors ...
      row_of[slot] = row;
      positions[slot] = p;
    }
    check.after(8 * (rows.offsets[row + 1] - rows.offsets[row]));
  }
  for (Offset j = rows.n_cols; j > 0; --j) column_offsets[j] = column_offsets[j - 1];  // ... and are put back
  column_offsets[0] = 0;
}

}  // namespace lacunar
