"""`bench/papers/neumiss.py`: its Bayes predictors against Monte Carlo, its masks against the rate they promise."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "papers" / "neumiss.py").is_file():
    pytest.skip("bench is not beside the tests", allow_module_level=True)


@pytest.fixture(scope="module")
def neumiss():
    sys.path.insert(0, str(ROOT))
    try:
        import bench.papers.neumiss as module
    finally:
        sys.path.remove(str(ROOT))
    return module


def simulated(world, row, n, rng):
    """E[f(z) | what the row shows, what it hides] and its standard error: draws of the hidden cells, weighted by the chance of the mask."""
    hidden = np.isnan(row)
    shown = ~hidden
    gain = np.linalg.solve(world.cov[np.ix_(shown, shown)], world.cov[np.ix_(shown, hidden)]).T
    mean = world.mean[hidden] + gain @ (row - world.mean)[shown]
    cov = world.cov[np.ix_(hidden, hidden)] - gain @ world.cov[np.ix_(shown, hidden)]
    X = np.tile(np.where(hidden, 0.0, row), (n, 1))
    X[:, hidden] = rng.multivariate_normal(mean, cov, n)
    chance = world.chance(X)
    weight = np.prod(np.where(hidden, chance, 1 - chance), axis=1)
    weight /= weight.sum()
    values = world.target(X)
    middle = weight @ values
    return middle, np.sqrt(np.sum(weight**2 * (values - middle) ** 2))


@pytest.mark.parametrize("function", ["linear", "bowl", "wave", "break"])
@pytest.mark.parametrize("mechanism", ["MCAR", "MAR", "Gaussian self-masking"])
def test_bayes_is_the_mean_over_what_is_hidden(neumiss, mechanism, function):
    world = neumiss.World(4, mechanism, function, seed=3)
    rng = np.random.default_rng(5)
    X, _ = world.draw(200, rng)
    rows = X[np.isnan(X).any(axis=1) & ~np.isnan(X).all(axis=1)][:6]
    for row, said in zip(rows, world.bayes(rows), strict=True):
        middle, error = simulated(world, row, 100_000, rng)
        assert abs(said - middle) < 4.5 * error + 1e-6


@pytest.mark.parametrize("mechanism", ["MCAR", "MAR", "Gaussian self-masking"])
def test_bayes_leaves_the_variance_it_says(neumiss, mechanism):
    world = neumiss.World(10, mechanism, seed=1)
    X, y = world.draw(20_000, np.random.default_rng(2))
    squared = (y - world.bayes(X)) ** 2
    expected = world.noise**2 + world.given(X)[1].mean()
    assert abs(squared.mean() - expected) < 4.5 * squared.std() / np.sqrt(len(y))


def test_half_of_the_cells_that_can_be_missing_are(neumiss):
    for mechanism in neumiss.MECHANISMS:
        world = neumiss.World(10, mechanism, seed=4)
        X, _ = world.draw(20_000, np.random.default_rng(0))
        share = np.isnan(X).mean(axis=0)
        if mechanism == "MAR":
            assert np.all(share[world.seen] == 0)
            share = share[world.hidden]
        np.testing.assert_allclose(share, neumiss.RATE, atol=0.03)


def test_probit_self_masking_has_no_closed_form(neumiss):
    world = neumiss.World(4, "probit self-masking")
    assert world.bayes(world.draw(3, np.random.default_rng(0))[0]) is None
