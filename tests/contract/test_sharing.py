"""Every family shared: among threads, with forked children after threaded work, with spawned processes; fits side by side.

Forks and spawns happen in one fresh interpreter, this file run as a script: pytest's has other packages' threads.
"""

import copy
import functools
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from faulty import LEARNERS, OTHERS, answer, problem, quiet, state
from sklearn.base import clone

from lacunar.completion import Features, Identity, KernelFunction, OnlineMatrixClassifier
from lacunar.persistence import load_model, save_model

X, Y = problem(n=80)
RNG = np.random.default_rng(0)
PAIRS, SIGNS = RNG.integers(30, size=(200, 2)), RNG.choice([-1, 1], 200)
NEW = np.column_stack([np.arange(100, 140), np.arange(40) % 30])  # ids that no pair had
STACKED = {"stack", "stack-regressor"}  # of scikit-learn: no model file holds them


def oracle(indices):
    return np.cos(3.0 * indices) + 0.1 * len(indices)


def fitted(name, shift=0):
    """A fitted model of any family, threaded where it can be."""
    if name == "pairs":
        return OnlineMatrixClassifier().partial_fit(*PAIRS.T + shift, SIGNS)
    if name in OTHERS:
        return clone(OTHERS[name]).run(oracle, 60 + shift)
    model = clone(LEARNERS[name])
    if "n_jobs" in model.get_params() and name not in STACKED:  # joblib's processes do not outlive a fork
        model.set_params(n_jobs=2)
    with quiet():
        return model.fit(X + shift, Y)


def asked(model):
    """What a fitted model of any family says."""
    if isinstance(model, OnlineMatrixClassifier):
        return model.decision_function(PAIRS)
    with quiet():
        return model.result().components_ if hasattr(model, "result") else answer(model, X)


def together(act, count=8):
    """`act(k)` in so many threads, all begun at once."""
    begin = threading.Barrier(count)

    def one(k):
        begin.wait(timeout=60)
        return act(k)

    with ThreadPoolExecutor(count) as team:
        return list(team.map(one, range(count)))


NAMES = [*LEARNERS, *OTHERS]


@pytest.mark.parametrize("name", NAMES)
def test_threads_share_a_model(name):
    model = fitted(name)
    expected, before = asked(model), state(model)
    for shared in (model, pickle.loads(pickle.dumps(model))):  # one that was loaded begins lazily
        for got in together(lambda _, shared=shared: asked(shared)):
            np.testing.assert_array_equal(got, expected)
    assert state(model) == before


@pytest.mark.parametrize("name", NAMES)
def test_two_fits_at_once(name):
    expected = [state(fitted(name, shift)) for shift in range(2)]
    for _ in range(2):
        assert together(lambda shift: state(fitted(name, shift)), 2) == expected


@pytest.mark.parametrize(
    "rows",
    [Identity(), KernelFunction("gaussian"), KernelFunction(lambda a, b: 1 / (1 + abs(a - b)))],
    ids=["identity", "named", "function"],
)
def test_threads_ask_about_new_ids(rows):
    """Which make the tables grow."""
    model = OnlineMatrixClassifier(rows=rows).partial_fit(*PAIRS.T, SIGNS)
    for _ in range(3):
        expected = copy.deepcopy(model).decision_function(NEW)
        shared = copy.deepcopy(model)
        for got in together(lambda k, shared=shared: shared.decision_function(np.roll(NEW, k, axis=0))[k:]):
            np.testing.assert_allclose(got, expected[: len(got)], atol=1e-12)
        with tempfile.TemporaryDirectory() as folder:
            if not callable(getattr(rows, "f", None)):
                save_model(shared, Path(folder) / "model")
                assert load_model(Path(folder) / "model").n_seen_ == 200


def test_a_model_of_features_is_shared():
    table = Features(RNG.normal(size=(30, 4)))
    model = OnlineMatrixClassifier(rows=table, cols=table).partial_fit(*PAIRS.T, SIGNS)
    expected = model.decision_function(PAIRS)
    for got in together(lambda _: model.decision_function(PAIRS)):
        np.testing.assert_array_equal(got, expected)


# -- processes --------------------------------------------------------------------------------------------------------


def in_child(name, model, expected):
    """Whether a forked child answers, fits and threads as its parent."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            same = np.array_equal(asked(model), expected) and np.array_equal(asked(fitted(name)), expected)
            code = 0 if same else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def in_spawned(task):
    """The answer of a model that came as a pickle, and as a file."""
    data, path = task
    model = pickle.loads(data)
    return [asked(model).tolist(), asked(load_model(path)).tolist() if path else None]


def main():
    models = {name: fitted(name) for name in NAMES}
    expected = {name: asked(model) for name, model in models.items()}
    report = {name: {} for name in NAMES}
    if hasattr(os, "fork"):
        for name in NAMES:
            report[name]["fork"] = in_child(name, models[name], expected[name])
    with tempfile.TemporaryDirectory() as folder:
        tasks = []
        for name, model in models.items():
            path = None if name in STACKED else str(Path(folder) / name)
            if path:
                save_model(model, path)
            tasks.append((pickle.dumps(model), path))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for name, (pickled, filed) in zip(NAMES, pool.map(in_spawned, tasks), strict=True):
                report[name]["pickle"] = np.array_equal(pickled, expected[name])
                report[name]["file"] = filed is None or np.array_equal(filed, expected[name])
    print(json.dumps(report))


@functools.cache
def report():
    done = subprocess.run([sys.executable, "-W", "ignore", __file__], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_other_processes_answer_with_the_same_bits(name):
    """A forked child of a parent that used threads, which fits again, too; a spawned one from a pickle and from a file."""
    assert all(report()[name].values()), report()[name]


if __name__ == "__main__":
    main()
