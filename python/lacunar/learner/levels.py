"""Levels of a category as numbers: the mean of the target by level, which a row's own target has no part in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar._typing import Floats, Ints
from lacunar.observed.rules import Array, Number, Rule, floats

_LEAST_RATIO = 1e-3  # of variances between and within levels: below it levels tell nothing
_MOST_RATIO = 1e3


class LevelMeans(BaseEstimator):  # type: ignore[misc]
    """Means of the targets by level, shrunk to the mean over levels as a model of random effects has it.

    The variance between levels is what the means of levels vary by beyond the variance within them (Henderson 1953); a level that was not
    seen has the mean over levels.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "column_": Number(whole=True, low=0),
        "known_": Array("U", ("levels",), ascending=True),
        "mean_": floats("levels", "q"),
        "prior_": floats("q"),
    }

    def fit(self, levels: NDArray[np.object_], Y: Floats, weight: Floats, column: int) -> LevelMeans:
        """Learn from levels (n,), "" where missing, and targets (n, q), NaN where unknown; `column` is its number in the table."""
        self.column_ = column
        self.known_, self.mean_, self.prior_ = _shrunk_means(levels, Y, weight)
        return self

    def transform(self, levels: NDArray[np.object_]) -> Floats:
        """Means (m, q) of levels (m,), NaN where a level is missing."""
        return _looked_up(levels, self.known_, self.mean_, self.prior_)


def without_own(levels: NDArray[np.object_], Y: Floats, weight: Floats, cuts: Sequence[tuple[Ints, Ints]]) -> Floats:
    """Means by level of training rows (n, q): of the rows that a cut tests from those that it learns from, of other rows with a target from the other half."""
    known = ~np.isnan(Y).all(axis=1)
    means = _looked_up(levels, *_shrunk_means(levels, Y, weight))
    untested = np.setdiff1d(np.flatnonzero(known), np.concatenate([test for _, test in cuts]))
    halves = [(untested[1::2], untested[::2]), (untested[::2], untested[1::2])] if len(untested) > 1 else []
    for train, test in (*cuts, *halves):
        means[test] = _looked_up(levels[test], *_shrunk_means(levels[train], Y[train], weight[train]))
    return means


class _Groups(NamedTuple):
    """Sums over the rows of every level, of one target."""

    weight: Floats
    mean: Floats
    within: float  # weighted sum of squares about the means of levels


def _shrunk_means(levels: NDArray[np.object_], Y: Floats, weight: Floats) -> tuple[NDArray[np.object_], Floats, Floats]:
    """Different levels, their means (levels, q), and that of a new level (q,)."""
    shown = levels != ""
    known, place = np.unique(levels[shown].astype(str), return_inverse=True)
    columns = [_shrunk(place, y, weight[shown], len(known)) for y in Y[shown].T]
    means = np.column_stack([mean for mean, _ in columns]) if len(known) else np.zeros((0, Y.shape[1]))
    return known.astype(object), means, np.array([prior for _, prior in columns])


def _shrunk(place: Ints, y: Floats, weight: Floats, n_levels: int) -> tuple[Floats, float]:
    counted = ~np.isnan(y) & (weight > 0)
    place, y, weight = place[counted], y[counted], weight[counted]
    if not len(y):
        return np.zeros(n_levels), 0.0
    sizes = np.bincount(place, weights=weight, minlength=n_levels).astype(np.float64)
    sums = np.bincount(place, weights=weight * y, minlength=n_levels)
    means = np.divide(sums, sizes, out=np.zeros(n_levels), where=sizes > 0)
    ratio = _ratio(_Groups(sizes[sizes > 0], means[sizes > 0], float(weight @ (y - means[place]) ** 2)), len(y))
    # A level's mean varies by the variance between levels and its share of that within.
    precision = np.divide(sizes, 1.0 + ratio * sizes, out=np.zeros(n_levels), where=sizes > 0)
    prior = float(precision @ means / precision.sum())
    trust = ratio * sizes / (1.0 + ratio * sizes)
    return trust * means + (1.0 - trust) * prior, prior


def _ratio(groups: _Groups, n: int) -> float:
    """Variance between levels in units of that within."""
    total, n_levels = float(groups.weight.sum()), len(groups.weight)
    if n <= n_levels or n_levels < 2:
        return _LEAST_RATIO
    within = groups.within / (n - n_levels)
    between = float(groups.weight @ (groups.mean - np.average(groups.mean, weights=groups.weight)) ** 2)
    effective = total - float(groups.weight @ groups.weight) / total
    variance = (between - (n_levels - 1) * within) / effective
    return float(np.clip(variance / max(within, 1e-12), _LEAST_RATIO, _MOST_RATIO))


def _looked_up(levels: NDArray[Any], known: NDArray[Any], means: Floats, prior: Floats) -> Floats:
    places = {level: k for k, level in enumerate(known)} | {"": len(known) + 1}
    table = np.vstack([means, prior[None], np.full((1, len(prior)), np.nan)])
    return table[[places.get(level, len(known)) for level in levels]]
