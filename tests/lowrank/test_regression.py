"""Regression through a hidden subspace: recovery, labels with holes, streams, uncertainty, bad input."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar import Observed
from lacunar.lowrank import SLRMOnlineRegressor, SLRMRegressor, SLRMRegressorCV
from lacunar.lowrank.drawn import folds_of, row_keys
from lacunar.lowrank.parts import in_parts
from lacunar.lowrank.regression import SubspaceRegression, noise_sums
from lacunar.lowrank.ridge import lasso_on_sums
from lacunar.observed import write_batches
from lacunar.persistence import load_model, save_model


def world(n=900, D=40, d=5, share=0.5, noise=0.3, seed=0, targets=1):
    """Rows, labels, and 500 rows to predict, from the model of section 6; columns are shifted and stretched."""
    rng = np.random.default_rng(seed)
    U, w = np.linalg.qr(rng.normal(size=(D, d)))[0], rng.normal(size=(d, targets))
    a = rng.normal(size=(n + 500, d))
    X = (4 * a @ U.T + noise * rng.normal(size=(n + 500, D))) * rng.uniform(0.5, 20, D) + 10 * rng.normal(size=D)
    y = a @ w + noise * rng.normal(size=(n + 500, targets)) + 7
    X[rng.random(X.shape) > share] = np.nan
    y = y[:, 0] if targets == 1 else y
    return X[:n], y[:n], X[n:], y[n:]


MODELS = {
    "em": SLRMRegressor(5, random_state=0),
    "als": SLRMRegressor(5, solver="als", random_state=0),
    "labels": SLRMRegressor(5, lam1=1.0, random_state=0),
    "stream": SLRMOnlineRegressor(5, random_state=0),
    "per-column": SLRMOnlineRegressor(5, correlation="per-column", forget="auto", random_state=0),
    "cv": SLRMRegressorCV([2, 5], cv=3, random_state=0),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_predicts_better_than_imputing_means(name):
    X, y, X_new, y_new = world()
    model = clone(MODELS[name]).fit(X, y)
    plain = make_pipeline(SimpleImputer(), RidgeCV(np.logspace(-3, 5, 17))).fit(X, y)
    error = np.mean((model.predict(X_new) - y_new) ** 2)
    assert error < 0.7 * np.mean((plain.predict(X_new) - y_new) ** 2)
    assert np.abs(model.components_ @ model.components_.T - np.eye(model.n_components_)).max() < 1e-8
    complete = model.inverse_transform(model.transform(X_new))
    with pytest.raises(ValueError, match="one column a component"):
        model.inverse_transform(np.zeros_like(X_new))
    from_features = model.intercept_ + (complete - model.mean_) @ model.feature_coef_
    np.testing.assert_allclose(from_features, model.predict(X_new), atol=1e-6)


def one_noise(seed, stretch, n=200, D=40, d=5):
    """Rows of columns of other sizes whose noise is one, their labels, and 2,000 rows to predict; columns in units (D,)."""
    rng = np.random.default_rng(seed)
    basis, w = rng.normal(size=(D, d)) * np.exp(rng.normal(size=D) / 2)[:, None], rng.normal(size=d)
    a = rng.normal(size=(n + 2000, d))
    X = (a @ basis.T + 0.5 * rng.normal(size=(len(a), D))) * stretch
    X[rng.random(X.shape) > 0.6] = np.nan
    y = a @ w + 0.3 * rng.normal(size=len(a))
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("name", ["em", "stream", "per-column"])
def test_columns_of_one_noise_are_divided_by_one_number(name):
    """Scaled by their own deviations they would have very different noise; in units of their own they are scaled so."""
    errors = []
    for stretch in (1.0, 10 ** np.random.default_rng(9).uniform(-2, 2, 40)):
        for seed in range(3):
            X, y, X_new, y_new = one_noise(seed, stretch)
            model = clone(MODELS[name]).fit(X, y)
            np.testing.assert_allclose(
                model.scale_, np.nanstd(X, axis=0).max() if np.ndim(stretch) == 0 else np.nanstd(X, axis=0)
            )
            errors.append(np.mean((model.predict(X_new) - y_new) ** 2))
    assert sum(errors[:3]) < 0.85 * sum(errors[3:])


def test_one_number_for_all_columns_is_the_same_from_a_file(tmp_path):
    X, y, X_new, _ = one_noise(0, 1.0)
    whole = clone(MODELS["em"]).fit(X, y)
    cuts = slice(0, 90), slice(90, None)
    stored = write_batches(tmp_path / "rows", [(Observed.from_dense(X[cut]), y[cut]) for cut in cuts])
    parts = clone(MODELS["em"]).fit(stored)
    assert np.ptp(parts.scale_) == 0
    np.testing.assert_allclose(parts.predict(X_new), whole.predict(X_new), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["em", "stream"])
def test_many_rows_choose_their_scale_by_a_sample(name, monkeypatch):
    X, y, _, _ = one_noise(0, 1.0, n=3000)
    whole = clone(MODELS[name]).fit(X, y)
    monkeypatch.setattr("lacunar.lowrank.online._SCALE_ROWS", 500)
    monkeypatch.setattr("lacunar.lowrank.slrm._MANY_ROWS", 1000)
    monkeypatch.setattr("lacunar.lowrank.slrm.most_cells", lambda D: 500 * D)
    judged, find = [], SubspaceRegression._find_one_scale

    def found(model, gaussian, rows):
        judged.append(sum(in_parts(rows).each(lambda part: len(part[1]))))
        return find(model, gaussian, rows)

    monkeypatch.setattr(SubspaceRegression, "_find_one_scale", found)
    sampled = clone(MODELS[name]).fit(X, y)
    assert len(judged) == 1
    assert judged[0] < 1500
    np.testing.assert_array_equal(sampled.scale_, whole.scale_)


@pytest.mark.parametrize("name", ["em", "stream"])
def test_large_columns_without_noise_are_not_cut_off(name):
    """One number for all columns is that of the largest, or none."""
    rng = np.random.default_rng(0)
    latent, basis = rng.normal(size=(1500, 2)), rng.normal(size=(2, 30))
    signal = latent @ (60 * basis / np.sqrt((basis**2).sum(axis=0)))
    X = np.column_stack([signal + 0.7 * rng.normal(size=signal.shape), rng.normal(size=(1500, 8))])
    X[rng.random(X.shape) < 0.2] = np.nan
    y = latent[:, 0] + 0.05 * rng.normal(size=1500)
    model = clone(MODELS[name]).set_params(n_components=2).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.98


def test_noise_sums_are_those_of_their_formula():
    X, y, _, _ = one_noise(0, 1.0)
    model = clone(MODELS["em"]).fit(X, y)
    gaussian, rows = model._gaussian(), model._standardised(model._check_rows(X))
    count, squares = noise_sums((rows, y[:, None]), gaussian, None)
    Z, seen, basis = rows.to_dense(), ~np.isnan(X), gaussian.basis
    expected = np.zeros_like(squares)
    for z, o in zip(Z, seen, strict=True):
        hat = basis[o] @ np.linalg.solve(basis[o].T @ basis[o] + gaussian.ridge * np.eye(5), basis[o].T)
        expected[o] += (z[o] - hat @ z[o]) ** 2 / np.maximum(1 - np.diag(hat), 0.05)
    np.testing.assert_array_equal(count, seen.sum(axis=0))
    np.testing.assert_allclose(squares, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["em", "als", "stream"])
def test_labels_may_be_missing(name):
    X, y, X_new, y_new = world()
    y = y.copy()
    y[200:] = np.nan
    error = np.mean((clone(MODELS[name]).fit(X, y).predict(X_new) - y_new) ** 2)
    alone = np.mean((clone(MODELS[name]).fit(X[:200], y[:200]).predict(X_new) - y_new) ** 2)
    assert error < alone  # rows without a label tell about the subspace


@pytest.mark.parametrize("name", ["em", "als"])
def test_many_targets_are_one_fit(name):
    X, y, X_new, y_new = world(targets=3)
    y[::4, 1] = np.nan
    plain = clone(MODELS[name]).set_params(lam1="inf")  # labels that tell about the subspace do so together
    model = clone(plain).fit(X, y)
    assert model.predict(X_new).shape == (500, 3)
    one = clone(plain).fit(X, y[:, 1])
    np.testing.assert_allclose(model.predict(X_new)[:, 1], one.predict(X_new))
    assert model.score(X_new, y_new) > 0.5


def test_uncertainty_covers():
    X, y, X_new, y_new = world(n=3000)
    mean, std = MODELS["em"].fit(X, y).predict(X_new, return_std=True)
    z = (y_new - mean) / std
    assert 0.93 < (np.abs(z) < 1.96).mean() < 0.97
    with pytest.raises(ValueError, match="return_std needs"):
        MODELS["per-column"].fit(X[:300], y[:300]).predict(X_new, return_std=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_uncertainty_is_that_of_the_residuals_where_y_depends_on_the_entries_themselves(seed):
    """y = b x + noise has less to fear of a missing code than y = w a: the label variance alone cannot be below 0."""
    rng = np.random.default_rng(seed)
    X = 1 + rng.normal(size=(1500, 10)) @ np.linalg.cholesky(0.8 + 0.2 * np.eye(10)).T
    y = X @ rng.normal(size=10) + 0.5 * rng.normal(size=1500)
    X[rng.random(X.shape) < 0.2] = np.nan
    mean, std = SLRMRegressor(3, random_state=0).fit(X[:750], y[:750]).predict(X[750:], return_std=True)
    assert 0.9 < np.sqrt(np.mean(std**2) / np.mean((mean - y[750:]) ** 2)) < 1.1


@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_uncertainty_is_right_for_every_number_missing(noise):
    """Also where y depends on what the subspace leaves to noise, and for rows without a missing entry."""
    rng = np.random.default_rng(0)
    X = 1 + rng.normal(size=(3000, 10)) @ np.linalg.cholesky(0.8 + 0.2 * np.eye(10)).T
    y = X @ rng.normal(size=10) + noise * rng.normal(size=3000)
    X[rng.random(X.shape) < rng.choice([0, 0.2, 0.5, 0.8], (3000, 1))] = np.nan
    mean, std = SLRMRegressor(8, random_state=0).fit(X[:1500], y[:1500]).predict(X[1500:], return_std=True)
    missing, squares = np.isnan(X[1500:]).sum(axis=1), (mean - y[1500:]) ** 2
    for rows in (missing == 0, (missing > 0) & (missing < 5), missing >= 5):
        assert 0.85 < np.sqrt(np.mean(std[rows] ** 2) / np.mean(squares[rows])) < 1.15


@pytest.mark.parametrize("name", MODELS)
def test_containers_threads_and_files_do_not_matter(name, tmp_path):
    X, y, X_new, _ = world(n=300)
    rows = Observed.from_dense(X)
    model = clone(MODELS[name]).fit(X, y)
    expected = model.predict(X_new)
    for form in (rows, sp.csr_array(rows.to_scipy()), sp.csc_matrix(rows.to_scipy())):
        np.testing.assert_allclose(clone(MODELS[name]).fit(form, y).predict(X_new), expected, rtol=1e-9)
    if "n_jobs" in model.get_params():
        np.testing.assert_array_equal(clone(MODELS[name]).set_params(n_jobs=3).fit(X, y).predict(X_new), expected)
    save_model(model, tmp_path / "m.lacunar")
    np.testing.assert_array_equal(load_model(tmp_path / "m.lacunar").predict(X_new), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X_new), expected)


@pytest.mark.parametrize("correlation", ["shared", "per-column"])
def test_a_stream_goes_on_however_it_is_split(correlation, tmp_path):
    X, y, X_new, y_new = world()
    made = []
    for cuts in ((400, 900), (400, 401, 450, 700, 900)):
        model, start = SLRMOnlineRegressor(5, correlation=correlation, random_state=0), 0
        for stop in cuts:
            model.partial_fit(X[start:stop], y[start:stop])
            start = stop
        made.append(model)
    np.testing.assert_array_equal(made[0].components_, made[1].components_)
    assert made[1].score(X_new, y_new) > 0.6
    save_model(made[0], tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar").partial_fit(X_new[:100], y_new[:100])
    np.testing.assert_array_equal(again.components_, made[0].partial_fit(X_new[:100], y_new[:100]).components_)


@pytest.mark.parametrize("cls", [SLRMRegressor, SLRMOnlineRegressor])
def test_more_components_than_columns_are_refused(cls):
    X, y, _, _ = world(n=80, D=8, d=2)
    assert cls(random_state=0).fit(X, y).n_components_ == 8
    with pytest.raises(ValueError, match="n_components must be at most the number of columns, 8; got 9"):
        cls(9).fit(X, y)


@pytest.mark.parametrize(("n", "D", "gap"), [(3, 30, 0.7), (5, 10, 0.7), (8, 30, 0.0), (8, 30, 0.7), (15, 10, 0.7)])
def test_few_entries_carry_few_components(n, D, gap):
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n + 200, D)), rng.normal(size=n + 200)
    X[rng.random(X.shape) < gap] = np.nan
    for model in (SLRMRegressor(), SLRMOnlineRegressor(), SLRMRegressorCV()):
        predicted = model.set_params(random_state=0).fit(X[:n], y[:n]).predict(X[n:])
        assert np.mean((predicted - y[n:]) ** 2) < 4 * np.mean((y[:n].mean() - y[n:]) ** 2), model


def test_one_column_is_searched_with_one_component():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    assert SLRMRegressorCV().fit(X, 2 * X[:, 0]).best_params_["n_components"] == 1
    with pytest.raises(ValueError, match="dimensions of at least 1; got \\[0, 1\\]"):
        SLRMRegressorCV([0, 1]).fit(X, X[:, 0])


def equal_noise(n):
    """Rows whose columns have noise of one size and signals of many, labels, and 300 rows to predict."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(n + 300, 3))
    X = a @ (np.geomspace(0.5, 6, 20) * rng.normal(size=(3, 20))) + rng.normal(size=(n + 300, 20))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X[:n], a[:n, 0], X[n:], a[n:, 0]


