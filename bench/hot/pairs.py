"""Streams of (row, column) pairs: the matrix exponentiated gradient behind online completion."""

import numpy as np

from hot import case
from lacunar.completion import Features, Graph, Kernel, OnlineMatrixClassifier


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
}


@case("MEG step, kernel", small={"side": "kernel", "n": 40, "m": 300}, large={"side": "kernel", "n": 200, "m": 3000})
@case(
    "MEG step, features", small={"side": "features", "n": 40, "m": 300}, large={"side": "features", "n": 400, "m": 3000}
)
@case("MEG step, graph", small={"side": "graph", "n": 40, "m": 300}, large={"side": "graph", "n": 200, "m": 3000})
def meg(side, n, m):
    label, i, j, y = blocks(n, m)

    def run():
        know = SIDES[side]
        return OnlineMatrixClassifier(rows=know(label), cols=know(label), calibrate=False).score_stream(i, j, y)

    def check(score):
        last = score.running_mistakes[-1] - score.running_mistakes[m // 2 - 1]
        assert score.mistakes < 0.4 * m
        assert last < 0.3 * (m - m // 2), "a tenth of the labels is noise"

    return run, check
