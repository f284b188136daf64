"""One pass of KARMA over a million rows with holes, beside gradient boosting and SGD on imputed rows.

    python bench/pages/million.py [--rows N] [--quick]

200 columns, 30 observed, rank 5, 10 % of the labels wrong; 20,000 rows held out. Every learner gets one thread (set
OMP_NUM_THREADS=1) and its input as it takes it: Observed here, a dense array with NaN there (its making is not timed).
Dense float32 rows take 800 bytes each. The fastest of three fits of KARMA, one of the others.
"""

import argparse
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline

from lacunar import KarmaOnlineClassifier, Observed

COLUMNS, OBSERVED, HELD_OUT, RHO = 200, 30, 20_000, 1e-5


def problem(n, seed=0):
    """Rows of rank 5, in blocks; labels by the first factor, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(COLUMNS, 5)).astype(np.float32)
    columns, values, labels = [], [], []
    for start in range(0, n, 50_000):
        size = min(50_000, n - start)
        chosen = np.sort(rng.random((size, COLUMNS), dtype=np.float32).argsort(axis=1)[:, :OBSERVED], axis=1)
        factors = rng.normal(size=(size, 5)).astype(np.float32)
        columns.append(chosen.astype(np.int32))
        values.append(np.einsum("nk,nok->no", factors, loadings[chosen]))
        labels.append((factors[:, 0] > 0) ^ (rng.random(size) < 0.1))
    shape = (n, COLUMNS)
    table = Observed(
        np.arange(0, n * OBSERVED + 1, OBSERVED), np.vstack(columns).ravel(), np.vstack(values).ravel(), shape
    )
    return table, np.concatenate(labels)


def timed(model, train, y, test, y_test, repeats=1):
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        model.fit(train, y)
        seconds.append(time.perf_counter() - start)
    return min(seconds), float(np.mean(model.predict(test) != y_test))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="10,000 rows: shows that it runs, decides no bar")
    options = parser.parse_args()
    n = 10_000 if options.quick else options.rows
    X, y = problem(n + HELD_OUT)
    train, test = X[:n], X[n:]
    model = KarmaOnlineClassifier(rho=RHO, random_state=0)
    own, own_error = timed(model, train, y[:n], test, y[n:], repeats=3)
    print(f"{n} rows: KARMA, one pass {own:8.2f} s, error {own_error:.4f}", flush=True)
    dense, dense_test = train.to_dense(), test.to_dense()
    peers = {
        "mean + SGD (averaged)": make_pipeline(SimpleImputer(), SGDClassifier(average=True, random_state=0)),
        "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
    }
    for (name, peer), bar in zip(peers.items(), (10, 20), strict=True):
        seconds, error = timed(peer, dense, y[:n], dense_test, y[n:])
        won = seconds >= bar * own and own_error <= error
        print(
            f"{name:22s} {seconds:8.2f} s, error {error:.4f}: {seconds / own:6.1f} times the time "
            f"(bar {bar}, error not above: {'met' if won else 'not met'})",
            flush=True,
        )


if __name__ == "__main__":
    main()
