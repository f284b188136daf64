"""A graph as side information: products by one sparse factor, nothing of size n^2."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.completion._side._checks import check_ids, check_index
from lacunar.completion._side._dense import DenseState
from lacunar.completion._side._graph_input import components
from lacunar.completion._side._laplacian import (
    LaplacianKernel,
    PseudoInverse,
    Regularized,
    Written,
    laplacian,
    written_kernel,
)
from lacunar.completion._side._state import (
    DENSE_LIMIT,
    BaseState,
    Floats,
    Kind,
    SideState,
    digest_of,
    field,
    refuse_state,
)
from lacunar.observed.rules import Flag, Instance, Items, Number, Optional, Rule, Word, check_parts, floats, whole

_SMALL = 1000  # vertices: the engine has K in hand, and asks it for seen vertices only
_DEARER = 12  # an entry of a sparse factor costs this many of a dense matrix
_BLOCK = 64  # columns solved for at once
_PULL = 4.0  # of a piece on its vertices, in units of R_L: measured, docs/side-information.md


_STATE: dict[str, Rule] = {
    "type": Word(("graph",)),
    "indptr": whole("ids + 1"),
    "indices": whole("edges"),
    "data": floats("edges", low=0.0),
    "kind": Word(("pd", "pinv", "regularized")),
    "regularization": Number(low=0),
    "normalize": Flag(),
    "ids": Optional(Items(Instance(Hashable))),
    "digest": Word(),
}


class GraphState(BaseState):
    """K = S (B + shared P^T P) S + diag(alone): B a kernel of the Laplacian, P the components, S a diagonal of scales.

    `shared` is R_L for the paper's PDLaplacian (M^+ = L^+ + R_L 11^T), and 4 R_L for the pseudoinverse of a graph in
    pieces. There L^+ alone, centred piece by piece, would make the neighbours in a small piece opposites: -1 for the two
    ends of an edge alone. Vertices without an edge, of which L^+ knows nothing, have K_ii = 1 and nothing in common with
    any other.
    """

    kind: Kind = "operator"

    def __init__(self, A: Any, kernel: LaplacianKernel, how: dict[str, Any], ids: list[Hashable] | None) -> None:
        self._A, self._kernel, self._how, self.ids = A, kernel, how, ids
        label = components(A)
        n, pieces = len(label), int(label.max()) + 1
        raw = kernel.diagonal()
        pull = {"pd": 1.0, "pinv": _PULL if pieces > 1 else 0.0, "regularized": 0.0}[how["kind"]]
        self._shared = pull * float(raw.max())
        self._alone: NDArray[np.bool_] = (np.diff(A.indptr) == 0) & (how["kind"] != "regularized")
        whole = raw + self._shared
        root = np.sqrt(np.where(self._alone, 1.0, whole) if how["normalize"] else np.full(n, whole.max()))
        self._scale: Floats = np.where(self._alone, 0.0, 1.0 / root)
        self._diagonal: Floats = np.where(self._alone, 1.0, whole * self._scale**2)
        self._member = sp.csr_array((np.ones(n), (label, np.arange(n))), shape=(pieces, n))
        self.is_pd_laplacian = how["kind"] == "pd" and not how["normalize"]
        self._digest = graph_digest(A, ids, how)

    @classmethod
    def of(cls, A: Any, how: dict[str, Any], ids: list[Hashable] | None, *, method: str) -> GraphState:
        """The kernel of a checked adjacency matrix, by "dense" or "sparse" inversion, or what "auto" finds cheaper."""
        rho = _rho(A, how) if how["kind"] == "regularized" else None
        n = A.shape[0]
        if method == "dense" or (method == "auto" and n <= _SMALL):
            return cls(A, written_kernel(A, rho), how, ids)
        kernel = PseudoInverse(A) if rho is None else Regularized(A, rho)
        if method == "auto" and n <= DENSE_LIMIT and kernel.fill > n * n / _DEARER:
            return cls(A, written_kernel(A, rho), how, ids)
        return cls(A, kernel, how, ids)

    def cheapest(self) -> SideState:
        """This state, or K in memory where it was written out."""
        if not isinstance(self._kernel, Written):
            return self
        return DenseState(self.dense(), self.ids, self._digest, is_pd_laplacian=self.is_pd_laplacian)

    @property
    def size(self) -> int:
        return len(self._scale)

    def diagonal(self) -> Floats:
        return self._diagonal.copy()

    def columns(self, index: Any) -> Floats:
        index = check_index(index, self.size)
        out = np.empty((self.size, len(index)))
        for begin in range(0, len(index), _BLOCK):
            block = index[begin : begin + _BLOCK]
            units = np.zeros((self.size, len(block)))
            units[block, np.arange(len(block))] = 1.0
            out[:, begin : begin + _BLOCK] = self.apply(units)
        return out

    def apply(self, V: Floats) -> Floats:
        wide = V if V.ndim == 1 else V.T  # scales along the last axis, whichever V is
        scaled = np.ascontiguousarray((wide * self._scale).T)
        product = self._kernel.apply(scaled)
        if self._shared:
            product = product + self._shared * (self._member.T @ (self._member @ scaled))
        back: Floats = product.T * self._scale + wide * self._alone
        return np.ascontiguousarray(back.T)

    def energy(self, R: Floats) -> float:
        """tr(R^T K^-1 R) for R (size, k), infinite when K is singular. O(edges k).

        On a piece of n vertices the inverse of L^+ + shared 11^T is L + 11^T / (n^2 shared).
        """
        regularized = self._how["kind"] == "regularized"
        if not (regularized or self._shared):
            return float("inf")
        joined = np.where(self._alone, 0.0, 1.0)[:, None]
        X = R * joined / np.where(self._alone, 1.0, self._scale)[:, None]
        energy = float((X * (laplacian(self._A) @ X)).sum() + (R**2 * self._alone[:, None]).sum())
        if regularized:
            return energy + _rho(self._A, self._how) * float((X**2).sum())
        means = (self._member @ X) / np.asarray(self._member.sum(axis=1)).reshape(-1, 1)
        return energy + float((means**2).sum()) / self._shared

    def dense(self) -> Floats:
        """K, exactly symmetric."""
        K = super().dense()
        return (K + K.T) / 2

    def state(self) -> dict[str, Any]:
        A = self._A
        arrays = {"indptr": A.indptr.copy(), "indices": A.indices.copy(), "data": A.data.copy()}
        return {"type": "graph", **arrays, **self._how, "ids": self.ids, "digest": self._digest}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], begun: Any = None) -> GraphState:
        """The state that was saved: the factor is made again."""
        check_parts(state, _STATE, "side information", {})
        indptr = state["indptr"]
        A = sp.csr_array((field(state, "data"), field(state, "indices"), indptr), shape=(len(indptr) - 1,) * 2)
        A.check_format(full_check=True)  # out of a file, and SciPy's own routines trust every index
        if not A.has_canonical_format or A.diagonal().any() or (A != A.T).nnz:
            refuse_state("its graph is not symmetric, names an edge twice or joins an id with itself")
        check_ids(state["ids"], A.shape[0], "A")
        how = {name: field(state, name) for name in ("kind", "regularization", "normalize")}
        return cls.of(A, how, field(state, "ids"), method="sparse")


def _rho(A: Any, how: Mapping[str, Any]) -> float:
    """The share of the mean degree that kind "regularized" adds to the diagonal of L."""
    return float(how["regularization"] * A.sum() / A.shape[0])


def graph_digest(A: Any, ids: list[Hashable] | None, how: Mapping[str, Any]) -> str:
    """The name of a graph and of what is made of it."""
    return digest_of(indptr=A.indptr, indices=A.indices, data=A.data, ids=ids, **how)
