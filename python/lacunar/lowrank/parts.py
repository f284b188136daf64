"""Rows in parts, which may lie on several machines: a fit asks for sums over the parts only, which functions here make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lacunar import _core
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, column_scale
from lacunar.observed.door import columns_of, validate_X

_Floats = NDArray[np.float64]
Step = Callable[..., Any]
_ENTRIES = 2**18  # looked at at once by what is cheap


class Parts(Protocol):
    """Steps can be pickled: functions of a module, or what operator makes. They are called with a part and the further arguments, and change neither."""

    def map(self, step: Step, *given: Any) -> Parts:
        """The parts that step(part, *given) returns, which stay where they are."""

    def each(self, step: Step, *given: Any) -> list[Any]:
        """What step(part, *given) returns for every part, in order; it is sent here, so it should be small."""

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        """Sums over the parts of the arrays and numbers in the tuple that step(part, *given) returns."""


class Whole:
    """One part, in this process."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def map(self, step: Step, *given: Any) -> Whole:
        return Whole(step(self.part, *given))

    def each(self, step: Step, *given: Any) -> list[Any]:
        return [step(self.part, *given)]

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        made: tuple[Any, ...] = step(self.part, *given)
        return made


def in_parts(rows: Observed | Parts) -> Parts:
    """Rows of this process as one part; parts as they are."""
    return Whole(rows) if isinstance(rows, Observed) else rows


def row_blocks(rows: Observed, most: int | None = None) -> Iterator[slice]:
    """At most so many rows, and a quarter of a million entries, at a time: what is made of them on the way is small beside the table."""
    start, n = 0, rows.shape[0]
    while start < n:
        found = int(np.searchsorted(rows.indptr, rows.indptr[start] + _ENTRIES, side="right")) - 1
        stop = min(max(found, start + 1), n if most is None else start + most, n)
        yield slice(start, stop)
        start = stop


def by_blocks(step: Step) -> Step:
    """The same sums over rows, or over pairs (rows, labels), taken block by block."""

    @wraps(step)
    def total(part: Any, *given: Any) -> tuple[Any, ...]:
        rows = part if isinstance(part, Observed) else part[0]
        made: tuple[Any, ...] | None = None
        for some in row_blocks(rows):
            found = step(rows[some] if rows is part else tuple(each[some] for each in part), *given)
            made = tuple(found) if made is None else tuple(a + b for a, b in zip(made, found, strict=True))
        return tuple(step(part, *given)) if made is None else made

    return total


class Opened(NamedTuple):
    """The rows of a part, checked, and their columns."""

    rows: Observed
    columns: tuple[int, Any]


def opened(part: tuple[Any, Any], checker: Any) -> Opened:
    """X of a part, checked by a clone of an estimator."""
    checker = clone(checker)
    rows = validate_X(checker, part[0], reset=True, sparse_missing=checker.sparse_missing)
    return Opened(rows, columns_of(checker))


class Counts(NamedTuple):
    """Numbers of rows and entries."""

    m: int  # rows
    n: _Floats  # (d,): entries of columns
    nn: float  # sum over rows of n_a (n_a - 1), n_a entries of the row
    paired: int  # rows with two entries or more
    used: int  # rows with an entry


def count(parts: Parts) -> Counts:
    """The numbers of all rows. O(nnz)."""
    m, n, nn, paired, used = parts.total(_counts)
    return Counts(int(m), n, float(nn), int(paired), int(used))


@by_blocks
def _counts(rows: Observed) -> Counts:
    entries = rows.row_counts.astype(np.float64)
    n = np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64)
    nn = float(np.sum(entries * (entries - 1)))
    return Counts(rows.shape[0], n, nn, int(np.sum(entries > 1)), int(np.sum(entries > 0)))


def means_over(parts: Parts, n: _Floats) -> _Floats:
    """Mean (d,) of the observed entries of each column, 0 where there is none. O(nnz)."""
    made: _Floats = parts.total(_column_totals)[0] / np.maximum(n, 1)
    return made


@by_blocks
def _column_totals(rows: Observed) -> tuple[_Floats]:
    return (_column_sums(rows, rows.values.astype(np.float64)),)


def _column_sums(rows: Observed, values: _Floats) -> _Floats:
    return np.asarray(np.bincount(rows.indices, values, minlength=rows.shape[1]), dtype=np.float64)


@by_blocks
def squares(rows: Observed) -> tuple[_Floats]:
    """Sums of squares (d,) of the entries of columns."""
    return (_column_sums(rows, rows.values.astype(np.float64) ** 2),)


def centred(rows: Observed, shift: _Floats, scale: _Floats | None = None) -> Observed:
    """Rows minus the shift, divided by the scale, on observed entries only, in float64."""
    values, finite = np.empty(rows.nnz), True
    for start in range(0, rows.nnz, _ENTRIES):
        part = slice(start, start + _ENTRIES)
        columns, made = rows.indices[part], values[part]
        np.subtract(rows.values[part], shift[columns], out=made)
        if scale is not None:
            made /= scale[columns]
        finite = finite and bool(np.isfinite(made).all())
    if not finite:
        return rows.with_values(values)  # which names the entry
    return Observed._trusted(rows.indptr, rows.indices, values, rows.shape)


def fit_columns_over(parts: Parts) -> ColumnScale:
    """`fit_columns` of rows that all weigh 1, from sums over their parts: squares about the means of a part, then of the means."""
    moments = parts.map(_column_moments)
    counts, sums = moments.total(_weighted_means)
    center = sums / np.maximum(counts, 1)
    spread = moments.total(_squares_about, center)[0]
    return column_scale(counts, center, spread / np.maximum(counts, 1))


def _column_moments(X: Observed) -> tuple[_Floats, _Floats, _Floats]:
    return _core.column_moments(X.indptr, X.indices, X.values, np.ones(X.shape[0]), X.shape[1])


def _weighted_means(moments: tuple[_Floats, _Floats, _Floats]) -> tuple[_Floats, _Floats]:
    return moments[0], moments[0] * moments[1]


def _squares_about(moments: tuple[_Floats, _Floats, _Floats], center: _Floats) -> tuple[_Floats]:
    total, own, variance = moments
    return (total * (variance + (own - center) ** 2),)
