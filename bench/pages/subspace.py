"""The bars of POPCA as ratios in one run.

`pytest bench/pages/subspace.py --benchmark-enable` times the pieces and checks their answers. As a script, `OMP_NUM_THREADS=1 python
bench/pages/subspace.py [accuracy] [accumulation] [density] [fit] [stream] [memory] [imputer] [ranks] [popca] [held-back] [--quick]`:

accuracy      normalised excess of the default and of PCA after mean imputation (d = 50, k = 3, signal variance = noise variance), over n and p
accumulation  sums over pairs against SciPy's X.T @ X on the same stored entries: process CPU on one thread, wall time on four
density       scatter against products of zero-filled rows: where the rule should switch
fit           a million rows x 2,000 columns at 1 %, 8 components, against TruncatedSVD(algorithm="arpack") on the same entries
stream        1,000 batches against one fit of the closed form
imputer       LowRankImputer() on 10,000 x 50 of rank 6, 30 % missing, against IterativeImputer: CPU seconds and errors
ranks         the rank that LowRankImputer() chooses on small tables against the best in hindsight and IterativeImputer
popca         the number of components with which POPCA() imputes, on those tables and on low-rank ones of up to 200 columns, against the best in hindsight
              and POPCA(5)
held-back     LowRankImputer on tables of another seed, and both on real tables (scikit-learn's, and those of LACUNAR_DATA if it is set): no choice was made on these
memory        100,000 columns x 1,000,000 rows of 20 entries in a process limited to 24 GiB of address space
"""

import argparse
import os
import subprocess
import sys
import time
import warnings
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer

from lacunar import Observed
from lacunar.lowrank import POPCA, LowRankImputer, column_pair_sums

BARS = {(1000, 0.1): 0.08, (1000, 0.5): 0.010, (1000, 0.05): 0.50}
CELLS = [*BARS, (1000, 0.2), (1000, 0.9), (100, 0.05), (100, 0.1), (100, 0.2), (100, 0.3), (100, 0.5), (10_000, 0.05)]
SHAPES = [(50_000, 200, 0.05), (10_000, 2000, 0.05), (20_000, 20_000, 0.01)]  # rows, columns, density
QUICK = [(2000, 200, 0.05), (200, 2000, 0.05)]


