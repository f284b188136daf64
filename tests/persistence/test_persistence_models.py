"""Every estimator of the package goes through a model file and predicts the same bits afterwards."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from lacunar import karma
from lacunar.observed.rules import trial_rows
from lacunar.persistence import load_model, registry, save_model

ESTIMATORS = [c for c in vars(karma).values() if isinstance(c, type) and issubclass(c, BaseEstimator)]
PUBLIC = sorted({c for c in ESTIMATORS if c.__name__ in karma.__all__}, key=lambda c: c.__name__)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    target = X @ [1.0, -2.0, 0.0, 1.0, 0.5]
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, target


def labels(kind, target):
    return {"strings": np.where(target > 0, "ja", "nein"), "three": np.digitize(target, [-1, 1])}[kind]


def test_every_public_estimator_can_be_saved():
    assert PUBLIC
    assert all(registry.name_of(c, registry.CLASSES) for c in PUBLIC)


@pytest.mark.parametrize("estimator", [c for c in PUBLIC if is_regressor(c())], ids=lambda c: c.__name__)
def test_models_of_columns_in_tiny_units_can_be_loaded(estimator, data, tmp_path):
    """One is beyond float32 there, in which streams learn."""
    X, target = data
    with warnings.catch_warnings(action="ignore"):
        model = estimator().fit(1e-40 * X, target)
    save_model(model, tmp_path / "model.lacunar")
    loaded = load_model(tmp_path / "model.lacunar")
    np.testing.assert_array_equal(loaded.predict(1e-40 * X), model.predict(1e-40 * X))


def test_a_model_of_no_columns_is_refused(data):
    model = karma.KarmaRegressor().fit(*data)
    model.n_features_in_, model.mean_, model.scale_ = 0, np.empty(0), np.empty(0)
    with pytest.raises(ValueError, match="n_features_in_ must be a number of columns above 0; got 0"):
        trial_rows(model)


@pytest.mark.parametrize("kind", ["strings", "three"])
@pytest.mark.parametrize("estimator", PUBLIC, ids=lambda c: c.__name__)
def test_predictions_survive(estimator, kind, data, tmp_path):
    X, target = data
    model = estimator()
    with warnings.catch_warnings(action="ignore"):  # convergence is not the subject here
        model.fit(X, labels(kind, target) if is_classifier(model) else target)
    save_model(model, tmp_path / "m.lacunar")
    back = load_model(tmp_path / "m.lacunar")
    assert back.get_params() == model.get_params()
    # An engine is made again from the state that it is stored as.
    assert sorted(vars(back).keys() - {"state_", "_engine"}) == sorted(vars(model).keys() - {"state_", "_engine"})
    verb = "predict" if hasattr(model, "predict") else "transform"
    before, after = getattr(model, verb)(X), getattr(back, verb)(X)
    if sp.issparse(before):
        before, after = before.toarray(), after.toarray()
    np.testing.assert_array_equal(after, before)


@pytest.mark.parametrize("estimator", PUBLIC, ids=lambda c: c.__name__)
def test_contradicting_parts_are_refused(estimator, data, tmp_path):
    X, target = data
    model = estimator()
    model.fit(X, labels("strings", target) if is_classifier(model) else target)
    model.n_features_in_ = 4
    save_model(model, tmp_path / "m.lacunar")
    with pytest.raises(ValueError, match=r"m\.lacunar"):
        load_model(tmp_path / "m.lacunar")
