"""Algorithm 1 online against NumPy vectorised over support rows: `OMP_NUM_THREADS=1 python bench/bench_online.py`.

Rows of a rank-5 table of 200 columns with 30 observed, labels with 10 % noise, gamma=2, hinge. Interleaves the NumPy form (dense
rows, two products a step) with ours at T rows, then blocks of 1,024 with one by one at --ones rows, whose decisions must
be the same to the bit, and prints ratios of process CPU time and the progressive errors of both.
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
    coef, kept, values, c = np.zeros(n, np.float32), 0, np.zeros(n), form.count_scale
    stored, masks = np.zeros((n, d), np.float32), np.zeros((n, d), np.float32)
    for t in range(n):
        if kept:
            counts = masks[:kept] @ M[t] + 1
            kernel = (stored[:kept] @ X[t] + 1) * (1 + counts / c) / form.trace
            values[t] = coef[:kept] @ kernel / (rho * t)
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--long", type=int, default=100_000)
    parser.add_argument("--ones", type=int, help="rows taken one by one; a fifth of --long by default")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rows, y = stream(options.rows)
    form = KernelForm.fit(rows, gamma=2, constant=1.0, normalize="trace")
    rho, ratios = 1e-4, []
    for _ in range(options.repeats):
        theirs, plain = timed(lambda: numpy_form(rows, y, form, rho))
        ours, mine = timed(lambda: model(OnlineModel, form, rho, block=256).partial_fit(rows, y))
        ratios.append(theirs / ours)
        errors = [(np.sign(v) != y[:, 0]).mean() for v in (plain, mine[:, 0])]
        print(
            f"T={options.rows}: NumPy {theirs:.2f} s, ours {ours:.3f} s, {ratios[-1]:.1f}x; progressive errors {errors}"
        )
        assert np.abs(plain - mine[:, 0]).max() < 1e-3 * np.abs(plain).max()
    print(f"over NumPy: {np.median(ratios):.1f}x")
    rows, y = stream(options.long)
    table, values = timed(lambda: model(PrimalModel, form, rho).partial_fit(rows, y))
    blocks, by_block = timed(lambda: model(OnlineModel, form, rho, block=1024).partial_fit(rows, y))
    print(f"T={options.long}: blocks of 1024 {blocks:.2f} s, table {table:.3f} s, {blocks / table:.0f}x")
    print(f"largest difference of table and support rows: {np.abs(values - by_block).max() / np.abs(values).max():.1e}")
    few = options.long // 5 if options.ones is None else options.ones
    rows, y = rows[:few], y[:few]
    ones, one_by_one = timed(lambda: model(OnlineModel, form, rho, block=1).partial_fit(rows, y))
    part, again = timed(lambda: model(OnlineModel, form, rho).partial_fit(rows, y))
    assert (again == one_by_one).all()
    print(f"T={few}: one by one {ones:.1f} s, blocks of 1024 {part:.2f} s, {ones / part:.1f}x, same bits")


if __name__ == "__main__":
    main()
