"""Wrappers, values of measuring and reports where a user asks for what cannot be, or changes a fitted model."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from lacunar import LacunarRegressor
from lacunar.lowrank import GaussianRegressor
from lacunar.uncertainty import (
    MaskConformalClassifier,
    MaskConformalRegressor,
    MeasuringLoop,
    missingness_report,
    value_of_measuring,
)
from lacunar.uncertainty.deviation import ColumnDeviation


def world(n=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = X @ [3.0, 2, 1, 0] + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, y


def with_text(X):
    return pd.DataFrame(X, columns=list("abcd")).assign(t=np.resize(["u", "v", None], len(X)))


@pytest.mark.parametrize("method", ["refit", "cv+"])
def test_a_method_that_is_set_after_the_fit_waits_for_the_next(method):
    X, y = world()
    model = MaskConformalRegressor(method=method).fit(X, y)
    intervals = model.predict_interval(X)
    model.set_params(method="cv+" if method == "refit" else "refit")
    np.testing.assert_array_equal(model.predict_interval(X), intervals)


def test_an_unknown_condition_that_is_set_after_the_fit_is_refused():
    X, y = world()
    model = MaskConformalClassifier().fit(X, y > 0).set_params(condition="classes")
    with pytest.raises(ValueError, match="condition must be 'missing', 'class' or 'auto'; got 'classes'"):
        model.predict_set(X[:1])


@pytest.mark.filterwarnings("ignore:classes have fewer rows", "ignore:The least populated class")
def test_folds_that_lack_a_class_have_probabilities_of_one():
    X = np.random.default_rng(0).normal(size=(40, 3))
    model = MaskConformalClassifier(HistGradientBoostingClassifier(max_iter=5)).fit(X, ["a"] * 39 + ["b"])
    assert model.predict_set(X[:5])[:, 0].all()


@pytest.mark.parametrize("unit", [1e307, 1e-307])
def test_likelihood_ratios_have_any_unit(unit):
    X, y = world()
    ratios = np.linspace(0.5, 1.5, len(X))
    intervals = [
        MaskConformalRegressor().fit(X, y, likelihood_ratio=r).predict_interval(X[:5], likelihood_ratio=r[:5])
        for r in (ratios, ratios * unit)
    ]
    np.testing.assert_allclose(*intervals, rtol=1e-6)


def test_a_frame_that_lacks_its_column_of_text_has_names():
    X, y = world()
    frame = with_text(X)
    model = MaskConformalRegressor().fit(frame, y)
    with pytest.warns(UserWarning, match="lacks columns") as caught:
        model.predict_interval(frame[list("abcd")][:3])
    assert not [w for w in caught if "feature names" in str(w.message)]


class Column(HistGradientBoostingRegressor):
    """Predictions in a column."""

    def predict(self, X):
        return super().predict(X)[:, None]


class Unknown(HistGradientBoostingRegressor):
    """Predictions that are no numbers."""

    def predict(self, X):
        return np.full(len(X), np.nan)


class UnknownChances(HistGradientBoostingClassifier):
    """Probabilities that are no numbers."""

    def predict_proba(self, X):
        return np.full((len(X), 2), np.nan)


def test_answers_of_a_given_estimator_are_numbers():
    X, y = world()
    intervals = [
        MaskConformalRegressor(kind()).fit(X, y).predict_interval(X) for kind in (Column, HistGradientBoostingRegressor)
    ]
    np.testing.assert_array_equal(*intervals)
    with pytest.raises(ValueError, match="estimator must give predictions that are finite"):
        MaskConformalRegressor(Unknown()).fit(X, y)
    with pytest.raises(ValueError, match="estimator must give probabilities that are finite"):
        MaskConformalClassifier(UnknownChances()).fit(X, y > 0)


def test_scales_where_most_rows_are_predicted_exactly():
    """Trees of squared scores that are nearly all 0 see no end of it."""
    rng = np.random.default_rng(0)
    rows, exact = rng.normal(size=(300, 3)), rng.random(300) < 0.8
    scores = np.where(exact, 0.0, rng.normal(size=300))
    sigma = ColumnDeviation().fit(rows, scores, np.ones(300)).sigma(rows, np.ones(300))
    assert sigma.min() == pytest.approx(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        X, y = world()
        MaskConformalRegressor(HistGradientBoostingClassifier()).fit(X, (y > 0).astype(int))


def test_many_rare_classes_are_not_all_named():
    X, _ = world()
    model = MaskConformalClassifier(QuickClasses()).fit(X, np.arange(len(X)) // 5)
    with pytest.warns(UserWarning, match=r"'?9'? \(5\) and 14 more"):
        model.predict_set(X[:1])


class QuickClasses(HistGradientBoostingClassifier):
    """One tree a class."""

    def __init__(self):
        super().__init__(max_iter=1)


def test_truth_values_are_no_rows_of_a_loop():
    X, y = world()
    loop = MeasuringLoop(GaussianRegressor().fit(X, y))
    loop.add(X[:3])
    loop.ask()
    with pytest.raises(ValueError, match="request must be one that waits"):
        loop.tell(True, 1.0)


@pytest.mark.parametrize("kind", ["from_rows", "classes", "gaussian", "learner"])
def test_a_loop_reads_frames_by_name_and_says_nothing_of_names(kind):
    X, y = world()
    frame = pd.DataFrame(X, columns=list("abcd"))
    if kind in ("from_rows", "classes"):
        loop = MeasuringLoop.from_rows(frame, y if kind == "from_rows" else y > 0)
    else:
        model = GaussianRegressor() if kind == "gaussian" else LacunarRegressor(members=["linear"])
        loop = MeasuringLoop(model.fit(frame, y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loop.add(frame[list("dcba")][:5])
        requests = loop.ask()
    np.testing.assert_array_equal(loop.rows_, X[:5])
    assert requests


@pytest.mark.parametrize("n", [0, 1.5])
def test_a_plan_for_classes_buys_a_whole_number_of_entries(n):
    X, y = world()
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        value_of_measuring(X, y > 0, X[:2], n=n)


def test_a_report_reads_deltas_in_any_order():
    X, y = world()
    usual, turned = (missingness_report(X, y, deltas=deltas) for deltas in ([0, 1, 2], [2, 0, 1]))
    np.testing.assert_array_equal(usual.sensitivity, turned.sensitivity)
    assert str(usual) == str(turned)
    line = str(missingness_report(X, y, deltas=0.5)).splitlines()[2]
    assert line.endswith("nan")  # of one standard deviation nothing is known


@pytest.mark.parametrize("deltas", [[np.nan], [], "one"])
def test_deltas_are_numbers(deltas):
    X, y = world()
    with pytest.raises(ValueError, match=r"deltas|sample"):
        missingness_report(X, y, deltas=deltas)


@pytest.mark.parametrize("unit", [2.0**600, 2.0**-600])
def test_a_report_reads_any_unit(unit):
    X, y = world()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        usual, other = missingness_report(X, y), missingness_report(X * unit, y)
    assert str(usual) == str(other)


@pytest.mark.parametrize("call", [MaskConformalClassifier().fit, MaskConformalRegressor().fit, missingness_report])
def test_a_lazy_frame_is_refused_without_a_warning(call):
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"X\.collect\(\) in polars"):
        call(pl.DataFrame({"a": [1.0, 2.0] * 20}).lazy(), np.array([0, 1] * 20))