def spiked(n, p, seed, d=50, k=3):
    """Rows of k equal spikes with as much variance as the noise, seen with probability p; (rows, basis)."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, k)))[0]
    X = np.sqrt(d / k) * rng.normal(size=(n, k)) @ basis.T + rng.normal(size=(n, d))
    return np.where(rng.random((n, d)) < p, X, np.nan), basis


def excess(components, basis):
    """Lost share of the variance that a random subspace would lose all of: 0 perfect, 1 useless."""
    d, k = basis.shape
    return (1 - np.sum((components @ basis) ** 2) / k) / (1 - k / d)


def mean_imputed(X, k):
    n = np.maximum(np.sum(~np.isnan(X), axis=0), 1)
    return np.linalg.svd(np.nan_to_num(X - np.nansum(X, axis=0) / n), full_matrices=False)[2][:k]


def accuracy(seeds):
    print(
        "| n | p | n p^2 | default (s.e.) | closed form | mean-impute | default - mean-impute (s.e.) | bar |\n"
        + "|---" * 8
        + "|"
    )
    for n, p in CELLS:
        made = []
        for seed in range(seeds if n <= 1000 else max(seeds // 4, 1)):
            X, basis = spiked(n, p, seed)
            models = [POPCA(3, unseen="drop", **how).fit(X).components_ for how in ({}, {"refine": 0})]
            made.append([excess(found, basis) for found in (*models, mean_imputed(X, 3))])
        ours, closed, plain = np.mean(made, axis=0)
        gap = np.diff(np.array(made)[:, [2, 0]]).ravel()
        root = np.sqrt(len(made))
        bar = f"{BARS[n, p]}: {'met' if ours <= BARS[n, p] else 'not met'}" if (n, p) in BARS else ""
        worse = gap.mean() > 2 * gap.std() / root
        print(
            f"| {n} | {p} | {n * p * p:.3g} | {ours:.4f} ({np.std(made, axis=0)[0] / root:.4f}) | {closed:.4f} | {plain:.4f} | "
            f"{gap.mean():.4f} ({gap.std() / root:.4f}){' WORSE' if worse else ''} | {bar} |",
            flush=True,
        )


def sparse(n, d, density, seed=0):
    """The same entries as CSR, which SciPy multiplies, and as Observed."""
    X = sp.random_array((n, d), density=density, format="csr", rng=np.random.default_rng(seed))
    X.sort_indices()
    return X, Observed(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, X.shape)


def taken(call, clock=time.process_time):
    start = clock()
    result = call()
    return clock() - start, result


def interleaved(repeats, *calls, clock=time.process_time):
    """Seconds (repeats, calls), after one call each that is not timed."""
    for call in calls:
        call()
    return np.array([[taken(call, clock)[0] for call in calls] for _ in range(repeats)])


def same(ours, X, rows=50):
    np.testing.assert_allclose(ours[:rows], (X[:, :rows].T @ X).toarray(), rtol=1e-9, atol=1e-9)


def accumulation(repeats, shapes):
    for n, d, density in shapes:
        X, rows = sparse(n, d, density)
        same(column_pair_sums(rows, counts=False).product, X)
        calls = [partial(column_pair_sums, rows, counts=False), lambda X=X: X.T @ X]
        if d <= 2000:
            calls.append(partial(column_pair_sums, rows, cross=True))
        seconds = interleaved(repeats, *calls)
        taken = np.median(seconds, axis=0)
        pairs = float(np.sum(rows.row_counts * (rows.row_counts + 1.0) / 2))
        teams = [partial(column_pair_sums, rows, counts=False, n_jobs=jobs) for jobs in (1, 4)]
        walls = interleaved(repeats, *teams, clock=time.perf_counter)
        print(
            f"{n} x {d} at {density}: sums {taken[0]:.3f} s ({1e9 * taken[0] / pairs:.2f} ns a pair), SciPy {taken[1]:.3f} s, ratio "
            f"{np.median(seconds[:, 1] / seconds[:, 0]):.1f} (bar 5)"
            + (f"; with counts and cross sums {taken[2]:.3f} s" if d <= 2000 else "")
            + f"; wall of 1 thread over 4 {np.median(walls[:, 0] / walls[:, 1]):.1f} (bar 3)",
            flush=True,
        )


def density_rule(repeats, sizes):
    """Both sides of the switch, S alone, as the rule takes them; the seconds cross where it should be."""
    for d, n in sizes:
        for density in (0.1, 0.2, 0.3, 0.34, 0.36, 0.5):
            X, rows = sparse(n, d, density)
            chunks = [X[a : a + 2000] for a in range(0, n, 2000)]

            def products(chunks=chunks):
                total = 0.0
                for part in chunks:
                    dense = part.toarray()
                    total = total + dense.T @ dense
                return total

            np.testing.assert_allclose(column_pair_sums(rows, counts=False).product, products(), rtol=1e-9, atol=1e-9)
            seconds = np.median(
                interleaved(repeats, lambda rows=rows: column_pair_sums(rows, counts=False), products), axis=0
            )
            print(
                f"d={d} density {density}: by the rule {seconds[0]:.3f} s, zero-filled products {seconds[1]:.3f} s",
                flush=True,
            )


def rows_of(n, d, entries, k=8, seed=0):
    """n rows of about `entries` entries each of k random directions and unit noise, made in blocks; (rows, basis)."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(d, k))
    columns, values, counts = [], [], []
    for start in range(0, n, 20_000):
        size = min(20_000, n - start)
        chosen = np.sort(rng.integers(0, d, size=(size, entries)), axis=1)
        fresh = np.ones(chosen.shape, dtype=bool)
        fresh[:, 1:] = chosen[:, 1:] != chosen[:, :-1]
        drawn = np.einsum("nk,nek->ne", rng.normal(size=(size, k)), basis[chosen]) + rng.normal(size=chosen.shape)
        columns.append(chosen[fresh].astype(np.int32))
        values.append(drawn[fresh])
        counts.append(fresh.sum(axis=1))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return Observed(indptr, np.concatenate(columns), np.concatenate(values), (n, d)), np.linalg.qr(basis)[0]


def missed(components, basis):
    return 1 - np.sum((components @ basis) ** 2) / len(components)


