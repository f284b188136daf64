"""The weight table of KARMA (gamma=2): dual coordinate ascent, wide tables, hashed tables. One thread.

    OMP_NUM_THREADS=1 python bench/pages/primal.py [svc|gap|wide|hashed|buckets ...] [--quick]

svc: time to gap 1e-3 beside SVC(kernel="precomputed") given its Gram (bar 40), objectives of table and Gram compared;
gap: sweeps to gap 1e-3 in units of one pass (bar 20); wide: 4000 columns, 100 observed, rows a second (bar 30,000) beside
what the measured bandwidth would allow if every row fetched its part of the table anew;
hashed: 100,000 columns folded to 2^24 entries, peak memory (bar 4 GiB); buckets: held-out error by number of buckets.
"""

import argparse
import resource
import time

import numpy as np
from sklearn.svm import SVC

from lacunar import Observed
from lacunar.karma.solvers import PrimalModel, solve_dual
from lacunar.kernels import KernelForm


def problem(n, d, o, seed=0):
    """Rows of rank 5, o of d observed in strata, labels of the first factor with a tenth wrong."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(d, 5)).astype(np.float32)
    edges = np.arange(o) * d // o
    columns = (edges + rng.integers(0, d // o, size=(n, o))).astype(np.int32)
    values, labels = np.empty((n, o), np.float32), np.empty(n)
    for at in range(0, n, 20_000):
        part = slice(at, at + 20_000)
        factors = rng.normal(size=(len(labels[part]), 5)).astype(np.float32)
        values[part] = np.einsum("nk,nok->no", factors, loadings[columns[part]])
        labels[part] = np.where((factors[:, 0] > 0) ^ (rng.random(len(factors)) < 0.1), 1.0, -1.0)
    return Observed(np.arange(0, n * o + 1, o), columns.ravel(), values.ravel(), (n, d)), labels


def timed(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def ascend(form, X, y, tol, dtype=np.float32, max_iter=1000):
    model = PrimalModel(form, X.shape[1], 1, loss="hinge", rho=1e-5, dtype=dtype)
    rng = np.random.default_rng(0)
    return model.ascend(X, y[:, None], np.ones(len(y)), tol=tol, max_iter=max_iter, rng=rng)


def bench_svc(quick):
    n, form = (1000 if quick else 20_000), KernelForm(2, cosine=True)
    X, y = problem(n, 200, 30)
    gram = np.asarray(form.gram(X), np.float64)
    ratios = []
    for _ in range(1 if quick else 3):
        own, result = timed(lambda: ascend(form, X, y, 1e-3))
        svc = timed(lambda: SVC(kernel="precomputed").fit(gram, y))[0]
        ratios.append(svc / own)
        assert result.gap <= 1e-3
        print(f"svc: n={n}: table {1e3 * own:.0f} ms, SVC {1e3 * svc:.0f} ms: {ratios[-1]:.1f}x (bar 40)", flush=True)
    print(f"svc: median {np.median(ratios):.1f}x", flush=True)
    fine = min(n, 3000)
    exact = solve_dual(
        np.ascontiguousarray(gram[:fine, :fine], np.float32), y[:fine], np.ones(fine), tol=1e-7, max_iter=10**7
    )
    coef = exact.coef.ravel()
    primal = coef @ gram[:fine, :fine] @ coef / 2 + np.maximum(0, 1 - y[:fine] * (gram[:fine, :fine] @ coef)).sum()
    table = ascend(form, X[:fine], y[:fine], 1e-7, np.float64)
    print(f"svc: relative difference of objectives {abs(table.primal[0] / primal - 1):.1e} (bar 1e-6)", flush=True)


def bench_gap(quick):
    n, form = (20_000 if quick else 1_000_000), KernelForm(2, cosine=True)
    X, y = problem(n, 200, 30)
    passes = []
    for _ in range(4):  # the first also pays for fresh memory, which would flatter the ascent: left out
        model = PrimalModel(form, 200, 1, loss="hinge", rho=1e-5)
        passes.append(timed(lambda model=model: model.partial_fit(X, y[:, None]))[0])
    once = np.median(passes[1:])
    seconds, result = timed(lambda: ascend(form, X, y, 1e-3))
    print(f"gap: n={n}: one pass {once:.2f} s; gap {result.gap:.1e} after {result.n_iter} sweeps, ", end="")
    print(f"{seconds:.1f} s: {seconds / once:.1f} passes (bar 20)", flush=True)


def rows_by_bandwidth(X):
    """Rows a second if each read its cache lines of the table from memory, at the bandwidth of a long sum of squares."""
    long = np.ones(2**26, np.float32)
    np.dot(long, long)
    bandwidth = long.nbytes / np.median([timed(lambda: np.dot(long, long))[0] for _ in range(5)])
    lines = np.mean([len(np.unique(X[i].indices // 16)) for i in range(200)])
    bytes_a_row = 64 * lines * (X.nnz / X.shape[0] + 1)
    print(
        f"wide: {bandwidth / 1e9:.1f} GB/s, {bytes_a_row / 1e3:.0f} KB a row: {bandwidth / bytes_a_row:.0f} rows/s row by row"
    )
    return bandwidth / bytes_a_row


def bench_wide(quick):
    n, form = (2000 if quick else 200_000), KernelForm(2, cosine=True)
    X, y = problem(n, 4000, 100)
    floor = rows_by_bandwidth(X)
    for iterate in ("last", "weighted"):
        model = PrimalModel(form, 4000, 1, loss="hinge", rho=1e-5, iterate=iterate)
        seconds = timed(lambda model=model: model.partial_fit(X, y[:, None]))[0]
        print(
            f"wide: n={n}, {iterate}: {n / seconds:.0f} rows/s (bar 30000), {n / seconds / floor:.2f} of that",
            flush=True,
        )


def bench_hashed(quick):
    n, form = (5000 if quick else 1_000_000), KernelForm(2, cosine=True)
    X, y = problem(n, 100_000, 20)
    model = PrimalModel(form, 100_000, 1, loss="hinge", rho=1e-5, hash_bits=24)
    seconds = timed(lambda: model.partial_fit(X, y[:, None]))[0]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"hashed: n={n}: {seconds:.1f} s, peak of the process {peak:.2f} GiB (bar 4)", flush=True)


def bench_buckets(quick):
    (n, held), form = (2000, 1000) if quick else (50_000, 10_000), KernelForm(2, cosine=True)
    X, y = problem(n + held, 4000, 100)
    for bits in (None, 24, 22, 20, 18, 16, 14):
        model = PrimalModel(form, 4000, 1, loss="hinge", rho=1e-5, hash_bits=bits)
        seconds = timed(lambda model=model: model.partial_fit(X[:n], y[:n, None]))[0]
        error = np.mean(np.sign(model.decide(X[n:])[:, 0]) != y[n:])
        name = "exact (2^24 entries)" if bits is None else f"2^{bits} buckets"
        print(f"buckets: {name}: held-out error {error:.4f}, {n / seconds:.0f} rows/s", flush=True)


CASES = {"buckets": bench_buckets, "hashed": bench_hashed, "svc": bench_svc, "gap": bench_gap, "wide": bench_wide}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    options = parser.parse_args()
    for name in options.cases or CASES:
        CASES[name](options.quick)


if __name__ == "__main__":
    main()
