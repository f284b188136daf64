"""The KARMA Gram against what NumPy and SciPy can do, one thread.

`pytest bench/pages/kernels.py --benchmark-enable` times our kernel and checks its answer. As a script,
`python bench/pages/kernels.py --repeats 5`, it interleaves ours with the peer in one process and prints medians, their
ratio and the distance to the floor. gamma=2, float32, raw counts. The peers are written for that case by hand:
two GEMMs and (N + 1) * S in place, or two sparse products and the same.
"""

import argparse
import statistics
import time
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from lacunar import Observed
from lacunar.kernels import karma_kernel


def dense_table(n, d, share, seed=0):
    """Normal values, each observed with probability `share`; NaN elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[rng.random((n, d)) > share] = np.nan
    return X


def movielens_like(n=6040, d=3952, per_row=179, seed=0):
    """Ratings 1 to 5 with column popularity falling as a power law, the sizes of MovieLens-1M."""
    rng = np.random.default_rng(seed)
    weight = np.arange(5, d + 5) ** -0.7
    seen = rng.random((n, d)) < np.minimum(weight / weight.sum() * per_row, 0.65)
    return sp.csr_array(np.where(seen, rng.integers(1, 6, size=(n, d)), 0).astype(np.float32))


def uniform_sparse(n=20_000, d=2_500, share=0.002, seed=0):
    """Uniformly scattered entries."""
    return sp.random_array((n, d), density=share, format="csr", dtype=np.float32, rng=np.random.default_rng(seed))


class TwoGemms:
    """S = Z Z^T, N = M M^T, S *= N + 1, in arrays made once."""

    def __init__(self, X):
        self.values, self.mask = np.nan_to_num(X), (~np.isnan(X)).astype(np.float32)
        self.sums, self.counts = (np.zeros((len(X), len(X)), np.float32) for _ in range(2))

    def __call__(self):
        np.matmul(self.values, self.values.T, out=self.sums)
        np.matmul(self.mask, self.mask.T, out=self.counts)
        self.counts += 1
        self.sums *= self.counts
        return self.sums


class TwoSparseProducts:
    """The same with SciPy's sparse products, both of one pattern; the result is dense, as ours."""

    def __init__(self, X):
        self.values, self.mask = X, X.copy()
        self.mask.data[:] = 1

    def __call__(self):
        sums = (self.values @ self.values.T).toarray()
        counts = (self.mask @ self.mask.T).toarray()
        counts += 1
        sums *= counts
        return sums


CASES = {
    "20000x50, 70 %": (partial(dense_table, 20_000, 50, 0.7), TwoGemms),
    "5000x1000, 50 %": (partial(dense_table, 5_000, 1_000, 0.5), TwoGemms),
    "6040x3952, power law": (movielens_like, TwoSparseProducts),
    "20000x2500, 0.2 %": (uniform_sparse, TwoSparseProducts),
}


QUICK = {
    "800x50, 70 %": (partial(dense_table, 800, 50, 0.7), TwoGemms),
    "604x395, power law": (partial(movielens_like, 604, 395, 18), TwoSparseProducts),
}


def observed(X):
    return Observed.from_scipy(X) if sp.issparse(X) else Observed.from_dense(X)


@pytest.mark.parametrize("gamma", [2, 2.5])
@pytest.mark.parametrize("method", ["dense", "spmm", "inverted"])
@pytest.mark.parametrize("share", [0.7, 0.05])
def test_gram(benchmark, method, share, gamma):
    X = dense_table(2_000, 200, share)
    gram = benchmark(karma_kernel, observed(X), gamma=gamma, count_scale="raw", method=method)
    some = slice(0, 50)
    counts = (~np.isnan(X[some])).astype(float) @ (~np.isnan(X)).T
    series = np.where(counts == 1, gamma, (counts**gamma - 1) / np.where(counts == 1, 1, counts - 1))
    expected = (np.nan_to_num(X[some]).astype(float) @ np.nan_to_num(X).T) * series
    np.testing.assert_allclose(gram[some], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())


def timed(call):
    start = time.perf_counter()
    result = call()
    return 1e3 * (time.perf_counter() - start), result


def write_floor(out):
    """Milliseconds to fill the result once from one core: no Gram of this size can be faster on this machine."""
    return statistics.median(timed(partial(out.fill, 1.0))[0] for _ in range(3))


def compare(name, repeats, method):
    make, peer_of = (CASES | QUICK)[name]
    X = make()
    table, peer = observed(X), peer_of(X)
    ours = partial(karma_kernel, table, count_scale="raw", method=method)
    gram = ours()
    np.testing.assert_allclose(gram[:50], peer()[:50], rtol=1e-4, atol=1e-3 * float(np.abs(gram[:50]).max()))
    pairs = [(timed(ours)[0], timed(peer)[0]) for _ in range(repeats)]
    mine, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    floor = write_floor(gram)
    print(
        f"{name:22s} ours {mine:8.0f} ms  {peer_of.__name__:18s} {theirs:8.0f} ms  ratio {ratio:5.1f}  writing alone {floor:5.0f} ms"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--case", choices=list(CASES), action="append")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    arguments = parser.parse_args()
    with threadpool_limits(1):
        for case in QUICK if arguments.quick else arguments.case or CASES:
            compare(case, 1 if arguments.quick else arguments.repeats, arguments.method)
