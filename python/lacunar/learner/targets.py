"""How much of a target a row leaves open under the low-rank model, and what measuring a missing entry would tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import Rule, floats

_Floats = NDArray[np.float64]

_PENALTY = 1.0  # of the ridge of targets on codes
_LEAST_SHARE = 1e-3  # of a target's variance, which no row is thought to leave open less of
_BATCH = 1000  # rows whose posterior covariances are in memory at once


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
