"""What a fit does to a part of the rows, and the numbers it counts of all: steps over parts, which may lie elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lacunar._parts import Parts
from lacunar.observed import Observed
from lacunar.observed.door import columns_of, validate_X

_Floats = NDArray[np.float64]


class Counts(NamedTuple):
    """Rows, entries of columns (d,), sum of n_a (n_a - 1) over rows of n_a entries, rows with two entries or more, with any."""

    m: int
    n: _Floats
    nn: float
    paired: int
    used: int


def count(parts: Parts) -> Counts:
    """The numbers of all rows. O(nnz)."""
    m, n, nn, paired, used = parts.total(_counts)
    return Counts(int(m), n, float(nn), int(paired), int(used))


def _counts(rows: Observed) -> Counts:
    entries = rows.row_counts.astype(np.float64)
    n = np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64)
    nn = float(np.sum(entries * (entries - 1)))
    return Counts(rows.shape[0], n, nn, int(np.sum(entries > 1)), int(np.sum(entries > 0)))


class Opened(NamedTuple):
    """A part that was checked."""

    rows: Observed
    columns: tuple[int, Any]


def opened(part: tuple[Any, Any], checker: Any) -> Opened:
    """X of a part, checked by an estimator of its own."""
    checker = clone(checker)
    rows = validate_X(checker, part[0], reset=True, sparse_missing=checker.sparse_missing)
    return Opened(rows, columns_of(checker))


def found_columns(part: Opened) -> tuple[int, Any]:
    return part.columns


def rows_of(part: Opened) -> Observed:
    return part.rows


def means_over(parts: Parts, n: _Floats) -> _Floats:
    """Mean (d,) of the observed entries of each column, 0 where there is none. O(nnz)."""
    made: _Floats = parts.total(_column_totals)[0] / np.maximum(n, 1)
    return made


def _column_totals(rows: Observed) -> tuple[_Floats]:
    return (_column_sums(rows, rows.values.astype(np.float64)),)


def _column_sums(rows: Observed, values: _Floats) -> _Floats:
    return np.asarray(np.bincount(rows.indices, values, minlength=rows.shape[1]), dtype=np.float64)


def centred(rows: Observed, shift: _Floats) -> Observed:
    """Rows minus the shift, on observed entries only, in float64."""
    return rows.with_values(rows.values.astype(np.float64) - shift[rows.indices])


def standardised(rows: Observed, shift: _Floats, scale: _Floats) -> Observed:
    """Rows minus the shift, divided by the scale, in float64."""
    return rows.with_values((rows.values.astype(np.float64) - shift[rows.indices]) / scale[rows.indices])


def squares(rows: Observed) -> tuple[_Floats]:
    """Sums of squares (d,) of the entries of columns."""
    return (_column_sums(rows, rows.values.astype(np.float64) ** 2),)
