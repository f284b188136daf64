"""Graphs as side information: sparse and dense against the formulas, pieces, vertices without an edge, bad input."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import side as slow
from sklearn.base import clone

from lacunar import _core
from lacunar.completion import Graph, Mix
from lacunar.completion import graph as graphs
from lacunar.completion.graph import SparseInverse
from lacunar.papers.completion import make_biclustered

KINDS = ("pinv", "regularized", "pd")


def neighbours(n, dim=2, k=6, seed=0, weights=True):
    """A connected graph of nearest neighbours with random weights, csr."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, dim))
    near = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1)[:, 1 : k + 1]
    A = sp.lil_array((n, n))
    for i in range(n):
        A[i, near[i]] = rng.uniform(0.1, 2.0, k) if weights else 1.0
        A[i, (i + 1) % n] = 0.5
    A = sp.csr_array(A)
    return A.maximum(A.T).tocsr()


def in_pieces():
    """Three pieces of 20, 7 and 2 vertices and two vertices without an edge, shuffled."""
    parts = [neighbours(20), neighbours(7, k=2), [[0, 3.0], [3.0, 0]], [[0.0]], [[0.0]]]
    order = np.random.default_rng(3).permutation(31)
    return sp.csr_array(sp.block_diag(parts, format="csr"))[order][:, order]


def quietly(descriptor):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return descriptor.begin()


def expected(A, kind, normalize=True, regularization=0.1):
    A = A.toarray()
    if kind == "regularized":
        K = np.linalg.inv(slow.laplacian(A) + regularization * A.sum() / len(A) * np.eye(len(A)))
    else:
        K = np.linalg.inv(slow.pd_laplacian(A)) if kind == "pd" else slow.pinv_kernel(A)
    return slow.corr(K) if normalize else K / np.diag(K).max()


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [2, 3, 40, 150])
def test_kernel_is_that_of_the_formula(n, kind, normalize, method):
    A = neighbours(n, k=min(6, n - 1))
    side = Graph(A, kind, normalize=normalize, method=method).begin()
    K = expected(A, kind, normalize)
    assert side.kind == ("dense" if method == "dense" else "operator")
    np.testing.assert_allclose(side.dense(), K, atol=1e-12)
    np.testing.assert_allclose(side.diagonal(), np.diag(K), atol=1e-12)
    assert side.diagonal().max() <= 1 + 1e-14
    V = np.random.default_rng(1).normal(size=(n, 3))
    np.testing.assert_allclose(side.apply(V), K @ V, atol=1e-12)
    np.testing.assert_allclose(side.apply(V[:, 1]), K @ V[:, 1], atol=1e-12)
    columns = side.columns([n - 1, 0])
    np.testing.assert_allclose(columns, K[:, [n - 1, 0]], atol=1e-12)
    assert columns.flags.c_contiguous
    assert side.apply(V).flags.c_contiguous
    assert side.columns([]).shape == (n, 0)


def test_the_papers_form():
    """kind="pd", normalize=False is M^+ / R_M with R_M = 2 R_L, as Algorithm 1 has it up to its own 1/2."""
    A = neighbours(30)
    M = slow.pd_laplacian(A.toarray())
    inverse = np.linalg.pinv(M)
    radius = np.diag(inverse).max()
    assert radius == pytest.approx(2 * np.diag(slow.pinv_kernel(A.toarray())).max())
    for method in ("dense", "sparse"):
        side = Graph(A, "pd", normalize=False, method=method).begin()
        np.testing.assert_allclose(side.dense(), inverse / radius, atol=1e-13)
        assert side.is_pd_laplacian
    assert not Graph(A, "pd").begin().is_pd_laplacian


@pytest.mark.parametrize("method", ["dense", "sparse"])
@pytest.mark.parametrize("normalize", [True, False])
def test_pieces_and_vertices_without_an_edge(method, normalize):
    A = in_pieces()
    with pytest.warns(UserWarning, match="has 5 pieces, 2 of them single vertices"):
        side = Graph(A, normalize=normalize, method=method, kind="pinv").begin()
    K, alone = slow.pieces_kernel(A.toarray()), A.sum(axis=1) == 0
    K[alone, alone] = 1.0 if normalize else np.nanmax(np.diag(K))
    K = slow.corr(K) if normalize else K / np.diag(K).max()
    np.testing.assert_allclose(side.dense(), K, atol=1e-12)
    assert side.diagonal().min() > 0  # nobody is dead
    np.testing.assert_allclose(side.diagonal()[alone], 1)
    pair = np.flatnonzero(np.asarray((A == 3.0).sum(axis=1)).ravel())
    assert K[pair[0], pair[1]] > 0.2  # the ends of an edge are alike, not opposites
    whole = quietly(Graph(A, "regularized", normalize=normalize, method=method))
    np.testing.assert_allclose(whole.dense(), expected(A, "regularized", normalize), atol=1e-12)
    with pytest.raises(ValueError, match="needs a connected graph; the graph has 5 pieces"):
        Graph(A, "pd", method=method).begin()


