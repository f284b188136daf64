"""Side information mixed with a direction all ids share and a direction for every id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lacunar.completion._side._checks import check_index
from lacunar.completion._side._state import BaseState, Floats, SideState, digest_of, field
from lacunar.observed.rules import Instance, Number, Rule, Word, check_parts

_STATE: dict[str, Rule] = {
    "type": Word(("mixed",)),
    "base": Instance(Mapping),
    "digest": Word(),
    **dict.fromkeys(("info", "const", "own"), Number(low=0)),
}


class MixedState(BaseState):
    """K = info K' + const 11^T + own I of a begun K'; of the same kind, growing when K' does."""

    def __init__(self, base: SideState, info: float, const: float, own: float) -> None:
        self.base, self.info, self.const, self.own = base, info, const, own
        self.kind, self.ids, self.grows = base.kind, base.ids, base.grows
        self._digest = digest_of(mixed=base.digest(), info=info, const=const, own=own)

    @property
    def size(self) -> int:
        return self.base.size

    def diagonal(self) -> Floats:
        return self.info * self.base.diagonal() + (self.const + self.own)

    def columns(self, index: Any) -> Floats:
        index = check_index(index, self.size)
        columns = self.info * self.base.columns(index) + self.const
        columns[index, np.arange(len(index))] += self.own
        return columns

    def apply(self, V: Floats) -> Floats:
        product: Floats = self.info * self.base.apply(V) + self.own * V + self.const * V.sum(axis=0)
        return product

    def dense(self) -> Floats:
        """A new array (size, size)."""
        K = self.info * self.base.dense() + self.const
        K.flat[:: self.size + 1] += self.own
        return K

    def factor(self) -> tuple[Floats, float, float]:
        """A new Phi (size, d), when the base has one."""
        Phi, own, const = self.base.factor()
        return np.sqrt(self.info) * Phi, self.info * own + self.own, self.info * const + self.const

    def grow(self, value: Any) -> int:
        return self.base.grow(value)

    def state(self) -> dict[str, Any]:
        weights = {"info": self.info, "const": self.const, "own": self.own}
        return {"type": "mixed", "base": self.base.state(), "digest": self._digest, **weights}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> MixedState:
        """The state that was saved."""
        from lacunar.completion._side._restore import restore

        check_parts(state, _STATE, "side information", {})
        base = restore(field(state, "base"), begun.base if isinstance(begun, MixedState) else None)
        return cls(base, *(float(field(state, weight)) for weight in ("info", "const", "own")))
