"""The variance of a target given a row under the low-rank model, and how much measuring an entry would lower it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar._typing import Floats
from lacunar.lowrank.gaussian import LARGEST_FULL, GaussianRegressor
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import Rule, floats

_PENALTY = 1.0  # of the ridge of targets on latent coordinates
_LEAST_SHARE = 1e-3  # of a target's variance, which no row is thought to leave open less of
_JOINT_STEPS, _JOINT_TOL = 30, 1e-3  # of its EM
_BATCH = 1000  # rows whose posterior covariances are in memory at once


OF_VARIANCE: dict[str, Rule] = {
    "coef_": floats("k", "q"),
    "noise_": floats("q", low=0),
}


class TargetVariance(BaseEstimator):
    """Targets as linear functions of the latent coordinates of a low-rank Gaussian, y = w a + e: what is known of a row tells how much of y is open.

    Var(y | row) = w' Cov(a | row) w + Var(e), and measuring a missing entry x_j lets it fall by Cov(x_j, y | row)^2 / Var(x_j | row).
    """

    _schema: ClassVar[dict[str, Rule]] = OF_VARIANCE

    def fit(self, posterior: LowRankPosterior, Z: Floats, Y: Floats) -> Self:
        """From standardised targets (n, q)."""
        latent = posterior.latent(Z)
        square = latent.T @ latent
        self.coef_ = np.linalg.solve(square + _PENALTY * np.eye(len(square)), latent.T @ Y)
        residual, self.noise_ = ((Y - latent @ self.coef_) ** 2).mean(axis=0), np.zeros(Y.shape[1])
        self.noise_ = np.maximum(residual - self.variances(posterior, Z).mean(axis=0), _LEAST_SHARE)
        return self

    def with_joint(self, posterior: LowRankPosterior, Z: Floats, target: Floats, seed: int) -> Self:
        """The same with the full Gaussian of columns and targets (n, q), where the columns allow one, and what every column tells alone."""
        learned = copy(self)
        learned._fit_joint(posterior, Z, target, seed)
        learned.one_order_ = False
        return learned

    def _fit_joint(self, posterior: LowRankPosterior, Z: Floats, Y: Floats, seed: int) -> None:
        self.joint_: GaussianRegressor | None = None
        self.alone_, varies = _alone(Z, Y)
        if max(Z.shape[1], Y.shape[1]) > LARGEST_FULL:
            return
        model = GaussianRegressor(max_iter=_JOINT_STEPS, tol=_JOINT_TOL, random_state=seed)
        # Of columns that add up exactly the low rank answers.
        with suppress(np.linalg.LinAlgError):
            self.joint_ = model.fit(np.where(varies | np.isnan(Z), Z, 0.0), Y)

    def variances(self, posterior: LowRankPosterior, Z: Floats) -> Floats:
        """Var(y | row), (n, q)."""
        batches = [Z[first : first + _BATCH] for first in range(0, len(Z), _BATCH)]
        weights = np.asarray(self.coef_, dtype=np.float64)
        return np.vstack([posterior.variances(batch, weights) for batch in batches]) + self.noise_

    def gains(self, posterior: LowRankPosterior, Z: Floats) -> Floats:
        """What measuring an entry is worth: (n, p), 0 where it is known."""
        if self.one_order_:
            return np.asarray(np.where(np.isnan(Z), self.alone_, 0.0), dtype=np.float64)
        return self._by_row(posterior, Z)

    def _by_row(self, posterior: LowRankPosterior, Z: Floats) -> Floats:
        """How much the variances of the targets, summed, are expected to fall, by what the row shows."""
        if self.joint_ is not None:
            joint = self.joint_
            values = joint._values(joint._standardised(Z), joint.label_scale_**2, np.ones(Z.shape[1]))
            return np.asarray(values, dtype=np.float64)
        W, gains = posterior.components_.T, []
        for cov in _covariances(posterior, Z):
            with_y = W @ (cov @ self.coef_)
            of_x = np.einsum("pk,nkl,pl->np", W, cov, W) + posterior.noise_variance_
            gains.append((with_y**2).sum(axis=2) / of_x)
        return np.where(np.isnan(Z), np.vstack(gains), 0.0)


def _alone(Z: Floats, Y: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Cov(x_j, y)^2 / Var(x_j), summed over the targets, of every column (p,) by the rows that show it, and whether Var(x_j) is above 0 in float64."""
    seen = ~np.isnan(Z)
    counts = np.maximum(seen.sum(axis=0), 1)
    X = np.where(seen, Z, 0.0)
    centred = np.where(seen, Z - X.sum(axis=0) / counts, 0.0)
    covariance = centred.T @ (Y - Y.mean(axis=0)) / counts[:, None]
    variance = (centred**2).sum(axis=0) / counts
    varies = variance > 0
    return np.divide((covariance**2).sum(axis=1), variance, out=np.zeros(Z.shape[1]), where=varies), varies


def _covariances(posterior: LowRankPosterior, Z: Floats) -> Iterator[Floats]:
    """Posterior covariances (rows, k, k) of the latent coordinates, a batch at a time."""
    for first in range(0, len(Z), _BATCH):
        yield posterior.noise_variance_ * posterior.features(Z[first : first + _BATCH])[1]
