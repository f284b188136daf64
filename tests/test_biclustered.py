"""`make_biclustered` and `make_side_graph`: what Appendix A of the side-information paper says of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar.datasets import make_biclustered, make_side_graph

BOTH = pytest.mark.parametrize("protocol", ["paper", "code"])


def n_components(graph):
    return sp.csgraph.connected_components(graph, directed=False)[0]


@BOTH
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5, 1.0])
def test_graphs_are_simple_connected_and_symmetric(protocol, noise):
    graph = make_side_graph(np.arange(40) % 7, noise=noise, protocol=protocol, random_state=0)
    dense = graph.toarray()
    assert graph.dtype == np.float64
    np.testing.assert_array_equal(dense, dense.T)
    assert set(np.unique(dense)) <= {0, 1}
    assert np.trace(dense) == 0
    assert n_components(graph) == 1


@BOTH
def test_without_noise_it_is_a_clique_star(protocol):
    clusters = np.arange(50) % 9
    dense = make_side_graph(clusters, protocol=protocol, random_state=3).toarray()
    same = clusters[:, None] == clusters
    assert (dense[same].sum()) == same.sum() - len(clusters)
    between = np.argwhere(np.triu(dense * ~same))
    assert len(between) == 8
    center = [v for v in between[0] if all(v in edge for edge in between)]
    assert len(center) == 1
    R = np.eye(9)[clusters]  # the paper bounds this by k - 1; every edge of the star counts twice
    laplacian = np.diag(dense.sum(axis=0)) - dense
    assert np.trace(R.T @ laplacian @ R) == pytest.approx(2 * 8)


@BOTH
def test_noise_switches_every_pair_alike(protocol):
    clusters = np.arange(400) % 4
    same = clusters[:, None] == clusters
    dense = make_side_graph(clusters, noise=0.1, protocol=protocol, random_state=1).toarray()
    upper = np.triu(np.ones_like(same), 1)
    assert dense[same & upper].mean() == pytest.approx(0.9, abs=0.01)
    assert dense[~same & upper].mean() == pytest.approx(0.1, abs=0.01)


def test_protocols_reconnect_differently():
    # All pairs of cliques are switched off: every vertex is a component of its own.
    clusters = np.zeros(30, dtype=int)
    star = make_side_graph(clusters, noise=1.0, protocol="code", random_state=0).toarray()
    tree = make_side_graph(clusters, noise=1.0, protocol="paper", random_state=0).toarray()
    assert star.sum() == tree.sum() == 2 * 29
    assert star.sum(axis=0).max() == 29
    assert tree.sum(axis=0).max() < 10


def test_matrix_is_biclustered_with_flips():
    data = make_biclustered((300, 200), flip=0.1, random_state=0)
    np.testing.assert_array_equal(data.complete, data.blocks[data.row_clusters][:, data.column_clusters])
    assert data.blocks.shape == (9, 9)
    assert {a.dtype for a in (data.labels, data.complete, data.blocks)} == {np.dtype(np.int8)}
    assert set(np.unique(data.labels)) == {-1, 1}
    assert np.mean(data.labels != data.complete) == pytest.approx(0.1, abs=0.005)
    assert len(np.unique(data.row_clusters)) == len(np.unique(data.column_clusters)) == 9
    np.testing.assert_array_equal(np.sort(data.order), np.arange(300 * 200))
    assert data.row_graph.shape == (300, 300)
    assert data.column_graph.shape == (200, 200)


def test_as_many_clusters_as_rows():
    data = make_biclustered((12, 12), n_clusters=(12, 12), flip=0, random_state=0)
    assert len(np.unique(data.row_clusters)) == 12
    np.testing.assert_array_equal(data.labels, data.complete)


def test_same_seed_same_data():
    a, b = (make_biclustered((20, 20), graph_noise=0.2, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.row_graph.toarray(), b.row_graph.toarray())
    assert (make_biclustered((20, 20), random_state=8).labels != a.labels).any()


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        ({"shape": (0, 5)}, ValueError, r"shape\[0\].*at least 1.*got 0"),
        ({"shape": (5.0, 5)}, TypeError, r"shape\[0\].*got 5\.0"),
        ({"shape": (20, 5), "n_clusters": (3, 6)}, ValueError, r"n_clusters\[1\].*at most 5.*got 6"),
        ({"shape": 20}, ValueError, "shape must be two integers.*got 20"),
        ({"n_clusters": (3,)}, ValueError, r"n_clusters must be two integers.*got \(3,\)"),
        ({"flip": 1.2}, ValueError, r"flip.*\[0, 1\].*got 1\.2"),
        ({"flip": float("nan")}, ValueError, "flip"),
        ({"graph_noise": -0.1}, ValueError, r"noise.*got -0\.1"),
        ({"protocol": "theirs"}, ValueError, "protocol.*'paper', 'code'.*'theirs'"),
    ],
)
def test_bad_arguments(wrong, kind, message):
    with pytest.raises(kind, match=message):
        make_biclustered(**{"shape": (20, 20), **wrong})


def test_bad_clusters():
    with pytest.raises(ValueError, match=r"clusters must be a vector.*shape \(0,\)"):
        make_side_graph([])
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        make_side_graph([[0], [1]])
