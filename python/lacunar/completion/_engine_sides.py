"""Side information as the compiled core borrows it: tables that grow, and products called back."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from lacunar import _core
from lacunar.completion._side import SideState

_FEW_FEATURES = 512  # features in all, up to which the state may be their square


class Source(Protocol):
    """One side of the core."""

    @property
    def core(self) -> _core.MegSide:
        """Its half in the core."""
        ...

    def grow(self) -> None:
        """Takes in the vertices that the side information has gained."""
        ...


class _Dense:
    """K whole; grown in place, with room doubled."""

    def __init__(self, state: SideState) -> None:
        self._state, self._known = state, state.size
        self._table = np.ascontiguousarray(state.dense(), dtype=np.float64)
        self.core = _core.MegDense(self._table, self._known)

    def grow(self) -> None:
        new = np.arange(self._known, self._state.size)
        if len(new) == 0:
            return
        columns, self._known = self._state.columns(new), self._state.size
        if self._known > len(self._table):
            wider = np.zeros((2 * self._known, 2 * self._known))
            wider[: new[0], : new[0]] = self._table[: new[0], : new[0]]
            self._table = wider
        self._table[: self._known, new] = columns
        self._table[new, : self._known] = columns.T
        self.core.grow(self._table, self._known)


class _Factor:
    """Phi Phi^T + own I + const 11^T."""

    def __init__(self, state: SideState) -> None:
        self._state = state
        phi, own, const = state.factor()
        self.core = _core.MegFactor(np.ascontiguousarray(phi), len(phi), own, const)

    def grow(self) -> None:
        phi = np.ascontiguousarray(self._state.factor()[0])
        self.core.grow(phi, len(phi))


class _Operator:
    """K by its products; it does not grow."""

    def __init__(self, state: SideState) -> None:
        self.core = _core.MegOperator(np.ascontiguousarray(state.diagonal(), dtype=np.float64), state.apply)

    def grow(self) -> None:
        raise ValueError("side information known by its products takes no more ids; make it anew over all of them.")


def source_of(state: SideState) -> Source:
    """The quickest form: a factor as wide as half its side is dense, of those that do not grow."""
    if state.kind == "factor" and (state.grows or 2 * state.factor()[0].shape[1] < state.size):
        return _Factor(state)
    return _Operator(state) if state.kind == "operator" else _Dense(state)


def features_of(state: SideState) -> np.ndarray:
    """Phi with K = Phi Phi^T, the constant its last column: shape (size, d)."""
    phi, _, const = state.factor()
    return np.ascontiguousarray(phi if const == 0 else np.column_stack([phi, np.full(len(phi), np.sqrt(const))]))


def are_features(rows: SideState, cols: SideState) -> bool:
    """Whether features alone say everything, and their square is smaller than the kernels."""
    if rows.kind != "factor" or cols.kind != "factor":
        return False
    (phi, own, _), (psi, own_too, _) = rows.factor(), cols.factor()
    d = phi.shape[1] + psi.shape[1]
    return own == own_too == 0 and d <= _FEW_FEATURES and (rows.grows or cols.grows or d < rows.size + cols.size)
