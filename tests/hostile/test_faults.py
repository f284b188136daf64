"""Ctrl-C in every long loop: it comes back soon, and what is left is whole."""

import itertools
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaOnlineClassifier, KarmaRegressorCV, Observed
from lacunar._latent import latent_rows
from lacunar.active import ActivePOPCA
from lacunar.completion import OnlineMatrixClassifier
from lacunar.karma import KarmaFeatures
from lacunar.kernels import karma_kernel
from lacunar.learner import LacunarRegressor
from lacunar.lowrank import (
    GROUSE,
    PETRELS,
    POPCA,
    LowRankImputer,
    SLRMOnlineRegressor,
    SLRMRegressor,
    SLRMRegressorCV,
    column_pair_sums,
)
from lacunar.observed.columns import fit_columns
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM
from lacunar.papers.subspace import PrintedMBEG

if not hasattr(signal, "setitimer"):
    pytest.skip("this system has no interval timers", allow_module_level=True)


def table(n, d, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8)) @ rng.normal(size=(8, d)) + rng.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) > share] = np.nan
    return Observed.from_dense(X), y


SMALL, LARGE, MANY = table(400, 30, 0.3), table(4000, 100, 0.15), table(2500, 20, 0.5)
PAIRS = np.random.default_rng(0).integers(200, size=(60_000, 2))
ANSWERS = np.random.default_rng(1).choice([-1, 1], size=60_000)
NUMBERS = LARGE[1].astype(float)
ASKED = OnlineMatrixClassifier().partial_fit(*PAIRS[:300].T, ANSWERS[:300])


def oracle(indices):
    return 1.0 + indices % 3


LOOPS = {
    "dual ascent on the table": lambda: KarmaClassifier(
        loss="hinge", solver="primal", tol=1e-12, max_iter=10**6, C=100
    ).fit(*LARGE),
    "passes of Algorithm 1": lambda: KarmaOnlineClassifier(max_iter=10**6).fit(*LARGE),
    "dual ascent on a Gram": lambda: KarmaClassifier(
        4, loss="hinge", solver="gram", tol=1e-14, max_iter=10**6, C=1e3
    ).fit(*MANY),
    "stored rows": lambda: KarmaOnlineClassifier(2.5, max_iter=10**6).fit(*LARGE),
    "search": lambda: [KarmaClassifierCV(kernels="auto").fit(*SMALL) for _ in range(1000)],
    "refinement": lambda: [POPCA(10, refine=10**6).fit(LARGE[0]) for _ in range(1000)],
    "EM": lambda: SLRMRegressor(10, max_iter=10**6, tol=0).fit(LARGE[0], LARGE[1].astype(float)),
    "PETRELS": lambda: PETRELS(10, max_iter=10**6).fit(LARGE[0]),
    "GROUSE": lambda: GROUSE(10, max_iter=10**6).fit(LARGE[0]),
    "completion": lambda: OnlineMatrixClassifier().partial_fit(*PAIRS.T, ANSWERS),
    "continuation": lambda: [
        MatrixCompletionClassifier().fit(SMALL[0].to_dense(), SMALL[1].astype(float)) for _ in range(1000)
    ],
    "geom": lambda: [GeomClassifier().fit(*SMALL) for _ in range(1000)],
    "ALS": lambda: SLRMRegressor(10, solver="als", lam1=1.0, max_iter=10**6, tol=0).fit(LARGE[0], NUMBERS),
    "SLRM's stream": lambda: [SLRMOnlineRegressor(10).fit(LARGE[0], NUMBERS) for _ in range(1000)],
    "Algorithm 1 of SLRM": lambda: PrintedSLRM(10, validate="pass", max_iter=10**6).fit(LARGE[0], NUMBERS),
    "SLRM's search": lambda: SLRMRegressorCV([1, 2, 3, 4, 5], lam1=[1, 10, 100], cv=100).fit(LARGE[0], NUMBERS),
    "MPCR": lambda: MPCR(10, max_iter=10**6, tol=0).fit(LARGE[0], NUMBERS),
    "SMPCR": lambda: [SMPCR(10).fit(LARGE[0], NUMBERS) for _ in range(1000)],
    "search of regressors": lambda: [KarmaRegressorCV(cv=5).fit(SMALL[0], 1.0 * SMALL[1]) for _ in range(1000)],
    "ranks": lambda: [LowRankImputer(max_iter=10**6, tol=0).fit(LARGE[0]) for _ in range(1000)],
    "landmarks": lambda: [KarmaFeatures(3, n_components=2000).fit(LARGE[0]) for _ in range(1000)],
    "stacked matrix": lambda: [MatrixCompletionRegressor("bias").fit(SMALL[0], 1.0 * SMALL[1]) for _ in range(1000)],
    "gradient": lambda: MatrixExponentiatedGradient().partial_fit(*PAIRS.T, ANSWERS),
    "pairs asked": lambda: [ASKED.decision_function(PAIRS) for _ in range(10**5)],
    "rows asked for": lambda: ActivePOPCA(50, 3, n_observed=10).run(oracle, 10**9),
    "pairs of attributes": lambda: PrintedMBEG(50, 3, r=10, m=10**9).run(oracle, 10**9),
    "batches": lambda: KarmaOnlineClassifier().fit_batches(itertools.repeat(SMALL), classes=[0, 1]),
    "learner": lambda: LacunarRegressor().fit(LARGE[0], NUMBERS),  # keeps the members that are finished
}


