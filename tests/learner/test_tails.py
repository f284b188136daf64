"""Numbers are cut further out where targets go on straight in the far ends of columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar import LacunarClassifier, LacunarRegressor
from lacunar.learner.views import _CLIP, _LONG_CLIP


def heavy(n, seed, freedom=3.0, columns=6, missing=0.1):
    """Columns of long tails, of which some entries are missing; and the same columns whole."""
    rng = np.random.default_rng(seed)
    whole = rng.standard_t(freedom, (n, columns))
    return np.where(rng.random(whole.shape) < missing, np.nan, whole), whole, rng


def straight(n, seed=0, **options):
    X, whole, rng = heavy(n, seed, **options)
    return X, whole @ np.arange(1.0, whole.shape[1] + 1) + 0.5 * rng.standard_normal(n)


def bounded(n, seed=0):
    """No number counts for more than 2."""
    X, whole, rng = heavy(n, seed, freedom=2.0)
    return X, np.clip(whole, -2, 2) @ np.arange(1.0, 7.0) + 0.5 * rng.standard_normal(n)


def is_usual(views):
    return bool(np.isin(views.cut_, [_CLIP, _LONG_CLIP]).all())


def error(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def test_linear_targets_of_columns_with_long_tails_are_learned_as_ridge_regression_does():
    X, y = straight(2600, missing=0.0)
    new, ours = slice(600, None), LacunarRegressor(members=["linear", "gaussian"]).fit(X[:600], y[:600])
    ridge = make_pipeline(SimpleImputer(), StandardScaler(), RidgeCV(np.logspace(-4, 4, 9))).fit(X[:600], y[:600])
    assert not is_usual(ours.views_)
    assert error(ours, X[new], y[new]) < 1.1 * error(ridge, X[new], y[new])


def test_a_gross_error_does_no_harm_where_targets_do_not_go_on():
    X, y = bounded(600)
    model = LacunarRegressor(members=["linear"]).fit(X, y)
    assert is_usual(model.views_)
    mean = np.zeros((1, 6))
    wild = np.c_[mean[:, 1:], 1e6]
    assert np.abs(model.predict(wild) - model.predict(mean))[0] < 5 * y.std()


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_products_and_thresholds_prove_nothing(seed):
    X, whole, rng = heavy(400, seed)
    of_products = whole[:, 0] * whole[:, 1] + whole[:, 2]
    of_thresholds = 2.0 * (whole[:, 0] > 1) - (whole[:, 3] < -0.5) + 0.1 * rng.standard_normal(400)
    for y in (of_products, of_thresholds):
        assert is_usual(LacunarRegressor(members=["linear"]).fit(X, y).views_)


def test_columns_without_long_tails_keep_their_cut():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 5))
    assert is_usual(LacunarRegressor(members=["linear"]).fit(X, X.sum(axis=1)).views_)


def test_classes_do_not_move_the_cut():
    X, y = straight(500)
    assert is_usual(LacunarClassifier(members=["logistic"]).fit(X, y > 0).views_)


def test_sparse_tables_have_the_same_cut():
    X, y = straight(500)
    stored = sp.coo_array(~np.isnan(X))
    sparse = sp.coo_array((X[stored.coords], stored.coords), shape=X.shape).tocsr()
    dense, of_sparse = (LacunarRegressor(members=["linear"]).fit(table, y) for table in (X, sparse))
    assert not is_usual(dense.views_)
    np.testing.assert_array_equal(dense.views_.cut_, of_sparse.views_.cut_)
    np.testing.assert_array_equal(dense.predict(X), of_sparse.predict(sparse))


def test_rows_without_a_target_and_rows_of_weight_0_do_not_move_the_cut():
    X, y = straight(500)
    far = np.vstack([X, 3.0 * X])
    unknown = np.r_[y, np.full(500, np.nan)]
    weight = np.repeat([1.0, 0.0], 500)
    alone = LacunarRegressor(members=["linear"]).fit(X, y)
    weighted = LacunarRegressor(members=["linear"]).fit(far, np.r_[y, -y], sample_weight=weight)
    np.testing.assert_array_equal(weighted.views_.cut_, alone.views_.cut_)
    with pytest.warns(UserWarning, match="lack a label"):
        semi = LacunarRegressor(members=["linear"]).fit(np.vstack([X, straight(500, seed=1)[0]]), unknown)
    assert not is_usual(semi.views_)


def test_several_targets_are_judged_by_rows_that_know_them_all():
    X, y = straight(500)
    both = np.column_stack([y, -2 * y])
    assert not is_usual(LacunarRegressor(members=["linear"]).fit(X, both).views_)
    both[::7, 1] = np.nan
    with pytest.warns(UserWarning, match="lack a label"):
        assert not is_usual(LacunarRegressor(members=["linear"]).fit(X, both).views_)
