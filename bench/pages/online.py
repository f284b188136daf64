"""Algorithm 1 online against NumPy vectorised over support rows: `OMP_NUM_THREADS=1 python bench/pages/online.py`.

Rows of a rank-5 table of 200 columns with 30 observed, labels with 10 % noise, hinge, one thread, process CPU time. Three
comparisons, each interleaved in one run, answers asserted:

* --rows rows, gamma 2 and 2.5, beside the NumPy form (dense rows, two products and a table a step): bar 40;
* --long rows, blocks of 1,024 beside one by one: in one compiled loop (block=1), which is the fair one, and on the first
  --calls rows by a call a row, which adds what Python costs. The decisions must be the same to the bit. Bar 8;
* the weight table of gamma 2 beside blocks on the same rows: bar 40, and flat in the number of rows.
"""

import argparse
import time

import numpy as np

from lacunar import Observed
from lacunar.karma.solvers import OnlineModel, PrimalModel
from lacunar.kernels import KernelForm


def stream(n, d=200, observed=30, rank=5, noise=0.1, seed=0):
    rng = np.random.default_rng(seed)
    U, w = rng.normal(size=(d, rank)), rng.normal(size=rank)
    Z = rng.normal(size=(n, rank))
    indices = np.sort(rng.random((n, d), dtype=np.float32).argpartition(observed, axis=1)[:, :observed], axis=1).astype(
        np.int32
    )
    values = np.einsum("nok,nk->no", U[indices], Z) / np.sqrt(rank) + 0.1 * rng.normal(size=(n, observed))
    y = np.sign(Z @ w)
    y[rng.random(n) < noise] *= -1
    indptr = np.arange(0, n * observed + 1, observed, dtype=np.int64)
    return Observed(indptr, indices.ravel(), values.ravel().astype(np.float32), (n, d)), y[:, None]


def numpy_form(rows, y, form, rho):
    """One step a row, every stored row in two products; eta = 1 / (rho t)."""
    n, d = rows.shape
    X, M = np.zeros((n, d), np.float32), np.zeros((n, d), np.float32)
    where = np.repeat(np.arange(n), rows.row_counts), rows.indices
    X[where], M[where] = rows.values, 1
    g = (form.table(int(rows.row_counts.max())) / form.trace).astype(np.float32)
    coef, kept, values, c = np.zeros(n, np.float32), 0, np.zeros(n), form.count_scale
    stored, masks = np.zeros((n, d), np.float32), np.zeros((n, d), np.float32)
    for t in range(n):
        if kept:
            counts = masks[:kept] @ M[t]
            # gamma 2 is a polynomial: cheaper than a table
            factor = (1 + (counts + 1) / c) / form.trace if form.gamma == 2 else g[counts.astype(np.int32)]
            values[t] = coef[:kept] @ ((stored[:kept] @ X[t] + 1) * factor) / (rho * t)
        if y[t, 0] * values[t] < 1:
            stored[kept], masks[kept], coef[kept] = X[t], M[t], y[t, 0]
            kept += 1
    return values


def model(kind, form, rho, **options):
    return kind(form, 200, 1, loss="hinge", rho=rho, iterate="last", dtype=np.float32, **options)


def timed(call):
    start = time.process_time()
    made = call()
    return time.process_time() - start, made


def beside_numpy(gamma, n, repeats):
    rows, y = stream(n)
    form, rho, ratios = KernelForm.fit(rows, gamma=gamma, constant=1.0, normalize="trace"), 1e-4, []
    for _ in range(repeats):
        theirs, plain = timed(lambda: numpy_form(rows, y, form, rho))
        ours, mine = timed(lambda: model(OnlineModel, form, rho, block=256).partial_fit(rows, y))
        ratios.append(theirs / ours)
        errors = [float((np.sign(v) != y[:, 0]).mean()) for v in (plain, mine[:, 0])]
        assert np.abs(plain - mine[:, 0]).max() < 1e-3 * np.abs(plain).max()
        print(
            f"gamma {gamma:g}, T={n}: NumPy {theirs:.3f} s, ours {1e3 * ours:.1f} ms, {ratios[-1]:.1f}x; errors {errors}"
        )
    print(f"gamma {gamma:g}: {np.median(ratios):.1f}x NumPy (bar 40)", flush=True)


def one_by_one(form, rows, y, rho, calls):
    """Seconds of blocks and of one row at a time, in one loop and by calls; the same bits."""
    blocks, by_block = timed(lambda: model(OnlineModel, form, rho, block=1024).partial_fit(rows, y))
    ones, single = timed(lambda: model(OnlineModel, form, rho, block=1).partial_fit(rows, y))
    assert (single == by_block).all()
    print(
        f"T={len(y)}: blocks {blocks:.2f} s, one by one {ones:.2f} s: {ones / blocks:.1f}x (bar 8), same bits",
        flush=True,
    )
    made = model(OnlineModel, form, rho)
    called, parts = timed(lambda: [made.partial_fit(rows[i : i + 1], y[i : i + 1]) for i in range(calls)])
    part, _ = timed(lambda: model(OnlineModel, form, rho).partial_fit(rows[:calls], y[:calls]))
    assert (np.vstack(parts) == by_block[:calls]).all()
    print(f"T={calls}: a call a row {called:.2f} s, blocks {part:.3f} s: {called / part:.1f}x, same bits", flush=True)
    return blocks, by_block


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--long", type=int, default=100_000)
    parser.add_argument("--calls", type=int, default=10_000, help="rows learned by a call each")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    options = parser.parse_args()
    if options.quick:
        options.rows, options.long, options.calls, options.repeats = 500, 2000, 200, 1
    for gamma in (2.0, 2.5):
        beside_numpy(gamma, options.rows, options.repeats)
    rows, y = stream(options.long)
    form, rho = KernelForm.fit(rows, gamma=2, constant=1.0, normalize="trace"), 1e-4
    blocks, by_block = one_by_one(form, rows, y, rho, options.calls)
    for n in (options.long // 10, options.long):
        seconds = []
        for _ in range(3):
            spent, values = timed(lambda n=n: model(PrimalModel, form, rho).partial_fit(rows[:n], y[:n]))
            seconds.append(spent)
        print(f"T={n}: table {1e3 * np.median(seconds):.1f} ms, {n / np.median(seconds) / 1e6:.2f} M rows/s")
    print(f"T={options.long}: table {blocks / np.median(seconds):.0f}x the blocks (bar 40); ", end="")
    print(f"largest difference {np.abs(values - by_block).max() / np.abs(values).max():.1e}")


if __name__ == "__main__":
    main()
