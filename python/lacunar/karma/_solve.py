"""Dual coefficients for every loss, outputs by columns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from lacunar._dual import solve_crammer_singer, solve_dual
from lacunar.karma._ridge import solve_ridge

_Floats = NDArray[np.float64]


def one_vs_rest(codes: NDArray[np.intp], n_classes: int) -> _Floats:
    """Codes +-1: shape (n, 1) for two classes, (n, k) for more."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def solve_classes(
    gram: NDArray[Any],
    codes: NDArray[np.intp],
    n_classes: int,
    upper: _Floats,
    *,
    loss: Any,
    tol: float,
    max_iter: int,
    verbose: int,
) -> tuple[_Floats, int]:
    """Coefficients (n, outputs) and the largest number of iterations; upper[i] = C * weight_i."""
    if loss == "squared":
        return solve_ridge(gram, one_vs_rest(codes, n_classes), 1.0, upper), 1
    small = np.ascontiguousarray(gram, dtype=np.float32)
    if loss == "crammer_singer":
        result = solve_crammer_singer(small, codes, n_classes, upper, tol=tol, max_iter=max_iter)
        warn_if_unfinished([result], loss, tol)
        coef = np.asarray(result.coef, dtype=np.float64)
        return coef if n_classes > 2 else coef[:, 1:] - coef[:, :1], int(result.n_iter)
    targets = one_vs_rest(codes, n_classes)
    results = [
        solve_dual(small, y, upper, loss=loss, tol=tol, max_iter=max_iter, verbose=verbose)
        for y in np.ascontiguousarray(targets.T)
    ]
    warn_if_unfinished(results, loss, tol)
    return np.column_stack([result.coef for result in results]), max(int(result.n_iter) for result in results)


def warn_if_unfinished(results: list[Any], loss: str, tol: float) -> None:
    """One ConvergenceWarning a fit, with the largest relative duality gap."""
    gap = max((result.gap for result in results if not result.converged), default=None)
    if gap is not None:
        warnings.warn(
            f"the {loss} loss stopped at relative duality gap {gap:.2g}, above tol={tol:g}; raise max_iter, lower C "
            "or scale the columns (standardize=True, normalize='trace').",
            ConvergenceWarning,
            stacklevel=4,
        )
