"""Checks whether rows are independent: a column that names groups of rows, or neighbours that are alike."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution
from scipy.stats import norm, rankdata

from lacunar._random import generator
from lacunar._typing import Bools, Floats, Ints

FEWEST_ROWS = 100  # that say whether rows are independent
_FEWEST_GROUPS, _FEWEST_A_GROUP = 20, 1.5  # levels of a column that may name groups, and rows of one in the mean
MOST_ROWS_LOOKED_AT = 20_000
_MOST_COMPARED = 300  # rows of which the nearest other row is found
_RECOGNISED = 0.3  # of the rows whose nearest other row is of their group, from which columns tell groups apart
_TIMES_CHANCE = 5.0
_OF_LEVEL = 0.8  # intraclass correlation of a column that belongs to the level rather than to the row
_ALIKE = 0.1  # intraclass correlation of the targets
_FALSE_ALARMS = 1e-4
_MEASURED_ALIKE = 0.5  # rank correlation of two measurements of like things
_SERIAL = 0.35  # correlation of neighbours' residuals
_RUNS = 5  # runs of labels for every class, below which rows are sorted by them
_SERIAL_WITHIN, _BINS = 0.15, 20  # the same among rows of one label, or of one of so many bins of numbers


def grouping_column(columns: Iterable[tuple[Any, NDArray[Any], Bools]], Z: Floats, Y: Floats) -> Any:
    """The name of the first column that names groups: rows of a level are near one another in the other columns, and have like targets; else None.

    Columns are (name, values (n,), which columns of Z (n, p) are not made of it). Of a mere category, such as a country, the other columns do
    not tell the level; of a person or a place they do, so that a member which has seen the group knows its other rows.
    """
    candidates = [
        (name, values, levels, others) for name, values, others in columns if (levels := _levels(values)) is not None
    ]
    for name, values, levels, others in candidates:
        rows = np.flatnonzero(levels >= 0)
        if not _targets_alike(levels[rows], Y[rows], _FALSE_ALARMS / len(candidates)):
            continue
        others = others & ~_measured_alike(values[rows], Z[rows])
        if _recognised(levels[rows], Z[rows][:, others]):
            return name
    return None


def _levels(values: NDArray[Any]) -> Ints | None:
    """Numbers of the levels (n,), -1 where missing, of a column of text or whole numbers that may name groups; else None."""
    if values.dtype == object:
        missing = np.array([value == "" for value in values])
        keys = np.array([str(value) for value in values])
    elif values.dtype.kind == "f":
        missing = np.isnan(values)
        keys = values
        if missing.all() or (values[~missing] % 1 != 0).any():
            return None
    else:
        return None
    known, levels = np.unique(keys[~missing], return_inverse=True)
    enough = len(known) >= _FEWEST_GROUPS and len(levels) >= _FEWEST_A_GROUP * len(known)
    if not enough or len(levels) < FEWEST_ROWS:
        return None
    numbers = np.full(len(values), -1)
    numbers[~missing] = levels
    return numbers


def _measured_alike(values: NDArray[Any], Z: Floats) -> Bools:
    """Which columns of Z (n, p) rise or fall with whole numbers (n,): these measure something then, where names of groups are in no order."""
    if values.dtype == object:
        return np.zeros(Z.shape[1], dtype=bool)
    return np.array([_rank_correlation(values, column) for column in Z.T]) > _MEASURED_ALIKE


def _rank_correlation(values: Floats, column: Floats) -> float:
    """Spearman's, without its sign; 0 where either does not vary."""
    seen = ~np.isnan(column)
    if seen.sum() < 2 or np.ptp(values[seen]) == 0 or np.ptp(column[seen]) == 0:
        return 0.0
    return abs(float(np.corrcoef(rankdata(values[seen]), rankdata(column[seen]))[0, 1]))


def _targets_alike(levels: Ints, Y: Floats, false_alarms: float) -> bool:
    """Whether targets (n, q) of a level are alike beyond chance."""
    tests = [_intraclass(levels, y) for y in Y.T]
    return any(share > _ALIKE and chance < false_alarms / len(tests) for share, chance in tests)


