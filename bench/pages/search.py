"""What the search over kernels costs: `KarmaClassifierCV` beside one default fit and gradient boosting.

    OMP_NUM_THREADS=1 python bench/pages/search.py [--repeats N] [--rows 1000000] [--quick]

Nonlinear low-rank tables of 30 columns with 30 % missing, 1,000 to 5,000 rows and 5,000 held out; then `--rows` rows of 200 columns with
30 observed, as in million.py. CPU seconds of one thread, medians over tables of other seeds that take turns over the learners, and the mean error.
"""

import argparse
import statistics
import time

import numpy as np
from million import HELD_OUT, problem
from sklearn.ensemble import HistGradientBoostingClassifier

from lacunar import KarmaClassifier, KarmaClassifierCV

COLUMNS, RANK, MISSING, FRESH = 30, 5, 0.3, 5_000
LEARNERS = {
    "default fit": lambda: KarmaClassifier(loss="squared", random_state=0),
    "search": lambda: KarmaClassifierCV(random_state=0),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def nonlinear(n, seed):
    """Rows of rank 5 with noise, labels by the sign of a product and a square of the factors."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n, RANK))
    X = factors @ rng.normal(size=(RANK, COLUMNS)) + 0.1 * rng.normal(size=(n, COLUMNS))
    y = factors[:, 0] * factors[:, 1] + 0.5 * factors[:, 2] ** 2 > 0.5
    X[rng.random(X.shape) < MISSING] = np.nan
    return X, y


def timed(make, X, y, fresh, labels):
    start = time.process_time()
    model = make().fit(X, y)
    return time.process_time() - start, float(np.mean(model.predict(fresh) != labels))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the large table; 0 leaves it out")
    parser.add_argument("--quick", action="store_true", help="small tables: shows that it runs")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.rows = 1, 15_000
    for n in (200,) if options.quick else (1_000, 2_000, 5_000):
        found = {name: [] for name in LEARNERS}
        for seed in range(options.repeats):
            X, y = nonlinear(n + FRESH, seed)
            for name, make in LEARNERS.items():
                found[name].append(timed(make, X[:n], y[:n], X[n:], y[n:]))
        for name, runs in found.items():
            seconds, errors = zip(*runs, strict=True)
            print(
                f"{n:8d} rows  {name:24s} {statistics.median(seconds):8.2f} s  error {np.mean(errors):.4f}", flush=True
            )
    if options.rows:
        X, y = problem(options.rows + HELD_OUT)
        n = options.rows
        for name in ("default fit", "search"):
            seconds, error = timed(LEARNERS[name], X[:n], y[:n], X[n:], y[n:])
            print(f"{n:8d} rows  {name:24s} {seconds:8.2f} s  error {error:.4f}", flush=True)


if __name__ == "__main__":
    main()
