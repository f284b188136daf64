"""What a row leaves open: standard deviations and quantiles for the missing entries in hand, and what measuring one would tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.linear_model import GammaRegressor

from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import Rule, floats
from lacunar.uncertainty.masks import near_quantiles, quantile

_Floats = NDArray[np.float64]

_PENALTY = 1.0  # of the ridge of targets on codes
_LEAST_SHARE = 1e-3  # of a target's variance, which no row is thought to leave open less of
_BATCH = 1000  # rows whose posterior covariances are in memory at once
_LEAST_SQUARE, _RIDGE = 1e-4, 0.02  # of the regression of squared residuals, in units of their mean
_WIDEST = 6.0  # log of a variance over the mean square
_FOLDS = 5


class TargetCodes(BaseEstimator):  # type: ignore[misc]
    """Targets as linear functions of the codes of a low-rank Gaussian, y = w a + e: what is known of a row tells how much of y is open.

    Var(y | row) = w' Cov(a | row) w + Var(e), and measuring a missing entry x_j lets it fall by Cov(x_j, y | row)^2 / Var(x_j | row).
    """

    _held: ClassVar[dict[str, Rule]] = {"coef_": floats("k", "q"), "noise_": floats("q", low=0)}

    def fit(self, posterior: LowRankPosterior, Z: _Floats, Y: _Floats) -> TargetCodes:
        """From standardised targets (n, q)."""
        codes = posterior.codes(Z)
        square = codes.T @ codes
        self.coef_ = np.linalg.solve(square + _PENALTY * np.eye(len(square)), codes.T @ Y)
        left, self.noise_ = ((Y - codes @ self.coef_) ** 2).mean(axis=0), np.zeros(Y.shape[1])
        self.noise_ = np.maximum(left - self.variances(posterior, Z).mean(axis=0), _LEAST_SHARE)
        return self

    def variances(self, posterior: LowRankPosterior, Z: _Floats) -> _Floats:
        """Var(y | row), (n, q)."""
        w = self.coef_
        made = [np.einsum("kq,nkl,lq->nq", w, cov, w) for cov in _covariances(posterior, Z)]
        return np.vstack(made) + self.noise_

    def gains(self, posterior: LowRankPosterior, Z: _Floats) -> _Floats:
        """How much the variances of the targets, summed, are expected to fall by measuring an entry: (n, p), 0 where it is known."""
        W, made = posterior.components_.T, []
        for cov in _covariances(posterior, Z):
            with_y = W @ (cov @ self.coef_)
            of_x = np.einsum("pk,nkl,pl->np", W, cov, W) + posterior.noise_variance_
            made.append((with_y**2).sum(axis=2) / of_x)
        return np.where(np.isnan(Z), np.vstack(made), 0.0)


def _covariances(posterior: LowRankPosterior, Z: _Floats) -> Iterator[_Floats]:
    """Posterior covariances (rows, k, k) of the codes, a batch at a time."""
    for first in range(0, len(Z), _BATCH):
        yield posterior.noise_variance_ * posterior.features(Z[first : first + _BATCH])[1]


class Spread(BaseEstimator):  # type: ignore[misc]
    """Standard deviation of one target around its prediction, learned from squared out-of-fold residuals.

    Their logarithm is a ridge gamma regression on log Var(y | row), the number of missing entries, the prediction and its square; scores are residuals over
    standard deviations that were learned without them.
    """

    _held: ClassVar[dict[str, Rule]] = {
        "coef_": floats("features"),
        "mean_": floats("features"),
        "scale_": floats("features", low=np.finfo(np.float64).tiny),
        "scores_": floats("n", low=0),
        "score_missing_": floats("n", low=0),
    }

    def fit(self, predicted: _Floats, residuals: _Floats, variance: _Floats, missing: _Floats) -> Spread:
        """From out-of-fold predictions and residuals, Var(y | row) and numbers of missing entries, each (n,)."""
        n = len(residuals)
        sigma = np.empty(n)
        for k in range(min(_FOLDS, n)):
            test = np.arange(n) % _FOLDS == k
            self._fit(predicted[~test], residuals[~test], variance[~test], missing[~test])
            sigma[test] = self.sigma(predicted[test], variance[test], missing[test])
        self._fit(predicted, residuals, variance, missing)
        self.scores_, self.score_missing_ = np.abs(residuals) / sigma, missing.astype(np.float64)
        return self

    def _fit(self, predicted: _Floats, residuals: _Floats, variance: _Floats, missing: _Floats) -> None:
        self.square_ = max(float(np.mean(residuals**2)), float(np.finfo(np.float64).tiny))
        rows = _features(predicted, variance, missing)
        self.mean_, self.scale_ = rows.mean(axis=0), rows.std(axis=0) + 1e-9
        squares = np.maximum(residuals**2 / self.square_, _LEAST_SQUARE)
        fitted = GammaRegressor(alpha=_RIDGE, max_iter=300).fit((rows - self.mean_) / self.scale_, squares)
        self.coef_, self.intercept_ = fitted.coef_, float(fitted.intercept_)

    def sigma(self, predicted: _Floats, variance: _Floats, missing: _Floats) -> _Floats:
        """Standard deviations (m,)."""
        rows = (_features(predicted, variance, missing) - self.mean_) / self.scale_
        log = np.clip((rows * self.coef_).sum(axis=1) + self.intercept_, -_WIDEST, _WIDEST)
        return np.asarray(np.sqrt(np.exp(log) * self.square_))

    def widths(self, sigma: _Floats, missing: _Floats, level: float, n_columns: int) -> _Floats:
        """Half the length of the intervals: the quantile of scores of rows that lack about as many entries, times sigma."""
        return conformal(self.scores_, self.score_missing_, missing, level, n_columns) * sigma


def conformal(scores: _Floats, score_missing: _Floats, missing: _Floats, level: float, n_columns: int) -> _Floats:
    """Quantiles of scores at numbers of missing entries (m,); of all scores where no training row lacks about as many."""
    near = near_quantiles(
        scores, score_missing, np.zeros(len(scores), dtype=bool), missing, max(n_columns, 1), level, copies_count=False
    )
    return np.where(np.isfinite(near), near, quantile(scores, level))


def _features(predicted: _Floats, variance: _Floats, missing: _Floats) -> _Floats:
    return np.column_stack([np.log(variance), missing, predicted, predicted**2])


def check_level(level: float) -> float:
    """A share between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1; got {level!r}. Pass 0.9 for what misses one row in ten.")
    return float(level)
