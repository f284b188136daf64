"""Rows in parts that may be on several machines: the functions here compute the sums over parts that a fit needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats
from lacunar.observed import Observed, ObservedFile
from lacunar.observed.columns import (
    ColumnScale,
    ColumnSpread,
    column_scale,
    column_spread,
    own_exponents,
)
from lacunar.observed.door import check_squares, validate_X

Step = Callable[..., Any]


class RowParts(Protocol):
    """The rows of a fit in one or more parts. A step is a function that can be pickled, takes a part and further
    arguments, and changes neither.
    """

    def map(self, step: Step, *arguments: Any, keep: bool = True) -> RowParts:
        """The parts that step(part, *arguments) returns, each on its own machine; with `keep` False they are not stored
        but computed again in every pass.
        """

    def each(self, step: Step, *arguments: Any) -> list[Any]:
        """The results of step(part, *arguments), one for each part, in order; they travel to this process and should be
        small.
        """

    def total(self, step: Step, *arguments: Any) -> tuple[Any, ...]:
        """Sums over the parts of the arrays and numbers in the tuple that step(part, *arguments) returns."""


class InMemory:
    """All rows as one part, in this process."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def map(self, step: Step, *arguments: Any, keep: bool = True) -> InMemory:
        return InMemory(step(self.part, *arguments))

    def each(self, step: Step, *arguments: Any) -> list[Any]:
        return [step(self.part, *arguments)]

    def total(self, step: Step, *arguments: Any) -> tuple[Any, ...]:
        sums: tuple[Any, ...] = step(self.part, *arguments)
        return sums


class FileParts:
    """The blocks of a file, with their labels. Steps of `map` are computed anew in every pass, by the thread that
    reads.
    """

    def __init__(self, file: ObservedFile, steps: tuple[tuple[Step, tuple[Any, ...]], ...] = ()) -> None:
        self._file, self._steps = file, steps

    def map(self, step: Step, *arguments: Any, keep: bool = True) -> FileParts:
        return FileParts(self._file, (*self._steps, (step, arguments)))

    def each(self, step: Step, *arguments: Any) -> list[Any]:
        return list(self._results(step, arguments))

    def total(self, step: Step, *arguments: Any) -> tuple[Any, ...]:
        return added(self._results(step, arguments))

    def _results(self, last: Step, arguments: tuple[Any, ...]) -> Iterator[Any]:
        with closing(self._file.prepared(self._prepared)) as parts:
            for part in parts:
                yield last(part, *arguments)

    def _prepared(self, part: Any) -> Any:
        for step, arguments in self._steps:
            part = step(part, *arguments)
        return part


