"""Does the learner say that rows to predict lack other entries than the training rows did? `python bench/pages/mask_change.py`.

Of batches of 200 rows, whose entries are missing by one of seven mechanisms, the share of which `LacunarClassifier` warns that was trained with one of the
seven: on the diagonal false alarms. "MCAR 30 in part" hides at random what "MAR 30" hides by the first quarter of the columns: the same columns, the same share.
Then the squared error, in variances of y, and the coverage of 90 % intervals of `LacunarRegressor`, trained with one mechanism and tested with another.
With LACUNAR_DATA also the false alarms on tables of `bench/pages/learner_tables.py`, split at random.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from learner_tables import table
from shift import LEVEL, drawn, hidden
from sklearn.utils import _safe_indexing

from lacunar import LacunarClassifier, LacunarRegressor

BATCH = 200
HIDE: dict[str, Callable[[Any, np.random.Generator], Any]] = {
    "complete": lambda X, rng: X,
    "MCAR 30": lambda X, rng: hidden(X, 0.3, "MCAR", rng),
    "MCAR 60": lambda X, rng: hidden(X, 0.6, "MCAR", rng),
    "MAR 30": lambda X, rng: hidden(X, 0.3, "MAR", rng),
    "MCAR 30 in part": lambda X, rng: in_part(X, 0.3, rng),
    "self 30": lambda X, rng: hidden(X, 0.3, "self", rng),
    "self 60": lambda X, rng: hidden(X, 0.6, "self", rng),
}
TABLES = ["hepatitis", "horses", "cleveland_df", "mammographic", "dermatology", "wisconsin", "marketing3k", "airquality3k",
          "movielens_gender", "digits_quadrants", "mixed_class", "mixed_informative"]  # fmt: skip


def in_part(X: Any, share: float, rng: np.random.Generator) -> Any:
    seen = max(X.shape[1] // 4, 1)
    missing = rng.random(X.shape) < share * X.shape[1] / (X.shape[1] - seen)
    missing[:, :seen] = False
    return np.where(missing, np.nan, X)


def rows_of(law: str, n: int, d: int, rng: np.random.Generator) -> Any:
    """Columns whose neighbours correlate by a half; heavy tails are t with three degrees of freedom, and of "mixed" ones every third is a rare yes, and every third lognormal."""
    root = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    X = rng.normal(size=(n, d)) @ root.T
    if law == "heavy":
        X /= np.sqrt(rng.chisquare(3, size=(n, 1)) / 3)
    if law == "mixed":
        X[:, 1::3] = X[:, 1::3] > 1
        X[:, 2::3] = np.exp(1.5 * X[:, 2::3])
    return X


def warns(model: Any, X: Any) -> bool:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(X)
    return any("lack other entries" in str(warning.message) for warning in caught)


def fitted(X: Any, y: Any) -> Any:
    """The quickest member will do: all learners compare alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LacunarClassifier(members=["gaussian"], cv=2).fit(X, y)


def rates(law: str, n: int, d: int, n_tables: int, n_batches: int) -> Any:
    """Shares of batches with a warning, (mechanisms of training, mechanisms of the batch)."""
    said = np.zeros((len(HIDE), len(HIDE)))
    for seed in range(n_tables):
        rng = np.random.default_rng(seed)
        complete = rows_of(law, n + n_batches * BATCH, d, rng)
        y = complete.sum(axis=1) > np.median(complete.sum(axis=1))
        versions = [
            hide(complete, rng) for hide in HIDE.values()
        ]  # whole, so that a mechanism is one for all of its rows
        for trained, training in enumerate(versions):
            model = fitted(training[:n], y[:n])
            for new, rows in enumerate(versions):
                batches = rows[n:].reshape(n_batches, BATCH, d)
                said[trained, new] += np.mean([warns(model, batch) for batch in batches]) / n_tables
    return said


def print_rates(laws: list[str], sizes: list[int], columns: list[int], n_tables: int, n_batches: int) -> None:
    every = []
    for law in laws:
        for d in columns:
            for n in sizes:
                said = rates(law, n, d, n_tables, n_batches)
                every.append(said)
                own, other = np.diag(said), said[~np.eye(len(said), dtype=bool)]
                print(f"{law}, {d} columns, {n} training rows: warned of {other.mean():.3f} (least {other.min():.2f}), false alarms {own.mean():.3f}", flush=True)  # fmt: skip
    print("| trained \\ asked | " + " | ".join(HIDE) + " |\n|---|" + "---|" * len(HIDE))
    for name, line in zip(HIDE, np.mean(every, axis=0), strict=True):
        print(f"| {name} | " + " | ".join(f"{share:.3f}" for share in line) + " |")


def print_errors(seeds: int, n: int) -> None:
    """What another mechanism costs `LacunarRegressor`, on the linear law of `shift.py`."""
    ways = [name for name in HIDE if "M" not in name or ("MCAR" in name and "part" not in name)]
    figures = np.zeros((len(ways), len(ways), 2))
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        draw = drawn("linear", rng)
        for trained, way in enumerate(ways):
            X, y = draw(n)
            model = LacunarRegressor(random_state=0).fit(HIDE[way](X, rng), y)
            for new, other in enumerate(ways):
                X, y = draw(2000)
                rows = HIDE[other](X, rng)
                low, high = model.predict_interval(rows, LEVEL).T
                error = np.mean((y - model.predict(rows)) ** 2) / y.var()
                figures[trained, new] += np.array([error, np.mean((low <= y) & (y <= high))]) / seeds
    print("| trained \\ asked | " + " | ".join(ways) + " |\n|---|" + "---|" * len(ways))
    for way, line in zip(ways, figures, strict=True):
        print(f"| {way} | " + " | ".join(f"{error:.2f}, {coverage:.2f}" for error, coverage in line) + " |")


def print_tables(names: list[str], splits: int) -> None:
    alarms = 0
    for name in names:
        X = table(name).X
        n = X.shape[0]
        y = np.arange(n) % 2
        said = []
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(n)
            model = fitted(_safe_indexing(X, order[: n * 2 // 3]), y[: n * 2 // 3])
            said.append(warns(model, _safe_indexing(X, order[n * 2 // 3 :])))
        alarms += sum(said)
        print(f"{name}: {sum(said)} of {splits} splits at random", flush=True)
    print(f"{alarms} of {splits * len(names)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--laws", nargs="+", default=["gaussian", "heavy", "mixed"])
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 2000])
    parser.add_argument("--columns", type=int, nargs="+", default=[5, 8, 30])
    parser.add_argument("--tables", type=int, default=2, help="tables to learn from a law")
    parser.add_argument("--batches", type=int, default=10, help="batches a table")
    parser.add_argument("--splits", type=int, default=20, help="of every real table")
    parser.add_argument("--seeds", type=int, default=3, help="of the errors")
    parser.add_argument("--only", choices=["laws", "errors", "real"], help="one part")
    parser.add_argument("--quick", action="store_true", help="one law, one table")
    wish = parser.parse_args()
    if wish.quick:
        wish.laws, wish.sizes, wish.columns, wish.tables, wish.batches, wish.only = (
            ["gaussian"],
            [300],
            [5],
            1,
            2,
            "laws",
        )
    if wish.only in (None, "laws"):
        print_rates(wish.laws, wish.sizes, wish.columns, wish.tables, wish.batches)
    if wish.only in (None, "errors"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that entries are missing otherwise
            print_errors(wish.seeds, 500)
    if wish.only in (None, "real") and "LACUNAR_DATA" in os.environ:
        print_tables(TABLES, wish.splits)


if __name__ == "__main__":
    main()
