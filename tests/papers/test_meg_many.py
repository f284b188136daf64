"""Scores of many pairs at once, by a decomposition, against one by one."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, Mix
from lacunar.completion.side import SideState
from lacunar.papers.completion.engine import Engine, from_blocks

POINTS = np.random.default_rng(0).normal(size=(40, 3))
SIDES = {
    "kernels": lambda: (KernelFunction("gaussian", points=POINTS).begin(), Identity(30).begin()),
    "singular": lambda: (Kernel(np.ones((40, 40))).begin(), Mix(Features(POINTS[:30])).begin()),
    "features": lambda: (Features(POINTS).begin(), Features(POINTS[:30], const=0.4).begin()),
    "graph": lambda: (Graph(ring(40), kind="pinv").begin(), Identity(30).begin()),
}


def ring(n):
    A = sp.diags_array([np.ones(n - 1), np.ones(n - 1)], offsets=[-1, 1]).toarray()
    A[0, -1] = A[-1, 0] = 1
    return A


def learned(sides, *, rows=40, cols=30, count=250):
    """An engine that saw labels of rows < `rows` and columns < `cols`."""
    rng = np.random.default_rng(1)
    i, j = rng.integers(rows, size=count), rng.integers(cols, size=count)
    engine = Engine(*sides, 0.1)
    engine.run(i, j, np.where((i % 5 < 2) ^ (j % 3 == 0), 1.0, -1.0), 0.6, 0.5)
    return engine


def one_by_one(engine, i, j):
    return np.array([engine.log_score(a, b) for a, b in zip(i, j, strict=True)])


@pytest.mark.parametrize("name", SIDES)
@pytest.mark.parametrize("count", [0, 250])
def test_strangers_and_acquaintances(name, count):
    engine = learned(SIDES[name](), rows=22, cols=17, count=count)
    i, j = (a.ravel() for a in np.indices((40, 30)))
    expected = one_by_one(engine, i, j)
    np.testing.assert_allclose(engine.log_scores(i, j), expected, rtol=1e-10, atol=1e-10)
    assert engine.decomposed is not None
    # Once there, the decomposition serves single pairs too, until something is learned.
    few = np.random.default_rng(0).choice(len(i), 5)
    np.testing.assert_allclose(engine.log_scores(i[few], j[few]), expected[few], rtol=1e-10, atol=1e-10)
    engine.learn(3, 4, 0.5)
    assert engine.decomposed is None
    np.testing.assert_allclose(engine.log_scores(i, j), one_by_one(engine, i, j), rtol=1e-10, atol=1e-10)


def test_a_far_eigenvalue_is_not_multiplied_out():
    engine = Engine(Kernel(np.ones((6, 6))).begin(), Identity(5).begin())
    for k in range(6):
        engine.learn(k, 0, 9.0)
    i, j = (a.ravel() for a in np.indices((6, 5)))
    expected = one_by_one(engine, i, j)
    assert expected.max() > 30
    np.testing.assert_allclose(engine.log_scores(i, j), expected, rtol=1e-9, atol=1e-9)


def test_not_finite():
    engine = Engine(Identity(4).begin(), Identity(4).begin())
    engine.learn(0, 0, 1e308)
    engine.learn(1, 0, 0.5e308)
    with pytest.raises(FloatingPointError):
        engine.learn(2, 0, 1e308)
    i, j = (a.ravel() for a in np.indices((4, 4)))
    assert np.isfinite(engine.log_scores(i, j)).all()


def test_blocks_of_a_symmetric_matrix():
    engine = learned(SIDES["features"]())
    x = np.sqrt(0.5) * np.hstack([np.repeat(POINTS[:1], 1, axis=0)])  # only its length matters here
    d = 2 * x.shape[1] + 1
    L = from_blocks(engine.state()["matrix"], d)
    assert L.shape == (d, d)
    np.testing.assert_array_equal(L, L.T)


def test_far_cells_first():
    """A table over all of them would not fit."""
    n = 60_000
    model = Engine(Identity(n).begin(), Identity(n).begin())
    model.learn(n - 1, n - 1, 0.5)
    model.learn(0, 3, 0.5)
    assert model.score(0, 3) == pytest.approx(np.expm1(0.5))

    class Wide(SideState):
        kind, size = "operator", n

        def diagonal(self):
            return np.ones(n)

        def apply(self, V):
            return V

    wide = Engine(Wide(), Wide())
    for i, j in ((n - 1, n - 1), (0, 3), (n // 2, 0)):
        wide.learn(i, j, 0.5)
    assert wide.score(0, 3) == pytest.approx(np.expm1(0.5))
    assert wide.score(0, 0) == pytest.approx(model.score(0, 0), abs=0.2)