def added(totals: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Tuples of arrays and numbers, summed member by member, in order."""
    sums: list[Any] = []
    for total in totals:
        if not sums:
            sums = [np.array(first) if isinstance(first, np.ndarray) else first for first in total]
            continue
        for k, term in enumerate(total):
            sums[k] += term  # in the array of the first
    return tuple(sums)


def in_parts(rows: Any | RowParts) -> RowParts:
    """Rows in memory wrapped as one part; parts are returned unchanged."""
    return rows if hasattr(rows, "each") else InMemory(rows)


class CheckedPart(NamedTuple):
    """The rows of a part, checked, and their columns."""

    rows: Observed
    columns: tuple[int, Any]


def check_part(part: tuple[Any, Any], checker: Any) -> CheckedPart:
    """X of a part (X, y), checked by a copy of the estimator `checker`."""
    checker = copy(checker)
    rows = validate_X(checker, part[0], reset=True, sparse_missing=checker.sparse_missing)
    return CheckedPart(rows, columns_of(checker))


def columns_of(checker: Any) -> tuple[int, Any]:
    """Number and names of the columns that an estimator has just checked."""
    return checker.n_features_in_, getattr(checker, "feature_names_in_", None)


def adopt_columns(estimator: Any, widths: list[tuple[int, Any]]) -> int:
    """Store the number and the names of columns in the estimator and return the number; ValueError where two shards
    differ. `widths` has the `columns_of` each shard.
    """
    n, names = widths[0]
    for shard, (other, named) in enumerate(widths):
        if other != n:
            raise ValueError(
                f"shards must have the same columns; shard {shard} has {other}, shard 0 has {n}. Read the same columns "
                "of every shard, with missing values where it has none."
            )
        if names is None or named is None:
            names = None
        elif list(named) != list(names):
            at = next(j for j in range(n) if named[j] != names[j])
            raise ValueError(
                f"shards must have the same columns in the same order; column {at} of shard {shard} is {named[at]!r}, "
                f"of shard 0 {names[at]!r}. Select columns by name in one order."
            )
    estimator.n_features_in_ = n
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return int(n)


def agree_targets(targets: list[tuple[int, bool]]) -> bool:
    """Whether y has one dimension; ValueError where shards differ. `targets` has the number of targets of each shard,
    and whether its y has one dimension.
    """
    for shard, other in enumerate(targets):
        if other != targets[0]:
            shapes = [f"(n, {n_targets})" if not one else "(n,)" for n_targets, one in (other, targets[0])]
            raise ValueError(
                f"y must have the same targets in every shard; it has shape {shapes[0]} in shard {shard} and "
                f"{shapes[1]} in shard 0. Pass all targets with every shard, NaN where unknown."
            )
    return targets[0][1]


class Counts(NamedTuple):
    """Numbers of rows and entries, and sums by column."""

    m: int  # rows
    n: Floats  # (d,): entries of columns
    nn: float  # sum over rows of n_a (n_a - 1), n_a entries of the row
    paired: int  # rows with two entries or more
    used: int  # rows with an entry
    total: Floats  # (d,): sums of entries
    squares: Floats  # (d,): sums of their squares

    @property
    def means(self) -> Floats:
        """Mean (d,) of the observed entries of each column, 0 where there is none."""
        means: Floats = self.total / np.maximum(self.n, 1)
        return means


def count(rows: Observed | RowParts, n_jobs: int | None = None) -> Counts:
    """Numbers of rows and entries, and sums by column. O(nnz)."""
    m, n, nn, paired, used, *sums = in_parts(rows).total(_counts, n_jobs)
    check_squares(n, *sums)
    return Counts(int(m), n, float(nn), int(paired), int(used), *sums)


def _counts(rows: Observed, n_jobs: int | None) -> Counts:
    entries = rows.row_counts.astype(np.float64)
    nn, paired, used = float(np.sum(entries * (entries - 1))), int(np.sum(entries > 1)), int(np.sum(entries > 0))
    n, *sums = column_totals(rows, n_jobs=n_jobs)
    return Counts(rows.shape[0], n, nn, paired, used, *sums)


def column_totals(
    rows: Observed, weight: Floats | None = None, *, n_jobs: int | None = None
) -> tuple[Floats, Floats, Floats]:
    """Number, sum and sum of squares (d,) of the entries of columns, by the weights (n,) of rows."""
    spread = column_spread(rows, weight, n_jobs)
    n, mean = spread.total, spread.mean
    with np.errstate(over="ignore"):  # `check_sums` refuses them
        return n, n * mean, n * (spread.variance + mean**2)


def fit_columns_over(rows: Observed | RowParts, n_jobs: int | None) -> tuple[ColumnScale, Floats]:
    """Means and scales of columns, all rows of weight 1, and the number of entries (d,), from sums over parts."""
    spreads = in_parts(rows).map(column_spread, None, n_jobs)
    n, counts, sums, sizes = spreads.total(_weighted_means)
    center, exponent = sums / np.maximum(counts, 1), own_exponents(sizes / np.maximum(counts, 1))
    squares = spreads.total(_squares_about, center, exponent)[0]
    deviation = np.ldexp(np.sqrt(squares / np.maximum(counts, 1)), exponent)
    return column_scale(n, counts, center, deviation), counts


def _weighted_means(part: ColumnSpread) -> tuple[float, Floats, Floats, Floats]:
    """Number of rows, numbers of entries (d,), and sums of them and of their sizes."""
    with np.errstate(over="ignore"):
        return part.rows, part.total, part.total * part.mean, part.total * part.size


def _squares_about(part: ColumnSpread, center: Floats, exponent: NDArray[np.intc]) -> tuple[Floats]:
    """Sums (d,) of squares about the center, in units of two to the exponent; those of ordinary columns are 1."""
    with np.errstate(over="ignore"):  # of a deviation that is not used
        variance = np.where(exponent == 0, part.variance, np.ldexp(part.deviation, -exponent) ** 2)
    return (part.total * (variance + np.ldexp(part.mean - center, -exponent) ** 2),)
