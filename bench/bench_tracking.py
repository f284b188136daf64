"""Trackers on a stream whose subspace changes at once: `python bench/bench_tracking.py`.

Rows of a d-dimensional subspace of 200 columns, each entry seen with probability p; after 1,500 rows the subspace is another.
Prints |(I - P) U|^2 / d after 300 and 1,500 rows and 100, 300 and 1,500 rows after the change, geometric means over streams, for
fixed forgetting, the adaptive window and GROUSE; then the worst ratio of the adaptive window to the best fixed one.
"""

import argparse

import numpy as np

from lacunar.lowrank import GROUSE, PETRELS

SETTINGS = [(5, 0.3, 1e-3), (5, 0.3, 0.05), (5, 0.1, 0.05), (10, 0.15, 0.01)]
MARKS = [300, 1500, 1600, 1800, 3000]
TRACKERS = {
    "PETRELS 1": lambda d: PETRELS(d, forget=1.0, init="random", random_state=0),
    "PETRELS .995": lambda d: PETRELS(d, forget=0.995, init="random", random_state=0),
    "PETRELS .98": lambda d: PETRELS(d, forget=0.98, init="random", random_state=0),
    "PETRELS .95": lambda d: PETRELS(d, forget=0.95, init="random", random_state=0),
    "PETRELS adaptive": lambda d: PETRELS(d, forget="auto", init="random", random_state=0),
    "shared adaptive": lambda d: PETRELS(d, forget="auto", correlation="shared", init="random", random_state=0),
    "GROUSE greedy": lambda d: GROUSE(d, init="random", random_state=0),
    "GROUSE damped .2": lambda d: GROUSE(d, damping=0.2, init="random", random_state=0),
}


def stream(d, p, noise, seed, D=200, half=1500):
    rng = np.random.default_rng(seed)
    parts, bases = [], []
    for _ in range(2):
        U = np.linalg.qr(rng.normal(size=(D, d)))[0]
        X = rng.normal(size=(half, d)) @ U.T + noise * rng.normal(size=(half, D))
        X[rng.random(X.shape) > p] = np.nan
        parts.append(X)
        bases.append(U)
    return np.vstack(parts), bases


def missed(U, components):
    return np.linalg.norm(U - components.T @ (components @ U)) ** 2 / U.shape[1]


def errors(make, d, p, noise, seeds):
    logs = []
    for seed in range(seeds):
        X, (first, second) = stream(d, p, noise, seed)
        tracker, start, found = make(d), 0, []
        for mark in MARKS:
            tracker.partial_fit(X[start:mark])
            found.append(missed(first if mark <= 1500 else second, tracker.components_))
            start = mark
        logs.append(np.log(found))
    return np.exp(np.mean(logs, axis=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one stream of each setting")
    options = parser.parse_args()
    seeds = 1 if options.quick else options.seeds
    worst = 0.0
    for d, p, noise in SETTINGS:
        print(f"d={d} p={p} noise={noise}; rows {MARKS}, change at 1500")
        table = {name: errors(make, d, p, noise, seeds) for name, make in TRACKERS.items()}
        for name, row in table.items():
            print(f"  {name:18s} " + "  ".join(f"{value:8.1e}" for value in row))
        best = np.min(
            [row for name, row in table.items() if name.startswith("PETRELS") and "adaptive" not in name], axis=0
        )
        ratio = table["PETRELS adaptive"] / best
        worst = max(worst, ratio.max())
        print("  adaptive over best fixed: " + "  ".join(f"{value:8.2f}" for value in ratio))
    print(f"worst ratio: {worst:.2f}")
