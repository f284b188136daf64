"""Kernels held as matrices: given whole, or grown by one id at a time from a function."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from lacunar.completion._side._checks import check_ids, check_index
from lacunar.completion._side._functions import PointKernel
from lacunar.completion._side._state import BaseState, Floats, Kind, digest_of, field
from lacunar.observed.rules import Flag, Instance, Items, Optional, Rule, Word, check_parts, floats

_STATE: dict[str, Rule] = {
    "type": Word(("dense",)),
    "K": floats("ids", "ids", dtype=np.float64),
    "ids": Optional(Items(Instance(Hashable))),
    "digest": Word(),
    "is_pd_laplacian": Flag(),
}


class DenseState(BaseState):
    """K (n, n) in memory, diagonal at most 1. A product is O(n^2)."""

    kind: Kind = "dense"

    def __init__(self, K: Floats, ids: list[Hashable] | None, digest: str, *, is_pd_laplacian: bool = False) -> None:
        self._K, self._size, self.ids, self._digest = np.ascontiguousarray(K), len(K), ids, digest
        self.is_pd_laplacian = is_pd_laplacian

    @property
    def size(self) -> int:
        return self._size

    def diagonal(self) -> Floats:
        return np.diagonal(self._K)[: self._size].copy()

    def columns(self, index: Any) -> Floats:
        # K is symmetric: its rows are read, which lie together.
        rows = self._K[check_index(index, self._size), : self._size]
        return np.ascontiguousarray(rows.T)

    def apply(self, V: Floats) -> Floats:
        return self._K[: self._size, : self._size] @ V

    def dense(self) -> Floats:
        """K itself, read-only, C-contiguous (a copy where it has room to grow)."""
        K = np.ascontiguousarray(self._K[: self._size, : self._size])
        K.flags.writeable = False
        return K

    def state(self) -> dict[str, Any]:
        rest = {"ids": self.ids, "digest": self._digest, "is_pd_laplacian": self.is_pd_laplacian}
        return {"type": "dense", "K": self.dense().copy(), **rest}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> DenseState:
        """The state that was saved."""
        check_parts(state, _STATE, "side information", {})
        check_ids(state["ids"], len(state["K"]), "K")
        return cls(state["K"], state["ids"], state["digest"], is_pd_laplacian=bool(state["is_pd_laplacian"]))


class FunctionState(DenseState):
    """K grown from a kernel function, one point at a time, in doubling memory.

    The k-th point costs k values of the function. A point is taken whole or not at all.
    """

    grows = True

    def __init__(self, kernel: PointKernel, ids: list[Hashable] | None, digest: str = "") -> None:
        super().__init__(np.empty((0, 0)), ids, digest)
        self._kernel = kernel

    def seal(self) -> None:
        """Names the state by the function and the points met until now."""
        self._digest = digest_of(ids=self.ids, **self._kernel.state())

    def grow(self, value: Any) -> int:
        """A point of the function's domain."""
        column, own = self._kernel.measure(value)  # may refuse; nothing is touched before
        n = self._size
        if n == len(self._K):
            wider = np.zeros((max(8, 2 * n), max(8, 2 * n)))
            wider[:n, :n] = self._K
            self._K = wider
        self._kernel.take()
        self._K[n, :n] = self._K[:n, n] = column
        self._K[n, n] = own
        self._size = n + 1
        return n

    def state(self) -> dict[str, Any]:
        return {"type": "function", "ids": self.ids, "digest": self._digest, **self._kernel.state()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> FunctionState:
        """The state that was saved: its points are measured again, which gives the same bits."""
        kernel = PointKernel.from_state(state, begun._kernel if isinstance(begun, FunctionState) else None)
        again = cls(kernel, field(state, "ids"), field(state, "digest"))
        for point in field(state, "points"):
            again.grow(point)
        return again


def inverse_of(M: Floats) -> Floats:
    """The kernel M^-1 (n, n), exactly symmetric, of a positive definite M. O(n^3)."""
    values, vectors = np.linalg.eigh(M)
    if values[0] <= len(M) * np.finfo(float).eps * values[-1]:
        raise ValueError(
            f"K must be positive definite for precision=True; its eigenvalues go from {values[0]:.3g} to {values[-1]:.3g}. Add a "
            "multiple of the identity, or pass the kernel itself."
        )
    root = vectors / np.sqrt(values)
    made: Floats = root @ root.T
    return made


def scale_kernel(K: Floats, *, normalize: bool) -> Floats:
    """K with unit diagonal, or K over its largest diagonal entry. A zero diagonal entry becomes 1: an id of its own."""
    diagonal = np.diagonal(K).copy()
    top = float(diagonal.max())
    if top <= 0:
        raise ValueError("K must say something; got a diagonal of zeros only. Use Identity for no side information.")
    alone = diagonal <= np.finfo(float).eps * top
    if not normalize:
        return K / top
    if alone.any():
        warnings.warn(
            f"K is zero for {int(alone.sum())} of {len(K)} ids (first: number {int(alone.argmax())}): they have nothing "
            "in common with any other id.",
            UserWarning,
            stacklevel=4,
        )
    root = np.sqrt(np.where(alone, 1.0, diagonal))
    scaled: Floats = K / np.outer(root, root)
    scaled[alone] = scaled[:, alone] = 0.0
    np.fill_diagonal(scaled, 1.0)
    return scaled
