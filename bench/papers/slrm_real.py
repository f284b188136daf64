"""Figure 2's kind of task on the real tables that are there: `LACUNAR_DATA=... python bench/papers/slrm_real.py`.

leukemia, atp1d and ctslice, standardised, a quarter of the entries hidden in training and test (the paper hides them so); mean
squared error over variance of y, mean and standard error over splits. The paper's medians are read off a picture and are
not repeated here; its other tasks are not among the tables.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar.regression import MPCRRegressor, SLRMRegressor, SLRMRegressorCV, SMPCRRegressor

TASKS = ("leukemia", "atp1d", "ctslice")
RIDGES = np.logspace(-3, 6, 19)
HIDDEN = 0.25
MOST_ROWS = 3000


def reader(folder: str) -> Any:
    spec = importlib.util.spec_from_file_location("load", Path(folder) / "load.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load


def models(n: int, D: int) -> dict[str, Any]:
    ranks = [k for k in (2, 5, 10, 20, 40) if k < min(n, D)]
    d = ranks[-1] if len(ranks) < 4 else ranks[3]
    imputed = [StandardScaler(), SimpleImputer(keep_empty_features=True), RidgeCV(RIDGES)]
    iterative = IterativeImputer(max_iter=5, n_nearest_features=min(30, D - 1), random_state=0)
    made: dict[str, Any] = {
        "SLRM (default)": SLRMRegressor(d, random_state=0),
        "SLRM (paper)": SLRMRegressor(min(d, 10), solver="paper", lam1=10.0, max_iter=15, random_state=0),
        "SMPCR": SMPCRRegressor(min(d, 10), max_iter=15, random_state=0),
        "ridge-MPCR": MPCRRegressor(d, ridge="auto", random_state=0),
        "mean + ridge": make_pipeline(*imputed),
        "HistGB": HistGradientBoostingRegressor(random_state=0),
    }
    if D <= 500:
        made["SLRM CV"] = SLRMRegressorCV(ranks, lam1=["inf", 1.0], cv=4, max_iter=50, random_state=0)
        made["iterative + ridge"] = make_pipeline(StandardScaler(), iterative, RidgeCV(RIDGES))
    return made


def one(X: Any, y: Any, seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    if len(y) > MOST_ROWS:
        kept = rng.choice(len(y), MOST_ROWS, replace=False)
        X, y = X[kept], y[kept]
    X = np.where(rng.random(X.shape) < HIDDEN, np.nan, X)
    A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=seed)
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in models(*A.shape).items():
            try:
                found[name] = float(np.mean((model.fit(A, a).predict(B) - b) ** 2) / np.var(b))
            except ValueError as error:
                print(f"{name}: {error}", file=sys.stderr)
                found[name] = float("nan")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--quick", action="store_true", help="one split of the smallest table")
    options = parser.parse_args()
    folder = os.environ.get("LACUNAR_DATA")
    if not folder:
        sys.exit("LACUNAR_DATA is not set: no real tables to read")
    load, lines = reader(folder), []
    for name in TASKS[:1] if options.quick else TASKS:
        X, y, _ = load(name)
        y = np.asarray(y, dtype=np.float64)
        X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=np.float64)
        splits = 1 if options.quick else options.splits
        runs = Parallel(n_jobs=options.jobs)(delayed(one)(X, y, seed) for seed in range(splits))
        for model in runs[0]:
            values = np.array([run[model] for run in runs])
            lines.append(
                f"| {name} {X.shape} | {model} | {values.mean():.3f} ({values.std() / np.sqrt(max(len(values) - 1, 1)):.3f}) |"
            )
            print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    header = "| table | model | MSE / var y |\n|---|---|---|\n"
    (options.out / "slrm_real.md").write_text(header + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