def fit_time(repeats, n):
    rows, basis = rows_of(n, 2000, 20)
    X = rows.to_scipy()
    models = {
        "POPCA(8, refine=0)": lambda: POPCA(8, refine=0, random_state=0).fit(rows),
        "POPCA(8)": lambda: POPCA(8, random_state=0).fit(rows),
        "TruncatedSVD": lambda: TruncatedSVD(8, algorithm="arpack").fit(X),
    }
    seconds = {name: [] for name in models}
    lost = {}
    for _ in range(repeats):
        for name, call in models.items():
            spent, model = taken(call)
            seconds[name].append(spent)
            lost[name] = missed(model.components_, basis)
    base = np.array(seconds["TruncatedSVD"])
    for name, spent in seconds.items():
        ratio = np.median(np.array(spent) / base)
        print(
            f"{name:20s} {np.median(spent):6.2f} s CPU, {ratio:.2f} of TruncatedSVD's; missed {lost[name]:.4f}",
            flush=True,
        )


def stream():
    X, _ = spiked(3000, 0.3, 0)
    whole, batches = POPCA(3, refine=0).fit(X), POPCA(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first batches are small
        for batch in np.array_split(X, 1000):
            batches.partial_fit(batch)
    gaps = [
        np.abs(getattr(whole, name) - getattr(batches, name)).max()
        for name in ("components_", "explained_variance_", "mean_")
    ]
    print(
        f"1,000 batches against one fit: components {gaps[0]:.1e}, variances {gaps[1]:.1e}, means {gaps[2]:.1e} (bar 1e-10)"
    )


def completed(X, seen, model):
    """CPU seconds, and the squared error at known entries that are hidden, in variances of what is seen."""
    spent, filled = taken(
        lambda: model.fit(seen).impute(seen) if isinstance(model, POPCA) else model.fit_transform(seen)
    )
    return spent, float(np.mean((((filled - X) / np.nanstd(seen, axis=0))[np.isnan(seen) & ~np.isnan(X)]) ** 2))


def imputers(repeats, n):
    for noise in (0.0, 0.1, 0.5):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 6)) @ rng.normal(size=(6, 50)) + noise * rng.normal(size=(n, 50))
        seen = np.where(rng.random(X.shape) < 0.3, np.nan, X)
        models = LowRankImputer(random_state=0), IterativeImputer(random_state=0)
        spent, errors = np.moveaxis([[completed(X, seen, model) for model in models] for _ in range(repeats)], 2, 0)
        seconds = np.median(spent, axis=0)
        print(
            f"{n} x 50, noise {noise}: LowRankImputer {seconds[0]:.2f} s, error {errors[0, 0]:.5f}, rank "
            f"{len(models[0].components_)}; IterativeImputer {seconds[1]:.2f} s, {errors[0, 1]:.5f}",
            flush=True,
        )


def small_tables(seed):
    """Names, complete rows and rows with missing entries: five laws, three shapes, entries missing at random, by others' values and by their own."""
    rng = np.random.default_rng(seed)
    masks = [*(("at random", share) for share in (0.1, 0.3, 0.5)), ("others", 0.3), ("own", 0.3)]
    for law, (n, d) in product(("rank 2", "rank 5", "power", "chain", "alone"), ((60, 8), (200, 14), (150, 30))):
        X = small_table(law, n, d, rng)
        for how, share in masks:
            yield f"{law}, {n} x {d}, {share} {how}", X, with_missing(X, how, share, rng)


def small_table(law, n, d, rng):
    """Complete rows (n, d) of a law."""
    mix, noise = rng.normal(size=(d, d)), rng.normal(size=(n, d))
    if law.startswith("rank"):
        k = int(law[-1])
        return rng.normal(size=(n, k)) @ mix[:k] + 0.3 * np.sqrt(k) * noise
    if law == "power":
        return noise / np.arange(1, d + 1) @ np.linalg.qr(mix)[0]
    for j in range(1, d if law == "chain" else 0):
        noise[:, j] = 0.8 * noise[:, j - 1] + 0.6 * noise[:, j]
    return noise


def with_missing(X, how, share, rng):
    """A copy with a share of each column missing: at random, by the value of the column before, or by its own."""
    by = {"at random": 0 * X, "others": np.roll(X, 1, axis=1), "own": X}[how]
    draw = by / X.std(axis=0) + 0.7 * rng.normal(size=X.shape)
    hidden = draw > np.quantile(draw, 1 - share, axis=0)
    if how == "others":
        hidden[:, ::2] = False  # whose values say what is missing
    return np.where(hidden, np.nan, X)


