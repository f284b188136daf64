"""`LacunarRegressor` beside two of its members where each of them wins.

Entries missing at random from a low-rank table (Figure 2 of the KARMA paper: d = 20, rank 10), where completion wins, and blocks of columns
missing (Figure 3: d = 200, rank 20, three blocks), where KARMA does. Mean squared error of a target of unit variance on fresh rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from bench.papers._report import NO_CLAIM, Report, Verdict, by_seed, pictures, save, table
from bench.papers._run import Run
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # lets the next import be
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar import LacunarRegressor

TITLE = "The pool and its members"
BLOCKS = "three blocks of columns"
SHARES = (0.3, 0.5, 0.7, 0.9)
MEMBERS, POOL = ("kernels", "gaussian"), "LacunarRegressor"


def at_random(rng: np.random.Generator, n: int, share: float, d: int = 20, rank: int = 10) -> tuple[Any, Any]:
    """Rows U z and the target w.x; each entry is seen with probability `share`."""
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    X = rng.normal(size=(n, rank)) @ basis.T
    y = X @ rng.normal(size=d)
    return np.where(rng.random(X.shape) < share, X, np.nan), y / y.std()


def blocks(rng: np.random.Generator, n: int, d: int = 200, rank: int = 20) -> tuple[Any, Any]:
    """Each of three blocks of columns is seen with probability 1/3, given that one is."""
    kind = rng.integers(3, size=d)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    X = rng.normal(size=(n, rank)) @ basis.T
    y = X @ rng.normal(size=d)
    patterns = np.array([[(p >> b) & 1 for b in range(3)] for p in range(1, 8)], bool)
    weight = np.array([(1 / 3) ** p.sum() * (2 / 3) ** (3 - p.sum()) for p in patterns])
    seen = patterns[rng.choice(7, size=n, p=weight / weight.sum())][:, kind]
    return np.where(seen, X, np.nan), y / y.std()


def cell(share: float | None, seed: int, n: int, n_test: int) -> dict[str, float]:
    """Test errors of two members, the pool and a peer; `share` None is the blocks."""
    rng = np.random.default_rng(seed)
    X, y = blocks(rng, n + n_test) if share is None else at_random(rng, n + n_test, share)
    near = min(X.shape[1], 40)
    fill = IterativeImputer(max_iter=5, n_nearest_features=near, random_state=0, keep_empty_features=True)
    models = {name: LacunarRegressor(members=[name]) for name in MEMBERS}
    models |= {POOL: LacunarRegressor()}
    models |= {"iterative + ridge": make_pipeline(fill, StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))}
    return {name: np.mean((model.fit(X[:n], y[:n]).predict(X[n:]) - y[n:]) ** 2) for name, model in models.items()}


def draw(rows: dict[str, Any], run: Run) -> Any:
    plt = pictures()
    figure, axis = plt.subplots(figsize=(7, 3.8))
    for method in next(iter(rows.values())):
        axis.plot(list(rows), [np.mean(row[method]) + 1e-6 for row in rows.values()], "o", label=method)
    axis.set_yscale("log")
    axis.set_ylabel("mean squared error, plus 1e-6")
    axis.tick_params(axis="x", labelsize=7)
    axis.legend(fontsize=7)
    return save(figure, run.picture)


def run(run: Run) -> Report:
    seeds, n, n_test = (1, 300, 500) if run.quick else (run.repeats(4), 1000, 2000)
    cases: dict[str, float | None] = {f"at random, {p:g} seen": p for p in (SHARES[1:3] if run.quick else SHARES)}
    cases[BLOCKS] = None
    tasks = {f"{name} seed {s}": (share, s, n, n_test) for name, share in cases.items() for s in range(seeds)}
    rows = by_seed(run.cells(cell, tasks))
    excess = {name: np.mean(row[POOL]) - min(np.mean(row[m]) for m in MEMBERS) for name, row in rows.items()}
    return Report(
        TITLE,
        table("missing", rows, list(next(iter(rows.values())))),
        f"{seeds} seeds, standard errors in brackets; {n} rows to learn, {n_test} to test",
        [
            Verdict(
                "kernels need no completion where blocks of columns are missing; a Gaussian, which completes, is the model where single entries are missing",
                "Sections 1 and 5",
                "-",
                f"the pool is above its better member by {max(excess.values()):.4f} at most",
                NO_CLAIM,
                "-",
                "a pool is younger than the paper",
            )
        ],
        {"the pool costs its better member at most .02": max(excess.values()) <= 0.02 * (1 + run.quick)},
        picture=draw(rows, run),
    )
