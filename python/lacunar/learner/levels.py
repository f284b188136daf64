"""Levels of a category as numbers: the mean of the target by level, which a row's own target has no part in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar._typing import Floats, Ints
from lacunar.observed.rules import Array, Number, Rule, floats

_LEAST_RATIO = 1e-3  # of variances between and within levels: below it levels tell nothing
_MOST_RATIO = 1e3


class LevelMeans(BaseEstimator):
    """Means of the targets by level less the mean over levels, shrunk as a model of random effects has it.

    The variance between levels is what the means of levels vary by beyond the variance within them (Henderson 1953); a level that was not
    seen has 0. Differences, for the mean over levels is another one in every fold, and would tell which fold a row is of.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "column_": Number(whole=True, low=0),
        "known_": Array("U", ("levels",), ascending=True),
        "mean_": floats("levels", "q"),
    }

    def fit(self, levels: NDArray[np.object_], Y: Floats, weight: Floats, column: int) -> LevelMeans:
        """Learn from levels (n,), "" where missing, and targets (n, q), NaN where unknown; `column` is its number in the table."""
        self.column_, (known, place) = column, _places(levels)
        self.known_ = known.astype(object)
        self.mean_ = _shrunk_means(place, len(known), Y, weight, _ratios(place, len(known), Y, weight))
        return self

    def transform(self, levels: NDArray[np.object_]) -> Floats:
        """Means (m, q) of levels (m,), NaN where a level is missing."""
        places = {level: k for k, level in enumerate(self.known_)} | {"": -1}
        means = np.vstack([self.mean_, np.zeros((1, self.mean_.shape[1]))])
        return _at(np.array([places.get(level, len(self.known_)) for level in levels], dtype=np.intp), means)


def without_own(levels: NDArray[np.object_], Y: Floats, weight: Floats, cuts: Sequence[tuple[Ints, Ints]]) -> Floats:
    """Means by level of training rows (n, q): of the rows that a cut tests from those that it learns from, of other rows with a target from the other half.

    All are shrunk alike, for rows of one cut would be told from others by how far their means lie apart.
    """
    known, place = _places(levels)
    ratios = _ratios(place, len(known), Y, weight)
    means = _at(place, _shrunk_means(place, len(known), Y, weight, ratios))
    for train, test in split_rows(Y, cuts):
        means[test] = _at(place[test], _shrunk_means(place[train], len(known), Y[train], weight[train], ratios))
    return means


def split_rows(Y: Floats, cuts: Sequence[tuple[Ints, Ints]]) -> list[tuple[Ints, Ints]]:
    """The cuts, and of the rows with a target that none tests two halves, each beside the other that it has its means from."""
    untested = np.setdiff1d(np.flatnonzero(~np.isnan(Y).all(axis=1)), np.concatenate([test for _, test in cuts]))
    halves = [(untested[1::2], untested[::2]), (untested[::2], untested[1::2])] if len(untested) > 1 else []
    return [*cuts, *halves]


class GroupSums(NamedTuple):
    """Sums over the rows of every level, of one target."""

    weight: Floats
    mean: Floats
    within: float  # weighted sum of squares about the means of levels
    n_rows: int

    @classmethod
    def of(cls, place: Ints, y: Floats, weight: Floats, n_levels: int) -> GroupSums:
        """Of rows whose levels have the numbers `place` (n,), -1 where missing, and whose targets (n,) are NaN where unknown."""
        counted = ~np.isnan(y) & (weight > 0) & (place >= 0)
        place, y, weight = place[counted], y[counted], weight[counted]
        sizes = np.bincount(place, weights=weight, minlength=n_levels).astype(np.float64)
        sums = np.bincount(place, weights=weight * y, minlength=n_levels)
        means = np.divide(sums, sizes, out=np.zeros(n_levels), where=sizes > 0)
        return cls(sizes, means, float(weight @ (y - means[place]) ** 2), len(y))


def _places(levels: NDArray[np.object_]) -> tuple[NDArray[np.str_], Ints]:
    """The different levels, and the place of each row's among them, -1 where it is missing."""
    shown, place = levels != "", np.full(len(levels), -1)
    known, place[shown] = np.unique(levels[shown].astype(str), return_inverse=True)
    return known, place


def _shrunk_means(place: Ints, n_levels: int, Y: Floats, weight: Floats, ratios: Sequence[float]) -> Floats:
    """Means by level less the mean over levels (levels, q)."""
    columns = [shrunk(GroupSums.of(place, y, weight, n_levels), ratio) for y, ratio in zip(Y.T, ratios, strict=True)]
    return np.column_stack(columns)


def shrunk(groups: GroupSums, ratio: float) -> Floats:
    if not groups.n_rows:
        return groups.mean
    # A level's mean varies by the variance between levels and its share of that within.
    precision = groups.weight / (1.0 + ratio * groups.weight)
    trust = ratio * precision
    return np.asarray(trust * (groups.mean - precision @ groups.mean / precision.sum()))


def _ratios(place: Ints, n_levels: int, Y: Floats, weight: Floats) -> list[float]:
    """Of every target the variance between levels in units of that within."""
    return [ratio_of(GroupSums.of(place, y, weight, n_levels)) for y in Y.T]


def ratio_of(groups: GroupSums) -> float:
    sizes, means = groups.weight[groups.weight > 0], groups.mean[groups.weight > 0]
    n_levels = len(sizes)
    if groups.n_rows <= n_levels or n_levels < 2:
        return _LEAST_RATIO
    within, total = groups.within / (groups.n_rows - n_levels), float(sizes.sum())
    between = float(sizes @ (means - np.average(means, weights=sizes)) ** 2)
    variance = (between - (n_levels - 1) * within) / (total - float(sizes @ sizes) / total)
    return float(np.clip(variance / max(within, 1e-12), _LEAST_RATIO, _MOST_RATIO))


def _at(place: Ints, means: Floats) -> Floats:
    """The means (m, q) of levels by their places, NaN of -1."""
    return np.vstack([means, np.full((1, means.shape[1]), np.nan)])[place]
