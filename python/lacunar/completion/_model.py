"""What a classifier keeps at work: learners for every threshold and expert, their hedge and their calibration."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._calibration import OnlineLogistic
from lacunar.completion._experts import Hedge, margins
from lacunar.completion._ids import UNKNOWN, IdTable
from lacunar.completion._member import Member
from lacunar.completion._tuning import tune

Floats = NDArray[np.float64]
Pairs = tuple[list[Hashable], list[Hashable]]


class Trials(NamedTuple):
    """A stream before each update: scores and P(y = 1) of every task (n, L), and updates of any member (n,)."""

    scores: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]


class Model:
    """Tasks (thresholds) times experts, sharing ids and side information.

    Members never hear of each other: hedge and calibration look at their scores only, so that a whole stream may run through
    one member after the other.
    """

    def __init__(
        self, experts: Sequence[Any], n_tasks: int, *, tol: float, state: Mapping[str, Any] | None = None
    ) -> None:
        tables: dict[tuple[int, str], IdTable] = {}
        saved = None if state is None else state["tables"]

        def table(described: Any, name: str) -> IdTable:
            key = (id(described), name)
            if key not in tables:
                tables[key] = IdTable(described, name, None if saved is None else saved[len(tables)])
            return tables[key]

        sides = [(table(each.rows, "rows"), table(each.cols, "cols")) for each in experts]
        tunings = [tune(each, rows.side, cols.side) for each, (rows, cols) in zip(experts, sides, strict=True)]
        self.tables = list(tables.values())
        self.members = [
            [
                Member(*sides[e], tunings[e], prior=float(each.prior), tol=tol, state=state and state["engines"][k][e])
                for e, each in enumerate(experts)
            ]
            for k in range(n_tasks)
        ]
        self.gammas = np.array([each.gamma for each in tunings])
        self.hedges = [Hedge(len(experts)) for _ in range(n_tasks)]
        self.curves = [OnlineLogistic(float(self.gammas[0])) for _ in range(n_tasks)]
        self.n_seen = self.n_updates = self.n_mistakes = 0
        self.asked: tuple[Any, int, Floats] | None = None  # pair, trial and experts' scores of the last question
        if state is not None:
            self._set_light(state)

    # -- ids --------------------------------------------------------------------------------------------------------

    def _vertices(self, pairs: Pairs, policy: str) -> dict[int, NDArray[np.int64]]:
        """Vertices by table: "learn", or what `unseen` says of predictions."""
        found = {}
        for table in self.tables:
            ids = pairs[0] if table.name == "rows" else pairs[1]
            look = {"learn": table.take, "grow": table.ask}.get(policy, table.look)
            found[id(table)] = vertices = look(ids)
            if policy == "raise" and (vertices == UNKNOWN).any():
                table.unknown(ids, vertices)
        return found

    # -- scores -------------------------------------------------------------------------------------------------------

    def combine(self, scores: Floats, task: int) -> Floats:
        """y_bar of the mixture from the experts' (n, E); that of the only member as it is."""
        if scores.shape[1] == 1:
            return scores[:, 0]
        mixed: Floats = self.gammas[0] * (margins(scores, self.gammas) @ self.hedges[task].weights)
        return mixed

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        at = self._vertices(pairs, policy)
        columns = []
        for k, task in enumerate(self.members):
            each = np.stack([m.scores(at[id(m.rows)], at[id(m.cols)]) for m in task], axis=1)
            columns.append(self.combine(each, k))
        return np.stack(columns, axis=1)

    def score_one(self, row: Hashable, col: Hashable, policy: str) -> Floats:
        """y_bar of every task for one pair, by the engines' value rule: experts' scores (L, E)."""
        at = self._vertices(([row], [col]), policy)
        return np.array(
            [[m.score(int(at[id(m.rows)][0]), int(at[id(m.cols)][0])) for m in task] for task in self.members]
        )

    # -- learning -------------------------------------------------------------------------------------------------------

    def place(self, pair: tuple[Hashable, Hashable]) -> None:
        """Vertices for a pair about to be learned."""
        self._vertices(([pair[0]], [pair[1]]), "learn")

    def recall(self, pair: tuple[Hashable, Hashable]) -> Floats:
        """Experts' scores (L, E) of a placed pair: those just asked for, or new ones."""
        if self.asked is not None and self.asked[:2] == (pair, self.n_seen):
            return self.asked[2]
        return self.score_one(*pair, "learn")

    def learn_one(self, pair: tuple[Hashable, Hashable], y: Floats, scores: Floats, calibrate: bool) -> bool:
        """One placed pair with labels y (L,) and the scores (L, E) of the present state: nothing in here can fail."""
        at = self._vertices(([pair[0]], [pair[1]]), "learn")
        updated = False
        for k, task in enumerate(self.members):
            for e, member in enumerate(task):
                i, j = int(at[id(member.rows)][0]), int(at[id(member.cols)][0])
                updated |= member.update(i, j, float(y[k]), float(scores[k, e]), self.n_seen)
            self._follow(k, scores[k : k + 1], y[k : k + 1], calibrate)
        self._count(at, 1, int(updated))
        return updated

    def add(self, name: str, each: Hashable, value: Any) -> None:
        """A new id with its features or point, in every table of this side that wants one."""
        tables = [table for table in self.tables if table.name == name]
        if any(each in table.number for table in tables):
            raise ValueError(f"id must be new; {each!r} is known among the {name}. Use another id.")
        wanting = [table for table in tables if not table.alike]
        if not wanting:
            raise ValueError(f"the {name} take ids without more being said; got {each!r}. Just learn it.")
        for table in wanting:
            table.add(each, value)

    def learn(self, pairs: Pairs, y: Floats, calibrate: bool, *, values: bool) -> Trials:
        """A stream with labels y (n, L), in order; after an error or an interrupt the members are as before."""
        at = self._vertices(pairs, "learn")
        n, n_tasks = y.shape
        values = values or calibrate or len(self.gammas) > 1  # else signs are enough, and cheaper
        combined, probabilities = np.empty((n, n_tasks)), np.empty((n, n_tasks)) if calibrate else None
        updated, before = np.zeros(n, dtype=bool), self._light()
        done: list[tuple[Member, dict[str, Any]]] = []
        try:
            for k, task in enumerate(self.members):
                columns = []
                for member in task:
                    done.append((member, member.state()))
                    i, j = at[id(member.rows)], at[id(member.cols)]
                    out, changed = member.run(i, j, np.ascontiguousarray(y[:, k]), self.n_seen, values=values)
                    columns.append(out)
                    updated |= changed
                combined[:, k], p = self._follow(k, np.stack(columns, axis=1), y[:, k], calibrate)
                if probabilities is not None and p is not None:
                    probabilities[:, k] = p
        except BaseException:  # an interrupt too: half a stream is no state
            for member, state in done:
                member.undo(state)
            self._set_light(before)
            raise
        self._count(at, n, int(updated.sum()))
        return Trials(combined, probabilities, updated)

    def _follow(self, k: int, scores: Floats, y: Floats, calibrate: bool) -> tuple[Floats, Floats | None]:
        """Hedge and calibration of one task over scores (n, E): the mixture and its probabilities before each label."""
        if scores.shape[1] == 1:
            mixed = scores[:, 0]
        else:
            mixed = self.gammas[0] * self.hedges[k].learn_block(margins(scores, self.gammas), y)
        return mixed, self.curves[k].learn_block(mixed, y) if calibrate else None

    def _count(self, at: Mapping[int, NDArray[np.int64]], n: int, n_updates: int) -> None:
        for table in self.tables:
            table.learned(at[id(table)].tolist())
        self.n_seen += n
        self.n_updates += n_updates

    # -- state --------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """All that has to be stored, as plain data."""
        return {
            "tables": [table.state() for table in self.tables],
            "engines": [[member.state() for member in task] for task in self.members],
            **self._light(),
        }

    def _light(self) -> dict[str, Any]:
        """What is small: weights, curves, counts."""
        return {
            "hedges": [{"losses": hedge.losses.copy(), "variance": hedge.variance} for hedge in self.hedges],
            "curves": [list(curve.values) for curve in self.curves],
            "n_seen": self.n_seen,
            "n_updates": self.n_updates,
            "n_mistakes": self.n_mistakes,
        }

    def _set_light(self, state: Mapping[str, Any]) -> None:
        for hedge, saved in zip(self.hedges, state["hedges"], strict=True):
            hedge.losses, hedge.variance = np.array(saved["losses"], dtype=np.float64), float(saved["variance"])
            if hedge.losses.shape != (len(self.gammas),):
                raise ValueError(f"the state's hedge must have {len(self.gammas)} experts; got {hedge.losses.shape}.")
        for curve, values in zip(self.curves, state["curves"], strict=True):
            if len(values) != len(curve.values):
                raise ValueError(f"the state's curve must have {len(curve.values)} numbers; got {len(values)}.")
            curve.values = [float(v) for v in values]
        self.n_seen, self.n_updates, self.n_mistakes = (
            int(state[name]) for name in ("n_seen", "n_updates", "n_mistakes")
        )
