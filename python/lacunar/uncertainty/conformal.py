"""Scores of rows out of fold by how many entries the rows lack, and quantiles of them: what intervals and sets of the
wrappers and of the one learner are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from lacunar._log import warn_user
from lacunar._typing import Bools, Floats, Ints
from lacunar.observed.cells import listed
from lacunar.observed.rules import Array, Flag, Number, Rule, floats

Condition = Literal["missing", "class", "auto"]
CONDITIONS: tuple[Condition, ...] = ("missing", "class", "auto")
Tail = Literal["upper", "lower", "both"]
LowerBound = float | Literal["auto", "observed"] | None
End = Callable[[float, Tail, int], Floats]  # of a level, a tail of the scores and a side, -1 or 1: ends (m,)

TAILS: dict[Tail, Callable[[Floats], Floats]] = {"upper": np.positive, "lower": np.negative, "both": np.abs}
_WIDTH = 0.1  # of the kernel over numbers missing, in units of the number of columns
_ENOUGH = 100.0  # rows near a number of missing entries, at which copies are not needed


def check_level(level: Any) -> float:
    """The level as a float; an error where it is not one number between 0 and 1."""
    if not isinstance(level, Real):
        raise TypeError(f"level must be one number between 0 and 1; got {level!r}. Ask once for each level.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}. Pass 0.9 for what misses one row in ten.")
    return float(level)


def check_levels(levels: Any) -> Floats:
    """Levels (k,), or () where one number came; an error where one is not between 0 and 1."""
    values = [levels] if isinstance(levels, Real) else levels
    listed = isinstance(values, Sequence | np.ndarray) and getattr(values, "ndim", 1) == 1 and len(values)
    if not listed or not all(isinstance(level, Real) for level in values):
        raise TypeError(
            f"level must be a number between 0 and 1 or a sequence of them; got {levels!r}. Pass 0.9, or [0.5, 0.9]."
        )
    checked = np.array([check_level(level) for level in values])
    return checked[0] if isinstance(levels, Real) else checked


def check_condition(condition: Any) -> None:
    """An error where it is no condition of sets."""
    if condition not in CONDITIONS:
        raise ValueError(
            f"condition must be 'missing', 'class' or 'auto'; got {condition!r}. Pass 'class' for the coverage of each."
        )


def lowest_ends(lower_bound: LowerBound, least: Floats) -> Floats:
    """Below which no end lies (q,), of targets whose smallest of training are `least` (q,); -inf without a bound."""
    words = {"auto": np.where(least >= 0, 0.0, -np.inf), "observed": least}
    if isinstance(lower_bound, str) and lower_bound in words:
        return words[lower_bound]
    if lower_bound is None:
        return np.full_like(least, -np.inf)
    if isinstance(lower_bound, Real) and np.isfinite(float(lower_bound)):
        return np.full_like(least, float(lower_bound))
    raise ValueError(
        f"lower_bound must be a finite number, 'auto', 'observed' or None; got {lower_bound!r}. Pass 0 for prices."
    )


def hold_predictions(intervals: Floats, predictions: Floats, least: Floats) -> None:
    """Lower ends (..., [k], 2) become the predictions (...) that are below a bound found in the targets: an interval holds
    its own prediction.

    Upper ends stay at the bound or above, where the targets are.
    """
    below = predictions < least
    one_each = (-1,) + (1,) * (intervals.ndim - predictions.ndim - 1)
    intervals[below, ..., 0] = predictions[below].reshape(one_each)


def quantile_rank(n: Any, level: float) -> Any:
    """Rank, from 1, of the score that is the quantile of n scores: ceil(level (n + 1)), above n where n is too small."""
    return np.ceil(level * (n + 1) - 1e-9).astype(np.intp)


def quantile(scores: Floats, level: float) -> float:
    """The ceil(level (n + 1))-th smallest of n scores; infinite where there are too few."""
    k = int(quantile_rank(np.array(len(scores)), level))
    return np.inf if k > len(scores) else float(np.partition(scores, k - 1)[k - 1])


def quantiles_of_rows(ends: Floats, level: float, weights: Floats, own: Floats | None) -> Floats:
    """Quantiles (m,), each over the n ends of a row of `ends` (m, n). Ends weigh `weights` (n,) and the unknown one of a
    row `own` (m,); None weighs all alike.
    """
    n = ends.shape[1]
    if own is None:
        k = int(quantile_rank(np.array(n), level))
        return np.full(len(ends), np.inf) if k > n else np.asarray(np.partition(ends, k - 1, axis=1)[:, k - 1])
    order = np.argsort(ends, axis=1, kind="stable")
    below = np.cumsum(weights[order], axis=1)
    first = (below < level * (weights.sum() + own[:, None]) - 1e-9).sum(axis=1)
    ordered = np.column_stack([np.take_along_axis(ends, order, axis=1), np.full(len(ends), np.inf)])
    return np.asarray(ordered[np.arange(len(ends)), first])


def weighted_place(weight: Floats, level: float, own: Floats) -> Ints:
    """Places, from 0, of quantiles (m,) among n sorted scores of weights `weight` (n,), where the unknown scores weigh
    `own` (m,); n where the weights are too small.
    """
    total = float(weight.sum())
    return np.searchsorted(np.cumsum(weight) / (total + 1), level * ((total + own) / (total + 1)) - 1e-12)


def rows_needed(level: float) -> int:
    """How many scores a finite quantile of the level needs."""
    return int(np.ceil(level / (1 - level) - 1e-9))


def warn_of_infinite(ends: Floats, levels: Floats, n_rows: int, *, two_tails: bool) -> None:
    """Say where ends (m, ...) are infinite, because `n_rows` rows, or those that lack about as many entries, are too few
    for the largest of the levels. `two_tails` says that levels are coverages; else they are shares below an end.
    """
    infinite = np.isinf(ends).reshape(len(ends), -1).any(axis=1)
    if infinite.any():
        level = float(np.max(levels if two_tails else np.maximum(levels, 1 - levels)))
        warn_user(
            f"ends of {infinite.sum()} of {len(ends)} rows are infinite: level={level:g} needs {rows_needed(level)} "
            "calibration rows that lack about as many entries, and more where likelihood_ratio is large; there are "
            f"{n_rows} in all. Ask for a level nearer 0.5, or fit to more rows."
        )


def warn_of_rare(classes: Any, n_rows: Ints, level: float) -> None:
    """Say which classes have too few rows (c,) for a quantile of their own."""
    rare = quantile_rank(n_rows, level) > n_rows
    if rare.any():
        pairs = zip(np.asarray(classes)[rare].tolist(), n_rows[rare], strict=True)
        warn_user(
            f"classes have fewer rows than the {rows_needed(level)} that level={level:g} needs for a quantile of their own: "
            f"{listed(f'{label!r} ({n})' for label, n in pairs)}. "
            "Sets may cover them far less often than asked. Pass condition='class', which puts them into every set, or "
            "give more rows of them."
        )


class ConformalScores(BaseEstimator):
    """Scores of rows by models that had not seen them, and how many entries each of the rows lacks.

    Scores of numbers are residuals over standard deviations, with their signs; those of classes 1 - p(class of the
    row). Some rows may be copies of others with further entries hidden.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "scores_": floats("n"),
        "n_missing_": floats("n", low=0),
        "copied_": Array("b", ("n",)),
        "labels_": Array("i", ("n",), low=0),
        "weights_": floats("n", low=0),
        "n_columns_": Number(whole=True, low=1),
        "copies_count_": Flag(),
    }

    def fit(
        self,
        scores: Floats,
        n_missing: Floats,
        n_columns: int,
        *,
        labels: Ints | None = None,
        copied: Bools | None = None,
        copies_count: bool = False,
        weights: Floats | None = None,
    ) -> Self:
        """Store scores, numbers of missing entries, labels, weights, and which rows are copies, each (n,).

        With `copies_count` copies weigh as much as rows. Else they weigh max(0, 1 - near / 100), where `near` is the
        sum of squared kernel weights of the rows: thousands of complete rows are not near a row that lacks two entries.
        """
        self.scores_, self.n_missing_ = scores, n_missing.astype(np.float64)
        self.labels_ = np.zeros(len(scores), dtype=np.intp) if labels is None else np.asarray(labels)
        self.copied_ = np.zeros(len(scores), dtype=bool) if copied is None else copied
        self.weights_ = np.ones(len(scores)) if weights is None else weights
        self.n_columns_, self.copies_count_ = max(int(n_columns), 1), copies_count
        return self

    def overall(self, level: float, tail: Tail = "upper", own: Floats | None = None) -> float | Floats:
        """The quantile of all scores that count; quantiles (m,) for rows that weigh `own` (m,)."""
        counts = np.ones_like(self.copied_) if self.copies_count_ else ~self.copied_
        scores, weights = TAILS[tail](self.scores_)[counts], self.weights_[counts]
        if own is None:
            return quantile(scores, level)
        order = np.argsort(scores, kind="stable")
        return np.append(scores[order], np.inf)[weighted_place(weights[order], level, own)]

    def near(self, n_missing: Floats, level: float, tail: Tail = "upper", own: Floats | None = None) -> Floats:
        """Quantiles (m,) for rows that lack so many entries: scores weigh exp(-|difference| / (columns / 10)), times
        their weights where rows weigh `own` (m,).

        The unknown score weighs as much as the others and itself do on average over them, (sum w^2 + 1) / (sum w + 1):
        many that are not quite near leave little open, and none that is near leaves all.
        """
        scores = TAILS[tail](self.scores_)
        order = np.argsort(scores, kind="stable")
        of_scores, copied, weights = self.n_missing_[order], self.copied_[order], self.weights_[order]
        scores, quantiles = np.append(scores[order], np.inf), np.empty(len(n_missing))
        for value in np.unique(n_missing):
            weight, rows = np.exp(-np.abs(of_scores - value) / (_WIDTH * self.n_columns_)), n_missing == value
            if not self.copies_count_:
                weight[copied] *= max(0.0, 1 - float((weight[~copied] ** 2).sum()) / _ENOUGH)
            total = weight if own is None else weight * weights
            unknown = (float((total * weight).sum()) + 1) / (float(total.sum()) + 1)
            quantiles[rows] = scores[weighted_place(total, level, unknown * (np.ones(1) if own is None else own[rows]))]
        return quantiles

    def quantiles(self, n_missing: Floats, level: float, tail: Tail = "upper", own: Floats | None = None) -> Floats:
        """Quantiles (m,) by `near`, or of all scores where those are infinite. All are infinite where the rows, however
        many copies they have, are too few for the level.
        """
        if np.isinf(quantile(self.scores_[~self.copied_], level)):
            return np.full(len(n_missing), np.inf)
        near = self.near(n_missing, level, tail, own)
        return np.where(np.isfinite(near), near, self.overall(level, tail, own))

    def of_classes(self, n_missing: Floats, level: float, n_classes: int, own: Floats | None = None) -> Floats:
        """Quantiles (m, c), each among the rows of one class; an infinite one puts its class into every set."""
        by_class = [self._among(self.labels_ == k).quantiles(n_missing, level, own=own) for k in range(n_classes)]
        return np.column_stack(by_class)

    def of_enough(self, n_missing: Floats, level: float, n_classes: int, own: Floats | None = None) -> Floats:
        """Quantiles (m, c) by class. Classes with too few rows for the level share the quantile among their rows
        together, or among all rows where that is infinite.
        """
        n_rows = self.class_rows(n_classes)
        rare = quantile_rank(n_rows, level) > n_rows
        quantiles = self.of_classes(n_missing, level, n_classes, own)
        if rare.any():
            shared = self._among(np.isin(self.labels_, np.flatnonzero(rare))).quantiles(n_missing, level, own=own)
            usual = self.quantiles(n_missing, level, own=own)
            quantiles[:, rare] = np.where(np.isfinite(shared), shared, usual)[:, None]
        return quantiles

    def class_rows(self, n_classes: int) -> Ints:
        """How many rows (c,) every class has, without copies."""
        labels = self.labels_[~self.copied_]
        return np.array([np.sum(labels == k) for k in range(n_classes)])  # bincount trusts labels of a file

    def conditional(
        self, condition: Condition, n_missing: Floats, level: float, n_classes: int, own: Floats | None = None
    ) -> Floats:
        """Quantiles of the rows that a condition names, (m, 1) or (m, c)."""
        check_condition(condition)
        if condition == "missing":
            return self.quantiles(n_missing, level, own=own)[:, None]
        return (self.of_classes if condition == "class" else self.of_enough)(n_missing, level, n_classes, own)

    def _among(self, rows: Bools) -> ConformalScores:
        return ConformalScores().fit(
            self.scores_[rows],
            self.n_missing_[rows],
            self.n_columns_,
            copied=self.copied_[rows],
            copies_count=self.copies_count_,
            weights=self.weights_[rows],
        )


