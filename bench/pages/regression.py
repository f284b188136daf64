"""SLRM and the trackers against the literal algorithms in vectorised NumPy.

`pytest bench/pages/regression.py --benchmark-enable` times ours and checks the answer. As a script,
`OMP_NUM_THREADS=1 python bench/pages/regression.py`, it interleaves ours with the literal form at the three sizes of the
design, prints process CPU times a row and their ratios, a sweep of ALS against a stochastic pass, and peak memory at a
million columns. Passes are timed as the difference between fits of few and of more passes, so that starts cancel. `--only search` times the
choice of SLRMRegressorCV beside the peers that a user would try, interleaved.
"""

import argparse
import resource
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar import Observed
from lacunar.lowrank import GROUSE, PETRELS, GaussianRegressor, SLRMOnlineRegressor, SLRMRegressor, SLRMRegressorCV
from lacunar.papers.slrm import PrintedSLRM

SHAPES = [(100, 30, 75), (1000, 20, 100), (100_000, 20, 100)]


def stream(n, D, d, observed, noise=0.1, seed=0):
    """Rows of a d-dimensional subspace seen at `observed` of D places, and labels."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(D, d)))[0]
    indices = np.concatenate([np.sort(rng.choice(D, observed, replace=False)) for _ in range(n)]).astype(np.int32)
    a = rng.normal(size=(n, d))
    values = np.einsum("ed,ed->e", U[indices], np.repeat(a, observed, axis=0)) * np.sqrt(D / d)
    values += noise * rng.normal(size=n * observed)
    indptr = np.arange(0, n * observed + 1, observed, dtype=np.int64)
    return Observed(indptr, indices, values, (n, D)), a @ rng.normal(size=d), U


class Literal:
    """Algorithm 1 with every step vectorised over the observed columns."""

    def __init__(self, U, w, delta=10.0, lam1=10.0, rho=1e-3, lam2=1e-3):
        self.U, self.w, self.R = U.copy(), w.copy(), np.tile(delta * np.eye(U.shape[1]), (len(U), 1, 1))
        self.lam1, self.rho, self.lam2 = lam1, rho, lam2

    def step(self, o, x, y):
        U, R, w = self.U, self.R, self.w
        part = U[o]
        a = np.linalg.solve(self.lam1 * part.T @ part + np.outer(w, w), self.lam1 * part.T @ x + y * w)
        v = R[o] @ a
        beta = 1 + v @ a
        R[o] -= v[:, :, None] * (v / beta[:, None])[:, None, :]
        U[o] += ((x - part @ a) / beta)[:, None] * v
        value, vector = np.linalg.eigh(U.T @ U)
        self.U = U @ ((vector / np.sqrt(value)) @ vector.T)
        moved = w - self.rho * 2 * (a @ w - y) * a
        self.w = np.sign(moved) * np.maximum(np.abs(moved) - self.rho * self.lam2, 0)


def cpu(call):
    start = time.process_time()
    call()
    return time.process_time() - start


def literal_time(rows, y, U, steps):
    twin = Literal(U, np.zeros(U.shape[1]))
    per = len(rows.indices) // rows.shape[0]
    pairs = [(rows.indices[i * per : (i + 1) * per], rows.values[i * per : (i + 1) * per]) for i in range(steps)]

    def run():
        for (o, x), label in zip(pairs, y, strict=False):
            twin.step(o, x, label)

    return cpu(run) / steps


def paper_time(rows, y, d, passes=3):
    def fit(count):
        model = PrintedSLRM(d, max_iter=count, validate=None, random_state=0)
        return cpu(lambda: model.fit(rows, y))

    return max(fit(1 + passes) - fit(1), 1e-9) / (passes * rows.shape[0])


def tracker_time(rows, tracker, passes=3):
    def fit(count):
        return cpu(lambda: tracker.set_params(max_iter=count).fit(rows))

    return max(fit(1 + passes) - fit(1), 1e-9) / (passes * rows.shape[0])


def speed(repeats, shapes, n=6000):
    print("us a row, process CPU; x: literal NumPy over ours, in the same run (medians)")
    for D, d, observed in shapes:
        rows, y, U = stream(min(n, 3000) if D > 10_000 else n, D, d, observed)
        steps = 40 if D > 10_000 else 400
        runs = {
            "literal NumPy": lambda rows=rows, y=y, U=U, steps=steps: literal_time(rows, y, U, steps),
            "paper, lazy": lambda rows=rows, y=y, d=d: paper_time(rows, y, d),
            "PETRELS per-column": lambda rows=rows, d=d: tracker_time(rows, PETRELS(d, forget=0.998, random_state=0)),
            "PETRELS shared": lambda rows=rows, d=d: tracker_time(
                rows, PETRELS(d, correlation="shared", forget=0.998, random_state=0)
            ),
            "GROUSE": lambda rows=rows, d=d: tracker_time(rows, GROUSE(d, random_state=0)),
        }
        times = {name: [] for name in runs}
        for _ in range(repeats):
            for name, call in runs.items():
                times[name].append(call())
        base = np.array(times["literal NumPy"])
        print(f"D={D} d={d} observed={observed}")
        for name, taken in times.items():
            print(f"  {name:28s} {np.median(taken) * 1e6:9.1f}   {np.median(base / np.array(taken)):7.1f}x")


def sweeps(repeats):
    """One ALS sweep against one stochastic pass of the paper's algorithm, at n=3200, D=100, d=30, 75 observed."""
    rows, y, _ = stream(3200, 100, 30, 75)
    ratios = []
    for _ in range(repeats):
        timed = {}
        for count in (2, 6):
            model = SLRMRegressor(30, solver="als", max_iter=count, tol=0.0, standardize=False, random_state=0)
            timed[count] = cpu(lambda model=model: model.fit(rows, y))
        ratios.append((timed[6] - timed[2]) / 4 / (paper_time(rows, y, 30) * 3200))
    print(f"ALS sweep over stochastic pass: {np.median(ratios):.2f}")


