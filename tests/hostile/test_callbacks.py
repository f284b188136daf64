"""Exceptions of the caller's own code, in the middle of ours: they come through, and leave what is documented."""

import builtins

import numpy as np
import pytest
from faulty import LEARNERS, answer, problem, quiet, state
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from lacunar import (
    KarmaClassifierCV,
    KarmaOnlineClassifier,
    KarmaOnlineRegressor,
    KarmaRegressorCV,
)
from lacunar.learner import LacunarClassifier
from lacunar.lowrank import SLRMRegressorCV

X, Y = problem()


class Mine(Exception):
    """What the caller's code raises."""


# -- batches ----------------------------------------------------------------------------------------------------------


def batches(count):
    """So many batches of ten rows, then an exception."""
    for number in range(count):
        rows = slice(10 * number, 10 * number + 10)
        yield X[rows], Y[rows]
    raise Mine


STREAMS = {
    "primal": (KarmaOnlineClassifier(), {"classes": [0, 1]}),
    "online": (KarmaOnlineClassifier(2.5), {"classes": [0, 1]}),
    "regressor": (KarmaOnlineRegressor(loss="absolute"), {}),
}


@pytest.mark.parametrize("name", STREAMS)
def test_batches_that_were_learned_stay(name):
    learner, options = STREAMS[name]
    model = clone(learner)
    with pytest.raises(Mine):
        model.fit_batches(batches(3), **options)
    assert model.n_rows_seen_ == 30
    model.partial_fit(X[30:], Y[30:])
    whole = clone(learner).fit_batches([(X[k : k + 10], Y[k : k + 10]) for k in range(0, 40, 10)], **options)
    np.testing.assert_array_equal(answer(model, X), answer(whole, X))


@pytest.mark.parametrize("name", STREAMS)
def test_an_iterable_that_fails_at_once_leaves_the_old_model(name):
    learner, options = STREAMS[name]
    model = clone(learner).fit(X, Y)
    before = state(model)
    for bad in (batches(0), [(X, Y[:-1])], []):
        with pytest.raises((Mine, ValueError)):
            model.fit_batches(bad, **options)
        assert state(model) == before
    fresh = clone(learner)
    with pytest.raises(Mine):
        fresh.fit_batches(batches(0), **options)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


# -- splitters, members, prints ---------------------------------------------------------------------------------------


class Splitter:
    """Two folds, the second of which fails."""

    def get_n_splits(self, *given):
        return 2

    def split(self, X, y=None, groups=None):
        rows = np.arange(len(X) if hasattr(X, "__len__") else X.shape[0])
        yield rows[::2], rows[1::2]
        raise Mine


SEARCHES = {
    "classifier": (KarmaClassifierCV(), "cv"),
    "regressor": (KarmaRegressorCV(), "cv"),
    "auto": (KarmaClassifierCV(kernels="karma"), "cv"),
    "slrm": (SLRMRegressorCV([1, 2], cv=2), "cv"),
    "learner": (LacunarClassifier(members=["gaussian"]), "cv"),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_splitter_that_fails(name):
    model, option = SEARCHES[name]
    with quiet():
        model = clone(model).fit(X, Y)
        model.set_params(**{option: Splitter()})
        before = state(model)
        with pytest.raises(Mine):
            model.fit(X[:30, :5], Y[:30])
    assert state(model) == before


TALKING = [name for name, model in LEARNERS.items() if "verbose" in model.get_params()]


@pytest.mark.parametrize("name", TALKING)
def test_a_stream_of_output_that_fails(name, monkeypatch):
    """`verbose` prints, and print may raise: a closed pipe."""
    model = clone(LEARNERS[name])
    with quiet():
        model.fit(X, Y)
        model.set_params(verbose=1)
        before = state(model)

        def closed(*given, **options):
            raise BrokenPipeError

        monkeypatch.setattr(builtins, "print", closed)
        try:
            model.fit(X[:30, :5], Y[:30])
        except BrokenPipeError:
            assert state(model) == before
        else:
            assert state(model) != before  # it had nothing to say
