"""The two bars of active acquisition as ratios in one run: `python bench/pages/active.py [--quick]`.

1. MBEG at d = 200: milliseconds a row of `PrintedMBEG` over those of `MBEG`, interleaved, medians.
2. Rows of uniform over rows of adaptive active POPCA until the excess is .04 of the trace (mean over seeds), coherent subspaces of
   dimension 2, d = 64, r = 2: rows on atoms (e_0 + e_1, e_2 + e_3), and Gaussian rows on eight attributes.

`--budget`: excess of rules at one price, that of 500 rows of r attributes, on Gaussian rows of d = 64 with noise, whose subspace
of dimension 2 lies on eight attributes or on all; means over seeds. Whole rows are `ActivePOPCA(n_observed=64)`, 500 r / 64 of them.
"""

import argparse
import itertools
import time

import numpy as np
from threadpoolctl import threadpool_limits

from lacunar.active import MBEG, ActivePOPCA
from lacunar.papers.subspace import PrintedMBEG


def atoms(d):
    basis = np.zeros((2, d))
    basis[0, :2] = basis[1, 2:4] = 0.5**0.5

    def draw(rng):
        return rng.choice([-1.0, 1.0]) * basis[rng.integers(2)]

    return basis, np.full(2, 0.5), draw


def block(d):
    basis = np.zeros((2, d))
    basis[:, :8] = np.linalg.qr(np.random.default_rng(7).normal(size=(8, 2)))[0].T
    strength = np.array([0.6, 0.4])

    def draw(rng):
        return (rng.normal(size=2) * np.sqrt(strength)) @ basis

    return basis, strength, draw


def oracle_of(draw, seed):
    rng = np.random.default_rng(seed)
    return lambda indices: draw(rng)[indices]


def excess(components, basis, strength):
    """Lost variance over the trace: 0 for the true subspace."""
    return 1 - np.sum(strength * np.sum((components @ basis.T) ** 2, axis=0)) / strength.sum()


def rows_needed(family, strategy, goal, seeds, most, d=64):
    """First number of rows, by steps of 1.2, at which the mean excess over the seeds is at most the goal."""
    basis, strength, draw = family(d)
    models = [ActivePOPCA(d, 2, 2, strategy=strategy, center=False, random_state=s) for s in range(seeds)]
    oracles = [oracle_of(draw, 1000 + s) for s in range(seeds)]
    m = 64
    while m <= most:
        found = []
        for model, oracle in zip(models, oracles, strict=True):
            model.run(oracle, m - getattr(model, "n_told_", 0))
            found.append(excess(model.result().components_, basis, strength))
        if np.mean(found) <= goal:
            return m
        m = int(1.2 * m)
    return np.inf


def step_ratio(d, repeats, printed_rows=6, tuned_rows=640):
    draw = atoms(d)[2]
    printed = PrintedMBEG(d, 2, m=10**6, random_state=0).run(oracle_of(draw, 0), 2)
    tuned = MBEG(d, 2, refresh=64, random_state=0).run(oracle_of(draw, 0), 64)
    times = {"printed": [], "tuned": []}
    for repeat in range(repeats):
        for name, model, rows in (("printed", printed, printed_rows), ("tuned", tuned, tuned_rows)):
            start = time.process_time()
            model.run(oracle_of(draw, repeat), rows)
            times[name].append((time.process_time() - start) / rows * 1e3)
    return {name: float(np.median(value)) for name, value in times.items()}


def spread(d):
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(d, 2)))[0].T
    strength = np.array([0.6, 0.4])
    return basis, strength, lambda rng: (rng.normal(size=2) * np.sqrt(strength)) @ basis


def noisy(family, d, noise=0.05):
    basis, strength, draw = family(d)
    return basis, strength, lambda rng: draw(rng) + noise * rng.normal(size=d)


def budget(seeds, d=64, rows=500):
    rules = {
        "adaptive": lambda r, s: (ActivePOPCA(d, 2, r, center=False, random_state=s), rows),
        "uniform": lambda r, s: (ActivePOPCA(d, 2, r, strategy="uniform", center=False, random_state=s), rows),
        "MBEG": lambda r, s: (MBEG(d, 2, r, random_state=s), rows),
        "MBEG, all pairs": lambda r, s: (MBEG(d, 2, r, pairs="all", random_state=s), rows),
        "whole rows": lambda r, s: (ActivePOPCA(d, 2, d, center=False, random_state=s), rows * r // d),
    }
    print("| subspace on | r | " + " | ".join(rules) + " |\n" + "|---" * (len(rules) + 2) + "|")
    for (name, family), r in itertools.product((("8 of 64", block), ("all", spread)), (2, 4, 8, 16)):
        basis, strength, draw = noisy(family, d)
        means = []
        for rule in rules.values():
            found = []
            for seed in range(seeds):
                model, m = rule(r, seed)
                result = model.run(oracle_of(draw, 1000 + seed), m).result()
                found.append(excess(result.components_, basis, strength))
            means.append(f"{np.mean(found):.3f}")
        print(f"| {name} | {r} | " + " | ".join(means) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and seeds")
    parser.add_argument("--budget", action="store_true", help="rules at one price only")
    options = parser.parse_args()
    quick = options.quick
    if quick or options.budget:
        budget(1 if quick else 5)
    if options.budget:
        return
    ms = step_ratio(200, 3 if quick else 9)
    print(
        f"MBEG d=200, ms a row: printed {ms['printed']:.3f}, tuned {ms['tuned']:.4f}, ratio {ms['printed'] / ms['tuned']:.0f}"
    )
    for family in (atoms, block):
        adaptive, uniform = (
            rows_needed(family, strategy, 0.04, 3 if quick else 8, 100_000) for strategy in ("adaptive", "uniform")
        )
        print(
            f"rows to excess .04, {family.__name__}: uniform {uniform}, adaptive {adaptive}, ratio {uniform / adaptive:.1f}"
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
