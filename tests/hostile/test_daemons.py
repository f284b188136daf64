"""A daemon thread may be anywhere in compiled code when the main thread ends: the process ends as the main thread says.

CPython before 3.14 ends such a thread by unwinding its stack when it asks for the interpreter, which C++ answers with an abort.
"""

import subprocess
import sys
import textwrap

import pytest

BEGINNING = """
import sys, tempfile, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np
# NumPy's own C++ (numpy.unique by hashing, since 2.3) aborts when such a thread is in it: it is sorted here, as before.
sets = getattr(np.lib, "_arraysetops_impl", None)
if hasattr(sets, "_unique_hash"):
    sets._unique_hash = lambda *args, **options: NotImplemented
from lacunar import KarmaOnlineClassifier, KarmaRegressor, Observed, POPCA
from lacunar.completion import Graph, OnlineMatrixClassifier
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.lowrank import PETRELS, GaussianRegressor
from lacunar.observed import ObservedFile, write_batches

X = np.random.default_rng(0).normal(size=(600, 12))
X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
y, labels = np.nan_to_num(X[:, 0]), np.where(np.nan_to_num(X[:, 1]) > 0, 1, -1)
table, threes = Observed.from_dense(X), np.arange(600) % 3
pairs = [*np.random.default_rng(2).integers(40, size=(2, 600)).tolist()]
ring = np.roll(np.eye(40), 1, axis=1) + np.roll(np.eye(40), -1, axis=1)
model = KarmaRegressor(2.5, n_jobs=2).fit(X[:300], y[:300])
file = f"{tempfile.mkdtemp()}/rows"
write_batches(file, [table])
"""
CALLS = {
    "dense": "Observed.from_dense(X)",
    "triplets": "Observed.from_triplets(threes, np.arange(600), y, shape=(3, 600))",
    "file": "list(ObservedFile(file))",
    "gram in threads": "model.predict(X)",
    "steps": "KarmaOnlineClassifier(3, random_state=0).fit(X, labels)",
    "popca": "POPCA(3, n_jobs=2).fit(X)",
    "petrels": "PETRELS(2, random_state=0).fit(X)",
    "pairs": "OnlineMatrixClassifier().partial_fit(*pairs, labels)",
    "product in Python": 'MatrixExponentiatedGradient(rows=Graph(ring, method="sparse")).partial_fit(*pairs, labels)',
    "Cython": "GaussianRegressor(max_iter=3).fit(X, y)",
}
END = """
def work(call):
    while True:
        call()

for call in CALLS:
    call()  # which can be made
    threading.Thread(target=work, args=(call,), daemon=True).start()
time.sleep(0.4)
sys.exit(7)
"""


def exit_status(calls):
    program = BEGINNING + f"CALLS = [{', '.join(f'lambda: {call}' for call in calls)}]" + textwrap.dedent(END)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    return ended.returncode, ended.stderr


def test_daemons_in_every_call_leave_the_exit_status_alone():
    assert exit_status(CALLS.values()) == (7, "")


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_daemon_in_a_call_leaves_the_exit_status_alone(call):
    assert {exit_status([CALLS[call]]) for _ in range(3)} == {(7, "")}