@pytest.mark.parametrize("over", ["rows", "cells"])
def test_a_search_fits_in_the_units_it_scored(over):
    X, y, _, _ = equal_noise(400)
    options = {"lam1": "auto", "over": over, "random_state": 0}
    assert len(np.unique(SLRMRegressorCV([3], **options).fit(X, y).scale_)) == 1
    own_noise = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0) + np.random.default_rng(0).normal(size=X.shape)
    own_noise *= np.exp(np.arange(20) / 5)
    assert len(np.unique(SLRMRegressorCV([3], **options).fit(own_noise, y).scale_)) == 20


def test_a_first_batch_chooses_the_scale_as_fit_does():
    X, y, X_new, y_new = equal_noise(800)
    model = SLRMOnlineRegressor(3, random_state=0)
    own = clone(model).partial_fit(X[:10], y[:10])  # too few entries to tell
    assert len(np.unique(own.scale_)) == 20
    model.partial_fit(X[:400], y[:400])
    assert len(np.unique(model.scale_)) == 1
    assert len(np.unique(clone(model).fit(X[:400], y[:400]).scale_)) == 1
    model.partial_fit(X[400:], y[400:])
    own.partial_fit(X[10:], y[10:])
    assert 1 - model.score(X_new, y_new) < 0.9 * (1 - own.score(X_new, y_new))


