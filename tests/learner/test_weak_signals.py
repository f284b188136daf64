"""Weak linear signals: the regressor's linear member, and the weights of its pool, which let go of members that are behind beyond doubt."""

import numpy as np
import pytest
from reference.learner import linear_pool, ridge_out_of_fold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar import LacunarRegressor, load_model, save_model
from lacunar.learner.ensemble import LinearPool, prior_weights
from lacunar.learner.members import LinearMember


def weak(seed, n=400, tested=1500, d=40):
    """Rows of factors of which a quarter of the entries are missing, and a target of which the complete columns tell a tenth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + tested, 6)) @ rng.normal(size=(6, d)) + rng.normal(size=(n + tested, d))
    signal = X @ rng.normal(size=d)
    y = np.sqrt(0.1) * signal / signal.std() + np.sqrt(0.9) * rng.normal(size=n + tested)
    X[rng.random(X.shape) < 0.25] = np.nan
    return X[:n], y[:n], X[n:], y[n:]


def inputs(X, known):
    """Standardised by the known rows, 0 where missing, and flags of the columns that lack entries there."""
    missing = np.isnan(X)
    filled = np.where(missing, 0, (X - np.nanmean(known, axis=0)) / np.nanstd(known, axis=0))
    return np.hstack([filled, missing[:, np.isnan(known).any(axis=0)]])


# -- the member ---------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:the rows to predict lack other entries")  # the column without flag
def test_linear_member_is_ridge_on_values_and_flags(monkeypatch):
    """Against a plain twin, with one penalty: values of the rows by the other folds, and of new rows."""
    monkeypatch.setattr(LinearMember, "_PENALTIES", (30.0,))
    X, y, new, _ = weak(0, d=8)
    X[:, 0] = np.nan_to_num(X[:, 0])  # a column without flag
    folds = [np.arange(k, len(X), 4) for k in range(4)]
    model = LacunarRegressor(members=["linear"], cv=[(np.setdiff1d(np.arange(len(X)), f), f) for f in folds]).fit(X, y)
    (member,) = model.ensembles_[0].members_
    assert member.flagged_.tolist() == [False] + [True] * 7
    target = (y - y.mean()) / y.std()
    wanted = linear_pool(ridge_out_of_fold(inputs(X, X), target, folds, 30.0)[:, None], target)
    by_the_others = ridge_out_of_fold(inputs(X, X), target, folds, 30.0)
    np.testing.assert_allclose((model.out_of_fold_ - y.mean()) / y.std(), by_the_others * wanted, atol=1e-6)
    rows, tested = inputs(X, X), inputs(new, X)
    tested[:, 0] = np.where(np.isnan(new[:, 0]), tested[:, 0], (new[:, 0] - X[:, 0].mean()) / X[:, 0].std())
    shown = ~np.isnan(new[:, 0])  # the others are completed there: training always saw the column
    center, scale = rows.mean(axis=0), rows.std(axis=0)
    rows = (rows - center) / scale
    coef = np.linalg.solve(rows.T @ rows + 30 * np.eye(rows.shape[1]), rows.T @ target)
    predicted = ((tested - center) / scale) @ coef * wanted * y.std() + y.mean()
    np.testing.assert_allclose(model.predict(new)[shown], predicted[shown], atol=1e-6)


def test_linear_member_of_several_targets_weights_and_files(tmp_path):
    """Rows of weight 0 teach nothing, every target has its own coefficients, and a stored model answers alike."""
    X, y, new, _ = weak(1, n=200, tested=100, d=10)
    Y, weight = np.column_stack([y, np.nan_to_num(X[:, 0])]), np.r_[np.ones(150), np.zeros(50)]
    wrong = np.vstack([Y[:150], 1e3 - Y[150:]])
    models = [LacunarRegressor(members=["linear"], cv=3).fit(X, target, weight) for target in (Y, wrong)]
    np.testing.assert_allclose(models[0].predict(new), models[1].predict(new), rtol=1e-6, atol=1e-6)
    assert models[0].weights_.shape == (2, 1)
    save_model(models[0], tmp_path / "model")
    np.testing.assert_array_equal(load_model(tmp_path / "model").predict(new), models[0].predict(new))


def test_pure_noise_is_shrunk_to_the_mean():
    """The penalty goes up to where hardly anything is left of 60 columns that tell nothing."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(200, 60)), rng.normal(size=200)
    model = LacunarRegressor(members=["linear"]).fit(X, y)
    new = model.predict(rng.normal(size=(500, 60)))
    assert new.std() < 0.3 * y.std()


# -- the weights --------------------------------------------------------------------------------------------------------


