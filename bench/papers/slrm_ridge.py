"""The default of `SLRMRegressor` against the best ridge in hindsight, in the setting of SLRM's Figure 1.

n=3200, D=100, d=30; alternating least squares over a grid of ridges, the best chosen on the test rows, which no user can, against
the default, which learns its ridge. Not a figure of the paper: what its lambdas, "not very sensitive" there, come to.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bench.papers._report import Report, Verdict, pictures, save, table
from bench.papers._run import Run
from bench.papers.slrm_figure1 import RANK, bayes_error, error_of, world_of

from lacunar.lowrank import SLRMRegressor

TITLE = "SLRM, the ridge"
SETTINGS = ((0.1, 0.4), (0.3, 0.4), (0.3, 0.75), (1.0, 0.75), (1.0, 0.3))
GRID = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
SEEDS = 2
COLUMNS = ("best ridge in hindsight", "default", "ratio", "worst ridge / best", "Bayes")


def cell(sigma: float, p: float, seed: int, n: int) -> dict[str, Any]:
    world = world_of(n, p, sigma**2, sigma**2, seed)

    def error(model: SLRMRegressor) -> float:
        return error_of(world, model.fit(world.data, world.target).predict(world.test.data))

    als = {"solver": "als", "max_iter": 30, "standardize": False, "random_state": 0}
    return {
        "grid": [error(SLRMRegressor(RANK, ridge=ridge, **als)) for ridge in GRID],
        "default": error(SLRMRegressor(RANK, random_state=0)),
        "Bayes": bayes_error(world, sigma**2),
    }


def draw(found: dict[str, list[dict[str, Any]]], run: Run) -> Any:
    plt = pictures()
    figure, axis = plt.subplots(figsize=(6, 4))
    for k, (name, cells) in enumerate(found.items()):
        axis.loglog(GRID, np.mean([c["grid"] for c in cells], axis=0), "o-", color=f"C{k}", markersize=3, label=name)
        axis.axhline(np.mean([c["default"] for c in cells]), color=f"C{k}", linestyle=":")
    axis.set_xlabel("ridge")
    axis.set_ylabel("test mean squared error (dotted: default)")
    axis.legend(fontsize=7)
    return save(figure, run.picture)


def run(run: Run) -> Report:
    settings, seeds, n = (SETTINGS[1:2], 1, 800) if run.quick else (SETTINGS, run.repeats(SEEDS), 3200)
    names = {f"sigma={sigma}, p={p}": (sigma, p) for sigma, p in settings}
    cells = run.cells(cell, {f"{name} seed {s}": (*at, s, n) for name, at in names.items() for s in range(seeds)})
    found = {name: [cells[f"{name} seed {s}"] for s in range(seeds)] for name in names}
    rows, ratios = {}, {}
    for name, mine in found.items():
        best, default = (np.mean([f(c) for c in mine]) for f in (lambda c: min(c["grid"]), lambda c: c["default"]))
        ratios[name] = default / best
        bayes = np.mean([c["Bayes"] for c in mine])
        worst = np.mean([max(c["grid"]) for c in mine]) / best
        values = (best, default, ratios[name], worst, bayes)
        rows[name] = dict(zip(COLUMNS, (f"{v:.4g}" for v in values), strict=True))
    worsts = [float(row["worst ridge / best"]) for row in rows.values()]
    return Report(
        TITLE,
        table("noise, rate", rows, COLUMNS),
        [
            Verdict(
                "results are not very sensitive to the lambdas",
                "Section 6",
                f"over ridges of {GRID[0]} to {GRID[-1]} errors differ by factors of {min(worsts):.2g} to {max(worsts):.2g}",
                "reproduces" if max(worsts) < 1.2 else "does not",
            )
        ],
        {"the default is within 10 % of the best ridge in hindsight": max(ratios.values()) < 1.1},
        picture=draw(found, run),
    )
