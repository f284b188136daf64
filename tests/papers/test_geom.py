"""`GeomClassifier` against its slow twin, on cases whose answer is known, and on bad input."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference import baselines as twin
from sklearn.svm import LinearSVC

from lacunar.observed import Observed
from lacunar.papers.karma import GeomClassifier
from lacunar.persistence import load_model, save_model


def table(n=40, d=5, missing=0.35, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0
    X[rng.random(X.shape) < missing] = np.nan
    return X, y.astype(int)


def made(**options):
    return GeomClassifier(**{"standardize": False, "tol": 1e-6, "max_iter": 100_000} | options)


def linear(x):
    return np.append(x, 1.0)


def quadratic(x):
    """Features of (x.x' + 1)^2."""
    full = np.append(x, 1.0)
    return np.outer(full, full).ravel()


@pytest.mark.parametrize(("kernel", "phi"), [("linear", linear), ("poly", quadratic)])
@pytest.mark.parametrize("n_rounds", [1, 2, 5])
@pytest.mark.parametrize("C", [0.05, 1.0])
def test_rounds_are_those_of_the_paper(kernel, phi, n_rounds, C):
    X, y = table()
    w, s = twin.geom(X, 2.0 * y - 1, C, n_rounds, phi)
    model = made(C=C, kernel=kernel, n_rounds=n_rounds).fit(X, y)
    slow = np.array([phi(np.nan_to_num(x)) for x in X]) @ w
    np.testing.assert_allclose(model.decision_function(X), slow, atol=5e-3)
    np.testing.assert_allclose(model.subspace_scale_, s, atol=5e-3)


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_without_missing_entries_it_is_the_support_vector_machine(C):
    X, y = table(missing=0.0)
    model = made(C=C).fit(X, y)
    svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-9, max_iter=10**6, random_state=0)
    ones = np.column_stack([X, np.ones(len(X))])
    np.testing.assert_allclose(model.decision_function(X), svm.fit(ones, y).decision_function(ones), atol=5e-3)
    assert model.n_iter_ == 1
    np.testing.assert_allclose(model.subspace_scale_, 1.0)


def test_two_rows_with_one_column_each():
    """Columns of their own and equal sizes a: s = 1 / sqrt 2 from the second round, w = (1, -1) / (a sqrt 2), margin a."""
    model = made(C=1e3, constant=False).fit([[2.0, np.nan], [np.nan, 2.0]], [1, 0])
    np.testing.assert_allclose(model.subspace_scale_, 0.5**0.5, rtol=1e-6)
    w = model.decision_function(np.eye(2))
    np.testing.assert_allclose(w, [8**-0.5, -(8**-0.5)], rtol=1e-3)
    assert model.n_iter_ == 2
    np.testing.assert_allclose(model.objective_, [0.25, 0.125], rtol=1e-3)  # ||w||^2 / 2 by then


def test_the_objective_is_the_one_it_says():
    X, y = table()
    model = made(C=0.5).fit(X, y)
    w = np.append(made(C=0.5).fit(X, y).decision_function(np.eye(5)), 0)
    w[5] = model.decision_function(np.zeros((1, 5)))[0]
    w[:5] -= w[5]
    observed = np.column_stack([~np.isnan(X), np.ones(len(X))])
    s = np.linalg.norm(observed * w, axis=1) / np.linalg.norm(w)
    margin = (2 * y - 1) * (np.nan_to_num(X) @ w[:5] + w[5]) / s
    assert model.objective_[-1] == pytest.approx(0.5 * w @ w + 0.5 * np.maximum(0, 1 - margin).sum(), rel=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "poly"])
@pytest.mark.parametrize("container", [sp.csr_array, sp.coo_matrix, "observed", "float32"])
def test_format_and_dtype_do_not_matter(kernel, container):
    X, y = table()
    X = X.astype(np.float32).astype(np.float64)
    X[0, 0] = 0.0  # observed
    one = made(kernel=kernel).fit(X, y)
    if container == "float32":
        same = X.astype(np.float32)
    elif container == "observed":
        same = Observed.from_dense(X)
    else:
        rows, columns = np.nonzero(~np.isnan(X))
        same = container((X[rows, columns], (rows, columns)), shape=X.shape)
    other = made(kernel=kernel).fit(same, y)
    tolerance = 1e-3 if container == "float32" else 0
    np.testing.assert_allclose(other.decision_function(same), one.decision_function(X), rtol=0, atol=tolerance)
    threads = made(kernel=kernel, n_jobs=3).fit(X, y)
    np.testing.assert_array_equal(threads.decision_function(X), one.decision_function(X))


def test_empty_rows_and_columns_and_one_class(tmp_path):
    X, y = table()
    X[3], X[:, 4] = np.nan, np.nan
    model = made().fit(X, np.where(y == 1, "yes", "no"))
    assert np.isfinite(model.decision_function(X)).all()
    save_model(model, tmp_path / "m.lacunar")
    np.testing.assert_array_equal(load_model(tmp_path / "m.lacunar").predict(X), model.predict(X))
    assert set(made(constant=False).fit(X, y).predict(X)) == {0, 1}
    one = made().fit(X, np.full(len(y), "only"))
    assert set(one.predict(X)) == {"only"}
    assert not one.decision_function(X).any()


def test_a_limit_on_passes_warns():
    X, y = table()
    with pytest.warns(UserWarning, match="duality gap"):
        made(C=1e3, max_iter=1).fit(X, y)


def test_bad_input_is_named():
    X, y = table()
    with pytest.raises(ValueError, match="Only binary"):
        made().fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="row 2, column 1"):
        made().fit(np.where((np.indices(X.shape) == [[[2]], [[1]]]).all(axis=0), np.inf, X), y)
    with pytest.raises(ValueError, match="NaN or infinity"):
        made().fit(X, np.where(np.arange(len(y)) == 4, np.nan, y))
    with pytest.raises(ValueError, match="'min_scale' parameter"):
        made(min_scale=0.0).fit(X, y)
    with pytest.raises(ValueError, match="4 features"):
        made().fit(X, y).predict(X[:, 1:])
