"""The model behind a classifier of pairs: the ids of both sides as vertices, counts, and the contract of what learns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._state import going_back
from lacunar._typing import Floats
from lacunar.completion.side import Identity, SideInformation, SideState, joined
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
    """The vertices of one side (rows or columns): what is asked about grows it, only what is learned counts.

    A vertex without observations changes no prediction, so asking about a new id is free of effect. Under `Identity` all ids
    that were never learned are alike and share one spare vertex, whatever their number.

    Attributes
    ----------
    number : dict
        id -> vertex.
    base : int
        Ids the side information began with.
    """

    def __init__(self, described: SideInformation | Sequence[SideInformation] | None, name: str) -> None:
        self.name, self.described = name, joined(described)
        self.side: SideState = self.described.begin()
        self.alike = isinstance(self.described, Identity)
        self.base, self.spare, self.fresh = self.side.size, UNKNOWN, set[int]()
        known = self.side.ids if self.side.ids is not None else range(self.base)
        self.number: dict[Hashable, int] = {name: k for k, name in enumerate(known)}

    @property
    def n_learned(self) -> int:
        """Ids that count for the size N of the problem: those of the side information and those learned since."""
        return len(self.number) - len(self.fresh)

    def places(self, ids: list[Hashable], policy: str) -> Vertices:
        """Vertices of ids. "learn": every unseen id gets its own; "grow": for predictions, unseen ids take one where the side information
        gives it; else -1 for those without one, or under "raise" an error."""
        vertices = np.fromiter((self.number.get(name, UNKNOWN) for name in ids), np.int64, len(ids))
        for k in np.flatnonzero(vertices == UNKNOWN):  # an id may come twice
            vertices[k] = self._place_unseen(ids[k], policy, int(k))
        return vertices

    def place(self, name: Hashable, policy: str) -> int:
        """`places` of one id."""
        vertex = self.number.get(name, UNKNOWN)
        return vertex if vertex != UNKNOWN else self._place_unseen(name, policy, 0)

    def _place_unseen(self, name: Hashable, policy: str, position: int) -> int:
        if policy == "raise":
            raise ValueError(
                f"{self.name} must be ids known to the model; got {name!r} at position {position}. Learn it first, or set "
                "unseen='grow' or unseen='prior'."
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
        """A vertex for an unseen id with what the side information wants of it: a point, a row of features."""
        vertex = len(self.number) + (self.spare != UNKNOWN)  # every vertex has a name or is the spare one
        self._register(name, vertex)  # before the side grows: a vertex without a name could not be saved
        try:
            self.side.grow(value)
        except BaseException:
            if self.side.size == vertex:  # else it has grown all the same
                self._forget(name, vertex)
            raise
        return vertex

    def counts(self, vertices: Vertices) -> Vertices:
        """`n_learned` at each of the observations to come, the current one included: (n,)."""
        first = np.zeros(len(vertices), np.int64)
        if self.fresh:
            values, places = np.unique(vertices, return_index=True)
            first[[p for v, p in zip(values.tolist(), places.tolist(), strict=True) if v in self.fresh]] = 1
        return self.n_learned + np.cumsum(first)

    def learned(self, vertices: Iterable[int]) -> None:
        """These vertices have observations now."""
        self.fresh.difference_update(vertices)

    def _spare(self) -> int:
        if self.spare == UNKNOWN:
            self.spare = self.side.grow(None)
        return self.spare

    def _take(self, name: Hashable) -> int:
        if self.spare != UNKNOWN:
            self._register(name, self.spare)
            self.spare = UNKNOWN
            return self.number[name]
        try:
            return self.add(name, name)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"{self.name} must be ids that {type(self.described).__name__} knows or can take; got {name!r}: {error} "
                f"Or call add_{self.name[:3]}(id, value) with what it needs."
            ) from error

    def _register(self, name: Hashable, vertex: int) -> None:
        try:
            self.fresh.add(vertex)
            self.number[name] = vertex
        except BaseException:
            self._forget(name, vertex)
            raise

    def _forget(self, name: Hashable, vertex: int) -> None:
        self.number.pop(name, None)
        self.fresh.discard(vertex)

    def state(self) -> dict[str, Any]:
        """Plain data of the ids that came and of what the side information has grown."""
        grown = [(name, vertex) for name, vertex in self.number.items() if vertex >= self.base]
        return {
            "side": self.side.state(),
            "grown": [name for name, _ in grown],
            "vertices": np.array([vertex for _, vertex in grown], np.int64),
            "spare": self.spare,
        }

    def grow_from(self, state: Mapping[str, Any]) -> None:
        """The ids of a `state`, taken by a table just begun; ValueError where its parts contradict each other."""
        check_parts(state, _STATE, f"the state of the {self.name}", {})
        self.side.grow_from(state["side"])
        size, vertices, spare = self.side.size, state["vertices"].tolist(), int(state["spare"])
        taken = [*vertices, *([spare] if spare != UNKNOWN else [])]
        self.number.update(zip(state["grown"], vertices, strict=True))
        self.spare = spare
        if len(self.number) + (spare != UNKNOWN) != size or sorted(taken) != list(range(self.base, size)):
            raise ValueError(f"the state must name every one of {size} {self.name} once; it does not. Take it again.")


class Trials(NamedTuple):
    """A stream before each update: scores and P(y = 1) of every task (n, L); updates and wrong predictions (n,)."""

    scores: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


class PairModel:
    """Base of the models of pairs: the ids of both sides and the counts of trials. Subclasses score and learn.

    Not even questions may come from two threads at once: new ids make tables and engines grow.
    """

    rows: IdTable
    cols: IdTable

    def _begin(self, options: Any) -> None:
        self.rows, self.cols = IdTable(options.rows, "rows"), IdTable(options.cols, "cols")
        self.n_seen = self.n_updates = self.n_mistakes = 0
        self.signs_of: dict[Hashable, Sequence[float]] = {}  # (L,) of labels met one by one

    def _vertices(self, pairs: Pairs, policy: str) -> tuple[Vertices, Vertices]:
        """Vertices (n,) of rows and of columns. policy: "learn", or the `unseen` of the classifier for predictions."""
        return self.rows.places(pairs[0], policy), self.cols.places(pairs[1], policy)

    def _vertices_one(self, pair: tuple[Hashable, Hashable], policy: str) -> tuple[int, int]:
        """`_vertices` of one pair."""
        return self.rows.place(pair[0], policy), self.cols.place(pair[1], policy)

    def add(self, side: str, name: Hashable, value: Any) -> None:
        """A new id with its features or point."""
        table = self.rows if side == "rows" else self.cols
        if name in table.number:
            raise ValueError(f"id must be new; {name!r} is known among the {side}. Use another id.")
        if table.alike:
            raise ValueError(f"the {side} take ids without more being said; got {name!r}. Just learn it.")
        table.add(name, value)

    # -- for learners to say --------------------------------------------------------------------------------------------

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        raise NotImplementedError

    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """y_bar of every task for one pair, (L,)."""
        raise NotImplementedError

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L)."""
        raise NotImplementedError

    def learn_one(self, pair: tuple[Hashable, Hashable], y: Sequence[float]) -> bool:
        """One pair with labels y (L,): whether anything changed."""
        raise NotImplementedError

    def _run(self, vertices: tuple[Vertices, Vertices], y: Floats, values: bool, verbose: int) -> Trials:
        """A stream with labels y (n, L); scores may be signs where `values` are not wanted."""
        raise NotImplementedError

    def _learned(self, *, ids: bool) -> dict[str, Any]:
        """The learner's part of the state."""
        raise NotImplementedError

    def _take_back(self, state: Mapping[str, Any]) -> None:
        """The learner's part of going back."""
        raise NotImplementedError

    # -- learning ---------------------------------------------------------------------------------------------------------

    def signs(self, scores: Floats, first: int) -> Floats:
        """Predicted signs of scores (n, L) answered as trials first, first + 1, ...; a score of 0 is positive."""
        return np.where(scores >= 0, 1.0, -1.0)

    def signs_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """Predicted signs of one pair, (L,)."""
        signs: Floats = self.signs(self.score_one(pair, policy)[None], self.n_seen)[0]
        return signs

    def learn(self, pairs: Pairs, y: Floats, *, values: bool, verbose: int = 0) -> Trials:
        """A stream with labels y (n, L), in order. After an error or an interrupt no trial was learned; new ids are known, as if asked about."""
        vertices = self._vertices(pairs, "learn")
        with going_back(_Learned(self)):
            trials = self._run(vertices, y, values, verbose)
            self.rows.fresh.difference_update(vertices[0].tolist())
            self.cols.fresh.difference_update(vertices[1].tolist())
            self.n_seen += len(y)
            self.n_updates += int(trials.updated.sum())
            self.n_mistakes += int(trials.wrong.sum())
        return trials

    def _count_one(self, i: int, j: int, updated: bool, wrong: bool) -> None:
        self.rows.fresh.discard(i)
        self.cols.fresh.discard(j)
        self.n_seen += 1
        self.n_updates += updated
        self.n_mistakes += wrong

    # -- state ------------------------------------------------------------------------------------------------------------

    def state(self, *, ids: bool = True) -> dict[str, Any]:
        """What was learned, as plain data. Without `ids` what a stream changes, for `take_back`: about the work of one trial."""
        learned = self._learned(ids=ids)
        return {
            **({"tables": [self.rows.state(), self.cols.state()]} if ids else {}),
            "fresh": [np.array(sorted(table.fresh), np.int64) for table in (self.rows, self.cols)],
            **learned,
            **{name: getattr(self, name) for name in _COUNTS},
        }

    def take_back(self, state: Mapping[str, Any]) -> None:
        """Go back to a state of this model. ValueError where it is not of these options."""
        if min(int(state[name]) for name in _COUNTS) < 0:
            raise ValueError("counts must not be negative; they are")
        for table, fresh in zip((self.rows, self.cols), state["fresh"], strict=True):
            whole("fresh", distinct=True, high=table.side.size - 1).check(fresh, "fresh vertices", {})
            table.fresh = set(fresh.tolist())
        self._take_back(state)
        self.n_seen, self.n_updates, self.n_mistakes = (int(state[name]) for name in _COUNTS)

    def take(self, state: Mapping[str, Any]) -> None:
        """A whole state, by a model just begun with the options of the one it is of."""
        for table, part in zip((self.rows, self.cols), state["tables"], strict=True):
            table.grow_from(part)
        self.take_back(state)


class _Learned:
    """The part of a model that a stream changes, to go back to; ids and their side information only grow, and stay."""

    def __init__(self, model: PairModel) -> None:
        self._model, self.take_back = model, model.take_back

    def state(self) -> dict[str, Any]:
        return self._model.state(ids=False)
