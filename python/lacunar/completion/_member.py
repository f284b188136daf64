"""One learner: Algorithm 1 (and 2) of the paper on vertices, with its own side information, margin and steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._engine import Engine
from lacunar.completion._ids import UNKNOWN, IdTable, Vertices
from lacunar.completion._tuning import Tuning

Floats = NDArray[np.float64]


class Member:
    """An engine on two tables of ids, which it may share with other members."""

    def __init__(
        self,
        rows: IdTable,
        cols: IdTable,
        tuning: Tuning,
        *,
        prior: float,
        tol: float,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.rows, self.cols, self.tuning, self.prior = rows, cols, tuning, prior
        if state is None:
            self.engine = Engine(rows.side, cols.side, tuning.log_scale, tol=tol)
        else:
            self.engine = Engine.from_state(rows.side, cols.side, state)
        self.shape = [rows.side.size, cols.side.size]
        self._tol = tol

    def _grown(self) -> None:
        """Tell the engine of vertices that came since."""
        for k, (table, grow) in enumerate(((self.rows, self.engine.grow_row), (self.cols, self.engine.grow_col))):
            if self.shape[k] < table.side.size:
                grow()
                self.shape[k] = table.side.size

    def score(self, i: int, j: int) -> float:
        """y_bar of one pair; the prior for a pair without a vertex."""
        if UNKNOWN in (i, j):
            return self.prior
        self._grown()
        return float(self.engine.score(i, j))

    def sign(self, i: int, j: int) -> int:
        """Sign of `score`, 0 counting as +1."""
        if UNKNOWN in (i, j):
            return 1 if self.prior >= 0 else -1
        self._grown()
        return self.engine.decide(i, j, 1.0, 0.0)[0]

    def scores(self, i: Vertices, j: Vertices) -> Floats:
        """y_bar of pairs (n,)."""
        self._grown()
        made = np.full(len(i), self.prior)
        known = (i != UNKNOWN) & (j != UNKNOWN)
        if known.any():
            made[known] = self.engine.scores(np.ascontiguousarray(i[known]), np.ascontiguousarray(j[known]))
        return made

    def steps(self, n_seen: int, i: Vertices, j: Vertices) -> Floats:
        """Step of each trial to come, (n,)."""
        return self.tuning.steps(n_seen, self.rows.counts(i) + self.cols.counts(j))

    def update(self, i: int, j: int, y: float, score: float, n_seen: int) -> bool:
        """One trial whose score is known already; whether it changed anything."""
        margin = y * score
        bound = 0.0 if self.tuning.conservative else self.tuning.gamma
        if margin > bound or (self.tuning.strict and margin == bound):
            return False
        step = self.steps(n_seen, np.array([i]), np.array([j]))[0]
        self._grown()
        self.engine.learn(i, j, float(step * y))
        return True

    def run(
        self, i: Vertices, j: Vertices, y: Floats, n_seen: int, *, values: bool
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """A whole stream in order: scores (or signs) before each update, and whether there was one."""
        steps = self.steps(n_seen, i, j)
        self._grown()
        tuning = self.tuning
        rule = {"conservative": tuning.conservative, "strict": tuning.strict}
        out, updated = self.engine.run(i, j, y, steps, tuning.gamma, **rule, values=values)
        return out, updated

    def undo(self, state: Mapping[str, Any]) -> None:
        """Back to what `state` was taken from."""
        self.engine = Engine.from_state(self.rows.side, self.cols.side, state)

    def state(self) -> dict[str, Any]:
        """Plain data of the engine."""
        self._grown()
        made: dict[str, Any] = self.engine.state()
        return made
