"""Numbers that leave float64 on the way: an error that says what to do and leaves the model as it was, or finite answers."""

import copy
from functools import cache
from inspect import signature

import numpy as np
import pytest
from faulty import LEARNERS, OTHERS, answer, problem, quiet, state
from sklearn.base import clone

from lacunar import (
    KarmaClassifier,
    KarmaOnlineClassifier,
    KarmaRegressor,
    LacunarClassifier,
    LacunarRegressor,
    Observed,
)
from lacunar.completion import KernelFunction, OnlineMatrixClassifier
from lacunar.lowrank import POPCA, SLRMRegressor
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.papers.karma import GeomClassifier, PrintedKarmaClassifier, PrintedKarmaRegressor
from lacunar.papers.slrm import SMPCR

X, Y = problem()


def with_column(factor):
    table = X.copy()
    table[:, 1] *= factor
    return table


def with_cell(value):
    table = X.copy()
    table[np.flatnonzero(~np.isnan(X[:, 2]))[3], 2] = value
    return table


TABLES = {
    "large": X * 1e300,
    "squares overflow": X * 1e160,
    "one column": with_column(1e300),
    "one cell": with_cell(1.7e308),
    "the largest": np.where(np.isnan(X), X, np.sign(X) * 1.7e308),
    "tiny": X * 1e-300,
    "squares underflow": X * 1e-160,
}
REMEDIES = ("Use ", "use ", "Scale ", "Divide ", "Leave ", "leave ", "lower C", "Check ")


def attributes(model):
    """Float arrays that a model holds, in dicts too."""
    for name, value in vars(model).items():
        if name == "cv_results_":  # says NaN where a kernel has no such parameter
            continue
        for each in value.values() if isinstance(value, dict) else [value]:
            if isinstance(each, np.ndarray) and each.dtype.kind == "f":
                yield each


def check_words(error):
    """A message that names a remedy."""
    assert any(word in str(error) for word in REMEDIES), str(error)


def says_that_it_is_half_changed(model):
    try:
        answer(model, X)
    except RuntimeError as error:
        return "Load the model again" in str(error)
    return False


def is_sound(model, rows):
    """Whether answers and what was learned are finite; `cv_results_` and the like may say NaN."""
    return np.isfinite(answer(model, rows)).all() and all(np.isfinite(each).all() for each in attributes(model))


def sound_or_refused(model, act, before, rows=X):
    with quiet(), np.errstate(all="ignore"):
        try:
            act()
        except (ValueError, FloatingPointError) as error:
            assert state(model) == before
            check_words(error)
        else:
            assert is_sound(model, rows)


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", [name for name in LEARNERS if "auto" not in name])
def test_fit(name, kind):
    model = clone(LEARNERS[name])
    sound_or_refused(model, lambda: model.fit(TABLES[kind], Y), state(model), TABLES[kind])


@pytest.mark.parametrize("name", [name for name in LEARNERS if "regressor" in name or "slrm" in name or "mpcr" in name])
@pytest.mark.parametrize("factor", [1e160, 1e300])
def test_targets(name, factor):
    model = clone(LEARNERS[name])
    sound_or_refused(model, lambda: model.fit(X, (Y - 0.3) * factor), state(model))


