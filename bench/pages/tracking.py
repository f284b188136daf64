"""Trackers on streams whose subspace changes: `python bench/pages/tracking.py`, and with `grid` what "auto" forgets.

Without a word: rows of a d-dimensional subspace of 200 columns, each entry seen with probability p; after 1,500 rows the subspace is another.
Prints |(I - P) U|^2 / d after 300 and 1,500 rows and 100, 300 and 1,500 rows after the change, geometric means over streams, for
fixed forgetting, learned memories and GROUSE; then the worst ratio of the memories to the best fixed one.

`grid`: subspaces that stand still, turn by 90 degrees in so many rows, jump, swing by 45 degrees to either side, or have one direction
exchanged after so many rows; the mean of |(I - P) U|^2 / d at every 50th row after
the first fifth, for `forget="auto"` and eight fixed factors, and its CPU time over the median of theirs.

`outliers`: the setting of GRASTA (He, Balzano, Szlam 2012), 5 % of the seen entries with a large error, for subspaces that stand
still, turn, or change in 50 rows; |(I - P) U| / sqrt(d) of the trackers with and without `robust`, on the rows with and without
errors, and CPU time of a robust row over a plain one. Means over streams.
"""

import argparse
import itertools
import time

import numpy as np

from lacunar import Observed
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


FACTORS = [0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1.0]
LENGTHS = {
    "still": 10000, "turn 500": 5000, "turn 2000": 5000, "turn 5000": 10000, "turn 20000": 10000, "jump 1000": 5000,
    "jump 5000": 10000, "swing 1500": 5000, "exchange 1500": 6000,
}  # fmt: skip
EVERY = 50


