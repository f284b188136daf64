"""Scores of rows out of fold by how many entries the rows lack, and quantiles of them: what intervals and sets of the
wrappers and of the one learner are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from lacunar._typing import Bools, Floats, Ints
from lacunar.observed.rules import Array, Flag, Number, Rule, floats

Condition = Literal["missing", "class"]
CONDITIONS: tuple[Condition, ...] = ("missing", "class")
Tail = Literal["upper", "lower", "both"]
End = Callable[[float, Tail, int], Floats]  # of a level, a tail of the scores and a side, -1 or 1: ends (m,)

TAILS: dict[Tail, Callable[[Floats], Floats]] = {"upper": np.positive, "lower": np.negative, "both": np.abs}
_WIDTH = 0.1  # of the kernel over numbers missing, in units of the number of columns
_ENOUGH = 100.0  # rows near a number of missing entries, at which copies are not needed


def check_level(level: Any) -> float:
    """A share between 0 and 1."""
    if not isinstance(level, Real):
        raise TypeError(f"level must be one number between 0 and 1; got {level!r}. Ask once for each level.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}. Pass 0.9 for what misses one row in ten.")
    return float(level)


def check_levels(levels: Any) -> Floats:
    """Shares between 0 and 1, (k,); () where one number came."""
    values = [levels] if isinstance(levels, Real) else levels
    listed = isinstance(values, Sequence | np.ndarray) and getattr(values, "ndim", 1) == 1 and len(values)
    if not listed or not all(isinstance(level, Real) for level in values):
        raise TypeError(
            f"level must be a number between 0 and 1 or a sequence of them; got {levels!r}. Pass 0.9, or [0.5, 0.9]."
        )
    checked = np.array([check_level(level) for level in values])
    return checked[0] if isinstance(levels, Real) else checked


def quantile(scores: Floats, level: float) -> float:
    """The ceil(level (n + 1))-th smallest of n scores; infinite where there are too few."""
    k = int(np.ceil(level * (len(scores) + 1) - 1e-9))
    return np.inf if k > len(scores) else float(np.partition(scores, k - 1)[k - 1])


class ConformalScores(BaseEstimator):  # type: ignore[misc]
    """Scores of rows by models that had not seen them, and how many entries each of the rows lacks.

    Scores of numbers are residuals over standard deviations, with their signs; those of classes 1 - p(class of the
    row). Some rows may be copies of others with further entries hidden.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "scores_": floats("n"),
        "n_missing_": floats("n", low=0),
        "copied_": Array("b", ("n",)),
        "labels_": Array("i", ("n",), low=0),
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
    ) -> Self:
        """Keep scores, numbers of missing entries, numbers of classes, and which rows are copies, each (n,).

        Copies weigh what rows as they came leave free, max(0, 1 - rows near / 100), or as much as rows where they
        count.
        """
        self.scores_, self.n_missing_ = scores, n_missing.astype(np.float64)
        self.labels_ = np.zeros(len(scores), dtype=np.intp) if labels is None else np.asarray(labels)
        self.copied_ = np.zeros(len(scores), dtype=bool) if copied is None else copied
        self.n_columns_, self.copies_count_ = max(int(n_columns), 1), copies_count
        return self

    def overall(self, level: float, tail: Tail = "upper") -> float:
        """The quantile of all scores that count."""
        scores = TAILS[tail](self.scores_)
        return quantile(scores if self.copies_count_ else scores[~self.copied_], level)

    def near(self, n_missing: Floats, level: float, tail: Tail = "upper") -> Floats:
        """Quantiles (m,) for rows that lack so many entries: scores weigh exp(-|difference| / (columns / 10))."""
        scores = TAILS[tail](self.scores_)
        order = np.argsort(scores, kind="stable")
        scores, of_scores, copied = scores[order], self.n_missing_[order], self.copied_[order]
        values, own = np.unique(n_missing, return_inverse=True)
        quantiles = np.empty(len(values))
        for k, value in enumerate(values):
            weight = np.exp(-np.abs(of_scores - value) / (_WIDTH * self.n_columns_))
            if not self.copies_count_:
                weight[copied] *= max(0.0, 1 - float(weight[~copied].sum()) / _ENOUGH)
            below = np.cumsum(weight) / (weight.sum() + 1)
            first = int(np.searchsorted(below, level - 1e-12))
            quantiles[k] = scores[first] if first < len(scores) else np.inf
        return quantiles[own.ravel()]

    def quantiles(self, n_missing: Floats, level: float, tail: Tail = "upper") -> Floats:
        """Those of scores near (m,); of all scores where few rows lack about as many; infinite where all rows are too
        few for the level, however many copies they have.
        """
        if np.isinf(quantile(self.scores_[~self.copied_], level)):
            return np.full(len(n_missing), np.inf)
        near = self.near(n_missing, level, tail)
        return np.where(np.isfinite(near), near, self.overall(level, tail))

    def of_classes(self, n_missing: Floats, level: float, n_classes: int) -> Floats:
        """Quantiles (m, c) among the rows of every single class: an infinite one puts its class into every set."""
        return np.column_stack([self._of_class(k).quantiles(n_missing, level) for k in range(n_classes)])

    def _of_class(self, k: int) -> ConformalScores:
        own = self.labels_ == k
        return ConformalScores().fit(
            self.scores_[own],
            self.n_missing_[own],
            self.n_columns_,
            copied=self.copied_[own],
            copies_count=self.copies_count_,
        )


