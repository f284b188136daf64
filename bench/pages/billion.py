"""Fits of a table that memory does not hold: a file of rows, read block by block.

    OMP_NUM_THREADS=1 python bench/pages/billion.py [--rows N] [--columns D] [--observed O] [--precision P] [--only WORDS] [--file PATH] [--done FILE] [--quick]

Makes rows of rank 4 plus noise, with labels, in a file (10,000,000 x 1,000 with 100 observed by default: a billion entries), then fits
each model in a process of its own: KARMA of gamma 1 and 2, the closed form of POPCA from its tables, and steps of EM, with a step in memory
beside it where the table is small enough. Seconds are of the clock and of the processor, opening included; memory is the peak of what no file
backs (RssAnon of Linux, looked at every millisecond from outside) above that before the file was opened. With --file the table stays, and
with --done a run that was broken off goes on with the case after the last one finished.
"""

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from streams import private

from lacunar import Observed
from lacunar.observed import write_batches

RANK, NOISE, SEED, BATCH = 4, 0.5, 0, 20_000
SMALL = 2 * 10**8  # entries that are also fitted in memory

CODE = """
import sys, time
import numpy as np
from lacunar import KarmaOnlineClassifier
from lacunar.lowrank import POPCA, SLRMRegressor
from lacunar.observed import Observed, ObservedFile
path = sys.argv[1]
def em(rows, y, steps):
    return SLRMRegressor(5, max_iter=steps, tol=0, random_state=0).fit(rows, y)
print("ready", flush=True)
sys.stdin.readline()
start = time.perf_counter()
{prepare}
opened, own = time.perf_counter(), time.process_time()
{fit}
done = time.perf_counter()
print(opened - start, done - opened, time.process_time() - own, {said}, sep="|", flush=True)
sys.stdin.readline()
"""
ACCURACY = "f'accuracy {np.mean(model.predict(rows) == y):.4f}' if [rows := next(f.batches()), y := rows[1], rows := rows[0]] else ''"
OPEN = "f = ObservedFile(path)"
CASES = {  # name: what comes first, what is measured, what is said of it
    "opening": (OPEN, "pass", "repr(f)"),
    "reading alone": (OPEN, "n = sum(rows.nnz for rows, _ in f)", "f'{n} entries'"),
    "the same, checksums known": (OPEN + "\nfor _ in f: pass", "n = sum(rows.nnz for rows, _ in f)", "f'{n} entries'"),
    "KARMA gamma=1": (OPEN, "model = KarmaOnlineClassifier(1, rho=1e-5).fit_batches(f, classes=[0, 1])", ACCURACY),
    "KARMA gamma=2": (OPEN, "model = KarmaOnlineClassifier(2, rho=1e-5).fit_batches(f, classes=[0, 1])", ACCURACY),
    "POPCA closed": (
        OPEN,
        "model = POPCA(5, refine=0, solver='dense').fit(f)",
        "model.explained_variance_.round(3)",
    ),
    "EM, 1 step": (OPEN, "em(f, None, 1)", "'all passes'"),
    "EM, 3 steps": (OPEN, "em(f, None, 3)", "'the difference to one, halved, is a step'"),
}
IN_MEMORY = {
    "EM, 1 step, in memory": (
        OPEN + "\nX, y = f.read(), f.labels()",
        "em(X, y, 1)",
        "f'data {(X.indices.nbytes + X.values.nbytes) >> 20} MiB'",
    ),
    "EM, 3 steps, in memory": (OPEN + "\nX, y = f.read(), f.labels()", "em(X, y, 3)", "''"),
    "POPCA default, in memory": (OPEN + "\nX = f.read()", "POPCA(5, random_state=0).fit(X)", "''"),
    "POPCA default, file": (OPEN, "POPCA(5, random_state=0).fit(f)", "''"),
}


def batches(n, d, observed, seed=SEED):
    """Rows with every cell observed by itself, and labels by the first factor, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(RANK, d)).astype(np.float32)
    for start in range(0, n, BATCH):
        size = min(BATCH, n - start)
        share = observed / d
        gaps = rng.geometric(share, int(size * observed + 6 * np.sqrt(size * observed) + 10))
        cells = np.cumsum(gaps) - 1
        cells = cells[: np.searchsorted(cells, size * d)]
        row = cells // d
        column = (cells - row * d).astype(np.int32)
        factors = rng.standard_normal((size, RANK), dtype=np.float32)
        values = NOISE * rng.standard_normal(len(cells), dtype=np.float32)
        for k in range(RANK):
            values += factors[:, k][row] * basis[k][column]
        indptr = np.searchsorted(cells, np.arange(size + 1) * d)
        yield (
            Observed(indptr, column, values, (size, d)),
            ((factors[:, 0] > 0) ^ (rng.random(size) < 0.1)).astype(np.int8),
        )


def measured(path, prepare, fit, said):
    """Seconds to open, to fit, of the processor; peak MiB above those before; what the process said."""
    command = [sys.executable, "-W", "ignore", "-c", CODE.format(prepare=prepare, fit=fit, said=said), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        if child.stdout.readline() != "ready\n":
            sys.exit(f"did not start: {fit}")
        before = peak = private(child.pid)
        child.stdin.write("go\n")
        child.stdin.flush()
        while child.poll() is None and not select.select([child.stdout], [], [], 0)[0]:
            peak = max(peak, private(child.pid))
            time.sleep(0.001)
        line = child.stdout.readline()
        if not line:
            sys.exit(f"failed: {fit}")
        child.communicate("end\n")
    opened, seconds, processor, what = line.rstrip("\n").split("|", 3)
    return float(opened), float(seconds), float(processor), peak - before, what


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--observed", type=float, default=100, help="columns of a row, on average")
    parser.add_argument("--precision", default="float16", choices=["lossless", "float16", "int8"])
    parser.add_argument("--only", default="", help="cases whose name holds one of these, separated by semicolons")
    parser.add_argument("--done", type=Path, help="lines of finished cases; those in it are not run again")
    parser.add_argument("--file", type=Path, help="where the table is kept; made if it is not there")
    parser.add_argument("--quick", action="store_true", help="2,000 x 100: shows that it runs, decides no bar")
    options = parser.parse_args()
    n, d, observed = (2_000, 100, 20) if options.quick else (options.rows, options.columns, options.observed)
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "rows.observed"
        if not path.exists():
            start = time.perf_counter()
            file = write_batches(path, batches(n, d, observed), precision=options.precision)
            each = os.path.getsize(path) / max(file.nnz, 1)
            print(
                f"{file!r} made in {time.perf_counter() - start:.0f} s, {each:.3f} bytes an entry, error {file.error:.1e}",
                flush=True,
            )
        cases = CASES | (IN_MEMORY if n * observed <= SMALL else {})
        print(f"{'':28s} {'open s':>7s} {'fit s':>8s} {'cpu s':>8s} {'MiB':>7s}")
        done = options.done.read_text().splitlines() if options.done and options.done.exists() else []
        for name, case in cases.items():
            line = next((each for each in done if each.startswith(f"{name:28s}")), None)
            if line is None and any(word in name for word in options.only.split(";")):
                opened, seconds, processor, mib, what = measured(path, *case)
                line = f"{name:28s} {opened:7.2f} {seconds:8.2f} {processor:8.2f} {mib:7.0f}  {what}"
                if options.done:
                    options.done.open("a").write(line + "\n")
            if line is not None:
                print(line, flush=True)


if __name__ == "__main__":
    main()
