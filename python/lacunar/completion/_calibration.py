"""Probabilities from scores: a logistic curve in the score, fitted online."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
START_SLOPE = 1.0  # per gamma of score
PRIOR = (1.0, 4.0)  # precisions of slope and offset: as if a few observations had been seen
HALF_LIFE = 1000.0  # observations after which one counts half: what a score is worth grows with the stream
CLIP = 1.0  # in units of gamma: a score beyond the margin is no more certain, on every stream we measured


class OnlineLogistic:
    """P(y = 1) = 1 / (1 + exp(-(slope u + offset))) with u = y_bar / gamma, cut to [-1, 1].

    One Newton step an observation on the discounted log loss (the extended Kalman filter of a logistic model): O(1), no step
    size. Its `values` are slope, offset and the three entries of the curvature, all that has to be stored.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.values = [START_SLOPE, 0.0, PRIOR[0], 0.0, PRIOR[1]]

    def probability(self, y_bar: float) -> float:
        """P(y = 1) for one score."""
        slope, offset = self.values[:2]
        return _sigmoid(slope * self._unit(y_bar) + offset)

    def probabilities(self, y_bar: Floats) -> Floats:
        """P(y = 1) for scores (n,)."""
        slope, offset = self.values[:2]
        odds = slope * np.clip(y_bar / self.gamma, -CLIP, CLIP) + offset
        made: Floats = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return made

    def learn(self, y_bar: float, y: float) -> float:
        """The probability before the step, after which (y_bar, y = +-1) is learned."""
        a, b, haa, hab, hbb = self.values
        u = self._unit(y_bar)
        p = _sigmoid(a * u + b)
        keep, w = 0.5 ** (1.0 / HALF_LIFE), max(p * (1.0 - p), 1e-3)
        # The prior is not discounted: the curvature cannot fade away while only one label comes.
        haa = PRIOR[0] + keep * (haa - PRIOR[0]) + w * u * u
        hab = keep * hab + w * u
        hbb = PRIOR[1] + keep * (hbb - PRIOR[1]) + w
        error = (1.0 if y > 0 else 0.0) - p
        det = haa * hbb - hab * hab
        a += error * (hbb * u - hab) / det
        b += error * (haa - hab * u) / det
        self.values = [max(a, 0.0), b, haa, hab, hbb]
        return p

    def learn_block(self, y_bar: Floats, y: Floats) -> Floats:
        """`learn` one after the other: probabilities (n,) before each step."""
        pairs = zip(y_bar.tolist(), y.tolist(), strict=True)
        return np.array([self.learn(score, label) for score, label in pairs])

    def _unit(self, y_bar: float) -> float:
        return min(max(y_bar / self.gamma, -CLIP), CLIP)


def log_losses(probability: Floats, y: Floats) -> Floats:
    """-log P(y), shape (n,), of labels +-1; a probability of 0 costs what 1e-15 costs."""
    right = np.where(y > 0, probability, 1.0 - probability)
    made: Floats = -np.log(np.maximum(right, 1e-15))
    return made


def _sigmoid(x: float) -> float:
    if x < 0:
        e = math.exp(max(x, -700.0))
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-min(x, 700.0)))
