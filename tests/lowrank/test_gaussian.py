"""`GaussianRegressor`: EM against the literal one, exact conditional moments, and what measuring an entry is worth."""

import numpy as np
import pandas as pd
import pytest
from reference import gaussian as slow
from sklearn.base import clone

from lacunar import Observed
from lacunar.lowrank import GaussianRegressor
from lacunar.lowrank.gaussian import Gaussian, best_shrinkage, fit_gaussian
from lacunar.persistence import load_model, save_model
from lacunar.uncertainty import missingness_report


def world(n=300, d=5, targets=1, missing=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = 3 + rng.normal(size=(n, d)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(d)).T
    y = X @ rng.normal(size=(d, targets)) + 0.5 * rng.normal(size=(n, targets))
    X[rng.random(X.shape) < missing] = np.nan
    return X, y if targets > 1 else y[:, 0]


def joint(model, X, y=None):
    """Standardised rows with targets, NaN where `y` is None."""
    Z = (X - model.mean_) / model.scale_
    Y = np.full((len(X), len(model.label_mean_)), np.nan)
    if y is not None:
        Y = (y.reshape(len(X), -1) - model.label_mean_) / model.label_scale_
    return np.column_stack([Z, Y])


@pytest.mark.parametrize(("n", "d", "gap"), [(3, 3, 0.3), (3, 30, 0.7), (5, 10, 0.7), (5, 30, 0.7), (3, 200, 0.7)])
def test_columns_of_two_entries_say_little(n, d, gap):
    rng = np.random.default_rng([n, d])
    X, y = rng.normal(size=(n + 200, d)), rng.normal(size=n + 200)
    X[rng.random(X.shape) < gap] = np.nan
    predicted = GaussianRegressor().fit(X[:n], y[:n]).predict(X[n:])
    assert np.mean((predicted - y[n:]) ** 2) < 4 * np.mean((y[:n].mean() - y[n:]) ** 2)


@pytest.mark.parametrize("targets", [1, 2])
def test_em_is_the_literal_one(targets):
    X, y = world(n=40, targets=targets)
    if targets > 1:
        y[::3, 1] = np.nan
    model = GaussianRegressor(tol=1e-10, max_iter=400).fit(X, y)
    mean, cov = slow.em(joint(model, X, y), 200, 0.4)
    np.testing.assert_allclose(model.location_, mean, atol=1e-7)
    np.testing.assert_allclose(model.covariance_, cov, atol=1e-7)


def test_columns_in_any_order_of_memory_are_the_same():
    """A frame of numbers hands over its table by columns, which the E step, compiled for rows, has to take."""
    X, y = world()
    rows = np.column_stack([X, y])
    start = Gaussian(np.zeros(6), np.eye(6))
    by_rows, by_columns = (fit_gaussian(order(rows), start, 0.4, 20, 1e-6) for order in (np.array, np.asfortranarray))
    assert by_rows[1] == by_columns[1]
    for expected, answer in zip(by_rows[0], by_columns[0], strict=True):
        np.testing.assert_array_equal(answer, expected)
    model, of_columns = (GaussianRegressor().fit(order(X), y) for order in (np.array, np.asfortranarray))
    np.testing.assert_array_equal(of_columns.covariance_, model.covariance_)
    np.testing.assert_array_equal(of_columns.predict(np.asfortranarray(X)), model.predict(X))
    reports = [missingness_report(order(X), y, random_state=0) for order in (np.array, np.asfortranarray, pd.DataFrame)]
    assert len({(report.statistic, report.p_value) for report in reports}) == 1


@pytest.mark.parametrize("targets", [1, 2])
def test_predictions_are_conditional_moments(targets):
    X, y = world(targets=targets)
    X[:2] = np.nan
    model = GaussianRegressor().fit(X, y)
    mean, std = model.predict(X, return_std=True)
    for i, x in enumerate(joint(model, X)[:60]):
        made, left = slow.conditional(x, model.location_, model.covariance_)
        expected = made[5:] * model.label_scale_ + model.label_mean_
        np.testing.assert_allclose(np.ravel(mean[i]), expected, rtol=1e-8)
        spread = np.sqrt(np.diag(left)[-targets:]) * model.label_scale_
        np.testing.assert_allclose(np.ravel(std[i]), spread, rtol=1e-8)


@pytest.mark.parametrize("d", [5, 120])
def test_std_is_the_error_for_every_number_missing(d):
    X, y = world(n=1600, d=d)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < rng.choice([0, 0.5, 0.8], (1600, 1))] = np.nan
    mean, std = GaussianRegressor().fit(X[:1000], y[:1000]).predict(X[1000:], return_std=True)
    share, squares = np.isnan(X[1000:]).mean(axis=1), (mean - y[1000:]) ** 2
    for rows in (share < 0.5, share >= 0.5):
        assert 0.8 < np.sqrt(np.mean(std[rows] ** 2) / np.mean(squares[rows])) < 1.2


