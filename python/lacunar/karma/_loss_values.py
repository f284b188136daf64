"""The six losses of a value f against a target y, and their slopes in f, on whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

_Floats = NDArray[np.float64]


def loss_values(loss: str, f: _Floats, y: _Floats, epsilon: float = 0.1) -> _Floats:
    """Loss of every value; y is +-1 for classification losses.

    Examples
    --------
    >>> loss_values("squared_hinge", np.array([0.5, 2.0]), np.array([1.0, 1.0]))
    array([0.25, 0.  ])
    """
    if loss in ("hinge", "squared_hinge"):
        short: _Floats = np.maximum(0.0, 1.0 - y * f)
        return short if loss == "hinge" else short**2
    if loss == "logistic":
        return np.asarray(np.logaddexp(0.0, -y * f))
    far = np.abs(f - y)
    if loss == "squared":
        return np.asarray(far**2)
    return far if loss == "absolute" else np.maximum(far - epsilon, 0.0)


def loss_slopes(loss: str, f: _Floats, y: _Floats, epsilon: float = 0.1) -> _Floats:
    """A (sub)gradient of `loss_values` in f."""
    if loss == "hinge":
        return np.where(y * f < 1, -y, 0.0)
    if loss == "squared_hinge":
        return np.asarray(-2 * y * np.maximum(0.0, 1.0 - y * f))
    if loss == "logistic":
        return np.asarray(-y * expit(-y * f))
    far = f - y
    if loss == "squared":
        return np.asarray(2 * far)
    return np.sign(far) if loss == "absolute" else np.where(np.abs(far) > epsilon, np.sign(far), 0.0)
