"""Wider intervals and less certain classes for rows that lack more entries than any training row did."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from scipy.special import expit, logit
from sklearn.base import BaseEstimator

from lacunar._typing import Bools, Floats, Ints
from lacunar.observed.rules import Instance, Number, Optional, Rule, floats
from lacunar.uncertainty.conformal import ConformalScores, Tail, drawn_to, interval_scores, quantile
from lacunar.uncertainty.deviation import (
    FEWEST_BY_COLUMNS,
    ColumnDeviation,
    PredictiveDeviation,
    is_less,
    sigma_by_columns,
    sigma_out_of_fold,
)

_LARGEST_SHARE = 0.95  # of the entries that a copy hides
_STEEP, _LOGIT = 4.0, 1.6  # of chances that rise with ranks, whose mean is about the share
_FEWEST_NEAR = 3.0
_SOFT = 0.1  # of log variances, below which two rows leave open about as much
_MOST_REFERENCES = 500  # training rows that others are compared with
_COMPARED_AT_ONCE = 256  # rows with all references: their values stay in cache
_MOST_COLUMNS = 60  # that have a coefficient each
_LARGEST_SQUARE = 25.0  # of a standardised prediction
_FOLDS = 5  # of the scores
_LEVEL = 0.9  # of intervals that say whether scales depend on entries
_ROUNDS = 4  # of weighted least squares
_TINY = float(np.finfo(np.float64).tiny)
_RIDGE = 1e-3  # of coefficients, in units of a copy
_START = 0.5  # of the coefficients of `ExtraMissingProbabilities`


class Lacking(NamedTuple):
    """Rows as they came, NaN where an entry is missing, and the prediction and the variance of their target."""

    values: Floats  # (n, t)
    always_seen: Floats  # (n,): how many of the columns that training always saw are missing
    variance: Floats  # (n,): Var(y | row)
    predicted: Floats  # (n,), standardised

    @property
    def missing(self) -> Bools:
        return np.isnan(self.values)

    @property
    def n_missing(self) -> Floats:
        return np.asarray(self.missing.sum(axis=1), dtype=np.float64)

    def take(self, rows: NDArray[np.integer]) -> Lacking:
        return Lacking(*(column[rows] for column in self))


def further_hidden(T: Floats, rng: np.random.Generator) -> Bools:
    """Which entries (n, t) a copy of rows hides: of each row a random share, at random or by their own values.

    One of five rows hides entries at random, two hide large values more often in all columns, and two small ones:
    predictions are then off to one side.
    """
    n, t = T.shape
    share = rng.uniform(0, _LARGEST_SHARE, (n, 1))
    rank = (np.argsort(np.argsort(T, axis=0), axis=0) + 0.5) / n
    kind = rng.integers(5, size=(n, 1))
    sign = np.where(kind <= 2, 1.0, -1.0)
    by_value = expit(_LOGIT * logit(share) + _STEEP * sign * (2 * rank - 1))
    chance = np.where(kind == 0, share, by_value)
    hidden: Bools = (rng.random((n, t)) < chance) & ~np.isnan(T)
    return hidden


def evenly(n: int, most: int) -> NDArray[np.intp]:
    """Numbers of at most so many of n rows, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).astype(np.intp)


class ExtraMissing(BaseEstimator):
    """How unlike the training masks the masks of rows are, and scores of rows with new masks.

    The fewer training rows lack as many entries and leave as much open, the larger is a row's novelty. Rows of novelty
    0 have the quantiles of the training rows' scores, the others are drawn to those of copies of training rows with
    further entries hidden.
    """

    _tail: ClassVar[float]  # share of the training rows: a row that leaves as much open as so many of them is not new
    _schema: ClassVar[dict[str, Rule]] = {
        "reference_": floats("references", 3),
        "least_variance_": Number(low=0, above=True),
        "coef_": floats("features", low=0),
        "copy_scores_": Instance(ConformalScores),
    }

    def _fit_reference(self, rows: Lacking) -> None:
        n = len(rows.variance)
        self.reference_ = _measures(rows.take(evenly(n, _MOST_REFERENCES)))
        self.least_variance_ = float(rows.variance.min())

    def novelty(self, rows: Lacking) -> Floats:
        """How far rows are unlike those of training (m,): 0 where a share of those, and three, lack as much, 1 where
        none does.
        """
        measures = _measures(rows)
        near = np.empty(len(measures))
        for first in range(0, len(measures), _COMPARED_AT_ONCE):
            count, always_seen, log = (column[:, None] for column in measures[first : first + _COMPARED_AT_ONCE].T)
            close = 1 - (log - self.reference_[:, 2]) / _SOFT
            np.clip(close, 0, 1, out=close)
            close *= (self.reference_[:, 0] >= count) & (self.reference_[:, 1] >= always_seen)
            near[first : first + _COMPARED_AT_ONCE] = close.sum(axis=1)
        return np.asarray(np.maximum(0.0, 1 - near / max(self._tail * len(self.reference_), _FEWEST_NEAR)))