def test_a_warm_start_arrives_at_once():
    X, y = world(n=2500)
    model = GaussianRegressor(warm_start=True, tol=1e-5).fit(X, y)
    first = model.n_iter_
    cold = GaussianRegressor(tol=1e-5).fit(X[:2000], y[:2000])
    model.fit(X[:2000], y[:2000])
    assert model.n_iter_ < first / 2
    np.testing.assert_allclose(model.predict(X), cold.predict(X), atol=2e-3)
    assert GaussianRegressor(warm_start=True).fit(X, y).fit(X[:, :3], y).predict(X[:, :3]).shape == (2500,)


@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_columns_half_as_many_as_rows_are_not_learned_by_heart(gap):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1060, 30)), rng.normal(size=1060)
    X[rng.random(X.shape) < gap] = np.nan
    model = GaussianRegressor().fit(X[:60], y[:60])
    assert model.shrinkage_ > 100
    assert np.mean((model.predict(X[60:]) - y[60:]) ** 2) < 1.1  # 2 to 4 with a shrinkage of 0.4


def test_shrinkage_of_many_rows_or_another_fit_is_not_chosen_again():
    X, y = world(n=200)
    assert GaussianRegressor().fit(X, y).shrinkage_ == 0.4  # more than 30 rows a column
    assert GaussianRegressor(shrinkage=3.0).fit(X, y).shrinkage_ == 3.0
    few = GaussianRegressor(warm_start=True).fit(X[:50], np.random.default_rng(0).normal(size=50))
    assert few.shrinkage_ > 0.4
    assert clone(few).fit(X[:50], y[:50]).shrinkage_ < few.shrinkage_
    assert few.fit(X[:50], y[:50]).shrinkage_ > 0.4


@pytest.mark.parametrize("noise", [0.1, 1.0, 10.0])
def test_the_shrinkage_is_that_of_the_literal_folds(noise):
    X, y = world(n=24, d=3)
    T = joint(GaussianRegressor().fit(X, y), X, y + noise * np.random.default_rng(0).normal(size=24))
    shrinkages = [409.6, 102.4, 25.6, 6.4, 1.6, 0.4]
    assert best_shrinkage(T, 1) == slow.best_shrinkage(T, shrinkages)


def test_low_rank_starts_warm_too():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(120, 3))
    X, y = latent @ rng.normal(size=(3, 101)) + rng.normal(size=(120, 101)), latent.sum(axis=1)
    X[rng.random(X.shape) < 0.3] = np.nan
    model = GaussianRegressor(n_components=5, warm_start=True).fit(X, y)
    first, cold = model.n_iter_, clone(model).fit(X[:90], y[:90])
    assert model.fit(X[:90], y[:90]).n_iter_ < first / 2
    np.testing.assert_allclose(model.predict(X[90:]), cold.predict(X[90:]), atol=0.05)
    dirty = X.copy()
    dirty[3, 0] = 1e50
    np.testing.assert_allclose(model.fit(dirty, y).fit(X, y).predict(X), clone(model).fit(X, y).predict(X), atol=0.05)
    assert model.set_params(n_components=2).fit(X, y).posterior_.components_.shape == (2, 101)  # not the rank before


@pytest.mark.parametrize("outlier", [1e50, 1e100, 1e150])
@pytest.mark.parametrize("column", [0, None])
def test_a_warm_start_forgets_the_units_of_an_outlier(outlier, column):
    X, y = world(n=200)
    dirty_X, dirty_y = X.copy(), y.copy()
    (dirty_y if column is None else dirty_X[:, column])[3] = outlier
    model, cold = GaussianRegressor(warm_start=True), GaussianRegressor().fit(X, y)
    assert np.isfinite(model.fit(X, y).fit(dirty_X, dirty_y).predict(X, return_std=True)).all()
    np.testing.assert_allclose(model.fit(X, y).predict(X), cold.predict(X), atol=5e-3)