def drawn_to(usual: Floats, unseen: Floats, novelty: Floats) -> Floats:
    """Quantiles of training rows, drawn to those of copies with further entries hidden by how new a row's mask is."""
    both = np.isfinite(unseen) & np.isfinite(usual)
    usual[both] += novelty[both] * (unseen[both] - usual[both])
    return usual


def intervals_at(levels: Floats, end: End) -> Floats:
    """Lower and upper ends, (m, k, 2), or (m, 2) of one level."""
    intervals = np.stack(
        [np.column_stack([end(level, "both", side) for side in (-1, 1)]) for level in levels.ravel()], axis=1
    )
    return intervals if levels.ndim else intervals[:, 0]


def interval_scores(low: Floats, high: Floats, y: Floats, level: float) -> Floats:
    """Widths plus 2 / (1 - level) times how far outside a target is (n,): least on average for the true quantiles."""
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return np.asarray(high - low + outside * (2 / (1 - level)))


def skewed_intervals_at(levels: Floats, end: End) -> Floats:
    """Lower and upper ends, (m, k, 2), or (m, 2) of one level: each tail misses half of what may be missed.

    Where rows are too few for a tail of its own, both ends are as far from the prediction.
    """
    intervals = np.stack([_skewed_interval(level, end) for level in levels.ravel()], axis=1)
    return intervals if levels.ndim else intervals[:, 0]


def _skewed_interval(level: float, end: End) -> Floats:
    inner = (1 + level) / 2
    ends = np.column_stack([end(inner, "lower", -1), end(inner, "upper", 1)])
    finite = np.isfinite(ends).all(axis=1)
    if not finite.all():
        ends[~finite] = np.column_stack([end(level, "both", side) for side in (-1, 1)])[~finite]
    return ends


def quantiles_at(levels: Floats, end: End) -> Floats:
    """Quantiles of the target (m, k), or (m,) of one level; none of them is below that of a smaller level."""
    flat = levels.ravel()
    order = np.argsort(flat, kind="stable")
    columns = [end(level, "upper", 1) if level >= 0.5 else end(1 - level, "lower", -1) for level in flat[order]]
    quantiles = np.empty((len(columns[0]), len(flat)))
    quantiles[:, order] = np.maximum.accumulate(np.column_stack(columns), axis=1)
    return quantiles if levels.ndim else quantiles[:, 0]
