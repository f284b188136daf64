"""Theorems 1 and 3 as functions: the bounds that tune the algorithm, and what they say of side information."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar.completion._max_norm import max_norm
from lacunar.completion._predictive import Predictiveness, predictiveness
from lacunar.completion._side import SideInformation, SideState
from lacunar.completion._side._energy import precision_trace
from lacunar.completion._side._graph_input import components, read_adjacency
from lacunar.completion._side._laplacian import laplacian, written_kernel
from lacunar.completion._side._state import DENSE_LIMIT

__all__ = [
    "Predictiveness",
    "max_norm",
    "mistake_bound",
    "pd_laplacian",
    "predictiveness",
    "quasi_dimension_bound",
    "regret_bound",
]


def quasi_dimension_bound(rows: Any, cols: Any, row_classes: ArrayLike, col_classes: ArrayLike) -> float:
    """D of Theorem 3: how well side information predicts a division into k row classes and l column classes.

    2 tr(R^T M R) R_M + 2 tr(C^T N C) R_N + 2k + 2l when both sides are PDLaplacians (`Graph(kind="pd", normalize=False)`),
    else k tr(R^T M R) R_M + l tr(C^T N C) R_N; R and C the one-hot classes, M = K^-1, R_M = max_i K_ii.

    Parameters
    ----------
    rows, cols : side information, or its begun state
        Of m rows and n columns.
    row_classes, col_classes : array-like of shape (m,) and (n,)
        The latent class of every row and column, of any kind of label.

    Returns
    -------
    float
        A valid D of Algorithm 1; m + n for `Identity` on both sides with one class each, infinite when a kernel is singular
        (to rounding): the theorem asks for positive definite ones, which a share of `Mix` or `own` makes of any.

    Raises
    ------
    ValueError
        When classes do not fit the number of ids, or solving does not converge.

    Notes
    -----
    O(n^3) for dense kernels, O(n d^2) for features, O(edges k) for graphs.

    Examples
    --------
    >>> from lacunar.completion import Identity, quasi_dimension_bound
    >>> quasi_dimension_bound(Identity(4), Identity(3), [0, 0, 0, 0], ["a", "a", "a"])
    7.0
    """
    M, N = _begun(rows, "rows"), _begun(cols, "cols")
    R, C = one_hot(row_classes, M.size, "row_classes"), one_hot(col_classes, N.size, "col_classes")
    k, ell = R.shape[1], C.shape[1]
    energy_rows = precision_trace(M, R) * float(M.diagonal().max())
    energy_cols = precision_trace(N, C) * float(N.diagonal().max())
    if getattr(M, "is_pd_laplacian", False) and getattr(N, "is_pd_laplacian", False):
        return float(2 * energy_rows + 2 * energy_cols + 2 * k + 2 * ell)
    return float(k * energy_rows + ell * energy_cols)


def mistake_bound(quasi_dimension: float, gamma: float, m: int, n: int) -> float:
    """Mistakes at most, equation (6): 3.6 D / gamma^2 log(m + n), for labels that some U with mc(U) <= 1 / gamma gives.

    For conservative updates with eta = gamma. O(1).

    Parameters
    ----------
    quasi_dimension : float
        D, at least 1; e.g. from `quasi_dimension_bound`.
    gamma : float
        The margin, in (0, 1]; at most 1 / `max_norm(U)`.
    m, n : int
        Numbers of rows and columns, at least 3 together.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range.

    Examples
    --------
    >>> from lacunar.completion import mistake_bound
    >>> round(mistake_bound(20.0, 0.5, 50, 50))
    1326
    """
    _check_bound(quasi_dimension, gamma, m, n)
    return float(3.6 * quasi_dimension / gamma**2 * np.log(m + n))


def regret_bound(quasi_dimension: float, gamma: float, m: int, n: int, n_trials: int) -> float:
    """Expected mistakes beyond those of the best U, equation (5): 4 sqrt(2 D / gamma^2 log(m + n) T).

    For non-conservative updates with eta = sqrt(D log(m + n) / (2 T)) and randomised predictions, against every U with
    ||U||_max <= 1 / gamma. O(1).

    Parameters
    ----------
    quasi_dimension, gamma, m, n
        As for `mistake_bound`.
    n_trials : int
        T, at least 1.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range.

    Examples
    --------
    >>> from lacunar.completion import regret_bound
    >>> round(regret_bound(20.0, 0.5, 50, 50, 2500))
    5429
    """
    _check_bound(quasi_dimension, gamma, m, n)
    if not n_trials >= 1:
        raise ValueError(f"n_trials must be at least 1; got {n_trials}.")
    return float(4 * np.sqrt(2 * quasi_dimension / gamma**2 * np.log(m + n) * n_trials))


def pd_laplacian(adjacency: Any) -> NDArray[np.float64]:
    """The paper's PDLaplacian, L + (1/m)(1/m)^T / R_L with R_L = max_i (L^+)_ii (section 2), shape (m, m).

    For looking at, and for other algorithms: `Graph(adjacency, kind="pd", normalize=False)` does not write it out.

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (m, m), pandas DataFrame, or networkx graph
        Symmetric, not negative, connected; at most 4000 vertices.

    Returns
    -------
    laplacian : ndarray of shape (m, m)

    Raises
    ------
    ValueError
        When it is no such graph.

    Notes
    -----
    O(m^3).

    Examples
    --------
    >>> from lacunar.completion import pd_laplacian
    >>> pd_laplacian([[0, 1], [1, 0]]).round(9).tolist()
    [[2.0, -0.0], [-0.0, 2.0]]
    """
    A, _ = read_adjacency(adjacency)
    m, pieces = A.shape[0], int(components(A).max()) + 1
    if m > DENSE_LIMIT:
        raise ValueError(f"adjacency may have at most {DENSE_LIMIT} vertices here; got {m}. Use Graph(kind='pd').")
    if pieces > 1:
        raise ValueError(
            f"adjacency must be connected; it has {pieces} pieces. Join them, or use Graph(kind='regularized')."
        )
    radius = float(written_kernel(A, None).diagonal().max())
    whole: NDArray[np.float64] = laplacian(A).toarray() + 1.0 / (m * m * radius)
    return whole


def one_hot(classes: ArrayLike, size: int, name: str) -> NDArray[np.float64]:
    """The block expansion matrix (size, k) of class labels."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(labels) != size:
        raise ValueError(f"{name} must give a class for each of {size} ids; got shape {labels.shape}.")
    _, codes = np.unique(labels, return_inverse=True)
    expanded: NDArray[np.float64] = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
    return expanded


def _begun(side: Any, name: str) -> SideState:
    state: SideState = side.begin() if isinstance(side, SideInformation) else side
    if not hasattr(state, "digest"):
        raise TypeError(f"{name} must be side information or its begun state; got {type(side).__name__}.")
    if state.size == 0:
        raise ValueError(f"{name} must know its ids; it has none yet. Use Identity(n), or give points.")
    return state


def _check_bound(quasi_dimension: float, gamma: float, m: int, n: int) -> None:
    if not quasi_dimension >= 1:
        raise ValueError(f"quasi_dimension must be at least 1; got {quasi_dimension}.")
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1; got {gamma}. A margin is at most 1.")
    if not (m >= 1 and n >= 1 and m + n >= 3):
        raise ValueError(f"m and n must be at least 1, and 3 together; got {m} and {n}.")
