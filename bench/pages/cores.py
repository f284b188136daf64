"""What a second thread brings: one and two threads in turn on the same data, and the ratio of their times.

    OMP_NUM_THREADS=1 python bench/pages/cores.py [--only WORD] [--repeats N] [--quick]

Best and median of the ratios of neighbouring runs, and whether results are the same to the last bit. Other processes must leave both cores
alone: the load of the machine is printed before and after.
"""

import argparse
import os
import time
from statistics import median

import numpy as np

from lacunar import KarmaClassifier, KarmaOnlineClassifier, Observed
from lacunar.kernels import karma_kernel
from lacunar.lowrank import POPCA, SLRMRegressor


def table(n, d, observed, classes=2, seed=0):
    """Rows of rank 5 and noise with that many entries each, and labels."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.random((n, d)).argpartition(observed - 1, axis=1)[:, :observed], axis=1).astype(np.int32)
    codes, factors = rng.normal(size=(n, 5)), rng.normal(size=(d, 5))
    values = np.einsum("nk,nok->no", codes, factors[columns]) + rng.normal(size=(n, observed))
    indptr = np.arange(n + 1, dtype=np.int64) * observed
    rows = Observed(indptr, columns.ravel(), values.astype(np.float32).ravel(), (n, d))
    return rows, np.clip((codes[:, 0] + 2).astype(int) * classes // 4, 0, classes - 1)


def learned(n, d, observed, classes=2, calls=1, **options):
    rows, y = table(n, d, observed, classes)
    parts = [slice(k * n // calls, (k + 1) * n // calls) for k in range(calls)]
    batches = [(rows[part], y[part]) for part in parts]

    def run(n_jobs):
        model = KarmaOnlineClassifier(n_jobs=n_jobs, **options).fit_batches(batches, classes=np.arange(classes))
        return model.decision_function(rows[:200])

    return run


def predicted(n, d, observed):
    rows, y = table(n, d, observed)
    model = KarmaOnlineClassifier().fit_batches([(rows, y)], classes=[0, 1])
    return lambda n_jobs: model.set_params(n_jobs=n_jobs).decision_function(rows)


def ascended(n, d, observed, classes):
    rows, y = table(n, d, observed, classes)
    options = {"loss": "hinge", "solver": "primal", "tol": 1e-2, "random_state": 0}
    return lambda n_jobs: KarmaClassifier(n_jobs=n_jobs, **options).fit(rows, y).decision_function(rows[:200])


def subspace(n, d, observed, **options):
    rows, _ = table(n, d, observed)
    return lambda n_jobs: POPCA(5, n_jobs=n_jobs, **options).fit(rows).components_


def expected(n, d, observed):
    rows, y = table(n, d, observed)
    return lambda n_jobs: (
        SLRMRegressor(5, max_iter=5, tol=0, random_state=0, n_jobs=n_jobs)
        .fit(rows, y.astype(float))
        .predict(rows[:200])
    )


def gram(n, d, observed):
    rows, _ = table(n, d, observed)
    return lambda n_jobs: karma_kernel(rows, n_jobs=n_jobs)


CASES = {
    "learn 1000 columns, 100 observed": lambda n=20_000: learned(n, 1000, 100),
    "learn 1000 columns, 100 observed, batches of 1000": lambda n=20_000: learned(n, 1000, 100, calls=20),
    "learn 200 columns, 30 observed": lambda n=200_000: learned(n, 200, 30),
    "learn 200 columns, 30 observed, batches of 100": lambda n=20_000: learned(n, 200, 30, calls=200),
    "learn 300 columns, 100 observed, 10 classes": lambda n=5_000: learned(n, 300, 100, classes=10),
    "learn 1000 columns, 30 observed, 4 classes": lambda n=5_000: learned(n, 1000, 30, classes=4),
    "ascend 200 columns, 60 observed, 10 classes": lambda n=3_000: ascended(n, 200, 60, 10),
    "predict 1000 columns, 100 observed": lambda n=20_000: predicted(n, 1000, 100),
    "Gram 1000 columns, 100 observed": lambda n=3_000: gram(n, 1000, 100),
    "Gram 200 columns, 30 observed": lambda n=3_000: gram(n, 200, 30),
    "POPCA 200 columns, 30 observed, refine=0": lambda n=200_000: subspace(n, 200, 30, refine=0),
    "POPCA 1000 columns, 100 observed, refine=0": lambda n=20_000: subspace(n, 1000, 100, refine=0),
    "POPCA 200 columns, 30 observed": lambda n=100_000: subspace(n, 200, 30),
    "EM 1000 columns, 100 observed": lambda n=20_000: expected(n, 1000, 100),
    "EM 200 columns, 30 observed": lambda n=100_000: expected(n, 200, 30),
}


def timed(run, n_jobs):
    start = time.perf_counter()
    made = run(n_jobs)
    return time.perf_counter() - start, made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="400 rows, once: whether it runs")
    asked = parser.parse_args()
    print("load", os.getloadavg())
    for name, make in CASES.items():
        if asked.only not in name:
            continue
        run, ones, ratios, same = make(400) if asked.quick else make(), [], [], True
        expected = run(1)
        for _ in range(1 if asked.quick else asked.repeats):
            (one, _), (two, found) = timed(run, 1), timed(run, 2)
            ones.append(one)
            ratios.append(one / two)
            same = same and np.array_equal(found, expected)
        bits = "same bits" if same else "OTHER BITS"
        print(
            f"{name:50s} {1e3 * min(ones):8.1f} ms  best {max(ratios):.2f}  median {median(ratios):.2f}  {bits}",
            flush=True,
        )
    print("load", os.getloadavg())


if __name__ == "__main__":
    main()
