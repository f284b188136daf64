"""Ridge regression on latent coordinates: of labels with exact leave-one-out errors, of rows with exact folds, and of
columns in a step of EM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from lacunar._cuts import Cut, in_order, left_out, tested_rows
from lacunar._typing import Floats, Ints
from lacunar.lowrank.parts import RowParts, in_parts

Alpha = float | Literal["auto"]
Total = Callable[
    ..., tuple[Any, ...]
]  # of a step and further arguments: what step(part, *arguments) returns, summed over rows
LatentAndLabels = tuple[Floats, Floats]  # (n, d) and (n, targets), NaN where unknown

_RIDGES = np.logspace(-6, 4, 21)  # of alpha="auto", in units of the mean square of a latent coordinate
_TIED = 1e-9  # relative difference of leave-one-out errors that is rounding: of two rows all ridges are as good
# Rows whose leave-one-out errors are held at once, for 21 ridges: 86 KB, below what malloc takes fresh pages for.
_CHUNK = 2**9
PENALTIES = (1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # the least for columns that add up to the target
_FREE = 1e-8  # penalty of the intercept
_LEAST_WEIGHT = 1e-12  # of a row, in units of the mean, so that its residual can be unscaled


def solve_ridge(grams: Floats, products: Floats, ridge: Floats | float) -> Floats:
    """(G_j + diag(ridge_j))^-1 b_j (m, d) of gram matrices (m, d, d) and products (m, d); `ridge` broadcasts to (m, d)."""
    added = np.broadcast_to(np.asarray(ridge, dtype=np.float64), products.shape)[:, :, None] * np.eye(products.shape[1])
    return np.asarray(np.linalg.solve(grams + added, products[:, :, None])[:, :, 0])


# -- labels -----------------------------------------------------------------------------------------------------------


class LabelFit(NamedTuple):
    """Weights (d, targets) and intercepts (targets,)."""

    weights: Floats
    intercept: Floats


class _Centred(NamedTuple):
    """Of the rows that have a target: number, means, and sums about the means."""

    n: Floats  # (targets,)
    latent: Floats  # (targets, d)
    label: Floats  # (targets,)
    second: Floats  # (targets, d, d)
    product: Floats  # (targets, d)

    def units(self) -> Floats:
        """Sums of squares of a latent coordinate, in the mean over its coordinates (targets,)."""
        square = np.einsum("tkk->t", self.second) / self.latent.shape[1]
        units: Floats = np.maximum(square + self.n * np.mean(self.latent**2, axis=1), 1e-300)
        return units


def fit_labels(
    rows: LatentAndLabels | RowParts,
    alpha: Alpha,
    l1_ratio: float,
    *,
    intercept: bool = True,
    spread: Floats | float = 1.0,
) -> LabelFit:
    """Elastic net of every target on latent coordinates, over the rows where it is known, which may be in parts.

    `alpha="auto"` is a ridge chosen by exact leave-one-out, whose errors are sums over rows too. A target without a known row
    gets zeros, and NaN as intercept. Without `intercept`, which "auto" needs, sums are about 0. The l1 penalty is in units of `spread`,
    a number or one a target; a ridge has the same solution in any unit of the label. O(n targets d^2).
    """
    total = in_parts(rows).total
    count, center, label = total(_label_sums)
    divisor = np.maximum(count, 1) if intercept else np.inf
    center, label = (center.T / divisor).T, label / divisor
    sums = _Centred(count, center, label, *total(_products_about, center, label))
    ridges = _RIDGES * sums.units()[:, None]
    chosen = _best_ridges(total, sums, ridges) if alpha == "auto" else None
    fit = LabelFit(np.zeros((center.shape[1], len(count))), np.where(count > 0, label, np.nan))
    for t in np.flatnonzero((count > 1) & _vary(rows) if intercept else count > 0):
        if chosen is not None:
            weights = solve_ridge(sums.second[None, t], sums.product[None, t], chosen[t])[0]
        elif l1_ratio == 0:
            ridge = max(float(alpha) * count[t], 1e-6 * ridges[t, 0])
            weights = solve_ridge(sums.second[None, t], sums.product[None, t], ridge)[0]
        else:
            least = max(float(alpha), 1e-12)
            penalty = (2 * least * l1_ratio * np.broadcast_to(spread, count.shape)[t], least * (1 - l1_ratio))
            start = np.zeros(center.shape[1])
            weights = lasso_on_sums(sums.second[t], sums.product[t], count[t], *penalty, start, sweeps=10_000)
        fit.weights[:, t] = weights
        fit.intercept[t] -= center[t] @ weights
    return fit


def _best_ridges(total: Total, sums: _Centred, ridges: Floats) -> Floats:
    """Of `ridges` (targets, ridges) the first of each target with the least squared leave-one-out error."""
    values, axes = np.linalg.eigh(sums.second)
    shrunk = 1 / (np.maximum(values, 0.0)[:, None, :] + ridges[:, :, None])  # (targets, ridges, d)
    weights = np.einsum("tkl,tk->tl", axes, sums.product)[:, None, :] * shrunk  # along the axes
    errors = total(_left_out_errors, sums.n, sums.latent, sums.label, axes, shrunk, weights)[0]
    as_good = errors <= (1 + _TIED) * errors.min(axis=1, keepdims=True)
    best: Floats = ridges[np.arange(len(ridges)), np.argmax(as_good, axis=1)]
    return best


def _left_out_errors(
    part: LatentAndLabels,
    count: Floats,
    center: Floats,
    label: Floats,
    axes: Floats,
    shrunk: Floats,
    weights: Floats,
) -> tuple[Floats]:
    """Sums (targets, ridges) of squared leave-one-out errors e / (1 - h), h the leverage with that of the intercept."""
    latent, y = part
    squares = np.zeros(shrunk.shape[:2])
    for t in np.flatnonzero(count > 1):
        for rows in _known(y[:, t]):
            z = (latent[rows] - center[t]) @ axes[t]
            residual = (y[rows, t] - label[t])[:, None] - z @ weights[t].T
            squares[t] += np.sum((residual / (1 - 1 / count[t] - z**2 @ shrunk[t].T)) ** 2, axis=0)
    return (squares,)


def _known(y: Floats) -> Iterator[NDArray[np.intp]]:
    """Row numbers of labelled rows, 512 at a time."""
    known = np.flatnonzero(~np.isnan(y))
    return (known[start : start + _CHUNK] for start in range(0, len(known), _CHUNK))


def _label_sums(part: LatentAndLabels) -> tuple[Floats, Floats, Floats]:
    """Of rows with a label, by target: how many, sums (targets, d) of their latent coordinates, and of their labels."""
    latent, y = part
    known = ~np.isnan(y)
    return known.sum(axis=0, dtype=np.float64), known.T.astype(np.float64) @ latent, np.nansum(y, axis=0)


def _products_about(part: LatentAndLabels, center: Floats, label: Floats) -> tuple[Floats, Floats]:
    """Sums of z z^T (targets, d, d) and of y z (targets, d) about the means of the rows with a label, z their latent coordinates."""
    latent, y = part
    second, product = np.zeros((*center.shape, center.shape[1])), np.zeros_like(center)
    for t in range(len(label)):
        for rows in _known(y[:, t]):
            deviations = latent[rows] - center[t]
            second[t] += deviations.T @ deviations
            product[t] += (y[rows, t] - label[t]) @ deviations
    return second, product


def _vary(rows: LatentAndLabels | RowParts) -> NDArray[np.bool_]:
    """Whether the known labels of each target (targets,) take more than one value."""
    lowest, highest = (np.array(ends) for ends in zip(*in_parts(rows).each(_span), strict=True))
    vary: NDArray[np.bool_] = lowest.min(axis=0) < highest.max(axis=0)
    return vary


def _span(part: LatentAndLabels) -> tuple[Floats, Floats]:
    """Smallest and largest known label (targets,)."""
    return np.fmin.reduce(part[1], axis=0, initial=np.inf), np.fmax.reduce(part[1], axis=0, initial=-np.inf)


def lasso_on_sums(
    second: Floats, first: Floats, n: float, lam1: float, lam2: float, start: Floats, sweeps: int = 1000
) -> Floats:
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


# -- rows, by folds ------------------------------------------------------------------------------------------------------


class RidgeFit(NamedTuple):
    """Weights in the units of the features, and predictions of every test row by the fold that does not learn from it."""

    coef: Floats  # (features, q)
    intercept: Floats  # (q,)
    penalty: float
    oof: Floats  # (tested rows, q)
    error: float


def fold_ridge(
    features: Floats,
    Y: Floats,
    cuts: Sequence[Cut],
    weight: Floats | None = None,
    penalties: Sequence[float] = PENALTIES,
) -> RidgeFit:
    """Ridge on standardised features (n, f) with the penalty of the least squared error of the cuts' test rows.

    Predictions are exact: a cut that leaves out at least as many rows F as there are features solves normal equations without them, one that leaves out
    fewer (I - H_FF)^-1 (Y - H Y)_F. More features than rows are replaced by the rows' coordinates in their span.
    """
    n = len(features)
    weights = np.ones(n) if weight is None else np.maximum(weight, _LEAST_WEIGHT * np.mean(weight))
    total = float(weights.sum())
    mean = weights @ features / total
    scale = np.sqrt(weights @ (features - mean) ** 2 / total)
    scale[scale <= 1e-9 * (1 + np.abs(mean))] = 1.0
    standard = (features - mean) / scale
    turn = None
    if standard.shape[1] > n:
        vectors, values, turn = np.linalg.svd(standard, full_matrices=False)
        standard = vectors * values
    root = np.sqrt(weights)[:, None]
    rows = root * np.column_stack([standard, np.ones(n)])
    targets = root * Y
    residuals, tested = _out_of_fold(rows, targets, cuts, penalties), tested_rows(cuts)
    errors = [float(np.mean(residual**2)) for residual in residuals]
    best = int(np.argmin(errors))
    coef = _solver(rows.T @ rows, penalties[best])(rows.T @ targets)
    slopes = (coef[:-1] if turn is None else turn.T @ coef[:-1]) / scale[:, None]
    oof = Y[tested] - residuals[best] / root[tested]
    return RidgeFit(slopes, coef[-1] - mean @ slopes, float(penalties[best]), oof, errors[best])


def _solver(gram: Floats, penalty: float) -> Callable[[Floats], Floats]:
    """A function that solves (gram + penalty I) x = right; the last direction, the intercept, is not penalised."""
    f = len(gram)
    added = np.full(f, penalty)
    added[-1] = _FREE
    factor = cho_factor(gram + np.diag(added), lower=True, overwrite_a=True, check_finite=False)

    def solve(right: Floats) -> Floats:
        solved: Floats = cho_solve(factor, right, check_finite=False)
        return solved

    return solve


def _out_of_fold(rows: Floats, targets: Floats, cuts: Sequence[Cut], penalties: Sequence[float]) -> list[Floats]:
    """For every penalty residuals (tested rows, q), predicted by what their cut learns from."""
    gram, product = rows.T @ rows, rows.T @ targets
    lacking = [left_out(cut, len(rows)) for cut in cuts]
    by_removal = min(map(len, lacking), default=0) < rows.shape[1]
    whole = [_solver(gram, penalty) for penalty in penalties] if by_removal else []
    residuals = [
        _residuals_without(missing, rows, targets, gram, product, penalties, whole)[:, np.searchsorted(missing, test)]
        for (_, test), missing in zip(cuts, lacking, strict=True)
    ]
    return [in_order(cuts, [residual[k] for residual in residuals]) for k in range(len(penalties))]


def _residuals_without(
    missing: Ints,
    rows: Floats,
    targets: Floats,
    gram: Floats,
    product: Floats,
    penalties: Sequence[float],
    whole: Sequence[Callable[[Floats], Floats]],
) -> Floats:
    """Residuals (penalties, missing, q) of the left-out rows, predicted by a fit without them; `whole` solves with all
    rows.
    """
    own, residuals = rows[missing], np.empty((len(penalties), len(missing), targets.shape[1]))
    if len(missing) >= rows.shape[1]:
        others, of_others = gram - own.T @ own, product - own.T @ targets[missing]
        for k, penalty in enumerate(penalties):
            residuals[k] = targets[missing] - own @ _solver(others, penalty)(of_others)
        return residuals
    for k, solve in enumerate(whole):
        fitted = targets[missing] - own @ solve(product)
        residuals[k] = np.linalg.solve(np.eye(len(missing)) * (1 + 1e-12) - own @ solve(own.T), fitted)
    return residuals
