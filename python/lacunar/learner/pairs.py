"""Pairs of categories as numbers: the mean of the target by pair of levels, which a row's own target has no part in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator

from lacunar._random import generator
from lacunar._typing import Floats, Ints
from lacunar.learner.levels import GroupSums, ratio_of, shrunk, split_rows
from lacunar.observed.rules import Rule, floats, whole

_FEWEST_LEVELS = 3  # of a category
_MOST_CATEGORIES, _MOST_PAIRS = 20, 5  # of which pairs are looked at, those of most levels first; and pairs judged
_MOST_TRIPLES = 2  # pairs that are looked at with a third category, and triples judged
_MOST_MEANS = 100_000
_SCREENED_ROWS = 4000
_BEYOND_CHANCE = 3.0  # standard errors by which means of pairs vary more than rows of a pair let one expect
_ROUNDING = 1e-12  # of the variance of a target: what varies less within pairs is not told from nothing
_ROUNDS = 3  # of fitting the levels of one category to what those of the other leave


class PairMeans(BaseEstimator):
    """Means of the targets by pair of levels: an effect of either level, and of both what these two leave.

    Each is shrunk as a model of random effects has it. A pair that was not seen has the effects of its levels, and a level that was not seen has none.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "places_": whole("categories", distinct=True),  # columns of the encoded table
        "sizes_": whole("categories", low=1),
        "mean_": floats("levels", "others", "q"),
    }

    def fit(self, pair: Pair, Y: Floats, weight: Floats) -> PairMeans:
        """Learn from targets (n, q), NaN where unknown."""
        self.places_, self.sizes_ = np.array(pair.places), np.array(pair.sizes)
        self.mean_ = pair.means(Y, weight, pair.ratios(Y, weight))
        return self

    def transform(self, levels: Floats) -> Floats:
        """Means (m, q) of levels of the categories (m, 2 or 3), NaN where one is missing."""
        return Pair.of(levels, range(levels.shape[1]), self.sizes_.tolist()).looked_up(self.mean_)


class Pair(NamedTuple):
    """Two categories of some rows, of which the first may itself be a pair."""

    places: tuple[int, ...]  # columns of the encoded table
    sizes: tuple[int, ...]  # levels of each, and one that stands for all that were not seen
    rows: Ints  # that have all levels
    first: Ints  # their levels
    second: Ints
    n: int

    @classmethod
    def of(cls, encoded: Floats, places: Sequence[int], sizes: Sequence[int]) -> Pair:
        """The categories in columns of encoded rows; all but the last are one."""
        rows = np.flatnonzero(~np.isnan(encoded[:, places]).any(axis=1))
        *joined, second = encoded[rows][:, places].astype(np.intp).T
        first = np.ravel_multi_index(tuple(joined), tuple(sizes[:-1]))
        return cls(tuple(places), tuple(sizes), rows, first, second, len(encoded))

    @property
    def shape(self) -> tuple[int, int]:
        """Levels of either."""
        return prod(self.sizes[:-1]), self.sizes[-1]

    def among(self, rows: Ints) -> Pair:
        """The same of some of the rows, which keep their numbers."""
        chosen = np.isin(self.rows, rows)
        return self._replace(rows=self.rows[chosen], first=self.first[chosen], second=self.second[chosen])

    @property
    def together(self) -> Ints:
        """The number of every row's pair of levels."""
        return self.first * self.shape[1] + self.second

    def effects(self, y: Floats, weight: Floats, ratios: Sequence[float] | None = None) -> Effects:
        """Effects of levels and of pairs on a target (n,), NaN where unknown, shrunk by ratios of variances, or by those that the rows show."""
        y, weight = y[self.rows], weight[self.rows]
        levels, of_levels = (self.first, self.second), [np.zeros(size) for size in self.shape]
        learned = [1.0, 1.0, 1.0] if ratios is None else list(ratios)
        for _ in range(_ROUNDS):
            for k in (0, 1):
                left = y - of_levels[1 - k][levels[1 - k]]
                sums = GroupSums.of(levels[k], left, weight, self.shape[k])
                learned[k] = ratio_of(sums) if ratios is None else ratios[k]
                of_levels[k] = shrunk(sums, learned[k])
        left = y - of_levels[0][self.first] - of_levels[1][self.second]
        sums = GroupSums.of(self.together, left, weight, self.shape[0] * self.shape[1])
        total = GroupSums.of(np.zeros_like(self.first), y, weight, 1).within
        learned[2] = ratio_of(sums) if ratios is None else ratios[2]
        of_pairs = shrunk(sums, learned[2]).reshape(self.shape)
        return Effects(of_levels[0][:, None] + of_levels[1] + of_pairs, learned, sums, total)

    def ratios(self, Y: Floats, weight: Floats) -> list[list[float]]:
        """Of every target the variances between levels of either, and between pairs, in units of those within."""
        return [self.effects(y, weight).ratios for y in Y.T]

    def means(self, Y: Floats, weight: Floats, ratios: Sequence[Sequence[float]]) -> Floats:
        """Means of targets by pair of levels (levels, others, q)."""
        of_targets = [self.effects(y, weight, known).means for y, known in zip(Y.T, ratios, strict=True)]
        return np.stack(of_targets, axis=2)

    def looked_up(self, means: Floats) -> Floats:
        """The means (n, q) of every row's pair, NaN where it lacks a level."""
        values = np.full((self.n, means.shape[2]), np.nan)
        values[self.rows] = means[self.first, self.second]
        return values

    def without_own(self, Y: Floats, weight: Floats, cuts: Sequence[tuple[Ints, Ints]]) -> Floats:
        """Means by pair of training rows (n, q), as `levels.without_own` has those by level."""
        ratios = self.ratios(Y, weight)
        values = self.looked_up(self.means(Y, weight, ratios))
        for train, test in split_rows(Y, cuts):
            values[test] = self.among(test).looked_up(self.among(train).means(Y, weight, ratios))[test]
        return values

    @property
    def n_different(self) -> int:
        """Pairs of levels that some row has."""
        return len(np.unique(self.together))


