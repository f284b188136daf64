"""n_jobs -> number of threads: the only Python module that asks how many processors there are, and that tells BLAS."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from numbers import Integral
from typing import Any

from threadpoolctl import ThreadpoolController

MOST_THREADS = 2**15  # more than any machine has processors for


def available_cpus() -> int:
    """Processors this process may use (its affinity mask, not the machine's count)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count(n_jobs: int | None) -> int:
    """Threads meant by scikit-learn's `n_jobs`: None is 1, -1 all processors of this process, -2 all but one."""
    if n_jobs is None:
        return 1
    wish = "n_jobs must be None, a positive number of threads or negative to count from the processors"
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"{wish}, a whole number; got {n_jobs!r}. Pass n_jobs=-1 for all of them.")
    number = int(n_jobs)
    if number == 0 or abs(number) > MOST_THREADS:
        raise ValueError(f"{wish}, of at most {MOST_THREADS} threads; got {number}. Pass n_jobs=-1 for all of them.")
    return number if number > 0 else max(available_cpus() + 1 + number, 1)


@lru_cache(maxsize=2)
def _pools(api: str, n_modules: int) -> Any:
    return ThreadpoolController().select(user_api=api)


def _one_thread(api: str) -> Any:
    """A context with the libraries of this process on one thread; those that came with a module since are looked up anew."""
    return _pools(api, len(sys.modules)).limit(limits=1)


def one_blas_thread() -> Any:
    """A context with BLAS on one thread: bits that do not depend on the machine, and threads of ours side by side.

    On a busy machine, or in a container with fewer processors than it sees, threads of BLAS wait for one another actively: a
    matrix of 455 x 455 then takes two hundred times as long to decompose as on one thread. Threads of ours enter it each for
    itself, for a BLAS whose setting is one of the thread.
    """
    return _one_thread("blas")


def one_openmp_thread() -> Any:
    """A context with OpenMP on one thread: sums of gradient boosting then do not depend on the machine."""
    return _one_thread("openmp")
