"""What becomes a graph: arrays, frames, sparse matrices and networkx graphs, as a sound adjacency matrix."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from lacunar.completion._side._checks import index_names, rounding
from lacunar.completion._side._state import plain_ids


def read_adjacency(adjacency: Any) -> tuple[Any, list[Hashable] | None]:
    """(A, ids): a symmetric csr_array of positive weights, no loops; the names of its vertices when it has some."""
    if hasattr(adjacency, "is_directed") and hasattr(adjacency, "edges"):
        return _of_networkx(adjacency)
    names = index_names(adjacency)
    if names is not None and names != list(adjacency.columns):
        raise ValueError(
            "the columns of adjacency must be its index, in the same order; they differ. Use A.loc[A.index]."
        )
    return check_adjacency(adjacency), names


def _of_networkx(graph: Any) -> tuple[Any, list[Hashable] | None]:
    """Parallel edges add up; an edge without a weight has weight 1."""
    if graph.is_directed():
        raise ValueError("adjacency must be an undirected graph; got a directed one. Use graph.to_undirected().")
    nodes = list(graph.nodes)
    number = {node: k for k, node in enumerate(nodes)}
    edges = [(number[u], number[v], weight) for u, v, weight in graph.edges(data="weight", default=1.0)]
    row, column, weight = np.array(edges, dtype=np.float64).reshape(-1, 3).T
    ends = (np.concatenate([row, column]).astype(np.int64), np.concatenate([column, row]).astype(np.int64))
    A = sp.coo_array((np.concatenate([weight, weight]), ends), shape=(len(nodes), len(nodes)))
    return check_adjacency(A), plain_ids(nodes)


def check_adjacency(adjacency: Any) -> Any:
    """Square, finite, not negative, symmetric up to rounding; loops are dropped (D - A does not see them)."""
    try:
        A = sp.csr_array(adjacency, dtype=np.float64, copy=True)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"adjacency must be a matrix of weights or a networkx graph; got {type(adjacency).__name__} ({error})."
        ) from None
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(f"adjacency must be square, a row and a column for every vertex; got shape {A.shape}.")
    A.sum_duplicates()
    for wrong, wish in ((~np.isfinite(A.data), "finite"), (A.data < 0, "not negative")):
        if wrong.any():
            k = int(wrong.argmax())
            row = int(np.searchsorted(A.indptr, k, side="right")) - 1
            raise ValueError(
                f"weights of edges must be {wish}; got {A.data[k]} in row {row}, column {A.indices[k]}. Drop that edge."
            )
    gap = sp.coo_array(abs(A - A.T))
    if gap.nnz and gap.data.max() > rounding(adjacency) * A.data.max():
        k = int(gap.data.argmax())
        row, column = (int(i[k]) for i in gap.coords)
        raise ValueError(
            f"adjacency must be symmetric; got {A[row, column]:.6g} in row {row}, column {column} and {A[column, row]:.6g} "
            f"in row {column}, column {row}. Pass A.maximum(A.T) or (A + A.T) / 2."
        )
    A = sp.csr_array((A + A.T) / 2)
    A.setdiag(0.0)
    A.eliminate_zeros()
    A.sort_indices()
    if A.nnz == 0:
        raise ValueError("adjacency must have at least one edge between two vertices; got none. Use Identity.")
    numbers = (A.indices.astype(np.int32), A.indptr.astype(np.int32))  # one width: the same graph has one digest
    return sp.csr_array((A.data, *numbers), shape=A.shape)


def components(A: Any) -> NDArray[np.int64]:
    """The number of each vertex's component, (n,)."""
    labels: NDArray[np.int64] = connected_components(A, directed=False)[1].astype(np.int64)
    return labels