def test_lasso_on_sums_is_the_lasso():
    from sklearn.linear_model import Lasso

    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(200, 6)), rng.normal(size=200)
    expected = Lasso(alpha=0.05, fit_intercept=False, tol=1e-12).fit(A, y).coef_
    np.testing.assert_allclose(lasso_on_sums(A.T @ A, A.T @ y, 200, 0.1, 0.0, np.zeros(6)), expected, atol=1e-8)


def test_degenerate_input():
    X, y, X_new, _ = world(n=120, D=12, d=2, share=0.3)
    X[3], X[:, 5], X[:, 6] = np.nan, np.nan, 4.0
    X[3, 6] = np.nan
    for name in ("em", "als", "stream"):
        model = clone(MODELS[name]).set_params(n_components=11).fit(X, y)
        assert np.isfinite(model.predict(X_new)).all(), name
        row = np.full((1, 12), np.nan)
        np.testing.assert_allclose(model.predict(row), model.intercept_)
    unlabelled = clone(MODELS["em"]).fit(X, np.full(120, np.nan))
    with pytest.raises(ValueError, match="no known value"):
        unlabelled.predict(X_new)
    assert unlabelled.transform(X_new).shape == (500, 5)
    few = clone(MODELS["em"]).fit(X[:3], y[:3])
    assert np.isfinite(few.predict(X_new)).all()