def test_the_value_of_measuring_is_the_fall_of_the_variance():
    X, y = world()
    model = GaussianRegressor().fit(X, y)
    values = model.value_of_measuring(X)
    _, before = model.predict(X, return_std=True)
    filled = X.copy()
    for j in range(5):
        hidden = np.isnan(X[:, j])
        more = filled.copy()
        more[hidden, j] = 3.0  # the variance does not depend on the value
        after = model.predict(more, return_std=True)[1]
        np.testing.assert_allclose(values[hidden, j], (before**2 - after**2)[hidden], rtol=1e-6, atol=1e-9)
        assert not values[~hidden, j].any()


def test_greedy_plans_and_costs():
    X, y = world(d=6, missing=0.6)
    model = GaussianRegressor().fit(X, y)
    one, two = model.value_of_measuring(X), model.value_of_measuring(X, n=2)
    some = np.isnan(X).sum(axis=1) >= 2
    best = np.argmax(one, axis=1)
    rows = np.arange(len(X))
    np.testing.assert_allclose(two[rows, best][some], one[rows, best][some])
    more = X.copy()
    more[rows, best] = 3.0
    others = np.isnan(more) & some[:, None]
    np.testing.assert_allclose(two[others], model.value_of_measuring(more)[others], rtol=1e-6, atol=1e-9)
    cost = np.arange(1.0, 7.0)
    np.testing.assert_allclose(model.value_of_measuring(X, cost=cost), one / cost)
    with pytest.raises(ValueError, match="cost must be 6 numbers above 0"):
        model.value_of_measuring(X, cost=[1.0])
    with pytest.raises(ValueError, match="n must be a whole number"):
        model.value_of_measuring(X, n=0)


def test_several_targets_have_one_value_or_their_own():
    X, y = world(targets=2)
    model = GaussianRegressor().fit(X, y)
    both = [model.value_of_measuring(X, target=t) / model.label_scale_[t] ** 2 for t in (0, 1)]
    np.testing.assert_allclose(model.value_of_measuring(X), np.mean(both, axis=0))
    with pytest.raises(ValueError, match="target must be a column"):
        model.value_of_measuring(X, target=2)


def test_low_rank_values_agree_with_the_std():
    X, y = world(n=400, d=120)
    model = GaussianRegressor().fit(X, y)
    values, before = model.value_of_measuring(X[:5]), model.predict(X[:5], return_std=True)[1]
    j = int(np.flatnonzero(np.isnan(X[0]))[0])
    more = X[:5].copy()
    more[0, j] = 3.0
    fall = before[0] ** 2 - model.predict(more, return_std=True)[1][0] ** 2
    assert values[0, j] == pytest.approx(fall, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("d", [5, 120])
def test_containers_batches_and_files(d, tmp_path):
    X, y = world(n=120, d=d)
    model = GaussianRegressor().fit(X, y)
    expected = model.predict(X, return_std=True)
    np.testing.assert_allclose(clone(model).fit(Observed.from_dense(X), y).predict(X), expected[0], rtol=1e-9)
    np.testing.assert_array_equal(model.predict(X[7:9], return_std=True), [part[7:9] for part in expected])
    save_model(model, tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(X, return_std=True), expected)


@pytest.mark.parametrize(
    "X",
    [
        np.ones((1, 1)),
        np.full((20, 3), np.nan),
        np.ones((20, 3)),
        np.repeat(np.random.default_rng(0).normal(size=(20, 1)), 4, axis=1),
        np.where(np.random.default_rng(0).random((10, 150)) < 0.5, np.nan, 1e6),
    ],
    ids=["one cell", "nothing seen", "constant", "equal columns", "more columns than rows"],
)
def test_never_nan(X):
    y = np.arange(len(X), dtype=float)
    mean, std = GaussianRegressor().fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def test_a_covariance_that_is_none_asks_for_shrinkage():
    model = Gaussian(np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="larger shrinkage"):
        fit_gaussian(np.full((3, 2), np.nan), model, 1.0, 1, 0.0)


@pytest.mark.parametrize("n_components", [None, 2])
def test_rows_are_completed_by_their_conditional_expectation(n_components):
    rng = np.random.default_rng(0)
    full = 1e3 + rng.normal(size=(400, 2)) @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(400, 5))
    X = np.where(rng.random(full.shape) < 0.2, np.nan, full)
    model = GaussianRegressor(n_components=n_components).fit(X, full.sum(axis=1))
    completed, missing = model.complete(X), np.isnan(X)
    np.testing.assert_allclose(completed[~missing], X[~missing], rtol=1e-12)
    assert np.mean((completed - full)[missing] ** 2) < 0.4 * full.var(axis=0).mean()
    np.testing.assert_allclose(model.predict(completed[:9]), model.predict(X[:9]), rtol=1e-9)  # linear in what is seen
