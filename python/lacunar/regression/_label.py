"""Label weights: regression of y on the codes of its rows."""

from __future__ import annotations

import warnings
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

_Floats = NDArray[np.float64]
Alpha = float | Literal["auto"]

_RIDGES = np.logspace(-6, 4, 21)  # of alpha="auto", in units of the mean square of a code


class LabelFit(NamedTuple):
    """Weights (d, targets), intercepts and residual variances (targets,)."""

    weights: _Floats
    intercept: _Floats
    variance: _Floats


def fit_labels(codes: _Floats, y: _Floats, alpha: Alpha, l1_ratio: float) -> LabelFit:
    """Elastic net of every target (n, targets) on codes (n, d), over the rows where it is known.

    `alpha="auto"` is a ridge chosen by exact leave-one-out. A target without a known row gets zeros, and NaN as intercept.
    """
    d, targets = codes.shape[1], y.shape[1]
    made = LabelFit(np.zeros((d, targets)), np.full(targets, np.nan), np.full(targets, np.nan))
    for t in range(targets):
        known = ~np.isnan(y[:, t])
        if known.any():
            weights, made.intercept[t] = _one(codes[known], y[known, t], alpha, l1_ratio)
            made.weights[:, t] = weights
            made.variance[t] = np.mean((y[known, t] - made.intercept[t] - codes[known] @ weights) ** 2)
    return made


def _one(codes: _Floats, y: _Floats, alpha: Alpha, l1_ratio: float) -> tuple[_Floats, float]:
    from sklearn.linear_model import ElasticNet, Ridge, RidgeCV

    if len(y) < 2 or np.ptp(y) == 0:
        return np.zeros(codes.shape[1]), float(y.mean())
    unit = max(float(np.mean(np.square(codes))), 1e-300) * len(y)
    if alpha == "auto":
        model = RidgeCV(alphas=_RIDGES * unit)
    elif l1_ratio == 0:
        model = Ridge(alpha=max(alpha * len(y), 1e-12 * unit))
    else:
        model = ElasticNet(alpha=max(alpha, 1e-12), l1_ratio=l1_ratio, precompute=True, max_iter=10_000, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(codes, y)
    return np.asarray(model.coef_, dtype=np.float64), float(model.intercept_)


def lasso_on_sums(
    second: _Floats, first: _Floats, n: float, lam1: float, lam2: float, start: _Floats, sweeps: int = 1000
) -> _Floats:
    """argmin_w (w H w - 2 g w) / n + lam1 |w|_1 + lam2 |w|^2 from H = sum a a^T and g = sum y a, by coordinate descent.

    What step 8 of SLRM approaches by stochastic steps, without a step size. O(d^2) a sweep.
    """
    w = start.copy()
    for _ in range(sweeps):
        largest = 0.0
        for k in range(len(w)):
            curvature = second[k, k] / n + lam2
            if curvature <= 0:
                continue
            pull = (first[k] - second[k] @ w + second[k, k] * w[k]) / n
            new = np.sign(pull) * max(abs(pull) - lam1 / 2, 0.0) / curvature
            largest = max(largest, abs(new - w[k]))
            w[k] = new
        if largest <= 1e-10 * max(float(np.abs(w).max(initial=0.0)), 1e-300):
            break
    return w
