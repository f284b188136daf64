"""How much measuring a missing entry would tell about a row's class."""

from __future__ import annotations

from contextlib import suppress
from typing import ClassVar, Self

import numpy as np

from lacunar._typing import Floats, Ints
from lacunar.learner.targets import OF_VARIANCE, TargetVariance
from lacunar.lowrank.gaussian import LARGEST_FULL
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed import Observed
from lacunar.observed.rules import Rule, floats
from lacunar.uncertainty.class_gaussians import ClassGaussians, ClassMixture, information

_PENALTY = 1.0  # of the ridge of classes on latent coordinates
_LEAST_WITHIN = 1e-3  # variance of a latent coordinate within classes
_NUMBERS = 2**20  # of mixtures, in memory at once


class ClassInformation(TargetVariance):
    """Mutual information of a row's class and a missing entry, in nats, where the rows of every class are a Gaussian.

    Of more columns than a full Gaussian has, classes are Gaussians of the latent coordinates, with one covariance.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        **OF_VARIANCE,
        "log_shares_": floats("c", high=0),
        "latent_means_": floats("c", "k"),
        "within_": floats("k", "k"),
    }

    def _fit_joint(self, posterior: LowRankPosterior, Z: Floats, target: Floats, seed: int) -> None:
        """The classes' Gaussians, from the numbers of the rows' classes (n, 1)."""
        self.gaussians_: ClassGaussians | None = None
        if Z.shape[1] <= LARGEST_FULL:
            # Where a covariance rounds to a singular one the low rank answers.
            with suppress(ValueError):
                self.gaussians_ = ClassGaussians().fit(_observed(Z), np.unique(target[:, 0], return_inverse=True)[1])
        self.alone_ = self._by_row(posterior, np.full((1, Z.shape[1]), np.nan))[0]

    def fit_latent(self, latent: Floats, labels: Ints) -> Self:
        """Means and covariance of the latent coordinates in classes, by regression on the classes' indicators: rows' coordinates have the unit covariance."""
        shares = np.bincount(labels) + 0.5
        shares /= shares.sum()
        indicators = np.eye(len(shares))[:, 1:] - shares[1:]
        square = latent.T @ latent + _PENALTY * np.eye(latent.shape[1])
        with_classes = np.linalg.solve(square, latent.T @ indicators[labels])
        by_class = np.linalg.solve(np.diag(shares[1:]) - np.outer(shares[1:], shares[1:]), with_classes.T)
        size, axes = np.linalg.eigh(np.eye(latent.shape[1]) - with_classes @ by_class)
        self.within_ = (axes * np.maximum(size, _LEAST_WITHIN)) @ axes.T
        self.log_shares_, self.latent_means_ = np.log(shares), indicators @ by_class
        return self

    def _by_row(self, posterior: LowRankPosterior, Z: Floats) -> Floats:
        if self.gaussians_ is not None:
            return self.gaussians_.value_of_measuring(_observed(Z))
        step = max(_NUMBERS // (Z.shape[1] * len(self.log_shares_)), 1)
        parts = [Z[first : first + step] for first in range(0, len(Z), step)]
        values = [information(self._mixture(posterior, part), np.isnan(part)) for part in parts]
        return np.vstack(values) if values else np.zeros(Z.shape)

    def _mixture(self, posterior: LowRankPosterior, Z: Floats) -> ClassMixture:
        """Chances of the classes and, given each, means and variances of entries (m, p), less the columns' means."""
        latent, covariance = posterior.features(Z)
        told = np.linalg.inv(posterior.noise_variance_ * covariance)  # by the row, and by the unit covariance before it
        before = np.linalg.inv(self.within_)
        given = np.linalg.inv(told - np.eye(len(before)) + before)  # (m, k, k)
        of_classes = self.latent_means_ @ before
        pull = (told @ latent[:, :, None])[:, :, 0][:, None] + of_classes  # (m, c, k)
        mean = pull @ given
        logs = self.log_shares_ + 0.5 * ((pull * mean).sum(axis=2) - (of_classes * self.latent_means_).sum(axis=1))
        logs -= logs.max(axis=1, keepdims=True)
        W = posterior.components_.T
        variance = np.einsum("pk,nkl,pl->np", W, given, W, optimize=True) + posterior.noise_variance_
        entries = np.moveaxis(mean @ W.T, 1, 2)
        return ClassMixture(
            logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)),
            entries,
            np.broadcast_to(variance[:, :, None], entries.shape),
        )


def _observed(Z: Floats) -> Observed:
    return Observed.from_dense(np.asarray(Z, dtype=np.float64))
