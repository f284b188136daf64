"""Streams of (row, column) pairs: the matrix exponentiated gradient behind online completion."""

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.spatial import cKDTree

from bench.hot import case
from bench.hot.tables import scratch
from lacunar.completion import (
    Features,
    Graph,
    Identity,
    Kernel,
    KernelFunction,
    Mix,
    OnlineMatrixClassifier,
    predictiveness,
)
from lacunar.papers.completion import MatrixExponentiatedGradient, max_norm, quasi_dimension_bound
from lacunar.persistence import load_model, save_model


def blocks(n, trials, n_blocks=4, seed=0):
    """Block of every row and column, and pairs with the sign of their block, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % n_blocks
    signs = rng.choice([-1, 1], size=(n_blocks, n_blocks))
    i, j = rng.integers(0, n, size=(2, trials))
    y = signs[label[i], label[j]] * np.where(rng.random(trials) < 0.1, -1, 1)
    return label, i, j, y


def ring_of_friends(label, seed=1):
    """Adjacency of a graph: a ring, so that it is whole, and ten friends each of the own block."""
    rng = np.random.default_rng(seed)
    n = len(label)
    adjacency = np.roll(np.eye(n), 1, axis=1)
    for v in range(n):
        adjacency[v, rng.choice(np.flatnonzero(label == label[v]), min(10, n // 8))] = 1
    adjacency = np.maximum(adjacency, adjacency.T)
    np.fill_diagonal(adjacency, 0)
    return adjacency


SIDES = {
    "kernel": lambda label: Kernel(0.9 * (label[:, None] == label) + 0.1 * np.eye(len(label))),
    "features": lambda label: Features(np.eye(label.max() + 1)[label]),
    "graph": lambda label: Graph(ring_of_friends(label), kind="pd"),
    "graph pinv": lambda label: Graph(ring_of_friends(label), "pinv"),
    "identity": lambda label: Identity(len(label)),
    "mix": lambda label: Mix(Graph(ring_of_friends(label), kind="pd")),
    "grown": lambda label: KernelFunction(lambda a, b: 1.0 if a % 4 == b % 4 else 0.1, points=None),
}


def good_enough(m, score):
    last = score.running_mistakes[-1] - score.running_mistakes[m // 2 - 1]
    assert score.mistakes < 0.4 * m
    assert last < 0.3 * (m - m // 2), "a tenth of the labels is noise"


@case("MEG step, kernel", small={"side": "kernel", "n": 40, "m": 300}, large={"side": "kernel", "n": 200, "m": 3000})
@case(
    "MEG step, features", small={"side": "features", "n": 40, "m": 300}, large={"side": "features", "n": 400, "m": 3000}
)
@case("MEG step, graph", small={"side": "graph", "n": 40, "m": 300}, large={"side": "graph", "n": 200, "m": 3000})
@case(
    "MEG stream, Laplacian pseudo-inverse",
    small={"side": "graph pinv", "n": 40, "m": 300},
    large={"side": "graph pinv", "n": 200, "m": 3000},
    counted=False,
)
@case(
    "MEG stream, mix",
    small={"side": "mix", "n": 40, "m": 300},
    large={"side": "mix", "n": 200, "m": 3000},
    counted=False,
)
@case(
    "MEG stream, inductive",
    small={"side": "grown", "n": 40, "m": 300},
    large={"side": "grown", "n": 200, "m": 3000},
    counted=False,
)
def meg(side, n, m):
    label, i, j, y = blocks(n, m)

    def run():
        know = SIDES[side]
        return MatrixExponentiatedGradient(rows=know(label), cols=know(label), calibrate=False).score_stream(i, j, y)

    return run, partial(good_enough, m)


@case("pool stream", small={"n": 40, "m": 300}, large={"n": 400, "m": 6000}, counted=False)
def pooled(n, m):
    label, i, j, y = blocks(n, m)

    def run():
        know = SIDES["features"]
        return OnlineMatrixClassifier(know(label), know(label)).score_stream(i, j, y)

    return run, partial(good_enough, m)


@case("MEG decisions", small={"n": 40, "m": 300}, large={"n": 400, "m": 6000}, counted=False)
def decided(n, m):
    """Labels alone decide like values do."""
    label, i, j, y = blocks(n, m)
    new = partial(MatrixExponentiatedGradient, calibrate=False)

    def run():
        return new(SIDES["kernel"](label), SIDES["kernel"](label)).partial_fit(i, j, y)

    def check(model):
        score = new(SIDES["kernel"](label), SIDES["kernel"](label)).score_stream(i, j, y)
        assert model.n_updates_ == score.updated.sum()
        good_enough(m, score)

    return run, check


@case("MEG learns pairs one by one", small={"n": 40, "m": 300}, large={"n": 200, "m": 3000}, counted=False)
def learned_one_by_one(n, m):
    label, i, j, y = blocks(n, m)
    pairs = list(zip(i.tolist(), j.tolist(), y.tolist(), strict=True))
    new = partial(MatrixExponentiatedGradient, calibrate=False)

    def run():
        model = new(SIDES["kernel"](label), SIDES["kernel"](label))
        for row, col, sign in pairs:
            model.learn_one(row, col, sign)
        return model

    def check(model):
        together = new(SIDES["kernel"](label), SIDES["kernel"](label)).partial_fit(i, j, y)
        np.testing.assert_allclose(
            model.decision_function((i, j)), together.decision_function((i, j)), rtol=1e-5, atol=1e-8
        )

    return run, check


def fitted(n, m, side="kernel", **options):
    label, i, j, y = blocks(n, m)
    model = MatrixExponentiatedGradient(SIDES[side](label), SIDES[side](label), **options).partial_fit(i, j, y)
    return model, label, (i, j, y)


ASKED = {
    "values one by one": lambda model, pairs: np.array([model.decision_one(a, b) for a, b in pairs.tolist()]),
    "labels one by one": lambda model, pairs: np.array([model.predict_one(a, b) for a, b in pairs.tolist()]),
    "together": lambda model, pairs: model.decision_function(pairs),
}
SMALL, LARGE = {"n": 40, "m": 300}, {"n": 400, "m": 3000}


@case(
    "MEG predictions, one by one",
    small={"how": "values one by one", "n_pairs": 20, **SMALL},
    large={"how": "values one by one", "n_pairs": 100, **LARGE},
    counted=False,
)
@case(
    "MEG labels, one by one",
    small={"how": "labels one by one", "n_pairs": 20, **SMALL},
    large={"how": "labels one by one", "n_pairs": 100, **LARGE},
)
@case(
    "MEG predictions, a few",
    small={"how": "together", "n_pairs": 20, **SMALL},
    large={"how": "together", "n_pairs": 100, **LARGE},
)
@case(
    "MEG predictions, many at once",
    small={"how": "together", "n_pairs": 200, **SMALL},
    large={"how": "together", "n_pairs": 40_000, **LARGE},
    counted=False,
)
def predicted(how, n, m, n_pairs):
    model = fitted(n, m, calibrate=False)[0]
    asked = np.stack(np.divmod(np.arange(n_pairs) * 37 % n**2, n), axis=1)

    def check(found):
        expected = np.array([model.decision_one(a, b) for a, b in asked[:20].tolist()])
        if how == "labels one by one":
            expected = np.where(expected < 0, -1, 1)
        np.testing.assert_allclose(found[:20], expected, rtol=1e-6, atol=1e-8)

    return partial(ASKED[how], model, asked), check


def neighbours(n, seed):
    """Points in the plane, and the graph of their ten nearest neighbours."""
    points = np.random.default_rng(seed).normal(size=(n, 2))
    near = cKDTree(points).query(points, k=11)[1][:, 1:]
    graph = sp.csr_array((np.ones(10 * n), (np.repeat(np.arange(n), 10), near.ravel())), shape=(n, n))
    return points, graph.maximum(graph.T)


def sparse_stream(n, m):
    (left, rows), (right, cols) = neighbours(n, 0), neighbours(n, 1)
    i, j = np.random.default_rng(2).integers(0, n, size=(2, m))
    y = np.where(left[i, 0] * right[j, 0] > 0, 1, -1)
    sides = [Graph(side, kind="regularized", method="sparse") for side in (rows, cols)]
    return partial(MatrixExponentiatedGradient, *sides, calibrate=False), (i, j, y)


@case("sparse graph, learned", small={"n": 300, "m": 100}, large={"n": 10_000, "m": 300}, counted=False)
def sparse_learned(n, m):
    """Factorised, its diagonal by selected inversion; nothing dense."""
    new, stream = sparse_stream(n, m)

    def check(model):
        assert 0 < model.n_updates_ <= m
        assert np.mean(model.predict((stream[0][:50], stream[1][:50])) == stream[2][:50]) > 0.7

    return lambda: new().partial_fit(*stream), check


@case("sparse graph, values", small={"n": 300, "m": 100}, large={"n": 10_000, "m": 300}, counted=False)
def sparse_values(n, m):
    new, (i, j, y) = sparse_stream(n, m)
    model = new().partial_fit(i, j, y)

    def check(found):
        together = model.decision_function((i[:10], j[:10]))
        np.testing.assert_allclose(found, together, rtol=1e-6, atol=1e-9)

    return lambda: [model.decision_one(a, b) for a, b in zip(i[:10].tolist(), j[:10].tolist(), strict=True)], check


@case("completion saved and loaded", small={"n": 40, "m": 300}, large={"n": 400, "m": 3000}, counted=False)
def kept(n, m):
    model, _, (i, j, _) = fitted(n, m)
    path = scratch() / f"{n}.completion"

    def run():
        save_model(model, path)
        return load_model(path)

    def check(back):
        np.testing.assert_array_equal(back.decision_function((i, j)), model.decision_function((i, j)))

    return run, check


@case("completion, bounds", small={"n": 24}, large={"n": 100}, counted=False)
def bounds(n):
    """Max-norm of a block matrix of signs, the quasi-dimension of its clusters, and what a graph knows about it."""
    label, i, j, y = blocks(n, 5 * n)
    signs = np.random.default_rng(0).choice([-1, 1], size=(4, 4))
    side = SIDES["kernel"](label)

    def run():
        U = signs[label][:, label]
        return (
            max_norm(U),
            quasi_dimension_bound(side, side, label, label),
            predictiveness(side, i, j, y, n_permutations=50),
        )

    def check(found):
        norm, dimension, told = found
        assert 1 - 1e-6 <= norm <= 2 + 1e-3  # at most the square root of the four blocks
        assert dimension > 0
        assert told.agreement_near > told.agreement_all

    return run, check
