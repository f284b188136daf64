"""Figure 1 of "Sparse Linear Regression With Missing Data" with our figures: `python bench/papers/slrm_figure1.py`.

D=100 columns, d=30 directions, w with 10 entries that are not 0; rows seen at rate p in training, .75 in the test. Panel a:
noiseless, by number of rows; b: noise on entries; c: noise on entries and labels; d: by p at noise variance 1 and, d', .09.
Prints mean squared errors (mean and standard error over seeds), says point by point whether SLRM is below SMPCR, and
writes a table and a picture beside it. `--quick` is a small version that checks the trends in a minute.
"""

from __future__ import annotations

import argparse
import contextlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

from lacunar.regression import MPCRRegressor, SLRMRegressor, SMPCRRegressor

D, RANK, TEST_RATE = 100, 30, 0.75
RIDGES = np.logspace(-4, 5, 19)
RAW: dict[str, Any] = {"center": False, "scale": False, "clip": None, "random_state": 0}  # the paper centres nothing

PANELS: dict[str, list[dict[str, float]]] = {
    "a p=.75": [{"n": n, "p": 0.75, "sx2": 0, "sy2": 0} for n in (100, 200, 400, 800, 1600, 3200)],
    "a p=.4": [{"n": n, "p": 0.4, "sx2": 0, "sy2": 0} for n in (100, 200, 400, 800, 1600, 3200)],
    "b": [{"n": 3200, "p": 0.75, "sx2": s, "sy2": 0} for s in (0.01, 0.1, 0.5, 2)],
    "c": [{"n": 3200, "p": 0.75, "sx2": s, "sy2": s} for s in (0.1, 0.5, 1, 2)],
    "d": [{"n": 3200, "p": p, "sx2": 1, "sy2": 1} for p in (0.2, 0.35, 0.5, 0.75, 0.95)],
    "d'": [{"n": 3200, "p": p, "sx2": 0.09, "sy2": 0.09} for p in (0.2, 0.35, 0.5, 0.75, 0.95)],
}


class World:
    """One draw of U and w, training rows at rate p and test rows at rate .75."""

    def __init__(self, cell: dict[str, float], seed: int, n_test: int = 2000) -> None:
        rng = np.random.default_rng(seed)
        self.U = np.linalg.qr(rng.normal(size=(D, RANK)))[0]
        self.w = np.zeros(RANK)
        self.w[rng.choice(RANK, 10, replace=False)] = rng.normal(size=10)
        self.cell = cell
        self.X, self.y = self._rows(rng, int(cell["n"]), cell["p"])
        self.X_new, self.y_new = self._rows(rng, n_test, TEST_RATE)

    def _rows(self, rng: np.random.Generator, n: int, rate: float) -> tuple[Any, Any]:
        a = rng.normal(size=(n, RANK))
        X = a @ self.U.T + np.sqrt(self.cell["sx2"]) * rng.normal(size=(n, D))
        y = a @ self.w + np.sqrt(self.cell["sy2"]) * rng.normal(size=n)
        X[rng.random(X.shape) > rate] = np.nan
        return X, y

    def error(self, predicted: Any) -> float:
        return float(np.mean((predicted - self.y_new) ** 2))

    def bayes(self) -> float:
        ridge = max(self.cell["sx2"], 1e-10)
        made = []
        for x in self.X_new:
            part = self.U[~np.isnan(x)]
            made.append(np.linalg.solve(part.T @ part + ridge * np.eye(RANK), part.T @ x[~np.isnan(x)]) @ self.w)
        return self.error(np.array(made))


def best(world: World, models: list[Any]) -> float:
    """The model with the least validation error, as the paper's protocol chooses."""
    fitted = []
    for model in models:
        with contextlib.suppress(ValueError):  # this step diverged in its first pass
            fitted.append(model.fit(world.X, world.y))
    if not fitted:
        return float("inf")
    return world.error(min(fitted, key=lambda model: min(model.validation_errors_)).predict(world.X_new))


