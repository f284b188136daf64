"""Threads of the core: a fork after threaded work, many Python threads at once, the same bits for every team."""

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from lacunar import _threads
from lacunar._threads import available_cpus, one_blas_thread, thread_count
from lacunar.karma import KarmaRegressorCV
from lacunar.kernels import karma_kernel

SETTINGS = {"gamma": 2, "constant": 1.0}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 37))  # enough for several threads
    X[rng.random(X.shape) < 0.4] = np.nan
    return X


@pytest.mark.parametrize("n_jobs", [2, 3, 7, 64])
@pytest.mark.parametrize("share", [0.6, 0.02])
def test_the_team_does_not_change_a_bit(X, n_jobs, share):
    X = np.where(np.random.default_rng(1).random(X.shape) < share / 0.6, X, np.nan)
    np.testing.assert_array_equal(karma_kernel(X, n_jobs=n_jobs, **SETTINGS), karma_kernel(X, **SETTINGS))


def test_python_threads_at_once_get_the_same_bits(X):
    expected = karma_kernel(X, **SETTINGS)
    together = threading.Barrier(6)

    def work(_):
        together.wait(timeout=60)
        return karma_kernel(X, n_jobs=2, **SETTINGS)

    with ThreadPoolExecutor(6) as team:
        for got in team.map(work, range(6)):
            np.testing.assert_array_equal(got, expected)


def test_one_table_is_shared_by_threads_that_build_its_column_view():
    from lacunar import Observed

    table = Observed.from_dense(np.random.default_rng(2).normal(size=(300, 20)))
    with ThreadPoolExecutor(6) as team:
        views = list(team.map(lambda _: table.columns, range(24)))
    for view in views:
        for got, first in zip(view, views[0], strict=True):
            np.testing.assert_array_equal(got, first)


def test_an_error_in_one_thread_leaves_the_others_alone(X):
    bad = X.copy()
    bad[17, 5] = np.inf
    expected = karma_kernel(X, **SETTINGS)

    def work(index):
        if index % 2:
            with pytest.raises(ValueError, match="17"):
                karma_kernel(bad, n_jobs=2, **SETTINGS)
            return expected
        return karma_kernel(X, n_jobs=2, **SETTINGS)

    with ThreadPoolExecutor(4) as team:
        for got in team.map(work, range(16)):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_goes_on_with_threads():
    # In a process of its own: pytest's has other packages' threads, about which Python 3.12 rightly warns at a fork.
    code = """
        import os, sys
        import numpy as np
        from lacunar.kernels import karma_kernel

        X = np.random.default_rng(0).normal(size=(3000, 30))
        before = karma_kernel(X, n_jobs=4)
        child = os.fork()
        if child == 0:
            os._exit(0 if np.array_equal(karma_kernel(X, n_jobs=4), before) else 1)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=120, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_thread_count_follows_n_jobs():
    cpus = available_cpus()
    assert [thread_count(n) for n in (None, 1, 5, -1, -cpus - 5)] == [1, 1, 5, cpus, 1]
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(0)


def _blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_gets_its_threads_back():
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread(), one_blas_thread():
            assert _blas_threads() == {1}
        assert _blas_threads() == {2}
        with pytest.raises(KeyError), one_blas_thread():
            raise KeyError
        assert _blas_threads() == {2}


def test_libraries_that_come_later_are_limited(monkeypatch):
    """An OpenMP of LightGBM, say, which is imported after a first fit."""
    looked_up, look_up = [], _threads.ThreadpoolController
    monkeypatch.setattr(_threads, "ThreadpoolController", lambda: looked_up.append(1) or look_up())
    _threads._pools.cache_clear()
    for _ in range(2):
        with one_blas_thread():
            pass
    assert len(looked_up) == 1
    monkeypatch.setitem(sys.modules, "a_module_that_came_later", sys)
    with one_blas_thread():
        pass
    assert len(looked_up) == 2


@pytest.mark.parametrize("n_jobs", [2, 5])
@pytest.mark.parametrize("cv", ["loo", 3])
def test_a_search_does_not_depend_on_threads_of_ours_or_of_blas(n_jobs, cv):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    X[rng.random(X.shape) < 0.3] = np.nan
    y = np.nan_to_num(X).sum(axis=1)

    def scores(n_jobs, blas):
        with threadpool_limits(blas, user_api="blas"):
            return KarmaRegressorCV(cv=cv, random_state=0, n_jobs=n_jobs).fit(X, y).cv_results_["mean_test_score"]

    np.testing.assert_array_equal(scores(n_jobs, 3), scores(None, 1))


def _in_a_process(code):
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], timeout=120, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory by address space")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="AddressSanitizer ends the process where an allocation fails")
def test_a_thread_that_cannot_start_is_done_without():
    # Room for the result and for a few stacks of 8 MiB: the tenth thread or so does not start.
    _in_a_process("""
        import resource
        import numpy as np
        from lacunar.kernels import karma_kernel

        X = np.random.default_rng(0).normal(size=(4000, 50))
        before = karma_kernel(X[:500], gamma=2)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + 300 * 2**20,) * 2)
        made = karma_kernel(X, gamma=2, n_jobs=64)
        np.testing.assert_array_equal(made[:500, :500], before)
    """)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
def test_work_of_one_task_makes_one_thread_and_little_room():
    # 0.1.0 made a workspace of 500 KiB for every thread asked for: a gibibyte here.
    _in_a_process("""
        import resource
        import numpy as np
        from lacunar.kernels import karma_kernel

        X = np.random.default_rng(0).normal(size=(20, 10))
        before = karma_kernel(X, gamma=2)
        used = int(open("/proc/self/statm").read().split()[0]) * 4096
        resource.setrlimit(resource.RLIMIT_AS, (used + 16 * 2**20,) * 2)
        for method in ("auto", "dense", "spmm", "inverted"):
            np.testing.assert_allclose(karma_kernel(X, gamma=2, n_jobs=4096, method=method), before, rtol=1e-12)
    """)
