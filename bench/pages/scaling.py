"""What a fit costs as rows, columns, entries a row and rank grow, beside the formula of docs/measured/scaling.md.

    OMP_NUM_THREADS=1 python bench/pages/scaling.py [--only WORD] [--repeats N] [--quick]

Of every fit one quantity grows at a time. CPU seconds of one thread, medians of runs that take turns over the sizes; the exponent is the
slope of log time over log size, over all sizes and over the last two, and beside both those of the formula at the very same sizes.
"""

import argparse
import time
from statistics import median
from typing import NamedTuple

import numpy as np

from lacunar import KarmaOnlineClassifier, KarmaRegressor, Observed
from lacunar.active import MBEG
from lacunar.completion import Features, Kernel
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor, SLRMRegressor
from lacunar.observed import read_batches
from lacunar.papers.completion import MatrixExponentiatedGradient


class Size(NamedTuple):
    """Rows n of D columns, o entries each; rank k, or whatever else the fit's state is the size of."""

    n: int
    D: int
    o: int
    k: int


def rows(size, seed=0):
    """Rows of rank 5 with o entries each, and a number for every row."""
    rng = np.random.default_rng(seed)
    blocks = [
        np.sort(rng.random((min(5_000, size.n - start), size.D)).argpartition(size.o - 1, axis=1)[:, : size.o], axis=1)
        for start in range(0, size.n, 5_000)
    ]
    columns = np.concatenate(blocks)
    loadings, factors = rng.normal(size=(size.D, 5)), rng.normal(size=(size.n, 5))
    values = np.einsum("nk,nok->no", factors, loadings[columns]) + 0.1 * rng.normal(size=columns.shape)
    table = Observed(
        np.arange(0, size.n * size.o + 1, size.o), columns.astype(np.int32).ravel(), values.ravel(), (size.n, size.D)
    )
    return table, factors[:, 0]


def fits(make):
    """A fit of all rows at once."""
    return lambda size, table, y: make(size).fit(table, y)


def streams(make, labels=None, **options):
    """One pass by batches of 2,000 rows."""
    return lambda size, table, y: make(size).fit_batches(
        read_batches(table, size=2_000, target=None if labels is None else labels(y)), **options
    )


def words(y):
    return (y > 0).astype(int)


def numbers(y):
    return y


def ask_and_tell(size, table, y):
    rng = np.random.default_rng(0)
    MBEG(size.D, size.k, size.o, random_state=0).run(lambda indices: rng.normal(size=len(indices)), size.n)


def pairs_of_features(size, table, y):
    rng = np.random.default_rng(0)
    sides = [Features(rng.normal(size=(500, size.k)), standardize=False) for _ in range(2)]
    i, j = rng.integers(500, size=(2, size.n))
    MatrixExponentiatedGradient(*sides, calibrate=False).fit((i, j), rng.choice([-1, 1], size=size.n))


