"""Peak memory of fits in one pass over files, at one and at ten times the rows: a batch and the model, whatever the file.

    OMP_NUM_THREADS=1 python bench/pages/streams.py [--rows N] [--size N] [--only WORD] [--quick] [--json FILE]

Every streaming estimator from every source: a file of `Observed`, a folder of Parquet files with wide rows, one of triplets;
pairs of ids from a folder and from such a file. Every fit runs in a process of its own, by batches of `--size` rows; what is
printed is its peak private memory (RssAnon of Linux, looked at every millisecond from outside) above that before the
fit, with all imports made and the file open. Wide files have row groups of a batch (a larger one holds up to 2 MiB a column while it is read). At ten times the rows it must be at most SLACK times as large, plus EXTRA MiB.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import million
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lacunar import Observed

SLACK, EXTRA = 1.2, 4.0
PER_FILE = 2  # batches in a file of a folder
HERE = str(Path(__file__).parent)

ROWS = {  # and what it learns from: words, numbers or nothing
    "KarmaOnlineClassifier, primal": ("KarmaOnlineClassifier(rho=1e-5)", "classes"),
    "KarmaOnlineClassifier, support": ("KarmaOnlineClassifier(rho=1e-5, budget=500)", "classes"),
    "KarmaOnlineRegressor, primal": ("KarmaOnlineRegressor(rho=1e-5)", "numbers"),
    "KarmaOnlineRegressor, support": ("KarmaOnlineRegressor(rho=1e-5, budget=500)", "numbers"),
    "POPCA": ("POPCA(5, refine=0)", None),
    "SLRMRegressor": ("SLRMOnlineRegressor(5)", "numbers"),
    "SLRMRegressor, per row": ("SLRMOnlineRegressor(5, correlation='per-column')", "numbers"),
    "PETRELS": ("PETRELS(5)", None),
    "PETRELS, shared": ("PETRELS(5, correlation='shared')", None),
    "GROUSE": ("GROUSE(5)", None),
    "write_batches": ("Writer()", None),
}
PAIRS = {  # the table names a cell once, so that ids come with its entries: only features keep the model's size
    "MatrixExponentiatedGradient, features": (
        "MatrixExponentiatedGradient(Features(SIDE), Features(SIDE[:200]), calibrate=False)",
        ("file pairs", "pairs"),
    ),
    "MatrixExponentiatedGradient, 200 + 200 ids": ("MatrixExponentiatedGradient(calibrate=False)", ("pairs",)),
}
SOURCES = {
    "file": "read_batches(f'{folder}/rows.observed', size=size, target=labels)",
    "wide": "read_batches(f'{folder}/wide', size=size, target=target)",
    "triplets": f"read_batches(f'{{folder}}/triplets', size=size, target=labels, triplets=Triplets({million.COLUMNS}, n_rows=n))",
}
PAIR_SOURCES = {
    "file pairs": "read_pair_batches(ObservedFile(f'{folder}/pairs.observed'), size=size)",
    "pairs": "read_pair_batches(f'{folder}/pairs', size=size, time='when')",
}
CHILD = """
import sys, time
import numpy as np, pyarrow.dataset, pyarrow.parquet
from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor
from lacunar.completion import Features, read_pair_batches
from lacunar.papers.completion import MatrixExponentiatedGradient
from lacunar.observed import ObservedFile, Triplets, read_batches, write_batches
from lacunar.lowrank import POPCA
from lacunar.lowrank import SLRMOnlineRegressor, SLRMRegressor
from lacunar.lowrank import GROUSE, PETRELS

folder, size, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SIDE = np.random.default_rng(1).normal(size=(25_000, 20))
target = {target!r}
class Writer:
    def fit_batches(self, batches):
        write_batches(folder + '/written.observed', batches)