class Effects(NamedTuple):
    """Means of one target by pair of levels, the ratios by which they were shrunk, and the sums of what levels leave."""

    means: Floats  # (levels, others)
    ratios: list[float]
    left: GroupSums
    total: float  # sum of squares of the target

    @property
    def beyond_chance(self) -> float:
        """Standard errors by which what levels leave varies more between pairs than rows of a pair let one expect."""
        sums = self.left
        between, within = np.count_nonzero(sums.weight) - 1, sums.n_rows - np.count_nonzero(sums.weight)
        if between < 1 or within < 1 or not self.total:
            return 0.0
        centre = np.average(sums.mean, weights=sums.weight)
        noise = max(sums.within, _ROUNDING * self.total) / within
        ratio = float(sums.weight @ (sums.mean - centre) ** 2) / between / noise
        return (ratio - 1) / float(np.sqrt(2 / between + 2 / within))


def likely_pairs(
    encoded: Floats, n_levels: Mapping[int, int], Y: Floats, weight: Floats, fewest: float, seed: int
) -> list[Pair]:
    """The pairs of categories whose levels together tell most beyond chance of what each of them leaves, and of these with a third one.

    `n_levels` are by column; pairs of levels have `fewest` rows on average at least.
    """
    known = np.flatnonzero(~np.isnan(Y).all(axis=1))
    shown = np.sort(generator(seed).permutation(known)[:_SCREENED_ROWS])  # in order, a period may repeat
    most = sorted((j for j, size in n_levels.items() if size >= _FEWEST_LEVELS), key=lambda j: (-n_levels[j], j))
    categories = sorted(most[:_MOST_CATEGORIES])

    def likely(candidates: Iterable[tuple[int, ...]], n_most: int) -> list[tuple[int, ...]]:
        excess = {}
        for places in candidates:
            sizes = [n_levels[j] + 1 for j in places]
            if prod(sizes) > _MOST_MEANS:
                continue
            seen = Pair.of(encoded[shown], places, sizes)
            if len(encoded) >= fewest * seen.n_different:
                excess[places] = max(seen.effects(y, weight[shown]).beyond_chance for y in Y[shown].T)
        best = sorted(excess, key=lambda places: (-excess[places], places))[:n_most]
        return [places for places in best if excess[places] > _BEYOND_CHANCE]

    pairs = likely(combinations(categories, 2), _MOST_PAIRS)
    triples = likely(((*pair, j) for pair in pairs[:_MOST_TRIPLES] for j in categories if j not in pair), _MOST_TRIPLES)
    likeliest = [Pair.of(encoded, places, [n_levels[j] + 1 for j in places]) for places in (*pairs, *triples)]
    return [pair for pair in likeliest if len(pair.rows) >= fewest * pair.n_different]