def pairs_of_ids(size, table, y):
    """All pairs of D x D ids, known by kernels, in random order."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(2, size.D, 2))
    sides = [Kernel(np.exp(-np.square(p[:, None] - p).sum(axis=2))) for p in points]
    i, j = np.divmod(rng.permutation(size.D**2), size.D)
    y = np.where(points[0, i, 0] * points[1, j, 0] > 0, 1, -1)
    MatrixExponentiatedGradient(*sides, calibrate=False, step=0.3).fit((i, j), y)


class Fit(NamedTuple):
    """What to run, its formula in words and as a function of Size, the size to start from, and what grows."""

    run: object
    words: str
    formula: object
    base: Size
    grow: dict


FITS = {
    "KarmaRegressor, gram": Fit(
        fits(lambda s: KarmaRegressor(solver="gram")),
        "n^2 o + n^3 / 3",
        lambda s: s.n**2 * s.o + s.n**3 / 3,
        Size(3_000, 200, 30, 0),
        {"n": (750, 1_500, 3_000, 6_000), "o": (10, 20, 40, 80)},
    ),
    "KarmaOnlineClassifier, primal": Fit(
        streams(lambda s: KarmaOnlineClassifier(rho=1e-5), words, classes=[0, 1]),
        "n o min(D, 16 (o + 1))",
        lambda s: s.n * (s.o + 1) * min(s.D, 16 * (s.o + 1)),
        Size(40_000, 400, 30, 0),
        {"n": (20_000, 40_000, 80_000, 160_000), "o": (10, 20, 40, 80), "D": (200, 400, 800, 1_600)},
    ),
    "KarmaOnlineClassifier, support": Fit(
        streams(lambda s: KarmaOnlineClassifier(rho=1e-5, budget=s.k), words, classes=[0, 1]),
        "n o stored",
        lambda s: s.n * s.o * s.k,
        Size(40_000, 200, 30, 800),
        {"n": (20_000, 40_000, 80_000, 160_000), "o": (20, 40, 80, 160), "k": (400, 800, 1_600, 3_200)},
    ),
    "POPCA, tables": Fit(
        streams(lambda s: POPCA(5, refine=0)),
        "n o^2 + D^3",
        lambda s: s.n * s.o**2 + s.D**3,
        Size(40_000, 200, 30, 5),
        {"n": (20_000, 40_000, 80_000, 160_000), "o": (10, 20, 40, 60), "D": (250, 500, 1_000, 2_000)},
    ),
    "POPCA, matrix-free": Fit(
        fits(lambda s: POPCA(s.k, solver="matrix-free", refine=0, random_state=0)),
        "products n o k",
        lambda s: s.n * s.o * s.k,
        Size(20_000, 2_000, 30, 5),
        {
            "n": (10_000, 20_000, 40_000, 80_000),
            "o": (15, 30, 60, 120),
            "k": (5, 10, 20, 40),
            "D": (1_000, 2_000, 4_000),
        },
    ),
    "SLRMRegressor, EM": Fit(
        fits(lambda s: SLRMRegressor(s.k, max_iter=5, tol=0, random_state=0)),
        "steps (n o k^2 + n k^3)",
        lambda s: s.n * s.o * s.k**2 + s.n * s.k**3,
        Size(10_000, 400, 80, 16),
        {"n": (5_000, 10_000, 20_000, 40_000), "o": (40, 80, 160, 320), "k": (8, 16, 32, 64), "D": (400, 800, 1_600)},
    ),
    "SLRMOnlineRegressor": Fit(
        streams(lambda s: SLRMOnlineRegressor(s.k, random_state=0), numbers),
        "n o k^2 + n k^3",
        lambda s: s.n * s.o * s.k**2 + s.n * s.k**3,
        Size(10_000, 400, 80, 16),
        {"n": (10_000, 20_000, 40_000, 80_000), "o": (40, 80, 160, 320), "k": (8, 16, 32, 64), "D": (400, 800, 1_600)},
    ),
    "PETRELS": Fit(
        streams(lambda s: PETRELS(s.k, random_state=0)),
        "n o k^2 + n k^3",
        lambda s: s.n * s.o * s.k**2 + s.n * s.k**3,
        Size(10_000, 400, 80, 16),
        {"n": (10_000, 20_000, 40_000, 80_000), "o": (40, 80, 160, 320), "k": (8, 16, 32, 64), "D": (400, 800, 1_600)},
    ),
    "GROUSE": Fit(
        streams(lambda s: GROUSE(s.k, random_state=0)),
        "n o k^2 + n k^3",
        lambda s: s.n * s.o * s.k**2 + s.n * s.k**3,
        Size(10_000, 400, 80, 16),
        {"n": (10_000, 20_000, 40_000, 80_000), "o": (40, 80, 160, 320), "k": (8, 16, 32, 64), "D": (400, 800, 1_600)},
    ),
    "MBEG": Fit(
        ask_and_tell,
        "n (o + D^3 / 64)",
        lambda s: s.n * (s.o + s.D**3 / 64),
        Size(1_000, 200, 2, 2),
        {"n": (500, 1_000, 2_000, 4_000), "D": (100, 200, 400, 800)},
    ),
    "MatrixExponentiatedGradient, features": Fit(
        pairs_of_features,
        "n k^2 products",
        lambda s: s.n * s.k**2,
        Size(5_000, 0, 0, 120),
        {"n": (2_500, 5_000, 10_000, 20_000), "k": (60, 120, 240, 480)},
    ),
    "MatrixExponentiatedGradient, kernels": Fit(
        pairs_of_ids,
        "D^2 pairs x D^2 products",
        lambda s: s.D**4,
        Size(0, 100, 0, 0),
        {"D": (60, 120, 180, 240)},
    ),
}


def cpu_seconds(fit, size, data):
    start = time.process_time()
    fit.run(size, *data)
    return time.process_time() - start


def slope(sizes, costs):
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def curve(fit, quantity, values, repeats):
    sizes = [fit.base._replace(**{quantity: value}) for value in values]
    data = [rows(size) if size.o and size.n else (None, None) for size in sizes]
    cpu_seconds(fit, sizes[0], data[0])
    seconds = [[cpu_seconds(fit, size, each) for size, each in zip(sizes, data, strict=True)] for _ in range(repeats)]
    middle = [median(each) for each in zip(*seconds, strict=True)]
    formula = [fit.formula(size) for size in sizes]
    return {
        "seconds": [round(each, 5) for each in middle],
        "exponent": [round(slope(values[at:], middle[at:]), 2) for at in (0, -2)],
        "of_the_formula": [round(slope(values[at:], formula[at:]), 2) for at in (0, -2)],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="fits whose name holds this")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="two sizes of a tenth of the rows, once")
    options = parser.parse_args()
    print("| fit, formula | grows | seconds | exponent, of the last two | of the formula |\n|---|---|---|---|---|")
    for name, fit in FITS.items():
        if options.only not in name:
            continue
        if options.quick:
            fit = fit._replace(base=fit.base._replace(n=fit.base.n // 10))
        for quantity, values in fit.grow.items():
            if options.quick:
                values = [value // 10 if quantity == "n" else value for value in values[:2]]
            made = curve(fit, quantity, values, 1 if options.quick else options.repeats)
            seconds = ", ".join(f"{v:,}: {s:.3f}" for v, s in zip(values, made["seconds"], strict=True))
            exponents, formula = ("{:.2f}, {:.2f}".format(*made[key]) for key in ("exponent", "of_the_formula"))
            print(f"| {name}, {fit.words} | {quantity} | {seconds} | {exponents} | {formula} |", flush=True)


if __name__ == "__main__":
    main()