STREAMS = [name for name, model in LEARNERS.items() if hasattr(model, "partial_fit") and name != "popca-free"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_later_batch(name):
    model = clone(LEARNERS[name])
    options = {"classes": [0, 1]} if isinstance(model, KarmaOnlineClassifier) else {}
    with quiet():
        begun = model.partial_fit(X, Y, **options)
    for table in TABLES.values():
        model = copy.deepcopy(begun)
        with quiet(), np.errstate(all="ignore"):
            try:
                model.partial_fit(table, Y)
            except (ValueError, FloatingPointError) as error:
                check_words(error)
            assert says_that_it_is_half_changed(model) or is_sound(model, X)


@pytest.mark.parametrize("name", [name for name in LEARNERS if "auto" not in name])
def test_large_rows_to_answer(name):
    with quiet(), np.errstate(all="ignore"):
        model = clone(LEARNERS[name]).fit(X, Y)
        before = state(model)
        for table in TABLES.values():
            try:
                assert np.isfinite(answer(model, table)).all()
            except (ValueError, FloatingPointError) as error:
                check_words(error)
    assert state(model) == before


STANDARDISED = ["gaussian", "karma", "karma-cv", "karma-online", "features", "imputer", "popca", "geom"]


@pytest.mark.parametrize("name", STANDARDISED)
def test_rows_too_far_out_are_named(name):
    rows = np.nan_to_num(X[:3], nan=0.5)
    rows[1, 2] = 1.7e308
    with quiet():
        model = clone(LEARNERS[name]).fit(X, Y)
    with pytest.raises(ValueError, match=r"got 1.7e\+308 in row 1, column 2. Leave out that value \(NaN\)"):
        answer(model, rows)


OPTIONS = {
    "constant step": lambda: PrintedKarmaClassifier(loss="squared_hinge", eta=1e300),
    "constant step, rows": lambda: PrintedKarmaClassifier(2.5, eta=1e300),
    "constant step, numbers": lambda: PrintedKarmaRegressor(2.5, eta=1e300),
    "gamma 50": lambda: KarmaClassifier(50, loss="hinge", normalize=None),
    "gamma 1000": lambda: KarmaClassifier(1000, normalize=None),
    "geom": lambda: GeomClassifier(kernel="poly", degree=300),
    "raw primal": lambda: KarmaClassifier(loss="hinge", solver="primal", standardize=False, normalize=None),
    "C": lambda: KarmaClassifier(C=1e300, loss="hinge", solver="primal"),
    "small C": lambda: KarmaRegressor(C=1e-300),
    "petrels": lambda: clone(LEARNERS["petrels"]).set_params(delta=1e300),
    "rho": lambda: clone(LEARNERS["smpcr"]).set_params(rho=1e6),
    "mc1": lambda: clone(LEARNERS["mc1"]).set_params(lam=1e300, mu=1e-300),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_options_that_overflow(name):
    model = OPTIONS[name]()
    before = state(model)
    sound_or_refused(model, lambda: model.fit(10 * X, Y), before)


WEIGHTED = {name: model for name, model in LEARNERS.items() if "sample_weight" in signature(model.fit).parameters} | {
    "lacunar": LacunarClassifier(members=["logistic", "kernels", "boosting"], cv=2, random_state=0),
    "lacunar-regressor": LacunarRegressor(members=["gaussian", "kernels", "boosting"], cv=2, random_state=0),
}


@cache
def fitted(name):
    return clone(WEIGHTED[name]).fit(X, Y)


@pytest.mark.parametrize("many", [1, 40])
@pytest.mark.parametrize("weight", [1e-300, 1e140, 1e307, 1.7e308])
@pytest.mark.parametrize("name", WEIGHTED)
def test_weights(name, weight, many):
    model, weights = clone(WEIGHTED[name]), np.ones(40)
    weights[:many] = weight
    sound_or_refused(model, lambda: model.fit(X, Y, weights), state(model))
    if not many * weight <= 1e150:
        with pytest.raises(ValueError, match=r"at most 1e\+150; it sums to .* in row 0\. Divide the weights"):
            model.fit(X, Y, weights)
        with quiet(), pytest.raises(ValueError, match=r"at most 1e\+150"):
            fitted(name).score(X, Y, weights)


PAIRS = np.random.default_rng(0).integers(20, size=(150, 2))
SIGNS = np.random.default_rng(1).choice([-1, 1], 150)


OVERFLOWING = KernelFunction(lambda a, b: 1e308 * (a == b) + (1e308 * a if a > 10 else 0.0))


@pytest.mark.parametrize(
    "model",
    [
        MatrixExponentiatedGradient(step=1.0, step_scale=1e300),
        MatrixExponentiatedGradient(step_scale=1e6),
        MatrixExponentiatedGradient(gamma=1e-300),
        MatrixExponentiatedGradient(rows=OVERFLOWING),
        OnlineMatrixClassifier(rows=OVERFLOWING),
    ],
    # A kernel prints its address, and an id must be the same in every process.
    ids=["step and step_scale", "step_scale", "gamma", "kernel", "kernel, the pool"],
)
def test_pairs(model):
    pair = np.array([[1, 1]])
    model = clone(model).partial_fit(pair, [1])
    before = model.decision_function(pair)
    try:
        model.partial_fit(PAIRS, SIGNS)
    except (ValueError, FloatingPointError) as error:
        check_words(error)
        assert model.n_seen_ == 1
        np.testing.assert_array_equal(model.decision_function(pair), before)
    else:
        assert np.isfinite(model.decision_function(PAIRS)).all()
        assert np.isfinite(model.predict_proba(PAIRS)).all()


@pytest.mark.parametrize("name", ["active", "mbeg"])
@pytest.mark.parametrize("size", [1e100, 1e-300])
def test_asked_rows(name, size):
    rng = np.random.default_rng(0)
    found = clone(OTHERS[name]).run(lambda indices: size * rng.choice([-1.0, 1.0], len(indices)), 100).result()
    for each in (found.components_, found.explained_variance_, found.covariance_, found.noise_variance_):
        assert np.isfinite(each).all()


@pytest.mark.parametrize("value", [1e200, 1.7e308])
@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_one_large_cell_raises_no_warning_of_numpy(value):
    table, classifier = with_cell(value), LacunarClassifier(members=["logistic"], cv=2).fit(X, Y > 0)
    assert classifier.predict(table).shape == Y.shape
    assert np.isfinite(SLRMRegressor(2).fit(table, Y).predict(X)).all()
    with pytest.raises(ValueError, match="X must hold values whose covariances float64 can hold"):
        POPCA(2).fit(table)
    with pytest.raises(ValueError, match="X must hold values whose squares float64 can hold"):
        SMPCR(2).fit(table, Y)


def test_a_table_without_variance():
    """Lanczos has nothing to start from."""
    found = POPCA(2, solver="matrix-free", random_state=0)
    with quiet():
        found.fit(Observed.from_dense(np.zeros((10, 6))))
    np.testing.assert_array_equal(found.explained_variance_, 0)
    np.testing.assert_array_equal(found.components_ @ found.components_.T, np.eye(2))