def test_bad_input_is_named_and_nothing_is_lost():
    X, y, _, _ = world(n=200)
    model = SLRMOnlineRegressor(5, standardize=False, random_state=0).partial_fit(X, y)
    before = pickle.dumps(model.state_)
    wild = X[:9].copy()
    wild[4] = 1e250
    for bad, message in ((X[:5, :7], "7 features"), (wild, "row 4")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad, y[: len(bad)])
        assert pickle.dumps(model.state_) == before
    with pytest.raises(ValueError, match="infinity"):
        model.partial_fit(X[:2], [np.inf, 1.0])
    with pytest.raises(ValueError, match="takes one target"):
        SLRMOnlineRegressor(5).fit(X, np.column_stack([y, y]))
    assert not hasattr(SLRMRegressor(), "partial_fit")
    with pytest.raises(ValueError, match="n_components must be at most 64"):
        SLRMOnlineRegressor(65).fit(np.ones((3, 70)), np.ones(3))


def test_dimension_is_found_by_folds():
    X, y, _, _ = world(n=300, d=3, noise=0.5)
    model = SLRMRegressorCV([1, 3, 12], lam1=["inf"], alpha=["auto", 0.1, 10.0], cv=3, random_state=0).fit(X, y)
    assert model.best_params_["n_components"] in (3, 12)
    assert len(model.cv_results_["params"]) == 9
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()


