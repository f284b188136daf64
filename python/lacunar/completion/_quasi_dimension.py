"""The quasi-dimension D^gamma(U) itself, equation (3) of the paper: a small semidefinite program, with a certificate."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from lacunar.completion._max_norm import max_norm
from lacunar.completion._side import SideState

_Floats = NDArray[np.float64]
_LOOK = 25  # steps between two looks at the bounds


class _Program(NamedTuple):
    """min <C, G> over G >= 0 with G = I on the diagonal and `fixed` off the diagonal blocks of rows and columns."""

    C: _Floats  # (m + n, m + n), blocks R_M M and R_N N
    fixed: _Floats  # (m + n, m + n), 1 on the diagonal, gamma U where rows meet columns
    settled: NDArray[np.bool_]  # (m + n, m + n), where G is `fixed`

    def lower(self, S: _Floats) -> float:
        """A bound by any S: made feasible for the dual, whose slack C - diag - blocks is S >= 0."""
        S = np.where(self.settled, S, self.C)
        S = S + max(0.0, -float(np.linalg.eigvalsh(S)[0])) * np.eye(len(S))
        return float(np.sum((self.C - S) * self.fixed, where=self.settled))


def minimum(U: ArrayLike, M: SideState, N: SideState, gamma: float, tol: float, max_iter: int) -> float:
    """D^gamma of U under begun side information; infinite where ||U||_max > 1 / gamma."""
    matrix = np.asarray(U, dtype=np.float64)
    if matrix.shape != (M.size, N.size):
        raise ValueError(f"U must have shape ({M.size}, {N.size}), ids of rows by ids of columns; got {matrix.shape}.")
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1; got {gamma}. A margin is at most 1.")
    if gamma * max_norm(matrix, tol=1e-8, max_iter=20_000) > 1 + 1e-6:
        return float("inf")
    precisions = [_precision(each) for each in (M, N)]
    if any(each is None for each in precisions):
        return float("inf")
    return _solve(_program(gamma * matrix, *precisions), tol, max_iter)  # type: ignore[arg-type]


def _precision(side: SideState) -> _Floats | None:
    """R_M M (size, size) of a kernel M^-1; None where it is singular to rounding."""
    K = np.asarray(side.columns(np.arange(side.size)), dtype=np.float64)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    if values[0] <= len(K) * np.finfo(float).eps * values[-1]:
        return None
    made: _Floats = float(K.diagonal().max()) * (vectors / values) @ vectors.T
    return made


def _program(scaled: _Floats, M: _Floats, N: _Floats) -> _Program:
    m, n = scaled.shape
    C, fixed = np.zeros((m + n, m + n)), np.eye(m + n)
    C[:m, :m], C[m:, m:] = M, N
    fixed[:m, m:], fixed[m:, :m] = scaled, scaled.T
    settled = np.eye(m + n, dtype=bool)
    settled[:m, m:] = settled[m:, :m] = True
    return _Program(C, fixed, settled)


def _solve(program: _Program, tol: float, max_iter: int) -> float:
    """Alternating directions: G meets the equations, Z is positive semidefinite, their disagreement prices both.

    `best` is the highest dual bound, which is what may be trusted; it is returned once the primal value is within tol of it
    and G is semidefinite to tol.
    """
    C, fixed, settled = program
    weight = max(float(np.linalg.norm(C)) / len(C), 1e-12)
    Z, price, best, value, off = np.where(settled, fixed, 0.0), np.zeros_like(C), -np.inf, np.inf, np.inf
    for step in range(1, max_iter + 1):
        G = np.where(settled, fixed, Z - price - C / weight)
        values, vectors = np.linalg.eigh(G + price)
        before, Z = Z, (vectors * np.maximum(values, 0.0)) @ vectors.T
        price = G + price - Z
        primal, dual = float(np.linalg.norm(G - Z)), weight * float(np.linalg.norm(Z - before))
        if step % _LOOK == 0:
            best = max(best, program.lower(-weight * price))
            value, off = float(np.sum(C * G)), primal / np.sqrt(len(C))
            if value - best <= tol * max(abs(value), 1.0) and off <= tol:
                return max(value, best)
            factor = 2.0 if primal * weight > 10 * dual else 0.5 if dual > 10 * primal * weight else 1.0
            weight, price = weight * factor, price / factor
    warnings.warn(
        f"quasi_dimension lies above {best:.6g}; after {max_iter} steps the value is {value:.6g}, {off:.2g} short of feasible. "
        "Raise max_iter or tol, or use quasi_dimension_bound.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return max(value, best)