class Interrupted:
    """Ctrl-C after a while; `waited` is how long it took to come back."""

    def __init__(self, seconds):
        self.seconds = seconds

    def __enter__(self):
        self.old = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        self.start = time.perf_counter()
        return self

    def __exit__(self, kind, *rest):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.old)
        self.waited = time.perf_counter() - self.start - self.seconds
        return kind is KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOPS)
def test_an_interrupt_comes_back(name):
    with warnings.catch_warnings(action="ignore"), Interrupted(0.3) as ctrl_c:
        LOOPS[name]()
    # Without a look for signals these loops run for minutes; a busy machine may take seconds for one step.
    assert -0.2 < ctrl_c.waited < 15


@pytest.mark.slow
def test_one_call_of_the_core_comes_back():
    """Calls of seconds that change nothing: Ctrl-C is seen inside them, and what they read is as it was."""
    rng = np.random.default_rng(0)
    wide = Observed.from_dense(rng.normal(size=(9000, 1500)).astype(np.float32))
    tall = Observed.from_dense(np.where(rng.random((60_000, 60)) < 0.5, rng.normal(size=(60_000, 60)), np.nan))
    basis = rng.normal(size=(60, 48))
    calls = {
        f"karma_kernel {method}": lambda method=method: karma_kernel(wide, gamma=2, n_jobs=2, method=method)
        for method in ("dense", "spmm", "inverted")
    }
    calls["latent_rows"] = lambda: latent_rows(tall, basis, 0.1, inverse=True)
    calls["pair sums"] = lambda: [column_pair_sums(tall) for _ in range(1000)]
    calls["moments"] = lambda: [fit_columns(wide, np.ones(9000), standardize=True) for _ in range(1000)]
    for name, call in calls.items():
        with Interrupted(0.2) as ctrl_c:
            call()
            pytest.fail(f"{name} was not interrupted")
        assert ctrl_c.waited < 1, name
    twice = latent_rows(tall[:300], basis, 0.1).latent
    np.testing.assert_array_equal(latent_rows(tall[:300], basis, 0.1, n_jobs=3).latent, twice)


def test_an_interrupt_is_seen_by_the_main_thread_alone():
    """Another thread's call is not disturbed: Python handles signals in its main thread."""
    X = np.random.default_rng(0).normal(size=(3000, 300))
    with ThreadPoolExecutor(1) as team:
        other = team.submit(karma_kernel, X, gamma=2)
        with Interrupted(0.05):
            time.sleep(30)
        made = other.result()
    np.testing.assert_array_equal(made[:64, :64], karma_kernel(X[:64], gamma=2))


def test_an_interrupted_fit_changes_nothing():
    model = KarmaOnlineClassifier(max_iter=10**6)
    with Interrupted(0.3):
        model.fit(*LARGE)
    assert not hasattr(model, "n_rows_seen_")


def test_an_interrupted_stream_of_pairs_has_learned_whole_pairs():
    model = OnlineMatrixClassifier().partial_fit(*PAIRS[:500].T, ANSWERS[:500])
    twin = OnlineMatrixClassifier().partial_fit(*PAIRS[:500].T, ANSWERS[:500])
    with Interrupted(0.3):
        model.partial_fit(*PAIRS[500:].T, ANSWERS[500:])
    learned = slice(500, model.n_seen_)
    if model.n_seen_ > 500:
        twin.partial_fit(*PAIRS[learned].T, ANSWERS[learned])
    for each in (model, twin):
        each.partial_fit(*PAIRS[500:900].T, ANSWERS[500:900])
    np.testing.assert_allclose(model.decision_function(PAIRS[:50]), twin.decision_function(PAIRS[:50]), atol=1e-12)
    assert model.n_seen_ == twin.n_seen_
