"""Values of measuring for classes: information under class-conditional Gaussians, against integrals done by brute force."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import multivariate_normal, norm

from lacunar.lowrank import GaussianRegressor
from lacunar.observed import Observed
from lacunar.uncertainty import MeasuringLoop, value_of_measuring
from lacunar.uncertainty.class_gaussians import ClassGaussians


def cube(n, seed):
    """AFABench's CUBE: class k has its bits, with little noise, in columns k, k + 1 and k + 2 of 20."""
    rng = np.random.default_rng(seed)
    y = rng.integers(8, size=n)
    X = rng.normal(0.5, 0.3, size=(n, 20))
    for bit in range(3):
        X[np.arange(n), y + bit] = (y >> bit & 1) + rng.normal(0, 0.1, size=n)
    return X, y


def three_classes(n=400, seed=0):
    """Classes of other means and covariances, a fifth of the entries missing."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    mix = np.random.default_rng(7).normal(size=(3, 4, 4))
    X = (
        np.einsum("nj,njk->nk", rng.normal(size=(n, 4)), mix[y])
        + np.array([[0, 0, 0, 0], [2, 0, 1, 0], [0, 2, 0, 1]])[y]
    )
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, y


def by_integration(model, row):
    """log p(class | row) and I(class; x_j | row) for each missing j, from densities on a grid; row in the units of the data."""
    mean, scale = model.mean_, model.scale_
    z = (row - mean) / scale
    seen = ~np.isnan(z)
    logs = model.log_shares_ + [
        multivariate_normal(g.mean[seen], g.covariance[np.ix_(seen, seen)]).logpdf(z[seen]) if seen.any() else 0.0
        for g in model.gaussians()
    ]
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    values = np.zeros(len(row))
    grid = np.linspace(-30, 30, 60_001)
    for j in np.flatnonzero(~seen):
        densities = []
        for g in model.gaussians():
            pull = np.linalg.solve(g.covariance[np.ix_(seen, seen)], g.covariance[seen, j])
            sd = np.sqrt(g.covariance[j, j] - pull @ g.covariance[seen, j])
            densities.append(norm.pdf(grid, g.mean[j] + pull @ (z[seen] - g.mean[seen]), sd))
        densities = np.array(densities)
        ratio = np.log(np.maximum(densities, 1e-300) / np.maximum(chances @ densities, 1e-300))
        values[j] = chances @ trapezoid(densities * ratio, grid, axis=1)
    return np.log(chances), values


def test_chances_and_information_are_those_of_integration():
    X, y = three_classes()
    model = ClassGaussians().fit(Observed.from_dense(X), y)
    rows = np.vstack([X[:5], np.full(4, np.nan)])
    logs, values = model.log_proba(rows), model.value_of_measuring(rows)
    for row, log, value in zip(rows, logs, values, strict=True):
        log_slow, value_slow = by_integration(model, row)
        np.testing.assert_allclose(log, log_slow, atol=1e-8)
        np.testing.assert_allclose(value, value_slow, atol=0.01)
    np.testing.assert_allclose(model.value_of_measuring(rows[3:4]), values[3:4], rtol=1e-9)
    np.testing.assert_allclose(model.value_of_measuring(rows, cost=[1, 2, 4, 1]), values / [1, 2, 4, 1])


def test_complete_rows_have_the_moments_of_their_classes():
    """Without gaps EM is the maximum of the shrunk likelihood, class by class."""
    X, y = cube(1600, 0)
    model = ClassGaussians().fit(Observed.from_dense(X), y)
    assert np.isfinite(model.to_shared_)  # noise of .1 and of .3: classes differ by their variances
    mean, scale = model.mean_, model.scale_
    Z, shared = (X - mean) / scale, None
    for k, gaussian in enumerate(model.gaussians()):
        rows = Z[y == k]
        np.testing.assert_allclose(gaussian.mean, rows.mean(axis=0), atol=1e-9)
        centred = rows - rows.mean(axis=0)
        own, strength = centred.T @ centred, model.to_shared_
        implied = (gaussian.covariance * (len(rows) + strength) - own) / strength
        shared = implied if shared is None else shared
        np.testing.assert_allclose(implied, shared, atol=1e-8)


def test_classes_of_one_covariance_share_it():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=120)
    X = rng.normal(size=(120, 12)) + 0.8 * y[:, None] * (np.arange(12) < 3)
    model = ClassGaussians().fit(Observed.from_dense(X), y)
    assert np.isinf(model.to_shared_)
    value = value_of_measuring(X, y, np.full((1, 12), np.nan))
    assert set(np.argsort(-value[0])[:3]) == {0, 1, 2}


def test_the_loop_buys_better_than_one_gaussian_of_indicators():
    """The bars of AFABench's CUBE: .73 of the classes right by 3 entries, .89 by 5."""
    X, y = cube(1600, 1)
    full, truth = cube(300, 2)
    loop = MeasuringLoop.from_rows(X, y, budget=3)
    chances = ClassGaussians().fit(Observed.from_dense(X), y).log_proba
    shares = {}
    for budget in (3, 5):
        loop.budget = budget
        if budget == 3:
            loop.add(np.full(full.shape, np.nan))
        loop.run(lambda row, column: full[row, column])
        shares[budget] = np.mean(chances(loop.rows_).argmax(axis=1) == truth)
    assert shares[3] > 0.76
    assert shares[5] > 0.89
    one = GaussianRegressor(shrinkage=240, tol=1e-3).fit(X, np.eye(8)[y])
    rival = MeasuringLoop(one, budget=3)
    rival.add(np.full(full.shape, np.nan))
    rival.run(lambda row, column: full[row, column])
    assert shares[3] > np.mean(chances(rival.rows_).argmax(axis=1) == truth) + 0.05


def test_a_plan_of_several_entries_does_not_buy_one_thing_twice():
    """Columns 0 and 1 say the same; column 2 says something else, and less."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    first = y + 0.5 * rng.normal(size=400)
    X = np.column_stack([first, first + 0.01 * rng.normal(size=400), y + 0.9 * rng.normal(size=400)])
    row = np.full((1, 3), np.nan)
    one, two = (value_of_measuring(X, y, row, n=n)[0] for n in (1, 2))
    assert one[2] < min(one[:2])
    bought = one.argmax()
    assert two[bought] == one[bought]
    assert two[2] > 3 * two[1 - bought]
    rows = np.vstack([row, [[0.2, np.nan, np.nan]], [[np.nan, 1.0, np.nan]]])
    np.testing.assert_allclose(value_of_measuring(X, y, rows, n=2)[0], two, rtol=1e-9)


@pytest.mark.parametrize("y", [np.zeros(30, dtype=int), np.arange(30) % 15, ["a"] * 29 + ["b"]])
def test_awkward_classes_have_finite_values(y):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    X[:, 1] = np.where(rng.random(30) < 0.5, 1.0, np.nan)  # constant
    X[:, 2] = np.nan
    values = value_of_measuring(X, y, np.full((2, 3), np.nan), n_bags=2)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert len(set(y)) > 1 or not values.any()


def test_a_loop_of_numbers_is_that_of_the_function():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = X @ [1.0, 3.0, 0.0]
    loop = MeasuringLoop.from_rows(X, y, budget=1)
    loop.add([[np.nan] * 3])
    assert loop.ask()[0].column == value_of_measuring(X, y, [[np.nan] * 3]).argmax() == 1
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MeasuringLoop.from_rows(X, y[:5])
