"""How the members' values become one prediction: a log-linear pool for classes, weighted sums for numbers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from sklearn.base import BaseEstimator

from lacunar.observed.rules import Rule, floats

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]

_FEW_ROWS = 400.0  # below which weights stay near one another: ridge values break log loss at 60 rows
_FEW_ROWS_OF_NUMBERS = 1600.0  # the same of squared errors, where the weights' prior lets go of what is behind
_DOUBT = 2.0  # standard errors of the difference of two losses, behind by which a member still counts exp(-1/2)
_SUM_PRECISION = 50.0  # of the sum of the weights about 1: few rows of a weak signal may ask for far more
_INTERCEPT_PRECISION = 1.0  # as if a row spoke against an intercept
_LARGEST_SLOPE, _SMALLEST_SLOPE = 50.0, 0.02


def log_softmax(values: _Floats) -> _Floats:
    """Rows of log probabilities."""
    made: _Floats = values - np.logaddexp.reduce(values, axis=-1, keepdims=True)
    return made


def shrinkage(n: int, few: float = _FEW_ROWS) -> float:
    """How strongly weights are drawn to those of the prior."""
    return 1.0 + few / max(n, 1)


class LogPool(BaseEstimator):  # type: ignore[misc]
    """p proportional to exp(sum of w_m log p_m), where log p_m = log softmax(a_m s_m + b_m) of every member's values s_m.

    a_m and b_m are each member's own, by maximum a posteriori with the targets of Platt (1999); the weights w >= 0 minimise n log loss + lambda M |w - 1/M|^2.
    """

    _held: ClassVar[dict[str, Rule]] = {
        "slopes_": floats("members", low=0),
        "intercepts_": floats("members", "c"),
        "weights_": floats("members", low=0),
    }

    def fit(self, values: list[_Floats], codes: _Ints, weight: _Floats | None = None) -> LogPool:
        """From out-of-fold values (n, c) of every member."""
        each = np.ones(len(codes)) if weight is None else weight
        fitted = [_calibration(member, codes, each) for member in values]
        self.slopes_ = np.array([slope for slope, _ in fitted])
        self.intercepts_ = np.array([intercept for _, intercept in fitted])
        self.weights_ = _log_weights(self._logs(values), codes, each)
        return self

    def _logs(self, values: list[_Floats]) -> _Floats:
        """Calibrated log probabilities (members, n, c)."""
        pairs = zip(values, self.slopes_, self.intercepts_, strict=True)
        return np.array([log_softmax(slope * member + intercept) for member, slope, intercept in pairs])

    def combine(self, values: list[_Floats]) -> _Floats:
        """Log probabilities (m, c)."""
        logs, total = self._logs(values), 0.0
        # Member by member: the same bits for any number of rows.
        for weight, member in zip(self.weights_, logs, strict=True):
            total = total + weight * member
        return log_softmax(np.asarray(total))


def _calibration(values: _Floats, codes: _Ints, weight: _Floats) -> tuple[float, _Floats]:
    """Slope and intercepts of one member."""
    n, c = values.shape
    scale = max(float(values.std()), 1e-12)
    # Platt's targets: few rows prove little.
    doubt = (1.0 / (np.bincount(codes, weights=weight, minlength=c) + 2.0))[codes][:, None]
    target = np.repeat(doubt / (c - 1), c, axis=1)
    target[np.arange(n), codes] = 1.0 - doubt[:, 0]

    def loss(free: _Floats) -> tuple[float, _Floats]:
        slope, intercept = np.exp(free[0]) / scale, free[1:]
        logs = log_softmax(slope * values + intercept)
        behind = weight[:, None] * (np.exp(logs) - target)
        value = -float(weight @ (target * logs).sum(axis=1)) + 0.5 * _INTERCEPT_PRECISION * float(intercept @ intercept)
        gradient = np.r_[slope * float((behind * values).sum()), behind.sum(axis=0) + _INTERCEPT_PRECISION * intercept]
        return value + 0.05 * free[0] ** 2, gradient + np.r_[0.1 * free[0], np.zeros(c)]

    bounds = [(np.log(_SMALLEST_SLOPE), np.log(_LARGEST_SLOPE))] + [(-20.0, 20.0)] * c
    found = minimize(loss, np.zeros(c + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(np.exp(found[0]) / scale), found[1:]


def _log_weights(logs: _Floats, codes: _Ints, weight: _Floats) -> _Floats:
    """Weights (members,) of log probabilities (members, n, c)."""
    members, n, _ = logs.shape
    even, strength = np.full(members, 1.0 / members), shrinkage(n) * members
    rows = np.arange(n)

    def loss(w: _Floats) -> tuple[float, _Floats]:
        mixed = log_softmax(np.tensordot(w, logs, axes=1))
        behind = np.exp(mixed)
        behind[rows, codes] -= 1.0
        behind *= weight[:, None]
        gradient = np.tensordot(logs, behind, axes=([1, 2], [0, 1])) + 2 * strength * (w - even)
        return -float(weight @ mixed[rows, codes]) + strength * float(((w - even) ** 2).sum()), gradient

    found: _Floats = minimize(loss, even, jac=True, bounds=[(0.0, None)] * members, method="L-BFGS-B").x
    return found


class LinearPool(BaseEstimator):  # type: ignore[misc]
    """Sums of the members' values, one row of weights >= 0 a target: least squares, shrunk to equal weights of the members that may be the best.

    Shrinkage is in units of the best member's squared error: the average's would spoil members that are exact.
    """

    _held: ClassVar[dict[str, Rule]] = {"weights_": floats("targets", "members", low=0)}

    def fit(self, values: list[_Floats], Y: _Floats, weight: _Floats | None = None) -> LinearPool:
        """From out-of-fold values (n, q) of every member; targets (n, q)."""
        each = np.ones(len(Y)) if weight is None else weight
        members = np.stack(values, axis=2)
        self.weights_ = np.array([_least_squares(members[:, j], Y[:, j], each) for j in range(Y.shape[1])])
        return self

    def combine(self, values: list[_Floats]) -> _Floats:
        """Predictions (m, q)."""
        total = np.zeros_like(values[0])
        for k, member in enumerate(values):
            total = total + self.weights_[:, k] * member
        return total


def _least_squares(members: _Floats, y: _Floats, weight: _Floats) -> _Floats:
    """Weights (m,) >= 0 of the members' values (n, m) that minimise sum of squares / the best member's + the prior's two terms.

    The terms are s m |w - prior|^2 with s = 1 + 1600/n, and 50 (sum of w - 1)^2.
    """
    n, m = members.shape
    losses = (members - y[:, None]) ** 2
    least = float(np.average(losses, axis=0, weights=weight).min())
    unit = np.sqrt(max(least, 1e-14 * max(float(np.average(y**2, weights=weight)), 1e-300)))
    roots, pull = np.sqrt(weight)[:, None] / unit, np.sqrt(shrinkage(n, _FEW_ROWS_OF_NUMBERS) * m)
    sum_pull = np.sqrt(_SUM_PRECISION)
    left = np.vstack([members * roots, pull * np.eye(m), np.full((1, m), sum_pull)])
    weights: _Floats = nnls(left, np.r_[y * roots[:, 0], pull * prior_weights(losses, weight), sum_pull])[0]
    return weights


def prior_weights(losses: _Floats, weight: _Floats) -> _Floats:
    """Weights (m,) that least squares are shrunk to, from the members' losses (n, m): alike where the losses do not tell members apart.

    A member whose mean loss is z standard errors behind the least one counts exp(-(z / 2)^2 / 2).
    """
    means = np.average(losses, axis=0, weights=weight)
    behind = losses - losses[:, [int(means.argmin())]]
    gaps = means - means.min()
    errors = np.sqrt((weight[:, None] ** 2 * (behind - gaps) ** 2).sum(axis=0)) / weight.sum()
    z = np.divide(gaps, errors, out=np.where(gaps > 0, np.inf, 0.0), where=errors > 0)
    counts = np.exp(-0.5 * (z / _DOUBT) ** 2)
    shares: _Floats = counts / counts.sum()
    return shares
