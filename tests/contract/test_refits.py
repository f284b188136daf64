"""A `fit` that fails on a fitted model leaves the old one; on a new one, none. Never a mixture that answers."""

import copy

import numpy as np
import pytest
from faulty import LEARNERS, Fault, answer, calls_of, problem, quiet, state
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

X, Y = problem()
OTHER, OTHER_Y = problem(seed=1, n=50, d=5)
MOMENTS = 8


def moments(name, X, y, count):
    fit = clone(LEARNERS[name]).fit
    return np.unique(np.linspace(1, calls_of(lambda: fit(X, y)), count).astype(int))


@pytest.fixture(scope="module")
def fitted():
    """Every learner on the first table, and its answer there."""
    with quiet():
        models = {name: clone(learner).fit(X, Y) for name, learner in LEARNERS.items()}
    return models


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_a_failed_refit_leaves_the_old_model(name, fitted):
    """Other columns, an exception at moments spread over the fit."""
    model = copy.deepcopy(fitted[name])
    before, said = state(model), answer(model, X)
    failed = 0
    with quiet():
        for number in moments(name, OTHER, OTHER_Y, MOMENTS):
            refit = model.fit
            try:
                with Fault(number) as fault:
                    refit(OTHER, OTHER_Y)
            except MemoryError:
                failed += 1
                assert state(model) == before, fault.where
            else:  # scikit-learn caught it, where it looks for tags
                model = copy.deepcopy(fitted[name])
    assert failed >= MOMENTS // 2
    np.testing.assert_array_equal(answer(model, X), said)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
def test_an_interrupted_refit_leaves_the_old_model(name, fitted):
    model = copy.deepcopy(fitted[name])
    before = state(model)
    with quiet():
        for number in moments(name, OTHER, OTHER_Y, 4)[:-1]:
            with pytest.raises(KeyboardInterrupt), Fault(number, KeyboardInterrupt) as fault:
                model.fit(OTHER, OTHER_Y)
            assert state(model) == before, fault.where


@pytest.mark.parametrize("name", LEARNERS)
def test_a_failed_first_fit_is_none(name):
    with quiet():
        for number in moments(name, X, Y, 3):
            model = clone(LEARNERS[name])
            fit = model.fit
            try:
                with Fault(number):
                    fit(X, Y)
            except MemoryError:
                with pytest.raises(NotFittedError):
                    answer(model, X)


@pytest.mark.parametrize("name", LEARNERS)
def test_bad_values_leave_the_old_model(name, fitted):
    model = fitted[name]
    before = state(model)
    bad = OTHER.copy()
    bad[3, 2] = np.inf
    with quiet():
        for rows, labels in (
            (bad, OTHER_Y),
            (OTHER, OTHER_Y[:-1]),
            (np.full(OTHER.shape, "x"), OTHER_Y),
            (OTHER[:0], OTHER_Y[:0]),
        ):
            if rows is OTHER and not hasattr(model, "predict"):
                continue  # y is ignored
            with pytest.raises((ValueError, TypeError)):
                model.fit(rows, labels)
            assert state(model) == before


def test_states_are_told_apart():
    with quiet():
        one = clone(LEARNERS["popca-tables"]).fit(X)
    other = copy.deepcopy(one)
    assert state(one) == state(other)
    other.mean_[0] += 1e-15
    assert state(one) != state(other)
