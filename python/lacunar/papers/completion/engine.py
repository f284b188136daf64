"""The engine of online matrix completion: matrix exponentiated gradient in kernel form, by Lanczos processes.

Many pairs at once are scored by one eigendecomposition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray

from lacunar import _core
from lacunar._lock import within_row
from lacunar._typing import Floats
from lacunar.completion.side import DenseState, SideState
from lacunar.observed.rules import Flag, Number, Rule, check_parts, floats, whole

Indices = NDArray[np.int32]
Cells = dict[str, Any]  # `Engine.cells`
Coordinates = Callable[[Indices], tuple[Floats, Floats]]
# Measured with bench/pages/completion.py: one decomposition of N vertices costs what 0.4 N pairs cost one by one.
PAIRS_PER_VERTEX = 0.4
MOST_VERTICES = 3000  # 72 MB a matrix and some seconds
_BLOCK = 1 << 20  # numbers of a block of pairs written out
# Largest eigenvalue theta for which y_bar keeps ten digits: multiplied out it loses e^theta times rounding, as a sum of
# squares e^(theta / 2) times.
_TABLE_TOP, _SQUARES_TOP = 10.0, 25.0
_FEW_FEATURES = 512  # features in all, up to which the state may be their square
_CELLS = {
    "row_seats": whole("row seats", distinct=True, dtype=np.int32),
    "col_seats": whole("col seats", distinct=True, dtype=np.int32),
    "row_sums": floats("row seats", dtype=np.float64),
    "col_sums": floats("col seats", dtype=np.float64),
    "cell_rows": whole("cells", dtype=np.int32),
    "cell_cols": whole("cells", dtype=np.int32),
    "cells": floats("cells", dtype=np.float64),
}
_CLOCK: dict[str, Rule] = {
    "log_scale": Number(),
    "tol": Number(low=0, above=True),
    **dict.fromkeys(("updates", "bound", "trace"), Number(low=0)),
}


class CoreSide:
    """A side as a part of the core, in the quickest form: a wide factor is dense where it does not grow."""

    def __init__(self, state: SideState) -> None:
        self._state = state
        self._written: DenseState | None = None  # K of a dense state that grows and is not in memory
        if state.kind == "operator":
            self.core: Any = _core.MegOperator(np.ascontiguousarray(state.diagonal(), dtype=np.float64), state.apply)
        elif self._is_narrow():
            Phi, own, const = state.factor()
            self.core = _core.MegFactor(np.ascontiguousarray(Phi), len(Phi), own, const)
        else:
            self.core = _core.MegDense(self._table(), state.size)

    def grow(self) -> None:
        """Takes in the vertices that came since."""
        table = np.ascontiguousarray(self._state.factor()[0]) if self._is_narrow() else self._table()
        self.core.grow(table, self._state.size)

    def _is_narrow(self) -> bool:
        state = self._state
        return state.kind == "factor" and (state.grows or 2 * state.factor()[0].shape[1] < state.size)

    def _table(self) -> Floats:
        """K in the first rows and columns of an array that may be larger."""
        state = self._state
        if isinstance(state, DenseState):
            return state.buffer
        if state.kind != "dense":
            return np.ascontiguousarray(state.dense(), dtype=np.float64)
        if self._written is None:
            self._written = DenseState(state.dense(), None, "")
        for k in range(self._written.size, state.size):
            column = state.columns([k])[:, 0]
            self._written.put_column(k, column[:k], float(column[k]))
        return self._written.buffer


class Engine:
    """Algorithms 1 and 2 of Herbster, Pasteris and Tse (2020), one code path for both.

    With K = blockdiag(rows, cols) / 2, z = e_i + e_(m+j) and A = sum of step y z z^T over updates,

        y_bar + 1 = e^c z^T K exp(A K) z,

    by Lanczos in the inner product u^T K v: O(k N^2) a trial, k about 10 for a value and 4 for a decision. Only
    vertices with updates take part, so that the inductive setting costs what the transductive one does. When both sides
    are features alone the state is d x d and the cost O(k d^2), whatever the number of rows and columns.

    rows, cols: side information begun, diagonals <= 1. log_scale: c = log(D / (m + n)). tol: relative accuracy of
    y_bar + 1. by_features: the form of the state; None: the smaller.
    """

    decomposed: Decomposed | None

    def __init__(
        self,
        rows: SideState,
        cols: SideState,
        log_scale: float = 0.0,
        tol: float = 1e-10,
        *,
        by_features: bool | None = None,
    ) -> None:
        self.rows, self.cols, self.log_scale, self.tol = rows, cols, float(log_scale), float(tol)
        self.by_features = are_features(rows, cols) if by_features is None else by_features
        self._shape = self.rows.size, self.cols.size
        self._forget()
        if self.by_features:
            self._core = _core.Meg.features(*self._feature_tables(), self.log_scale, self.tol)
        else:
            self._sides = CoreSide(self.rows), CoreSide(self.cols)
            self._core = _core.Meg.kernels(self._sides[0].core, self._sides[1].core, self.log_scale, self.tol)

    def _feature_tables(self) -> tuple[Floats, int, Floats, int]:
        return features_of(self.rows), self.rows.size, features_of(self.cols), self.cols.size

    def log_score(self, i: int, j: int) -> float:
        """log(y_bar + 1); -inf when the pair has no kernel at all."""
        status, log_score, *_ = self._core.value(i, j)
        if status != _core.MEG_OK:
            _refuse(status)
        self._last_score = (i, j, log_score)
        return log_score

    def score(self, i: int, j: int) -> float:
        """y_bar, inf where its logarithm passes 709."""
        return float(y_bar_of(np.float64(self.log_score(i, j))))

    def decide(self, i: int, j: int, y: float, gamma: float, *, strict: bool = False) -> tuple[int, bool]:
        """The sign of y_bar (0 counts as +1) and whether y y_bar <= gamma (< when strict), without the value."""
        status, _, positive, update, _ = self._core.decide(i, j, y, gamma, strict)
        if status != _core.MEG_OK:
            _refuse(status)
        return (1 if positive else -1), update

    def learn(self, i: int, j: int, change: float, log_score: float = np.nan) -> None:
        """A += change z z^T, where change = step y. log_score of the pair, when known, keeps later decisions quick."""
        if np.isnan(log_score) and self._last_score[:2] == (i, j):
            log_score = self._last_score[2]
        self._forget()
        if not (np.isfinite(change) and self._core.learn(i, j, change, log_score)):
            raise FloatingPointError(
                f"the step must leave the sums of steps finite; got {change!r} at pair ({i}, {j}). Nothing was learned."
            )

    def run(
        self,
        i: ArrayLike,
        j: ArrayLike,
        y: ArrayLike,
        steps: ArrayLike,
        gamma: float,
        *,
        conservative: bool = False,
        strict: bool = False,
        values: bool = False,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Trials in order: predict, then update where y y_bar <= gamma (0 when conservative; < when strict).

        steps: one number, or one a trial. Returns y_bar of every trial when `values`, else its sign, and where it
        updated. After an error or an interrupt the first `n_seen` trials are learned.
        """
        at_i, at_j = _indices(i), _indices(j)
        labels = np.ascontiguousarray(y, dtype=np.float64)
        step_of = np.ascontiguousarray(np.broadcast_to(np.asarray(steps, dtype=np.float64), len(at_i)))
        out, updated = np.empty(len(at_i)), np.empty(len(at_i), dtype=np.uint8)
        margin = 0.0 if conservative else float(gamma)
        self.run_into(at_i, at_j, labels, step_of, out, updated, margin=margin, strict=strict, values=values)
        return (y_bar_of(out) if values else out), updated.view(np.bool_)

    def run_into(self, *trials: Any, margin: float, strict: bool, values: bool, first: int = 0) -> None:
        """`run` on arrays of the core's dtypes: i, j, y, steps; then answers (log(y_bar + 1), or signs) and updates,
        filled as it goes.
        """
        self._forget()
        failed, status = within_row(self._core.run, *trials[:4], margin, strict, values, *trials[4:])
        if failed >= 0:
            _refuse(status, first + failed)

    @property
    def n_seen(self) -> int:
        """Trials of `run`, and of `learn`, so far."""
        return int(self._core.n_seen)

    def scores(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """y_bar of many pairs: each by itself, or all by one eigendecomposition where that is less work."""
        return np.asarray(y_bar_of(self.log_scores(i, j)))

    def log_scores(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """log(y_bar + 1) of many pairs."""
        at_i, at_j = _indices(i), _indices(j)
        together = self._together(at_i, at_j)
        if together is not None:
            return together
        out = np.empty(len(at_i))
        failed, status = self._core.values(at_i, at_j, out)
        if failed >= 0:
            _refuse(status, failed)
        return out

    def _together(self, i: Indices, j: Indices) -> Floats | None:
        """log(y_bar + 1) of pairs, or None when they are quicker one by one."""
        if self.decomposed is None and (size := self.state_size) <= MOST_VERTICES and len(i) > PAIRS_PER_VERTEX * size:
            if self.by_features:
                tables = features_of(self.rows), features_of(self.cols)
                self.decomposed = features_decomposed(*tables, self._core.matrix(), self.log_scale)
            else:
                self.decomposed = kernels_decomposed(self.rows, self.cols, self.cells(), self.log_scale)
        return None if self.decomposed is None else self.decomposed.log_scores(i, j)

    def grow(self) -> None:
        """Takes in the vertices that the side information has gained."""
        known, now = self._shape, (self.rows.size, self.cols.size)
        if known == now:
            return
        self._forget()
        if self.by_features:
            self._core.grow_features(*self._feature_tables())
        else:
            for side, before, after in zip(self._sides, known, now, strict=True):
                if before < after:
                    side.grow()
        self._shape = now  # last: what failed is taken in by the next call

    def _forget(self) -> None:
        """Drop what was computed from the state so far: the decomposition and the last score."""
        self.decomposed = None
        self._last_score = (-1, -1, np.nan)

    @property
    def state_size(self) -> int:
        """The order of the symmetric matrix that log W is: vertices with seats, or features."""
        if self.by_features:
            return sum(features_of(side).shape[1] for side in (self.rows, self.cols))
        return sum(len(side.core.seats) for side in self._sides)

    def cells(self) -> Cells:
        """A by seats: cells (row, column, sum of steps), sums of rows and columns, and the vertices in their seats."""
        return self._core.cells()

    def state(self) -> dict[str, Any]:
        """Arrays and numbers from which `from_state` goes on to the last bit. The side information is saved apart."""
        self.grow()
        parts = {"matrix": self._core.matrix()} if self.by_features else self._core.cells()
        return {"log_scale": self.log_scale, "tol": self.tol, **self._core.clock(), **parts}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], rows: SideState, cols: SideState) -> Self:
        """The engine of a `state`, over the same side information. ValueError where its parts contradict each other."""
        _check_state(state, rows, cols)
        engine = cls(rows, cols, state["log_scale"], state["tol"], by_features="matrix" in state)
        if engine.by_features:
            engine._core.set_matrix(np.ascontiguousarray(state["matrix"]))
        else:
            cells = {name: np.ascontiguousarray(state[name]) for name in _CELLS}
            engine._core.set_cells(**cells, table=bool(state["table"]))
        engine._core.set_clock(*(float(state[name]) for name in ("updates", "bound", "trace")))
        return engine


