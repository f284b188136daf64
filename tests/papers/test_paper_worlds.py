"""The papers' synthetic experiments: dimensions, laws and what ties data, target and complete rows together."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar.papers.completion import make_biclustered, make_side_graph
from lacunar.papers.karma import make_block_margin, make_subspace_regression
from lacunar.papers.slrm import make_sparse_regression
from lacunar.papers.subspace import make_coins, make_unit_vectors

MAKERS = {
    "subspace": lambda **k: make_subspace_regression(300, share_observed=0.6, **k),
    "block": lambda **k: make_block_margin(300, **k),
    "margin": lambda **k: make_block_margin(300, margin=1.0, **k),
    "sparse": lambda **k: make_sparse_regression(300, sigma_x=0.3, sigma_y=0.2, **k),
    "coins": lambda **k: make_coins(300, 8, 2, share_observed=0.5, **k),
    "unit": lambda **k: make_unit_vectors(300, 8, eps=0.1, share_observed=0.5, **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_observed_entries_are_the_complete_ones_and_seeds_decide(name):
    made, again, other = (MAKERS[name](random_state=s) for s in (0, 0, 1))
    seen = np.isfinite(made.data)
    assert 0 < seen.mean() < 1
    np.testing.assert_array_equal(made.data[seen], made.complete[seen])
    np.testing.assert_array_equal(made.data, again.data)
    assert not np.array_equal(made.complete, other.complete)
    assert not np.array_equal(MAKERS[name]().complete, made.complete)


def orthonormal(columns):
    np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=1e-12)


def test_subspace_regression_is_figure_2():
    made = make_subspace_regression(random_state=0)
    assert made.data.shape == (1000, 20)
    orthonormal(made.basis)
    assert np.linalg.matrix_rank(made.complete) == 10
    np.testing.assert_allclose(made.complete @ made.coef + made.intercept, made.target, atol=1e-12)
    np.testing.assert_allclose([made.target.mean(), made.target.std()], [0, 1], atol=1e-12)
    assert np.isnan(made.data).mean() == pytest.approx(0.5, abs=0.015)
    assert not np.isnan(make_subspace_regression(share_observed=1.0).data).any()


def test_blocks_are_figure_3():
    made = make_block_margin(3000, random_state=0)
    assert sorted(j for block in made.blocks for j in block) == list(range(200))
    assert made.seen.any(axis=1).all()
    # P(a block | at least one) = (1/3) / (1 - (2/3)^3)
    np.testing.assert_allclose(made.seen.mean(axis=0), (1 / 3) / (19 / 27), atol=0.04)
    for k, block in enumerate(made.blocks):
        assert np.linalg.matrix_rank(made.complete[:, block]) == 20
        np.testing.assert_array_equal(
            np.isfinite(made.data[:, block]), np.repeat(made.seen[:, [k]], len(block), axis=1)
        )
    np.testing.assert_allclose(made.complete @ made.coef, made.target)
    assert made.target.std() == pytest.approx(1, abs=0.06)


def test_margin_is_kept_and_labels_are_signs():
    made = make_block_margin(500, margin=1.0, random_state=0)
    assert set(np.unique(made.target)) == {-1, 1}
    assert ((made.complete @ made.coef) * made.target).min() >= 1
    assert np.linalg.matrix_rank(made.complete) == 20
    assert set(np.unique(make_block_margin(50, margin=0.0, random_state=0).target)) == {-1, 1}


def test_sparse_regression_is_figure_1():
    made = make_sparse_regression(3000, share_observed=0.4, sigma_x=0.3, sigma_y=0.5, random_state=0)
    orthonormal(made.basis)
    assert made.basis.shape == (100, 30)
    assert np.count_nonzero(made.weights) == 10
    assert made.data.shape == (3000, 100)
    assert made.validation.data.shape == (1000, 100)
    assert made.test.data.shape == (2000, 100)
    assert np.isfinite(made.data).mean() == pytest.approx(0.4, abs=0.01)
    for part in (made.validation, made.test):
        assert np.isfinite(part.data).mean() == pytest.approx(0.75, abs=0.01)
    for part in (made, made.validation, made.test):
        assert np.std(part.complete - part.latent @ made.basis.T) == pytest.approx(0.3, rel=0.02)
        assert np.std(part.target - part.latent @ made.weights) == pytest.approx(0.5, rel=0.1)


def test_noiseless_sparse_regression_is_exact_and_parts_may_be_empty():
    made = make_sparse_regression(100, n_validation=0, n_test=0, random_state=0)
    np.testing.assert_allclose(made.latent @ made.basis.T, made.complete, atol=1e-12)
    np.testing.assert_allclose(made.complete @ made.basis @ made.weights, made.target, atol=1e-12)
    assert made.test.data.shape == (0, 100)


@pytest.mark.parametrize("k", [1, 3])
def test_coins_are_theorem_4(k):
    made = make_coins(200_000, 8, k, eps=0.02, random_state=0)
    np.testing.assert_allclose(np.abs(made.heads - 0.5), 0.16)
    np.testing.assert_allclose(np.sum(made.complete**2, axis=1), 1)
    assert set(np.count_nonzero(made.complete, axis=1)) == {2}
    np.testing.assert_allclose(made.complete.T @ made.complete / 200_000, made.second_moment, atol=0.006)
    orthonormal(made.components.T)
    captured = np.sum((made.components @ made.second_moment) * made.components)
    assert captured == pytest.approx(np.sort(np.linalg.eigvalsh(made.second_moment))[-k:].sum())
    assert captured == pytest.approx(0.5 + 0.16)
    # A single entry tells nothing: its law does not depend on the side.
    values = made.complete[:, 0][made.complete[:, 0] != 0]
    assert np.mean(values > 0) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: make_subspace_regression(0), ValueError, "n_samples.*at least 1; got 0"),
        (lambda: make_subspace_regression(10, 5, 6), ValueError, "rank.*at most 5; got 6"),
        (lambda: make_subspace_regression(share_observed=2), ValueError, "share_observed"),
        (lambda: make_block_margin(10, 2, 1), ValueError, "n_blocks.*at most 2; got 3"),
        (lambda: make_block_margin(margin=4.0), ValueError, r"margin.*\[0, 3\].*got 4\.0"),
        (lambda: make_block_margin(share_observed=0), ValueError, "share_observed"),
        (lambda: make_sparse_regression(n_nonzero=31), ValueError, "n_nonzero.*at most 30; got 31"),
        (lambda: make_sparse_regression(sigma_x=-1), ValueError, "sigma_x.*got -1"),
        (lambda: make_sparse_regression(sigma_y="a"), TypeError, "sigma_y.*'a'"),
        (lambda: make_sparse_regression(sigma_y=float("nan")), ValueError, "sigma_y"),
        (lambda: make_sparse_regression(10.0), TypeError, "n_samples.*10.0"),
        (lambda: make_coins(10, 3, 2), ValueError, "n_coins.*at most 1; got 2"),
        (lambda: make_coins(eps=0.1), ValueError, r"eps.*\[0, 0\.0625\]"),
    ],
)
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


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
def test_bad_arguments_of_biclustered(wrong, kind, message):
    with pytest.raises(kind, match=message):
        make_biclustered(**{"shape": (20, 20), **wrong})


def test_bad_clusters():
    with pytest.raises(ValueError, match=r"clusters must be a vector.*shape \(0,\)"):
        make_side_graph([])
    with pytest.raises(ValueError, match=r"shape \(2, 1\)"):
        make_side_graph([[0], [1]])
