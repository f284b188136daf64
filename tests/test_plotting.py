"""Pictures hold the numbers they claim to show; drawing them is checked by looking, here only that it works."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LinearRegression

from lacunar import KarmaClassifier, KarmaRegressor, Observed
from lacunar.plotting import (
    CoefficientDisplay,
    CoverageDisplay,
    MissingnessDisplay,
    RegretDisplay,
    ScoresDisplay,
    TrackingErrorDisplay,
)
from lacunar.regression import SLRMRegressor
from lacunar.tracking import GROUSE, PETRELS

pytest.importorskip("matplotlib")


def holes(n=300, d=8, seed=0, rank=2):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0].T
    code = rng.normal(size=(n, rank))
    X = code @ basis
    return np.where(rng.random(X.shape) < 0.3, np.nan, X), code[:, 0], basis


@pytest.mark.parametrize(
    "form", [np.asarray, Observed.from_dense, pd.DataFrame, lambda X: Observed.from_dense(X).to_scipy()]
)
def test_missingness_is_the_same_from_every_form(form):
    X, _, _ = holes()
    display = MissingnessDisplay.from_table(form(X)).plot()
    np.testing.assert_allclose(display.image.mean(), np.isfinite(X).mean())
    np.testing.assert_array_equal(display.image, MissingnessDisplay.from_array(X).image)
    assert (np.diff(display.image.sum(axis=1)) <= 0).all()
    assert display.shape == X.shape


def test_missingness_of_a_large_sparse_table_is_its_shares():
    rng = np.random.default_rng(0)
    table = sp.random_array((20_000, 5_000), density=2e-3, rng=rng, format="csr")
    display = MissingnessDisplay.from_table(table)
    assert display.image.shape == (400, 400)
    np.testing.assert_allclose(display.image.mean(), table.nnz / (20_000 * 5_000), rtol=1e-3)
    display.plot()
    assert MissingnessDisplay.from_table(np.full((3, 2), np.nan)).image.sum() == 0
    assert MissingnessDisplay.from_table(sp.csr_array((0, 4))).plot().image.shape == (1, 4)


def test_coverage_groups_rows_by_what_they_show():
    X, code, _ = holes()
    y = (code > 0).astype(int)
    model = KarmaClassifier().fit(X[:200], y[:200])
    display = CoverageDisplay.from_estimator(model, X[200:], y[200:]).plot()
    share = np.isfinite(X[200:]).mean(axis=1)
    np.testing.assert_allclose(display.share, share)
    np.testing.assert_array_equal(display.losses["KarmaClassifier"], model.predict(X[200:]) != y[200:])
    number = KarmaRegressor().fit(X[:200], code[:200])
    display = CoverageDisplay.from_estimator(number, X[200:], code[200:])
    assert display.measure == "RMSE"
    np.testing.assert_allclose(display.losses["KarmaRegressor"], (number.predict(X[200:]) - code[200:]) ** 2)


def test_coefficients_come_by_size_and_under_their_names():
    X, code, _ = holes()
    model = SLRMRegressor(2, random_state=0).fit(pd.DataFrame(X, columns=list("abcdefgh")), code)
    display = CoefficientDisplay.from_estimator(model, n_shown=3).plot()
    order = np.argsort(-np.abs(np.ravel(model.feature_coef_)))
    assert display.shown() == ["abcdefgh"[j] for j in order[:3]]
    line = LinearRegression().fit(np.eye(3), [1.0, 5.0, 2.0])
    assert CoefficientDisplay.from_estimator(line).shown() == ["x1", "x0", "x2"]
    with pytest.raises(TypeError, match="feature_coef_ or coef_; got KarmaClassifier"):
        CoefficientDisplay.from_estimator(KarmaClassifier())


def test_tracking_error_falls_and_matches_a_run_by_hand():
    X, _, basis = holes(n=500)
    display = TrackingErrorDisplay.from_estimator(
        {"a": PETRELS(2, random_state=0), "b": GROUSE(2, random_state=0)}, X, basis=basis
    )
    assert display.errors["a"][-1] < 1e-3
    assert list(display.rows) == list(range(50, 501, 50))
    tracker = PETRELS(2, random_state=0).partial_fit(X[:50])
    ahead = TrackingErrorDisplay.from_estimator(PETRELS(2, random_state=0), X)
    np.testing.assert_allclose(ahead.errors["PETRELS"][0], tracker.score_samples(X[50:100]).mean())
    assert list(ahead.rows) == list(range(100, 501, 50))
    ahead.plot()
    means = TrackingErrorDisplay.from_predictions({"x": np.arange(10.0)}, window=5)
    np.testing.assert_array_equal(means.errors["x"], [2.0, 7.0])


def test_regret_is_a_difference_of_sums():
    display = RegretDisplay.from_predictions([1, 0, 1], {"a": [0, 0, 1], "b": [1, 0, 1]}, comparator=[1, 1, 1])
    np.testing.assert_array_equal(display.curves()["a"], [1, 0, 0])
    np.testing.assert_array_equal(display.curves()["b"], [0, -1, -1])
    display.plot()
    X, code, _ = holes()
    y = np.where(code > 0, "yes", "no")
    one = KarmaClassifier(loss="hinge").partial_fit(X[:100], y[:100], classes=["no", "yes"])
    two = KarmaClassifier(loss="hinge").partial_fit(X[:100], y[:100], classes=["no", "yes"])
    drawn = RegretDisplay.from_estimator(one, X[100:], y[100:]).plot()
    np.testing.assert_allclose(drawn.curves()["KarmaClassifier"][-1], two.score_stream(X[100:], y[100:]).mistakes / 200)


def test_scores_are_drawn_best_first():
    display = ScoresDisplay(["a", "b"], [0.1, 0.2], [0.01, np.nan], [True, False], "error rate").plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["a", "b"]