def test_dimension_is_found_by_hidden_cells_without_labels():
    X, _, _, _ = world(n=400, d=3, noise=0.5)
    model = SLRMRegressorCV([1, 3, 12], lam1=["inf"], over="cells", cv=3, random_state=0).fit(X, np.full(400, np.nan))
    assert model.best_params_["n_components"] == 3
    assert model.transform(X).shape == (400, 3)


def little_variance(n, seed=0, D=30, d=3):
    """Rows of d directions, and one of little variance, which alone y depends on."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(D, d + 1)))[0] * np.sqrt(D / d)
    a = rng.normal(size=(n + 500, d + 1))
    X = (a * np.r_[np.full(d, 1.5), 0.4]) @ U.T + 0.5 * rng.normal(size=(len(a), D))
    y = a[:, d] + 0.3 * rng.normal(size=len(a))
    X[rng.random(X.shape) < 0.4] = np.nan
    return X[:n], y[:n], X[n:], y[n:]


def test_labels_choose_a_direction_of_little_variance():
    X, y, X_new, y_new = little_variance(300)
    plain, model = (SLRMRegressor(3, lam1=lam1, random_state=0).fit(X, y) for lam1 in ("inf", "auto"))
    errors = [np.mean((m.predict(X_new) - y_new) ** 2) for m in (plain, model)]
    assert errors[1] < 0.7 * errors[0]
    assert (plain.n_components_, model.n_components_) == (3, 4)
    again = SLRMRegressor(3, random_state=0, n_jobs=2).fit(X[::-1], y[::-1])  # rows are held out by what they hold
    np.testing.assert_allclose(again.predict(X_new), model.predict(X_new), rtol=1e-6)


def test_the_search_finds_a_direction_of_little_variance():
    X, y, X_new, y_new = little_variance(300, seed=1)
    searched = SLRMRegressorCV([3], cv=3, random_state=0).fit(X, y)
    plain = SLRMRegressor(3, lam1="inf").fit(X, y)
    errors = [np.mean((m.predict(X_new) - y_new) ** 2) for m in (plain, searched)]
    assert searched.best_params_ == {"n_components": 3, "lam1": "auto", "alpha": "auto"}
    assert (searched.n_components_, searched.components_.shape) == (4, (4, 30))
    assert errors[1] < 0.7 * errors[0]
    many = SLRMRegressorCV([3], cv=3, random_state=0).fit(np.tile(X, (12, 1)), np.tile(y, 12))  # searched on a sample
    assert np.mean((many.predict(X_new) - y_new) ** 2) < 1.05 * errors[1]
    cells = SLRMRegressorCV([3], over="cells", cv=3, random_state=0).fit(X, np.full(300, np.nan))
    assert cells.best_params_["n_components"] == 3  # without a label there is no direction to add


def test_labels_that_gain_nothing_leave_the_subspace_as_it_is():
    X, _, X_new, _ = little_variance(300)
    y = np.random.default_rng(1).normal(size=300)
    plain, model = (SLRMRegressor(3, lam1=lam1, random_state=0).fit(X, y) for lam1 in ("inf", "auto"))
    np.testing.assert_array_equal(plain.predict(X_new), model.predict(X_new))


@pytest.mark.parametrize("lam1", ["inf", pytest.param("auto", marks=pytest.mark.slow)])
def test_many_rows_are_fitted_in_a_few_steps(lam1, tmp_path):
    X, y, X_new, y_new = little_variance(24_000)
    y[::3] = np.nan
    model = SLRMRegressor(3, lam1=lam1, random_state=0)
    one = clone(model).fit(X, y)
    assert one.n_iter_ <= 10
    assert one.converged_
    few = SLRMRegressor(3, lam1=lam1, random_state=0).fit(X[:4000], y[:4000])
    error, least = (np.mean((m.predict(X_new) - y_new) ** 2) for m in (one, few))
    assert error < 1.02 * least
    cuts = [slice(start, start + 7000) for start in range(0, len(X), 7000)]
    rows = write_batches(tmp_path / "rows", [(Observed.from_dense(X[cut]), y[cut]) for cut in cuts])
    of_file = clone(model).fit(rows)
    np.testing.assert_allclose(of_file.predict(X_new), one.predict(X_new), rtol=1e-6)
    np.testing.assert_array_equal(clone(model).set_params(n_jobs=2).fit(X, y).predict(X_new), one.predict(X_new))


def test_drawn_rows_are_the_same_whatever_their_order_and_type():
    X, y, _, _ = little_variance(500)
    rows, labels = Observed.from_dense(X.astype(np.float32).astype(np.float64)), y[:, None]
    keys = row_keys(rows, labels, 3)
    assert len(np.unique(keys)) == len(keys)
    assert 0.4 < keys.mean() < 0.6
    np.testing.assert_array_equal(row_keys(rows[np.arange(499, -1, -1)], labels[::-1], 3), keys[::-1])
    np.testing.assert_array_equal(row_keys(rows.astype(np.float32), labels, 3), keys)
    assert np.abs(np.bincount(folds_of(keys[keys < 0.5], 5)) - (keys < 0.5).sum() / 5).max() < 30
    assert not np.array_equal(row_keys(rows, labels, 4), keys)


@pytest.mark.parametrize("correlation", ["shared", "per-column"])
def test_a_stream_learns_the_means_of_columns_and_labels(correlation):
    """Rows of a plane that does not meet the means of its first batch, which are what standardising subtracts."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(1700, 4))
    X = a @ rng.normal(size=(4, 30)) + 20 * rng.normal(size=30)
    y = a @ rng.normal(size=4) - 5
    X[rng.random(X.shape) < 0.4] = np.nan
    model = SLRMOnlineRegressor(4, correlation=correlation, random_state=0)
    for start in range(0, 1200, 40):
        model.partial_fit(X[start : start + 40], y[start : start + 40])
    whole = SLRMOnlineRegressor(4, correlation=correlation, random_state=0).fit(X[:1200], y[:1200])
    for fitted in (model, whole):
        assert np.mean((fitted.predict(X[1200:]) - y[1200:]) ** 2) < 1e-5 * np.var(y)
    bare = SLRMOnlineRegressor(4, standardize=False).fit(X - np.nanmean(X, axis=0), y)
    assert not bare.mean_.any()  # columns that are taken as they come have no mean to learn