def _check_state(state: Mapping[str, Any], rows: SideState, cols: SideState) -> None:
    """Every part of a state against every other and against the sides, before the core reads any: it may come out of a
    file.
    """
    sizes = {"rows": rows.size, "cols": cols.size}
    if "matrix" not in state:
        limits = {"row_seats": rows.size - 1, "col_seats": cols.size - 1}
        limits |= {"cell_rows": np.size(state["row_seats"]) - 1, "cell_cols": np.size(state["col_seats"]) - 1}
        bounded: dict[str, Rule] = {name: replace(_CELLS[name], high=high) for name, high in limits.items()}
        check_parts(state, {**_CLOCK, **_CELLS, **bounded, "table": Flag()}, "a state of an engine", sizes)
        place = state["cell_rows"].astype(np.int64) * max(len(state["col_seats"]), 1) + state["cell_cols"]
        whole(place.size, distinct=True).check(place, "the places of a state's cells", {})
        return
    if not are_features(rows, cols):
        raise ValueError("a state with a matrix must be of two sides of features; these are not. Save it again.")
    bands = -(-(features_of(rows).shape[1] + features_of(cols).shape[1]) // 8)  # of 8 rows, as long as the last of them
    check_parts(
        state, {**_CLOCK, "matrix": floats(32 * bands * (bands + 1), dtype=np.float64)}, "a state of an engine", sizes
    )


def _indices(index: ArrayLike) -> NDArray[np.int32]:
    return np.ascontiguousarray(index, dtype=np.int32)


def y_bar_of(log_score: Floats | np.float64) -> Floats:
    """y_bar of log(y_bar + 1)."""
    with np.errstate(over="ignore"):
        return np.expm1(log_score)


def _refuse(status: int, trial: int | None = None) -> NoReturn:
    where = "" if trial is None else f" in trial {trial}"
    remains = "Nothing has changed." if trial is None else "The trials before it are learned."
    if status == _core.MEG_NOT_FINITE:
        raise FloatingPointError(
            f"scores must be finite; a sum over past steps is not{where}. The steps are too large or the kernel holds "
            f"NaN: use steps of at most 1. {remains}"
        )
    raise FloatingPointError(
        f"the exponential must converge within 1000 Lanczos steps; it did not{where}. The steps are too large: use "
        f"steps of at most 1. {remains}"
    )


def features_of(state: SideState) -> np.ndarray:
    """Phi with K = Phi Phi^T, the constant its last column: shape (size, d)."""
    phi, _, const = state.factor()
    return np.ascontiguousarray(phi if const == 0 else np.column_stack([phi, np.full(len(phi), np.sqrt(const))]))


def are_features(rows: SideState, cols: SideState) -> bool:
    """Whether features alone say everything, and their square is smaller than the kernels."""
    if rows.kind != "factor" or cols.kind != "factor":
        return False
    (phi, own, _), (psi, own_too, _) = rows.factor(), cols.factor()
    d = phi.shape[1] + psi.shape[1]
    return own == own_too == 0 and d <= _FEW_FEATURES and (rows.grows or cols.grows or d < rows.size + cols.size)


class Decomposed:
    """exp(S A S) by eigenvalues: y_bar + 1 = e^c (rest_i + rest_j + sum_k e^theta_k (p_i + q_j)_k^2).

    theta (r,); `rows` and `cols` give of vertices their coordinates in the eigenvectors, (len, r), and what of |x|^2
    lies outside them, (len,).
    """

    def __init__(self, log_scale: float, theta: Floats, rows: Coordinates, cols: Coordinates) -> None:
        self._log_scale, self._top = log_scale, float(max(theta.max(initial=0.0), 0.0))
        self._weight = np.exp(0.5 * (theta - self._top))
        self._rows, self._cols = rows, cols

    def log_scores(self, i: Indices, j: Indices) -> Floats | None:
        """log(y_bar + 1) of pairs, O(r) each; by one product where they nearly fill a table. None past the accuracy."""
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
        (p, outside_i), (q, outside_j) = self._weighed(self._rows, i), self._weighed(self._cols, j)
        p += q
        return np.asarray(np.einsum("ik,ik->i", p, p) + outside_i + outside_j)

    def _weighed(self, side: Coordinates, vertices: Indices) -> tuple[Floats, Floats]:
        p, outside = side(vertices)
        return p * self._weight, outside * np.exp(-self._top)


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
            seat, outside = self._seat_of[vertices], np.zeros(len(vertices))
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
                p[block], outside[block] = f @ vectors, np.maximum(own - np.einsum("ik,ik->i", f, f), 0)
            return p, outside

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
