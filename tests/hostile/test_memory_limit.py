"""An address space that ends (RLIMIT_AS): allocations fail in C++ and NumPy, and the stream is as before. Run as a script."""

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


def begun(name):
    """A learner that has begun, how it learns the rest, and all that it is."""
    if name == "pairs":
        model = clone(OTHERS[name]).partial_fit(*PAIRS[:300].T, SIGNS[:300])
        return lambda: model.partial_fit(*PAIRS[300:].T, SIGNS[300:]), lambda: model.decision_function(PAIRS[:50])
    model = clone(LEARNERS[name])
    if "n_components" in model.get_params():
        model.set_params(n_components=10)
    model.partial_fit(X[:300], Y[:300], **({"classes": [0, 1]} if "karma" in name else {}))
    return lambda: model.partial_fit(X[300:], Y[300:]), lambda: state(model)


def alike(one, other):
    """To the bit; answers about pairs but for rounding, since ids of a lost batch keep their places, and sums run in another order."""
    return one == other if isinstance(one, str) else np.allclose(one, other, rtol=0, atol=1e-12)


def trial(name):
    """How many calls ran out of memory, and whether the learner was as before after each."""
    import resource

    learn, all_of = begun(name)
    before, failed = all_of(), 0
    limits = resource.getrlimit(resource.RLIMIT_AS)
    for room in ROOMS:
        held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        try:
            resource.setrlimit(resource.RLIMIT_AS, (held + int(room * 2**20), limits[1]))
            learn()
        except MemoryError:
            resource.setrlimit(resource.RLIMIT_AS, limits)
            failed += 1
            if not alike(all_of(), before):
                return {"failed": failed, "same": False, "done": False}
        else:
            return {"failed": failed, "same": True, "done": True}
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
    return {"failed": failed, "same": True, "done": False}


def test_allocations_that_fail_leave_the_stream():
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