def four_members(n, seed=3):
    """Targets, and members of which two err alike, one somewhat more, and one far more."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    noise = rng.normal(size=(n, 4)) * [0.6, 0.6, 0.65, 1.4]
    return y, 0.7 * (y[:, None] + noise)


@pytest.mark.parametrize("n", [30, 400, 3000])
def test_pool_of_numbers_is_the_shrunk_least_squares(n):
    y, members = four_members(n)
    pool = LinearPool().fit([members[:, [k]] for k in range(4)], y[:, None])
    np.testing.assert_allclose(pool.weights_[0], linear_pool(members, y), atol=2e-4)


def residual(values, other):
    """What least squares on `other` leaves."""
    return values - other * (values @ other) / (other @ other)


def test_weights_let_go_of_what_the_rows_speak_against():
    """Of members whose errors have nothing in common, the one that is several standard errors behind had a share of the prior before."""
    y, members = four_members(400)
    losses = (members - y[:, None]) ** 2
    prior = prior_weights(losses, np.ones(400))
    assert prior[3] < 1e-3
    assert prior[:2].min() > 0.2
    # Small noise beside a member that explains half: least squares hardly tell its weight, and equal weights of the prior gave it a fifth.
    rng = np.random.default_rng(4)
    for _ in range(5):
        signal, noise = 0.9 * rng.normal(size=400), 0.1 * rng.normal(size=400)
        open_part = 0.9 * rng.normal(size=400)
        noise = residual(residual(noise, signal), open_part)
        weights = LinearPool().fit([signal[:, None], noise[:, None]], (signal + open_part)[:, None]).weights_[0]
        assert weights[1] < 0.1
        assert 0.9 < weights[0] < 1.1


def test_members_that_are_not_told_apart_share_the_weight():
    y, members = four_members(40)
    alike = np.column_stack([members[:, 0], members[:, 0], members[:, 0]])
    weights = LinearPool().fit([alike[:, [k]] for k in range(3)], y[:, None]).weights_[0]
    np.testing.assert_allclose(weights, weights.mean(), atol=1e-9)
    np.testing.assert_allclose(prior_weights((alike - y[:, None]) ** 2, np.ones(40)), 1 / 3)


def test_few_rows_of_a_weak_signal_do_not_stretch_it():
    """A lucky sample asks for twice the members' values: 50 rows' worth of a sum of one stand against it."""
    rng = np.random.default_rng(5)
    said = 0.2 * rng.normal(size=400)
    y = 2.2 * said + rng.normal(size=400)
    free = said @ y / (said @ said)
    weights = LinearPool().fit([said[:, None], said[:, None]], y[:, None]).weights_[0]
    assert free > 1.8
    assert weights.sum() < 1.4
    many = np.tile(said, 100), np.tile(y, 100)
    assert LinearPool().fit([many[0][:, None]], many[1][:, None]).weights_.sum() == pytest.approx(free, rel=0.03)


def test_rows_of_weight_zero_do_not_count_for_the_prior():
    y, members = four_members(200)
    losses = (members - y[:, None]) ** 2
    whole = np.vstack([losses, np.full((50, 4), 1e6) * np.arange(4)])
    np.testing.assert_allclose(
        prior_weights(whole, np.r_[np.ones(200), np.zeros(50)]), prior_weights(losses, np.ones(200))
    )


# -- the bar ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_worse_than_ridge_on_weak_signals():
    """Squared errors on new rows, in shares of the variance, of four draws beside mean imputation with flags and ridge."""
    behind = []
    for seed in range(10, 14):
        X, y, new, truth = weak(seed)
        flags = SimpleImputer(add_indicator=True)
        ridge = make_pipeline(flags, StandardScaler(), RidgeCV(np.logspace(-2, 4, 13))).fit(X, y)
        ours = LacunarRegressor(members=["linear", "gaussian", "kernels", "forest"], random_state=0).fit(X, y)
        losses = [np.mean((model.predict(new) - truth) ** 2) / truth.var() for model in (ours, ridge)]
        behind.append(losses[0] - losses[1])
    assert np.mean(behind) < 0.005


def test_one_row_far_out_does_not_decide_the_weights():
    rng = np.random.default_rng(0)
    y = rng.normal(size=300)
    good, poor = y + 0.3 * rng.normal(size=300), 0.3 * y + rng.normal(size=300)
    y[0], good[0], poor[0] = 200.0, 0.0, 100.0
    weights = LinearPool().fit([good[:, None], poor[:, None]], y[:, None]).weights_[0]
    assert weights[1] < 0.1
    assert 0.9 < weights[0] < 1.1
