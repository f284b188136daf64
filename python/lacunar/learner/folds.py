"""Folds that keep groups of rows, and copies of a row, together, since a learner that has seen a row knows its copies."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from lacunar._cuts import Cut
from lacunar._random import generator
from lacunar._typing import Floats, Ints

_FEWEST = 20  # different rows, below which nothing tells copies from rows that happen to be alike
_COINCIDENCE = 0.05  # expected rows that agree by chance, above which rows that agree are no copies
_HELD_OUT, _MOST_HELD_OUT = 10, 20_000  # of so many rows of a large table one is held out, and these at most
# Models whose mean a large table gets, and rows that each learns from; of more rows two models have a half each, which together take
# as long as one of all rows and are as good.
_MODELS, _ROWS_OF_MODELS, _LEAST_SHARE = 3, 45_000, 0.5
_MULTIPLIER, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


def units_of(X: Floats) -> Ints:
    """Numbers of the different rows of a table (n, d) by first appearance, (n,): copies of a row have one number.

    Rows of a few categories agree by chance, and are no copies: where the columns, taken as independent among the different rows, let one
    expect more than 0.05 rows with the entries observed in a row, all rows like it stand for themselves. O(n d + n log n).
    """
    leaders = _leaders(X)
    repeated = np.unique(leaders[leaders != np.arange(len(X))])
    if repeated.size:
        different = np.unique(leaders)
        alike = repeated[_expected(X, different, repeated) > _COINCIDENCE] if len(different) >= _FEWEST else repeated
        own = np.isin(leaders, alike)
        leaders[own] = np.flatnonzero(own)
    return np.unique(leaders, return_inverse=True)[1]


def repeats(units: Ints) -> int:
    """How many rows are copies of one that stands before them."""
    return len(units) - int(units.max(initial=-1)) - 1


def units_in(groups: NDArray[np.integer]) -> Ints:
    """The groups that occur, numbered 0, 1, ... (n,)."""
    return np.asarray(np.unique(groups, return_inverse=True)[1])


def sums_by_group(values: Floats, groups: Ints | None) -> Floats:
    """Sums (groups, m) over the rows of every group; the values (n, m) themselves where rows are independent."""
    if groups is None:
        return values
    units = units_in(groups)
    return np.column_stack([np.bincount(units, column) for column in values.T])


def error_of_sum(falls: Floats, groups: Ints | None) -> float:
    """Standard error of the sum of falls (n, q), NaN where unknown, of rows in groups (n,) or independent ones."""
    sums = sums_by_group(np.nan_to_num(falls - np.nanmean(falls)), groups)
    return float(np.sqrt((sums**2).sum()))


def even_folds(labels: Ints | None, units: Ints, splits: int, seed: int) -> list[Ints]:
    """Random folds of whole units: the units of every class, largest first, go to the fold with the fewest rows.

    The class of a unit is its most frequent one. Units of one row are spread as evenly as they go, also where a class has fewer rows than there are folds.
    """
    sizes = np.bincount(units)
    order = generator(seed).permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    if labels is not None:
        order = order[np.argsort(_classes_of(units, labels)[order], kind="stable")]
    fold = _fewest_rows_first(sizes[order], splits)
    return [rows_of(order[fold == k], units) for k in range(splits)]


def _classes_of(units: Ints, labels: Ints) -> Ints:
    """The most frequent class of every unit."""
    pairs, counts = np.unique(np.stack([units, labels]), axis=1, return_counts=True)
    pairs = pairs[:, np.lexsort([-counts, pairs[0]])]
    return np.asarray(pairs[1, np.unique(pairs[0], return_index=True)[1]])


def _fewest_rows_first(sizes: Ints, splits: int) -> Ints:
    """For every unit, one after the other, the fold that has the fewest rows, of several the first."""
    if len(sizes) and (sizes == sizes[0]).all():
        return np.arange(len(sizes)) % splits
    folds, rows = np.empty(len(sizes), dtype=np.intp), [(0, k) for k in range(splits)]
    for unit, size in enumerate(sizes):
        n_rows, folds[unit] = rows[0]
        heapq.heapreplace(rows, (n_rows + int(size), int(folds[unit])))
    return folds


def large_cuts(labels: Ints | None, units: Ints, seed: int) -> list[Cut]:
    """Cuts of a large table, each of which tests a tenth of the rows, and 20,000 at most, and learns from some or all of the others.

    Every row is learned from by some cut. Three cuts learn from up to nine tenths of the rows each, and fewer of more rows; two learn from half of them.
    """
    n_folds = max(_HELD_OUT, -(-len(units) // _MOST_HELD_OUT))
    folds = even_folds(
        labels, units, max(min(n_folds, int(units.max()) + 1), 2), seed
    )  # one of no unit would test nothing
    share = _ROWS_OF_MODELS / len(units)
    n_models = min(_MODELS if share >= _LEAST_SHARE else _MODELS - 1, len(folds))
    n_learned = min(int(np.ceil(max(share, _LEAST_SHARE) * len(folds))), len(folds) - 1)
    tested = [k * len(folds) // n_models for k in range(n_models)]
    return [_cut(folds, number, n_learned, labels) for number in tested]


def _cut(folds: list[Ints], tested: int, n_learned: int, labels: Ints | None) -> Cut:
    """A cut that tests a fold by the folds behind it, the first after the last: but for rows of classes that these lack."""
    learned = [folds[(tested + k) % len(folds)] for k in range(1, n_learned + 1)]
    train, test = np.sort(np.concatenate(learned)), folds[tested]
    return train, test if labels is None else test[np.isin(labels[test], labels[train])]


def rows_of(chosen: Ints, units: Ints) -> Ints:
    """The rows of some units, in their order."""
    among = np.zeros(int(units.max(initial=-1)) + 1, dtype=bool)
    among[chosen] = True
    return np.flatnonzero(among[units])


def _leaders(X: Floats) -> Ints:
    """For every row the first one that equals it; NaN equals NaN."""
    _, first, place = np.unique(_hashes(X), return_index=True, return_inverse=True)
    leaders, rows = first[place], np.arange(len(X))
    later = np.flatnonzero(leaders != rows)
    if later.size:
        same = np.ones(len(later), dtype=bool)
        for column in X.T:
            one, other = column[later], column[leaders[later]]
            same &= (one == other) | (np.isnan(one) & np.isnan(other))
        leaders[later[~same]] = later[~same]
    return leaders


def _hashes(X: Floats) -> NDArray[np.uint64]:
    hashes = np.zeros(len(X), dtype=np.uint64)
    for column in X.T:
        values = column.astype(np.float64) + 0.0  # without the sign of zero
        values[np.isnan(values)] = np.nan
        hashes = (hashes ^ values.view(np.uint64)) * _MULTIPLIER
        hashes ^= hashes >> _SHIFT
    return hashes


def _expected(X: Floats, different: Ints, rows: Ints) -> Floats:
    """How many of the different rows one expects to agree with each of these in what it shows, (rows,)."""
    logs = np.full(len(rows), np.log(len(different)))
    for column in X.T:
        values, counts = np.unique(column[different], return_counts=True)
        counts = counts[~np.isnan(values)]
        shown = ~np.isnan(column[rows])
        place = np.searchsorted(values[: len(counts)], column[rows[shown]])
        logs[shown] += np.log(counts[place] / counts.sum())
    return np.asarray(np.exp(logs))
