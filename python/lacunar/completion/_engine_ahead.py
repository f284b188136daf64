"""Look-ahead: streams of known pairs by block Krylov spaces, many pairs to a pass over the kernels.

The pairs to come, Z (N, b), span with A K a Krylov space in which log W is a block tridiagonal matrix H, and every pair lies in its
first block. An update within the block adds step y r r^T to that first block alone, so that b whole trials, updates included,
are those of a small state. Products with b vectors at once cost a third of b products.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lacunar import _core, _linalg
from lacunar.completion._side import SideState

if TYPE_CHECKING:
    from lacunar.completion._engine import Engine

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]
Rule = tuple[float, bool, float, float]  # gamma, strict, log_scale, tol

_FEWEST, _MOST = 250, 6000  # vertices for which it is the quicker, measured, and for which kernels may be copied
_BLOCK = 16  # trials of one Krylov space
_FIRST_STEPS, _MOST_STEPS = 6, 16
_PATIENCE = 24  # blocks
_DOUBT = 1e-7  # nearer to a threshold the core decides


def pays(engine: Engine, i: Indices, j: Indices) -> bool:
    """Whether a stream with values is the quicker by look-ahead."""
    if engine.by_features or engine.rows.kind != "dense" or engine.cols.kind != "dense":
        return False
    size = max(engine.state_size, len(np.unique(i)) + len(np.unique(j)))
    return len(i) >= 4 * _BLOCK and _FEWEST <= size <= _MOST


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

    def _block(self, block: slice, y: Floats, step: Floats, rule: Rule) -> tuple[Floats, NDArray[np.uint8]] | None:
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

    def _gap(self, x: Floats, out: Floats, change: Floats, rule: Rule) -> float:
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