def moving(kind, d, p, noise, seed, n, D=200):
    """Rows (n, D), entries of variance 1 before noise, and the basis (D, d) at the last row of every block of EVERY."""
    rng = np.random.default_rng(seed)
    codes, (name, _, period) = rng.normal(size=(n, d)), kind.partition(" ")
    period = int(period or 0)
    if name == "jump":
        bases = [np.linalg.qr(rng.normal(size=(D, d)))[0] for _ in range(-(-n // period))]
        at = [bases[t // period] for t in range(EVERY - 1, n, EVERY)]
        X = np.vstack([codes[i * period : (i + 1) * period] @ U.T for i, U in enumerate(bases)])
    elif name == "exchange":
        axes = np.linalg.qr(rng.normal(size=(D, 2 * d)))[0]
        bases = [np.column_stack([axes[:, d : d + j], axes[:, j:d]]) for j in np.arange(-(-n // period)) % (d + 1)]
        at = [bases[t // period] for t in range(EVERY - 1, n, EVERY)]
        X = np.vstack([codes[i * period : (i + 1) * period] @ U.T for i, U in enumerate(bases)])
    else:
        first, second = np.split(np.linalg.qr(rng.normal(size=(D, 2 * d)))[0], 2, axis=1)
        angle = np.arange(n) * (np.pi / 2 / period if period else 0.0)
        if name == "swing":
            angle = np.pi / 4 * np.sin(4 * angle)
        at = [np.cos(a) * first + np.sin(a) * second for a in angle[EVERY - 1 :: EVERY]]
        X = np.cos(angle)[:, None] * (codes @ first.T) + np.sin(angle)[:, None] * (codes @ second.T)
    X = np.sqrt(D / d) * X + noise * rng.normal(size=(n, D))
    X[rng.random(X.shape) > p] = np.nan
    return Observed.from_dense(X), at


def followed(forget, d, rows, bases):
    """Mean error after the first fifth, and CPU seconds."""
    tracker, found, seconds = PETRELS(d, forget=forget, random_state=0), [], 0.0
    for block, U in enumerate(bases):
        piece = rows[np.arange(block * EVERY, (block + 1) * EVERY)]
        start = time.process_time()
        tracker.partial_fit(piece)
        seconds += time.process_time() - start
        found.append(missed(U, tracker.components_))
    return np.mean(found[len(found) // 5 :]), seconds


def grid(seeds, quick):
    print(
        "| subspace | d | seen | noise | best factor | its error | auto | ratio | CPU ratio |\n|---|---|---|---|---|---|---|---|---|"
    )
    for noise, p, d, kind in itertools.product((0.1, 0.0), (0.2, 0.5), (5, 10), LENGTHS):
        if quick and (kind, d, p, noise) != ("turn 500", 5, 0.2, 0.1):
            continue
        table = []
        for seed in range(seeds):
            rows, bases = moving(kind, d, p, noise, seed, 1000 if quick else LENGTHS[kind])
            table.append([followed(forget, d, rows, bases) for forget in (*FACTORS, "auto")])
        (*fixed, error), (*others, seconds) = np.mean(table, axis=0).T
        best = int(np.argmin(fixed))
        print(
            f"| {kind} | {d} | {p} | {noise} | {FACTORS[best]} | {fixed[best]:.2e} | {error:.2e} | {error / fixed[best]:.2f} "
            f"| {seconds / np.median(others):.2f} |",
            flush=True,
        )


def changes(seeds):
    """Errors around one change, by tracker and setting."""
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


OUTLIERS = [(200, 5, 0.3, 0.05, 3.0), (500, 5, 0.3, 0.01, 10.0), (100, 10, 0.5, 0.3, 5.0), (200, 5, 0.15, 0.05, 3.0)]
ROBUST = {
    "PETRELS": lambda d, **how: PETRELS(d, random_state=0, **how),
    "shared PETRELS": lambda d, **how: PETRELS(d, correlation="shared", random_state=0, **how),
    "GROUSE": lambda d, **how: GROUSE(d, damping=0.3, random_state=0, **how),
}


def with_outliers(kind, D, d, p, noise, size, seed, n=3000):
    """Rows without and with errors in 5 % of the entries, and the basis at a row."""
    rng = np.random.default_rng(seed)
    first, second = np.split(np.linalg.qr(rng.normal(size=(D, 2 * d)))[0], 2, axis=1)
    codes, t = rng.normal(size=(n, d)) * np.sqrt(D / d), np.arange(n)
    angle = {"still": 0.0 * t, "turn": t * np.pi / 4000, "burst": np.clip((t - n // 2) / 50, 0, 1) * np.pi / 2}[kind]
    clean = np.cos(angle)[:, None] * (codes @ first.T) + np.sin(angle)[:, None] * (codes @ second.T)
    clean += noise * rng.normal(size=clean.shape)
    wrong = clean + (rng.random(clean.shape) < 0.05) * size * rng.normal(size=clean.shape)
    hidden = rng.random(clean.shape) > p
    rows = [np.where(hidden, np.nan, X) for X in (clean, wrong)]
    return *rows, lambda row: np.cos(angle[row]) * first + np.sin(angle[row]) * second


def followed_rows(tracker, X, basis):
    """Mean of |(I - P) U| / sqrt(d) at every hundredth row after the first fifth, and CPU seconds."""
    found, seconds, n = [], 0.0, len(X)
    for start in range(0, n, 2 * EVERY):
        before = time.process_time()
        tracker.partial_fit(X[start : start + 2 * EVERY])
        seconds += time.process_time() - before
        if start > n // 5:
            found.append(np.sqrt(missed(basis(min(start + 2 * EVERY, n) - 1), tracker.components_)))
    return float(np.mean(found)), seconds


def outliers(seeds, quick):
    print(
        "| columns, d, seen, noise, errors | subspace | tracker | clean | robust, clean | wrong | robust, wrong | time |"
    )
    print("|---" * 8 + "|")
    for (D, d, p, noise, size), kind in itertools.product(OUTLIERS[: 1 if quick else None], ("still", "turn", "burst")):
        for name, make in ROBUST.items():
            lines = []
            for seed in range(seeds):
                clean, wrong, basis = with_outliers(kind, D, d, p, noise, size, seed, 600 if quick else 3000)
                ways = [(X, robust) for X in (clean, wrong) for robust in (False, True)]
                runs = [followed_rows(make(d, robust=robust), X, basis) for X, robust in ways]
                lines.append([error for error, _ in runs] + [runs[3][1] / runs[2][1]])
            line = np.mean(lines, axis=0)
            print(
                f"| {D}, {d}, {p}, {noise}, {size} | {kind} | {name} | "
                + " | ".join(f"{value:.3f}" for value in line[:4])
                + f" | {line[4]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["changes", "grid", "outliers"], default="changes")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one stream of each setting")
    options = parser.parse_args()
    seeds = 1 if options.quick else options.seeds
    if options.what == "grid" or options.quick:
        grid(seeds, options.quick)
    if options.what == "changes":
        changes(seeds)
    if options.what == "outliers" or options.quick:
        outliers(seeds, options.quick)
