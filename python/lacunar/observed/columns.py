"""Columns standardised over their observed entries; what is missing stays missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.observed.build import scaled_entries
from lacunar.observed.door import LARGEST, SparseMissing, read_X
from lacunar.observed.memory import mark_private
from lacunar.observed.table import Observed

# A standard deviation of at most so many units in the last place of a column's size is rounding: the column is
# constant.
_ROUNDING = 4.0
# Below this share of its size a standard deviation is of differences from a mean that sums over rows round too
# coarsely.
_NARROW = 1e-7
_ALL = 1e-9  # of the weight of all rows: sums of weights round
# Columns of larger or smaller size are summed in units of their own, a power of two: their squares leave float64.
_SMALL, _LARGE = 1e-120, 1e140
_ENTRIES = 2**18  # looked at at once by what is cheap
_SURE = 30  # entries of a column, from which its standard deviation is sure enough to measure any entry by
_LATER_REACH = 8.0  # standard deviations that entries count at least, where columns are of the first batch alone
_FAR = {"float64": LARGEST, "float32": 1e30}  # what standardised entries stay below, as in the core


class ColumnScale(NamedTuple):
    """Mean and standard deviation of every column over its observed entries, shapes (d,), whether it is used, and how
    many standard deviations from the mean an entry counts at most.
    """

    mean: Floats
    scale: Floats
    seen: NDArray[np.bool_]
    reach: Floats = np.array(LARGEST)  # any number


def column_moments(X: Observed, weight: Floats | None, n_jobs: int | None = None) -> tuple[Floats, Floats, Floats]:
    """Sum of the weights, mean and variance (d,) of the entries of columns, by the weights (n,) of rows. O(nnz)."""
    row_weight = np.ones(X.shape[0]) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    # In units of a power of two, which changes no digit: products with large or small weights stay in range.
    exponent = int(np.frexp(row_weight.max(initial=0.0))[1])
    row_weight = np.ldexp(row_weight, -exponent)
    arrays = X.indptr, X.indices, X.values, row_weight
    total, mean, variance = _core.column_moments(*arrays, X.shape[1], thread_count(n_jobs))
    return np.ldexp(total, exponent), mean, variance


class ColumnSpread(NamedTuple):
    """Moments of columns that stay right where squares leave float64, and where a column varies little beside its size."""

    rows: float  # sum of the weights of all rows
    total: Floats
    mean: Floats
    variance: Floats
    deviation: Floats  # 0 where it is rounding alone

    @property
    def size(self) -> Floats:
        """Mean size (d,) of the entries, within a factor of two."""
        with np.errstate(over="ignore"):
            return self.deviation + np.abs(self.mean)


def own_exponents(size: Floats) -> NDArray[np.intc]:
    """Exponents (d,) of the powers of two in whose units columns of such size are summed: 0 for columns of ordinary
    size.
    """
    ordinary = (size == 0) | (size > _SMALL) & (size < _LARGE)
    return np.where(ordinary, 0, np.frexp(size)[1]).astype(np.intc)


def column_spread(X: Observed, weight: Floats | None, n_jobs: int | None = None) -> ColumnSpread:
    """Moments of the entries of columns, and their standard deviations, by the weights (n,) of rows. O(nnz)."""
    spread = _spread_in_units(X, weight, n_jobs)
    narrow = (spread.deviation > 0) & (spread.deviation <= _NARROW * np.abs(spread.mean))
    if narrow.any():
        # Differences of numbers so near each other are exact.
        away = np.where(narrow[X.indices], X.values - spread.mean[X.indices], 0.0)
        about = _spread_in_units(Observed._trusted(X.indptr, X.indices, mark_private(away), X.shape), weight, n_jobs)
        mean = np.where(narrow, spread.mean + about.mean, spread.mean)
        rounding = about.deviation <= _ROUNDING * float(np.finfo(X.dtype).eps) * np.abs(mean)
        deviation = np.where(narrow, np.where(rounding, 0.0, about.deviation), spread.deviation)
        variance = np.where(narrow, deviation**2, spread.variance)
        spread = spread._replace(mean=mean, deviation=deviation, variance=variance)
    return spread


def _spread_in_units(X: Observed, weight: Floats | None, n_jobs: int | None) -> ColumnSpread:
    """The `ColumnSpread` of columns; columns of extreme size are summed in powers of two of their own."""
    total, mean, variance = column_moments(X, weight, n_jobs)
    deviation = np.sqrt(variance)
    extreme = (total > 0) & ~((deviation + np.abs(mean) > _SMALL) & (deviation + np.abs(mean) < _LARGE))
    exponent = own_exponents(_largest(X, extreme))
    if exponent.any():
        # Exact: a power of two changes no digit.
        scaled = Observed._trusted(X.indptr, X.indices, np.ldexp(X.values, -exponent[X.indices]), X.shape)
        _, mean_there, variance_there = column_moments(scaled, weight, n_jobs)
        there = exponent != 0
        mean = np.where(there, np.ldexp(mean_there, exponent), mean)
        deviation = np.where(there, np.ldexp(np.sqrt(variance_there), exponent), deviation)
    rows = float(X.shape[0] if weight is None else np.sum(weight))
    return ColumnSpread(rows, total, mean, variance, deviation)


def _largest(X: Observed, columns: NDArray[np.bool_]) -> Floats:
    """The largest modulus (d,) of the entries of some columns, 0 in the others. O(nnz) where there are any."""
    largest = np.zeros(X.shape[1])
    if columns.any():
        chosen = columns[X.indices]
        np.maximum.at(largest, X.indices[chosen], np.abs(X.values[chosen], dtype=np.float64))
    return largest


def fit_columns(
    X: Observed, weight: Floats, *, standardize: bool, later: bool = False, n_jobs: int | None = None
) -> ColumnScale:
    """Weighted mean and standard deviation of each column, as `column_scale` has them.

    A row of weight w counts as w equal rows. Rows that come `later` may say more than these of a column: entries reach
    farther, and without a bound where these rows have no spread. O(nnz).
    """
    if not standardize:
        total = column_moments(X, weight, n_jobs)[0]
        return ColumnScale(np.zeros(X.shape[1]), np.ones(X.shape[1]), total > 0, np.full(X.shape[1], LARGEST))
    spread = column_spread(X, weight, n_jobs)
    columns = column_scale(spread.rows, spread.total, spread.mean, spread.deviation)
    reach = _reach_of(X, weight, spread.total)
    if later:
        constant = scales_of(spread.mean, spread.deviation)[1]
        reach = np.where(constant, LARGEST, np.maximum(reach, _LATER_REACH))
    return columns._replace(reach=reach)


def _reach_of(X: Observed, weight: Floats, counts: Floats) -> Floats:
    """How many standard deviations from their mean entries of columns (d,) count at most: one for each entry but the
    first, of which there are `counts` by weight, or more where weights are below 1.

    Two entries may lie so near each other that any third is hundreds of their standard deviations away. Each of k is
    itself within the root of k - 1.
    """
    if (counts < _SURE).any():
        counts = np.maximum(counts, np.bincount(X.indices, weight[X.row_numbers] > 0, X.shape[1]))
    return np.where(counts < _SURE, np.maximum(counts - 1, 0.0), LARGEST)


def column_scale(rows: float, total: Floats, mean: Floats, deviation: Floats) -> ColumnScale:
    """The scales of columns from sums of weights, of all rows and (d,) of entries, means and standard deviations (d,).

    A column of one value in every row says nothing and is not used; one of a single value that is missing in some rows
    stays for the sake of these, with entries 0.
    """
    scale, constant = scales_of(mean, deviation)
    _check_scales(mean, scale)
    everywhere = total >= (1 - _ALL) * rows
    return ColumnScale(mean, scale, (total > 0) & ~(constant & everywhere))


def _check_scales(mean: Floats, scale: Floats) -> None:
    """Means and standard deviations (d,) of columns that float64 holds with all their digits."""
    bad = np.flatnonzero(~np.isfinite(mean) | ~np.isfinite(scale) | (scale < np.finfo(np.float64).tiny))
    if bad.size:
        j = int(bad[0])
        raise ValueError(
            f"columns must have a mean and a standard deviation that float64 holds; those of column {j} are "
            f"{mean[j]:g} and {scale[j]:g}. Use other units for that column, or leave it out."
        )


def scales_of(mean: Floats, deviation: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """What columns are divided by, and which are constant (d,): their spread is rounding.

    A constant column is divided by its size, at least 1: another value in later rows counts by how far it is from the
    one known, whatever units it comes in.
    """
    half = 0.5 * deviation  # of which no sum overflows
    constant = half <= _ROUNDING * float(np.finfo(np.float64).eps) * np.hypot(half, 0.5 * mean)
    return np.where(constant, np.clip(np.abs(mean), 1.0, LARGEST), deviation), constant


def scaled_rows(estimator: Any, X: Any, columns: ColumnScale, *, sparse_missing: SparseMissing = "absent") -> Observed:
    """New rows of a fitted estimator, checked and standardised; cells of an array are scaled where they are read."""
    table = read_X(estimator, X, reset=False, sparse_missing=sparse_missing)
    n_jobs = getattr(estimator, "n_jobs", None)
    if isinstance(table, Observed):
        return scale_columns(table, columns, n_jobs=n_jobs)
    entries = scaled_entries(table, columns.mean, np.where(columns.seen, columns.scale, np.nan), n_jobs)
    if entries is None:
        return scale_columns(Observed.from_dense(table), columns)  # which names the cell
    return _within(Observed._trusted(*entries), columns.reach)


def scale_columns(
    X: Observed, columns: ColumnScale, clip: float | None = None, *, n_jobs: int | None = None
) -> Observed:
    """The same rows standardised, without the columns that were never observed in fit, then clipped to +-clip.
    O(nnz).
    """
    indptr, indices, values, seen = X.indptr, X.indices, X.values, np.asarray(columns.seen, dtype=bool)
    if any(np.shape(part) != (X.shape[1],) for part in columns[:3]):  # of a model file, which may say anything
        raise ValueError(
            f"columns must be described by {X.shape[1]} numbers each; got {[np.shape(part) for part in columns[:3]]}"
        )
    if not seen.all():
        is_seen = seen[indices]
        indptr = mark_private(np.concatenate([[0], np.cumsum(is_seen)])[indptr].astype(np.int64))
        indices, values = mark_private(indices[is_seen]), values[is_seen]
    known, bound = Observed._trusted(indptr, indices, values, X.shape), np.inf if clip is None else clip
    scaled = standardised(known, columns.mean, columns.scale, n_jobs, clip=bound, out=np.empty_like(values))
    return _within(scaled, columns.reach)


def _within(rows: Observed, reach: Floats) -> Observed:
    """Standardised rows whose entries are at most `reach` (d,) in size."""
    if not (reach < LARGEST).any():
        return rows
    at = np.flatnonzero((reach < LARGEST)[rows.indices])
    values, most = rows.values.copy(), reach[rows.indices[at]]
    values[at] = np.clip(values[at], -most, most)
    return Observed._trusted(rows.indptr, rows.indices, mark_private(values), rows.shape)


def standardised(
    rows: Observed,
    shift: Floats,
    scale: Floats | None = None,
    n_jobs: int | None = None,
    *,
    clip: float = np.inf,
    out: NDArray[Any] | None = None,
) -> Observed:
    """Rows minus the shift, divided by the scale, then clipped to +-clip, on observed entries only. O(nnz).

    Their values are at the front of `out`, in its dtype; without it in float64, or where they lie if nothing changes them.
    """
    if out is None and rows.values.dtype == np.float64 and scale is None and not shift.any():
        return rows
    by = np.ones(rows.shape[1]) if scale is None else scale
    shift, by = (np.ascontiguousarray(part, dtype=np.float64) for part in (shift, by))
    values = mark_private(np.empty(rows.nnz) if out is None else out[: rows.nnz])
    if not _core.standardise(rows.values, rows.indices, shift, by, clip, values, thread_count(n_jobs)):
        _refuse_far(rows, shift, by, values)
    return Observed._trusted(rows.indptr, rows.indices, values, rows.shape)


def standardised_blocks(
    rows: Observed, shift: Floats, most: int | None = None, *, n_jobs: int | None = None
) -> Iterator[tuple[slice, Observed]]:
    """Slices as of `row_blocks`, and those rows minus the shift, in memory that the next block takes over: fresh pages
    cost more than the difference.
    """
    out = np.empty(0)
    for at in row_blocks(rows, most):
        block = rows if at == slice(0, rows.shape[0]) else rows[at]
        if len(out) < block.nnz and shift.any():
            out = np.empty(block.nnz)
        yield at, standardised(block, shift, n_jobs=n_jobs, out=out if shift.any() else None)


def row_blocks(rows: Observed, most: int | None = None) -> Iterator[slice]:
    """Slices of at most `most` rows and a quarter of a million entries, at least one row: what is computed of a slice
    is small beside the table.
    """
    start, n = 0, rows.shape[0]
    while start < n:
        full = int(np.searchsorted(rows.indptr, rows.indptr[start] + _ENTRIES, side="right")) - 1
        stop = min(max(full, start + 1), n if most is None else start + most, n)
        yield slice(start, stop)
        start = stop


def _refuse_far(X: Observed, mean: Floats, scale: Floats, scaled: NDArray[Any]) -> None:
    """The error that names the first entry which `_core.standardise` did not take; `scaled` is what it wrote into."""
    largest = _FAR[scaled.dtype.name]
    with np.errstate(over="ignore"):
        away = np.abs((X.values - mean[X.indices]) / scale[X.indices])
    entry = int(np.argmin(away <= largest))
    raise ValueError(
        f"X must hold values of at most {largest:g} in modulus when their columns are standardised; got "
        f"{X.values[entry]:g} in row {X.row_numbers[entry]}, column {X.indices[entry]}. Leave out that value (NaN), or "
        "use other units."
    )
