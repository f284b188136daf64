"""Where the weight table overtakes the Gram: fits of KarmaClassifier by both, and what solver="auto" would take.

    python bench/pages/solvers.py [--quick]

Rows of rank 5 with 10 % of the labels wrong; the median of three interleaved fits, and the test errors beside them.
"""

import argparse
import time

import numpy as np

from lacunar import KarmaClassifier, Observed

CASES = [  # columns, observed, gamma
    (30, 20, 2),
    (50, 35, 2),
    (200, 30, 2),
    (1000, 100, 2),
    (50, 20, 3),
]


def problem(n, d, o, seed=0):
    rng = np.random.default_rng(seed)
    columns = np.sort(np.argsort(rng.random((n, d), dtype=np.float32), axis=1)[:, :o], axis=1).astype(np.int32)
    U, Z = rng.normal(size=(d, 5)), rng.normal(size=(n, 5))
    values = np.einsum("nk,nok->no", Z, U[columns]).astype(np.float32)
    y = (Z[:, 0] > 0) ^ (rng.random(n) < 0.1)
    return Observed(np.arange(0, n * o + 1, o), columns.ravel(), values.ravel(), (n, d)), y


def compare(n, d, o, gamma, loss, repeats):
    X, y = problem(n + 2000, d, o)
    train, test = slice(0, n), slice(n, n + 2000)
    times, errors = {"gram": [], "primal": []}, {}
    for _ in range(repeats):
        for solver in times:
            model = KarmaClassifier(gamma, loss=loss, solver=solver, random_state=0)
            start = time.perf_counter()
            model.fit(X[train], y[train])
            times[solver].append(time.perf_counter() - start)
            errors[solver] = np.mean(model.predict(X[test]) != y[test])
    gram, primal = (np.median(times[solver]) for solver in ("gram", "primal"))
    assert abs(errors["gram"] - errors["primal"]) < 0.02, "both minimise one objective"
    auto = KarmaClassifier(gamma, loss=loss, random_state=0).fit(X[train], y[train]).solver_
    print(
        f"{n:6d} x {d:4d}, {o:3d} observed, gamma={gamma}, {loss:8s}: gram {gram:7.3f} s ({errors['gram']:.3f}), "
        f"primal {primal:7.3f} s ({errors['primal']:.3f}), ratio {gram / primal:6.2f}, auto: {auto}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fit each of 1000 and 3000 rows")
    quick = parser.parse_args().quick
    for d, o, gamma in CASES:
        for n in (1000, 3000) if quick else (1000, 3000, 6000):
            for loss in ("squared", "hinge"):
                compare(n, d, o, gamma, loss, 1 if quick else 3)


if __name__ == "__main__":
    main()
