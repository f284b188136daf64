"""The standard deviations that residuals are divided by, learned from squared residuals out of fold."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import GammaRegressor

from lacunar._random import generator
from lacunar._threads import one_openmp_thread
from lacunar._trees import Trees, on_grid
from lacunar._typing import Floats, Ints
from lacunar.observed.rules import Instance, Number, Rule, floats

_LEAST_SQUARE, _RIDGE = 1e-4, 0.02  # of the regression of squared residuals, in units of their mean
_WIDEST = 6.0  # log of a variance over the mean square
FEWEST_BY_COLUMNS = 100  # rows, from which scales may depend on entries
MOST_BY_COLUMNS = 200  # columns, times targets, up to which they do: wider tables take longer than they gain
_TREES, _RATE, _LEAVES, _LEAST_LEAF = 20, 0.1, 4, 20  # of squared scores
_SIZES = 0.01, 10.0  # of scores, in units of the median
_LOGS = 2 * np.log(_SIZES)  # of what variances are multiplied by
_SELDOM = 0.05  # missing in training: too few gaps to learn from
_MOST_NUMBERS = 2**20  # of rows that trees of scores learn from
_USUAL = 0.95  # of the rows that are learned from leave open as much at most
_SURE = 1.0  # standard errors by which intervals must be better


class PredictiveDeviation(BaseEstimator):
    """Standard deviation of one target around its prediction, learned from squared out-of-fold residuals.

    Their logarithm is a ridge gamma regression on log Var(y | row), the number of missing entries, the prediction and
    its square.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "coef_": floats("features"),
        "intercept_": Number(),
        "square_": Number(low=0, above=True),
        "mean_": floats("features"),
        "scale_": floats("features", low=np.finfo(np.float64).tiny),
    }

    def fit(self, predicted: Floats, residuals: Floats, variance: Floats, missing: Floats) -> Self:
        """Learn from out-of-fold predictions and residuals, Var(y | row) and numbers of missing entries, each (n,)."""
        self.square_ = max(float(np.mean(residuals**2)), float(np.finfo(np.float64).tiny))
        rows = _features(predicted, variance, missing)
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        squares = np.maximum(residuals**2 / self.square_, _LEAST_SQUARE)
        with one_openmp_thread():  # threads for so few rows wait for one another on a busy machine
            fitted = GammaRegressor(alpha=_RIDGE, max_iter=300).fit((rows - self.mean_) / self.scale_, squares)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)
        return self

    def sigma(self, predicted: Floats, variance: Floats, missing: Floats) -> Floats:
        """Standard deviations (m,)."""
        rows = (_features(predicted, variance, missing) - self.mean_) / self.scale_
        log = np.clip((rows * self.coef_).sum(axis=1) + self.intercept_, -_WIDEST, _WIDEST)
        return np.asarray(np.sqrt(np.exp(log) * self.square_))


def sigma_out_of_fold(
    predicted: Floats, residuals: Floats, variance: Floats, missing: Floats, fold: NDArray[np.integer]
) -> Floats:
    """Standard deviations (n,): those of a fold, by its number in `fold` (n,), are learned from the other folds."""
    sigma, columns = np.empty(len(residuals)), (predicted, residuals, variance, missing)
    for k in np.unique(fold):
        test = fold == k
        learned = PredictiveDeviation().fit(*(column[~test] for column in columns))
        sigma[test] = learned.sigma(predicted[test], variance[test], missing[test])
    return sigma


def _features(predicted: Floats, variance: Floats, missing: Floats) -> Floats:
    return np.column_stack([np.log(variance), missing, predicted, predicted**2])


