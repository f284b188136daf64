"""Label weights: regression of y on the codes of its rows, by sums over the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.lowrank.parts import Parts

_Floats = NDArray[np.float64]
Alpha = float | Literal["auto"]
CodesAndLabels = tuple[_Floats, _Floats]  # (n, d) and (n, targets), NaN where unknown

_RIDGES = np.logspace(-6, 4, 21)  # of alpha="auto", in units of the mean square of a code
_TIED = 1e-9  # relative difference of leave-one-out errors that is rounding: of two rows all ridges are as good
# Rows whose leave-one-out errors are held at once, for 21 ridges: 86 KB, below what malloc takes fresh pages for.
_CHUNK = 2**9


class LabelFit(NamedTuple):
    """Weights (d, targets) and intercepts (targets,)."""

    weights: _Floats
    intercept: _Floats


class _Centred(NamedTuple):
    """Of the rows that have a target: number, means, and sums about the means."""

    n: _Floats  # (targets,)
    code: _Floats  # (targets, d)
    label: _Floats  # (targets,)
    second: _Floats  # (targets, d, d)
    product: _Floats  # (targets, d)

    def units(self) -> _Floats:
        """Sums of squares of a code, in the mean over its coordinates (targets,)."""
        about = np.einsum("tkk->t", self.second) / self.code.shape[1]
        made: _Floats = np.maximum(about + self.n * np.mean(self.code**2, axis=1), 1e-300)
        return made


def fit_labels(parts: Parts, alpha: Alpha, l1_ratio: float, *, intercept: bool = True) -> LabelFit:
    """Elastic net of every target on codes, over the rows where it is known; parts are `CodesAndLabels`.

    `alpha="auto"` is a ridge chosen by exact leave-one-out, whose errors are sums over rows too. A target without a known row
    gets zeros, and NaN as intercept. Without `intercept`, which "auto" needs, sums are about 0. O(n targets d^2).
    """
    count, code, label = parts.total(_first)
    rows = np.maximum(count, 1) if intercept else np.inf
    code, label = (code.T / rows).T, label / rows
    sums = _Centred(count, code, label, *parts.total(_second, code, label))
    ridges = _RIDGES * sums.units()[:, None]
    chosen = _left_out(parts, sums, ridges) if alpha == "auto" else None
    made = LabelFit(np.zeros((code.shape[1], len(count))), np.where(count > 0, label, np.nan))
    for t in np.flatnonzero((count > 1) & _vary(parts) if intercept else count > 0):
        if chosen is not None:
            weights = _ridge(sums.second[t], sums.product[t], chosen[t])
        elif l1_ratio == 0:
            weights = _ridge(sums.second[t], sums.product[t], max(float(alpha) * count[t], 1e-6 * ridges[t, 0]))
        else:
            least = max(float(alpha), 1e-12)
            penalty = (2 * least * l1_ratio, least * (1 - l1_ratio))
            start = np.zeros(code.shape[1])
            weights = lasso_on_sums(sums.second[t], sums.product[t], count[t], *penalty, start, sweeps=10_000)
        made.weights[:, t] = weights
        made.intercept[t] -= code[t] @ weights
    return made


def _ridge(second: _Floats, product: _Floats, ridge: float) -> _Floats:
    return np.asarray(np.linalg.solve(second + ridge * np.eye(len(product)), product))


def _left_out(parts: Parts, sums: _Centred, ridges: _Floats) -> _Floats:
    """The ridge (targets,), the first of those given for each with the least squared error on a row left out."""
    values, axes = np.linalg.eigh(sums.second)
    shrunk = 1 / (np.maximum(values, 0.0)[:, None, :] + ridges[:, :, None])  # (targets, ridges, d)
    weights = np.einsum("tkl,tk->tl", axes, sums.product)[:, None, :] * shrunk  # along the axes
    errors = parts.total(_errors, sums.n, sums.code, sums.label, axes, shrunk, weights)[0]
    as_good = errors <= (1 + _TIED) * errors.min(axis=1, keepdims=True)
    best: _Floats = ridges[np.arange(len(ridges)), np.argmax(as_good, axis=1)]
    return best


def _errors(
    part: CodesAndLabels,
    count: _Floats,
    code: _Floats,
    label: _Floats,
    axes: _Floats,
    shrunk: _Floats,
    weights: _Floats,
) -> tuple[_Floats]:
    """Sums (targets, ridges) of squared leave-one-out errors e / (1 - h), h the leverage with that of the intercept."""
    codes, y = part
    made = np.zeros(shrunk.shape[:2])
    for t in np.flatnonzero(count > 1):
        for rows in _known(y[:, t]):
            z = (codes[rows] - code[t]) @ axes[t]
            left = (y[rows, t] - label[t])[:, None] - z @ weights[t].T
            made[t] += np.sum((left / (1 - 1 / count[t] - z**2 @ shrunk[t].T)) ** 2, axis=0)
    return (made,)


def _known(y: _Floats) -> Iterator[NDArray[np.intp]]:
    """Rows with a label, some at a time."""
    known = np.flatnonzero(~np.isnan(y))
    return (known[start : start + _CHUNK] for start in range(0, len(known), _CHUNK))


def _first(part: CodesAndLabels) -> tuple[_Floats, _Floats, _Floats]:
    codes, y = part
    known = ~np.isnan(y)
    return known.sum(axis=0, dtype=np.float64), known.T.astype(np.float64) @ codes, np.nansum(y, axis=0)


def _second(part: CodesAndLabels, code: _Floats, label: _Floats) -> tuple[_Floats, _Floats]:
    codes, y = part
    second, product = np.zeros((*code.shape, code.shape[1])), np.zeros_like(code)
    for t in range(len(label)):
        for rows in _known(y[:, t]):
            away = codes[rows] - code[t]
            second[t] += away.T @ away
            product[t] += (y[rows, t] - label[t]) @ away
    return second, product


def _vary(parts: Parts) -> NDArray[np.bool_]:
    """Whether known labels differ (targets,)."""
    lowest, highest = (np.array(each) for each in zip(*parts.each(_span), strict=True))
    made: NDArray[np.bool_] = lowest.min(axis=0) < highest.max(axis=0)
    return made


def _span(part: CodesAndLabels) -> tuple[_Floats, _Floats]:
    """Smallest and largest known label (targets,)."""
    return np.fmin.reduce(part[1], axis=0, initial=np.inf), np.fmax.reduce(part[1], axis=0, initial=-np.inf)


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
