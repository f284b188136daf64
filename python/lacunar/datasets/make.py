"""Tables drawn at random: the synthetic experiments of the papers, each with the complete data beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar.datasets.hide import check_count, check_number, check_rate, hide_blocks, hide_mcar

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def make_subspace_regression(
    n_samples: int = 1000,
    n_features: int = 20,
    rank: int = 10,
    *,
    share_observed: float = 0.5,
    random_state: Any = None,
) -> Bunch:
    """Rows in a random subspace, a linear target, entries missing completely at random: Figure 2 of the KARMA paper.

    x = U z, z standard normal, U a random basis; the target is linear in x and has mean 0 and variance 1 over the rows. O(n d rank).

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1000, 20 and 10
        n, d and r of the paper's m, d and r.
    share_observed : float, default=0.5
        Probability that an entry is observed; the paper's p.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data : ndarray of shape (n, d)
            NaN where missing.
        target : ndarray of shape (n,)
            Of variance 1.
        complete : ndarray of shape (n, d)
            With no entry missing.
        basis : ndarray of shape (d, rank)
            U, of orthonormal columns.
        coef, intercept : ndarray of shape (d,) and float
            target = complete @ coef + intercept.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, `rank` exceeds `n_features`, or the share is outside [0, 1].

    References
    ----------
    Hazan, Livni and Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Section 5.1.1.

    Examples
    --------
    >>> from lacunar.datasets import make_subspace_regression
    >>> data = make_subspace_regression(100, share_observed=0.7, random_state=0)
    >>> data.data.shape, bool(abs(data.target.std() - 1) < 1e-12)
    ((100, 20), True)
    """
    rng = generator(random_state)
    U, complete = _subspace_rows(rng, n_samples, n_features, rank)
    coef = U @ rng.normal(size=rank)
    raw = complete @ coef
    spread = raw.std() or 1.0
    hidden = hide_mcar(complete, share_observed, random_state=_seed(rng))
    return Bunch(
        data=hidden.data,
        target=(raw - raw.mean()) / spread,
        complete=complete,
        basis=U,
        coef=coef / spread,
        intercept=float(-raw.mean() / spread),
    )


def make_block_margin(
    n_samples: int = 1000,
    n_features: int = 200,
    rank: int = 20,
    *,
    n_blocks: int = 3,
    share_observed: float = 1 / 3,
    margin: float | None = None,
    random_state: Any = None,
) -> Bunch:
    """Rows in a random subspace whose columns are seen in blocks: the large-margin experiment of Figure 3 of the KARMA paper.

    A random division of columns into blocks, each of which tells the whole row as long as it has `rank` columns. Every row
    sees each block with probability `share_observed`, given that it sees one. O(n d rank), times the draws a margin needs.

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1000, 200 and 20
    n_blocks : int, default=3
    share_observed : float, default=1/3
        Probability that a block is seen, in (0, 1].
    margin : float or None, default=None
        None: the target is w.x, of variance 1. Otherwise it is the sign of w.x, and only rows with abs(w.x) >= margin, in standard
        deviations and at most 3, are drawn.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, target, complete, basis
            As of `make_subspace_regression`.
        coef : ndarray of shape (d,)
            w: E (w.x)^2 = 1 before rows are refused for their margin.
        blocks : list of list of int
            Columns of every block.
        seen : ndarray of shape (n, n_blocks), bool
            Which blocks a row sees.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, `rank` or `n_blocks` exceed `n_features`, the share is outside (0, 1] or the margin
        outside [0, 3].

    References
    ----------
    Hazan, Livni and Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Section 5.1.2.

    Examples
    --------
    >>> from lacunar.datasets import make_block_margin
    >>> data = make_block_margin(100, margin=1.0, random_state=0)
    >>> bool(((data.complete @ data.coef) * data.target).min() >= 1)
    True
    """
    check_count("n_blocks", n_blocks, most=check_count("n_features", n_features))
    rng = generator(random_state)
    if margin is not None:
        check_rate("margin", margin, high=3.0)
    U, complete = _subspace_rows(rng, n_samples, n_features, rank)
    direction = rng.normal(size=rank)
    coef = U @ (direction / np.linalg.norm(direction))
    while margin is not None and (weak := np.abs(complete @ coef) < margin).any():
        complete[weak] = rng.normal(size=(int(weak.sum()), rank)) @ U.T
    order = rng.permutation(n_features)
    blocks = [sorted(int(j) for j in order[k::n_blocks]) for k in range(n_blocks)]
    hidden = hide_blocks(complete, blocks, share_observed, random_state=_seed(rng))
    value = complete @ coef
    target = value if margin is None else np.where(value >= 0, 1, -1)
    return Bunch(
        data=hidden.data, target=target, complete=complete, basis=U, coef=coef, blocks=blocks, seen=hidden.seen
    )


def make_sparse_regression(
    n_samples: int = 1600,
    n_features: int = 100,
    rank: int = 30,
    *,
    n_nonzero: int = 10,
    share_observed: float = 0.75,
    share_test: float = 0.75,
    sigma_x: float = 0.0,
    sigma_y: float = 0.0,
    n_validation: int = 1000,
    n_test: int = 2000,
    random_state: Any = None,
) -> Bunch:
    """Noisy rows near a subspace, a target sparse in its coordinates, three sets: Figure 1 of the SLRM paper.

    X = A U' + E_x and y = A w + e_y with standard normal A, orthonormal U and a w with `n_nonzero` normal entries. Training,
    validation and test rows share U and w. O(n d rank).

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1600, 100 and 30
        n, D and d of the paper.
    n_nonzero : int, default=10
        Entries of w that are not 0, at most `rank`.
    share_observed, share_test : float, default=0.75
        The paper's p for training rows and q for validation and test rows.
    sigma_x, sigma_y : float, default=0.0
        Standard deviations of the noise on entries and on targets.
    n_validation, n_test : int, default=1000 and 2000
        Rows of the other sets; may be 0.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, target, complete : ndarray of shape (n, D), (n,) and (n, D)
            Training rows with missing entries, targets, and the complete rows, noise included.
        validation, test : Bunch
            The same three of the other sets.
        basis : ndarray of shape (D, rank)
            U.
        weights : ndarray of shape (rank,)
            w.
        codes : ndarray of shape (n, rank)
            A.

    Raises
    ------
    TypeError, ValueError
        When a size, a share or a standard deviation is out of range.

    References
    ----------
    Ganti and Willett, "Sparse Linear Regression With Missing Data", 2015, Section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import make_sparse_regression
    >>> data = make_sparse_regression(200, sigma_x=0.1, random_state=0)
    >>> data.test.data.shape, int(np.count_nonzero(data.weights))
    ((2000, 100), 10)
    """
    for name, sigma in (("sigma_x", sigma_x), ("sigma_y", sigma_y)):
        if not 0 <= check_number(name, sigma, "a number of at least 0") < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0; got {sigma!r}.")
    check_count("n_nonzero", n_nonzero, least=0, most=check_count("rank", rank, most=n_features))
    rng = generator(random_state)
    U = _orthonormal(rng, check_count("n_features", n_features), rank)
    w = np.zeros(rank)
    w[rng.choice(rank, n_nonzero, replace=False)] = rng.normal(size=n_nonzero)

    def drawn(n: int, share: float) -> Bunch:
        codes = rng.normal(size=(n, rank))
        complete = codes @ U.T + sigma_x * rng.normal(size=(n, n_features))
        target = codes @ w + sigma_y * rng.normal(size=n)
        hidden = hide_mcar(complete, share, random_state=_seed(rng))
        return Bunch(data=hidden.data, target=target, complete=complete, codes=codes)

    train = drawn(check_count("n_samples", n_samples), share_observed)
    validation = drawn(check_count("n_validation", n_validation, least=0), share_test)
    test = drawn(check_count("n_test", n_test, least=0), share_test)
    return Bunch(**train, validation=validation, test=test, basis=U, weights=w)


def _orthonormal(rng: np.random.Generator, d: int, k: int) -> Floats:
    """A random (d, k) matrix of orthonormal columns."""
    return np.asarray(np.linalg.qr(rng.normal(size=(d, k)))[0])


def _subspace_rows(rng: np.random.Generator, n: int, d: int, rank: int) -> tuple[Floats, Floats]:
    """A random basis (d, rank) and rows (n, d) of standard normal coordinates in it."""
    U = _orthonormal(rng, check_count("n_features", d), check_count("rank", rank, most=d))
    return U, rng.normal(size=(check_count("n_samples", n), rank)) @ U.T


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31 - 1))


def make_coins(
    n_samples: int = 1000,
    n_features: int = 8,
    n_coins: int = 1,
    *,
    eps: float = 0.01,
    share_observed: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """The family behind Theorem 4: k coins of bias 16 eps, of which a learner must find the sides that fall more often.

    A row is, times a random sign, u_j = (e_j + e_{j+k}) / sqrt 2 where coin j shows heads and u_{j+k} = (e_{j+k} - e_j) / sqrt 2
    where it shows tails, j uniform among the k coins. The best subspace holds the likelier side of every coin, and the excess of
    the other side is 16 eps / k. Single entries tell nothing: only pairs (j, j + k) do. O(n d).

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 8
    n_coins : int, default=1
        k, at most half of `n_features`.
    eps : float, default=0.01
        Accuracy for which the family is hard, in [0, 1/16]; heads have probability (1 + 16 eps) / 2 or (1 - 16 eps) / 2.
    share_observed : float, default=1.0
        Probability that an entry is observed: r/d of the passive model.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray of shape (n, d)
            Rows with missing entries, and complete.
        components : ndarray of shape (k, d)
            Orthonormal rows of the best subspace.
        second_moment : ndarray of shape (d, d)
            E x x'.
        heads : ndarray of shape (k,)
            Probabilities of heads.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, 2 k exceeds `n_features`, or an option is out of range.

    References
    ----------
    Gonen, Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR 2016, Theorems 4 and 5.

    Examples
    --------
    >>> from lacunar.datasets import make_coins
    >>> data = make_coins(100, 8, 2, eps=0.02, random_state=0)
    >>> data.complete.shape, data.components.shape
    ((100, 8), (2, 8))
    """
    d, k = check_count("n_features", n_features, least=2), check_count("n_coins", n_coins, most=n_features // 2)
    bias = 16 * check_rate("eps", eps, high=1 / 16)
    rng = generator(random_state)
    heads = (1 + bias * rng.choice([-1, 1], size=k)) / 2
    atoms = np.zeros((2, k, d))
    own = np.arange(k)
    atoms[0, own, own] = atoms[0, own, own + k] = atoms[1, own, own + k] = 0.5**0.5
    atoms[1, own, own] = -(0.5**0.5)
    coin = rng.integers(k, size=check_count("n_samples", n_samples))
    tails = (rng.random(len(coin)) >= heads[coin]).astype(int)
    complete = atoms[tails, coin] * rng.choice([-1.0, 1.0], size=(len(coin), 1))
    moment = np.einsum("sj,sja,sjb->ab", np.stack([heads, 1 - heads]) / k, atoms, atoms)
    likelier = atoms[(heads < 0.5).astype(int), own]
    return _with_missing(rng, complete, share_observed, components=likelier, second_moment=moment, heads=heads)


def make_spiked(
    n_samples: int = 1000,
    n_features: int = 50,
    spikes: ArrayLike = (3.0, 2.0, 1.0),
    *,
    noise: float = 0.0,
    support: int | None = None,
    atoms: bool = False,
    share_observed: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Rows with a spiked spectrum, in an incoherent subspace or one that lives on few columns.

    O(n d k) and the second moment's d^2.

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 50
    spikes : array-like of shape (k,), default=(3.0, 2.0, 1.0)
        Eigenvalues of the signal, positive.
    noise : float, default=0.0
        Variance added to every entry, independently.
    support : int or None, default=None
        Columns, drawn at random, on which the subspace lives, at least k. None: all, a uniformly random subspace.
    atoms : bool, default=False
        False: normal rows. True: a row's signal is one direction times a random sign and the root of the spikes' sum, drawn
        with probability proportional to its spike.
    share_observed : float, default=1.0
        Probability that an entry is observed.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray of shape (n, d)
            Rows with missing entries, and complete; the mean is 0.
        components : ndarray of shape (k, d)
            Orthonormal rows, in the order of `spikes`.
        second_moment : ndarray of shape (d, d)
            E x x'.

    Raises
    ------
    TypeError, ValueError
        When a size or an option is out of range, or a spike is not a positive number.

    References
    ----------
    Gonen, Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR 2016, Section 2: the price
    of partial information depends on how coherent the subspace is.

    Examples
    --------
    >>> from lacunar.datasets import make_spiked
    >>> data = make_spiked(100, 50, [3, 1], support=4, random_state=0)
    >>> int(data.components.any(axis=0).sum()), data.complete.shape
    (4, (100, 50))
    """
    strength = np.atleast_1d(np.asarray(spikes, dtype=np.float64))
    d, k = check_count("n_features", n_features), len(strength)
    if strength.ndim != 1 or k > d or not np.all((strength > 0) & np.isfinite(strength)):
        raise ValueError(f"spikes must be at most {d} positive numbers; got {spikes!r}.")
    if not 0 <= check_number("noise", noise, "a number of at least 0") < np.inf:
        raise ValueError(f"noise must be a finite variance of at least 0; got {noise!r}.")
    live = d if support is None else check_count("support", support, least=k, most=d)
    rng = generator(random_state)
    components = np.zeros((k, d))
    components[:, rng.permutation(d)[:live]] = np.linalg.qr(rng.normal(size=(live, k)))[0].T
    n = check_count("n_samples", n_samples)
    if atoms:
        codes = np.eye(k)[rng.choice(k, size=n, p=strength / strength.sum())] * strength.sum() ** 0.5
        codes *= rng.choice([-1.0, 1.0], size=(n, 1))
    else:
        codes = rng.normal(size=(n, k)) * np.sqrt(strength)
    complete = codes @ components + noise**0.5 * rng.normal(size=(n, d))
    moment = components.T * strength @ components + noise * np.eye(d)
    return _with_missing(rng, complete, share_observed, components=components, second_moment=moment)