def drawn_to(usual: Floats, unseen: Floats, novelty: Floats) -> Floats:
    """Quantiles (m,) between `usual` (m,), those of training rows, at novelty 0, and `unseen` (m,), those of copies with
    further entries hidden, at novelty 1.
    """
    both = np.isfinite(unseen) & np.isfinite(usual)
    usual[both] += novelty[both] * (unseen[both] - usual[both])
    return usual


def even_interval(level: float, end: End) -> Floats:
    """Lower and upper ends (m, 2), both as far from the prediction."""
    return np.column_stack([end(level, "both", side) for side in (-1, 1)])


def skewed_interval(level: float, end: End) -> Floats:
    """Lower and upper ends (m, 2): each tail misses half of what may be missed. Where rows are too few for a tail of its
    own, both ends are as far from the prediction.
    """
    inner = (1 + level) / 2
    ends = np.column_stack([end(inner, "lower", -1), end(inner, "upper", 1)])
    finite = np.isfinite(ends).all(axis=1)
    if not finite.all():
        ends[~finite] = even_interval(level, end)[~finite]
    return ends


def intervals_at(levels: Floats, end: End, interval: Callable[[float, End], Floats] = even_interval) -> Floats:
    """Lower and upper ends, (m, k, 2), or (m, 2) of one level."""
    intervals = np.stack([interval(level, end) for level in levels.ravel()], axis=1)
    return intervals if levels.ndim else intervals[:, 0]


def interval_scores(low: Floats, high: Floats, y: Floats, level: float) -> Floats:
    """Widths plus 2 / (1 - level) times how far outside a target is (n,): least on average for the true quantiles."""
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.asarray(high - low + outside * (2 / (1 - level)))


def quantiles_at(levels: Floats, end: End) -> Floats:
    """Quantiles of the target (m, k), or (m,) of one level; none of them is below that of a smaller level."""
    flat = levels.ravel()
    order = np.argsort(flat, kind="stable")
    columns = [end(level, "upper", 1) if level >= 0.5 else end(1 - level, "lower", -1) for level in flat[order]]
    quantiles = np.empty((len(columns[0]), len(flat)))
    quantiles[:, order] = np.maximum.accumulate(np.column_stack(columns), axis=1)
    return quantiles if levels.ndim else quantiles[:, 0]