class ExtraMissingVariance(ExtraMissing):
    """Standard deviations of one target, and how far from its prediction the ends of its intervals are.

    Rows of novelty 0 have what `PredictiveDeviation` says, times what `ColumnDeviation` does where that is learned. The others add to its variance a sum, with coefficients
    >= 0, of what the row leaves open, the share of its entries that is missing, and which columns are missing.
    """

    _tail = 0.05
    _schema: ClassVar[dict[str, Rule]] = {
        **ExtraMissing._schema,
        "deviation_": Instance(PredictiveDeviation),
        "column_deviation_": Optional(Instance(ColumnDeviation)),
        "scores_": Instance(ConformalScores),
        "least_missing_": Number(low=0),
        "most_missing_": Number(low=0),
        "most_variance_": Number(low=0, above=True),
    }

    def fit(
        self,
        rows: Lacking,
        residuals: Floats,
        cut: Ints | None,
        copies: Lacking,
        copied: NDArray[np.intp],
        errors: Floats,
    ) -> ExtraMissingVariance:
        """From training rows and their residuals out of fold (n,), and copies of the rows numbered in `copied` with
        residuals `errors`. `cut` (n,) has the number of the cut that tests each row; without it scales read no entries.
        """
        counts, t = rows.n_missing, rows.missing.shape[1]
        columns, fold = (rows.predicted, residuals, rows.variance, counts), np.arange(len(residuals)) % _FOLDS
        self.deviation_ = PredictiveDeviation().fit(*columns)
        scores = self._fit_columns(rows.values, residuals, sigma_out_of_fold(*columns, fold), cut)
        self.scores_ = ConformalScores().fit(scores, counts, t)
        self._fit_reference(rows)
        self.least_missing_, self.most_missing_ = float(counts.min()), float(counts.max())
        self.most_variance_ = float(rows.variance.max())
        usual = self._usual(copies) ** 2
        # Squares of the rows' own residuals are replaced by their expectation, which leaves less noise.
        excess = errors**2 - residuals[copied] ** 2 + self._usual(rows)[copied] ** 2 - usual
        novelty = self.novelty(copies)
        self.coef_ = _excess(self._features(copies), excess, usual, novelty)
        new = novelty > 0
        self.copy_scores_ = ConformalScores().fit((errors / self.sigma(copies))[new], copies.n_missing[new], t)
        return self

    def _fit_columns(self, rows: Floats, residuals: Floats, sigma: Floats, cut: Ints | None) -> Floats:
        """Scores (n,) of residuals with scales out of fold (n,), which depend on entries where intervals are better so.

        Rows that a cut tests together are told by trees of none of them: entries may tell a group, and its rows have like residuals.
        """
        self.column_deviation_ = None
        if cut is None or len(rows) < FEWEST_BY_COLUMNS or not rows.shape[1] or cut.min() == cut.max():
            return residuals / sigma
        by_columns = sigma_by_columns(rows, residuals / sigma, sigma, cut % _FOLDS)
        if not is_less(_even_scores(residuals, by_columns), _even_scores(residuals, sigma)):
            return residuals / sigma
        self.column_deviation_ = ColumnDeviation().fit(rows, residuals / sigma, sigma)
        return residuals / by_columns

    def sigma(self, rows: Lacking) -> Floats:
        """Standard deviations (m,)."""
        excess = (self._features(rows) * self.coef_).sum(axis=1)  # the same bits for any number of rows
        return np.asarray(np.sqrt(self._usual(rows) ** 2 + self.novelty(rows) * excess))

    def distances(self, rows: Lacking) -> Callable[[float, Tail], Floats]:
        """How far from the predictions of rows the ends of their intervals are (m,), of a level and a tail."""
        counts, novelty, sigma = rows.n_missing, self.novelty(rows), self.sigma(rows)

        def distance(level: float, tail: Tail) -> Floats:
            unseen = self.copy_scores_.near(counts, level, tail)
            return np.asarray(drawn_to(self.scores_.quantiles(counts, level, tail), unseen, novelty) * sigma)

        return distance

    def _usual(self, rows: Lacking) -> Floats:
        """What `deviation_` says of a row that lacks as much as training's rows at most."""
        variance = np.clip(rows.variance, self.least_variance_, self.most_variance_)
        n_missing = np.clip(rows.n_missing, self.least_missing_, self.most_missing_)
        sigma = self.deviation_.sigma(rows.predicted, variance, n_missing)
        return sigma if self.column_deviation_ is None else self.column_deviation_.sigma(rows.values, sigma)

    def _features(self, rows: Lacking) -> Floats:
        """Numbers >= 0 (m, features) that add to the variance."""
        share = rows.n_missing / max(rows.missing.shape[1], 1)
        opened = np.maximum(rows.variance - self.least_variance_, 0.0)
        square = np.minimum(rows.predicted**2, _LARGEST_SQUARE)
        blocks = [opened[:, None], np.column_stack([share, share**2, share * square])]
        if rows.missing.shape[1] <= _MOST_COLUMNS:
            blocks += [rows.missing.astype(np.float64), rows.missing * share[:, None]]
        return np.hstack(blocks)


