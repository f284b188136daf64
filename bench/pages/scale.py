"""Fits from a file that is never in memory, beside peers that can do that, too.

    OMP_NUM_THREADS=1 python bench/pages/scale.py [--rows 1000000] [--labels factor] [--only WORD] [--quick]

1,000 columns of which 100 are observed in a row, float32: a million rows are 1e8 entries. Labels by the first of five factors, or (--labels boxes,
which suits trees) by thresholds of two columns that every row has; a tenth of them wrong. Every fit has a process of its own and one thread: CPU seconds (reading included; text that LightGBM needs is written before), millions of
entries a second, accuracy on the same 20,000 rows, and the peak of memory beyond the process before the fit. SGD, XGBoost (external memory, 100
rounds) and LightGBM (two-round loading from text, 100 rounds) take what is not stored as they do: SGD as zero, the others as missing.
XGBoost and LightGBM are optional, and have 100,000 rows at most: their seconds are for those.
"""

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from lacunar import KarmaOnlineClassifier, Observed
from lacunar.lowrank import POPCA
from lacunar.observed import ObservedFile, write_batches

COLUMNS, OBSERVED, RANK, BLOCK, HELD_OUT, ROUNDS = 1_000, 100, 5, 10_000, 20_000, 100


def block(number, n=BLOCK, labels="factor"):
    """Rows and labels, the same for a number whenever it is asked for."""
    basis = np.random.default_rng(0).normal(size=(COLUMNS, RANK)).astype(np.float32)
    rng = np.random.default_rng([1, number])
    columns = np.arange(OBSERVED) * (COLUMNS // OBSERVED) + rng.integers(0, COLUMNS // OBSERVED, size=(n, OBSERVED))
    if labels == "boxes":
        columns[:, :2] = 0, COLUMNS // OBSERVED  # every row has them
    factors = rng.normal(size=(n, RANK)).astype(np.float32)
    values = np.einsum("nk,nok->no", factors, basis[columns]) + rng.normal(size=columns.shape).astype(np.float32)
    high, middle = values[:, 0] > 0.5, np.abs(values[:, 1]) < np.sqrt(1 + np.sum(basis[columns[0, 1]] ** 2)) * 0.7
    y = (factors[:, 0] > 0 if labels == "factor" else high ^ middle) ^ (rng.random(n) < 0.1)
    indptr = np.arange(0, n * OBSERVED + 1, OBSERVED)
    return Observed(indptr, columns.astype(np.int32).ravel(), values.astype(np.float32).ravel(), (n, COLUMNS)), y * 1


def blocks(rows, labels="factor"):
    return (block(number, min(BLOCK, rows - number * BLOCK), labels) for number in range(-(-rows // BLOCK)))


def csr(X):
    """With the narrow offsets that scikit-learn asks for."""
    return csr_matrix((X.values, X.indices, X.indptr.astype(np.int32)), shape=X.shape)


def karma(gamma):
    return lambda path, _: KarmaOnlineClassifier(gamma=gamma, random_state=0).fit_batches(
        ObservedFile(path), classes=[0, 1]
    )


def popca(path, _):
    return POPCA(RANK, refine=0).fit_batches(ObservedFile(path))


def sgd(path, _):
    from sklearn.linear_model import SGDClassifier

    model = SGDClassifier(random_state=0)
    for X, y in ObservedFile(path):
        model.partial_fit(csr(X), y, classes=[0, 1])
    return model


def xgboost(path, scratch):
    import xgboost as xgb

    class Blocks(xgb.DataIter):
        def __init__(self):
            super().__init__(cache_prefix=str(scratch / "xgboost"))
            self.reset()

        def reset(self):
            self.left = iter(ObservedFile(path))

        def next(self, input_data):
            for X, y in self.left:
                input_data(data=csr(X), label=y)
                return 1
            return 0

    booster = xgb.train(
        {"objective": "binary:logistic", "nthread": 1, "tree_method": "hist"},
        xgb.ExtMemQuantileDMatrix(Blocks(), nthread=1),
        ROUNDS,
    )
    return lambda X: booster.predict(xgb.DMatrix(csr(X))) > 0.5


def lightgbm(path, scratch):
    import lightgbm

    text = scratch / "rows.svm"
    options = {"two_round": True, "zero_as_missing": True, "num_threads": 1, "verbose": -1, "objective": "binary"}
    booster = lightgbm.train(options, lightgbm.Dataset(str(text), params=options), ROUNDS)
    return lambda X: booster.predict(csr(X)) > 0.5


FITS = {
    "KARMA gamma=2": karma(2),
    "KARMA gamma=1": karma(1),
    "POPCA, tables": popca,
    "SGDClassifier.partial_fit": sgd,
    "XGBoost, external memory": xgboost,
    "LightGBM, two-round": lightgbm,
}
BOOSTERS = {"XGBoost, external memory": "xgboost", "LightGBM, two-round": "lightgbm"}


def write_text(path, text):
    """As svmlight, which LightGBM reads twice."""
    with text.open("w", encoding="ascii") as file:
        for X, y in ObservedFile(path):
            for i, label in enumerate(y):
                part = slice(X.indptr[i], X.indptr[i + 1])
                cells = zip(X.indices[part].tolist(), X.values[part].tolist(), strict=True)
                file.write(f"{label} " + " ".join(f"{j}:{v:.7g}" for j, v in cells) + "\n")


def peak_memory():
    """MiB, private and shared: on Linux."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(found[1]) / 1024


def one(name, folder, rows, labels):
    """In a process of its own."""
    before = peak_memory()
    start = time.process_time()
    model = FITS[name](folder / f"{rows}.observed", folder)
    seconds = time.process_time() - start
    peak = peak_memory() - before
    said = ""
    if not name.startswith("POPCA"):
        X, y = block(10**6, HELD_OUT, labels)
        guess = model(X) if callable(model) else model.predict(X if "KARMA" in name else csr(X))
        said = f"accuracy {np.mean(guess == y):.3f}"
    entries = rows * OBSERVED
    print(
        f"{name:26s} {entries:8.0e} entries {seconds:8.2f} s {entries / seconds / 1e6:8.2f} M/s {peak:7.0f} MiB  {said}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--labels", choices=("factor", "boxes"), default="factor")
    parser.add_argument("--only", default="", help="fits whose name has this word")
    parser.add_argument("--quick", action="store_true", help="2,000 rows: shows that it runs")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = 2_000 if options.quick else options.rows
    if options.one:
        one(options.one[0], Path(options.one[1]), rows, options.labels)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in (name for name in FITS if options.only in name):
            package, n = BOOSTERS.get(name), rows
            if package:
                if importlib.util.find_spec(package) is None:
                    print(f"{name:26s} not installed")
                    continue
                n = min(rows, 100_000)
            path = folder / f"{n}.observed"
            if not path.exists():
                write_batches(path, blocks(n, options.labels))
            if package == "lightgbm":
                write_text(path, folder / "rows.svm")
            command = [
                sys.executable,
                __file__,
                "--rows",
                str(n),
                "--labels",
                options.labels,
                "--one",
                name,
                str(folder),
            ]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
