"""kernels="auto": kernels on expanded columns, against their formula, and the models they make."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaRegressor, KarmaRegressorCV, Observed
from lacunar.karma import cv as searches
from lacunar.karma import expansion
from lacunar.karma.calibrate import fit_calibration, probabilities
from lacunar.karma.expansion import expand, fit_expansion
from lacunar.kernels import pair_sums
from lacunar.persistence import load_model, save_model


def table(n=240, d=6, seed=0):
    """Labels that are no linear function of the columns; the last column has three levels; a fifth is missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, -1] = rng.integers(3, size=n)
    y = (np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 1.5 * (X[:, -1] == 1) > 1.2).astype(int)
    X[rng.random(X.shape) < 0.2] = np.nan
    X[5] = np.nan
    return X, y


def test_levels_are_equality_and_gaussians_are_gaussians():
    X, _ = table()
    rows = Observed.from_dense(X)
    seen = ~np.isnan(X)
    both = (seen[:, None] & seen).sum(axis=2)
    plain = np.nansum(X[:, None] * X, axis=2)
    sums, counts = pair_sums(expand(rows, fit_expansion(rows, "levels")))
    equal = np.nansum(X[:, None, -1:] == X[:, -1:], axis=2)
    np.testing.assert_allclose(sums, plain + equal, atol=1e-12)
    np.testing.assert_array_equal(counts, 9 * both)
    sums, counts = pair_sums(expand(rows, fit_expansion(rows, "gaussian")))
    bumps = np.nansum(np.exp(-((X[:, None] - X) ** 2) / 2), axis=2)
    np.testing.assert_array_equal(counts, 7 * both)
    middle = np.nan_to_num(np.abs(X)).max(axis=1) < 2  # tails lie beyond the landmarks
    np.testing.assert_allclose((sums - plain)[middle][:, middle], bumps[middle][:, middle], atol=0.15)


def test_where_nothing_can_be_expanded_nothing_is():
    hole = Observed.from_dense(np.full((4, 3), np.nan))
    assert fit_expansion(hole, "gaussian") is None
    assert fit_expansion(Observed.from_dense(np.random.default_rng(0).normal(size=(50, 2))), "levels") is None
    assert expand(hole, None) is hole


@pytest.mark.parametrize("kind", [KarmaClassifierCV, KarmaRegressorCV])
def test_auto_finds_what_lines_cannot(kind, tmp_path):
    X, y = table(n=700)
    y = y.astype(float) if kind is KarmaRegressorCV else y
    plain, auto = kind(kernels="karma").fit(X[:500], y[:500]), kind().fit(X[:500], y[:500])
    assert auto.score(X[500:], y[500:]) > plain.score(X[500:], y[500:]) + 0.02
    assert {each["table"] for each in plain.chosen_} == {"plain"}
    assert len(auto.chosen_) == len(auto.selection_.forms_) <= 4
    assert {each["table"] for each in auto.chosen_} - {"plain"}
    expected = auto.predict(X)
    rows = Observed.from_dense(X)
    np.testing.assert_array_equal(auto.predict(sp.csr_array(rows.to_scipy())), expected)
    np.testing.assert_array_equal(auto.predict(rows), expected)
    save_model(auto, tmp_path / "m.lacunar")
    np.testing.assert_array_equal(load_model(tmp_path / "m.lacunar").predict(X), expected)


def test_weights_of_zero_take_no_part():
    X, y = table()
    weight = (np.arange(240) % 3 > 0).astype(float)
    kept = weight > 0
    one = KarmaClassifierCV(kernels="auto").fit(X, y, weight)
    other = KarmaClassifierCV(kernels="auto").fit(X[kept], y[kept])
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kind", [KarmaClassifierCV, KarmaRegressorCV])
def test_no_table_is_expanded_beyond_its_limit(kind, monkeypatch):
    X, y = table(n=300)
    monkeypatch.setattr(expansion, "_MOST_ENTRIES", int(np.isfinite(X).sum()) * 6)
    search = kind().fit(X, 1.0 * y if kind is KarmaRegressorCV else y)
    assert {each["expand"] for each in search.chosen_} == {None}
    assert set(search.cv_results_["param_expand"]) == {"None"}


def test_a_composed_kernel_learns_products_and_is_found():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 5))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    X[rng.random(X.shape) < 0.1] = np.nan
    plain = KarmaClassifier().fit(X[:350], y[:350])
    found = KarmaClassifierCV().fit(X[:350], y[:350])
    assert found.score(X[350:], y[350:]) > plain.score(X[350:], y[350:]) + 0.1
    assert set(found.cv_results_["param_degree"]) == {1, 2}


@pytest.mark.parametrize("kind", [KarmaClassifierCV, KarmaRegressorCV])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_many_rows_are_fitted_by_the_weight_table_that_does_better_on_others(kind, cv, monkeypatch):
    X, y = table(n=4000)
    y = y.astype(float) if kind is KarmaRegressorCV else y
    monkeypatch.setattr(searches, "_MANY", 3500)
    many = kind(max_search_rows=150, cv=cv).fit(X, y)
    model = many.estimators_[0]
    assert (len(many.estimators_), model.solver_, model.n_rows_seen_) == (1, "primal", 3920)
    assert set(many.cv_results_["param_gamma"]) <= {1, 2}
    assert many.best_score_ == many.cv_results_["mean_test_score"][many.cv_results_["rung"] == 3][0]
    default = (KarmaRegressor if kind is KarmaRegressorCV else KarmaClassifier)().fit(X, y)
    assert many.score(X, y) > default.score(X, y) - 0.01
    if kind is KarmaClassifierCV:
        shares = many.predict_proba(X)[:, 1]
        assert abs(shares.mean() - y.mean()) < 0.05
        rate = y.mean()
        entropy = -rate * np.log(rate) - (1 - rate) * np.log(1 - rate)
        assert -np.log(np.where(y == 1, shares, 1 - shares)).mean() < entropy


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_those_of_the_written_formula(classes):
    """softmax(e^a F + b) at the (a, b) of least penalised log loss, found by another optimiser."""
    rng = np.random.default_rng(0)
    codes = rng.integers(classes, size=200)
    values = rng.normal(size=(200, 1 if classes == 2 else classes))
    values[:, -1] += codes == classes - 1
    weight = rng.integers(1, 3, 200).astype(float)
    prior = np.log(2.0) if classes == 2 else np.log(classes / 2)

    def shares(u):
        logits = np.exp(u[0]) * values + u[1:]
        logits = np.column_stack([np.zeros(200), logits]) if classes == 2 else logits
        return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)

    def loss(u):
        return -weight @ np.log(shares(u)[np.arange(200), codes]) + ((u[0] - prior) ** 2 + u[1:] @ u[1:]) / 2

    found = fit_calibration(values, codes, weight)
    least = minimize(loss, found + 0.3, method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
    assert loss(found) <= least.fun + 1e-6
    np.testing.assert_allclose(probabilities(values, found), shares(least.x), atol=1e-3)
