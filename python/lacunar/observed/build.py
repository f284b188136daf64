"""The arrays of an `Observed` from arrays, sparse matrices, triplets and data frames, and the values of frames."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lacunar import _core
from lacunar._threads import thread_count
from lacunar.observed.contract import (
    check_dense,
    check_duplicates_policy,
    check_ids,
    check_triplets,
    float_dtype,
    refuse_duplicate,
    refuse_infinite,
    refuse_no_table,
    refuse_triplets,
)
from lacunar.observed.files import lists_of, values_of
from lacunar.observed.memory import mark_private, owned
from lacunar.observed.numbers import Cells, as_frame, column_numbers, frame_array, frame_columns, without_nulls

Duplicates = Literal["error", "last", "mean"]
Entries = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any], tuple[int, int]]  # indptr, indices, values, shape


def _new(arrays: tuple[Any, Any, Any], shape: tuple[int, int]) -> Entries:
    """Three arrays that were just computed, marked as private, and the shape."""
    indptr, indices, values = arrays
    return mark_private(indptr), mark_private(indices), mark_private(values), shape


def dense_entries(X: ArrayLike, dtype: DTypeLike | None, n_jobs: int | None = None) -> Entries:
    """Everything of an array that is not NaN; a frame is read as one."""
    frame = as_frame(X)
    if frame is not None:
        return frame_entries(frame, frame_dtype(frame) if dtype is None else dtype, n_jobs)
    dense, out_dtype = check_dense(X, dtype)
    arrays = _core.dense_entries(dense, out_dtype == np.float32, None, None, thread_count(n_jobs))
    if arrays is None:
        refuse_infinite(dense, out_dtype)
        raise RuntimeError("X must not change while it is read; it did. Pass a copy.")
    return _new(arrays, dense.shape)


def scaled_entries(
    X: NDArray[Any], center: NDArray[np.float64], scale: NDArray[np.float64], n_jobs: int | None = None
) -> Entries | None:
    """The entries of an array that are not NaN, standardised, without columns whose scale is NaN; None where one is
    not finite.
    """
    dense, out_dtype = check_dense(X)
    center, scale = np.ascontiguousarray(center, dtype=np.float64), np.ascontiguousarray(scale, dtype=np.float64)
    arrays = _core.dense_entries(dense, out_dtype == np.float32, center, scale, thread_count(n_jobs))
    return None if arrays is None else _new(arrays, dense.shape)


def sparse_entries(csr: Any) -> Entries:
    """The stored entries of a CSR array in memory of our own that are not NaN."""
    keep = ~np.isnan(csr.data)
    if keep.all():
        indptr, indices, values = csr.indptr, csr.indices, csr.data
    else:
        dropped = np.concatenate([[0], np.cumsum(~keep)])
        indptr, indices, values = csr.indptr - dropped[csr.indptr], csr.indices[keep], csr.data[keep]
    arrays = indptr.astype(np.int64), indices.astype(np.int32, copy=False), np.ascontiguousarray(values)
    return _new(arrays, csr.shape)


def triplet_entries(
    row: ArrayLike,
    col: ArrayLike,
    value: ArrayLike,
    shape: tuple[int, int] | None,
    duplicates: Duplicates,
    dtype: DTypeLike | None,
    n_jobs: int | None = None,
) -> Entries:
    """Triplets sorted by row and column; `duplicates` says what becomes of several in one cell."""
    check_duplicates_policy(duplicates)
    rows, cols, values, shape = check_triplets(row, col, value, shape, dtype)
    entries = _core.triplet_entries(rows, cols, values, *shape, thread_count(n_jobs)) if min(shape) >= 0 else None
    if entries is None:
        refuse_triplets(rows, cols, values, shape)
        if min(shape) < 0:
            raise ValueError(f"shape must be two sizes of at least 0; got {shape}. Leave it out.")
        raise RuntimeError("row, col and value must not change while they are read; they did. Pass copies.")
    indptr, indices, values, repeated = entries
    if repeated:
        if duplicates == "error":
            _, at, entry = _core.find_fault(indptr, indices, values, shape[1]) or ("", 0, 0)
            refuse_duplicate(at, int(indices[entry]))
        n_distinct = _core.merge_repeated(indptr, indices, values, duplicates == "mean")
        indices, values = indices[:n_distinct].copy(), values[:n_distinct].copy()
    return _new((indptr, indices, values), shape)


def frame_dtype(frame: Any) -> np.dtype[Any]:
    """float32 for a frame all of whose columns are, else float64."""
    kinds = set(nw.from_native(frame, eager_only=True).schema.values())
    return np.dtype(np.float32 if kinds == {nw.Float32} else np.float64)


def frame_entries(df: Any, dtype: DTypeLike | None = None, n_jobs: int | None = None) -> Entries:
    """Everything of a frame of numbers that is neither null nor NaN: columns are read where they are."""
    frame = as_frame(df)
    if frame is None:
        refuse_no_table(df)
        raise TypeError(
            f"df must be a pandas, polars or Arrow table; got a {type(df).__name__}. Use Observed.from_dense for an "
            "array, from_scipy for a sparse matrix."
        )
    array = frame_array(frame)
    if array is not None:
        return dense_entries(array, float_dtype(dtype, np.dtype(np.float64)), n_jobs)
    return column_entries(*frame_columns(frame), dtype, n_jobs)


def column_entries(columns: list[Cells], n_rows: int, dtype: DTypeLike | None, n_jobs: int | None = None) -> Entries:
    """Everything of columns (n_rows,) in float64 that is neither null nor NaN."""
    out_dtype, shape = float_dtype(dtype, np.dtype(np.float64)), (n_rows, len(columns))
    numbers, valid = [cells for cells, _ in columns], [bits for _, bits in columns]
    arrays = _core.column_entries(numbers, valid, n_rows, out_dtype == np.float32, thread_count(n_jobs))
    if arrays is None:
        refuse_infinite(np.column_stack([without_nulls(*column) for column in columns]), out_dtype)
        raise RuntimeError("a table must not change while it is read; it did. Pass a copy.")
    return _new(arrays, shape)


class Lists(NamedTuple):
    """Names of the columns that hold, for every row, a list of numbers of columns and a list of
    their values.

    Null among the values is missing, a null list is an empty one.

    Parameters
    ----------
    n_columns : int
        Columns of the table that the lists describe.
    indices : str, default="indices"
        The column with lists of numbers of columns, from 0.
    values : str, default="values"
        The column with lists of values.
    """

    n_columns: int
    indices: str = "indices"
    values: str = "values"


def list_entries(batch: Any, names: Lists, first: int, dtype: DTypeLike | None) -> Entries:
    """Rows of a record batch that hold a list of columns and one of values; `first` is the number of the first row."""
    counts, numbers = lists_of(batch.column(names.indices), names.indices)
    others, flat = lists_of(batch.column(names.values), names.values)
    if not np.array_equal(counts, others):
        row = int(np.argmax(counts != others))
        raise ValueError(
            f"column {names.values!r} must hold lists as long as those of {names.indices!r}; row {first + row} has "
            f"{others[row]} values and {counts[row]} columns. Mend that row."
        )
    indptr = np.concatenate([[0], np.cumsum(counts)])
    if numbers.null_count:
        row = _row_of(numbers.is_null().to_numpy(zero_copy_only=False), indptr)
        raise ValueError(
            f"column {names.indices!r} must hold a number for every value; there is a null in row {first + row}. Drop "
            "it."
        )
    # Arrow shows the memory of whoever made the lists: what is checked below is a copy.
    cols, values = owned(values_of(numbers)), values_of(flat)
    values = owned(values, float_dtype(dtype, values.dtype))
    if len(cols) and cols.dtype.kind not in "iu":
        raise TypeError(f"column {names.indices!r} must hold lists of integers; it holds {cols.dtype}. Convert them.")
    narrow = owned(cols, np.int32)
    wide = np.can_cast(cols.dtype, np.int32) or np.array_equal(narrow, cols)
    if wide and _core.find_fault(indptr, narrow, values, names.n_columns) is None:
        return _new((indptr, narrow, values), (len(counts), names.n_columns))
    _refuse_list(cols, values, indptr, names, first)
    return _sorted_lists(counts, cols.astype(np.int64), values, names, first)


def _sorted_lists(
    counts: NDArray[np.int64], cols: NDArray[np.int64], values: NDArray[Any], names: Lists, first: int
) -> Entries:
    """The rows with their columns in order, from checked numbers of columns; ValueError for a column twice in a row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    entries = _core.triplet_entries(rows, cols, values, len(counts), names.n_columns, 1)
    assert entries is not None, "what it refuses was refused"
    indptr, indices, values, repeated = entries
    if repeated:
        _, row, entry = _core.find_fault(indptr, indices, values, names.n_columns) or ("", 0, 0)
        raise ValueError(
            f"column {names.indices!r} must hold every column once in a row; row {first + row} has column "
            f"{indices[entry]} twice. Keep one of its values."
        )
    return _new((indptr, indices, values), (len(counts), names.n_columns))