def searched(repeats, n):
    """CPU seconds of a fit, and errors in variances of the label on 2,000 further rows: 50 columns of rank 6, 30 % missing."""
    peers = {
        "SLRMRegressorCV": lambda: SLRMRegressorCV(random_state=0),
        "SLRMRegressor(6)": lambda: SLRMRegressor(6, random_state=0),
        "IterativeImputer + ridge": lambda: make_pipeline(IterativeImputer(random_state=0), RidgeCV()),
        "GaussianRegressor": lambda: GaussianRegressor(),
        "HistGradientBoosting": lambda: HistGradientBoostingRegressor(random_state=0),
    }
    for noise in (0.1, 1.0):
        rng = np.random.default_rng(0)
        z = rng.normal(size=(n + 2000, 6))
        X = z @ rng.normal(size=(6, 50)) + noise * rng.normal(size=(n + 2000, 50))
        y = z @ rng.normal(size=6) + 0.5 * rng.normal(size=n + 2000)
        X[rng.random(X.shape) < 0.3] = np.nan
        seconds, errors = {name: [] for name in peers}, {}
        for _ in range(repeats):
            for name, build in peers.items():
                model = build()
                seconds[name].append(cpu(partial(model.fit, X[:n], y[:n])))
                errors[name] = np.mean((model.predict(X[n:]) - y[n:]) ** 2) / y[n:].var()
        for name, spent in seconds.items():
            print(
                f"{n} x 50, noise {noise}: {name:25s} {np.median(spent):6.2f} s, error {errors[name]:.4f}", flush=True
            )


MEMORY = """
import resource, sys
import numpy as np
from lacunar import Observed
from lacunar.lowrank import PETRELS
D, n, observed = 1_000_000, 20_000, 100
rng = np.random.default_rng(0)
indices = np.sort(rng.integers(0, D // observed, size=(n, observed)) + np.arange(observed) * (D // observed)).astype(np.int32)
rows = Observed(np.arange(0, n * observed + 1, observed), indices.ravel(), rng.normal(size=n * observed), (n, D))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tracker = PETRELS(20, correlation=sys.argv[1], forget=0.998, precision="float32", init="random", random_state=0)
tracker.fit(rows)
held = sum(v.nbytes for v in tracker.state_.values() if hasattr(v, "nbytes"))
print(held / 2**30, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
"""


def memory():
    for correlation in ("shared", "per-column"):
        out = subprocess.run(
            [sys.executable, "-c", MEMORY, correlation], capture_output=True, text=True, check=True
        ).stdout.split()
        print(
            f"D=1,000,000 d=20 {correlation}: state {float(out[0]):.2f} GiB, peak growth of the process {float(out[1]):.2f} GiB"
        )


@pytest.mark.parametrize("correlation", ["shared", "per-column"])
def test_petrels(benchmark, correlation):
    rows, _, U = stream(4000, 300, 10, 60)
    tracker = PETRELS(10, correlation=correlation, forget=0.998, random_state=0)
    benchmark(tracker.fit, rows)
    Q = tracker.components_.T
    assert np.linalg.norm(U - Q @ (Q.T @ U)) ** 2 / 10 < 0.05


@pytest.mark.parametrize("kind", ["em", "als", "stream"])
def test_slrm(benchmark, kind):
    rows, y, _ = stream(2000, 100, 10, 40)
    options = {"max_iter": 10, "random_state": 0}
    model = SLRMOnlineRegressor(10, **options) if kind == "stream" else SLRMRegressor(10, solver=kind, **options)
    benchmark(model.fit, rows, y)
    assert model.score(rows, y) > 0.8


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--quick", action="store_true", help="the smallest shape once: shows that it runs, decides no bar"
    )
    parser.add_argument("--only", choices=("speed", "search"), help="one part")
    options = parser.parse_args()
    if options.only != "search":
        speed(1, SHAPES[:1], 1000) if options.quick else speed(options.repeats, SHAPES)
        sweeps(1 if options.quick else options.repeats)
    if options.only != "speed":
        searched(1 if options.quick else options.repeats, 300 if options.quick else 10_000)
    if not options.quick and options.only != "search":
        memory()
    print(f"peak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
