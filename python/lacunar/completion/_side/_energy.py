"""tr(R^T K^-1 R): how much a division into classes costs under side information (Theorem 3)."""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, cg

from lacunar.completion._side._graph_state import GraphState
from lacunar.completion._side._state import Floats, SideState

_TOL = 1e-10


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
