"""Base of the models behind classifiers of pairs: ids as vertices, counts, and the interface of learners."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._log import in_slices
from lacunar._typing import Floats
from lacunar.completion.side import Identity, SideInformation, SideState, joined, shown
from lacunar.observed.rules import Instance, Items, Number, Rule, check_parts, whole

Vertices = NDArray[np.int64]
Pairs = tuple[list[Hashable], list[Hashable]]
UNKNOWN = -1
_COUNTS = ("n_seen", "n_updates", "n_mistakes")
_STATE: dict[str, Rule] = {
    "side": Instance(Mapping),
    "grown": Items(Instance(Hashable), "grown"),
    "vertices": whole("grown", distinct=True),
    "spare": Number(whole=True, low=UNKNOWN),
}


class IdTable:
    """The vertices of one side (rows or columns). Predictions may add ids; only ids that were learned count.

    A vertex without observations changes no prediction, so asking about a new id is free of effect. Under `Identity`
    all ids that were never learned are alike and share one spare vertex, whatever their number.

    Attributes
    ----------
    number : dict
        id -> vertex.
    base : int
        Ids that the side information knew at the beginning.
    fresh : set
        Vertices that have an id and no observation.
    spare : int
        The vertex that stands for every id that was never learned; UNKNOWN where there is none.
    """

    def __init__(self, described: SideInformation | Sequence[SideInformation] | None, name: str) -> None:
        self.name, self.described = name, joined(described)
        self.side: SideState = self.described.begin()
        self.alike = isinstance(self.described, Identity)
        self.base, self.spare, self.fresh = self.side.size, UNKNOWN, set[int]()
        known = self.side.ids if self.side.ids is not None else range(self.base)
        self.number: dict[Hashable, int] = {name: k for k, name in enumerate(known)}
        self._coming: Callable[[], object] | None = None  # takes in the id that is on its way, and may be called twice

    @property
    def n_learned(self) -> int:
        """Ids that count for the size N of the problem: those of the side information and those learned since."""
        return len(self.number) - len(self.fresh)

    def places(self, ids: list[Hashable], policy: str) -> Vertices:
        """Vertices (n,) of n ids. Policy "learn" gives every unseen id a vertex; "grow" gives one for predictions where
        the side information can; "prior" gives unseen ids -1; "raise" raises ValueError for them.
        """
        self._settle()
        vertices = np.fromiter((self.number.get(name, UNKNOWN) for name in ids), np.int64, len(ids))
        for k in np.flatnonzero(vertices == UNKNOWN):  # an id may come twice
            vertices[k] = self._place_unseen(ids[k], policy, int(k))
        return vertices

    def place(self, name: Hashable, policy: str) -> int:
        """The vertex of one id; see `places`."""
        self._settle()
        vertex = self.number.get(name, UNKNOWN)
        return vertex if vertex != UNKNOWN else self._place_unseen(name, policy, 0)

    def _place_unseen(self, name: Hashable, policy: str, position: int) -> int:
        if policy == "raise":
            raise ValueError(
                f"{self.name} must be ids known to the model; got {shown(name)} at position {position}. Learn it "
                "first, or set unseen='grow' or unseen='prior'."
            )
        if policy == "prior":
            return UNKNOWN
        vertex = self.number.get(name, UNKNOWN)  # it may have come a moment ago
        if vertex != UNKNOWN:
            return vertex
        if policy == "grow" and self.alike and self.side.grows:
            return self._spare()
        return self._take(name)

    def add(self, name: Hashable, value: Any) -> int:
        """Give an unseen id a vertex. value: what the side information reads, a point or a row of features."""
        vertex, point = self.side.size, self.side.read(value)  # the last that may refuse

        def take() -> None:
            self.side.put(vertex, point)
            self._name(name, vertex)

        self._settle(take)
        return vertex

    def _settle(self, coming: Callable[[], object] | None = None) -> None:
        """Run `coming`, which stores an id; without it, repeat the last that an interrupt or lack of memory stopped."""
        self._coming = coming or self._coming
        if self._coming is not None:
            self._coming()
            self._coming = None

    def counts(self, vertices: Vertices) -> Vertices:
        """`n_learned` (n,) after each of n observations that are about to be learned."""
        first = np.zeros(len(vertices), np.int64)
        if self.fresh:
            values, places = np.unique(vertices, return_index=True)
            first[[p for v, p in zip(values.tolist(), places.tolist(), strict=True) if v in self.fresh]] = 1
        return self.n_learned + np.cumsum(first)

    def _spare(self) -> int:
        if self.spare == UNKNOWN:
            vertex, point = self.side.size, self.side.read(None)

            def take() -> None:
                self.side.put(vertex, point)
                self.spare = vertex

            self._settle(take)
        return self.spare

    def _take(self, name: Hashable) -> int:
        if (spare := self.spare) != UNKNOWN:

            def take() -> None:
                self._name(name, spare)
                self.spare = UNKNOWN

            self._settle(take)
            return spare
        try:
            return self.add(name, name)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.name} must be ids that {type(self.described).__name__} knows or can take; got {shown(name)}: "
                f"{error} Or call add_{self.name[:3]}(id, value) with what it needs."
            ) from error

    def _name(self, name: Hashable, vertex: int) -> None:
        self.fresh.add(vertex)
        self.number[name] = vertex

    def state(self) -> dict[str, Any]:
        """Ids added since the beginning, and the state of the side information, as plain data."""
        self._settle()
        grown = [(name, vertex) for name, vertex in self.number.items() if vertex >= self.base]
        return {
            "side": self.side.state(),
            "grown": [name for name, _ in grown],
            "vertices": np.array([vertex for _, vertex in grown], np.int64),
            "spare": self.spare,
        }

    def grow_from(self, state: Mapping[str, Any]) -> None:
        """Add the ids of a `state` to a table just begun; ValueError where its parts contradict each other."""
        check_parts(state, _STATE, f"the state of the {self.name}", {})
        self.side.grow_from(state["side"])
        size, vertices, spare = self.side.size, state["vertices"].tolist(), int(state["spare"])
        taken = [*vertices, *([spare] if spare != UNKNOWN else [])]
        self.number.update(zip(state["grown"], vertices, strict=True))
        self.spare = spare
        if len(self.number) + (spare != UNKNOWN) != size or sorted(taken) != list(range(self.base, size)):
            raise ValueError(f"the state must name every one of {size} {self.name} once; it does not. Take it again.")


class Trials(NamedTuple):
    """Predictions before each update: scores and P(y = 1) of every task (n, L); whether a trial changed the model and
    whether its prediction was wrong (n,).
    """

    scores: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


class TrialCounts(NamedTuple):
    """Numbers of trials learned, of trials that changed the model, and of wrong predictions."""

    seen: int = 0
    updates: int = 0
    mistakes: int = 0


class PairModel:
    """Base of the models of pairs: the ids of both sides and the counts of trials. Subclasses score and learn.

    Not even questions may come from two threads at once: new ids make tables and engines grow.
    """

    rows: IdTable
    cols: IdTable
    thresholds: Any  # of the classifier, when the model began
    trials_at_once = 4096  # of a batch, between two looks for Ctrl-C: the cuts change no bit

    def _begin(self, options: Any) -> None:
        self.rows, self.cols = IdTable(options.rows, "rows"), IdTable(options.cols, "cols")
        self.counts = TrialCounts()
        self.signs_of: dict[Hashable, Sequence[float]] = {}  # (L,) of labels met one by one

    @property
    def n_seen(self) -> int:
        """Trials learned."""
        return self.counts.seen

    def _vertices(self, pairs: Pairs, policy: str) -> tuple[Vertices, Vertices]:
        """Vertices (n,) of rows and of columns. policy: "learn", or the `unseen` of the classifier for predictions."""
        return self.rows.places(pairs[0], policy), self.cols.places(pairs[1], policy)

    def _vertices_one(self, pair: tuple[Hashable, Hashable], policy: str) -> tuple[int, int]:
        """`_vertices` of one pair."""
        return self.rows.place(pair[0], policy), self.cols.place(pair[1], policy)

    def add(self, side: str, name: Hashable, value: Any) -> None:
        """Add an unseen id to a side ("rows" or "cols") with its features or point."""
        table = self.rows if side == "rows" else self.cols
        if table.place(name, "prior") != UNKNOWN:
            raise ValueError(f"id must be new; {shown(name)} is known among the {side}. Use another id.")
        if table.alike:
            raise ValueError(f"the {side} take ids without more being said; got {shown(name)}. Just learn it.")
        table.add(name, value)

    # -- for learners to say -------------------------------------------------------------------------------------------

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        raise NotImplementedError

    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """y_bar of every task for one pair, (L,)."""
        raise NotImplementedError

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L)."""
        raise NotImplementedError

    def one(self, pair: tuple[Hashable, Hashable], y: Sequence[float]) -> OneTrial:
        """The steps that learn one pair with labels y (L,)."""
        raise NotImplementedError

    def batch(self, pairs: Pairs, y: Floats, *, values: bool) -> Batch:
        """The steps that learn pairs with labels y (n, L). Without `values` scores may be signs.

        The call adds new ids, as a prediction does.
        """
        raise NotImplementedError

    def n_learned(self, task: int) -> int:
        """A count that every trial of a task raises by one; it need not begin at 0."""
        raise NotImplementedError

    def _learned(self) -> dict[str, Any]:
        """What the subclass learned, as plain data."""
        raise NotImplementedError

    def _take(self, state: Mapping[str, Any]) -> None:
        """Restore what `_learned` gave."""
        raise NotImplementedError

    # -- learning ------------------------------------------------------------------------------------------------------

    def signs(self, scores: Floats, first: int) -> Floats:
        """Predicted signs of scores (n, L) answered as trials first, first + 1, ...; a score of 0 is positive."""
        return np.where(scores >= 0, 1.0, -1.0)

    def signs_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """Predicted signs of one pair, (L,)."""
        signs: Floats = self.signs(self.score_one(pair, policy)[None], self.n_seen)[0]
        return signs

    # -- state ---------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return {
            "tables": [self.rows.state(), self.cols.state()],
            "fresh": [np.array(sorted(table.fresh), np.int64) for table in (self.rows, self.cols)],
            **self._learned(),
            **dict(zip(_COUNTS, self.counts, strict=True)),
        }

    def take(self, state: Mapping[str, Any]) -> None:
        """Restore a state in a model just begun. ValueError where the state is of a model of other options."""
        for table, part in zip((self.rows, self.cols), state["tables"], strict=True):
            table.grow_from(part)
        if min(int(state[name]) for name in _COUNTS) < 0:
            raise ValueError("counts must not be negative; they are")
        for table, fresh in zip((self.rows, self.cols), state["fresh"], strict=True):
            whole("fresh", distinct=True, high=table.side.size - 1).check(fresh, "fresh vertices", {})
            table.fresh = set(fresh.tolist())
        self._take(state)
        self.counts = TrialCounts(*(int(state[name]) for name in _COUNTS))


