"""Columns of awkward size beside ordinary ones: time stamps, large offsets and constants drown nothing, in no estimator that standardises."""

from functools import cache

import numpy as np
import pytest
from faulty import LEARNERS, answer, problem, quiet
from sklearn.base import clone

from lacunar import LacunarClassifier, LacunarRegressor, Observed
from lacunar.karma import KarmaRegressor
from lacunar.lowrank import POPCA, SLRMOnlineRegressor, SLRMRegressor
from lacunar.lowrank.parts import added
from lacunar.observed.columns import fit_columns

X, Y = problem(n=60)
NEW = problem(seed=1, n=20)[0]
# Of raw columns by what is printed or by default: a column of large numbers is most of the variance there, rightly.
RAW = {"petrels", "petrels-shared", "grouse", "slrm-paper", "mpcr", "smpcr"}
MODELS = {name: model for name, model in LEARNERS.items() if name not in RAW} | {
    "popca-standardised": POPCA(2, standardize=True, random_state=0),
    "popca-free-standardised": POPCA(2, standardize=True, solver="matrix-free", random_state=0),
    "popca-holdout": POPCA("holdout", standardize=True, random_state=0),
    "lacunar": LacunarClassifier(members=["logistic", "kernels"], cv=2, random_state=0),
    "lacunar-regressor": LacunarRegressor(members=["gaussian", "kernels"], cv=2, random_state=0),
}
rng = np.random.default_rng(2)
SHIFTED = {
    "time stamps": (1.75e18, np.round(rng.uniform(0, 60e9, 80) / 256) * 256),
    "large offset": (1e12, np.round(rng.normal(size=80) * 2**12) / 2**12),
    "small and far": (1e-140, 2.0**-500 * np.round(rng.normal(size=80) * 2**12)),
}
CONSTANTS = (0.1, 1e18 / 3, -1e200 / 3)


def beside(table, column):
    return np.column_stack([table, column])


def answers(model, train, new):
    """What a fitted model says of new rows; of features that are unique up to a rotation their products."""
    with quiet():
        found = answer(clone(model).fit(train, Y), new)
    if "Features" in type(model).__name__:
        return found @ found.T
    return found[:, : NEW.shape[1]] if "Imputer" in type(model).__name__ else found


@pytest.mark.parametrize("kind", SHIFTED)
@pytest.mark.parametrize("name", MODELS)
def test_a_column_far_from_zero_counts_as_its_differences(name, kind):
    offset, away = SHIFTED[kind]
    with np.errstate(all="ignore"):
        far = offset + away
    assert ((far - offset) == away).all(), "exact"
    found, wanted = (answers(MODELS[name], beside(X, column[:60]), beside(NEW, column[60:])) for column in (far, away))
    # A mean is stored as a float64 beside the values: to a unit in their last place.
    rtol = 1e-6 + 20 * np.spacing(offset) / away.std()
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * np.abs(wanted).max())


@cache
def without_the_column(name):
    """Answers of a model that never observed the last column, which new rows have."""
    return answers(MODELS[name], beside(X, np.full(60, np.nan)), beside(NEW, np.linspace(-3, 3, 20)))


@pytest.mark.parametrize("value", CONSTANTS)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith("popca")])
def test_a_column_of_one_value_is_left_out(name, value):
    """To the bit as a column that was never observed, whatever new rows have there."""
    other = np.linspace(-3, 3, 20) * max(abs(value), 1.0)
    with_the_column = answers(MODELS[name], beside(X, np.full(60, value)), beside(NEW, other))
    np.testing.assert_array_equal(with_the_column, without_the_column(name))


@pytest.mark.parametrize("value", CONSTANTS[:2])
@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("popca")])
def test_a_column_of_one_value_is_as_one_of_zeros(name, value):
    """Its components are 0; POPCA keeps it, as rows that are told later may have other values."""
    with quiet():
        found, wanted = (clone(MODELS[name]).fit(beside(X, np.full(60, each))) for each in (value, 0.0))
    np.testing.assert_allclose(found.explained_variance_, wanted.explained_variance_, rtol=1e-8)
    assert np.abs(found.components_[found.explained_variance_ > 1e-6, -1]).max() < 1e-6


@pytest.mark.parametrize("name", ["karma-passes", "karma-online"])
def test_a_stream_that_begins_with_one_row(name):
    """Columns are then divided by their size, and a time stamp is next to nothing."""
    when = 1.75e18 + np.linspace(0, 60e9, 60)
    scores = []
    for table in (X, beside(X, when)):
        model = clone(MODELS[name])
        for start, stop in ((0, 1), (1, 20), (20, 60)):
            model.partial_fit(table[start:stop], Y[start:stop], classes=[0, 1])
        scores.append(model.score(table, Y))
    assert scores[1] > scores[0] - 0.05 > 0.7, scores


@pytest.mark.parametrize("model", [SLRMOnlineRegressor(2, random_state=0)])
@pytest.mark.parametrize("first", [2, 30])
def test_a_stream_of_time_stamps(model, first):
    """A column that is constant in the first batch may vary later: it is not left out, and drowns nothing."""
    rows = np.random.default_rng(0).normal(size=(400, 2)) @ np.random.default_rng(1).normal(size=(2, 8))
    when = 1.75e18 + np.random.default_rng(2).uniform(0, 60e9, 400)
    when[:2] = when[0]
    target, scores = rows[:, 0] + rows[:, 1], []
    for table in (rows, beside(rows, when)):
        fitted = clone(model)
        for start, stop in ((0, first), (first, 100), (100, 300)):
            fitted.partial_fit(table[start:stop], target[start:stop])
        scores.append(fitted.score(table[300:], target[300:]))
    assert scores[1] > scores[0] - 0.1 > 0.7, scores
    assert fitted.observed_columns_.all()


class Listed:
    """Parts in a list."""

    def __init__(self, parts):
        self.parts = parts

    def map(self, step, *arguments, keep=True):
        return Listed(self.each(step, *arguments))

    def each(self, step, *arguments):
        return [step(part, *arguments) for part in self.parts]

    def total(self, step, *arguments):
        return added(self.each(step, *arguments))


def test_parts_have_the_scales_of_the_whole():
    """Also where a mean of a part is far from that of all rows."""
    table = beside(beside(X, 1e12 + np.arange(60.0)), np.full(60, 0.1))
    with quiet():
        whole = SLRMRegressor(2, random_state=0).fit(table, Y)
        parts = SLRMRegressor(2, random_state=0).fit_parts(Listed([(table[:20], Y[:20]), (table[20:], Y[20:])]))
    np.testing.assert_allclose(parts.mean_, whole.mean_, rtol=1e-12)
    np.testing.assert_allclose(parts.scale_, whole.scale_, rtol=1e-6)
    assert parts.observed_columns_.tolist() == whole.observed_columns_.tolist() == [True] * 7 + [False]


def test_a_column_of_one_value_with_gaps_stays():
    """What is missing says something; what is observed counts as 0."""
    column = np.where(np.arange(60) % 3 == 0, np.nan, 1e18 / 3)
    columns = fit_columns(Observed.from_dense(beside(X, column)), np.ones(60), standardize=True)
    assert columns.seen.all()
    with quiet():
        model = KarmaRegressor(indicators=True).fit(beside(X, column), np.isnan(column))
    assert model.score(beside(X, column), np.isnan(column)) > 0.5
