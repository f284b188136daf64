"""KARMA's six small classification tables: `KarmaClassifierCV()` beside gradient boosting tuned on the same folds.

Five stratified folds, repeated; LightGBM (where the package is) chooses leaves, rate and regularisation by 5 folds inside each training
part, HistGradientBoosting is scikit-learn's with its defaults. Not a table of the paper: a peer of today on its data.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from bench.papers._report import NO_CLAIM, Report, Verdict, mean_and_error, pictures, save, table
from bench.papers._run import Run, real
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from lacunar import KarmaClassifierCV

TITLE = "KARMA's tables and a peer"
TABLES = ("hepatitis", "horses", "wisconsin", "mammographic", "cleveland", "dermatology")
REPEATS = 5


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    grid = {"num_leaves": [4, 15], "learning_rate": [0.03, 0.1], "reg_lambda": [0.1, 5.0]}
    model = LGBMClassifier(n_estimators=150, min_child_samples=5, n_jobs=1, verbose=-1, random_state=0)
    return GridSearchCV(model, grid, cv=StratifiedKFold(5, shuffle=True, random_state=0))


def model_of(name: str) -> Any:
    if name == "LightGBM":
        return lightgbm()
    if name == "HistGradientBoosting":
        return HistGradientBoostingClassifier(random_state=0)
    return KarmaClassifierCV(kernels="auto" if name == "auto" else "karma", average=4 if name == "auto" else 1)


def cell(name: str, method: str, seed: int) -> float:
    X, y = real(name)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
    return float(np.mean([np.mean(model_of(method).fit(X[a], y[a]).predict(X[b]) != y[b]) for a, b in folds]))


def draw(found: dict[str, dict[str, list[float]]], run: Run) -> Any:
    plt = pictures()
    figure, axis = plt.subplots(figsize=(7, 3.8))
    for k, method in enumerate(next(iter(found.values()))):
        middle, spread = np.array([mean_and_error(row[method]) for row in found.values()]).T
        axis.errorbar(np.arange(len(found)) + 0.12 * k, middle, np.nan_to_num(spread), fmt="o", capsize=3, label=method)
    axis.set_xticks(range(len(found)), list(found))
    axis.set_ylabel("error rate")
    axis.legend(fontsize=7)
    return save(figure, run.picture)


def run(run: Run) -> Report:
    tables, repeats = (["hepatitis"], 1) if run.quick else (list(TABLES), run.repeats(REPEATS))
    methods = ["default", "auto", "HistGradientBoosting"] + ["LightGBM"] * (
        importlib.util.find_spec("lightgbm") is not None
    )
    tasks = {f"{t}, {m} seed {s}": (t, m, s) for t in tables for m in methods for s in range(repeats)}
    cells = run.cells(cell, tasks)
    found = {t: {m: [cells[f"{t}, {m} seed {s}"] for s in range(repeats)] for m in methods} for t in tables}
    means = {m: float(np.mean([np.mean(row[m]) for row in found.values()])) for m in methods}
    rows: dict[str, dict[str, Any]] = {
        m: {t: found[t][m] for t in tables} | {"mean": f"{means[m]:.4f}"} for m in methods
    }
    boosted = min(means[m] for m in methods[2:])
    return Report(
        TITLE,
        table("error rate", rows, [*tables, "mean"]),
        f"{repeats} repeats of five folds; in brackets standard errors over repeats, which are of the splits only",
        [
            Verdict(
                "KARMA beside gradient boosting",
                "Table 1",
                "-",
                f"mean error {means['auto']:.4f} (kernels='auto'), {means['default']:.4f} (default), {boosted:.4f} (boosting)",
                NO_CLAIM,
                "-",
                "gradient boosting that takes missing values is younger than the paper",
            )
        ],
        {"the mean error is not above that of gradient boosting by more than .01": means["auto"] <= boosted + 0.01},
        ["LightGBM is not installed."] * ("LightGBM" not in methods),
        draw(found, run),
    )