def _with_missing(rng: np.random.Generator, complete: Floats, share: float, **others: Any) -> Bunch:
    hidden = hide_mcar(complete, share, random_state=_seed(rng))
    return Bunch(data=hidden.data, complete=complete, **others)


def make_biclustered(
    shape: tuple[int, int] = (100, 100),
    *,
    n_clusters: tuple[int, int] = (9, 9),
    flip: float = 0.1,
    graph_noise: float = 0.0,
    protocol: str = "paper",
    random_state: Any = None,
) -> Bunch:
    """A sign matrix of constant blocks, with flipped entries and noisy graphs over its rows and columns.

    Rows and columns fall into clusters uniformly at random, drawn again until no cluster is empty; U_ij is the sign drawn for
    the pair of their clusters (Definition 2). O(m n + m^2 + n^2) time, and memory for the matrix and the edges.

    Parameters
    ----------
    shape : (int, int), default=(100, 100)
        Rows m and columns n.
    n_clusters : (int, int), default=(9, 9)
        Clusters k of rows and l of columns, at most m and n.
    flip : float, default=0.1
        Probability that an observed label is not that of its block; the paper's p.
    graph_noise : float, default=0.0
        The paper's beta in [0, 1]: every pair of vertices is switched between edge and no edge with this probability.
    protocol : {"paper", "code"}, default="paper"
        How the graphs are made: "paper" switches pairs of the clique star of Section 4.1 and joins components at random; "code" does what the authors' code does.
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
            All entries in random order, as flat numbers: entry t is row `order[t] // n`, column `order[t] % n`.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, there are more clusters than rows, or a probability is outside [0, 1].

    References
    ----------
    Herbster, Pasteris and Tse, "Online Matrix Completion with Side Information", NeurIPS 2020, Appendix A.

    Examples
    --------
    >>> from lacunar.datasets import make_biclustered
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
        "paper" starts from the clique star of Section 4.1 (cliques, and from every other clique one vertex joined to a vertex
        of one clique), switches pairs, and joins random pairs of components by random edges until one is left. "code" is what
        the authors' published code does: it starts from the cliques alone, switches pairs, and joins a random vertex of
        every other component to one random vertex of the first component. Without noise both are clique stars.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    graph : csr_array of shape (n, n), float64
        Symmetric 0/1 adjacency without loops, connected.

    Raises
    ------
    TypeError, ValueError
        When `clusters` is not a vector with at least one vertex, `noise` is outside [0, 1] or the protocol is unknown.

    References
    ----------
    Herbster, Pasteris and Tse, "Online Matrix Completion with Side Information", NeurIPS 2020, Section 4.1 and Appendix A.

    Examples
    --------
    >>> from lacunar.datasets import make_side_graph
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
        found = rng.integers(k, size=n)
        if len(np.unique(found)) == k:
            return found
    found[rng.permutation(n)[:k]] = np.arange(k)  # k so near n that a draw without empty clusters is too rare
    return found


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
    found = []
    for i in range(len(clusters)):
        row = clusters[i + 1 :] == clusters[i]
        row[[j - i - 1 for a, j in star if a == i]] = True
        row ^= rng.random(len(row)) < noise
        others = i + 1 + np.flatnonzero(row)
        found.append(np.column_stack([np.full(len(others), i), others]))
    return np.vstack(found)


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
