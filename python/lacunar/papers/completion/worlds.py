"""The synthetic matrices and graphs of section 4.1 and Appendix A."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar.datasets.hide import check_count, check_rate

Ints = NDArray[np.int64]


def make_biclustered(
    shape: tuple[int, int] = (100, 100),
    *,
    n_clusters: tuple[int, int] = (9, 9),
    flip: float = 0.1,
    graph_noise: float = 0.0,
    protocol: str = "paper",
    random_state: Any = None,
) -> Bunch:
    """A sign matrix of constant blocks, with flipped entries and noisy graphs over its rows and
    columns.

    Rows and columns fall into clusters uniformly at random, drawn again until no cluster is empty;
    U_ij is the sign drawn for the pair of their clusters (Definition 2). O(m n + m^2 + n^2) time,
    and memory for the matrix and the edges.

    Parameters
    ----------
    shape : (int, int), default=(100, 100)
        Rows m and columns n.
    n_clusters : (int, int), default=(9, 9)
        Clusters k of rows and l of columns, at most m and n.
    flip : float, default=0.1
        Probability that an observed label is not that of its block; the paper's p.
    graph_noise : float, default=0.0
        The paper's beta in [0, 1]: every pair of vertices is switched between edge and no edge with
        this probability.
    protocol : {"paper", "code"}, default="paper"
        How the graphs are made: "paper" switches pairs of the clique star of Section 4.1 and joins
        components at random; "code" does what the authors' code does.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        labels : ndarray of shape (m, n), int8
            Noisy signs, -1 or 1: what a learner is shown, entry by entry.
        complete : ndarray of shape (m, n), int8
            U, without noise.
        blocks : ndarray of shape (k, l), int8
            U*, the sign of every pair of clusters.
        row_clusters, column_clusters : ndarray of shape (m,) and (n,), int64
            The cluster of every row and column.
        row_graph, column_graph : csr_array of shape (m, m) and (n, n), float64
            Symmetric, connected 0/1 adjacency.
        order : ndarray of shape (m n,), int64
            All entries in random order, as flat numbers: entry t is row `order[t] // n`, column
            `order[t] % n`.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, there are more clusters than rows, or a probability
        is outside [0, 1].

    References
    ----------
    Herbster, Pasteris and Tse, "Online Matrix Completion with Side Information", NeurIPS 2020,
    Appendix A.

    Examples
    --------
    >>> from lacunar.papers.completion import make_biclustered
    >>> data = make_biclustered((30, 20), n_clusters=(3, 2), random_state=0)
    >>> data.labels.shape, data.row_graph.shape, data.column_graph.shape
    ((30, 20), (30, 30), (20, 20))
    >>> print(round(float((data.labels != data.complete).mean()), 1))
    0.1
    """
    for name, pair in (("shape", shape), ("n_clusters", n_clusters)):
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"{name} must be two integers, of rows and of columns; got {pair!r}.")
    m, n = (check_count(f"shape[{side}]", size) for side, size in enumerate(shape))
    sizes = check_count("n_clusters[0]", n_clusters[0], most=m), check_count("n_clusters[1]", n_clusters[1], most=n)
    check_rate("flip", flip)
    rng = generator(random_state)
    blocks = _signs(rng, sizes)
    rows, columns = _clusters(rng, m, sizes[0]), _clusters(rng, n, sizes[1])
    complete = blocks[np.ix_(rows, columns)]
    labels = np.where(rng.random((m, n)) < flip, -complete, complete)
    graphs = [_side_graph(rng, c, graph_noise, protocol) for c in (rows, columns)]
    return Bunch(
        labels=labels,
        complete=complete,
        blocks=blocks,
        row_clusters=rows,
        column_clusters=columns,
        row_graph=graphs[0],
        column_graph=graphs[1],
        order=rng.permutation(m * n),
    )


def make_side_graph(
    clusters: ArrayLike, *, noise: float = 0.0, protocol: str = "paper", random_state: Any = None
) -> sp.csr_array:
    """A connected graph that tells, with noise, which vertices share a cluster.

    O(n^2) time, memory for the edges.

    Parameters
    ----------
    clusters : array-like of shape (n,)
        Cluster of every vertex, any labels.
    noise : float, default=0.0
        Probability that a pair of vertices is switched between edge and no edge, in [0, 1].
    protocol : {"paper", "code"}, default="paper"
        "paper" starts from the clique star of Section 4.1 (cliques, and from every other clique one
        vertex joined to a vertex of one clique), switches pairs, and joins random pairs of
        components by random edges until one is left. "code" is what the authors' published code
        does: it starts from the cliques alone, switches pairs, and joins a random vertex of every
        other component to one random vertex of the first component. Without noise both are clique
        stars.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    graph : csr_array of shape (n, n), float64
        Symmetric 0/1 adjacency without loops, connected.

    Raises
    ------
    TypeError, ValueError
        When `clusters` is not a vector with at least one vertex, `noise` is outside [0, 1] or the
        protocol is unknown.

    References
    ----------
    Herbster, Pasteris and Tse, "Online Matrix Completion with Side Information", NeurIPS 2020,
    Section 4.1 and Appendix A.

    Examples
    --------
    >>> from lacunar.papers.completion import make_side_graph
    >>> graph = make_side_graph([0, 0, 0, 1, 1], random_state=0)
    >>> print(int(graph.sum()) // 2)  # a triangle, an edge, and the edge between them
    5
    """
    labels = np.asarray(clusters)
    if labels.ndim != 1 or len(labels) == 0:
        raise ValueError(f"clusters must be a vector with at least one vertex; got shape {labels.shape}.")
    return _side_graph(generator(random_state), np.unique(labels, return_inverse=True)[1], noise, protocol)


def _signs(rng: np.random.Generator, shape: tuple[int, int]) -> NDArray[np.int8]:
    return (2 * rng.integers(2, size=shape) - 1).astype(np.int8)


def _clusters(rng: np.random.Generator, n: int, k: int) -> Ints:
    """Uniform, given that no cluster is empty: drawn again for a while, and then mended."""
    for _ in range(1000):
        clusters = rng.integers(k, size=n)
        if len(np.unique(clusters)) == k:
            return clusters
    clusters[rng.permutation(n)[:k]] = np.arange(k)  # k so near n that a draw without empty clusters is too rare
    return clusters


def _side_graph(rng: np.random.Generator, clusters: Ints, noise: float, protocol: str) -> sp.csr_array:
    check_rate("noise of the graph", noise)
    if protocol not in ("paper", "code"):
        raise ValueError(f"protocol must be one of 'paper', 'code'; got {protocol!r}.")
    literal = protocol == "paper"
    edges = _switched(rng, clusters, _star(rng, clusters) if literal else set(), noise)
    component = sp.csgraph.connected_components(_adjacency(len(clusters), edges))[1]
    join = _join_pairs if literal else _join_to_first
    return _adjacency(len(clusters), np.vstack([edges, join(rng, component)]))


def _star(rng: np.random.Generator, clusters: Ints) -> set[tuple[int, int]]:
    """Edges (i, j), i < j, from one vertex of one clique to a vertex of every other."""
    cliques = rng.permutation(np.unique(clusters))
    center, *leaves = (int(rng.choice(np.flatnonzero(clusters == c))) for c in cliques)
    return {(min(center, leaf), max(center, leaf)) for leaf in leaves}


def _switched(rng: np.random.Generator, clusters: Ints, star: set[tuple[int, int]], noise: float) -> Ints:
    """Edges (e, 2) of the cliques and the star after every pair was switched with probability `noise`."""
    edges = []
    for i in range(len(clusters)):
        row = clusters[i + 1 :] == clusters[i]
        row[[j - i - 1 for a, j in star if a == i]] = True
        row ^= rng.random(len(row)) < noise
        others = i + 1 + np.flatnonzero(row)
        edges.append(np.column_stack([np.full(len(others), i), others]))
    return np.vstack(edges)


def _join_pairs(rng: np.random.Generator, component: Ints) -> Ints:
    """Edges that join random pairs of components by a random edge, until one is left."""
    members = [np.flatnonzero(component == c) for c in range(component.max() + 1)]
    edges = []
    while len(members) > 1:
        a, b = rng.choice(len(members), 2, replace=False)
        edges.append((rng.choice(members[a]), rng.choice(members[b])))
        members[a] = np.concatenate([members[a], members[b]])
        del members[b]
    return np.array(edges, dtype=np.int64).reshape(-1, 2)


def _join_to_first(rng: np.random.Generator, component: Ints) -> Ints:
    """Edges from one random vertex of the first component to a random one of every other."""
    ends = [rng.choice(np.flatnonzero(component == c)) for c in range(component.max() + 1)]
    return np.array([(ends[0], end) for end in ends[1:]], dtype=np.int64).reshape(-1, 2)


def _adjacency(n: int, edges: Ints) -> sp.csr_array:
    ends = np.concatenate([edges, edges[:, ::-1]]).T
    return sp.csr_array(sp.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(n, n)))
