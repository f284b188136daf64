"""Scores of many pairs at once: by one eigendecomposition, or by Lanczos processes side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar import _core
from lacunar.completion.side import Floats, SideState

Indices = NDArray[np.int32]
Cells = dict[str, Any]  # `Engine.cells`
Coordinates = Callable[[Indices], tuple[Floats, Floats]]
# Measured with bench/bench_completion.py: one decomposition of N vertices costs what 0.4 N pairs cost one by one.
PAIRS_PER_VERTEX = 0.4
MOST_VERTICES = 3000  # 72 MB a matrix and some seconds
FEW_PAIRS = 8  # below, processes side by side gain nothing
_BLOCK = 1 << 20  # numbers of a block of pairs written out
# Largest eigenvalue theta for which y_bar keeps ten digits: multiplied out it loses e^theta times rounding, as a sum of
# squares e^(theta / 2) times.
_TABLE_TOP, _SQUARES_TOP = 10.0, 25.0
_TOGETHER = 32  # processes at a time
_MOST_STEPS = 200  # then one by one, where the core has its own limit


class Decomposed:
    """exp(S A S) by eigenvalues: y_bar + 1 = e^c (rest_i + rest_j + sum_k e^theta_k (p_i + q_j)_k^2).

    theta (r,); `rows` and `cols` give of vertices their coordinates in the eigenvectors, (len, r), and what of |x|^2 lies
    outside them, (len,).
    """

    def __init__(self, log_scale: float, theta: Floats, rows: Coordinates, cols: Coordinates) -> None:
        self._log_scale, self._top = log_scale, float(max(theta.max(initial=0.0), 0.0))
        self._weight = np.exp(0.5 * (theta - self._top))
        self._rows, self._cols = rows, cols

    def log_scores(self, i: Indices, j: Indices) -> Floats | None:
        """log(y_bar + 1) of pairs, O(r) each: by one product where they nearly fill a table. None beyond the accuracy."""
        if self._top > _SQUARES_TOP:
            return None
        (rows, at_row), (cols, at_col) = (np.unique(index, return_inverse=True) for index in (i, j))
        if len(rows) * len(cols) <= 4 * len(i) and self._top < _TABLE_TOP:
            squares = self._table(rows, cols)[at_row, at_col]
        else:
            step = max(1, _BLOCK // max(1, len(self._weight)))
            blocks = (slice(first, first + step) for first in range(0, len(i), step))
            squares = np.concatenate([self._pairs(i[block], j[block]) for block in blocks])
        with np.errstate(divide="ignore"):
            return np.asarray(self._log_scale + self._top + np.log(squares))

    def _table(self, rows: Indices, cols: Indices) -> Floats:
        (p, of_rows), (q, of_cols) = (self._weighed(*pair) for pair in ((self._rows, rows), (self._cols, cols)))
        of_rows += np.einsum("ik,ik->i", p, p)
        of_cols += np.einsum("ik,ik->i", q, q)
        return np.asarray(np.maximum(2 * p @ q.T + of_rows[:, None] + of_cols, 0))

    def _pairs(self, i: Indices, j: Indices) -> Floats:
        (p, rest), (q, rest_too) = self._weighed(self._rows, i), self._weighed(self._cols, j)
        p += q
        return np.asarray(np.einsum("ik,ik->i", p, p) + rest + rest_too)

    def _weighed(self, side: Coordinates, vertices: Indices) -> tuple[Floats, Floats]:
        p, rest = side(vertices)
        return p * self._weight, rest * np.exp(-self._top)


class _Kernel:
    """Vertices as rows F with K/2 = F F^T over the seats, by pivoted Cholesky."""

    def __init__(self, state: SideState, seats: NDArray[np.int32]) -> None:
        self._state, self._seats = state, seats
        gram = 0.5 * state.columns(seats)[seats]
        triangle, pivots, rank = scipy.linalg.lapack.dpstrf(gram, lower=1)[:3] if len(seats) else (gram, seats, 0)
        self._pivots, triangle = pivots[:rank] - 1, np.tril(triangle)
        self._triangle = triangle[:rank, :rank]
        self.rows = np.empty((len(seats), rank))
        self.rows[pivots - 1] = triangle[:, :rank]
        self._seat_of = np.full(state.size, -1)
        self._seat_of[seats] = np.arange(len(seats))

    def turned(self, vectors: Floats) -> Coordinates:
        """Coordinates in the eigenvectors (rank, r): rows of a table for vertices with seats, else solved for."""
        table = self.rows @ vectors

        def coordinates(vertices: Indices) -> tuple[Floats, Floats]:
            seat, rest = self._seat_of[vertices], np.zeros(len(vertices))
            p = np.zeros((len(vertices), vectors.shape[1]))
            p[seat >= 0] = table[seat[seat >= 0]]
            strangers = np.flatnonzero(seat < 0)
            step = max(1, _BLOCK // max(1, self._state.size))
            for block in (strangers[k : k + step] for k in range(0, len(strangers), step)):
                columns = 0.5 * self._state.columns(vertices[block])
                f = columns[self._seats[self._pivots]].T
                if f.size:  # SciPy 1.13 refuses an empty triangle
                    f = scipy.linalg.solve_triangular(self._triangle, f.T, lower=True).T
                own = columns[vertices[block], np.arange(len(block))]
                p[block], rest[block] = f @ vectors, np.maximum(own - np.einsum("ik,ik->i", f, f), 0)
            return p, rest

        return coordinates


def kernels_decomposed(rows: SideState, cols: SideState, cells: Cells, log_scale: float) -> Decomposed:
    """F^T A F diagonalised, K = F F^T over the N vertices with seats. O(N^3)."""
    upper, lower = _Kernel(rows, cells["row_seats"]), _Kernel(cols, cells["col_seats"])
    cross = np.zeros((len(upper.rows), len(lower.rows)))
    cross[cells["cell_rows"], cells["cell_cols"]] = cells["cells"]
    corner = upper.rows.T @ cross @ lower.rows
    middle = [
        [upper.rows.T * cells["row_sums"] @ upper.rows, corner],
        [corner.T, lower.rows.T * cells["col_sums"] @ lower.rows],
    ]
    theta, vectors = _eigh(np.block(middle))
    above, below = vectors[: upper.rows.shape[1]], vectors[upper.rows.shape[1] :]
    return Decomposed(log_scale, theta, upper.turned(above), lower.turned(below))


def features_decomposed(phi: Floats, psi: Floats, matrix: Floats, log_scale: float) -> Decomposed:
    """The d x d state over features phi of rows and psi of columns, as the core packs it, diagonalised. O(d^3)."""
    phi, psi, d = np.sqrt(0.5) * phi, np.sqrt(0.5) * psi, phi.shape[1]
    theta, vectors = _eigh(from_blocks(matrix, d + psi.shape[1]))
    return Decomposed(
        log_scale,
        theta,
        lambda v: (phi[v] @ vectors[:d], np.zeros(len(v))),
        lambda v: (psi[v] @ vectors[d:], np.zeros(len(v))),
    )


def from_blocks(packed: Floats, d: int) -> Floats:
    """A symmetric matrix (d, d) from the core's rows i of 8 (i // 8 + 1) numbers."""
    full = np.zeros((d, d))
    start = 0
    for k in range(d):
        full[k, : k + 1] = packed[start : start + k + 1]
        start += 8 * (k // 8 + 1)
    return full + np.tril(full, -1).T


def _eigh(matrix: Floats) -> tuple[Floats, Floats]:
    if not np.isfinite(matrix).all():
        raise FloatingPointError(
            "scores must be finite; a sum over past steps is not. The steps are too large or the kernel holds NaN: use "
            "steps of at most 1. Nothing has changed."
        )
    theta, vectors = (
        scipy.linalg.eigh(matrix, check_finite=False, driver="evd") if len(matrix) else (np.zeros(0), matrix)
    )
    return theta, vectors


def batched_log_scores(
    rows: SideState, cols: SideState, cells: Cells, i: Indices, j: Indices, log_scale: float, tol: float
) -> Floats | None:
    """log(y_bar + 1) of pairs; None when one of them does not converge in `_MOST_STEPS`."""
    products = _Products(rows, cols, cells)
    made = []
    for k in range(0, len(i), _TOGETHER):
        part = products.process(i[k : k + _TOGETHER], j[k : k + _TOGETHER], log_scale, tol)
        if part is None:
            return None
        made.append(part)
    return np.concatenate(made)


class _Products:
    """A and K over all vertices, on columns of vectors."""

    def __init__(self, rows: SideState, cols: SideState, cells: Cells) -> None:
        m, n = rows.size, cols.size
        at = cells["row_seats"][cells["cell_rows"]], cells["col_seats"][cells["cell_cols"]]
        cross = sp.csr_array((cells["cells"], at), shape=(m, n))
        sums = np.zeros(m + n)
        sums[cells["row_seats"]] = cells["row_sums"]
        sums[m + cells["col_seats"]] = cells["col_sums"]
        self.a = sp.csr_array(sp.diags_array(sums) + sp.block_array([[None, cross], [cross.T, None]]))
        self._rows, self._cols, self._m = rows, cols, m

    def k(self, v: Floats) -> Floats:
        """K v, halved."""
        return 0.5 * np.vstack([self._rows.apply(v[: self._m]), self._cols.apply(v[self._m :])])

    def process(self, i: Indices, j: Indices, log_scale: float, tol: float) -> Floats | None:
        """log(y_bar + 1) of pairs, one Lanczos process each; None where one does not converge."""
        pairs = np.arange(len(i))
        q = np.zeros((self.a.shape[0], len(i)))
        q[i, pairs] = q[self._m + j, pairs] = 1
        p = self.k(q)
        norm2 = np.einsum("ik,ik->k", q, p)
        scale = np.divide(1, np.sqrt(norm2), out=np.zeros(len(i)), where=norm2 > 0)
        q, p, before = q * scale, p * scale, np.zeros_like(q)
        alpha, beta = np.zeros((2, _MOST_STEPS, len(i)))
        low, ended = np.full(len(i), -np.inf), norm2 == 0
        for k in range(_MOST_STEPS):
            u = self.a @ p
            alpha[k] = np.einsum("ik,ik->k", p, u)
            value = _core.tridiagonal_log_first(*(np.ascontiguousarray(c[: k + 1].T) for c in (alpha, beta)))
            if not np.isfinite(value).all():
                return None  # which pair it is, the core says one by one
            still = (np.abs(value - low) < 0.1 * tol) & (k >= 2)
            low = np.where(ended, low, value)
            ended |= still
            u -= alpha[k] * q + (beta[k - 1] if k else 0) * before
            w = self.k(u)
            square = np.einsum("ik,ik->k", u, w)
            ended |= square <= 1e-30 * (1 + alpha[k] ** 2)
            if ended.all():
                with np.errstate(divide="ignore"):
                    return np.asarray(log_scale + np.log(norm2) + low)
            beta[k] = np.where(ended, 0, np.sqrt(np.maximum(square, 0)))
            scale = np.divide(1, beta[k], out=np.zeros(len(i)), where=~ended)
            before, q, p = q, u * scale, w * scale
        return None