@pytest.mark.parametrize("tail", [0, 1, 50, 10_000])
def test_selected_inversion_with_any_dense_tail(tail, monkeypatch):
    """The diagonal does not depend on how much of the inverse LAPACK makes."""
    monkeypatch.setattr(graphs, "_dense_from", lambda counts: max(0, len(counts) - tail))
    M = sp.csc_array(slow.laplacian(neighbours(120, dim=3).toarray()) + 0.01 * np.eye(120))
    np.testing.assert_allclose(SparseInverse(M).diagonal(), np.diag(np.linalg.inv(M.toarray())), rtol=1e-12)


def test_a_large_dense_tail_is_chosen_by_itself():
    A = neighbours(900, dim=6, k=10, weights=False)
    inverse = SparseInverse(sp.csc_array(sp.diags_array(A.sum(axis=1)) - A + sp.eye_array(900)))
    counts = np.diff(inverse._lower[0])
    assert 0 < graphs._dense_from(counts) <= 400
    np.testing.assert_allclose(inverse.diagonal(), np.diag(inverse.apply(np.eye(900))), rtol=1e-12)


def test_sizes_of_the_compiled_function_are_checked():
    L = (np.array([0, 1, 1], np.int64), np.array([1], np.int32), np.array([0.5]))
    np.testing.assert_allclose(_core.selected_inverse(*L, np.array([2.0, 1.0]), np.empty((0, 0))), [0.75, 1.0])
    with pytest.raises(ValueError, match="indptr has 3 elements, not 2"):
        _core.selected_inverse(*L, np.ones(1), np.empty((0, 0)))
    with pytest.raises(ValueError, match="tail is not a square block"):
        _core.selected_inverse(*L, np.ones(2), np.ones((1, 2)))
    with pytest.raises(ValueError, match="tail is not a square block"):
        _core.selected_inverse(*L, np.ones(2), np.eye(3))
    place = np.array([1, 0], np.int32)  # A = [[1.5, 1], [1, 2]]
    solved = _core.factor_solve(*L, np.array([2.0, 1.0]), place, np.eye(2))
    np.testing.assert_allclose(solved, np.linalg.inv([[1.5, 1.0], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="place has 2 elements, not 1"):
        _core.factor_solve(np.zeros(2, np.int64), *L[1:], np.ones(1), place, np.eye(1))
    with pytest.raises(ValueError, match="right is not a table"):
        _core.factor_solve(*L, np.ones(2), place, np.eye(3))


def test_solves_are_exact_and_do_not_depend_on_the_columns_beside():
    M = sp.csc_array(slow.laplacian(neighbours(200, dim=2).toarray()) + 0.01 * np.eye(200))
    inverse = SparseInverse(M)
    V = np.random.default_rng(0).normal(size=(200, 7))
    together = inverse.apply(V)
    np.testing.assert_allclose(together, np.linalg.solve(M.toarray(), V), rtol=1e-10, atol=1e-10)
    for k in range(7):
        np.testing.assert_array_equal(inverse.apply(V[:, k]), together[:, k])
    np.testing.assert_array_equal(inverse.apply(np.asfortranarray(V[:, :5])), together[:, :5])
    assert inverse.apply(V[:, :0]).shape == (200, 0)


def test_matrices_that_are_not_positive_definite_are_refused():
    with pytest.raises(ValueError, match="positive definite"):
        SparseInverse(sp.csc_array(np.diag([1.0, -1.0, 2.0])))


def test_a_pivot_of_exactly_zero_is_refused():
    """SuperLU says so in a RuntimeError of its own."""
    with pytest.raises(ValueError, match="must be positive definite to rounding"):
        SparseInverse(sp.csr_array([[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["dense", "sparse"])
def test_graphs_are_restored_from_snapshots(kind, method):
    descriptor = Mix(Graph(neighbours(25), kind, ids=[f"v{k}" for k in range(25)], method=method))
    side = descriptor.begin()
    again = descriptor.begin()
    again.grow_from(side.state())
    np.testing.assert_array_equal(again.dense(), side.dense())
    assert (again.ids, again.kind, again.digest) == (side.ids, side.kind, side.digest)
    other = Graph(neighbours(25), kind, regularization=0.2).begin()
    with pytest.raises(ValueError, match="of this side information"):
        other.grow_from(side.state())
    with pytest.raises(ValueError, match="takes no more; got 'v25'"):
        side.grow("v25")


def test_small_or_crowded_graphs_are_written_out():
    assert Graph(neighbours(200), kind="pinv").begin().kind == "dense"
    sparse = sp.diags_array([np.ones(1200), np.ones(1200)], offsets=[-1, 1], shape=(1201, 1201))
    side = Graph(sparse, kind="pinv").begin()
    assert side.kind == "operator"
    assert side.dense().shape == (1201, 1201)
    long = Graph(
        sp.diags_array([np.ones(4000), np.ones(4000)], offsets=[-1, 1], shape=(4001, 4001)), kind="pinv"
    ).begin()
    with pytest.raises(ValueError, match="at most 4000 ids; there are 4001"):
        long.dense()


def test_graphs_of_every_kind_say_the_same():
    A = neighbours(12, k=3)
    K = expected(A, "pinv")
    names = list("abcdefghijkl")
    looped = A.toarray() + np.diag(np.arange(12.0))
    frame = pd.DataFrame(looped, index=names, columns=names)
    for graph in (A, A.tocoo(), sp.csr_matrix(A), looped, frame, looped.tolist()):
        np.testing.assert_allclose(Graph(graph, kind="pinv").begin().dense(), K, atol=1e-12)
    assert Graph(frame, kind="pinv").begin().ids == names
    assert Graph(A, ids=names, kind="pinv").begin().ids == names


def test_networkx_graphs():
    nx = pytest.importorskip("networkx")
    graph = nx.Graph([("x", "y", {"weight": 2.0}), ("y", "z"), ("x", "x")])
    side = Graph(graph, kind="pinv").begin()
    assert side.ids == ["x", "y", "z"]
    A = sp.csr_array(np.array([[0, 2.0, 0], [2, 0, 1], [0, 1, 0]]))
    np.testing.assert_allclose(side.dense(), expected(A, "pinv"), atol=1e-13)
    twice = nx.MultiGraph([("x", "y"), ("x", "y"), ("y", "z")])
    np.testing.assert_allclose(Graph(twice, kind="pinv").begin().dense(), expected(A, "pinv"), atol=1e-13)
    with pytest.raises(ValueError, match="directed"):
        Graph(nx.DiGraph([("x", "y")]), kind="pinv").begin()
    with pytest.raises(ValueError, match="at least one edge"):
        Graph(nx.empty_graph(3), kind="pinv").begin()


def test_a_graph_of_the_networkx_protocol():
    """The same without networkx: only is_directed, nodes and edges are asked for."""

    class Pair:
        nodes = ("x", "y")

        def is_directed(self):
            return False

        def edges(self, data, default):
            return [("x", "y", default)]

    np.testing.assert_allclose(Graph(Pair(), kind="pinv").begin().dense(), [[1, -1], [-1, 1]], atol=1e-15)


PATH = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def but(at, value):
    A = PATH.copy()
    A[at] = value
    return A


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"adjacency": but((0, 1), np.nan)}, "must be finite; got nan in row 0, column 1"),
        ({"adjacency": but((2, 1), np.inf)}, "must be finite; got inf in row 2, column 1"),
        ({"adjacency": but((1, 2), -1.0)}, r"must be not negative; got -1\.0 in row 1, column 2"),
        ({"adjacency": but((0, 2), 1.0)}, "must be symmetric; got 1 in row 0, column 2 and 0 in row 2, column 0"),
        ({"adjacency": np.ones((2, 4))}, r"must be square.*\(2, 4\)"),
        ({"adjacency": np.empty((0, 0))}, "must be square"),
        ({"adjacency": np.eye(3)}, "at least one edge"),
        ({"adjacency": "friends"}, "matrix of weights, edges or a networkx graph; got 'friends'. Pass"),
        ({"adjacency": []}, r"got shape \(0,\). Pass"),
        ({"adjacency": [("a", "b"), ("a", "c", "far")]}, r"numbers; got \('a', 'c', 'far'\) at position 1. Leave"),
        ({"adjacency": PATH, "ids": ["a", "b"]}, "got 2 ids for 3 rows"),
        ({"adjacency": PATH, "kind": "laplacian"}, "kind must be one of auto, pinv, regularized, pd, spectral"),
        ({"adjacency": PATH, "method": "fast"}, "method must be one of auto, dense, sparse"),
        ({"adjacency": PATH, "regularization": 0.0}, "regularization must be above 0"),
        (
            {
                "adjacency": sp.eye_array(5000) * 0 + sp.eye_array(5000, k=1) + sp.eye_array(5000, k=-1),
                "method": "dense",
                "kind": "pinv",
            },
            "5000",
        ),
        ({"adjacency": pd.DataFrame(PATH, index=list("abc"), columns=list("abd"))}, "columns of adjacency must be"),
    ],
)
def test_graphs_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Graph(**arguments).begin()


def test_twenty_thousand_vertices_are_never_squared():
    """A long ladder: everything is found, and agrees with what solves say."""
    n = 20_000
    A = sp.diags_array(
        [np.ones(n - 1), np.ones(n - 1), 0.5 * np.ones(n - 2), 0.5 * np.ones(n - 2)], offsets=[-1, 1, -2, 2]
    )
    side = Graph(A, "pd", normalize=False).begin()
    assert side.kind == "operator"
    index = [0, n // 2, n - 1]
    np.testing.assert_allclose(side.diagonal()[index], side.columns(index)[index, range(3)], rtol=1e-9)
    assert side.diagonal().max() == pytest.approx(1)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("n", "k"), [(40, 5), (40, 40), (40, 99), (600, 12)])
def test_spectral_is_diffusion_cut_to_its_slow_modes(n, k, normalize):
    A = neighbours(n)
    side = Graph(A, "spectral", n_components=k, diffusion=3.0, normalize=normalize).begin()
    assert (side.kind, side.grows, side.factor()[0].shape) == ("factor", False, (n, min(n, k) + 1))
    K = slow.diffusion_kernel(A.toarray(), min(n, k), 3.0)
    np.testing.assert_allclose(side.dense(), slow.corr(K) if normalize else K / np.diag(K).max(), atol=1e-10)
    assert side.digest == Graph(A, "spectral", n_components=k, diffusion=3.0, normalize=normalize).begin().digest


def test_spectral_of_pieces_keeps_everybody_alive():
    A = in_pieces()
    side = Graph(A, "spectral", n_components=20).begin()  # no warning: pieces are what it finds
    np.testing.assert_allclose(side.diagonal(), 1)
    alone = A.sum(axis=1) == 0
    assert np.abs(side.dense()[alone][:, ~alone]).max() == 0
    for wrong, message in (
        ({"n_components": 0}, "n_components must be an integer above 0"),
        ({"diffusion": -1.0}, "diffusion"),
    ):
        with pytest.raises(ValueError, match=message):
            Graph(A, "spectral", **wrong).begin()


def test_a_factor_that_fills_up_is_written_out():
    """1010 vertices, 1 pair in 20 an edge at random: the factor is full, a product with K cheaper."""
    rng = np.random.default_rng(0)
    A = sp.random_array((1010, 1010), density=0.025, random_state=rng, format="csr")
    crowded = Graph(A.maximum(A.T), "regularized")
    written, sparse = crowded.begin(), clone(crowded).set_params(method="sparse").begin()
    assert (written.kind, sparse.kind) == ("dense", "operator")
    assert sparse.digest == written.digest
    V = rng.normal(size=(1010, 2))
    np.testing.assert_allclose(sparse.apply(V), written.apply(V), atol=1e-12)


def test_spectral_of_cliques_whose_eigenvalues_agree():
    """LAPACK's solver for some of the eigenvectors gave up here."""
    graph = make_biclustered((80, 80), graph_noise=0.0, random_state=0).row_graph
    Phi = Graph(graph).begin().factor()[0]
    np.testing.assert_allclose(np.linalg.norm(Phi, axis=1), 1)


def test_a_graph_of_edges():
    edges = [("a", "b"), ("b", "c", 2.0), ("c", "b", 1.0)]
    side = Graph(edges, kind="pinv").begin()
    assert side.ids == ["a", "b", "c"]
    expected = Graph([[0, 1, 0], [1, 0, 3], [0, 3, 0]], kind="pinv").begin().dense()
    np.testing.assert_allclose(side.dense(), expected)
    frame = pd.DataFrame({"from": list("abcd"), "to": list("bcdb"), "weight": [1.0, 3.0, 1.0, 1.0]})
    for table in (frame, frame[["from", "to"]]):
        assert Graph(table).begin().ids == list("abcd")
    numbers = [[0, 1, 1], [1, 2, 2], [2, 1, 1], [2, 3, 1]]
    written = Graph([[0, 1, 0, 0], [1, 0, 3, 0], [0, 3, 0, 1], [0, 0, 1, 0]]).begin().factor()[0]
    for table in (numbers, np.array(numbers), [tuple(edge) for edge in numbers]):
        np.testing.assert_allclose(Graph(table).begin().factor()[0], written)
    assert Graph(edges, ids=list("cbad")).begin().ids == list("cbad")
    with pytest.raises(ValueError, match="edges must join known ids"):
        Graph(edges, ids=["a", "b"]).begin()
    with pytest.raises(ValueError, match="an edge must be"):
        Graph([("a", "b"), ("a",)]).begin()
