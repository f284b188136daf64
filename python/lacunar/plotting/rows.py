"""Tables of any form as displays use them: which entries are there, their rows, and copies with more entries hidden."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar._random import generator
from lacunar.observed import Observed
from lacunar.observed.numbers import as_frame

_CELLS_AT_ONCE = 2**22  # for which random numbers are drawn at a time


class Pattern(NamedTuple):
    """Which entries of a table are there, row by row. It has no values, so nobody learns from it by mistake."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    shape: tuple[int, int]

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Number of entries of every row, (n,)."""
        return np.diff(self.indptr)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Row of every entry, (nnz,)."""
        return np.repeat(np.arange(self.shape[0]), self.row_counts)


def pattern_of(X: Any) -> Pattern:
    """The pattern of an array with NaN, a frame of any columns, a sparse matrix (what is not stored is missing) or
    `Observed`.
    """
    table = Observed.from_dense(_marks(_in_narwhals(X))) if is_frame(X) else _entries(X)
    return Pattern(table.indptr, table.indices, table.shape)


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas, polars, Arrow or narwhals."""
    return as_frame(X) is not None


def _in_narwhals(X: Any) -> Any:
    return nw.from_native(as_frame(X), eager_only=True)


def by_rows(X: Any) -> Any:
    """A table like X with `shape`, of which `take` takes rows: a frame of narwhals, a CSR or dense array, or
    `Observed`.
    """
    return _in_narwhals(X) if is_frame(X) else _in_form_of(X, _entries(X))


def take(table: Any, rows: Any) -> Any:
    """Rows, by a slice or their numbers, of what `by_rows` returns: a frame of the user's library for one of narwhals."""
    part = table[rows]
    return part.to_native() if isinstance(part, nw.DataFrame) else part


def hide(table: Any, pattern: Pattern, shown: NDArray[np.bool_]) -> Any:
    """A copy of what `by_rows` returns without the entries of its pattern that are not shown; `shown` is of shape
    (nnz,).
    """
    rows, columns = pattern.row_numbers, pattern.indices
    if not is_frame(table):
        values = _entries(table).values[shown]
        return _in_form_of(table, Observed.from_triplets(rows[shown], columns[shown], values, shape=pattern.shape))
    seen = np.zeros(pattern.shape, dtype=bool, order="F")  # columns lie cell by cell
    seen[rows[shown], columns[shown]] = True
    library = nw.get_native_namespace(table)
    marks = [nw.new_series("seen", column, nw.Boolean, native_namespace=library) for column in seen.T]
    # By number, as a frame may name its columns by numbers.
    return table.select([nw.when(mark).then(nw.nth(number)) for number, mark in enumerate(marks)])


def draws_of(pattern: Pattern, random_state: int) -> NDArray[np.float64]:
    """A number in [0, 1) for every entry, (nnz,), that its cell decides: the same whatever the form of the table.

    O(n d) time, as one is drawn for every cell, and O(nnz) memory.
    """
    (n, d), rng, row_numbers = pattern.shape, generator(random_state), pattern.row_numbers
    draws, height = np.empty(len(pattern.indices)), max(_CELLS_AT_ONCE // max(d, 1), 1)
    for first in range(0, n, height):
        last = min(first + height, n)
        block, entries = rng.random((last - first, d)), slice(pattern.indptr[first], pattern.indptr[last])
        draws[entries] = block[row_numbers[entries] - first, pattern.indices[entries]]
    return draws


def _entries(X: Any) -> Observed:
    """The entries of a table of numbers that is no frame."""
    if isinstance(X, Observed):
        return X
    return Observed.from_scipy(X) if sp.issparse(X) else Observed.from_dense(X)


def _in_form_of(X: Any, table: Observed) -> Any:
    """Observed as it is; a sparse matrix as CSR, and anything else as an array, which learners that know no `Observed`
    read too.
    """
    if isinstance(X, Observed):
        return table
    return table.to_scipy() if sp.issparse(X) else table.to_dense()


def _marks(frame: nw.DataFrame[Any]) -> NDArray[np.float64]:
    """1 where a frame of numbers, text, categories or dates has an entry, NaN where it has none."""
    marks = np.ones(frame.shape)
    for k in range(frame.shape[1]):
        column = frame[:, k]
        missing = column.is_null() | column.is_nan() if column.dtype.is_float() else column.is_null()
        marks[missing.to_numpy().astype(bool), k] = np.nan
    return marks
