"""The max-norm (gamma_2 norm) of a matrix, equation (1) of the paper, with a certificate."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

_Floats = NDArray[np.float64]


def max_norm(U: ArrayLike, *, tol: float = 1e-6, max_iter: int = 2000) -> float:
    """||U||_max = min over P Q^T = U of max_i |P_i| max_j |Q_j|: 1 / gamma of Theorem 1 must not be below it.

    By duality it is the largest trace norm of diag(sqrt p) U diag(sqrt q) over probability vectors p, q, a concave problem.
    Every p, q gives a lower bound, and by its singular vectors a factorisation, an upper one; weights move towards
    the longest rows of the factors until the two meet. No semidefinite solver is needed.

    Parameters
    ----------
    U : array-like of shape (m, n)
        Finite numbers; signs usually. Equal rows and equal columns are merged first: the norm is block-invariant.
    tol : float, default=1e-6
        Relative gap between the bounds at which to stop.
    max_iter : int, default=2000
        Singular value decompositions at most.

    Returns
    -------
    float
        The upper bound: at least the norm, at most (1 + tol) times it unless a warning says otherwise.

    Raises
    ------
    ValueError
        When U is not a finite matrix with an entry, or an argument is out of range.

    Warns
    -----
    ConvergenceWarning
        When the gap is wider than tol after max_iter; it names both bounds.

    Notes
    -----
    O(m n min(m, n)) a step of distinct rows and columns, tens to hundreds of steps: for matrices of up to a few
    hundred distinct rows and columns.

    Examples
    --------
    >>> from lacunar.completion import max_norm
    >>> round(max_norm([[1, 1], [1, -1]]), 6)
    1.414214
    """
    distinct = _distinct(U)
    if not tol > 0 or not max_iter >= 1:
        raise ValueError(f"tol must be above 0 and max_iter at least 1; got {tol} and {max_iter}.")
    if not distinct.any():
        return 0.0
    lower, upper = _bracket(distinct / np.abs(distinct).max(), tol, int(max_iter))
    if upper - lower > tol * upper:
        warnings.warn(
            f"max_norm lies between {lower:.6g} and {upper:.6g} times the largest entry after {max_iter} steps, a gap above "
            f"tol={tol:g}; the upper bound is returned. Raise max_iter or tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return float(upper * np.abs(distinct).max())


def _distinct(U: ArrayLike) -> _Floats:
    matrix = np.asarray(U, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"U must be a matrix with at least one entry; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(
            f"U must be finite; got {matrix[row, column]} in row {row}, column {column}. Complete it first."
        )
    rows: _Floats = np.unique(np.unique(matrix, axis=0), axis=1)
    return rows


def _bracket(U: _Floats, tol: float, max_iter: int) -> tuple[float, float]:
    """(lower, upper) bounds of the norm. U = B C^T, B (m, r), C (n, r), balanced for the weights p, q."""
    p, q = (np.full(size, 1.0 / size) for size in U.shape)
    lower, upper = 0.0, np.inf
    for _ in range(max_iter):
        left, values, right = np.linalg.svd(np.sqrt(p)[:, None] * U * np.sqrt(q), full_matrices=False)
        kept = values > 1e-14 * values[0]
        root = np.sqrt(values[kept])
        B = (U * np.sqrt(q)) @ right[kept].T / root
        C = (U.T * np.sqrt(p)) @ left[:, kept] / root
        long_rows, long_columns = (B**2).sum(axis=1), (C**2).sum(axis=1)
        lower = max(lower, float(values.sum()))
        upper = min(upper, float(np.sqrt(long_rows.max() * long_columns.max())))
        if upper - lower <= tol * upper:
            break
        # The gradient of the trace norm in p is long_rows / 2: a step of multiplicative weights, which only ascends.
        p, q = p * long_rows, q * long_columns
        p, q = p / p.sum(), q / q.sum()
    return lower, max(upper, lower)
