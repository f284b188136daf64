"""Whether the entries of new rows are missing as those of the training rows were, or by another mechanism."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import chi2
from sklearn.base import BaseEstimator

from lacunar._random import generator
from lacunar._typing import Floats, Ints
from lacunar.observed.rules import Array, Number, Rule, floats, whole
from lacunar.uncertainty.shift import evenly

FEWEST_ROWS = 50  # that are compared
MOST_ROWS_COMPARED = (
    1000  # of a batch that need be compared: of more, differences too small to matter would be beyond chance
)
_MOST_TRAINING_ROWS = 4000  # evenly spaced
_MOST_PAIRED, _MANY = 100, 50  # columns whose values, and whose masks two by two, are compared
_KNOTS = 32  # quantiles by which values are ranked: scores are multiples of 1/32, whose sums are exact
_LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of how many entries a row lacks
_FEWEST_IN_GROUP = 10
_LEAST_SHARE = 0.01  # missing in training or in the batch, from which a column's observed values are compared
_FALSE_ALARMS = 0.005  # of batches like training; each of the seven tests has an equal part
_TESTS = 7
# Batches of training rows, from which sums of squares have their mean and variance: how many, of more than fifty columns, and of how many rows.
_DRAWS, _DRAWS_OF_MANY, _DRAWN_ROWS = 100, 40, 200
_NAMED, _WORTH_NAMING = 3, 2.0  # differences in the warning, and the least z of them


class Sums(NamedTuple):
    """Counts and sums over rows; those of two sets of rows add up."""

    n: Floats  # (1,)
    missing: Floats  # (t,): rows that lack a column
    more: Floats  # (limits,): rows that lack more entries than a limit
    together: Floats  # (p, p): rows that lack both columns
    score: Floats  # (p,): sum of the scores of observed values
    square: Floats  # (p,)
    cube: Floats  # (p,)
    beside: Floats  # (p, p): sum of the scores of observed values of i over the rows that lack j

    def less(self, part: Sums) -> Sums:
        """What is left when the rows of `part` are taken out."""
        return Sums(*(total - taken for total, taken in zip(self, part, strict=True)))


class Comparisons(NamedTuple):
    """Standard normal z of all comparisons of a batch with the training rows; 0 where rows are too few to compare."""

    shares: Floats  # (t,): share missing of a column
    rows: Floats  # (limits,): share of the rows that lack more than a number of entries
    pairs: Floats  # (p, p), above the diagonal: share of the rows that lack both
    values: Floats  # (p,): mean score of the observed values of a column
    beside: Floats  # (p, p): mean score of i where j is missing less that where j is observed


class MaskComparison(BaseEstimator):  # type: ignore[misc]
    """Which entries training rows lacked, to compare batches with: shares, pairs of columns, rows, and values that were observed.

    Values enter as ranks among the training rows' observed values. All comparisons are differences of means with a pooled variance, corrected for skewness
    (Cornish and Fisher 1938); the largest of every kind is judged after Sidak. Of observed values, where many small differences add up, the mean square is judged
    too: its mean and variance are those of batches drawn from the training rows.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "n_": Number(low=0),
        "missing_": floats("t", low=0),
        "paired_": whole("p", ascending=True),
        "limits_": Array("f", ("limits",), low=0, ascending=True),
        "more_": floats("limits", low=0),
        "knots_": floats("p", _KNOTS),
        "together_": floats("p", "p", low=0),
        "powers_": floats(3, "p"),
        "beside_": floats("p", "p"),
        "usual_squares_": floats(3, 2, low=0),
    }

    def fit(self, T: Floats, seed: int) -> MaskComparison:
        """From training rows (n, t), NaN where an entry is missing."""
        T = T[evenly(len(T), _MOST_TRAINING_ROWS)]
        t = T.shape[1]
        self.paired_ = evenly(t, _MOST_PAIRED)
        missing = np.isnan(T)
        counts = missing.sum(axis=1).astype(np.float64)
        self.limits_ = np.unique(np.quantile(counts, _LEVELS, method="inverted_cdf")) if len(T) else np.zeros(1)
        self.knots_ = np.zeros((len(self.paired_), _KNOTS))
        for place, j in enumerate(self.paired_):
            seen = T[~missing[:, j], j]
            if seen.size:
                self.knots_[place] = np.quantile(seen, (np.arange(_KNOTS) + 0.5) / _KNOTS, method="inverted_cdf")
        scores = self._scores(T)
        sums = self._sums(T, scores)
        self.n_, self.missing_, self.more_, self.together_ = float(sums.n[0]), sums.missing, sums.more, sums.together
        self.powers_, self.beside_ = np.vstack([sums.score, sums.square, sums.cube]), sums.beside
        self.usual_squares_ = self._drawn_squares(T, scores, sums, seed)
        return self

    def _drawn_squares(self, T: Floats, scores: Floats, sums: Sums, seed: int) -> Floats:
        """Mean and variance of the mean squares of `values` and `beside` over batches of training rows, and how many comparisons they are of (3, 2)."""
        n_drawn = min(_DRAWN_ROWS, len(T) // 2)
        if n_drawn < FEWEST_ROWS:
            return np.zeros((3, 2))
        rng = generator(seed)
        n_draws = _DRAWS if len(self.paired_) <= _MANY else _DRAWS_OF_MANY
        squares, numbers = np.zeros((2, n_draws, 2))
        for draw in range(n_draws):
            rows = rng.choice(len(T), n_drawn, replace=False)
            part = self._sums(T[rows], scores[rows])
            compared = _compared(sums.less(part), part, self.paired_)
            for k, z in enumerate((compared.values, compared.beside)):
                squares[draw, k], numbers[draw, k] = _mean_square(z), np.count_nonzero(z)
        return np.vstack([squares.mean(axis=0), squares.var(axis=0), numbers.mean(axis=0)])

    def compare(self, T: Floats) -> Comparisons | None:
        """z of a batch (m, t); None where the batch or the training rows are too few."""
        if min(len(T), self.n_) < FEWEST_ROWS or not T.shape[1]:
            return None
        return _compared(self._training(), self._sums(T, self._scores(T)), self.paired_)

    def differences(self, T: Floats, names: list[str], absent: Collection[str] = ()) -> list[str]:
        """What of a batch (m, t) differs from training beyond chance, in words, the most certain first; [] where nothing does.

        Columns that are absent as a whole are not compared, and with one of them not how many entries rows lack.
        """
        compared = self.compare(T)
        if compared is not None and absent:
            compared = self._without(compared, np.isin(names, list(absent)))
        if compared is None or not self._changed(compared):
            return []
        batch, training = self._sums(T, self._scores(T)), self._training()
        least = min(_WORTH_NAMING, max(float(np.abs(z).max(initial=0.0)) for z in compared))
        largest = sorted(
            (kind == "rows", -abs(float(z[tuple(place)])), kind, tuple(int(k) for k in place))
            for kind, z in zip(Comparisons._fields, compared, strict=True)
            for place in np.argwhere(np.abs(z) >= least)
        )
        phrases: list[str] = []
        columns: set[int] = set()
        for _, _, kind, place in largest:
            own = set() if kind == "rows" else {int(self.paired_[k]) if kind != "shares" else k for k in place}
            if not own or not own <= columns:  # no column twice for the same reason
                phrases.append(self._phrase(kind, place, batch, training, names))
                columns |= own
            if len(phrases) == _NAMED:
                break
        return phrases

    def _without(self, compared: Comparisons, absent: NDArray[np.bool_]) -> Comparisons:
        """Comparisons of all but some of the columns (t,)."""
        present = ~absent[self.paired_]
        both = present[:, None] & present
        return Comparisons(
            compared.shares * ~absent,
            np.zeros_like(compared.rows),
            compared.pairs * both,
            compared.values * present,
            compared.beside * both,
        )

    def _phrase(self, kind: str, place: tuple[int, ...], batch: Sums, training: Sums, names: list[str]) -> str:
        """One difference, as a clause with the names of its columns."""
        n, m = training.n[0], batch.n[0]
        if kind == "rows":
            limit, new, old = self.limits_[place], batch.more[place] / m, training.more[place] / n
            return f"{new:.0%} of the rows lack more than {limit:.0f} entries (training: {old:.0%})"
        if kind == "shares":
            return f"{names[place[0]]!r} is missing in {batch.missing[place] / m:.0%} (training: {training.missing[place] / n:.0%})"
        first, last = (names[self.paired_[k]] for k in (place[0], place[-1]))
        if kind == "pairs":
            new, old = batch.together[place] / m, training.together[place] / n
            return f"{first!r} and {last!r} are both missing in {new:.0%} (training: {old:.0%})"
        if kind == "values":
            ranks = [
                (sums.score[place] / (sums.n[0] - sums.missing[self.paired_][place]) + 1) / 2
                for sums in (batch, training)
            ]
            return f"observed values of {first!r} are {'larger' if ranks[0] > ranks[1] else 'smaller'} (mean rank {ranks[0]:.0%}, training: {ranks[1]:.0%})"
        new, old = (_apart(sums, self.paired_, place) / 2 for sums in (batch, training))
        return f"where {last!r} is missing, {first!r} ranks {new:+.0%} from where it is not (training: {old:+.0%})"

    def _changed(self, compared: Comparisons) -> bool:
        chance = _FALSE_ALARMS / _TESTS
        for z in compared:
            number = np.count_nonzero(z)
            if number and np.abs(z).max() > -ndtri(-np.expm1(np.log1p(-chance) / number) / 2):
                return True
        for z, (mean, variance, usual) in zip((compared.values, compared.beside), self.usual_squares_.T, strict=True):
            number = np.count_nonzero(z)
            if not number or variance == 0:
                continue
            variance *= max(usual / number, 1.0)  # the mean of fewer varies more
            # The multiple of chi-square that has this mean and variance.
            if chi2.sf(_mean_square(z) * 2 * mean / variance, 2 * mean**2 / variance) < chance:
                return True
        return False

    def _training(self) -> Sums:
        score, square, cube = self.powers_
        return Sums(np.array([self.n_]), self.missing_, self.more_, self.together_, score, square, cube, self.beside_)

    def _scores(self, T: Floats) -> Floats:
        """Ranks of observed values among those of training (m, p), from -1 to 1; 0 where an entry is missing."""
        scores = np.empty((len(T), len(self.paired_)))
        for place, j in enumerate(self.paired_):
            knots, column = self.knots_[place], T[:, j]
            below = np.searchsorted(knots, column, "left") + np.searchsorted(knots, column, "right")
            scores[:, place] = np.where(np.isnan(column), 0.0, below / _KNOTS - 1)
        return scores

    def _sums(self, T: Floats, scores: Floats) -> Sums:
        missing = np.isnan(T)
        lacking = missing[:, self.paired_].astype(np.float64)
        more = missing.sum(axis=1)[:, None] > self.limits_
        return Sums(
            np.array([float(len(T))]),
            missing.sum(axis=0).astype(np.float64),
            more.sum(axis=0).astype(np.float64),
            lacking.T @ lacking,
            scores.sum(axis=0),
            (scores**2).sum(axis=0),
            (scores**3).sum(axis=0),
            scores.T @ lacking,
        )


def _compared(training: Sums, batch: Sums, paired: Ints) -> Comparisons:
    pooled = Sums(*(a + b for a, b in zip(training, batch, strict=True)))
    n, m = training.n[0], batch.n[0]

    def shares(counts: str) -> Floats:
        of_training, of_batch = getattr(training, counts), getattr(batch, counts)
        share = (of_training + of_batch + 0.5) / (n + m + 1)  # never 0 or 1
        variance = share * (1 - share)
        return _z(of_batch / m - of_training / n, variance, (1 - 2 * share) / np.sqrt(variance), (1 / m,), (1 / n,))

    own = np.array([batch.missing[paired], training.missing[paired]])
    seen_new, seen_old = m - own[0], n - own[1]
    variance, skewness = _moments(pooled, seen_new + seen_old)
    enough = (np.minimum(seen_new, seen_old) >= _FEWEST_IN_GROUP) & (np.maximum(own[0] / m, own[1] / n) >= _LEAST_SHARE)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _z(
            batch.score / seen_new - training.score / seen_old, variance, skewness, (1 / seen_new,), (1 / seen_old,)
        )
        # Rows with i observed and j missing, and with both observed.
        new_beside, old_beside = own[0] - batch.together, own[1] - training.together
        new_other, old_other = seen_new[:, None] - new_beside, seen_old[:, None] - old_beside
        difference = batch.beside / new_beside - (batch.score[:, None] - batch.beside) / new_other
        difference -= training.beside / old_beside - (training.score[:, None] - training.beside) / old_other
        beside = _z(
            difference,
            variance[:, None],
            skewness[:, None],
            (1 / new_beside, 1 / old_other),
            (1 / new_other, 1 / old_beside),
        )
    groups = np.minimum(np.minimum(new_beside, old_beside), np.minimum(new_other, old_other))
    return Comparisons(
        shares("missing"),
        shares("more"),
        np.triu(shares("together"), 1),
        np.where(enough, values, 0.0),
        np.where((groups >= _FEWEST_IN_GROUP) & ~np.eye(len(paired), dtype=bool), beside, 0.0),
    )


def _apart(sums: Sums, paired: Ints, place: tuple[int, ...]) -> float:
    """Mean score of the first column of `place` where the second is missing, less that where both are observed."""
    i, j = place
    missing = sums.missing[paired]
    beside = missing[j] - sums.together[i, j]
    both = sums.n[0] - missing[i] - beside
    return float(sums.beside[i, j] / beside - (sums.score[i] - sums.beside[i, j]) / both)


def _moments(sums: Sums, seen: Floats) -> tuple[Floats, Floats]:
    """Variance and skewness of the scores of columns of which `seen` were observed."""
    number = np.maximum(seen, 1)
    mean, square, cube = sums.score / number, sums.square / number, sums.cube / number
    variance = np.maximum(square - mean**2, 0.0)
    third = cube - 3 * mean * square + 2 * mean**3
    return variance, np.where(variance > 0, third / np.maximum(variance, 1e-12) ** 1.5, 0.0)


def _z(
    difference: Floats,
    variance: Floats,
    skewness: Floats,
    added: tuple[Floats, ...],
    taken: tuple[Floats, ...],
) -> Floats:
    """Standard normal z of a difference of means of groups of one law; `added` and `taken` are the groups' inverse sizes."""
    inverse = sum(added) + sum(taken)
    x = np.where(variance > 0, difference / np.sqrt(np.maximum(variance, 1e-12) * inverse), 0.0)
    lopsided = sum(size**2 for size in added) - sum(size**2 for size in taken)
    g = np.maximum(skewness * lopsided / inverse**1.5 / 6 * np.sign(x), 0.0)
    size = np.abs(x)
    normal = 2 * (size + g) / (1 + np.sqrt(1 + 4 * g * (size + g)))  # solves size = z + g (z^2 - 1)
    return np.asarray(np.sign(x) * np.minimum(size, normal))


def _mean_square(z: Floats) -> float:
    number = np.count_nonzero(z)
    return float((z**2).sum() / number) if number else 0.0
