"""Whether entries of new rows are missing by the same mechanism as in training."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2
from sklearn.base import BaseEstimator

from lacunar._random import generator
from lacunar._typing import Floats, Ints
from lacunar.observed.rules import Number, Rule, floats, whole
from lacunar.uncertainty.shift import evenly

FEWEST_ROWS = 50  # that are compared
MOST_ROWS_COMPARED = (
    1000  # of a batch that need be compared: of more, differences too small to matter would be beyond chance
)
_MOST_TRAINING_ROWS = 4000  # evenly spaced
_MOST_PAIRED = 100  # columns whose values, and whose masks two by two, are compared
_KNOTS = 32  # quantiles by which values are ranked: scores are multiples of 1/32, whose sums are exact
_FEWEST_OBSERVED = 10  # values of a column, from which their ranks are compared
_LEAST_SHARE = 0.01  # missing in training or in the batch, from which a column's observed values are compared
# A pair of columns is new in a state that this many training rows would have if masks were independent, and at most this share of them has.
_FEWEST_EXPECTED, _UNSEEN = 20.0, 0.1
_FALSE_ALARMS = 0.0025  # of batches like training; each of the three tests has an equal part
_DRAWS, _DRAWN_ROWS = 100, 200  # batches of training rows that say what is usual, and the rows of each
_NAMED, _WORTH_NAMING = 3, 2.0  # differences in the warning, and the least z of them


class Sums(NamedTuple):
    """Counts and sums over rows; those of two sets of rows add up."""

    n: Floats  # (1,)
    missing: Floats  # (t,): rows that lack a column
    together: Floats  # (p, p): rows that lack both columns
    score: Floats  # (p,): sum of the scores of observed values
    square: Floats  # (p,): sum of their squares

    def less(self, part: Sums) -> Sums:
        """What is left when the rows of `part` are taken out."""
        return Sums(*(total - taken for total, taken in zip(self, part, strict=True)))


class Comparisons(NamedTuple):
    """Standard normal z of all comparisons of a batch with the training rows; 0 where rows are too few to compare."""

    shares: Floats  # (t,): share missing of a column
    pairs: Floats  # (p, p), above the diagonal: covariance of the masks of two columns
    values: Floats  # (p,): mean score of the observed values of a column


class MaskComparison(BaseEstimator):
    """The missingness of the training rows, to compare batches with: shares, pairs of columns, and observed values.

    Values enter as ranks among the training rows' observed values: where a column is missing by its own values, those
    that are observed have other ranks. For each of the three kinds the mean square of its z is compared with that of
    batches drawn from the training rows, by the multiple of a chi-square that has their mean and variance; the three
    share one level (Bonferroni).
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "n_": Number(low=0),
        "missing_": floats("t", low=0),
        "paired_": whole("p", ascending=True),
        "knots_": floats("p", _KNOTS),
        "together_": floats("p", "p", low=0),
        "powers_": floats(2, "p"),
        "usual_squares_": floats(3, 3, low=0),
    }

    def fit(self, T: Floats, seed: int) -> MaskComparison:
        """From training rows (n, t), NaN where an entry is missing."""
        T = T[evenly(len(T), _MOST_TRAINING_ROWS)]
        self.paired_ = evenly(T.shape[1], _MOST_PAIRED)
        self.knots_ = np.zeros((len(self.paired_), _KNOTS))
        for place, column in enumerate(T[:, self.paired_].T):
            observed = column[~np.isnan(column)]
            if observed.size:
                self.knots_[place] = np.quantile(observed, (np.arange(_KNOTS) + 0.5) / _KNOTS, method="inverted_cdf")
        sums = self._sums(T)
        self.n_, self.missing_, self.together_ = float(sums.n[0]), sums.missing, sums.together
        self.powers_ = np.vstack([sums.score, sums.square])
        self.usual_squares_ = self._drawn_squares(T, sums, seed)
        return self

    def _drawn_squares(self, T: Floats, sums: Sums, seed: int) -> Floats:
        """Of batches of training rows: mean and variance of the mean squares, and how many comparisons (3, 3)."""
        n_drawn = min(_DRAWN_ROWS, len(T) // 2)
        if n_drawn < FEWEST_ROWS:
            return np.zeros((3, 3))
        rng = generator(seed)
        squares, numbers = np.zeros((2, _DRAWS, 3))
        for draw in range(_DRAWS):
            part = self._sums(T[rng.choice(len(T), n_drawn, replace=False)])
            for kind, z in enumerate(_compared(sums.less(part), part, self.paired_)):
                squares[draw, kind], numbers[draw, kind] = _mean_square(z), np.count_nonzero(z)
        return np.vstack([squares.mean(axis=0), squares.var(axis=0), numbers.mean(axis=0)])

    def compare(self, T: Floats) -> Comparisons | None:
        """z of a batch (m, t); None where the batch or the training rows are too few."""
        if min(len(T), self.n_) < FEWEST_ROWS or not T.shape[1]:
            return None
        return _compared(self._training(), self._sums(T), self.paired_)

    def differences(self, T: Floats, names: list[str], absent: Collection[str] = ()) -> list[str]:
        """What of a batch (m, t) differs from training beyond chance, in words, the most certain first; [] if nothing.

        Columns that are absent as a whole are not compared. An entry of inf is observed, and has no rank among those of training.
        """
        compared = self.compare(T)
        if compared is not None and absent:
            compared = self._without(compared, np.isin(names, list(absent)))
        if compared is None or not self._changed(compared):
            return []
        batch, training = self._sums(T), self._training()
        least = min(_WORTH_NAMING, max(float(np.abs(z).max(initial=0.0)) for z in compared))
        largest = sorted(
            (-abs(float(z[tuple(place)])), kind, tuple(int(k) for k in place))
            for kind, z in zip(Comparisons._fields, compared, strict=True)
            for place in np.argwhere(np.abs(z) >= least)
        )
        phrases: list[str] = []
        columns: set[int] = set()
        for _, kind, place in largest:
            named = {int(self.paired_[k]) if kind != "shares" else k for k in place}
            if not named <= columns:  # no column twice for the same reason
                phrases.append(self._phrase(kind, place, batch, training, names))
                columns |= named
            if len(phrases) == _NAMED:
                break
        return phrases

    def _without(self, compared: Comparisons, absent: NDArray[np.bool_]) -> Comparisons:
        """Comparisons of all but some of the columns (t,)."""
        present = ~absent[self.paired_]
        return Comparisons(
            compared.shares * ~absent, compared.pairs * (present[:, None] & present), compared.values * present
        )

    def _phrase(self, kind: str, place: tuple[int, ...], batch: Sums, training: Sums, names: list[str]) -> str:
        """One difference, as a clause with the names of its columns."""
        n, m = training.n[0], batch.n[0]
        if kind == "shares":
            new, old = batch.missing[place] / m, training.missing[place] / n
            return f"{names[place[0]]!r} is missing in {new:.0%} (training: {old:.0%})"
        first, last = (names[self.paired_[k]] for k in (place[0], place[-1]))
        if kind == "pairs":
            new, old = batch.together[place] / m, training.together[place] / n
            return f"{first!r} and {last!r} are both missing in {new:.0%} (training: {old:.0%})"
        new, old = (
            (sums.score[place] / (sums.n[0] - sums.missing[self.paired_][place]) + 1) / 2 for sums in (batch, training)
        )
        size = "larger" if new > old else "smaller"
        return f"observed values of {first!r} are {size} (mean rank {new:.0%}, training: {old:.0%})"

    def values_changed(self, T: Floats) -> bool:
        """Whether observed values of a batch (m, t) differ from training's beyond chance.

        So they do where entries of training rows were missing by their own values, and those of the batch are not.
        """
        compared = self.compare(T)
        return compared is not None and _beyond_chance(compared.values, self.usual_squares_[:, -1])

    def has_unseen_pair(self, T: Floats) -> NDArray[np.bool_]:
        """Which rows (m, t) lack both of two columns, have both, or lack one and have the other, where training rows next to never did.

        So it is with rows that lack single entries where training rows lacked blocks of columns.
        """
        lacks, n = np.isnan(T[:, self.paired_]).astype(np.float64), self.n_
        missing = self.missing_[self.paired_]
        both, first = self.together_, missing[:, None] - self.together_
        of_states = [  # what rows have to do with the first and the second column, and how many training rows were so
            (lacks, lacks, both, np.outer(missing, missing)),
            (lacks, 1 - lacks, first, np.outer(missing, n - missing)),
            (1 - lacks, 1 - lacks, n - missing - first, np.outer(n - missing, n - missing)),
        ]
        unseen = np.zeros(len(T), dtype=bool)
        for one, other, number, expected in of_states:
            rare = (expected >= n * _FEWEST_EXPECTED) & (n * number <= _UNSEEN * expected)
            np.fill_diagonal(rare, False)
            unseen |= ((one @ rare) * other).any(axis=1)
        return unseen

    def _changed(self, compared: Comparisons) -> bool:
        return any(_beyond_chance(*pair) for pair in zip(compared, self.usual_squares_.T, strict=True))

    def _training(self) -> Sums:
        return Sums(np.array([self.n_]), self.missing_, self.together_, *self.powers_)

    def _scores(self, T: Floats) -> Floats:
        """Ranks of observed values among those of training (m, p), from -1 to 1; 0 where an entry is missing, or inf."""
        scores = np.empty((len(T), len(self.paired_)))
        for place, j in enumerate(self.paired_):
            knots, column = self.knots_[place], T[:, j]
            below = np.searchsorted(knots, column, "left") + np.searchsorted(knots, column, "right")
            scores[:, place] = np.where(np.isfinite(column), below / _KNOTS - 1, 0.0)
        return scores

    def _sums(self, T: Floats) -> Sums:
        missing, scores = np.isnan(T).astype(np.float64), self._scores(T)
        lacking = missing[:, self.paired_]
        n = np.array([float(len(T))])
        return Sums(n, missing.sum(axis=0), lacking.T @ lacking, scores.sum(axis=0), (scores**2).sum(axis=0))


def _compared(training: Sums, batch: Sums, paired: Ints) -> Comparisons:
    """Differences of means, each with the variance of the rows of both."""
    pooled = Sums(*(a + b for a, b in zip(training, batch, strict=True)))
    n, m = training.n[0], batch.n[0]
    inverse = 1 / n + 1 / m
    share = (pooled.missing + 0.5) / (n + m + 1)  # never 0 or 1
    shares = (batch.missing / m - training.missing / n) / np.sqrt(share * (1 - share) * inverse)
    pairs = (_mask_covariances(batch, paired) - _mask_covariances(training, paired)) / np.sqrt(
        _product_variances(pooled, paired) * inverse
    )
    return Comparisons(shares, np.triu(pairs, 1), _values(training, batch, pooled, paired))


def _mask_covariances(sums: Sums, paired: Ints) -> Floats:
    """Covariances of the masks of two columns (p, p)."""
    share = sums.missing[paired] / sums.n
    return np.asarray(sums.together / sums.n - share[:, None] * share)


def _product_variances(sums: Sums, paired: Ints) -> Floats:
    """Variances of the products of two centred masks (p, p), half a row added: what is rare is not certain."""
    p = sums.missing[paired] / sums.n
    both = sums.together / sums.n
    # (m - p)^2 = (1 - 2p) m + p^2 for a mask m of zeros and ones.
    slope, level = 1 - 2 * p, p**2
    square = np.outer(slope, slope) * both + np.outer(slope * p, level) + np.outer(level, slope * p)
    square += np.outer(level, level)
    return np.asarray(np.maximum(square - (both - np.outer(p, p)) ** 2, 0.0) + 0.5 / (sums.n + 1))


def _values(training: Sums, batch: Sums, pooled: Sums, paired: Ints) -> Floats:
    """z of the mean scores of observed values (p,)."""
    old, new, both = (sums.n - sums.missing[paired] for sums in (training, batch, pooled))
    largest_share = np.maximum(1 - old / training.n, 1 - new / batch.n)
    old, new, both = np.maximum(old, 1), np.maximum(new, 1), np.maximum(both, 1)
    variance = np.maximum(pooled.square / both - (pooled.score / both) ** 2, 0.0)
    enough = (np.minimum(old, new) >= _FEWEST_OBSERVED) & (largest_share >= _LEAST_SHARE) & (variance > 0)
    difference = batch.score / new - training.score / old
    return np.where(enough, difference / np.sqrt(np.where(enough, variance, 1.0) * (1 / old + 1 / new)), 0.0)


def _chance(z: Floats, mean: float, variance: float, usual_number: float) -> float:
    """Chance of a mean square as large in a batch like training; of independent z where drawn batches never differed."""
    number = np.count_nonzero(z)
    if not number:
        return 1.0
    if variance == 0:
        return float(chi2.sf(number * _mean_square(z), number))
    variance *= max(usual_number / number, 1.0)  # the mean of fewer varies more
    return float(chi2.sf(_mean_square(z) * 2 * mean / variance, 2 * mean**2 / variance))


def _beyond_chance(z: Floats, usual: Floats) -> bool:
    return _chance(z, *usual) < _FALSE_ALARMS / len(Comparisons._fields)


def _mean_square(z: Floats) -> float:
    number = np.count_nonzero(z)
    return float((z**2).sum() / number) if number else 0.0
