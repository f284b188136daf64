"""Threads: one table read by many Python threads at once, and what n_jobs means."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lacunar._threads import available_cpus, thread_count


def test_one_table_is_shared_by_threads_that_build_its_column_view():
    from lacunar import Observed

    table = Observed.from_dense(np.random.default_rng(2).normal(size=(300, 20)))
    with ThreadPoolExecutor(6) as team:
        views = list(team.map(lambda _: table.columns, range(24)))
    for view in views:
        for got, first in zip(view, views[0], strict=True):
            np.testing.assert_array_equal(got, first)


def test_thread_count_follows_n_jobs():
    cpus = available_cpus()
    assert [thread_count(n) for n in (None, 1, 5, -1, -cpus - 5)] == [1, 1, 5, cpus, 1]
    with pytest.raises(ValueError, match="n_jobs"):
        thread_count(0)