def methods(world: World, passes: int) -> dict[str, float]:
    X, y = world.X, world.y

    def plain(model: Any) -> float:
        return world.error(model.fit(X, y).predict(world.X_new))

    slrm = [
        SLRMRegressor(RANK, solver="paper", lam1=lam1, rho=rho, max_iter=passes, **RAW)
        for lam1 in (1.0, 10.0, 100.0)
        for rho in (1e-3, 1e-2)
    ]
    smpcr = [SMPCRRegressor(RANK, rho=rho, max_iter=passes, **RAW) for rho in (1e-4, 1e-3, 1e-2)]
    iterative = IterativeImputer(max_iter=5, n_nearest_features=30, random_state=0)
    return {
        "SLRM (paper)": best(world, slrm),
        "SMPCR": best(world, smpcr),
        "MPCR": plain(MPCRRegressor(RANK, **RAW)),
        "ridge-MPCR": plain(MPCRRegressor(RANK, ridge="auto", **RAW)),
        "SLRM (default)": plain(SLRMRegressor(RANK, max_iter=200, random_state=0)),
        "mean + ridge": plain(make_pipeline(SimpleImputer(keep_empty_features=True), RidgeCV(RIDGES))),
        "iterative + ridge": plain(make_pipeline(iterative, RidgeCV(RIDGES))) if len(y) <= 800 else float("nan"),
        "HistGB": plain(HistGradientBoostingRegressor(random_state=0)),
        "Bayes": world.bayes(),
    }


def cell_errors(cell: dict[str, float], seed: int, passes: int) -> dict[str, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return methods(World(cell, seed), passes)


def label(panel: str, cell: dict[str, float]) -> str:
    name = {"a": "n", "b": "sx2", "c": "sx2", "d": "p"}[panel[0]]
    return f"{name}={cell[name]:g}"


def run(panels: dict[str, Any], seeds: int, passes: int, jobs: int) -> list[tuple[str, str, dict[str, list[float]]]]:
    tasks = [(panel, cell, seed) for panel, cells in panels.items() for cell in cells for seed in range(seeds)]
    found = Parallel(n_jobs=jobs, verbose=5)(delayed(cell_errors)(cell, seed, passes) for _, cell, seed in tasks)
    rows: dict[tuple[str, str], dict[str, list[float]]] = {}
    for (panel, cell, _), errors in zip(tasks, found, strict=True):
        row = rows.setdefault((panel, label(panel, cell)), {})
        for name, value in errors.items():
            row.setdefault(name, []).append(value)
    return [(panel, where, row) for (panel, where), row in rows.items()]


def show(value: list[float]) -> str:
    if not np.isfinite(value).all():
        return "-" if np.isnan(value).any() else "diverges"
    return f"{np.mean(value):.3g} ({np.std(value) / np.sqrt(max(len(value) - 1, 1)):.1g})"


def table(rows: list[tuple[str, str, dict[str, list[float]]]]) -> str:
    names = list(rows[0][2])
    lines = ["| panel | at | " + " | ".join(names) + " | SLRM < SMPCR |", "|---" * (len(names) + 3) + "|"]
    for panel, where, row in rows:
        gap = np.array(row["SLRM (paper)"]) - np.array(row["SMPCR"])
        wins = f"{(gap < 0).sum()} of {len(gap)}"
        lines.append(f"| {panel} | {where} | " + " | ".join(show(row[name]) for name in names) + f" | {wins} |")
    return "\n".join(lines)


def draw(rows: list[tuple[str, str, dict[str, list[float]]]], path: Path) -> None:
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(panel for panel, _, _ in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.6), squeeze=False)
    for axis, panel in zip(axes[0], panels, strict=True):
        mine = [(where, row) for name, where, row in rows if name == panel]
        for name in ("SLRM (paper)", "SMPCR", "SLRM (default)", "mean + ridge", "HistGB", "Bayes"):
            middle = [np.mean(row[name]) for _, row in mine]
            axis.plot([where for where, _ in mine], middle, marker="o", markersize=3, label=name)
        axis.set_yscale("log")
        axis.set_title(panel)
        axis.tick_params(axis="x", rotation=45)
    axes[0][0].set_ylabel("test mean squared error")
    axes[0][-1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--passes", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    panels = PANELS
    if options.quick:
        panels = {"a p=.4": [{"n": n, "p": 0.4, "sx2": 0, "sy2": 0} for n in (200, 800)]}
        options.seeds, options.passes = 2, 5
    rows = run(panels, options.seeds, options.passes, options.jobs)
    made = table(rows)
    print(made)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "slrm_figure1.md").write_text(made + "\n", encoding="utf-8")
    draw(rows, options.out / "slrm_figure1.png")
    if options.quick:  # the trends: errors fall with n, and with n the default is far below SMPCR
        small, large = rows[0][2], rows[1][2]
        assert np.mean(large["SLRM (paper)"]) < np.mean(small["SLRM (paper)"])
        assert np.mean(large["SLRM (default)"]) < 0.1 * np.mean(large["SMPCR"])


if __name__ == "__main__":
    main()