def _even_scores(residuals: Floats, sigma: Floats) -> Floats:
    """Interval scores (n,) of intervals as far to both sides as a quantile of the scores says."""
    reach = quantile(np.abs(residuals) / sigma, _LEVEL) * sigma
    return interval_scores(-reach, reach, residuals, _LEVEL)


def _measures(rows: Lacking) -> Floats:
    """Of rows (n, 3) what is compared: how many entries are missing, how many of columns that training always saw, the
    log variance.
    """
    return np.column_stack([rows.n_missing, rows.always_seen, np.log(rows.variance)])


def _excess(features: Floats, excess: Floats, usual: Floats, novelty: Floats) -> Floats:
    """Coefficients >= 0 of the excess of variance, by least squares relative to the variance that they give."""
    coef = np.zeros(features.shape[1])
    if not novelty.sum():
        return coef
    fitted = np.full(len(excess), max(float(np.average(excess, weights=novelty)), 0.0))
    design, unit = features * novelty[:, None], np.sqrt(_RIDGE * novelty.sum()) * np.eye(len(coef))
    for _ in range(_ROUNDS):
        variance = np.maximum(usual + novelty * fitted, _TINY)
        root = np.sqrt(novelty) * (variance.min() / variance)  # in units of the largest: targets may be exact
        scale = float(np.sqrt(np.mean(root**2)))
        coef = nnls(np.vstack([design * root[:, None], unit * scale]), np.r_[excess * root, np.zeros(len(coef))])[0]
        fitted = features @ coef
    return np.asarray(coef)


class ExtraMissingProbabilities(ExtraMissing):
    """Log probabilities drawn to those of the classes' shares, learned from copies of training rows with further
    entries hidden.

    Where there is novelty, the log probabilities over the shares of the classes are divided by 1 plus a sum, with
    coefficients >= 0, of the share that is missing, its square, and what the row leaves open. The others keep theirs.
    """

    _tail = 0.0  # three of the training rows that lack as much have had their say in the calibration
    _schema: ClassVar[dict[str, Rule]] = {
        **ExtraMissing._schema,
        "coef_": floats(3, low=0),
        "log_shares_": floats("c", high=0),
    }

    def fit(
        self, rows: Lacking, labels: Ints, weight: Floats, copies: Lacking, copied: Ints, logs: Floats
    ) -> ExtraMissingProbabilities:
        """From training rows, their classes and weights (n,), and copies of the rows numbered in `copied` with log
        probabilities (copies, c).
        """
        self._fit_reference(rows)
        counts = np.bincount(labels, weights=weight, minlength=logs.shape[1]) + 1.0
        self.log_shares_ = np.log(counts / counts.sum())
        novelty, copy_labels = self.novelty(copies), labels[copied]
        over = logs - self.log_shares_
        self.coef_ = _slopes(self._features(copies), novelty, weight[copied], over, self.log_shares_, copy_labels)
        new, t = novelty > 0, copies.missing.shape[1]
        softened = self.softened(copies, logs)
        scores = 1.0 - np.exp(softened[np.arange(len(copy_labels)), copy_labels])[new]
        self.copy_scores_ = ConformalScores().fit(scores, copies.n_missing[new], t, labels=copy_labels[new])
        return self

    def softened(self, rows: Lacking, logs: Floats) -> Floats:
        """Log probabilities (m, c) of rows whose ensemble says `logs`, which stay where a row has no novelty."""
        novelty = self.novelty(rows)
        rate = 1 / (1 + novelty * (self._features(rows) * self.coef_).sum(axis=1))
        drawn = log_softmax(self.log_shares_ + rate[:, None] * (logs - self.log_shares_))
        return np.where((novelty > 0)[:, None], drawn, logs)

    def _features(self, rows: Lacking) -> Floats:
        share = rows.n_missing / max(rows.missing.shape[1], 1)
        return np.column_stack([share, share**2, np.maximum(rows.variance - self.least_variance_, 0.0)])


def _slopes(
    features: Floats, novelty: Floats, weight: Floats, logs: Floats, log_shares: Floats, labels: Ints
) -> Floats:
    """Coefficients >= 0 with the least log loss of the copies, each weighed by its novelty and its row's weight."""
    if not novelty @ weight:
        return np.zeros(features.shape[1])
    own = np.arange(len(labels))
    weight = novelty * weight / (novelty @ weight)

    def loss(coef: Floats) -> tuple[float, Floats]:
        rate = 1 / (1 + novelty * (features @ coef))
        drawn = log_softmax(log_shares + rate[:, None] * logs)
        slope = (np.exp(drawn) * logs).sum(axis=1) - logs[own, labels]  # of the loss by the rate
        gradient = features.T @ (-weight * slope * rate**2 * novelty)
        return -float(weight @ drawn[own, labels]) + _RIDGE * float(coef @ coef), gradient + 2 * _RIDGE * coef

    start = np.full(features.shape[1], _START)
    bounds = [(0.0, None)] * len(start)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x)


def log_softmax(values: Floats) -> Floats:
    """Log probabilities of classes, of which the last axis holds unnormalised ones."""
    return np.asarray(values - np.logaddexp.reduce(values, axis=-1, keepdims=True))
