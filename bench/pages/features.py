"""`KarmaFeatures` with a linear model beside `KarmaClassifier`: time, width, what is missed, held-out error.

    OMP_NUM_THREADS=1 python bench/pages/features.py [--rows N] [--quick]

100 columns, 20 observed, rank 5, 10 % of the labels wrong; 20,000 rows held out. The linear model is LinearSVC (hinge's square,
the same objective as `KarmaClassifier(loss="squared_hinge")`), one thread, one fit each.
"""

import argparse
import time

import million
import numpy as np
from sklearn.svm import LinearSVC

from lacunar import KarmaClassifier
from lacunar.karma import KarmaFeatures
from lacunar.kernels import karma_kernel

HELD_OUT = 20_000
CASES = [
    ("exact, gamma 1", {"gamma": 1, "method": "exact"}),
    ("exact, gamma 2", {"gamma": 2, "method": "exact"}),
    *((f"Nystroem, gamma {g}, {m}", {"gamma": g, "method": "nystroem", "n_components": m}) for g in (2, 3) for m in (100, 300, 1000)),
]  # fmt: skip


def check_exact():
    """Inner products of exact features are the kernel's values."""
    X, _ = million.problem(200, seed=1)
    made = KarmaFeatures(standardize=False, constant=False).fit(X).transform(X)
    np.testing.assert_allclose((made @ made.T).toarray(), karma_kernel(X, normalize="trace"), atol=1e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--quick", action="store_true", help="5,000 rows")
    options = parser.parse_args()
    n = 5_000 if options.quick else options.rows
    million.COLUMNS, million.OBSERVED = 100, 20
    check_exact()
    X, y = million.problem(n + HELD_OUT)
    train, test, y_train, y_test = X[:n], X[n:], y[:n], y[n:]
    C = 100 / n
    for gamma in (1, 2, 3):
        start = time.perf_counter()
        model = KarmaClassifier(gamma, loss="squared_hinge", solver="primal", C=C).fit(train, y_train)
        seconds, error = time.perf_counter() - start, np.mean(model.predict(test) != y_test)
        print(f"KarmaClassifier, gamma {gamma}: {seconds:26.2f} s in all, held-out error {error:.4f}", flush=True)
    for name, parameters in CASES:
        start = time.perf_counter()
        features = KarmaFeatures(random_state=0, memory_limit=2**33, **parameters).fit(train)
        made = features.transform(train)
        middle = time.perf_counter()
        linear = LinearSVC(loss="squared_hinge", C=C, fit_intercept=False, tol=1e-3).fit(made, y_train)
        end = time.perf_counter()
        error = np.mean(linear.predict(features.transform(test)) != y_test)
        print(
            f"{name:24s} {made.shape[1]:6d} wide, misses {features.approximation_error_:.3f}: features {middle - start:6.2f} s, "
            f"LinearSVC {end - middle:6.2f} s, held-out error {error:.4f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
