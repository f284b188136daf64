"""A hedge over experts: weights that follow the expected mistakes of each."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Hedge:
    """Exponential weights over E experts, the step set by the variance met so far (a second-order bound).

    An expert with score y_bar and margin gamma predicts +1 with probability (1 + u) / 2, u = y_bar / gamma cut to [-1, 1]: the
    randomised rule of Algorithm 1. Its loss is the probability of a mistake, (1 - y u) / 2; the mixture's u is the weighted mean.
    The mixture's expected mistakes exceed those of the best expert by O(sqrt(V log E) + log E), V the sum of the variances of the
    losses under the weights (Cesa-Bianchi, Mansour and Stoltz, "Improved second-order bounds for prediction with expert
    advice", 2007): nothing to tune. `losses` (E,) and `variance` are all that has to be stored.
    """

    def __init__(self, n_experts: int) -> None:
        self.losses = np.zeros(n_experts)
        self.variance = 0.0

    @property
    def weights(self) -> Floats:
        """Shares of the experts, (E,), summing to 1."""
        if len(self.losses) == 1:
            return np.ones(1)
        step = math.log(len(self.losses))
        step = 1.0 if self.variance <= step else math.sqrt(step / self.variance)
        made: Floats = np.exp(step * (self.losses.min() - self.losses))
        made /= made.sum()
        return made

    def learn(self, u: Floats, y: float) -> float:
        """The mixture of margins u (E,) in [-1, 1] before the label y = +-1 is taken into account. O(E)."""
        weights = self.weights
        mixture = float(weights @ u)
        losses = 0.5 * (1.0 - y * u)
        self.variance += float(weights @ (losses - 0.5 * (1.0 - y * mixture)) ** 2)
        self.losses = self.losses + losses
        return mixture

    def learn_block(self, u: Floats, y: Floats) -> Floats:
        """`learn` one after the other on margins (n, E): the mixtures (n,)."""
        return np.array([self.learn(each, label) for each, label in zip(u, y.tolist(), strict=True)])


def margins(scores: Floats, gammas: Floats) -> Floats:
    """u = y_bar / gamma cut to [-1, 1], experts along the last axis."""
    made: Floats = np.clip(scores / gammas, -1.0, 1.0)
    return made
