"""(1) and (2): the max-norm and the margin complexity of a matrix, each between a lower and an upper bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from lacunar._log import warn_user
from lacunar._typing import Floats

CHECK_EVERY = 25  # steps, for the bounds


def max_norm(U: ArrayLike, *, tol: float = 1e-6, max_iter: int = 2000) -> float:
    """||U||_max = min over P Q^T = U of max_i |P_i| max_j |Q_j|: 1 / gamma of Theorem 1 must not be
    below it.

    By duality it is the largest trace norm of diag(sqrt p) U diag(sqrt q) over probability vectors
    p, q, a concave problem. Every p, q gives a lower bound, and by its singular vectors a
    factorisation, an upper one; weights move towards the longest rows of the factors until the two
    meet. No semidefinite solver is needed.

    Parameters
    ----------
    U : array-like of shape (m, n)
        Finite numbers; signs usually. Equal rows and equal columns are merged first: the norm is
        block-invariant.
    tol : float, default=1e-6
        Relative gap between the bounds at which to stop.
    max_iter : int, default=2000
        Singular value decompositions at most.

    Returns
    -------
    float
        The upper bound: at least the norm, at most (1 + tol) times it unless a warning says
        otherwise.

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
    O(m n min(m, n)) a step of distinct rows and columns, tens to hundreds of steps: for matrices of
    up to a few hundred distinct rows and columns.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, equation (1).

    Examples
    --------
    >>> from lacunar.papers.completion import max_norm
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
        warn_user(
            f"max_norm lies between {lower:.6g} and {upper:.6g} times the largest entry after {max_iter} steps, a gap above "
            f"tol={tol:g}; the upper bound is returned. Raise max_iter or tol.",
            ConvergenceWarning,
        )
    return float(upper * np.abs(distinct).max())


def _distinct(U: ArrayLike) -> Floats:
    matrix = np.asarray(U, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"U must be a matrix with at least one entry; got shape {matrix.shape}.")
    if not np.isfinite(matrix).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(matrix))[0])
        raise ValueError(
            f"U must be finite; got {matrix[row, column]} in row {row}, column {column}. Complete it first."
        )
    rows: Floats = np.unique(np.unique(matrix, axis=0), axis=1)
    return rows


def _bracket(U: Floats, tol: float, max_iter: int) -> tuple[float, float]:
    """(lower, upper) bounds of the norm. U = B C^T, B (m, r), C (n, r), balanced for the weights p, q."""
    p, q = (np.full(size, 1.0 / size) for size in U.shape)
    lower, upper = 0.0, np.inf
    for _ in range(max_iter):
        u, values, vt = np.linalg.svd(np.sqrt(p)[:, None] * U * np.sqrt(q), full_matrices=False)
        used = values > 1e-14 * values[0]
        root = np.sqrt(values[used])
        B = (U * np.sqrt(q)) @ vt[used].T / root
        C = (U.T * np.sqrt(p)) @ u[:, used] / root
        long_rows, long_columns = (B**2).sum(axis=1), (C**2).sum(axis=1)
        lower = max(lower, float(values.sum()))
        upper = min(upper, float(np.sqrt(long_rows.max() * long_columns.max())))
        if upper - lower <= tol * upper:
            break
        # The gradient of the trace norm in p is long_rows / 2: a step of multiplicative weights, which only ascends.
        p, q = p * long_rows, q * long_columns
        p, q = p / p.sum(), q / q.sum()
    return lower, max(upper, lower)


def margin_complexity(U: ArrayLike, *, tol: float = 1e-6, max_iter: int = 50_000) -> float:
    """mc(U), equation (2): the least max-norm of a matrix with the signs of U and modulus >= 1.

    1 / mc(U) is the largest margin tau with which unit vectors for rows and columns give the signs,
    sign(U_ij) <P_i, Q_j> >= tau: a semidefinite program, solved by alternating directions. Every
    step gives unit vectors, whose margin is an upper bound of mc(U), and weights of the entries,
    whose dual norm is a lower one; it stops when the two meet.

    Parameters
    ----------
    U : array-like of shape (m, n)
        Of which the signs count; no entry is 0. Equal rows and equal columns are merged first: mc
        is block-invariant.
    tol : float, default=1e-6
        Relative gap between the bounds at which to stop.
    max_iter : int, default=50000
        Steps at most.

    Returns
    -------
    float
        The upper bound: at least mc(U), at most (1 + tol) times it unless a warning says otherwise.

    Raises
    ------
    ValueError
        When U is no finite matrix without a 0, or an argument is out of range.

    Warns
    -----
    ConvergenceWarning
        When the gap is wider than tol after max_iter; it names both bounds.

    See Also
    --------
    max_norm : The same for V = U, which for signs is at least mc(U).

    Notes
    -----
    An eigendecomposition of m + n distinct rows and columns a step, O((m + n)^3), hundreds to
    thousands of steps: for tens of them.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, equation (2).

    Examples
    --------
    >>> from lacunar.papers.completion import margin_complexity, max_norm
    >>> U = [[-1, 1, 1, 1], [-1, -1, 1, 1], [-1, -1, 1, -1], [-1, 1, -1, -1]]
    >>> round(margin_complexity(U), 3), round(max_norm(U), 3)
    (1.869, 1.87)
    """
    signs = _distinct(sign_matrix(U))
    if not tol > 0 or not max_iter >= 1:
        raise ValueError(f"tol must be above 0 and max_iter at least 1; got {tol} and {max_iter}.")
    lower, upper = _margin_bracket(signs, tol, int(max_iter))
    if upper - lower > tol * upper:
        warn_user(
            f"margin_complexity lies between {lower:.6g} and {upper:.6g} after {max_iter} steps, a gap above tol={tol:g}; the upper "
            "bound is returned. Raise max_iter or tol.",
            ConvergenceWarning,
        )
    return upper


