"""The arrays of an `Observed` from arrays, sparse matrices, triplets and data frames, and the values of frames."""

from __future__ import annotations

from typing import Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lacunar.observed.contract import (
    check_dense,
    check_duplicates_policy,
    check_frame_columns,
    check_ids,
    check_triplets,
    refuse_duplicate,
)

Duplicates = Literal["error", "last", "mean"]
Entries = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], tuple[int, int]]  # indptr, indices, values, shape


def dense_entries(X: ArrayLike, dtype: DTypeLike | None) -> Entries:
    """Everything of an array that is not NaN."""
    dense = check_dense(X, dtype)
    seen = ~np.isnan(dense)
    indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(seen)[1].astype(np.int32)
    return indptr, columns, np.ascontiguousarray(dense[seen]), dense.shape


def sparse_entries(csr: Any) -> Entries:
    """The stored entries of a CSR array that are not NaN."""
    keep = ~np.isnan(csr.data)
    if keep.all():
        indptr, indices, values = csr.indptr, csr.indices, csr.data
    else:
        dropped = np.concatenate([[0], np.cumsum(~keep)])
        indptr, indices, values = csr.indptr - dropped[csr.indptr], csr.indices[keep], csr.data[keep]
    return indptr.astype(np.int64), indices.astype(np.int32), np.ascontiguousarray(values), csr.shape


def triplet_entries(
    row: ArrayLike,
    col: ArrayLike,
    value: ArrayLike,
    shape: tuple[int, int] | None,
    duplicates: Duplicates,
    dtype: DTypeLike | None,
) -> Entries:
    """Triplets sorted by row and column, several of one cell settled."""
    check_duplicates_policy(duplicates)
    rows, cols, values, shape = check_triplets(row, col, value, shape, dtype)
    order = np.lexsort((cols, rows))
    rows, cols, values = rows[order], cols[order], values[order]
    fresh = np.ones(rows.size, dtype=bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (cols[1:] != cols[:-1])
    if not fresh.all():
        if duplicates == "error":
            twice = int(np.argmin(fresh))
            refuse_duplicate(int(rows[twice]), int(cols[twice]))
        starts = np.flatnonzero(fresh)
        ends = np.append(starts[1:], rows.size)
        if duplicates == "mean":
            values = (np.add.reduceat(values.astype(np.float64), starts) / (ends - starts)).astype(values.dtype)
        else:
            values = values[ends - 1]  # the sort is stable: the last of a run came last
        rows, cols = rows[starts], cols[starts]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]).astype(np.int64)
    return indptr, cols.astype(np.int32), values, shape


def frame_values(df: Any) -> NDArray[Any]:
    """A frame of numeric columns as an array of shape (n, d) with NaN for its nulls."""
    frame = nw.from_native(df, eager_only=True)
    check_frame_columns(frame)
    columns = [frame.get_column(name).cast(nw.Float64).to_numpy() for name in frame.columns]  # a name may be a number
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def long_frame_triplets(df: Any, row: str, col: str, value: str) -> tuple[NDArray[Any], ...]:
    """Sorted ids of rows and the row of every line, the same of columns, and the values."""
    frame = nw.from_native(df, eager_only=True)
    check_frame_columns(frame.select(value))
    check_ids(frame, row, col)
    row_ids, rows = np.unique(frame.get_column(row).to_numpy(), return_inverse=True)
    col_ids, cols = np.unique(frame.get_column(col).to_numpy(), return_inverse=True)
    return row_ids, rows, col_ids, cols, frame.get_column(value).cast(nw.Float64).to_numpy()