def _intraclass(levels: Ints, values: Floats) -> tuple[float, float]:
    """The intraclass correlation of the ranks of values (n,), and the chance of one as large among levels that say nothing: an analysis of variance.

    Of ranks, for one wild value in a level of few rows would make a level of all columns.
    """
    values = rankdata(values)
    units = np.unique(levels, return_inverse=True)[1]
    counts = np.bincount(units)
    n, k = len(units), len(counts)
    if n <= k or k < 2:
        return 0.0, 1.0
    means = np.bincount(units, values) / counts
    between = float(counts @ (means - values.mean()) ** 2) / (k - 1)
    within = max(float(((values - means[units]) ** 2).sum()) / (n - k), 1e-300)
    size = (n - (counts**2).sum() / n) / (k - 1)
    chance = float(f_distribution.sf(between / within, k - 1, n - k))
    return (between - within) / (between + (size - 1) * within), chance


def _recognised(levels: Ints, Z: Floats) -> bool:
    """Whether other columns reveal the level: a column is constant within levels, or a row's nearest neighbour is
    mostly of its level.
    """
    false_alarms = _FALSE_ALARMS / max(Z.shape[1], 1)
    return any(_of_level(levels, column, false_alarms) for column in Z.T) or _near_one_another(levels, Z)


def _of_level(levels: Ints, column: Floats, false_alarms: float) -> bool:
    """Whether a column has nearly one value a level, and about as many values as there are levels."""
    seen = ~np.isnan(column)
    levels, values = levels[seen], column[seen]
    if 2 * len(np.unique(values)) < len(np.unique(levels)):
        return False
    share, chance = _intraclass(levels, values)
    return share > _OF_LEVEL and chance < false_alarms


def _near_one_another(levels: Ints, Z: Floats) -> bool:
    """Whether the nearest other row of a row of every level is mostly of that level."""
    if not Z.shape[1]:
        return False
    counts, order = np.bincount(levels), generator(0).permutation(len(levels))
    one_a_level = order[np.unique(levels[order], return_index=True)[1]]
    drawn = generator(0).permutation(one_a_level[counts[levels[one_a_level]] > 1])[:_MOST_COMPARED]
    if not len(drawn):
        return False
    rows = np.nan_to_num(Z)
    distances = (rows**2).sum(axis=1) - 2 * rows[drawn] @ rows.T
    distances[np.arange(len(drawn)), drawn] = np.inf
    same = float(np.mean(levels[distances.argmin(axis=1)] == levels[drawn]))
    chance = float(np.mean((counts[levels[drawn]] - 1) / (len(levels) - 1)))
    return same > max(_RECOGNISED, _TIMES_CHANCE * chance)


def neighbours_are_alike(residuals: Floats, labels: Ints | None, Y: Floats) -> bool:
    """Whether residuals (n, q) of rows in their order are correlated with those of the row before, also among rows of like targets.

    Neighbours in a table that is sorted by its targets have like residuals. Their predictions are alike, given the targets, only where the columns tell
    neighbours from other rows, and a member that has seen the neighbours knows too much.
    """
    if len(residuals) < FEWEST_ROWS or _is_sorted(labels, Y):
        return False
    chance = _FALSE_ALARMS / residuals.shape[1]
    for k, residual in enumerate(residuals.T):
        units = _bins(Y[:, k]) if labels is None else labels
        within = residual - (np.bincount(units, residual) / np.maximum(np.bincount(units), 1))[units]
        if _correlated(residual, _SERIAL, chance) and _correlated(within, _SERIAL_WITHIN, chance):
            return True
    return False


def _is_sorted(labels: Ints | None, Y: Floats) -> bool:
    """Whether rows are sorted by their label, in few runs, or by a number."""
    if labels is not None:
        return bool(np.count_nonzero(np.diff(labels)) < _RUNS * len(np.unique(labels)))
    return any(float((np.diff(y) >= 0).mean()) in (0.0, 1.0) for y in Y.T)


def _bins(y: Floats) -> Ints:
    """Twenty bins of like numbers."""
    return np.asarray((rankdata(y) - 0.5) * _BINS // len(y), dtype=np.intp)


def _correlated(values: Floats, least: float, chance: float) -> bool:
    """Whether every value goes with the one before, by ranks: one wild row is no pattern."""
    ranks = rankdata(values) - (len(values) + 1) / 2
    square = float(ranks @ ranks)
    correlation = float(ranks[1:] @ ranks[:-1]) / square if square else 0.0
    return correlation > least and float(norm.sf(correlation * np.sqrt(len(values)))) < chance
