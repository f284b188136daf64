"""Ids of any hashable kind to vertices of the side information, new ones at any time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.completion.side import Identity, SideInformation, SideState
from lacunar.observed.rules import Instance, Items, Number, Rule, check_parts, whole

Vertices = NDArray[np.int64]
UNKNOWN = -1
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

    def __init__(self, described: SideInformation, name: str) -> None:
        self.name, self.described = name, described
        self.side: SideState = described.begin()
        self.alike = isinstance(described, Identity)
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