class OneTrial:
    """One pair that all tasks of a model learn. `run` may stop after any task; `keep` then brings the others as far."""

    updated = False  # whether it has changed anything

    def __init__(self, model: PairModel, i: int, j: int, y: Sequence[float]) -> None:
        self._model, self._pair, self._y, self._first = model, (i, j), y, model.counts

    def run(self) -> None:
        """Learn the pair: the first task that changes, at least."""
        raise NotImplementedError

    def keep(self) -> None:
        """Let the other tasks learn what the first has learned, and count it. A second call changes nothing."""
        raise NotImplementedError

    def _count(self, updated: bool, wrong: bool) -> None:
        (i, j), (seen, updates, mistakes), model = self._pair, self._first, self._model
        model.rows.fresh.discard(i)
        model.cols.fresh.discard(j)
        model.counts = TrialCounts(seen + 1, updates + updated, mistakes + wrong)
        self.updated = updated


class Batch:
    """n pairs that all tasks of a model learn, block by block, as `OneTrial`, and the predictions before each."""

    def __init__(self, model: PairModel, vertices: tuple[Vertices, Vertices], y: Floats) -> None:
        self._model, self._y = model, y
        self._i, self._j = (np.ascontiguousarray(part, dtype=np.int32) for part in vertices)
        self._labels, self._answers = np.ascontiguousarray(y.T), np.zeros(y.shape[::-1])  # (L, n): a task has a row
        self._updated, self._wrong = np.ones(len(y), dtype=bool), np.zeros(len(y), dtype=bool)
        self._begun, self._first = [model.n_learned(k) for k in range(y.shape[1])], model.counts
        self.n_learned = 0  # trials that every task has learned and that are counted
        self._due = 0  # trials that `keep` must reach: `_open` was called for the last of them

    def run(self, verbose: int = 0) -> None:
        """Learn all pairs, in order."""
        n, cuts = len(self._y), self._cuts()
        opening = set(cuts.tolist())
        for part in in_slices(n, max(1, self._model.trials_at_once // self._y.shape[1]), verbose, "pairs"):
            inside = cuts[np.searchsorted(cuts, part.start, "right") : np.searchsorted(cuts, part.stop)]
            for start, stop in pairwise([part.start, *inside.tolist(), min(part.stop, n)]):
                if start in opening:
                    self._due = start + 1
                    self._open(start)
                self._learn(0, start, stop)
                self.keep()

    def keep(self) -> None:
        """See `OneTrial`."""
        start, stop = self.n_learned, max(self._done(0), self._due)
        if self._done(0) < self._due:
            self._open(self._due - 1)
        for k in range(len(self._begun)):
            if self._done(k) < stop:
                self._learn(k, self._done(k), stop)
        if start < stop:
            self._note(start, stop)
            seen, updates, mistakes = self._first
            counts = TrialCounts(
                seen + stop, updates + int(self._updated[:stop].sum()), mistakes + int(self._wrong[:stop].sum())
            )
            self._model.rows.fresh.difference_update(self._i[start:stop].tolist())
            self._model.cols.fresh.difference_update(self._j[start:stop].tolist())
            self._model.counts = counts
            self.n_learned = stop

    def _done(self, task: int) -> int:
        return self._model.n_learned(task) - self._begun[task]

    def trials(self) -> Trials:
        """The predictions."""
        raise NotImplementedError

    def _learn(self, task: int, start: int, stop: int) -> None:
        """Learn trials start to stop of a task, which has learned those before, and write its answers into its row."""
        raise NotImplementedError

    def _note(self, start: int, stop: int) -> None:
        """Note which of trials start to stop were wrong and which changed the model. Every task has learned them; a
        second call gives the same.
        """
        raise NotImplementedError

    def _cuts(self) -> NDArray[np.int64]:
        """Trials, ascending, before which `_open` must be called."""
        return np.empty(0, np.int64)

    def _open(self, trial: int) -> None:
        """Prepare a trial before it is learned. A second call changes nothing."""
