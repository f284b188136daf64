"""What a classifier keeps at work: learners for every threshold and expert, their hedge and their calibration."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._calibration import OnlineLogistic
from lacunar.completion._experts import Hedge, margins
from lacunar.completion._ids import UNKNOWN, IdTable
from lacunar.completion._member import Member
from lacunar.completion._tuning import tune

Floats = NDArray[np.float64]
Pairs = tuple[list[Hashable], list[Hashable]]
Vertices = dict[int, NDArray[np.int64]]  # by the identity of the table
Predicted = Callable[[Floats, int], Floats]  # signs (n, L) of scores (n, L), the first of which is of a given trial


class Trials(NamedTuple):
    """A stream before each update: scores and P(y = 1) of every task (n, L); updates and wrong predictions (n,)."""

    scores: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def in_turn(method: Callable[Concatenate[Model, _Given], _Made]) -> Callable[Concatenate[Model, _Given], _Made]:
    """One thread at a time: a question about a new id makes tables and engines grow."""

    @wraps(method)
    def alone(model: Model, /, *args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        with model.turn:
            return method(model, *args, **kwargs)

    return alone


class Model:
    """Tasks (thresholds) times experts, sharing ids and side information.

    Members never hear of each other: hedge and calibration look at their scores only, so that a whole stream may run through
    one member after the other.
    """

    def __init__(
        self, experts: Sequence[Any], n_tasks: int, *, tol: float, state: Mapping[str, Any] | None = None
    ) -> None:
        self.turn = threading.RLock()
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

    def _vertices(self, pairs: Pairs, policy: str) -> Vertices:
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

    @in_turn
    def expert_scores(self, pairs: Pairs, policy: str) -> list[Floats]:
        """y_bar of every expert, (n, E), for every task."""
        at = self._vertices(pairs, policy)
        return [np.stack([m.scores(at[id(m.rows)], at[id(m.cols)]) for m in task], axis=1) for task in self.members]

    @in_turn
    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        return np.stack([self.combine(each, k) for k, each in enumerate(self.expert_scores(pairs, policy))], axis=1)

    @in_turn
    def ranking(self, pairs: Pairs, policy: str) -> tuple[Floats, NDArray[np.intp]]:
        """Mean y_bar of the tasks, (n,), and its order, highest first; ties of a mixture at its margin by the scores behind it."""
        every = self.expert_scores(pairs, policy)
        score = np.mean([self.combine(each, k) for k, each in enumerate(every)], axis=0)
        behind = np.mean([each @ self.hedges[k].weights for k, each in enumerate(every)], axis=0)
        return score, np.lexsort((-behind, -score))

    @in_turn
    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """Experts' scores of every task for one pair, (L, E)."""
        return self._scores_at(self._vertices(([pair[0]], [pair[1]]), policy))

    @in_turn
    def sign_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats | None:
        """Signs of y_bar (L,) without their values, which cost three to five times as much; None for a mixture."""
        if len(self.gammas) > 1:
            return None
        at = self._vertices(([pair[0]], [pair[1]]), policy)
        return np.array([m.sign(int(at[id(m.rows)][0]), int(at[id(m.cols)][0])) for (m,) in self.members], dtype=float)

    def _scores_at(self, at: Vertices) -> Floats:
        return np.array(
            [[m.score(int(at[id(m.rows)][0]), int(at[id(m.cols)][0])) for m in task] for task in self.members]
        )

    # -- learning -------------------------------------------------------------------------------------------------------

    @in_turn
    def place(self, pair: tuple[Hashable, Hashable]) -> Vertices:
        """Vertices for a pair about to be learned."""
        return self._vertices(([pair[0]], [pair[1]]), "learn")

    def recall(self, pair: tuple[Hashable, Hashable], at: Vertices) -> Floats:
        """Experts' scores (L, E) of a placed pair: those just asked for, or new ones."""
        if self.asked is not None and self.asked[:2] == (pair, self.n_seen):
            return self.asked[2]
        return self._scores_at(at)

    @in_turn
    def learn_one(self, at: Vertices, y: Floats, scores: Floats, calibrate: bool, predicted: Predicted) -> bool:
        """One placed pair with labels y (L,) and the scores (L, E) of the present state: nothing in here can fail."""
        mixed = np.array([[self.combine(scores[k : k + 1], k)[0] for k in range(len(scores))]])
        wrong = bool((predicted(mixed, self.n_seen) != y).any())
        updated = False
        for k, task in enumerate(self.members):
            for e, member in enumerate(task):
                i, j = int(at[id(member.rows)][0]), int(at[id(member.cols)][0])
                updated |= member.update(i, j, float(y[k]), float(scores[k, e]), self.n_seen)
            self._follow(k, scores[k : k + 1], y[k : k + 1], calibrate)
        self._count(at, 1, int(updated), int(wrong))
        return updated

    @in_turn
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

    @in_turn
    def learn(self, pairs: Pairs, y: Floats, calibrate: bool, predicted: Predicted, *, values: bool) -> Trials:
        """A stream with labels y (n, L), in order. After an exception no trial was learned; new ids are known, as if asked about."""
        at = self._vertices(pairs, "learn")
        values = values or calibrate or len(self.gammas) > 1  # else signs are enough, and cheaper
        before, fresh = self._light(), [set(table.fresh) for table in self.tables]
        begun: list[tuple[Member, dict[str, Any]]] = []
        try:
            scores, updated = self._run_members(at, y, values, begun)
            return self._commit(at, scores, y, updated, calibrate, predicted)
        except BaseException:
            for member, state in begun:
                member.undo(state)
            for table, kept in zip(self.tables, fresh, strict=True):
                table.fresh = kept
            self._set_light(before)
            raise

    def _run_members(
        self, at: Vertices, y: Floats, values: bool, begun: list[tuple[Member, dict[str, Any]]]
    ) -> tuple[list[Floats], NDArray[np.bool_]]:
        """Scores (n, E) of every task, and where any member updated; members go to `begun` with their states before they learn."""
        updated = np.zeros(len(y), dtype=bool)
        scores = []
        for k, task in enumerate(self.members):
            columns = []
            for member in task:
                begun.append((member, member.state()))  # about the work of one trial
                i, j = at[id(member.rows)], at[id(member.cols)]
                out, changed = member.run(i, j, np.ascontiguousarray(y[:, k]), self.n_seen, values=values)
                columns.append(out)
                updated |= changed
            scores.append(np.stack(columns, axis=1))
        return scores, updated

    def _commit(
        self,
        at: Vertices,
        scores: list[Floats],
        y: Floats,
        updated: NDArray[np.bool_],
        calibrate: bool,
        predicted: Predicted,
    ) -> Trials:
        """Weights, curves and counts after the members have learned."""
        combined, probabilities = np.empty(y.shape), np.empty(y.shape) if calibrate else None
        for k, each in enumerate(scores):
            combined[:, k], p = self._follow(k, each, y[:, k], calibrate)
            if probabilities is not None and p is not None:
                probabilities[:, k] = p
        wrong = (predicted(combined, self.n_seen) != y).any(axis=1)
        self._count(at, len(y), int(updated.sum()), int(wrong.sum()))
        return Trials(combined, probabilities, updated, wrong)

    def _follow(self, k: int, scores: Floats, y: Floats, calibrate: bool) -> tuple[Floats, Floats | None]:
        """Hedge and calibration of one task over scores (n, E): the mixture and its probabilities before each label."""
        if scores.shape[1] == 1:
            mixed = scores[:, 0]
        else:
            mixed = self.gammas[0] * self.hedges[k].learn_block(margins(scores, self.gammas), y)
        return mixed, self.curves[k].learn_block(mixed, y) if calibrate else None

    def _count(self, at: Vertices, n: int, n_updates: int, n_mistakes: int) -> None:
        for table in self.tables:
            table.learned(at[id(table)].tolist())
        self.n_seen += n
        self.n_updates += n_updates
        self.n_mistakes += n_mistakes

    # -- state --------------------------------------------------------------------------------------------------------

    @in_turn
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
        curves = [[float(v) for v in values] for values in state["curves"]]
        losses = [np.array(saved["losses"], dtype=np.float64) for saved in state["hedges"]]
        variances = [float(saved["variance"]) for saved in state["hedges"]]
        counts = [int(state[name]) for name in ("n_seen", "n_updates", "n_mistakes")]
        sizes = [len(each) for each in curves], [each.shape for each in losses], len(variances)
        n_tasks = len(self.hedges)
        if sizes != ([5] * n_tasks, [self.gammas.shape] * n_tasks, n_tasks):
            raise ValueError(f"the state's weights and curves must be of {n_tasks} tasks; they are not. Save it again.")
        if not all(np.isfinite(np.asarray(each)).all() for each in (*curves, *losses, variances)) or min(counts) < 0:
            raise ValueError("the state's weights, curves and counts must be finite; they are not. Save it again.")
        for k, (hedge, curve) in enumerate(zip(self.hedges, self.curves, strict=True)):
            hedge.losses, hedge.variance, curve.values = losses[k], variances[k], curves[k]
        self.n_seen, self.n_updates, self.n_mistakes = counts