def ranks(seeds, every):
    print_ranks(table for seed in range(seeds) for table in [*small_tables(seed)][::every])


def print_ranks(tables):
    """A line a group of tables: names before the first comma."""
    lost = {}
    for name, X, seen in tables:
        best = min(completed(X, seen, LowRankImputer(k, random_state=0))[1] for k in ranks_up_to(*X.shape))
        ours = completed(X, seen, LowRankImputer(random_state=0))[1]
        peer = completed(X, seen, IterativeImputer(random_state=0))[1]
        lost.setdefault(name.split(",")[0], []).append((ours / best, ours / peer))
    print("| tables | n | chosen over best rank (mean, largest) | over IterativeImputer |\n|---|---|---|---|")
    for law, pairs in (*lost.items(), ("all", [pair for rows in lost.values() for pair in rows])):
        ratios = np.array(pairs)
        means = np.exp(np.log(ratios).mean(axis=0))
        print(f"| {law} | {len(pairs)} | {means[0]:.3f}, {ratios[:, 0].max():.2f} | {means[1]:.2f} |", flush=True)


def low_rank_tables(seed):
    """Names, complete rows and rows with missing entries: low rank and noise, up to 200 columns."""
    rng = np.random.default_rng(seed)
    for n, d, k, noise in ((60, 10, 3, 0.5), (100, 60, 5, 0.5), (150, 100, 3, 0.2), (500, 100, 8, 1.0), (300, 200, 5, 1.0),
                           (2000, 200, 10, 0.5), (5000, 30, 10, 1.0), (10_000, 50, 6, 0.3)):  # fmt: skip
        for share in (0.1, 0.3, 0.5, 0.7):
            X = rng.normal(size=(n, k)) @ rng.normal(size=(k, d)) + noise * np.sqrt(k) * rng.normal(size=(n, d))
            yield f"{n} x {d} of rank {k}, {share}", X, np.where(rng.random(X.shape) < share, np.nan, X)


def ranks_up_to(n, d):
    """Ranks below the numbers of rows and columns."""
    most = min(n, d) - 1
    return sorted({k for k in (1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48) if k < most} | {min(most, 64)})


def popca_errors(X, seen):
    """Of POPCA() and of what `partial_fit` makes, POPCA(5), the best number of components in hindsight, all components."""
    n, d = X.shape
    hindsight = {k: completed(X, seen, POPCA(k, random_state=0))[1] for k in ranks_up_to(n, d)}
    best, five = min(hindsight.values()), hindsight.get(5, hindsight[max(hindsight)])
    closed = {k: completed(X, seen, POPCA(k, refine=0, random_state=0))[1] for k in hindsight}
    full = completed(X, seen, POPCA(min(n, d), refine=0, random_state=0))[1]
    chosen, streamed = (completed(X, seen, POPCA(random_state=0, **how))[1] for how in ({}, {"refine": 0}))
    return chosen / best, streamed / min(closed.values()), chosen / five, chosen / full, five / best


def print_popca(tables):
    """A line a group of tables: names before the first comma."""
    print(
        "| tables | n | POPCA() over best (mean, largest) | refine=0 over its best (mean, largest) | POPCA() over POPCA(5) | over all components | POPCA(5) over best "
        "(largest) |\n" + "|---" * 7 + "|"
    )
    groups = {}
    for name, X, seen in tables:
        groups.setdefault(name.split(",")[0], []).append(popca_errors(X, seen))
    everything = [line for lines in groups.values() for line in lines]
    for name, lines in (*groups.items(), ("all", everything)):
        ratios, largest = np.array(lines), np.max(lines, axis=0)
        mean = np.exp(np.log(ratios).mean(axis=0))
        print(
            f"| {name} | {len(lines)} | {mean[0]:.3f}, {largest[0]:.2f} | {mean[1]:.3f}, {largest[1]:.2f} | {mean[2]:.2f} | {mean[3]:.2f} | "
            f"{largest[4]:.2f} |",
            flush=True,
        )


def popca(seeds, every):
    """On tables of seeds that no choice was made on."""
    for generator in (small_tables, low_rank_tables):
        print_popca(table for seed in range(100, 100 + seeds) for table in [*generator(seed)][::every])


