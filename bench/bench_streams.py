"""Peak memory of one-pass fits from a file, at one and at ten times the rows: a batch and the model, whatever the file.

    python bench/bench_streams.py [--rows N] [--quick]

Every fit runs in a process of its own, from an `Observed` file mapped into memory, by batches of 10,000 rows; what is printed is
its peak private memory (Linux: VmHWM less file pages, RssFile) above that of the same process before the fit.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import bench_million
import numpy as np

BATCH = 10_000
FITS = {
    "KarmaClassifier, primal": "KarmaClassifier(loss='hinge', solver='primal', rho=1 / len(y)).fit_batches(batches, classes=[0, 1])",
    "KarmaClassifier, online": "KarmaClassifier(loss='hinge', solver='online', rho=1 / len(y), max_support=500)"
    ".fit_batches(batches, classes=[0, 1])",
    "POPCA": "each(POPCA(5, refine=0), batches)",
    "SLRMRegressor": "each(SLRMRegressor(5, solver='stochastic'), batches)",
}
CHILD = """
import sys, threading, time
import numpy as np
from lacunar import KarmaClassifier
from lacunar.observed import Observed, read_batches
from lacunar.subspace import POPCA
from lacunar.regression import SLRMRegressor

def private():
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(status["RssAnon"].split()[0]) / 1024

def each(model, batches):
    for X, y in batches:
        model.partial_fit(X, y)
    return model

rows, y = Observed.load(sys.argv[1], mmap=True), np.load(sys.argv[2], mmap_mode="r")
size = int(sys.argv[3])
batches = read_batches(rows, size=size, target=y)
before, peak, done = private(), [0.0], threading.Event()
def watch():
    while not done.is_set():
        peak[0] = max(peak[0], private())
        time.sleep(0.002)
watcher = threading.Thread(target=watch)
watcher.start()
start = time.perf_counter()
model = {fit}
seconds = time.perf_counter() - start
done.set(); watcher.join()
print(peak[0] - before, seconds)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="100,000 rows")
    options = parser.parse_args()
    many = 100_000 if options.quick else options.rows
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for n in (many // 10, many):
            X, y = bench_million.problem(n)
            files.append((n, Path(folder) / f"{n}.observed", Path(folder) / f"{n}.npy"))
            X.save(files[-1][1])
            np.save(files[-1][2], y.astype(np.int64))
            print(f"{n} rows: {files[-1][1].stat().st_size / 2**20:.0f} MiB", flush=True)
            del X
        for name, fit in FITS.items():
            found = []
            for n, table, labels in files:
                code = CHILD.replace("{fit}", fit)
                made = subprocess.run(
                    [sys.executable, "-c", code, str(table), str(labels), str(BATCH)],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                if made.returncode:
                    sys.exit(f"{name}: {made.stderr[-800:]}")
                peak, seconds = map(float, made.stdout.split())
                found.append(f"{n} rows: {peak:6.1f} MiB above, {seconds:6.2f} s")
            print(f"{name:26s} " + "; ".join(found), flush=True)


if __name__ == "__main__":
    main()
