"""Memory that runs out in the middle of learning: a `MemoryError`, and the learner as before, whoever holds it."""

import contextlib
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
    """The first pairs are learned, as many as are counted, or the model says that it must be loaded again."""
    begun = OnlineMatrixClassifier(**VARIANTS[name]).partial_fit(*PAIRS.T, SIGNS)
    signs, lost = SIGNS[: len(LATER)], 0
    numbers = np.linspace(1, calls_of(lambda: copy.deepcopy(begun).partial_fit(*LATER.T, signs)), 60).astype(int)[:-1]
    for number in numbers:
        model, twin = copy.deepcopy(begun), copy.deepcopy(begun)
        with contextlib.suppress(MemoryError), Fault(number) as fault:
            model.partial_fit(*LATER.T, signs)
        try:
            n = model.n_seen_ - begun.n_seen_
        except RuntimeError:
            lost += 1
            continue
        twin.partial_fit(*LATER[:n].T, signs[:n])
        same = {"rtol": 0, "atol": 1e-9, "err_msg": fault.where}  # ids that came meanwhile keep their places
        np.testing.assert_allclose(model.decision_function(LATER), twin.decision_function(LATER), **same)
        pickle.loads(pickle.dumps(model)).predict(PAIRS)  # its state is one that can be resumed
        np.testing.assert_allclose(
            model.partial_fit(*LATER.T, signs).decision_function(PAIRS),
            twin.partial_fit(*LATER.T, signs).decision_function(PAIRS),
            **same,
        )
    assert lost < len(numbers) / 4


def oracle(indices):
    return np.cos(3.0 * indices) + 0.1 * len(indices)


def faulted(model, call, number, error):
    """The state of a copy of the model after a call that fails at its `number`-th Python call, and where that was."""
    model = copy.deepcopy(model)
    with pytest.raises(error), Fault(number, error) as fault:
        call(model)
    return state(model), fault.where


@pytest.mark.slow
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["active", "mbeg"])
def test_ask_and_tell(name, error):
    """At every moment of a renewal, too: `ask` and `tell` are whole or not at all."""
    model = clone(OTHERS[name]).run(oracle, 23)
    for _ in range(10):
        request = model.ask()[0]
        values, before = oracle(request.indices), state(model)
        told = copy.deepcopy(model)
        count = calls_of(lambda told=told, request=request, values=values: told.tell(request, values))
        after = state(told)
        for number in range(1, count):
            found, where = faulted(model, lambda m, r=request, v=values: m.tell(r, v), number, error)
            assert found in (before, after), where
        model.tell(request, values)
        before = state(model)
        for number in range(1, calls_of(copy.deepcopy(model).ask)):
            assert faulted(model, lambda m: m.ask(3), number, error)[0] == before


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
    [
        (POPCA(3, random_state=0), 10),
        (SLRMRegressor(3, lam1="inf", max_iter=2, random_state=0), 12),
        (SLRMRegressor(3, max_iter=2, random_state=0), 24),
    ],
    ids=["POPCA", "SLRMRegressor, no labels", "SLRMRegressor"],
)
def test_one_copy_of_the_entries(model, most):
    """Bytes an entry beside the table in float64, at the peak of a fit; labels that choose directions take a second table, with
    themselves as a further column.
    """
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