REAL = ("airquality", "cleveland", "hepatitis", "mammographic", "wisconsin", "horses", "dermatology")


def real_tables(seed):
    """Numbers of real tables, and the same with entries hidden at random."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

    rng = np.random.default_rng(seed)
    tables = {"iris": load_iris, "wine": load_wine, "diabetes": load_diabetes, "breast cancer": load_breast_cancer}
    tables = {name: load(return_X_y=True)[0] for name, load in tables.items()}
    for name in REAL if "LACUNAR_DATA" in os.environ else ():
        with np.load(Path(os.environ["LACUNAR_DATA"]) / f"{name}.npz", allow_pickle=False) as data:
            tables[name] = np.array(data["X"], dtype=np.float64)
    for name, X in tables.items():
        X = X[:, np.nanstd(X, axis=0) > 0]
        for share in (0.1, 0.3, 0.5):
            seen = np.where(rng.random(X.shape) < share, np.nan, X)
            if np.nanstd(seen, axis=0).min() > 0:
                yield f"{name} ({X.shape[0]} x {X.shape[1]}), {share}", X, seen


def held_back(seeds, every):
    tables = [table for seed in range(seeds) for table in [*real_tables(seed)][::every]]
    print_ranks(table for seed in range(100, 100 + seeds) for table in [*small_tables(seed)][::every])
    print_ranks(tables)
    print_popca(((name, *standardised(X, seen)) for name, X, seen in tables))


def standardised(X, seen):
    """POPCA takes columns in their units; those of real tables have none in common."""
    mean, deviation = np.nanmean(seen, axis=0), np.nanstd(seen, axis=0)
    return (X - mean) / deviation, (seen - mean) / deviation


def in_memory(gib, n):
    """What `memory` runs in a process of its own."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (gib * 2**30, gib * 2**30))
    d = min(100_000, n // 10)
    rows, basis = rows_of(n, d, 20)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    for refine in (0, 10):
        start = time.perf_counter()
        spent, model = taken(lambda refine=refine: POPCA(8, refine=refine, random_state=0).fit(rows))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{n} x {d}, 20 entries a row, refine={refine}: {spent:.1f} s CPU, {time.perf_counter() - start:.1f} s wall, missed "
            f"{missed(model.components_, basis):.4f}, peak {peak:.2f} GiB (the rows' making {before:.2f})",
            flush=True,
        )


def memory(n):
    subprocess.run([sys.executable, __file__, "in-memory", "--rows", str(n)], check=True)


@pytest.mark.parametrize(("n", "d", "density"), [(20_000, 200, 0.05), (2000, 2000, 0.05), (300, 6000, 0.01)])
def test_sums(benchmark, n, d, density):
    X, rows = sparse(n, d, density)
    same(benchmark(column_pair_sums, rows, counts=False).product, X)


@pytest.mark.parametrize(
    "how", [{"refine": 0}, {}, {"refine": 0, "solver": "dense"}], ids=["closed", "default", "dense"]
)
def test_fit(benchmark, how):
    rows, basis = rows_of(20_000, 1500, 20, k=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table counts unseen pairs
        model = benchmark(POPCA(2, random_state=0, **how).fit, rows)
    assert missed(model.components_, basis) < 0.05


PARTS = {
    "accuracy": lambda o: accuracy(2 if o.quick else 60),
    "accumulation": lambda o: accumulation(o.repeats, QUICK if o.quick else SHAPES),
    "density": lambda o: density_rule(o.repeats, ((200, 2000),) if o.quick else ((200, 50_000), (2000, 3000))),
    "fit": lambda o: fit_time(o.repeats, o.rows),
    "stream": lambda o: stream(),
    "memory": lambda o: memory(o.rows),
    "imputer": lambda o: imputers(min(o.repeats, 3), min(o.rows, 10_000) if not o.quick else 500),
    "ranks": lambda o: ranks(1, 15 if o.quick else o.every),
    "popca": lambda o: popca(1, 15 if o.quick else o.every),
    "held-back": lambda o: held_back(1, 15 if o.quick else o.every),
    "in-memory": lambda o: in_memory(24, o.rows),
}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--every", type=int, default=1, help="of the tables of ranks, popca and held-back, every so many"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it runs, decides no bar")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.rows = 1, 10_000
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in options.parts or [name for name in PARTS if name != "in-memory"]:
        PARTS[part](options)
