"""The engine of online matrix completion: matrix exponentiated gradient in kernel form, by Lanczos processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar import _core
from lacunar.completion._engine_ahead import LookAhead, pays
from lacunar.completion._engine_many import Decomposed, many_log_scores
from lacunar.completion._engine_sides import are_features, features_of, source_of
from lacunar.completion._side import SideState
from lacunar.observed.rules import Flag, Number, Rule, check_parts, floats, whole

Floats = NDArray[np.float64]
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


class Engine:
    """Algorithms 1 and 2 of Herbster, Pasteris and Tse (2020), one code path for both.

    With K = blockdiag(rows, cols) / 2, z = e_i + e_(m+j) and A = sum of step y z z^T over updates,

        y_bar + 1 = e^c z^T K exp(A K) z,

    by Lanczos in the inner product u^T K v: O(k N^2) a trial, k about 10 for a value and 4 for a decision. Only vertices
    with updates take part, so that the inductive setting costs what the transductive one does. When both sides are features
    alone the state is d x d and the cost O(k d^2), whatever the number of rows and columns.

    rows, cols: side information begun, diagonals <= 1. log_scale: c = log(D / (m + n)). tol: relative accuracy of y_bar + 1.
    """

    def __init__(self, rows: SideState, cols: SideState, log_scale: float = 0.0, tol: float = 1e-10) -> None:
        self._begin(rows, cols, log_scale, tol, are_features(rows, cols))

    def _begin(self, rows: SideState, cols: SideState, log_scale: float, tol: float, features: bool) -> None:
        self.rows, self.cols, self.log_scale, self.tol = rows, cols, float(log_scale), float(tol)
        self.by_features = features
        self._forget()
        if features:
            tables = self._feature_tables()
            self._core = _core.Meg.features(*tables, self.log_scale, self.tol)
        else:
            self._sources = source_of(rows), source_of(cols)
            in_rows, in_cols = self._sources
            self._core = _core.Meg.kernels(in_rows.core, in_cols.core, self.log_scale, self.tol)

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
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Trials in order: predict, then update where y y_bar <= gamma (0 when conservative; < when strict).

        steps: one number, or one a trial. Streams with values over large kernels go by look-ahead, sixteen trials to a pass.
        Returns y_bar of every trial when `values`, else its sign, and where it updated.
        After an error nothing has changed.
        """
        at_i, at_j = _indices(i), _indices(j)
        labels = np.ascontiguousarray(y, dtype=np.float64)
        each = np.ascontiguousarray(np.broadcast_to(np.asarray(steps, dtype=np.float64), len(at_i)))
        out, updated = np.empty(len(at_i)), np.empty(len(at_i), dtype=np.uint8)
        margin = 0.0 if conservative else float(gamma)
        self._core.expect_pairs(at_i, at_j)
        if values and pays(self, at_i, at_j):
            out, updated = self._unless_it_fails(lambda: LookAhead(self, at_i, at_j).run(labels, each, margin, strict))
        elif len(at_i) <= _SLICE:
            self.run_in_core(at_i, at_j, labels, each, margin, strict, values, out, updated)
        else:
            arrays = (at_i, at_j, labels, each, out, updated)
            self._unless_it_fails(lambda: self._run_in_slices(arrays, margin, strict, values))
        return (_y_bar(out) if values else out), updated.view(np.bool_)

    def run_in_core(self, *trials_and_rule: Any, first: int = 0) -> None:
        """`run` into two given arrays, trials numbered from `first` in errors; values as logarithms."""
        self._forget()
        failed, status = self._core.run(*trials_and_rule)
        if failed >= 0:
            _refuse(status, first + failed)

    def _run_in_slices(self, arrays: tuple[NDArray[Any], ...], *rule: Any) -> None:
        """Trials by slices, between which Python sees Ctrl-C; the cuts change no bit."""
        for start in range(0, len(arrays[0]), _SLICE):
            i, j, y, step, out, updated = (array[start : start + _SLICE] for array in arrays)
            self.run_in_core(i, j, y, step, *rule, out, updated, first=start)

    def _unless_it_fails(self, stream: Callable[[], Any]) -> Any:
        """What a stream returns; after an error or an interrupt the engine is as before it."""
        before = self.state()
        try:
            return stream()
        except BaseException:
            self.__dict__.update(Engine.from_state(self.rows, self.cols, before).__dict__)
            raise

    def scores(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """y_bar of many pairs: each by itself, or all by one eigendecomposition where that is less work."""
        return np.asarray(_y_bar(self.log_scores(i, j)))

    def log_scores(self, i: ArrayLike, j: ArrayLike) -> Floats:
        """log(y_bar + 1) of many pairs."""
        at_i, at_j = _indices(i), _indices(j)
        together = many_log_scores(self, at_i, at_j)
        return self._one_by_one(at_i, at_j) if together is None else together

    def _one_by_one(self, i: NDArray[np.int32], j: NDArray[np.int32]) -> Floats:
        out = np.empty(len(i))
        failed, status = self._core.values(i, j, out)
        if failed >= 0:
            _refuse(status, failed)
        return out

    def grow_row(self) -> None:
        """Takes in rows that the side information has gained."""
        self._grow(0)

    def grow_col(self) -> None:
        """Takes in columns that the side information has gained."""
        self._grow(1)

    def _forget(self) -> None:
        """What holds until something is learned or grows."""
        self.decomposed: Decomposed | None = None
        self._asked = (-1, -1, np.nan)

    def _grow(self, side: int) -> None:
        self._forget()
        if self.by_features:
            self._core.grow_features(*self._feature_tables())
        else:
            self._sources[side].grow()

    @property
    def state_size(self) -> int:
        """The order of the symmetric matrix that log W is: vertices with seats, or features."""
        if self.by_features:
            return sum(features_of(side).shape[1] for side in (self.rows, self.cols))
        return sum(len(source.core.seats) for source in self._sources)

    def cells(self) -> dict[str, Any]:
        """A by seats: cells (row, column, sum of steps), sums of rows and columns, and the vertices in their seats."""
        return self._core.cells()

    def state(self) -> dict[str, Any]:
        """Arrays and numbers from which `from_state` goes on to the last bit. The side information is saved apart."""
        kept = {"matrix": self._core.matrix()} if self.by_features else self._core.cells()
        return {"log_scale": self.log_scale, "tol": self.tol, **self._core.clock(), **kept}

    @classmethod
    def from_state(cls, rows: SideState, cols: SideState, state: Mapping[str, Any]) -> Engine:
        """The engine that gave `state`, over the same side information. ValueError where its parts contradict each other."""
        _check_state(state, rows, cols)
        engine = cls.__new__(cls)
        engine._begin(rows, cols, float(state["log_scale"]), float(state["tol"]), "matrix" in state)
        if engine.by_features:
            engine._core.set_matrix(np.ascontiguousarray(state["matrix"]))
        else:
            cells = {name: np.ascontiguousarray(state[name]) for name in _CELLS}
            engine._core.set_cells(**cells, table=bool(state["table"]))
        engine._core.set_clock(*(float(state[name]) for name in ("updates", "bound", "trace")))
        return engine


def _check_state(state: Mapping[str, Any], rows: SideState, cols: SideState) -> None:
    """Every part of a state against every other and against the sides, before the core reads any: it may come out of a file."""
    sizes = {"rows": rows.size, "cols": cols.size}
    if "matrix" not in state:
        limits = {"row_seats": rows.size - 1, "col_seats": cols.size - 1}
        limits |= {"cell_rows": np.size(state["row_seats"]) - 1, "cell_cols": np.size(state["col_seats"]) - 1}
        kept: dict[str, Rule] = {name: replace(_CELLS[name], high=high) for name, high in limits.items()}
        check_parts(state, {**_CLOCK, **_CELLS, **kept, "table": Flag()}, "a state", sizes)
        place = state["cell_rows"].astype(np.int64) * max(len(state["col_seats"]), 1) + state["cell_cols"]
        whole(place.size, distinct=True).check(place, "the places of a state's cells", {})
        return
    if not are_features(rows, cols):
        raise ValueError("a state with a matrix must be of two sides of features; these are not. Save it again.")
    order = features_of(rows).shape[1] + features_of(cols).shape[1]
    check_parts(state, {**_CLOCK, "matrix": floats(order, order, dtype=np.float64)}, "a state", sizes)


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
