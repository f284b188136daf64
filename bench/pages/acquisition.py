"""Which entries to buy to know the class of a row, in AFABench's setting: `LACUNAR_DATA=... python bench/pages/acquisition.py [--quick]`.

Rows begin with nothing and buy 10 entries one by one (hard budgets 3, 5 and 10); a boosting classifier, trained on copies of the training rows with a random share
of the entries hidden, says the class. CUBE has AFABench's law: 20 columns, 8 classes, class k in columns k to k + 2. Methods are those that need no graphics
card: random; one order of the columns for all rows, by mutual information (scikit-learn's) or by permutation importance; the acquisition-conditioned oracle
(AACO, Valancius et al. 2024: loss of nearest neighbours by random sets of columns); `GaussianRegressor` on indicators of the classes; `MeasuringLoop.from_rows`; and
`MeasuringLoop` around `LacunarClassifier`. Figures are shares of right classes; of PhysioNet's patients (2012, set a; 1,500 of set b in the test), of whom one in
seven dies, areas under the ROC curve. Their 41 columns are age, gender, height, weight, the units and the last value of everything that was measured; what is missing cannot
be bought.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import mutual_info_classif
from sklearn.inspection import permutation_importance
from sklearn.metrics import roc_auc_score

from lacunar import LacunarClassifier
from lacunar.datasets import fetch_dataset
from lacunar.lowrank import GaussianRegressor
from lacunar.uncertainty import MeasuringLoop

BUDGETS = (3, 5, 10)
AT_ADMISSION = ["Age", "Gender", "Height", "Weight", "CCU", "CSRU", "SICU"]


def cube(n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Label k: columns k, k + 1 and k + 2 are the bits of k with noise of standard deviation .1, all others noise about .5 of .3."""
    y, rows = rng.integers(8, size=n), np.arange(n)
    X = rng.normal(0.5, 0.3, size=(n, 20))
    for bit in range(3):
        X[rows, y + bit] = (y >> bit & 1) + rng.normal(0, 0.1, size=n)
    return X, y


