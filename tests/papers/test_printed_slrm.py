"""SLRM, MPCR and SMPCR of `lacunar.papers.slrm` against the algorithms line by line; what they refuse; files of them."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from reference.slrm import algorithm_1, code, lasso, mpcr, predicted, smpcr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lacunar import Observed
from lacunar._random import generator
from lacunar.lowrank.em import first_basis
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM
from lacunar.persistence import load_model, save_model


def printed(seed=0, n=60, D=24, d=3):
    """Rows, labels and a start for the printed algorithms: nothing centred, some rows with fewer entries than directions."""
    rng = np.random.default_rng(seed)
    basis, w = np.linalg.qr(rng.normal(size=(D, d)))[0], rng.normal(size=d)
    a = rng.normal(size=(n, d))
    X = a @ basis.T + 0.05 * rng.normal(size=(n, D))
    X[rng.random(X.shape) < 0.6] = np.nan
    X[::9] = np.where(np.arange(D) < d - 1, X[::9], np.nan)
    X[np.isnan(X).all(axis=1), 0] = 0.1
    start = np.linalg.qr(basis + 0.3 * rng.normal(size=(D, d)))[0]
    return X, a @ w + 0.05 * rng.normal(size=n) + 1, start


ALL = {
    "SLRM": PrintedSLRM(3, gamma=0.9, random_state=0),
    "SLRM by pass": PrintedSLRM(3, gamma=0.99, max_iter=4, validate="pass", random_state=0),
    "MPCR": MPCR(3, random_state=0),
    "SMPCR": SMPCR(3, max_iter=5, random_state=0),
}


@pytest.mark.parametrize("more", [{}, {"delta": 3.0}, {"constant_rounds": 7}])
@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(2))
def test_slrm_is_algorithm_1(seed, gamma, more):
    X, y, start = printed(seed)
    inputs = {"rho": 0.05, "gamma": gamma, "delta": 10.0} | {k: v for k, v in more.items() if k == "delta"}
    model = PrintedSLRM(3, lambda_1=2.0, lambda_2=0.01, lambda_3=0.015, max_iter=2, U0=start, **(inputs | more))
    model.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])
    first = lasso(np.array([code(start, ~np.isnan(x), x) for x in X[:40]]), y[:40], 0.01)
    inputs |= {"lam1": 2.0, "lam2": 0.01, "lam3": 0.015, "constant_until": more.get("constant_rounds", 40)}
    U, w, errors = algorithm_1(X[:40], y[:40], X[40:], y[40:], start, first, **inputs, passes=2)
    assert len(set(errors)) > 2
    np.testing.assert_allclose(model.validation_errors_, errors, rtol=1e-7)
    np.testing.assert_allclose(model.components_.T, U, atol=1e-8)
    np.testing.assert_allclose(model.coef_, w, atol=1e-8)
    expected = [predicted(U, w, x, gamma) for x in X]
    assert 0.0 in expected
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-7)


def test_the_defaults_refuse_nearly_every_row_with_a_missing_entry():
    X, y, _ = printed()
    with pytest.warns(
        UserWarning, match=r"gate of \(6\) refuses \d\d% of the rows with gamma=0\.001, and 0 is predicted"
    ):
        model = PrintedSLRM(3, random_state=0).fit(X, y)
    assert len(model.validation_errors_) == 45
    with pytest.warns(UserWarning, match="the gate of") as told:
        zeros = np.mean(model.predict(X[~np.isnan(X).all(axis=1)]) == 0)
    assert zeros > 0.9
    assert f"{zeros:.0%} of the rows" in str(told[0].message)
    assert model.predict(np.ones((1, 24)))[0] != 0  # of a complete row, which passes: no warning


def test_a_gate_that_lets_most_rows_through_is_silent():
    X, y, _ = printed()
    X[::9] = np.nan  # rows without an entry are predicted as 0, but not by the gate
    model = PrintedSLRM(3, gamma=0.99, random_state=0).fit(X, y)
    assert 0 < np.mean(model.predict(X) == 0) < 0.5


def test_slrm_learns_where_its_gate_is_open():
    rng = np.random.default_rng(0)
    U, w = np.linalg.qr(rng.normal(size=(40, 5)))[0], rng.normal(size=5)
    a = rng.normal(size=(1400, 5))
    X, y = a @ U.T + 0.07 * rng.normal(size=(1400, 40)), a @ w + 0.3 * rng.normal(size=1400)
    X[rng.random(X.shape) > 0.5] = np.nan
    model = PrintedSLRM(5, rho=1e-2, gamma=0.99, max_iter=10, validate="pass", random_state=0)
    error = np.mean((y[900:] - model.fit(X[:900], y[:900]).predict(X[900:])) ** 2)
    assert error < 0.4 * y[900:].var()
    complete = model.inverse_transform(model.transform(X[900:]))
    assert np.mean((complete - a[900:] @ U.T) ** 2) < 0.5 * np.mean((a[900:] @ U.T) ** 2)


def test_without_rows_to_validate_on_the_last_iterate_is_kept():
    X, y, start = printed()
    longer = PrintedSLRM(3, max_iter=3, validate=None, U0=start).fit(X, y)
    assert longer.validation_errors_ == []
    once = PrintedSLRM(3, validate=None, U0=start).fit(X, y)
    assert np.abs(once.coef_ - longer.coef_).max() > 1e-6


@pytest.mark.parametrize(("delta", "constant"), [(10.0, None), (3.0, 20)])
@pytest.mark.parametrize("seed", range(3))
def test_smpcr_is_petrels_and_then_proximal_steps(seed, delta, constant):
    X, y, start = printed(seed)
    model = SMPCR(3, lam=0.02, rho=0.01, delta=delta, constant_rounds=constant, max_iter=3, U0=start).fit(X, y)
    inputs = {"lam": 0.02, "rho": 0.01, "delta": delta, "constant_until": constant or 60}
    V, w = smpcr(X, y, start, np.zeros(3), **inputs, passes=3)
    root = np.linalg.inv(V.T @ V)
    np.testing.assert_allclose(model.feature_coef_, V @ root @ w, atol=1e-8)
    full = np.random.default_rng(1).normal(size=(5, 24))
    np.testing.assert_allclose(model.predict(full), full @ V @ root @ w, atol=1e-8)


def test_mpcr_is_alternating_minimisation_and_then_the_lasso():
    X, y, _ = printed()
    X[::9] = np.where(np.arange(24) < 8, np.random.default_rng(0).normal(size=X[::9].shape), np.nan)
    start = first_basis(Observed.from_dense(X), 3, generator(0))[0]
    model = MPCR(3, lam=0.02, max_iter=5, tol=0.0, random_state=0).fit(X, y)
    U, w = mpcr(X, y, start, 0.02, 5)
    np.testing.assert_allclose(model.feature_coef_, U @ w, atol=1e-7)
    np.testing.assert_allclose(model.predict(np.ones((1, 24))), np.ones(24) @ U @ w, atol=1e-7)


@pytest.mark.parametrize("name", ALL)
def test_containers_copies_and_files_do_not_matter(name, tmp_path):
    X, y, _ = printed()
    y[::5] = np.nan
    rows, model = Observed.from_dense(X), clone(ALL[name]).fit(X, y)
    expected = model.predict(X)
    for form in (rows, sp.csr_array(rows.to_scipy())):
        np.testing.assert_allclose(clone(ALL[name]).fit(form, y).predict(X), expected, rtol=1e-9)
    save_model(model, tmp_path / "m.lacunar")
    np.testing.assert_array_equal(load_model(tmp_path / "m.lacunar").predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    assert model.predict(np.full((1, 24), np.nan)) == 0


def test_what_does_not_fit_is_refused():
    X, y, start = printed()
    for inputs, message in (
        ({"U0": 2 * start}, "orthonormal columns"),
        ({"U0": start[:, :2]}, r"U0 must have shape \(24, 3\)"),
        ({"w0": [1.0]}, r"w0 must have shape \(3,\)"),
    ):
        for cls in (PrintedSLRM, SMPCR):
            with pytest.raises(ValueError, match=message):
                cls(3, **inputs).fit(X, y)
    with pytest.raises(ValueError, match="together"):
        PrintedSLRM(3).fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="at least one value must be known"):
        MPCR(3).fit(X, np.full(60, np.nan))
    for cls in (PrintedSLRM, MPCR, SMPCR):
        with pytest.raises(ValueError, match="takes one target"):
            cls(3).fit(X, np.column_stack([y, y]))
        with pytest.raises(ValueError, match="d must be at most the number of columns, 24; got 25"):
            cls(25).fit(X, y)
    for cls in (PrintedSLRM, SMPCR):
        with pytest.raises(ValueError, match="d must be at most 1024"):
            cls(1025).fit(np.ones((3, 1030)), np.ones(3))


@pytest.mark.parametrize("d", [70, 130])
def test_more_directions_than_64_are_algorithm_1_too(d):
    rng, D = np.random.default_rng(0), d + 20
    start, w = np.linalg.qr(rng.normal(size=(D, d)))[0], rng.normal(size=d)
    X = rng.normal(size=(14, d)) @ np.linalg.qr(rng.normal(size=(D, d)))[0].T + 0.05 * rng.normal(size=(14, D))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[::3, : D - d + 5] = np.nan  # some rows with fewer entries than directions
    y = rng.normal(size=14)
    inputs = {"rho": 0.01, "gamma": 1 - 1e-9, "delta": 10.0}
    model = PrintedSLRM(d, lambda_1=2.0, lambda_2=0.01, lambda_3=0.01, U0=start, w0=w, **inputs)
    model.fit(X[:10], y[:10], X_val=X[10:], y_val=y[10:])
    inputs |= {"lam1": 2.0, "lam2": 0.01, "lam3": 0.01, "constant_until": 10}
    U, w, errors = algorithm_1(X[:10], y[:10], X[10:], y[10:], start, w, **inputs)
    np.testing.assert_allclose(model.validation_errors_, errors, rtol=1e-6)
    np.testing.assert_allclose(model.components_.T, U, atol=1e-8)
    np.testing.assert_allclose(model.coef_, w, atol=1e-8)
    V, w = smpcr(X, y, start, np.zeros(d), lam=0.02, rho=0.01, delta=10.0, constant_until=14, passes=1)
    found = SMPCR(d, lam=0.02, rho=0.01, max_iter=1, U0=start).fit(X, y)
    np.testing.assert_allclose(found.feature_coef_, V @ np.linalg.inv(V.T @ V) @ w, atol=1e-7)


def same_model(a, b):
    """Equal but for rounding: where a pass is cut decides on the last bit of T."""
    assert a.n_singular_ == b.n_singular_
    assert a.best_error_ == pytest.approx(b.best_error_, rel=1e-9)
    pools = [m.state_["pool"][m.state_["slot"][m.state_["slot"] >= 0]] for m in (a, b)]
    for one, other in ((a.components_, b.components_), (a.coef_, b.coef_), pools):
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("held_out", [False, True])
def test_a_stream_is_algorithm_1(held_out):
    """Row by row after the first ones, with a hold-out set or without."""
    X, y, start = printed()
    inputs = {"rho": 0.05, "gamma": 0.99, "delta": 10.0}
    model = PrintedSLRM(3, lambda_1=2.0, U0=start, w0=[0.1, 0.2, 0.3], constant_rounds=25, **inputs)
    more = {"X_val": X[40:], "y_val": y[40:]} if held_out else {}
    for part in (slice(0, 10), *(slice(i, i + 1) for i in range(10, 30)), slice(30, 40)):
        model.partial_fit(X[part], y[part], **more)
    first = np.array([0.1, 0.2, 0.3])
    inputs |= {"lam1": 2.0, "lam2": 1e-3, "lam3": 1e-3, "constant_until": 25}
    U, w, errors = algorithm_1(X[:40], y[:40], X[40:], y[40:], start, first, **inputs)
    if held_out:
        np.testing.assert_allclose(model.validation_errors_, errors, rtol=1e-7)
        assert model.best_error_ == min(model.validation_errors_)
        np.testing.assert_allclose(model.components_.T, U, atol=1e-8)
        np.testing.assert_allclose(model.coef_, w, atol=1e-8)
    else:
        assert model.validation_errors_ == []
    whole = clone(model).fit(X[:40], y[:40], **(more or {"X_val": None, "y_val": None}))
    if held_out:
        same_model(model, whole)
    else:
        same_model(model, clone(model).set_params(validate=None).fit(X[:40], y[:40]))


def test_rows_without_a_label_move_the_subspace_alone():
    X, y, _ = printed()
    model = PrintedSLRM(3, gamma=0.99, random_state=0).partial_fit(X[:30], y[:30])
    weights, U = model.coef_, model.components_
    model.partial_fit(X[30:], np.full(30, np.nan))
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12)
    assert np.abs(model.components_ - U).max() > 1e-6


def test_a_stream_goes_on_from_a_file_and_batches_are_its_parts(tmp_path):
    X, y, _ = printed()
    model = PrintedSLRM(3, gamma=0.99, random_state=0).partial_fit(X[:30], y[:30])
    save_model(model, tmp_path / "m.lacunar")
    again = load_model(tmp_path / "m.lacunar").partial_fit(X[30:], y[30:])
    same_model(model.partial_fit(X[30:], y[30:]), again)
    batches = PrintedSLRM(3, gamma=0.99, random_state=0).fit_batches([(X[:30], y[:30]), (X[30:], y[30:])])
    same_model(model, batches)
    fitted = PrintedSLRM(3, gamma=0.99, validate=None, random_state=0).fit(X[:30], y[:30])
    same_model(fitted.partial_fit(X[30:], y[30:]), model)
    with pytest.raises(ValueError, match="X_val and y_val must be given together"):
        model.partial_fit(X, y, X_val=X)


def test_a_step_too_large_is_named():
    X, y, start = printed()
    with pytest.raises(ValueError, match="rho=10 they overflow"):
        SMPCR(3, rho=10.0, U0=start).fit(100 * X, y)
    with pytest.warns(ConvergenceWarning, match="rho=1e\\+06"):
        PrintedSLRM(3, rho=1e6, max_iter=9, random_state=0).fit(30 * X, y)
    with pytest.warns(ConvergenceWarning, match="rho=1e\\+06"):
        model = PrintedSLRM(3, rho=1e6, max_iter=9, random_state=0).fit(30 * X, y)
    with pytest.raises(ValueError, match="partial_fit goes on from the last iterate, and this model has none"):
        model.partial_fit(X, y)
    X, y, _ = printed(n=400)
    with pytest.raises(ValueError, match="rho=1e\\+06"):
        PrintedSLRM(3, rho=1e6, max_iter=9, validate="pass", random_state=0).fit(300 * X, y)
