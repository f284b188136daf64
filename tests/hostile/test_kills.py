"""kill -9 at random moments of fits that save after every batch: the file is sound, and the run resumed from it ends the same.

The test starts one interpreter, which imports everything once and forks a child for every kill.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor, Observed
from lacunar.active import MBEG, ActivePOPCA
from lacunar.completion import OnlineMatrixClassifier
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor
from lacunar.observed.container import read_archive
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.papers.subspace import PrintedMBEG
from lacunar.persistence import load_model, save_model

pytestmark = pytest.mark.slow

if not hasattr(os, "fork"):
    pytest.skip("this system cannot fork", allow_module_level=True)

BATCHES, ROWS, KILLS = 12, 40, 4
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(BATCHES * ROWS, 4)) @ RNG.normal(size=(4, 12))
TABLE[RNG.random(TABLE.shape) < 0.5] = np.nan
TABLE[np.isnan(TABLE).all(axis=1), 0] = 1.0  # a row without entries is not counted by every tracker
LABELS = RNG.integers(2, size=BATCHES * ROWS)
PAIRS = RNG.integers(30, size=(BATCHES * ROWS, 2))


def batch(number):
    rows = slice(number * ROWS, (number + 1) * ROWS)
    return Observed.from_dense(TABLE[rows]), LABELS[rows], PAIRS[rows]


def learn_karma(model, number):
    X, y, _ = batch(number)
    model.partial_fit(X, y, classes=[0, 1])


def learn_numbers(model, number):
    X, y, _ = batch(number)
    model.partial_fit(X, y.astype(float))


def learn_rows(model, number):
    model.partial_fit(batch(number)[0])


def learn_pairs(model, number):
    _, y, pairs = batch(number)
    model.partial_fit(*pairs.T, y, classes=[0, 1])


def ask_and_tell(model, number):
    """Every row that is asked for has its values from its number, so that a resumed run meets the same ones."""
    for request in model.ask(ROWS):
        values = np.random.default_rng(request.id).normal(size=12)
        if request.id % 5:  # the others stay pending
            model.tell(request, values[request.indices])


# How to make a model, how it learns one batch, and its own count of rows, from which the resumed run knows where it is.
FITS = {
    "karma-primal": (
        lambda: KarmaOnlineClassifier(random_state=0),
        learn_karma,
        "n_rows_seen_",
    ),
    "karma-online": (
        lambda: KarmaOnlineClassifier(2.5, random_state=0),
        learn_karma,
        "n_rows_seen_",
    ),
    "popca": (lambda: POPCA(3, refine=0, random_state=0), learn_rows, "n_samples_seen_"),
    "petrels": (lambda: PETRELS(3, random_state=0), learn_rows, "n_samples_seen_"),
    "grouse": (lambda: GROUSE(3, random_state=0), learn_rows, "n_samples_seen_"),
    "pairs": (lambda: OnlineMatrixClassifier(), learn_pairs, "n_seen_"),
    "pairs-gradient": (
        lambda: MatrixExponentiatedGradient(),
        learn_pairs,
        "n_seen_",
    ),
    "petrels-shared": (lambda: PETRELS(3, correlation="shared", random_state=0), learn_rows, "n_samples_seen_"),
    "slrm": (lambda: SLRMOnlineRegressor(3, random_state=0), learn_numbers, "state_"),
    "karma-regressor": (
        lambda: KarmaOnlineRegressor(loss="absolute", random_state=0),
        learn_numbers,
        "n_rows_seen_",
    ),
    "mbeg": (lambda: MBEG(12, 2, n_observed=4, refresh=16, random_state=0), ask_and_tell, "n_asked_"),
    "mbeg-literal": (lambda: PrintedMBEG(12, 2, r=4, m=10**6, random_state=0), ask_and_tell, "n_asked_"),
    "active": (lambda: ActivePOPCA(12, 2, n_observed=3, random_state=0), ask_and_tell, "n_asked_"),
}


def rows_seen(model, counter):
    """What a model says of how far it has come; SLRM's tracker counts rows."""
    seen = getattr(model, counter, 0)
    return int(seen["clock"][0]) if isinstance(seen, dict) else seen


def go_on(name, path, *, every=True):
    """From the file, if there is one, to the end; a save after every batch, or at the end only."""
    make, learn, counter = FITS[name]
    model = load_model(path) if path.exists() else make()
    for number in range(rows_seen(model, counter) // ROWS, BATCHES):
        learn(model, number)
        if every:
            save_model(model, path)
    save_model(model, path)


def killed_child(name, path, seconds, *, saved_first):
    """Whether a child that goes on with the run was killed on its way; on request once there is a file, however slow the machine."""
    child = os.fork()
    if child == 0:
        try:
            go_on(name, path)
            os._exit(0)
        finally:
            os._exit(1)
    deadline = time.perf_counter() + 20
    while saved_first and not path.exists() and time.perf_counter() < deadline:
        time.sleep(1e-4)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def same(one, other):
    """The whole state: header and arrays of two model files."""
    (header, arrays), (header2, arrays2) = (read_archive(path, kind="model") for path in (one, other))
    return header == header2 and all(
        np.array_equal(array, arrays2[key], equal_nan=array.dtype.kind == "f") for key, array in arrays.items()
    )


def trial(name, folder, seed):
    """What became of one run killed several times, as plain numbers for the test to judge."""
    rng, path, whole = random.Random(seed), folder / "model", folder / "whole"
    start = time.perf_counter()
    go_on(name, folder / "saved")
    seconds = time.perf_counter() - start
    go_on(name, whole, every=False)
    kills = middles = 0
    for number in range(10 * KILLS):
        kills += killed_child(name, path, rng.uniform(0, 0.6 * seconds), saved_first=number % 2 == 1)
        middles += path.exists()
        if path.exists() and rows_seen(load_model(path), FITS[name][2]) == BATCHES * ROWS:
            path.unlink()  # it was done: begin anew
        if kills == KILLS and middles:
            break
    go_on(name, path)
    return {"kills": kills, "middles": middles, "same": same(path, whole), "same_saved": same(folder / "saved", whole)}


@pytest.fixture(scope="module")
def trials():
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", FITS)
def test_a_killed_run_ends_as_the_whole_one(trials, name):
    outcome = trials[name]
    assert outcome["kills"] >= KILLS
    assert outcome["middles"] >= 1  # resumed from a file at least once
    assert outcome["same_saved"]
    assert outcome["same"]


if __name__ == "__main__":
    outcomes = {}
    for name in FITS:
        with tempfile.TemporaryDirectory() as folder:
            outcomes[name] = trial(name, Path(folder), seed=os.environ.get("LACUNAR_KILL_SEED", "0") + name)
    print(json.dumps(outcomes))
