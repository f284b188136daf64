"""An address space that ends (RLIMIT_AS): allocations fail in C++ and NumPy, and the stream has learned whole rows. Run as a script."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from faulty import LEARNERS, OTHERS, quiet, state
from sklearn.base import clone

pytestmark = pytest.mark.slow

if not Path("/proc/self/statm").exists():
    pytest.skip("this system does not say how much memory a process has", allow_module_level=True)

ROOMS = (0.3, 1, 2, 4, 6, 8, 10, 15, 40, 120, 300, 1000)  # MB beyond what the process has
NAMES = ["karma-passes", "karma-online", "popca-tables", "petrels", "slrm-stream", "pairs"]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(3000, 150)), RNG.integers(2, size=3000)
X[RNG.random(X.shape) < 0.3] = np.nan
PAIRS = RNG.integers(60_000, size=(30_000, 2))  # enough that a snapshot does not fit either
SIGNS = RNG.integers(2, size=len(PAIRS))


class Stream:
    """A learner that has begun with 300 rows or pairs, and how many of them it says that it has learned."""

    def __init__(self, name):
        self.pairs = name == "pairs"
        self.model = clone((OTHERS if self.pairs else LEARNERS)[name])
        if "n_components" in self.model.get_params():
            self.model.set_params(n_components=10)
        self.learn(0, 300, **({"classes": [0, 1]} if "karma" in name else {}))

    def learn(self, first, last=None, **options):
        rows = slice(first, last)
        data = (*PAIRS[rows].T, SIGNS[rows]) if self.pairs else (X[rows], Y[rows])
        self.model.partial_fit(*data, **options)

    def count(self):
        names = ("n_seen_", "n_rows_seen_", "n_samples_seen_")
        return next(getattr(self.model, name) for name in names if hasattr(self.model, name))

    def alike(self, other):
        """To the bit; answers about pairs but for rounding, since ids of a lost batch keep their places, and sums run in another order."""
        if not self.pairs:
            return state(self.model) == state(other.model)
        one, two = (each.model.decision_function(PAIRS[:50]) for each in (self, other))
        return np.allclose(one, two, rtol=0, atol=1e-12)


def trial(name):
    """How many calls ran out of memory, and whether the learner had learned whole rows, or said that it had not, after each."""
    import resource

    failed, limits = 0, resource.getrlimit(resource.RLIMIT_AS)
    for room in ROOMS:
        stream = Stream(name)
        held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        try:
            resource.setrlimit(resource.RLIMIT_AS, (held + int(room * 2**20), limits[1]))
            stream.learn(300)
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            failed += 1
            twin = Stream(name)
            try:
                state(stream.model)
            except RuntimeError:
                continue
            if stream.count() > 300:
                twin.learn(300, stream.count())
            if not stream.alike(twin):
                return {"failed": failed, "same": False, "done": False}
        else:
            return {"failed": failed, "same": True, "done": True}
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
    return {"failed": failed, "same": True, "done": False}


def test_allocations_that_fail_leave_whole_rows():
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", __file__]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:]
    outcomes = json.loads(done.stdout)
    assert all(each["same"] and each["done"] for each in outcomes.values()), outcomes
    assert sum(each["failed"] > 0 for each in outcomes.values()) >= 3, outcomes  # others had room of their own


if __name__ == "__main__":
    with quiet():
        print(json.dumps({name: trial(name) for name in NAMES}))
