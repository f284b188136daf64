"""Every hot loop and end-to-end fit, small and large, each with its answer checked.

    OMP_NUM_THREADS=1 pytest bench/hot/bench_hot_loops.py --benchmark-enable --benchmark-json=now.json
    python -m bench.tools.compare before.json now.json

`-k small` and `-k "gram and large"` choose. Without --benchmark-enable every case runs once, unmeasured, and is checked.
"""

import pytest

from bench.hot import CASES


@pytest.mark.parametrize("size", ["small", "large"])
@pytest.mark.parametrize("name", CASES)
def test_hot_loop(benchmark, name, size):
    run, check = CASES[name].at(size)
    check(benchmark(run))
