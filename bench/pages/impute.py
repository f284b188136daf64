"""Filling tables: what hidden entries come back as, how often pooled intervals hold the truth, and CPU seconds.

    OMP_NUM_THREADS=1 python bench/pages/impute.py [--only hidden|coverage|speed] [--quick]

"hidden": entries of real tables are hidden at random and by other columns; the root mean squared error in standard deviations of the
columns, of `lacunar.impute.Imputer` beside `IterativeImputer` of scikit-learn with BayesianRidge and with ExtraTrees, and `KNNImputer`.
"coverage": intervals of nominal 95 % for five coefficients, n=200, 33 % missing at random in three columns. "speed": 20 draws, 10 sweeps.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, KNNImputer
from sklearn.preprocessing import StandardScaler

from lacunar.datasets import hide_mar, hide_mcar
from lacunar.impute import Imputer, MultipleImputer

# -- entries that were hidden -------------------------------------------------------------------------------------------


def trees() -> Any:
    forest = ExtraTreesRegressor(50, min_samples_leaf=2, random_state=0)
    return IterativeImputer(forest, max_iter=5, random_state=0)


FILLERS: dict[str, Callable[[], Any]] = {
    "lacunar": lambda: Imputer(random_state=0),
    "iterative ridge": lambda: IterativeImputer(random_state=0),
    "iterative trees": trees,
    "neighbours": lambda: KNNImputer(),
}


def tables(quick: bool) -> Iterator[tuple[str, Any]]:
    """Complete tables of numbers, at most 1,000 rows, in standard deviations."""
    loaders: dict[str, Callable[[], Any]] = {
        "iris": lambda: datasets.load_iris().data,
        "wine": lambda: datasets.load_wine().data,
        "diabetes": lambda: datasets.load_diabetes(scaled=False).data,
        "breast cancer": lambda: datasets.load_breast_cancer().data,
        "linnerud": lambda: np.hstack(datasets.load_linnerud(return_X_y=True)),
        "digits": lambda: datasets.load_digits().data[:, 18:46],
        "friedman": lambda: np.column_stack(datasets.make_friedman1(600, 6, random_state=0)),
        "spiral": lambda: np.column_stack(datasets.make_swiss_roll(600, noise=0.3, random_state=0)),
    }
    for name in list(loaders)[: 3 if quick else None]:
        X = np.asarray(loaders[name](), dtype=float)[:1000]
        yield name, StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])


def hidden(quick: bool) -> None:
    ways = {"MCAR 10 %": 0.1, "MCAR 30 %": 0.3, "MCAR 60 %": 0.6, "MAR 30 %": 0.3}
    print(f"{'table':15}{'mechanism':12}" + "".join(f"{name:>17}" for name in FILLERS))
    errors, seconds = [], []
    for name, X in tables(quick):
        for way, share in ways.items():
            hide = hide_mar if way.startswith("MAR") else hide_mcar
            seen = np.asarray(hide(X, 1 - share, random_state=0).data)
            mask = np.isnan(seen) & ~np.isnan(X)
            row, cost = [], []
            for make in FILLERS.values():
                begun = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    filled = make().fit_transform(seen)
                cost.append(time.process_time() - begun)
                row.append(float(np.sqrt(np.mean((filled - X)[mask] ** 2))) if filled.shape == X.shape else np.nan)
            errors.append(row)
            seconds.append(cost)
            print(
                f"{name:15}{way:12}" + "".join(f"{e:9.3f} {s:6.1f}s" for e, s in zip(row, cost, strict=True)),
                flush=True,
            )
    table = np.array(errors)
    ranks = table.argsort(axis=1).argsort(axis=1) + 1.0
    near = table <= np.nanmin(table, axis=1, keepdims=True) + 0.02
    for title, values in (
        ("mean rank", ranks.mean(0)),
        ("within .02 of the best", near.mean(0)),
        ("median s", np.median(seconds, axis=0)),
    ):
        print(f"{title:27}" + "".join(f"{value:17.2f}" for value in values))


# -- coverage -----------------------------------------------------------------------------------------------------------

BETA = np.array([0.5, 1.0, -1.0, 0.5, 0.0])


def regression(table: Any) -> tuple[Any, Any, float]:
    """Coefficients of the last column on the others, their covariance and degrees of freedom."""
    A = np.column_stack([np.ones(len(table)), table[:, :-1]])
    inverse, df = np.linalg.inv(A.T @ A), len(table) - A.shape[1]
    coef = inverse @ A.T @ table[:, -1]
    return coef, inverse * np.sum((table[:, -1] - A @ coef) ** 2) / df, df


def draw_table(rng: Any, n: int = 200) -> Any:
    """Four columns of correlation .5 and what follows from them; a third of three columns missing by the other two."""
    X = rng.multivariate_normal(np.zeros(4), 0.5 * np.ones((4, 4)) + 0.5 * np.eye(4), size=n)
    y = BETA[0] + X @ BETA[1:] + 1.5 * rng.normal(size=n)
    Z = np.column_stack([X, y])
    chance = 1 / (1 + np.exp(1.1 - 0.8 * X[:, 0] - 0.25 * y))
    for j in (1, 2, 3):
        Z[rng.random(n) < chance, j] = np.nan
    return Z


def coverage(quick: bool) -> None:
    repeats = 50 if quick else 500
    for method in ("pmm", "norm"):
        rng, hits, widths = np.random.default_rng(4242), [], []
        for k in range(repeats):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pooled = MultipleImputer(method=method, random_state=k).fit(draw_table(rng)).analyse(regression)
            ends = pooled.conf_int()
            hits.append((ends[:, 0] <= BETA) & (ends[:, 1] >= BETA))
            widths.append(ends[:, 1] - ends[:, 0])
        shares = " ".join(f"{share:.3f}" for share in np.mean(hits, axis=0))
        print(
            f"{method:5} coverage {shares}, mean {np.mean(hits):.3f}, width {np.mean(widths):.3f}, {repeats} tables",
            flush=True,
        )


# -- seconds ------------------------------------------------------------------------------------------------------------


def wide_table(n: int, p: int, mixed: bool) -> Any:
    """Five factors; with `mixed` a fifth of the columns booleans and a fifth four levels; 30 % missing."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = 0.6 * rng.normal(size=(n, 5)) @ rng.normal(size=(5, p)) + rng.normal(size=(n, p))
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(p)])
    for j in range(p if mixed else 0):
        if j % 5 == 0:
            frame[f"c{j}"] = pd.array(X[:, j] > 0, dtype="boolean")
        elif j % 5 == 1:
            frame[f"c{j}"] = pd.Categorical(np.array(list("abcd"))[np.digitize(X[:, j], [-1, 0, 1])])
    return frame.mask(rng.random((n, p)) < 0.3)


def speed(quick: bool) -> None:
    for n, p, mixed in ((200, 5, False), (2000, 20, False), (2000, 20, True), (10_000, 50, False), (10_000, 50, True))[
        : 3 if quick else None
    ]:
        frame = wide_table(n, p, mixed)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tables = sum(1 for _ in MultipleImputer().fit(frame).draws())
        print(
            f"{n} x {p}{' mixed' if mixed else ''}: {tables} draws in {time.process_time() - begun:.2f} CPU s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["hidden", "coverage", "speed"])
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    for run in (hidden, coverage, speed):
        if args.only in (None, run.__name__):
            run(args.quick)


if __name__ == "__main__":
    main()