labels = None if target is None else np.load(folder + '/labels.npy', mmap_mode='r')
options = dict(classes=[0, 1]) if target == 'classes' else dict()
batches = {source}
model = {model}
print('ready', flush=True)
sys.stdin.readline()
start = time.perf_counter()
model.fit_batches(batches, **options)
print(time.perf_counter() - start, flush=True)
sys.stdin.readline()
"""


def write_rows(folder, n, size):
    """The same rows as a file of `Observed`, as wide Parquet files and as triplets."""
    rows, y = million.problem(n)
    rows.save(folder / "rows.observed")
    np.save(folder / "labels.npy", y.astype(np.int64))
    for name in ("wide", "triplets"):
        (folder / name).mkdir()
    for k, start in enumerate(range(0, n, PER_FILE * size)):
        part = rows[start : start + PER_FILE * size]
        where, file = np.repeat(np.arange(len(part)), part.row_counts), f"{k:04}.parquet"
        lines = {"row": start + where, "col": part.indices, "value": part.values}
        pq.write_table(pa.table(lines), folder / "triplets" / file)
        labels = y[start : start + PER_FILE * size].astype(np.int64)
        columns = {f"c{j}": pa.array(each, from_pandas=True) for j, each in enumerate(part.to_dense().T)}
        pq.write_table(
            pa.table(columns | {"classes": labels, "numbers": labels}), folder / "wide" / file, row_group_size=size
        )


def write_pairs(folder, n, size):
    """Noisy labels of random pairs of 200 + 200 ids, in time order; and a table of n labels, 20 a row."""
    rng = np.random.default_rng(2)
    side = np.random.default_rng(1).normal(size=(200, 20))
    (folder / "pairs").mkdir()
    for k, start in enumerate(range(0, n, PER_FILE * size)):
        row, col = rng.integers(200, size=(2, min(PER_FILE * size, n - start)))
        label = np.where((side[row] * side[col]).sum(axis=1) + 2 * rng.normal(size=len(row)) > 0, 1, -1)
        when = start + np.arange(len(row))
        made = {"row": row, "col": col, "label": label, "when": when}
        pq.write_table(pa.table(made), folder / "pairs" / f"{k:04}.parquet")
    columns = np.sort(rng.random((n // 20, 200)).argsort(axis=1)[:, :20], axis=1).astype(np.int32).ravel()
    values = rng.choice([-1.0, 1.0], size=len(columns))
    Observed(np.arange(0, n + 1, 20), columns, values, (n // 20, 200)).save(folder / "pairs.observed")


def measured(folder, size, n, model, target, source):
    """Peak MiB above those before the fit, and seconds."""
    code = CHILD.replace("{target!r}", repr(target)).replace("{source}", source).replace("{model}", model)
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": HERE}
    command = [sys.executable, "-W", "ignore", "-c", code, str(folder), str(size), str(n)]
    with subprocess.Popen(command, **options) as child:
        if child.stdout.readline() != "ready\n":
            sys.exit(f"{model} did not start")
        before = peak = private(child.pid)
        child.stdin.write("go\n")
        child.stdin.flush()
        while child.poll() is None and not readable(child.stdout):
            peak = max(peak, private(child.pid))
            time.sleep(0.001)
        seconds = child.stdout.readline()
        if not seconds:
            sys.exit(f"{model} failed on {source}")
        child.communicate("end\n")
    return peak - before, float(seconds)


def private(pid):
    """MiB of memory that no file backs."""
    with open(f"/proc/{pid}/status") as lines:
        return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def readable(stream):
    import select

    return bool(select.select([stream], [], [], 0)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000, help="of the larger file; the smaller has a tenth")
    parser.add_argument("--size", type=int, default=10_000, help="rows of a batch")
    parser.add_argument("--quick", action="store_true", help="50,000 rows, batches of 1,000")
    parser.add_argument("--only", default="", help="cases whose name or source holds this")
    parser.add_argument("--json", help="file for the figures")
    options = parser.parse_args()
    many, size = (50_000, 1_000) if options.quick else (options.rows, options.size)
    cases = [(name, *case, source, how) for name, case in ROWS.items() for source, how in SOURCES.items()]
    cases += [
        (name, how, None, source, PAIR_SOURCES[source]) for name, (how, several) in PAIRS.items() for source in several
    ]
    cases = [case for case in cases if options.only in f"{case[0]} {case[3]}"]
    found, bad = [], []
    with tempfile.TemporaryDirectory() as place:
        folders = {n: Path(place) / str(n) for n in (many // 10, many)}
        for n, folder in folders.items():
            folder.mkdir()
            write_rows(folder, n, size)
            write_pairs(folder, n, size)
            print(f"{n} rows: {(folder / 'rows.observed').stat().st_size / 2**20:.0f} MiB of entries", flush=True)
        for name, model, target, source, how in cases:
            (few_mib, few_s), (many_mib, many_s) = (
                measured(f, size, n, model, target, how) for n, f in folders.items()
            )
            flat = many_mib <= SLACK * few_mib + EXTRA
            found.append(
                {
                    "fit": name,
                    "source": source,
                    "rows": [many // 10, many],
                    "mib": [few_mib, many_mib],
                    "seconds": [few_s, many_s],
                }
            )
            bad += [] if flat else [f"{name} from {source}"]
            print(
                f"{name:38s} {source:12s} {few_mib:7.1f} -> {many_mib:7.1f} MiB, {few_s:6.2f} -> {many_s:6.2f} s"
                f"{'' if flat else '  GROWS'}",
                flush=True,
            )
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    if bad:
        sys.exit(f"memory grows with the file: {', '.join(bad)}")


if __name__ == "__main__":
    main()
