"""Figure 1 (a) of "Sparse Linear Regression With Missing Data" below the floor of its penalties: both methods with penalties of 1e-6.

The world, the six passes and the validation rows are those of `slrm_figure1` at p = .75, where there is no noise and rows abound: there the
least penalty that it searches, 1e-3, is what is left of both errors. Steps, and lambda_1 of SLRM, are searched as there.
"""

from __future__ import annotations

from bench.papers._report import Report, Verdict, by_seed, read_table, share, table
from bench.papers._run import Run
from bench.papers.slrm_figure1 import (
    PAPERS,
    PEERS,
    RANK,
    below,
    beside,
    best,
    slrm_models,
    smpcr_models,
    world_of,
)

TITLE = "SLRM, Figure 1 (a), small penalties"
SIZES = (400, 800, 1600)
SMALL = (1e-6,)
PASSES = 6


def cell(n: int, seed: int, passes: int) -> dict[str, float]:
    world = world_of(n, 0.75, 0, 0, seed)
    models = {PAPERS: slrm_models(RANK, passes, SMALL), PEERS: smpcr_models(RANK, passes, SMALL)}
    return {name: best(world, each) for name, each in models.items()}


def claims(shown: dict[str, dict[str, str]]) -> list[Verdict]:
    counts = below(list(shown.values()))
    return [
        Verdict(
            "the average error of SLRM is lower than that of SMPCR for all n (a)",
            "Section 6",
            "a picture",
            beside(*counts, len(shown)),
            share(counts[0], len(shown)),
            "the mean is below SMPCR's at every n",
            "penalties of 1e-6, p = .75; six passes here, up to 500 there",
        )
    ]


def run(run: Run) -> Report:
    sizes, seeds, passes = (SIZES[:1], 1, 4) if run.quick else (SIZES, run.repeats(3), PASSES)
    cells = run.cells(cell, {f"n = {n} seed {s}": (n, s, passes) for s in range(seeds) for n in sizes})
    rows = by_seed(cells)
    made = table("p = .75", rows, [PAPERS, PEERS])
    small = all(max(values) < 1e-2 for row in rows.values() for values in row.values())
    return Report(
        TITLE,
        made,
        f"{seeds} seeds, standard errors in brackets",
        [] if run.quick else claims(read_table(made.splitlines())),
        {"errors of both methods are below .01": small},
    )
