"""The standard deviations that residuals are divided by, learned from squared residuals out of fold."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import GammaRegressor

from lacunar._threads import one_openmp_thread
from lacunar._typing import Floats
from lacunar.observed.rules import Number, Rule, floats

_LEAST_SQUARE, _RIDGE = 1e-4, 0.02  # of the regression of squared residuals, in units of their mean
_WIDEST = 6.0  # log of a variance over the mean square


class PredictiveDeviation(BaseEstimator):  # type: ignore[misc]
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