def _refuse_list(cols: NDArray[Any], values: NDArray[Any], indptr: NDArray[np.int64], names: Lists, first: int) -> None:
    """ValueError for the first column outside the table, else the first infinite value."""
    outside, infinite = (cols < 0) | (cols >= names.n_columns), np.isinf(values)
    if outside.any():
        raise ValueError(
            f"column {names.indices!r} must hold numbers 0 to {names.n_columns - 1}; got {cols[np.argmax(outside)]} in "
            f"row {first + _row_of(outside, indptr)}. Pass a larger n_columns, or drop it."
        )
    if infinite.any():
        raise ValueError(
            f"column {names.values!r} must hold finite numbers; got {values[np.argmax(infinite)]} in row "
            f"{first + _row_of(infinite, indptr)}. Use null or NaN if it means missing."
        )


def _row_of(marked: NDArray[np.bool_], indptr: NDArray[np.int64]) -> int:
    """The row of the first marked entry."""
    return int(np.searchsorted(indptr, np.argmax(marked), side="right")) - 1


def long_frame_triplets(df: Any, row: str, col: str, value: str) -> tuple[NDArray[Any], ...]:
    """Sorted ids of rows and the row of every line, the same of columns, and the values."""
    frame = nw.from_native(as_frame(df), eager_only=True)
    values = column_numbers(frame.get_column(value), value)
    row_ids, rows = _numbered(frame, row)
    col_ids, cols = _numbered(frame, col)
    return row_ids, rows, col_ids, cols, values


def _numbered(frame: Any, name: str) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Sorted ids of a column, and which of them every line has."""
    column = frame.get_column(name)
    in_numpy = column.dtype.is_numeric() or column.dtype.is_temporal()
    # An array of text would drop the last characters of ids that end in NUL.
    ids = check_ids(column.to_numpy() if in_numpy else np.array([*column.to_list(), None], dtype=object)[:-1], name)
    try:
        return np.unique(ids, return_inverse=True)
    except TypeError:
        kinds = sorted({type(value).__name__ for value in ids})
        raise TypeError(
            f"column {name!r} must hold ids of one kind; got {' and '.join(kinds)}. Make text of them, astype(str)."
        ) from None
