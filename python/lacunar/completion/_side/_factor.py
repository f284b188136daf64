"""K = Phi Phi^T + own I + const 11^T: no side information, and features."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from lacunar.completion._side._checks import check_ids, check_index
from lacunar.completion._side._state import BaseState, Floats, Kind, RowStore
from lacunar.completion._side._table import FeatureTable
from lacunar.observed.rules import Flag, Instance, Items, Number, Optional, Rule, Word, check_parts, floats

_STATE: dict[str, Rule] = {
    "type": Word(("factor", "features")),
    "phi": floats("ids", "features", dtype=np.float64),
    "grows": Flag(),
    "own": Number(low=0),
    "const": Number(low=0),
    "ids": Optional(Items(Instance(Hashable))),
    "digest": Word(),
}


class FactorState(BaseState):
    """Phi (n, d) with one weight for every id's own direction and one for the direction all share. A product is O(n d)."""

    kind: Kind = "factor"

    def __init__(self, Phi: Floats, own: float, const: float, ids: list[Hashable] | None, digest: str) -> None:
        self._phi, self.own, self.const = RowStore(Phi), own, const
        self.ids, self._digest = ids, digest

    @property
    def size(self) -> int:
        return self._phi.size

    def diagonal(self) -> Floats:
        Phi = self._phi.rows
        squares: Floats = np.einsum("ij,ij->i", Phi, Phi)
        return squares + (self.own + self.const)

    def columns(self, index: Any) -> Floats:
        index, Phi = check_index(index, self.size), self._phi.rows
        columns = np.ascontiguousarray(Phi @ Phi[index].T + self.const)
        columns[index, np.arange(len(index))] += self.own
        return columns

    def apply(self, V: Floats) -> Floats:
        Phi = self._phi.rows
        product: Floats = Phi @ (Phi.T @ V) + self.own * V + self.const * V.sum(axis=0)
        return product

    def factor(self) -> tuple[Floats, float, float]:
        """Phi is a read-only view (n, d)."""
        Phi = self._phi.rows
        Phi.flags.writeable = False
        return Phi, self.own, self.const

    def state(self) -> dict[str, Any]:
        weights = {"own": self.own, "const": self.const, "ids": self.ids, "digest": self._digest}
        return {"type": "factor", "phi": self._phi.rows.copy(), "grows": self.grows, **weights}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> FactorState:
        """The state that was saved."""
        check_parts(state, _STATE, "side information", {})
        check_ids(state["ids"], len(state["phi"]), "Phi")
        kind = IdentityState if state["grows"] else FactorState
        if state["grows"] and state["phi"].shape[1]:
            raise ValueError(f"side information that grows by ids alone has no features; got {state['phi'].shape[1]}")
        return kind(state["phi"], float(state["own"]), float(state["const"]), state["ids"], state["digest"])


class IdentityState(FactorState):
    """Ids that have nothing to do with each other, and may come at any time."""

    grows = True

    def grow(self, value: Any) -> int:
        """Any id: the next vertex."""
        self._phi.append(np.empty(0))
        return self.size - 1


class FeatureState(FactorState):
    """Features of ids, to which rows of the same features may be added."""

    grows = True

    def __init__(self, Phi: Floats, own: float, const: float, ids: Any, digest: str, table: FeatureTable) -> None:
        super().__init__(Phi, own, const, ids, digest)
        self._table = table

    def grow(self, value: Any) -> int:
        """The features of one more id: a row of numbers, or a mapping from the names of the columns."""
        self._phi.append(self._table.encode_row(value))
        return self.size - 1

    def state(self) -> dict[str, Any]:
        return {**super().state(), "type": "features", "table": self._table.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> FeatureState:
        """The state that was saved."""
        check_parts(state, {**_STATE, "table": Instance(Mapping)}, "side information", {})
        table = FeatureTable.from_state(state["table"])
        begun_with = state["ids"]  # of the first vertices; others have grown
        check_ids(begun_with, len(begun_with or ()), "Phi")
        if state["phi"].shape[1] != table.width or len(begun_with or ()) > len(state["phi"]):
            raise ValueError(
                f"phi must have the {table.width} columns of its table; got shape {state['phi'].shape}. Save it again"
            )
        return cls(state["phi"], float(state["own"]), float(state["const"]), begun_with, state["digest"], table)