def patients(part: str, n: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """Rows of patients, drawn of one part of the table, and whether they died."""
    frame, died = fetch_dataset(f"physionet2012-set-{part}", return_X_y=True, as_frame=True)
    last = [name for name in frame.columns if name.endswith("_last") and name != "Weight_last"]
    rows = rng.permutation(len(frame))[:n]
    return frame[AT_ADMISSION + last].to_numpy(dtype=float)[rows], np.asarray(died, dtype=int)[rows]


def problem(name: str, rng: np.random.Generator, n: int) -> tuple[Any, Any, Any, Any]:
    """Training rows and labels, test rows and labels; labels are 0, 1, ..."""
    if name == "CUBE":
        return (*cube(n, rng), *cube(400, rng))
    if name == "PhysioNet":
        return (*patients("a", 4000, rng), *patients("b", 1500, rng))
    if name == "breast cancer":
        X, y = load_breast_cancer(return_X_y=True)
    else:
        data = fetch_dataset(name)
        X, y = np.asarray(data.data, dtype=float), np.unique(np.asarray(data.target), return_inverse=True)[1].ravel()
    order = rng.permutation(len(X))
    train, test = order[: int(0.6 * len(X))], order[int(0.6 * len(X)) :][:400]
    return X[train], y[train], X[test], y[test]


def masked(X: Any, y: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Six copies of every row with a share of the entries hidden, drawn for each."""
    rows = np.tile(X, (6, 1))
    return np.where(rng.random(rows.shape) < rng.random((len(rows), 1)), np.nan, rows), np.tile(y, 6)


class Oracle:
    """AACO: of random sets of columns the one whose nearest training rows predict best says which column is next, the most informative of the set first."""

    def __init__(self, X: Any, y: Any, classifier: Any, order: Any, rng: np.random.Generator) -> None:
        self.scale = np.nanstd(X, axis=0) + 1e-9
        self.X, self.y, self.classifier, self.order, self.rng = X, y, classifier, order, rng

    def __call__(self, rows: Any, neighbours: int = 5, n_sets: int = 12) -> Any:
        m, d = rows.shape
        seen, n_copies = ~np.isnan(rows), n_sets * neighbours
        distance = np.stack([_squares((self.X - row) / self.scale) @ ok for row, ok in zip(rows, seen, strict=True)])
        near = np.argsort(distance + 1e-9 * self.rng.random(distance.shape), axis=1)[:, :neighbours]
        sets = self.rng.random((m, n_sets, d)) < self.rng.uniform(0.05, 0.5, (m, n_sets, 1))
        shown = np.repeat(sets | seen[:, None], neighbours, axis=1).reshape(m * n_copies, d)
        of_copies = np.tile(near, (1, n_sets)).ravel()
        chances = self.classifier.predict_proba(np.where(shown, self.X[of_copies], np.nan))
        loss = -np.log(np.maximum(chances[np.arange(len(chances)), self.y[of_copies]], 1e-6))
        best = loss.reshape(m, n_sets, neighbours).mean(axis=2).argmin(axis=1)
        return self.order * (sets[np.arange(m), best] + 1e-3)


def _squares(deviation: Any) -> Any:
    """Squares, 1 where an entry is missing."""
    return np.nan_to_num(deviation**2, nan=1.0)


def bought(values: Any, full: Any, most: int) -> list[Any]:
    """Rows with nothing but the first 1, 2, ... entries that were bought."""
    rows, steps, there = np.full(full.shape, np.nan), [], ~np.isnan(full)
    for _ in range(min(most, full.shape[1])):
        worth = np.where(np.isnan(rows) & there, np.maximum(values(rows), 0.0) + 1e-12, -1.0)
        best, some = worth.argmax(axis=1), worth.max(axis=1) > 0
        at = np.flatnonzero(some)
        rows[at, best[at]] = full[at, best[at]]
        steps.append(rows.copy())
    return steps


def score(name: str, classifier: Any, rows: Any, truth: Any) -> float:
    """The area under the ROC curve of PhysioNet's patients, else the share of right classes."""
    if name == "PhysioNet":
        return float(roc_auc_score(truth, classifier.predict_proba(rows)[:, 1]))
    return float(np.mean(classifier.predict(rows) == truth))


def scores(name: str, seed: int, n: int, oracle: bool) -> dict[str, list[float]]:
    """Scores at every budget, and milliseconds a row and entry, by method."""
    rng = np.random.default_rng(seed)
    X, y, full, truth = problem(name, rng, n)
    classifier = HistGradientBoostingClassifier(max_iter=100, random_state=0).fit(*masked(X, y, rng))
    information = mutual_info_classif(np.where(np.isnan(X), np.nanmean(X, axis=0), X), y, random_state=0) + 1e-9
    importance = permutation_importance(classifier, X, y, n_repeats=2, random_state=0).importances_mean
    indicators = np.eye(y.max() + 1)[y][:, 1 if y.max() == 1 else 0 :]
    gaussian = GaussianRegressor(shrinkage=0.15 * len(X), tol=1e-3).fit(X, indicators)
    ways = {
        "random": lambda rows: rng.random(rows.shape),
        "permutation importance": lambda rows: np.tile(importance - importance.min(), (len(rows), 1)),
        "mutual information": lambda rows: np.tile(information, (len(rows), 1)),
        "AACO": Oracle(X, y, classifier, information, rng) if oracle else None,
        "GaussianRegressor": gaussian.value_of_measuring,
        "MeasuringLoop": MeasuringLoop.from_rows(X, y).model.value_of_measuring,
        "LacunarClassifier": LacunarClassifier(members=["gaussian"]).fit(X, y).value_of_measuring,
    }
    made = {}
    for way, values in ways.items():
        if values is not None:
            started = time.process_time()
            steps = bought(values, full, max(BUDGETS))
            seconds = time.process_time() - started
            areas = [score(name, classifier, steps[min(budget, len(steps)) - 1], truth) for budget in BUDGETS]
            made[way] = [*areas, 1e3 * seconds / len(full) / len(steps)]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=2000, help="training rows of CUBE")
    parser.add_argument("--quick", action="store_true", help="CUBE alone, few rows, no AACO, one seed")
    options = parser.parse_args()
    names = ("CUBE",) if options.quick else ("CUBE", "breast cancer", "wisconsin", "PhysioNet")
    print("| table | method | 3 entries | 5 entries | 10 entries | ms an entry |\n|---|---|---|---|---|---|")
    for name in names:
        runs = [
            scores(name, seed, 300 if options.quick else options.rows, oracle=not options.quick)
            for seed in range(1 if options.quick else options.seeds)
        ]
        for way in runs[0]:
            *means, ms = np.mean([run[way] for run in runs], axis=0)
            print(f"| {name} | {way} | " + " | ".join(f"{mean:.3f}" for mean in means) + f" | {ms:.1f} |", flush=True)


if __name__ == "__main__":
    main()
