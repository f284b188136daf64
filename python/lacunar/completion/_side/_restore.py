"""Saved side information, begun again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lacunar.completion._side._dense import DenseState, FunctionState
from lacunar.completion._side._factor import FactorState, FeatureState
from lacunar.completion._side._graph_state import GraphState
from lacunar.completion._side._mixed import MixedState
from lacunar.completion._side._state import SideState, field, refuse_state

_TYPES: dict[str, Any] = {
    "dense": DenseState,
    "function": FunctionState,
    "factor": FactorState,
    "features": FeatureState,
    "graph": GraphState,
    "mixed": MixedState,
}


def restore(state: Mapping[str, Any], begun: SideState | None = None) -> SideState:
    """The state of which `state` is the `SideState.state`; `begun` lends what cannot be saved, a kernel function.

    Raises
    ------
    ValueError
        When `state` is no saved side information, or of a function that must be given again.
    """
    kind = _TYPES.get(str(field(state, "type")))
    if kind is None:
        refuse_state(f"it is of the unknown type {str(state['type'])[:40]!r}")
    again: SideState = kind.from_state(state, begun)
    if again.digest() != field(state, "digest"):
        refuse_state("its digest does not fit its content")
    return again
