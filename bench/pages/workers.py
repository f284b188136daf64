"""Fits over Dask worker processes beside fits on one machine: seconds, bytes between workers, and what averages cost KARMA.

    OMP_NUM_THREADS=1 python bench/pages/workers.py [--rows N] [--repeats N] [--only WORD] [--quick] [--json FILE]

The rows of `scale` (1,000 columns, 100 observed, rank 5 and noise) as files of `Observed` in 4 shards, which the workers of one machine, a
thread each, read. One machine reads the same rows from one file and fits them with one thread; `POPCA` with 20 and 40 components, so that a fit takes seconds. Medians
of interleaved runs. Seconds of processors are those of all workers, without ours and the scheduler's: where cores are shared they tell more, and what one
worker takes of them over one machine is what Dask costs. What two workers gain over one is a ratio of clocks, which needs two idle cores: the load is
printed. POPCA and SLRM over shards are asserted to be those of one machine; KARMA's held-out errors, on the rows of `million` (200 columns, 30
observed), are printed by passes and shards (--only KARMA).
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from itertools import pairwise
from pathlib import Path

import distributed
import million
import numpy as np
import scale

from lacunar import KarmaOnlineClassifier, Observed
from lacunar.distributed import fit_karma, fit_popca, fit_slrm
from lacunar.lowrank import POPCA, SLRMRegressor

SHARDS, WORKERS, STEPS = 4, (1, 2), 10
TOL = 1e-7


def cut(table, k=SHARDS):
    ends = np.linspace(0, len(table), k + 1).astype(int)
    return [table[a:b] for a, b in pairwise(ends)]


def fits(path, numbers, files):
    """Name, one machine's fit, the fit over shards, and what must be the same of both."""
    slrm = SLRMRegressor(5, random_state=0, max_iter=STEPS, tol=0.0)
    popca = {
        "table": POPCA(5, refine=0, solver="dense"),
        "refined": POPCA(20, refine=2),
        "matrix-free": POPCA(40, refine=0, solver="matrix-free", random_state=0),
    }
    yield (
        f"SLRM, {STEPS} steps",
        lambda: slrm.fit(Observed.load(path), numbers),
        lambda: fit_slrm(slrm, files, cut(numbers)),
        "feature_coef_",
    )
    for name, model in popca.items():
        yield (
            f"POPCA, {name}",
            lambda m=model: m.fit(Observed.load(path)),
            lambda m=model: fit_popca(m, files),
            "components_",
        )


def sent(client):
    """Bytes that workers have sent to each other and to us."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def busy(client):
    return sum(client.run(time.process_time).values())


def timed(fit):
    start = time.perf_counter()
    model = fit()
    return time.perf_counter() - start, model


def compare(clients, fits, repeats):
    for name, alone, over, learned in fits:
        seconds, moved, worst = {k: [] for k in (0, *WORKERS)}, {}, 0.0
        processor = {k: [] for k in (0, *WORKERS)}
        for _ in range(repeats):
            start = time.thread_time()  # not that of the schedulers, which are threads of this process
            took, model = timed(alone)
            seconds[0].append(took)
            processor[0].append(time.thread_time() - start)
            whole = getattr(model, learned).copy()
            for k, client in clients.items():
                with client.as_current():
                    before, start = sent(client), busy(client)
                    took, model = timed(over)
                    seconds[k].append(took)
                    processor[k].append(busy(client) - start)
                    moved[k] = sent(client) - before
                worst = max(worst, float(np.abs(getattr(model, learned) - whole).max() / np.abs(whole).max()))
        assert worst < TOL, (name, worst)
        median = {k: statistics.median(each) for k, each in seconds.items()}
        used = {k: statistics.median(each) for k, each in processor.items()}
        dask = statistics.median(one / alone for one, alone in zip(processor[1], processor[0], strict=True))
        gain = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
        parts = [f"{k} workers {median[k]:.2f} s ({used[k]:.2f}), {moved[k] / 2**20:.1f} MiB" for k in WORKERS]
        print(
            f"{name}: one machine {median[0]:.2f} s ({used[0]:.2f}); {'; '.join(parts)}; one worker {dask:.2f} times the processor seconds; "
            f"two workers {statistics.median(gain):.2f} times as fast as one (best {max(gain):.2f}); difference {worst:.0e}",
            flush=True,
        )
        yield name, {"seconds": seconds, "processor": processor, "bytes": moved, "difference": worst}


def written(folder, n):
    """Rows in one file, labels of half of them, and the rows in a file a shard."""
    pairs = list(scale.blocks(n))
    rows, y = Observed.vstack([X for X, _ in pairs]), np.concatenate([y for _, y in pairs])
    rng = np.random.default_rng(1)
    numbers = np.where(rng.random(n) < 0.5, y + 0.1 * rng.normal(size=n), np.nan)
    files = [folder / f"{k}.observed" for k in range(SHARDS)]
    for path, part in zip([folder / "rows.observed", *files], [rows, *cut(rows)], strict=True):
        part.save(path)
    return str(folder / "rows.observed"), numbers, [str(path) for path in files]


def averages(client, n):
    """Held-out error of KARMA by shards and passes."""
    table, labels = million.problem(n + 20_000)
    table = table.astype(np.float64)
    rows, labels, test = table[:n], labels[:n], (table[n:], labels[n:])
    model = KarmaOnlineClassifier(rho=1 / n)
    for k in (1, 4, 16):
        for rounds in (1, 2, 4):
            with client.as_current():
                took, fitted = timed(
                    lambda k=k, r=rounds: fit_karma(
                        model, cut(rows, k), cut(labels, k), classes=[False, True], rounds=r
                    )
                )
            error = float(np.mean(fitted.predict(test[0]) != test[1]))
            print(f"KARMA, {k} shards, {rounds} passes: error {error:.4f}, {took:.2f} s", flush=True)
            yield f"KARMA, {k} shards, {rounds} passes", {"error": error, "seconds": took}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="fits whose name has this word")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    n = 4000 if options.quick else options.rows
    found = {}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clusters = [
            distributed.LocalCluster(n_workers=k, threads_per_worker=1, dashboard_address=None) for k in WORKERS
        ]
        clients = {k: distributed.Client(cluster) for k, cluster in zip(WORKERS, clusters, strict=True)}
        print("load", os.getloadavg(), flush=True)
        asked = [fit for fit in fits(*written(Path(folder), n)) if options.only in fit[0]]
        found.update(compare(clients, asked, options.repeats))
        print("load", os.getloadavg(), flush=True)
        if options.only in "KARMA":
            found.update(averages(clients[WORKERS[-1]], n))
        for client, cluster in zip(clients.values(), clusters, strict=True):
            client.close()
            cluster.close()
    if options.json:
        Path(options.json).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
