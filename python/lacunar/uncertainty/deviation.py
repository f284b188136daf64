"""Scores of residuals, the standard deviations that they are divided by, and their quantiles for what a row lacks."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import GammaRegressor

from lacunar._threads import one_openmp_thread
from lacunar._typing import Bools, Floats
from lacunar.observed.rules import Number, Rule, floats

_WIDTH = 0.1  # of the kernel over numbers missing, in units of the number of columns
_ENOUGH = 100.0  # rows near a number of missing entries, at which copies are not needed
_LEAST_SQUARE, _RIDGE = 1e-4, 0.02  # of the regression of squared residuals, in units of their mean
_WIDEST = 6.0  # log of a variance over the mean square
_FOLDS = 5


def check_level(level: Any) -> float:
    """A share between 0 and 1."""
    if not isinstance(level, Real):
        raise TypeError(f"level must be one number between 0 and 1; got {level!r}. Ask once for each level.")
    if not 0 < float(level) < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}. Pass 0.9 for what misses one row in ten.")
    return float(level)


def quantile(scores: Floats, level: float) -> float:
    """The ceil(level (n + 1))-th smallest of n scores; infinite where there are too few."""
    k = int(np.ceil(level * (len(scores) + 1) - 1e-9))
    return np.inf if k > len(scores) else float(np.partition(scores, k - 1)[k - 1])


def near_quantiles(
    scores: Floats, missing: Floats, copied: Bools, at: Floats, n_columns: int, level: float, copies_count: bool
) -> Floats:
    """Quantiles of scores (n,) at numbers of missing entries `at` (m,), of weight exp(-|difference| / (columns / 10)).

    Copies with hidden entries weigh what rows as they came leave free, max(0, 1 - rows near / 100); as much as rows if they count.
    """
    order = np.argsort(scores, kind="stable")
    scores, missing, copied = scores[order], missing[order], copied[order]
    values, own = np.unique(at, return_inverse=True)
    quantiles = np.empty(len(values))
    for k, value in enumerate(values):
        weight = np.exp(-np.abs(missing - value) / (_WIDTH * n_columns))
        if not copies_count:
            weight[copied] *= max(0.0, 1 - float(weight[~copied].sum()) / _ENOUGH)
        below = np.cumsum(weight) / (weight.sum() + 1)
        first = int(np.searchsorted(below, level - 1e-12))
        quantiles[k] = scores[first] if first < len(scores) else np.inf
    return quantiles[own.ravel()]


class PredictiveDeviation(BaseEstimator):  # type: ignore[misc]
    """Standard deviation of one target around its prediction, learned from squared out-of-fold residuals.

    Their logarithm is a ridge gamma regression on log Var(y | row), the number of missing entries, the prediction and its square; scores are residuals over
    standard deviations that were learned without them.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "coef_": floats("features"),
        "intercept_": Number(),
        "square_": Number(low=0, above=True),
        "mean_": floats("features"),
        "scale_": floats("features", low=np.finfo(np.float64).tiny),
        "scores_": floats("n", low=0),
        "score_missing_": floats("n", low=0),
    }

    def fit(self, predicted: Floats, residuals: Floats, variance: Floats, missing: Floats) -> PredictiveDeviation:
        """From out-of-fold predictions and residuals, Var(y | row) and numbers of missing entries, each (n,)."""
        fold = np.arange(len(residuals)) % _FOLDS
        self.scores_ = self.learned_scores(predicted, residuals, variance, missing, fold)
        self.score_missing_ = missing.astype(np.float64)
        return self

    def learned_scores(
        self, predicted: Floats, residuals: Floats, variance: Floats, missing: Floats, fold: NDArray[np.integer]
    ) -> Floats:
        """Learn the standard deviation; what comes back are |residuals| over those learned without each of the folds numbered in `fold` (n,)."""
        sigma = np.empty(len(residuals))
        for k in np.unique(fold):
            test = fold == k
            self._learn(predicted[~test], residuals[~test], variance[~test], missing[~test])
            sigma[test] = self.sigma(predicted[test], variance[test], missing[test])
        self._learn(predicted, residuals, variance, missing)
        return np.abs(residuals) / sigma

    def _learn(self, predicted: Floats, residuals: Floats, variance: Floats, missing: Floats) -> None:
        self.square_ = max(float(np.mean(residuals**2)), float(np.finfo(np.float64).tiny))
        rows = _features(predicted, variance, missing)
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        squares = np.maximum(residuals**2 / self.square_, _LEAST_SQUARE)
        with one_openmp_thread():  # threads for so few rows wait for one another on a busy machine
            fitted = GammaRegressor(alpha=_RIDGE, max_iter=300).fit((rows - self.mean_) / self.scale_, squares)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)

    def sigma(self, predicted: Floats, variance: Floats, missing: Floats) -> Floats:
        """Standard deviations (m,)."""
        rows = (_features(predicted, variance, missing) - self.mean_) / self.scale_
        log = np.clip((rows * self.coef_).sum(axis=1) + self.intercept_, -_WIDEST, _WIDEST)
        return np.asarray(np.sqrt(np.exp(log) * self.square_))

    def widths(self, sigma: Floats, missing: Floats, level: float, n_columns: int) -> Floats:
        """Half the length of the intervals: the quantile of scores of rows that lack about as many entries, times sigma."""
        return conformal(self.scores_, self.score_missing_, missing, level, n_columns) * sigma


def conformal(scores: Floats, score_missing: Floats, missing: Floats, level: float, n_columns: int) -> Floats:
    """Quantiles of scores at numbers of missing entries (m,); of all scores where no training row lacks about as many."""
    near = near_quantiles(
        scores, score_missing, np.zeros(len(scores), dtype=bool), missing, max(n_columns, 1), level, copies_count=False
    )
    return np.where(np.isfinite(near), near, quantile(scores, level))


def _features(predicted: Floats, variance: Floats, missing: Floats) -> Floats:
    return np.column_stack([np.log(variance), missing, predicted, predicted**2])
