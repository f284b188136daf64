"""Threads that share one fitted model get the bits that one thread gets; the interpreter's lock stays off where it is off."""

import subprocess
import sys
import sysconfig
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lacunar import KarmaClassifier, KarmaOnlineRegressor, KarmaRegressor, Observed
from lacunar.completion import Kernel, OnlineMatrixClassifier
from lacunar.karma import KarmaFeatures
from lacunar.lowrank import GROUSE, PETRELS, POPCA, LowRankImputer, SLRMRegressor
from lacunar.papers.slrm import MPCR

FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
TEAM = 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 3)) @ RNG.normal(size=(3, 14)) + 0.1 * RNG.normal(size=(160, 14))
Y = X[:, 0].copy()
X[RNG.random(X.shape) < 0.3] = np.nan
ROWS, COLS = RNG.integers(0, 25, size=(2, 160))
NEAR = Kernel(np.exp(-0.1 * np.abs(np.subtract.outer(np.arange(25), np.arange(25)))))


def completion(**options):
    model = OnlineMatrixClassifier(NEAR, NEAR, **options)
    return model.fit(np.column_stack([ROWS, COLS]), np.where(ROWS > COLS, 1, -1))


# What is asked of a fitted model, by name: the answer of one thread is the one expected.
ASKED = {
    "dual": lambda: KarmaClassifier(loss="hinge").fit(X, Y > 0).decision_function,
    "primal": lambda: KarmaRegressor(solver="primal", random_state=0).fit(X, Y).predict,
    "online": lambda: KarmaOnlineRegressor(2.5, random_state=0).fit(X, Y).predict,
    "features": lambda: KarmaFeatures(3, n_components=20, random_state=0).fit(X).transform,
    "POPCA": lambda: POPCA(2, random_state=0).fit(X).transform,
    "PETRELS": lambda: PETRELS(2, random_state=0).fit(X).transform,
    "GROUSE": lambda: GROUSE(2, random_state=0).fit(X).transform,
    "SLRM": lambda: SLRMRegressor(random_state=0).fit(X, Y).predict,
    "MPCR": lambda: MPCR(random_state=0).fit(X, Y).predict,
    "imputer": lambda: LowRankImputer(2, random_state=0).fit(X).transform,
}


def at_once(ask, rounds=4):
    """Answers of a team that starts together, each asking several times."""
    together = threading.Barrier(TEAM)

    def work(_):
        together.wait(timeout=60)
        return [ask() for _ in range(rounds)]

    with ThreadPoolExecutor(TEAM) as team:
        return [answer for answers in team.map(work, range(TEAM)) for answer in answers]


@pytest.mark.parametrize("name", ASKED)
def test_threads_share_a_model_and_a_table(name):
    ask, rows = ASKED[name](), Observed.from_dense(X)
    expected = np.asarray(ask(Observed.from_dense(X)))
    for answer in at_once(lambda: ask(rows)):
        np.testing.assert_array_equal(np.asarray(answer), expected)


@pytest.mark.parametrize("what", ["decision_function", "predict", "predict_proba"])
def test_threads_share_a_completion(what):
    model, pairs = completion(), np.column_stack([COLS, ROWS])
    expected = getattr(completion(), what)(pairs)
    for answer in at_once(lambda: getattr(model, what)(pairs), rounds=2):
        np.testing.assert_array_equal(answer, expected)


def test_threads_ask_single_pairs_of_one_completion():
    model = completion()
    expected = [completion().decision_one(i, j) for i, j in zip(COLS[:10], ROWS[:10], strict=True)]
    for answer in at_once(
        lambda: [model.decision_one(i, j) for i, j in zip(COLS[:10], ROWS[:10], strict=True)], rounds=2
    ):
        assert answer == expected


def test_two_threads_fit_models_of_their_own_from_one_table():
    rows = Observed.from_dense(X)
    expected = KarmaOnlineRegressor(2.5, random_state=0).fit(rows, Y).predict(rows)
    table = Observed.from_dense(X)
    for got in at_once(lambda: KarmaOnlineRegressor(2.5, random_state=0).fit(table, Y).predict(table), 1):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.skipif(not FREE, reason="this interpreter has its lock always")
def test_importing_does_not_bring_the_lock_back():
    code = "import sys, lacunar, lacunar.completion, lacunar.cli; sys.exit(sys._is_gil_enabled())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
