"""The units of columns and of the target change no fit: penalties of every regressor outside lacunar.papers are in units of the data."""

from functools import cache

import numpy as np
import public
import pytest
from rounding import rounding
from sklearn.base import RegressorMixin, clone

from lacunar import KarmaOnlineRegressor, KarmaRegressor, KarmaRegressorCV, LacunarRegressor, SLRMRegressor
from lacunar.lowrank import GaussianRegressor, SLRMOnlineRegressor, SLRMRegressorCV
from lacunar.uncertainty import MaskConformalRegressor

RNG = np.random.default_rng(11)
FULL = RNG.normal(size=(150, 3)) @ RNG.normal(size=(3, 6)) + 0.3 * RNG.normal(size=(150, 6))
Y = FULL[:, 0] + np.abs(FULL[:, 1]) + 0.2 * RNG.normal(size=150)
X = np.where(RNG.random(FULL.shape) < 0.25, np.nan, FULL)
TRAIN, NEW = slice(0, 100), slice(100, None)


def in_batches(model, X, y):
    return model.partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])


def at_once(model, X, y):
    return model.fit(X, y)


# Every class with its default, and with each penalty away from it.
CASES = {
    "SLRMRegressor": [SLRMRegressor(2), SLRMRegressor(2, lam1=0.3), SLRMRegressor(2, lam1=0.3, solver="als"), SLRMRegressor(2, lam1=2.0, alpha=0.5)],
    "SLRMRegressorCV": [
        SLRMRegressorCV([1, 2]),
        SLRMRegressorCV([1, 2], lam1=[0.1, 1.0], alpha=[0.1, 1.0], cv=3),
        SLRMRegressorCV([1, 2], lam1=[0.1], over="cells", cv=3),
    ],
    "SLRMOnlineRegressor": [
        SLRMOnlineRegressor(2),
        SLRMOnlineRegressor(2, lam1=0.3),
        SLRMOnlineRegressor(2, lam1=0.3, correlation="per-column"),
        SLRMOnlineRegressor(2, alpha=0.1, l1_ratio=0.5),
    ],
    "GaussianRegressor": [GaussianRegressor(), GaussianRegressor(shrinkage=5.0), GaussianRegressor(n_components=2)],
    "KarmaRegressor": [
        KarmaRegressor(),
        KarmaRegressor(solver="primal", C=0.1),
        KarmaRegressor(loss="absolute", C=0.1),
        KarmaRegressor(loss="epsilon_insensitive", C=0.1),
    ],
    "KarmaRegressorCV": [KarmaRegressorCV(), KarmaRegressorCV(kernels="karma", cv="holdout")],
    "KarmaOnlineRegressor": [
        KarmaOnlineRegressor(),
        KarmaOnlineRegressor(2.5, rho=0.01),
        KarmaOnlineRegressor(loss="absolute", rho=0.1),
        KarmaOnlineRegressor(2.5, loss="epsilon_insensitive", rho=0.1, max_iter=3),
    ],
    "LacunarRegressor": [LacunarRegressor(cv=3)],
    "MaskConformalRegressor": [MaskConformalRegressor(SLRMRegressor(2, lam1=0.3))],
}  # fmt: skip
STREAMS = ("SLRMOnlineRegressor", "KarmaOnlineRegressor")
FITS = [(model, at_once) for models in CASES.values() for model in models]
FITS += [(model, in_batches) for name in STREAMS for model in CASES[name]]


def public_regressors():
    """Names of the regressors that the families beside lacunar.papers export."""
    return {cls.__name__ for cls in public.classes("fit", most_dots=1) if issubclass(cls, RegressorMixin)}


def test_every_public_regressor_is_tried():
    assert set(CASES) == public_regressors()


def predictions(model, fit, a=1.0, b=0.0, scales=1.0, shifts=0.0):
    """Predictions for columns and a target in other units, brought back to those of Y."""
    model = clone(model)
    if getattr(model, "loss", None) == "epsilon_insensitive":
        model.set_params(epsilon=abs(a) * model.epsilon)  # which is in the unit of y, as the docstring says
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    columns = X * scales + shifts
    return (fit(model, columns[TRAIN], a * Y[TRAIN] + b).predict(columns[NEW]) - b) / a


@cache
def plain_predictions(model, fit):
    return predictions(model, fit)


def slack(model):
    """Share of the spread that another unit of y may change: a stream of KARMA's adds its steps up in a table of float32."""
    return rounding(np.float32, len(Y[TRAIN])) if isinstance(model, KarmaOnlineRegressor) else 1e-6


@pytest.mark.parametrize(("model", "fit"), FITS, ids=lambda part: getattr(part, "__name__", repr(part)))
@pytest.mark.parametrize(("a", "b"), [(-1e-3, 0.0), (1000.0, 1e7)])
def test_predictions_are_in_the_unit_of_y(model, fit, a, b):
    plain = plain_predictions(model, fit)
    np.testing.assert_allclose(predictions(model, fit, a, b), plain, rtol=0, atol=slack(model) * Y.std())
    assert np.std(plain) > 0.1 * Y.std()


@pytest.mark.parametrize(("model", "fit"), FITS, ids=lambda part: getattr(part, "__name__", repr(part)))
def test_units_of_columns_change_no_prediction(model, fit):
    scales, shifts = 10.0 ** np.arange(-3, 3), [0.0, 10.0, 0.0, -1.0, 0.0, 5.0]
    changed = predictions(model, fit, scales=scales, shifts=shifts)
    np.testing.assert_allclose(changed, plain_predictions(model, fit), rtol=0, atol=1e-6 * Y.std())


def test_last_bits_choose_no_split():
    """Splits of several columns often part the rows of a node alike: sums in another order chose another column."""
    noise = 1 + 1e-15 * np.random.default_rng(0).normal(size=(2, len(Y)))
    forest = LacunarRegressor(members=["forest"], random_state=0)
    plain, *others = (clone(forest).fit(X[TRAIN], (factor * Y)[TRAIN]).predict(X[NEW]) for factor in (1.0, *noise))
    for other in others:
        np.testing.assert_allclose(other, plain, rtol=0, atol=1e-9 * Y.std())


def test_a_search_ends_with_the_steps_that_it_judged():
    """EM to its end makes a direction of a label of large weight, which no new row tells of."""
    model = SLRMRegressorCV([2], lam1=[1e-6], random_state=0).fit(X[TRAIN], Y[TRAIN])
    alone = SLRMRegressor(2, lam1=1e-6, random_state=0).fit(X[TRAIN], Y[TRAIN])
    error, to_the_end = (np.mean((each.predict(X[NEW]) - Y[NEW]) ** 2) for each in (model, alone))
    assert error < min(-2 * model.best_score_, 0.6 * to_the_end)


def test_a_ridge_beside_labels_in_the_subspace_shrinks():
    small, large = (SLRMRegressor(2, lam1=1.0, alpha=alpha, random_state=0).fit(X, Y) for alpha in (1e-6, 1e6))
    assert np.abs(large.coef_).max() < 1e-3 * np.abs(small.coef_).max()