def sign_matrix(U: ArrayLike) -> Floats:
    matrix = np.asarray(U, dtype=np.float64)
    if matrix.ndim != 2 or matrix.size == 0:
        raise ValueError(f"U must be a matrix with at least one entry; got shape {matrix.shape}.")
    if not np.abs(matrix).min() > 0:  # NaN included
        row, column = (int(k) for k in np.argwhere(~(np.abs(matrix) > 0))[0])
        raise ValueError(
            f"U must have a sign everywhere; got {matrix[row, column]} in row {row}, column {column}. Complete it first."
        )
    return np.sign(matrix)


def _margin_bracket(signs: Floats, tol: float, max_iter: int) -> tuple[float, float]:
    """(lower, upper) bounds of mc for signs (m, n).

    max tau over G = [P; Q][P; Q]^T of unit diagonal with signs * G_across >= tau, by alternating directions as in `_solve`.
    The dual has a weight W >= 0 for every entry: tau sum W <= tr(S) / 2 for S >= 0 with -signs * W across and 0 off the diagonal of blocks.
    """
    m, size = len(signs), sum(signs.shape)
    weight, lower, upper = 1.0 / size, 1.0, np.inf
    Z, price = np.eye(size), np.zeros((size, size))
    for step in range(1, max_iter + 1):
        A = Z - price
        margins = signs * A[:m, m:]
        across = signs * np.maximum(margins, _water_level(margins.ravel(), 1.0 / (2 * weight)))
        G = A.copy()
        np.fill_diagonal(G, 1.0)
        G[:m, m:], G[m:, :m] = across, across.T
        before, Z = Z, nearest_semidefinite(G + price)
        price = G + price - Z
        if step % CHECK_EVERY == 0 or step == max_iter:
            lower, upper = max(lower, _mc_lower(signs, -price)), min(upper, _mc_upper(signs, Z))
            if upper - lower <= tol * upper:
                break
            primal, dual = float(np.linalg.norm(G - Z)), float(np.linalg.norm(Z - before))
            factor = 2.0 if primal > 10 * dual else 0.5 if dual > 10 * primal else 1.0
            weight, price = weight * factor, price / factor
    return lower, max(upper, lower)


def _water_level(heights: Floats, volume: float) -> float:
    """tau with sum of max(tau - heights, 0) = volume."""
    ordered = np.sort(heights)
    levels = (volume + np.cumsum(ordered)) / np.arange(1, len(ordered) + 1)
    return float(levels.min())


def _mc_upper(signs: Floats, Z: Floats) -> float:
    """By the unit vectors whose products are Z (m + n, m + n), if they give the signs."""
    m, lengths = len(signs), np.sqrt(np.maximum(np.diag(Z), 1e-300))
    margin = float((signs * Z[:m, m:] / np.outer(lengths[:m], lengths[m:])).min())
    return 1.0 / margin if margin > 0 else np.inf


def _mc_lower(signs: Floats, S: Floats) -> float:
    """By weights W = -signs * S_across of entries: any W, and any a, b > 0, here the diagonal of a dual slack S (m + n, m + n).

    For unit vectors tau sum W <= <signs W, P Q^T> <= |diag(a)^-1/2 signs W diag(b)^-1/2|_2 sqrt(sum a sum b).
    """
    m = len(signs)
    W = np.maximum(-signs * S[:m, m:], 0.0)
    diagonal = np.maximum(np.diag(S), 1e-12 * max(float(np.abs(S).max()), 1e-300))
    a, b = diagonal[:m], diagonal[m:]
    norm = float(np.linalg.norm(signs * W / np.sqrt(np.outer(a, b)), 2))
    return float(W.sum()) / (norm * float(np.sqrt(a.sum() * b.sum()))) if norm > 0 else 0.0


def nearest_semidefinite(A: Floats) -> Floats:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(A)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
