"""The engine of online matrix completion: matrix exponentiated gradient in kernel form, by Lanczos processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar import _core, _linalg
from lacunar._log import in_slices
from lacunar.completion.many import (
    FEW_PAIRS,
    MOST_VERTICES,
    PAIRS_PER_VERTEX,
    Cells,
    Decomposed,
    batched_log_scores,
    features_decomposed,
    kernels_decomposed,
)
from lacunar.completion.side import Floats, SideState
from lacunar.observed.rules import Flag, Number, Rule, check_parts, floats, whole

Indices = NDArray[np.int32]
AheadRule = tuple[float, bool, float, float]  # gamma, strict, log_scale, tol
_SLICE = 512  # trials between two looks for Ctrl-C
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
_FEWEST, _MOST = 250, 6000  # vertices for which look-ahead may be the quicker, and for which kernels may be copied
# Trials a cell from which on it may be the quicker, as it multiplies by all cells, the core by those met. Measured, 300 x 300
# vertices: 1.2 times as quick with Gaussian kernels, .75 with graphs; below, .1 to .8.
_FILLED = 0.5
_BLOCK = 16  # trials of one Krylov space
_FIRST_STEPS, _MOST_STEPS = 6, 16
_PATIENCE = 24  # blocks
_DOUBT = 1e-7  # nearer to a threshold the core decides
_FEW_FEATURES = 512  # features in all, up to which the state may be their square


class Engine:
    """Algorithms 1 and 2 of Herbster, Pasteris and Tse (2020), one code path for both.

    With K = blockdiag(rows, cols) / 2, z = e_i + e_(m+j) and A = sum of step y z z^T over updates,

        y_bar + 1 = e^c z^T K exp(A K) z,

    by Lanczos in the inner product u^T K v: O(k N^2) a trial, k about 10 for a value and 4 for a decision. Only vertices
    with updates take part, so that the inductive setting costs what the transductive one does. When both sides are features
    alone the state is d x d and the cost O(k d^2), whatever the number of rows and columns.

    rows, cols: side information begun, diagonals <= 1. log_scale: c = log(D / (m + n)). tol: relative accuracy of y_bar + 1.
    """

    decomposed: Decomposed | None

    def __init__(self, rows: SideState, cols: SideState, log_scale: float = 0.0, tol: float = 1e-10) -> None:
        self.rows, self.cols, self.log_scale, self.tol = rows, cols, float(log_scale), float(tol)
        self._begin(are_features(rows, cols))

    def _begin(self, features: bool) -> None:
        self.by_features, self._shape = features, (self.rows.size, self.cols.size)
        self._forget()
        if features:
            self._core = _core.Meg.features(*self._feature_tables(), self.log_scale, self.tol)
        else:
            self._sides = self.rows.core(), self.cols.core()
            self._core = _core.Meg.kernels(*self._sides, self.log_scale, self.tol)

    def _feature_tables(self) -> tuple[Floats, int, Floats, int]:
        return features_of(self.rows), self.rows.size, features_of(self.cols), self.cols.size

    def log_score(self, i: int, j: int) -> float:
        """log(y_bar + 1); -inf when the pair has no kernel at all."""
        status, log_score, *_ = self._core.value(i, j)
        if status != _core.MEG_OK:
            _refuse(status)
        self._asked = (i, j, log_score)
        return log_score

    def score(self, i: int, j: int) -> float:
        """y_bar, inf where its logarithm passes 709."""
        return float(_y_bar(np.float64(self.log_score(i, j))))

    def decide(self, i: int, j: int, y: float, gamma: float, *, strict: bool = False) -> tuple[int, bool]:
        """The sign of y_bar (0 counts as +1) and whether y y_bar <= gamma (< when strict), without the value."""
        status, _, positive, update, _ = self._core.decide(i, j, y, gamma, strict)
        if status != _core.MEG_OK:
            _refuse(status)
        return (1 if positive else -1), update

    def learn(self, i: int, j: int, change: float, log_score: float = np.nan) -> None:
        """A += change z z^T, where change = step y. log_score of the pair, when known, keeps later decisions quick."""
        if np.isnan(log_score) and self._asked[:2] == (i, j):
            log_score = self._asked[2]
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
        ahead: bool = True,
        verbose: int = 0,
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Trials in order: predict, then update where y y_bar <= gamma (0 when conservative; < when strict).

        steps: one number, or one a trial. Streams with values over large kernels go by look-ahead, sixteen trials to a pass, which
        is quicker, and by rounding another value where a stream is cut elsewhere; not with ahead=False.
        Returns y_bar of every trial when `values`, else its sign, and where it updated. After an error or an interrupt some trials
        may have been learned: whoever has called goes back to a snapshot.
        """
        at_i, at_j = _indices(i), _indices(j)
        labels = np.ascontiguousarray(y, dtype=np.float64)
        each = np.ascontiguousarray(np.broadcast_to(np.asarray(steps, dtype=np.float64), len(at_i)))
        out, updated = np.empty(len(at_i)), np.empty(len(at_i), dtype=np.uint8)
        margin = 0.0 if conservative else float(gamma)
        self._core.expect_pairs(at_i, at_j)
        if values and ahead and pays(self, at_i, at_j):
            out, updated = LookAhead(self, at_i, at_j).run(labels, each, margin, strict)
        else:  # by slices, whose cuts change no bit
            for part in in_slices(len(at_i), _SLICE, verbose, "pairs"):
                trials, made = (at_i[part], at_j[part], labels[part], each[part]), (out[part], updated[part])
                self.run_in_core(*trials, margin, strict, values, *made, first=part.start)
        return (_y_bar(out) if values else out), updated.view(np.bool_)

    def run_in_core(self, *trials_and_rule: Any, first: int = 0) -> None:
        """`run` into two given arrays, trials numbered from `first` in errors; values as logarithms."""
        self._forget()
        failed, status = self._core.run(*trials_and_rule)
        if failed >= 0:
            _refuse(status, first + failed)

    def scores(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """y_bar of many pairs: each by itself, or all by one eigendecomposition where that is less work."""
        return np.asarray(_y_bar(self.log_scores(i, j)))

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
        if self.decomposed is not None:
            return self.decomposed.log_scores(i, j)
        if len(i) < FEW_PAIRS or self.by_features or "operator" not in (self.rows.kind, self.cols.kind):
            return None
        return batched_log_scores(self.rows, self.cols, self.cells(), i, j, self.log_scale, self.tol)

    def grow(self) -> None:
        """Takes in the vertices that the side information has gained."""
        known, now = self._shape, (self.rows.size, self.cols.size)
        if known == now:
            return
        self._forget()
        if self.by_features:
            self._core.grow_features(*self._feature_tables())
        else:
            for side, core, before, after in zip((self.rows, self.cols), self._sides, known, now, strict=True):
                if before < after:
                    side.grow_core(core)
        self._shape = now  # last: what failed is taken in by the next call

    def _forget(self) -> None:
        """What holds until something is learned or grows."""
        self.decomposed = None
        self._asked = (-1, -1, np.nan)

    @property
    def state_size(self) -> int:
        """The order of the symmetric matrix that log W is: vertices with seats, or features."""
        if self.by_features:
            return sum(features_of(side).shape[1] for side in (self.rows, self.cols))
        return sum(len(side.seats) for side in self._sides)

    def cells(self) -> Cells:
        """A by seats: cells (row, column, sum of steps), sums of rows and columns, and the vertices in their seats."""
        return self._core.cells()

    def snapshot(self) -> dict[str, Any]:
        """Arrays and numbers from which `restore` goes on to the last bit. The side information is saved apart."""
        self.grow()
        kept = {"matrix": self._core.matrix()} if self.by_features else self._core.cells()
        return {"log_scale": self.log_scale, "tol": self.tol, **self._core.clock(), **kept}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot over the same side information. ValueError where its parts contradict each other."""
        _check_snapshot(snapshot, self.rows, self.cols)
        self.log_scale, self.tol = float(snapshot["log_scale"]), float(snapshot["tol"])
        self._begin("matrix" in snapshot)
        if self.by_features:
            self._core.set_matrix(np.ascontiguousarray(snapshot["matrix"]))
        else:
            cells = {name: np.ascontiguousarray(snapshot[name]) for name in _CELLS}
            self._core.set_cells(**cells, table=bool(snapshot["table"]))
        self._core.set_clock(*(float(snapshot[name]) for name in ("updates", "bound", "trace")))


def _check_snapshot(state: Mapping[str, Any], rows: SideState, cols: SideState) -> None:
    """Every part of a state against every other and against the sides, before the core reads any: it may come out of a file."""
    sizes = {"rows": rows.size, "cols": cols.size}
    if "matrix" not in state:
        limits = {"row_seats": rows.size - 1, "col_seats": cols.size - 1}
        limits |= {"cell_rows": np.size(state["row_seats"]) - 1, "cell_cols": np.size(state["col_seats"]) - 1}
        kept: dict[str, Rule] = {name: replace(_CELLS[name], high=high) for name, high in limits.items()}
        check_parts(state, {**_CLOCK, **_CELLS, **kept, "table": Flag()}, "a snapshot", sizes)
        place = state["cell_rows"].astype(np.int64) * max(len(state["col_seats"]), 1) + state["cell_cols"]
        whole(place.size, distinct=True).check(place, "the places of a snapshot's cells", {})
        return
    if not are_features(rows, cols):
        raise ValueError("a snapshot with a matrix must be of two sides of features; these are not. Save it again.")
    bands = -(-(features_of(rows).shape[1] + features_of(cols).shape[1]) // 8)  # of 8 rows, as long as the last of them
    check_parts(state, {**_CLOCK, "matrix": floats(32 * bands * (bands + 1), dtype=np.float64)}, "a snapshot", sizes)


def _indices(index: ArrayLike) -> NDArray[np.int32]:
    return np.ascontiguousarray(index, dtype=np.int32)


def _y_bar(log_score: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.expm1(log_score)


def _refuse(status: int, trial: int | None = None) -> NoReturn:
    where = "" if trial is None else f" in trial {trial}"
    if status == _core.MEG_NOT_FINITE:
        raise FloatingPointError(
            f"scores must be finite; a sum over past steps is not{where}. The steps are too large or the kernel holds NaN: "
            "use steps of at most 1. Nothing has changed."
        )
    raise FloatingPointError(
        f"the exponential must converge within 1000 Lanczos steps; it did not{where}. The steps are too large: use steps of "
        "at most 1. Nothing has changed."
    )


def pays(engine: Engine, i: Indices, j: Indices) -> bool:
    """Whether a stream with values is the quicker by look-ahead: many cells, most of them met."""
    if engine.by_features or engine.rows.kind != "dense" or engine.cols.kind != "dense":
        return False
    cells = engine.cells()
    m, n = (len(np.union1d(cells[seats], new)) for seats, new in (("row_seats", i), ("col_seats", j)))
    filled = len(cells["cells"]) + len(i) >= _FILLED * m * n
    return len(i) >= 4 * _BLOCK and _FEWEST <= m + n <= _MOST and filled


class LookAhead:
    """log(y_bar + 1) of every trial of a stream, the engine's core learning along."""

    def __init__(self, engine: Engine, i: Indices, j: Indices) -> None:
        cells = engine.cells()
        self._engine = engine
        self._i, self._j = i, j
        rows, self._at_row = _vertices(cells["row_seats"], i)
        cols, self._at_col = _vertices(cells["col_seats"], j)
        self._upper, self._lower = _half(engine.rows, rows), _half(engine.cols, cols)
        self._cells = np.zeros((len(rows), len(cols)))
        self._cells[cells["cell_rows"], cells["cell_cols"]] = cells["cells"]
        self._row_sums, self._col_sums = np.zeros(len(rows)), np.zeros(len(cols))
        self._row_sums[: len(cells["row_sums"])] = cells["row_sums"]
        self._col_sums[: len(cells["col_sums"])] = cells["col_sums"]
        self._steps, self._easy = _FIRST_STEPS, _PATIENCE - 1
        self._square = np.empty((_BLOCK * _MOST_STEPS, _BLOCK * _MOST_STEPS))
        self._work = np.empty((5 * _BLOCK + 12, max(len(rows) + len(cols), 12 * (_BLOCK + 12))))

    def run(self, y: Floats, step: Floats, gamma: float, strict: bool) -> tuple[Floats, NDArray[np.uint8]]:
        """The whole stream; FloatingPointError with the trial where a sum is not finite."""
        out, updated = np.empty(len(y)), np.empty(len(y), dtype=np.uint8)
        rule = (gamma, strict, self._engine.log_scale, self._engine.tol)
        t = 0
        while t < len(y):
            block = slice(t, min(t + _BLOCK, len(y)))
            taken = self._block(block, y[block], step[block], rule)
            sure = 0
            if taken is not None:
                sure = _sure(taken[0], y[block], gamma)
                out[t : t + sure], updated[t : t + sure] = taken[0][:sure], taken[1][:sure]
                self._learn(t, np.flatnonzero(taken[1][:sure]), step[block] * y[block], taken[0])
            t += sure
            if t < len(y) and sure < block.stop - block.start:
                self._exactly(t, y, step, gamma, strict, out, updated)
                t += 1
        return out, updated

    def _block(self, block: slice, y: Floats, step: Floats, rule: AheadRule) -> tuple[Floats, NDArray[np.uint8]] | None:
        """Trials of one Krylov space, or None where the core should find out what is wrong."""
        pairs = self._at_row[block], self._at_col[block]
        first = np.empty((len(y), len(y)))
        form = self._upper, self._lower, self._cells, self._row_sums, self._col_sums
        for steps in range(self._steps, _MOST_STEPS):
            order, shorter, begun = _linalg.block_lanczos(*form, *pairs, steps, self._square, first, self._work)
            if order <= 0:
                return None
            x = np.zeros((len(y), order))
            x[:, :begun] = first[:, :begun]
            out, updated = np.empty(len(y)), np.empty(len(y), dtype=np.uint8)
            failed, _ = _core.meg_run_reduced(self._square, x, y, step, *rule, out, updated)
            if failed >= 0:
                return None
            gap = self._gap(x[:, : max(shorter, begun)], out, step * y * updated, rule)
            self._adapt(steps, gap / rule[3])
            if gap < 30 * rule[3]:
                return out, updated
        return None

    def _adapt(self, steps: int, gap: float) -> None:
        """One step less where that was enough for long: going back costs a whole space."""
        self._easy = self._easy + 1 if steps == self._steps and gap < 0.1 else 0
        self._steps = steps
        if self._easy >= _PATIENCE and steps > 2:
            self._steps, self._easy = steps - 1, 0

    def _gap(self, x: Floats, out: Floats, change: Floats, rule: AheadRule) -> float:
        """What one step less would have made of the last trial but one: a step gains a hundredfold."""
        at = max(0, len(out) - 2)
        change[at:] = 0
        short = np.ascontiguousarray(x)
        return abs(float(out[at]) - _core.meg_value_reduced(self._square, short, change, at, *rule[2:]))

    def _learn(self, t: int, at: NDArray[np.intp], change: Floats, log_score: Floats) -> None:
        for k in at:
            self._engine.learn(int(self._i[t + k]), int(self._j[t + k]), float(change[k]), float(log_score[k]))
            self._add(t + k, float(change[k]))

    def _add(self, t: int, change: float) -> None:
        a, b = self._at_row[t], self._at_col[t]
        self._cells[a, b] += change
        self._row_sums[a] += change
        self._col_sums[b] += change

    def _exactly(
        self, t: int, y: Floats, step: Floats, gamma: float, strict: bool, out: Floats, updated: NDArray[np.uint8]
    ) -> None:
        """One trial by the core."""
        one = slice(t, t + 1)
        trial = self._i[one], self._j[one], y[one], step[one]
        self._engine.run_in_core(*trial, gamma, strict, True, out[one], updated[one], first=t)
        if updated[t]:
            self._add(t, float(step[t] * y[t]))


def _sure(log_score: Floats, y: Floats, gamma: float) -> int:
    """Trials before the first whose sign or update could fall either way."""
    at = 1 + y * gamma
    with np.errstate(divide="ignore"):
        near = (np.abs(log_score) < _DOUBT) | (np.abs(log_score - np.log(np.maximum(at, 0))) < _DOUBT)
    return int(np.argmax(near)) if near.any() else len(y)


def _vertices(seats: Indices, index: Indices) -> tuple[Indices, Indices]:
    """Vertices with seats and after them those of the stream without, and where each of the stream is among them."""
    strangers = np.setdiff1d(index, seats)
    vertices = np.concatenate([seats, strangers]).astype(np.int32)
    where = np.empty(int(vertices.max(initial=0)) + 1, dtype=np.int32)
    where[vertices] = np.arange(len(vertices), dtype=np.int32)
    return vertices, where[index]


def _half(side: SideState, vertices: Indices) -> Floats:
    return np.ascontiguousarray(0.5 * side.columns(vertices)[vertices])


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
