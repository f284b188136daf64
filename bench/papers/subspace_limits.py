"""What cannot be done, in the paper "Subspace Learning with Partial Information": one attribute a row, Theorem 12, zero products, and Appendix E.

r = 1: rows +-(a, a) or +-(-a, a), of which each shows one entry. Theorem 12: unit vectors on a hidden attribute, with one row fewer than the
bound. Section 4: rows until the first pair of Algorithm 2 whose product is not zero, on a distribution of one attribute. Appendix E: the
bound of Lemma 13 beside that of Lemma 2, both computed, for moments of trace 1.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from bench.papers._report import Report, Verdict, mean_and_error, number, table, word
from bench.papers._run import Run

from lacunar.active import ActivePOPCA
from lacunar.papers.subspace import (
    PrintedMBEG,
    PrintedPOPCA,
    penalised_error_bound,
    popca_sample_bound,
    sample_lower_bound,
)

TITLE = "Subspace learning, limits"
ALPHA = 0.5**0.5  # of the two lines, whose rows have length 1
UNIT = [(8, 2, 0.02), (16, 2, 0.02), (16, 4, 0.01)]  # d, r, epsilon of Theorem 12
SIZES = (8, 16, 32)  # d of the zero products
SPECTRA = {"one direction": lambda j: j == 0.0, "falling": lambda j: 0.7**j, "flat": lambda j: j * 0 + 1.0}


def one_attribute(seed: int, r: int, m: int) -> float:
    """Excess of POPCA, of the largest possible 1, mean over both lines, with r of two attributes a row."""
    lost = []
    for sign in (1.0, -1.0):
        rng = np.random.default_rng(seed)
        line = ALPHA * np.array([sign, 1.0])
        rows = rng.choice([-1.0, 1.0], size=(m, 1)) * line
        if r == 1:
            rows[np.arange(m), rng.integers(2, size=m)] = np.nan
        lost.append(1 - float((PrintedPOPCA(1, r).fit(rows).components_[0] @ line) ** 2))
    return float(np.mean(lost))


def unit_vectors(seed: int, d: int, r: int, epsilon: float) -> float:
    """Excess of active POPCA with one row fewer than Theorem 12 asks for, on a random one of its distributions."""
    rng = np.random.default_rng(seed)
    hidden = int(rng.integers(d))

    def oracle(indices: Any) -> Any:
        return (rng.random() < 4 * epsilon) * (np.asarray(indices) == hidden).astype(float)

    model = ActivePOPCA(d, 1, r, center=False, random_state=seed).run(oracle, sample_lower_bound(d, r, epsilon) - 1)
    return 4 * epsilon * (1 - float(model.result().components_[0, hidden] ** 2))


def zero_products(seed: int, d: int) -> int:
    """Rows until a pair of Algorithm 2 shows twice the only attribute that is not zero: W stays as it is before."""
    model = PrintedMBEG(d, 1, r=2, m=10**6, alpha=0.5, random_state=seed)
    hidden, rows = int(np.random.default_rng(seed).integers(d)), 0
    while True:
        requests = model.ask(4 * d * d)
        drawn = np.array([np.ravel(model.pending_[request.id][0])[:2] for request in requests])
        hits = np.flatnonzero((drawn == hidden).all(axis=1))
        if len(hits):
            return rows + int(hits[0]) + 1
        rows += len(requests)


def compared() -> tuple[int, int]:
    """Cases of Appendix E, and those of them where the bound of Lemma 13 is above epsilon / sqrt(k)."""
    cases = above = 0
    for spectrum, d, k, epsilon in product(SPECTRA.values(), (8, 32, 128), (1, 4), (0.3, 0.1, 0.03)):
        values = np.array([float(spectrum(float(j))) for j in range(d)])
        C = np.diag(values / values.sum())
        bound = penalised_error_bound(C, d / 4, popca_sample_bound(d, k, d / 4, epsilon))
        cases += 1
        above += bound > epsilon / k**0.5
    return cases, above


def run(run: Run) -> Report:
    seeds, draws = (3, 10) if run.quick else (run.repeats(20), run.repeats(200))
    sizes = SIZES[:2] if run.quick else SIZES
    one = run.cells(one_attribute, {f"r={r} seed {s}": (s, r, 4000) for r in (1, 2) for s in range(seeds)})
    unit = run.cells(
        unit_vectors, {f"d={d} r={r} eps={e} seed {s}": (s, d, r, e) for d, r, e in UNIT for s in range(draws)}
    )
    zero = run.cells(zero_products, {f"d={d} seed {s}": (s, d) for d in sizes for s in range(draws)})
    excess = {f"two lines, r = {r}": [one[f"r={r} seed {s}"] for s in range(seeds)] for r in (1, 2)}
    missed = {
        f"Theorem 12, d = {d}, r = {r}, epsilon = {e}, {sample_lower_bound(d, r, e) - 1} rows": (
            e,
            [unit[f"d={d} r={r} eps={e} seed {s}"] for s in range(draws)],
        )
        for d, r, e in UNIT
    }
    waited = {d: [zero[f"d={d} seed {s}"] for s in range(draws)] for d in sizes}
    rows = {name: {"what": "excess", "figure": number(v), "by the paper": "-"} for name, v in excess.items()}
    rows |= {n: {"what": "excess", "figure": number(v), "by the paper": f"above {e:g}"} for n, (e, v) in missed.items()}
    rows |= {
        f"section 4, d = {d}, r = 2": {"what": "rows", "figure": number(v), "by the paper": f"d^2 = {d * d}"}
        for d, v in waited.items()
    }
    cases, above = compared()
    rows["Appendix E, bound of Lemma 13 above epsilon / sqrt(k)"] = {
        "what": "cases",
        "figure": f"{above} of {cases}",
        "by the paper": "all",
    }
    half = mean_and_error(excess["two lines, r = 1"])[0]
    fails = all(np.mean(v) + 2 * mean_and_error(v)[1] > e for e, v in missed.values())
    near = all(abs(np.mean(v) - d * d) <= 2 * mean_and_error(v)[1] for d, v in waited.items())
    return Report(
        TITLE,
        table("setting", rows, ["what", "figure", "by the paper"]),
        f"{seeds} seeds of the lines, {draws} of the others; standard errors in brackets",
        [
            Verdict(
                "learning from r = 1 attributes is impossible",
                "Section 1.1",
                "-",
                f"mean excess over both lines {half:.2g} of 1 with 4,000 rows, with r = 2 {np.mean(excess['two lines, r = 2']):.1g}",
                word(abs(half - 0.5) < 0.05 and np.mean(excess["two lines, r = 2"]) < 1e-9),
                "half of the excess is left with r = 1, none with r = 2",
            ),
            Verdict(
                "every learner needs rows of order d / (r epsilon)",
                "Theorem 12",
                "an order",
                ", ".join(f"{number([x / e for x in v], 2)} epsilon" for e, v in missed.values()),
                word(fails),
                "mean excess of active POPCA not below epsilon by two standard errors with one row fewer than the derived bound",
                "one learner is tried here; `sample_lower_bound` has the proof for all",
            ),
            Verdict(
                "Algorithm 2 sees zero products alone for order d^2 rows",
                "Section 4",
                "a chance of 1 / d^2 a row",
                ", ".join(f"d = {d}: {np.mean(v):.0f}" for d, v in waited.items()),
                word(near),
                "mean number of rows within two standard errors of d^2",
            ),
            Verdict(
                "the bound of Lemma 13 is always worse than that of Lemma 2",
                "Appendix E",
                "above epsilon / sqrt(k)",
                f"{above} of {cases} cases",
                word(above == cases),
                "penalised_error_bound above epsilon / sqrt(k) in every case, c_1 = 1",
                "the paper does not print c_1; moments of many small eigenvalues cost nothing in Lemma 13, which may leave them out",
            ),
        ],
        {"zero products last for some d^2 rows": near or run.quick, "one attribute is not enough": half > 0.4},
    )
