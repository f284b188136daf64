"""How well side information predicts a division of its ids into classes: traces of R^T K^-1 R, and D of Theorem 3 made of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, cg

from lacunar._typing import Floats
from lacunar.completion.graph import GraphState
from lacunar.completion.side import SideInformation, SideState

_TOL = 1e-10


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
    >>> from lacunar.completion import Identity
    >>> from lacunar.papers.completion import quasi_dimension_bound
    >>> quasi_dimension_bound(Identity(4), Identity(3), [0, 0, 0, 0], ["a", "a", "a"])
    7.0
    """
    M, N = begun(rows, "rows"), begun(cols, "cols")
    R, C = one_hot(row_classes, M.size, "row_classes"), one_hot(col_classes, N.size, "col_classes")
    k, ell = R.shape[1], C.shape[1]
    energy_rows = precision_trace(M, R) * float(M.diagonal().max())
    energy_cols = precision_trace(N, C) * float(N.diagonal().max())
    if getattr(M, "is_pd_laplacian", False) and getattr(N, "is_pd_laplacian", False):
        return float(2 * energy_rows + 2 * energy_cols + 2 * k + 2 * ell)
    return float(k * energy_rows + ell * energy_cols)


def one_hot(classes: ArrayLike, size: int, name: str) -> NDArray[np.float64]:
    """The block expansion matrix (size, k) of class labels."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(labels) != size:
        raise ValueError(f"{name} must give a class for each of {size} ids; got shape {labels.shape}.")
    _, codes = np.unique(labels, return_inverse=True)
    expanded: NDArray[np.float64] = (codes[:, None] == np.arange(codes.max() + 1)).astype(np.float64)
    return expanded


def begun(side: Any, name: str) -> SideState:
    """The state of side information that knows its ids; a state is given back as it is."""
    state: SideState = side.begin() if isinstance(side, SideInformation) else side
    if not hasattr(state, "digest"):
        raise TypeError(f"{name} must be side information or its begun state; got {type(side).__name__}.")
    if state.size == 0:
        raise ValueError(f"{name} must know its ids; it has none yet. Use Identity(n), or give points.")
    return state


def precision_trace(side: SideState, R: Floats) -> float:
    """tr(R^T K^-1 R) of R (size, k); infinite when K is singular to rounding.

    Factors by the Woodbury identity, graphs by their Laplacian, matrices by Cholesky; mixtures over graphs, whose inverse
    is not sparse, by conjugate gradients.
    """
    if side.kind == "factor":
        return _of_factor(*side.factor(), R)
    if isinstance(side, GraphState):
        return side.energy(R)
    return _of_matrix(side.dense(), R) if side.kind == "dense" else _by_gradients(side, R)


def _of_matrix(K: Floats, R: Floats) -> float:
    try:
        factor = scipy.linalg.cholesky(K, lower=True)
    except scipy.linalg.LinAlgError:
        return float("inf")
    smallest, largest = np.diag(factor).min(), np.diag(factor).max()
    if smallest**2 <= len(K) * np.finfo(float).eps * largest**2:
        return float("inf")
    return float((scipy.linalg.solve_triangular(factor, R, lower=True) ** 2).sum())


def _of_factor(Phi: Floats, own: float, const: float, R: Floats) -> float:
    """(F F^T + own I)^-1 = (I - F (own I + F^T F)^-1 F^T) / own, F = [Phi, sqrt(const) 1]."""
    F = np.column_stack([Phi, np.full(len(Phi), np.sqrt(const))])
    if own == 0:
        return float("inf") if F.shape[1] < len(F) else _of_matrix(F @ F.T, R)
    inner = F.T @ R
    small = own * np.eye(F.shape[1]) + F.T @ F
    return float(((R**2).sum() - (inner * scipy.linalg.solve(small, inner, assume_a="pos")).sum()) / own)


def _by_gradients(side: SideState, R: Floats) -> float:
    operator = LinearOperator((side.size, side.size), matvec=lambda v: side.apply(np.ravel(v)), dtype=np.float64)
    total = 0.0
    for column in R.T:
        solved, info = cg(operator, column, rtol=_TOL, maxiter=5000)
        if info:
            raise ValueError(
                "side information must be well enough conditioned to be solved with; conjugate gradients did not converge in "
                "5000 steps. Give more weight to own in Mix."
            )
        total += float(column @ solved)
    return total
