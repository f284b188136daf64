"""Observed entries from arrays, sparse matrices, triplets and data frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lacunar.observed.contract import (
    SparseMissing,
    check_dense,
    check_duplicates_policy,
    check_frame_columns,
    check_ids,
    check_sparse,
    check_triplets,
    refuse_duplicate,
)

if TYPE_CHECKING:
    from lacunar.observed.table import Observed

Duplicates = Literal["error", "last", "mean"]


def from_dense(cls: type[Observed], X: ArrayLike, *, dtype: DTypeLike | None = None) -> Observed:
    """Observed entries of an array: everything that is not NaN.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numbers; NaN (or None in an object array) is missing, infinity an error.
    dtype : float64 or float32, optional
        Default: float32 stays float32, everything else becomes float64.

    Examples
    --------
    >>> Observed.from_dense([[1.0, float("nan")], [0.0, 2.0]]).nnz
    3
    """
    dense = check_dense(X, dtype)
    seen = ~np.isnan(dense)
    indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
    columns = np.nonzero(seen)[1].astype(np.int32)
    return cls._trusted(indptr, columns, np.ascontiguousarray(dense[seen]), dense.shape)


def from_scipy(
    cls: type[Observed], X: Any, *, sparse_missing: SparseMissing = "absent", dtype: DTypeLike | None = None
) -> Observed:
    """Observed entries of a SciPy sparse matrix or array.

    Parameters
    ----------
    X : sparse matrix or array of shape (n, d)
        Any format but DIA and blocked BSR, which lose or invent stored entries; int32 or int64 indices.
    sparse_missing : {"absent", "nan"}, default="absent"
        "absent": what is not stored is missing and a stored zero is observed. "nan": what is not stored is an observed
        zero (the result is as large as the dense table). A stored NaN is missing in both.
    dtype : float64 or float32, optional

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> stars = sp.csr_array([[1.5, 0.0]])
    >>> Observed.from_scipy(stars).nnz, Observed.from_scipy(stars, sparse_missing="nan").nnz
    (1, 2)
    """
    csr = check_sparse(X, sparse_missing, dtype)
    if sparse_missing == "nan":
        return from_dense(cls, csr.toarray())
    keep = ~np.isnan(csr.data)
    if keep.all():
        indptr, indices, values = csr.indptr, csr.indices, csr.data
    else:
        dropped = np.concatenate([[0], np.cumsum(~keep)])
        indptr, indices, values = csr.indptr - dropped[csr.indptr], csr.indices[keep], csr.data[keep]
    return cls(indptr.astype(np.int64), indices.astype(np.int32), np.ascontiguousarray(values), csr.shape)


def from_triplets(
    cls: type[Observed],
    row: ArrayLike,
    col: ArrayLike,
    value: ArrayLike,
    *,
    shape: tuple[int, int] | None = None,
    duplicates: Duplicates = "error",
    dtype: DTypeLike | None = None,
) -> Observed:
    """Observed entries from (row, column, value) triplets in any order.

    Parameters
    ----------
    row, col : array-like of int, shape (m,)
    value : array-like of shape (m,)
        Finite numbers; NaN triplets are missing and dropped.
    shape : tuple of (n, d), optional
        Default: one more than the largest row and column.
    duplicates : {"error", "last", "mean"}, default="error"
        What to do when a cell comes more than once.
    dtype : float64 or float32, optional

    Notes
    -----
    One stable sort, O(m log m).

    Examples
    --------
    >>> Observed.from_triplets([0, 1, 0], [1, 0, 1], [3.0, 1.0, 5.0], duplicates="mean").to_dense()
    array([[nan,  4.],
           [ 1., nan]])
    """
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
    return cls(indptr, cols.astype(np.int32), values, shape)


def frame_values(df: Any) -> NDArray[Any]:
    """A frame of numeric columns as an array of shape (n, d) with NaN for its nulls."""
    frame = nw.from_native(df, eager_only=True)
    check_frame_columns(frame)
    columns = [frame.get_column(name).cast(nw.Float64).to_numpy() for name in frame.columns]  # a name may be a number
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def from_frame(cls: type[Observed], df: Any, *, dtype: DTypeLike | None = None) -> Observed:
    """Observed entries of a pandas, polars or Arrow table: everything that is neither null nor NaN.

    Parameters
    ----------
    df : data frame of n rows and d numeric or boolean columns
    dtype : float64 or float32, optional

    Raises
    ------
    TypeError
        For a column that is neither numeric nor boolean; the message names it.

    Examples
    --------
    >>> import pandas as pd
    >>> Observed.from_frame(pd.DataFrame({"a": [1, None], "b": [True, False]})).nnz
    3
    """
    return from_dense(cls, frame_values(df), dtype=dtype)


def from_long_frame(
    cls: type[Observed], df: Any, *, row: str, col: str, value: str, duplicates: Duplicates = "error"
) -> tuple[Observed, NDArray[Any], NDArray[Any]]:
    """Observed entries of a long frame: one line a cell, with ids of any kind for rows and columns.

    Parameters
    ----------
    df : data frame
    row, col, value : str
        Names of its columns.
    duplicates : {"error", "last", "mean"}, default="error"

    Returns
    -------
    table : Observed
    row_ids, col_ids : ndarray
        Sorted ids; row ``i`` of the table is ``row_ids[i]``.

    Examples
    --------
    >>> import pandas as pd
    >>> votes = pd.DataFrame({"user": ["ann", "bob"], "film": ["x", "y"], "stars": [4, 5]})
    >>> table, users, films = Observed.from_long_frame(votes, row="user", col="film", value="stars")
    >>> users.tolist()
    ['ann', 'bob']
    """
    frame = nw.from_native(df, eager_only=True)
    check_frame_columns(frame.select(value))
    check_ids(frame, row, col)
    row_ids, rows = np.unique(frame.get_column(row).to_numpy(), return_inverse=True)
    col_ids, cols = np.unique(frame.get_column(col).to_numpy(), return_inverse=True)
    values = frame.get_column(value).cast(nw.Float64).to_numpy()
    table = from_triplets(cls, rows, cols, values, shape=(row_ids.size, col_ids.size), duplicates=duplicates)
    return table, row_ids, col_ids
