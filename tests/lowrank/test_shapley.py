"""Shapley values under a Gaussian: all sets, permutations, and the definition."""

import numpy as np
import pytest
from reference.shapley import shapley

from lacunar.lowrank import GaussianRegressor
from lacunar.lowrank import shapley as module


def world(n=200, d=5, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = 3 + rng.normal(size=(n, d)) @ (np.eye(d) + 0.6 * rng.normal(size=(d, d)))
    Y = X @ rng.normal(size=(d, targets)) + 0.3 * rng.normal(size=(n, targets))
    X[rng.random(X.shape) < 0.25] = np.nan
    return X, Y[:, 0] if targets == 1 else Y


@pytest.mark.parametrize("options", [{}, {"n_components": 2}])
@pytest.mark.parametrize("targets", [1, 3])
def test_values_are_those_of_all_sets(options, targets):
    X, y = world(targets=targets)
    model = GaussianRegressor(**options).fit(X, y)
    rows = np.vstack([X[:6], np.full(5, np.nan), np.arange(5.0)])
    explanation = model.explain(rows)
    values, base = explanation.values.reshape(8, 5, targets), explanation.base_values.reshape(8, targets)
    for row, value, start in zip(rows, values, base, strict=True):
        slow_base, slow = shapley(lambda sets: model.predict(sets).reshape(-1, targets), row)
        np.testing.assert_allclose(start, slow_base, atol=1e-9)
        np.testing.assert_allclose(value, slow, atol=1e-9)
    assert explanation.values.shape == ((8, 5) if targets == 1 else (8, 5, 3))
    assert not explanation.standard_errors.any()
    np.testing.assert_allclose(explanation.predictions, model.predict(rows), atol=1e-9)
    assert not explanation.values[np.isnan(rows)].any()


def test_permutations_are_within_their_errors_of_all_sets(monkeypatch):
    X, y = world(d=8)
    model = GaussianRegressor().fit(X, y)
    rows = np.vstack([X[:40], np.nan_to_num(X[:5])])
    exact = model.explain(rows)
    monkeypatch.setattr(module, "MOST_EXACT", 0)
    sampled = model.explain(rows)
    shown = ~np.isnan(rows) & (np.count_nonzero(~np.isnan(rows), axis=1) > 2)[:, None]
    z = (sampled.values - exact.values)[shown] / np.maximum(sampled.standard_errors[shown], 1e-12)
    assert 0.6 < np.sqrt(np.mean(z**2)) < 1.4
    assert np.abs(sampled.values - exact.values).mean() < 0.1 * np.abs(exact.values).mean()
    np.testing.assert_allclose(sampled.predictions, model.predict(rows), atol=1e-9)
    alone = model.explain(rows[7:8])  # an answer does not depend on the rows beside it
    np.testing.assert_allclose(alone.values, sampled.values[7:8], rtol=1e-9, atol=1e-12)


def test_independent_columns_have_their_linear_terms():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 20))
    model = GaussianRegressor().fit(X, X @ np.arange(20.0))
    row = rng.normal(size=(1, 20))
    np.testing.assert_allclose(model.explain(row).values, np.arange(20.0) * row, atol=2.5)
