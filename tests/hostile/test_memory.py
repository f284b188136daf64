"""Memory that runs out in the middle of learning: a `MemoryError`, and the learner as before, whoever holds it."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from faulty import OTHERS, Fault, calls_of, problem, quiet, state
from sklearn.base import clone

from lacunar import Observed
from lacunar.completion import Features, KernelFunction, OnlineMatrixClassifier
from lacunar.lowrank import POPCA, SLRMRegressor

X, Y = problem(n=60)
RNG = np.random.default_rng(0)
PAIRS, SIGNS = RNG.integers(12, size=(60, 2)), RNG.choice([-1, 1], 60)
LATER = RNG.integers(16, size=(40, 2))  # some ids are new

VARIANTS = {
    "plain": {},
    "ratings": {"thresholds": [0.0, 0.5]},
    "kernel": {"rows": KernelFunction("gaussian")},
    "features": {"rows": Features(RNG.normal(size=(16, 3))), "cols": Features(RNG.normal(size=(16, 3)))},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_pairs(name):
    """Nothing of the batch was learned; ids that it brought may be known, which changes no prediction."""
    begun = OnlineMatrixClassifier(**VARIANTS[name]).partial_fit(*PAIRS.T, SIGNS)
    said, counts = begun.decision_function(PAIRS), (begun.n_seen_, begun.n_updates_, begun.n_mistakes_)
    signs = SIGNS[: len(LATER)]
    after = copy.deepcopy(begun).partial_fit(*LATER.T, signs).decision_function(LATER)
    model = copy.deepcopy(begun)
    learn, count = model.partial_fit, calls_of(lambda: copy.deepcopy(begun).partial_fit(*LATER.T, signs))
    for number in range(1, count, max(count // 60, 1)):
        try:
            with Fault(number) as fault:
                learn(*LATER.T, signs)
        except MemoryError:
            assert (model.n_seen_, model.n_updates_, model.n_mistakes_) == counts, fault.where
            np.testing.assert_allclose(model.decision_function(PAIRS), said, atol=1e-12, err_msg=fault.where)
            pickle.loads(pickle.dumps(model)).predict(PAIRS)  # its state is one that can be resumed
        else:
            model = copy.deepcopy(begun)
            learn = model.partial_fit
        if name == "plain" and number % 5 == 0:
            model = copy.deepcopy(begun)  # new ids are new again
            learn = model.partial_fit
    model = copy.deepcopy(model) if model.n_seen_ == counts[0] else copy.deepcopy(begun)
    model.partial_fit(*LATER.T, signs)
    np.testing.assert_allclose(model.decision_function(LATER), after, atol=1e-9)


def oracle(indices):
    return np.cos(3.0 * indices) + 0.1 * len(indices)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["active", "mbeg"])
def test_ask_and_tell(name):
    """At every moment of a renewal, too: `tell` and `ask` are whole or not at all."""
    model = clone(OTHERS[name]).run(oracle, 23)
    for _ in range(10):
        request = model.ask()[0]
        values = oracle(request.indices)
        before = state(model)
        twin = copy.deepcopy(model)
        for number in range(1, calls_of(lambda twin=twin, r=request, v=values: twin.tell(r, v))):
            with pytest.raises(MemoryError), Fault(number) as fault:
                model.tell(request, values)
            assert state(model) == before, fault.where
        model.tell(request, values)
        assert state(model) == state(twin)
        before = state(model)
        for number in range(1, calls_of(copy.deepcopy(model).ask)):
            with pytest.raises(MemoryError), Fault(number) as fault:
                model.ask(3)
            assert state(model) == before, fault.where


@pytest.mark.parametrize("name", ["active", "mbeg"])
def test_a_start_that_fails_is_none(name):
    fresh = clone(OTHERS[name])
    before = state(fresh)
    for number in range(1, calls_of(clone(fresh).ask)):
        with pytest.raises(MemoryError), Fault(number) as fault:
            fresh.ask()
        assert state(fresh) == before, fault.where


@pytest.mark.parametrize(
    ("model", "most"),
    [(POPCA(3, random_state=0), 10), (SLRMRegressor(3, max_iter=2, random_state=0), 12)],
    ids=["POPCA", "SLRMRegressor"],
)
def test_one_copy_of_the_entries(model, most):
    """Bytes an entry beside the table in float64, at the peak of a fit."""
    indices = np.tile(np.arange(200, dtype=np.int32), 40_000)
    values = RNG.normal(size=indices.size) + np.repeat(RNG.normal(size=40_000), 200)
    table = Observed(np.arange(0, indices.size + 1, 200), indices, values, (40_000, 200))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        with quiet():
            model.fit(table, values[::200])
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak / table.nnz < most
