"""`Graph`: which rows (or columns) are neighbours, as side information."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from lacunar.completion._side._base import SideInformation
from lacunar.completion._side._checks import check_ids, check_positive, check_weight
from lacunar.completion._side._factor import FactorState
from lacunar.completion._side._graph_input import components, read_adjacency
from lacunar.completion._side._graph_state import GraphState, graph_digest
from lacunar.completion._side._spectral import diffusion_features
from lacunar.completion._side._state import DENSE_LIMIT, SideState, plain_ids

KINDS = ("pinv", "regularized", "pd", "spectral")


class Graph(SideInformation):
    """Neighbours are likely to be alike: a kernel of the graph's Laplacian L = D - A (sections 2 and 4.1).

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (n, n), pandas DataFrame, or networkx graph
        Symmetric, weights of edges not negative. Loops are ignored. What a sparse matrix does not store is no edge.
    kind : {"pinv", "regularized", "pd", "spectral"}, default="pinv"
        - "pinv": L^+. What a graph in pieces knows is who belongs together: vertices of a piece share a direction.
        - "regularized": (L + rho I)^-1 with rho = `regularization` times the mean degree; for any graph.
        - "pd": the inverse of the paper's PDLaplacian, L^+ + R_L 11^T; for a connected graph.
        - "spectral": diffusion along edges, cut to its `n_components` slowest modes. For crowded graphs (friends, links,
          votes), where L^+ says little more than degrees, and for graphs whose factor fills up. As cheap as `Features`.
    ids : sequence of n hashable ids, optional
        Default: the index of a DataFrame, the nodes of a networkx graph, else 0 to n - 1.
    regularization : float, default=0.1
        Of "regularized".
    n_components : int, default=32
        Modes of "spectral".
    diffusion : float, default=5.0
        How far "spectral" looks along edges.
    normalize : bool, default=True
        Unit diagonal, K_ij / sqrt(K_ii K_jj). False: K over its largest diagonal entry; with kind="pd" that is the paper.
    method : {"auto", "dense", "sparse"}, default="auto"
        "dense" writes K out (at most 4000 vertices); "sparse" solves with a sparse factor of L. "auto": dense up to 1000
        vertices, and up to 4000 where a product with K is the cheaper one. "spectral" has no use for it.

    Notes
    -----
    `begin` factorises once; diag(L^+) and R_L are exact, by inverting on the pattern of the factor only. Cost and memory are
    those of the factor: about n log n for graphs in the plane, and much more for graphs of neighbours in many dimensions,
    for which `Features` are the cheaper side information. Digits: as dense to 1e-12.

    `begin` raises ValueError for an adjacency that is not square, finite, symmetric and non-negative or has no edge, and
    for a graph in pieces with kind="pd"; it warns of pieces with kind="pinv".

    Examples
    --------
    >>> from lacunar.completion import Graph
    >>> path = [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> Graph(path, kind="pd", normalize=False).begin().dense().round(2).tolist()
    [[1.0, 0.4, 0.1], [0.4, 0.7, 0.4], [0.1, 0.4, 1.0]]
    """

    def __init__(
        self,
        adjacency: Any,
        kind: str = "pinv",
        ids: Sequence[Hashable] | None = None,
        *,
        regularization: float = 0.1,
        n_components: int = 32,
        diffusion: float = 5.0,
        normalize: bool = True,
        method: str = "auto",
    ) -> None:
        self.adjacency, self.kind, self.ids = adjacency, kind, ids
        self.regularization, self.normalize, self.method = regularization, normalize, method
        self.n_components, self.diffusion = n_components, diffusion

    def begin(self) -> SideState:
        """The state an engine reads, of kind "dense" or "operator"; of kind "factor" for "spectral"."""
        for name, known in (("kind", KINDS), ("method", ("auto", "dense", "sparse"))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}; got {getattr(self, name)!r}.")
        how = {
            "kind": self.kind,
            "regularization": check_positive(self.regularization, "regularization"),
            "normalize": bool(self.normalize),
        }
        A, names = read_adjacency(self.adjacency)
        ids = check_ids(self.ids if self.ids is not None else names, A.shape[0], "adjacency")
        if self.kind == "spectral":
            return self._spectral(A, ids)
        self._see_pieces(A)
        if self.method == "dense" and A.shape[0] > DENSE_LIMIT:
            raise ValueError(
                f"method='dense' is for at most {DENSE_LIMIT} vertices; got {A.shape[0]}. Use method='sparse'."
            )
        return GraphState.of(A, how, ids, method=self.method).cheapest()

    def _spectral(self, A: Any, ids: list[Hashable] | None) -> SideState:
        k, diffusion, normalize = (
            self.n_components,
            check_weight(self.diffusion, "diffusion", high=np.inf),
            bool(self.normalize),
        )
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise ValueError(f"n_components must be an integer above 0; got {k!r}.")
        Phi = diffusion_features(A, int(k), diffusion, normalize=normalize)
        how = {"kind": "spectral", "n_components": int(k), "diffusion": diffusion, "normalize": normalize}
        return FactorState(Phi, 0.0, 0.0, ids, graph_digest(A, ids, how))

    def _plain_params(self) -> dict[str, Any]:
        A, names = read_adjacency(self.adjacency)
        return {"adjacency": A, "ids": plain_ids(self.ids if self.ids is not None else names)}

    def _see_pieces(self, A: Any) -> None:
        sizes = np.bincount(components(A))
        if len(sizes) == 1 or self.kind == "regularized":
            return
        came = f"the graph has {len(sizes)} pieces, {int((sizes == 1).sum())} of them single vertices"
        if self.kind == "pd":
            raise ValueError(
                f"kind='pd' needs a connected graph; {came}. Use kind='regularized' or 'pinv', or join them."
            )
        warnings.warn(
            f"{came}: ids of different pieces have nothing in common, those of one piece much. kind='regularized' "
            "weighs pieces by their edges instead.",
            UserWarning,
            stacklevel=3,
        )