class ColumnDeviation(BaseEstimator):
    """What standard deviations are multiplied by where noise grows by a column, or where it is missing.

    A few small trees on a row's entries, of gamma loss, learn the mean square of scores, which are residuals over
    standard deviations.
    """

    _schema: ClassVar[dict[str, Rule]] = {"trees_": Instance(Trees), "usual_": Number(low=0, above=True)}

    def fit(self, rows: Floats, scores: Floats, sigma: Floats) -> Self:
        """Learn from rows with missing entries (n, d), NaN there, scores out of fold and the standard deviations in them (n,)."""
        n, d = rows.shape
        self.usual_ = float(np.quantile(sigma, _USUAL, method="lower"))
        learned = _spaced(np.arange(n), d)
        sizes = np.abs(scores[learned])
        with np.errstate(over="ignore"):  # of exact predictions next to others
            sizes /= max(float(np.median(sizes)), float(np.finfo(np.float64).tiny))
        squares = np.clip(sizes, *_SIZES) ** 2
        squares = on_grid(squares / squares.mean())
        rows = _with_gaps(rows[learned])
        rows = np.where(np.isnan(rows).all(axis=0), 0.0, rows)  # an empty column has no bins
        times = len(rows) // len(learned)
        boosting = HistGradientBoostingRegressor(
            loss="gamma",
            max_iter=_TREES,
            learning_rate=_RATE,
            max_leaf_nodes=_LEAVES,
            min_samples_leaf=times * _LEAST_LEAF,
            early_stopping=False,
            random_state=0,
        )
        with one_openmp_thread():
            boosting.fit(rows, np.tile(squares, times))
        self.trees_ = Trees.of_boosting([boosting], np.zeros(d, dtype=bool))
        return self

    def sigma(self, rows: Floats, sigma: Floats) -> Floats:
        """Standard deviations of rows (m, d), from those (m,) that read no entries.

        What a row leaves open beyond nearly all rows that were learned from is not noise: it stays as it is.
        """
        share = (np.minimum(sigma, self.usual_) / sigma) ** 2  # of the variance
        log = np.clip(self.trees_.sums(rows)[:, 0], *_LOGS)  # where rows are predicted exactly trees see no end
        return np.asarray(sigma * np.sqrt(1 + share * np.expm1(log)))


def _spaced(rows: Ints, d: int) -> Ints:
    """At most so many row numbers, evenly spaced, as hold `_MOST_NUMBERS` in d columns."""
    return rows[np.linspace(0, len(rows) - 1, min(len(rows), max(_MOST_NUMBERS // d, 1))).astype(np.intp)]


def _with_gaps(rows: Floats) -> Floats:
    """The rows, and where training nearly always shows a column the rows again, of which a random share of such entries
    is hidden: what is said of a row that lacks one is a mean over what it may be.
    """
    shown = np.isnan(rows).mean(axis=0) < _SELDOM
    if not shown.any():
        return rows
    rng = generator(0)
    hidden = shown & (rng.random(rows.shape) < rng.random((len(rows), 1)))
    return np.vstack([rows, np.where(hidden, np.nan, rows)])


def sigma_by_columns(rows: Floats, scores: Floats, sigma: Floats, fold: NDArray[np.integer]) -> Floats:
    """Standard deviations (N,) of rows (N, d), from those that read no entries: those of a fold, by its number in `fold`
    (N,), are learned from the scores (n,) of the first n rows that are in other folds.
    """
    by_columns = np.empty(len(rows))
    for k in np.unique(fold):
        learned, test = _spaced(np.flatnonzero(fold[: len(scores)] != k), rows.shape[1]), fold == k
        fitted = ColumnDeviation().fit(rows[learned], scores[learned], sigma[learned])
        by_columns[test] = fitted.sigma(rows[test], sigma[test])
    return by_columns


def is_less(scores: Floats, least: Floats) -> bool:
    """Whether interval scores (n,) are less than others of the same rows beyond what chance does."""
    with np.errstate(invalid="ignore"):  # of too few rows for the level all are infinite
        gain = least - scores
        return bool(gain.mean() > _SURE * gain.std() / np.sqrt(len(gain)))
