"""Intervals under other masks than training's, and what to measure next, on real tables: `python bench/pages/uncertainty.py`.

Intervals: 240 training rows with 30 % of the entries hidden at random (airquality also with its own missing values), test rows with 30 % or 65 % hidden,
level .9. CP-MDA-Exact (Zaffran et al. 2023) is around `GaussianRegressor`, trained on two thirds and calibrated on one.
Laws: five laws (linear, bent, Friedman's, skewed, noise that grows) of eight columns, training rows complete, with 30 % of the entries hidden, at random given two columns, or by their own
values, and test rows as in training or with 30 % or 60 % hidden; interval scores over those of the best of six rivals, and cells whose coverage is within .86 to .94.
Sets: coverage by class of sets of classes with `condition` "missing", "auto" and "class", level .9, on six imbalanced laws (six classes, 1,200 rows) and on tables of `learner_tables.py` with a
share of the test rows' entries hidden.
Measuring: 300 training rows with 30 % hidden; test rows with 75 % hidden buy entries one by one, by `value_of_measuring`, by the largest correlation with y, or at random;
squared error of `GaussianRegressor` over the variance of y.
Loops: `MeasuringLoop` with 3 entries a row around the learner, around `GaussianRegressor`, by the largest correlation with the target and at random, on six laws and a wide one;
400 training rows with 30 % hidden, 400 test rows with 75 % hidden, and the learner predicts for all of them.
Probabilities: log loss and calibration errors on eight tables of `learner_tables.py`, as they are and with a share of the test rows' entries hidden, drawn for every row
between 0 and 90 %.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from learner_tables import table
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from lacunar import KarmaClassifier, KarmaClassifierCV, LacunarClassifier, LacunarRegressor
from lacunar.datasets import fetch_dataset
from lacunar.encode import TableEncoder
from lacunar.lowrank import GaussianRegressor
from lacunar.plotting import CalibrationByMissingDisplay
from lacunar.uncertainty import MaskConformalClassifier, MaskConformalRegressor, MeasuringLoop, value_of_measuring

sys.path.insert(0, str(Path(__file__).parents[2]))  # where the papers' scripts are a package
from bench.papers.conformal_missing import PEERS, Band, boosting, exact, split

LEVEL = 0.9
LABELLED = (
    "hepatitis",
    "horses",
    "cleveland_df",
    "mammographic",
    "wisconsin",
    "movielens_gender",
    "cancer_mar50",
    "digits_quadrants",
)
CLASSIFIERS = {
    "LacunarClassifier": LacunarClassifier,
    "KarmaClassifierCV": KarmaClassifierCV,
    "KarmaClassifier": KarmaClassifier,
    'KarmaClassifier(loss="logistic")': lambda: KarmaClassifier(loss="logistic"),
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def tables(quick: bool) -> dict[str, tuple[Any, Any]]:
    """Complete tables and numeric targets; in a quick run the one that costs least."""
    if quick:
        return {"diabetes": load_diabetes(return_X_y=True)}
    made = {
        "diabetes": load_diabetes(return_X_y=True),
        "friedman": make_friedman1(1500, noise=1.0, random_state=0),
        "wine": load_wine(return_X_y=True),
        "breast": load_breast_cancer(return_X_y=True),
        "NeuMiss": neumiss(),
    }
    try:
        found = fetch_dataset("airquality")
    except (OSError, ValueError, LookupError) as reason:
        print(f"airquality is not here: {reason}", file=sys.stderr)
    else:
        X, y = (
            np.asarray(found.data, dtype=float),
            np.asarray(found.target, dtype=float).reshape(len(found.data), -1)[:, 0],
        )
        rows = ~np.isnan(X).any(axis=1) & ~np.isnan(y)
        made["airquality"] = X[rows], y[rows]
    return {name: (np.asarray(X, dtype=float), np.asarray(y, dtype=float)) for name, (X, y) in made.items()}


def neumiss() -> tuple[Any, Any]:
    law = np.random.default_rng(7)
    B, mean = law.normal(size=(20, 10)), law.normal(size=20)
    X = mean + law.normal(size=(1500, 10)) @ B.T + np.sqrt(law.uniform(0.01, 0.1, 20)) * law.normal(size=(1500, 20))
    y = X.sum(axis=1)
    return X, y + np.sqrt(y.var() / 10) * law.normal(size=1500)


def cut(X: Any, y: Any, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    order = rng.permutation(len(X))
    n = min(n, 2 * len(X) // 3)
    train, test = order[:n], order[n : n + 400]
    hidden = rng.random((n, X.shape[1])) < 0.3
    return np.where(hidden, np.nan, X[train]), y[train], X[test], y[test]


def ends(way: Any, band: Band, X: Any, y: Any, rows: Any) -> Any:
    return np.column_stack(way(band, X, y, rows))


def covered(name: str, X: Any, y: Any, seeds: int) -> None:
    found: dict[str, list[Any]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        some, known, full, target = cut(X, y, 240, rng)
        methods = {
            "ours": MaskConformalRegressor().fit(some, known).predict_interval,
            "ours, any masks": MaskConformalRegressor(masks="any").fit(some, known).predict_interval,
            "ours around boosting": MaskConformalRegressor(boosting()).fit(some, known).predict_interval,
        }
        half = 2 * len(some) // 3
        for peer, kind, way in (("split, boosting", "boosting", split), ("MDA-Exact, Gaussian", "Gaussian", exact)):
            band = Band(kind).fit(some[:half], known[:half])
            methods[peer] = partial(ends, way, band, some[half:], known[half:])
        for share in (0.3, 0.65):
            rows = np.where(rng.random(full.shape) < share, np.nan, full)
            for method, interval in methods.items():
                low, high = interval(rows).T
                wide = (high - low) / y.std()
                inside, count = (low <= target) & (target <= high), np.isnan(rows).sum(axis=1)
                found.setdefault(f"{method} | {share:.0%}", []).append((inside, wide, count))
    for key, runs in found.items():
        inside, wide, count = (np.concatenate(each) for each in zip(*runs, strict=True))
        counts = [
            inside[count == k].mean() for k in np.unique(count) if (count == k).sum() >= min(100, len(count) // 8)
        ]
        finite = np.isfinite(wide)
        numbers = f"{inside.mean():.3f} | {min(counts):.3f} | {wide[finite].mean():.2f} | {1 - finite.mean():.1%}"
        print(f"| {name} | {key} | {numbers} |", flush=True)


# -- five laws --------------------------------------------------------------------------------------------------------

LAWS = ("linear", "bent", "friedman", "skewed", "growing noise")
TRAINING_MASKS = ("none", "30 %", "given two columns", "by own values")
TEST_MASKS = ("as in training", "30 %", "60 %")
LAW_COLUMNS, NESTED_TESTED = 8, 60
ROOT = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(LAW_COLUMNS), np.arange(LAW_COLUMNS))))


def law_rows(law: str, n: int, slopes: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Complete rows and targets."""
    X, noise = rng.normal(size=(n, LAW_COLUMNS)) @ ROOT.T, rng.normal(size=n)
    linear = X @ slopes
    if law == "friedman":
        U = norm.cdf(X)
        mean = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4]
        return X, mean + noise
    if law == "skewed":
        return X, np.exp(0.6 * linear / np.linalg.norm(slopes) + 0.4 * noise)
    if law == "growing noise":
        return X, linear + noise * np.exp(0.6 * X[:, 0])
    return X, linear + 0.5 * noise + (2 * np.sin(2 * X[:, 0]) * X[:, 1] if law == "bent" else 0.0)


def hidden_of(X: Any, mask: str, rng: np.random.Generator) -> Any:
    if mask == "given two columns":
        chance = 0.6 / (1 + np.exp(-1.5 * X[:, :2].mean(axis=1, keepdims=True)))
        return np.where((rng.random(X.shape) < chance) & (np.arange(X.shape[1]) >= 2), np.nan, X)
    if mask == "by own values":
        return np.where(rng.random(X.shape) < 0.6 / (1 + np.exp(-2 * X)), np.nan, X)
    share = {"none": 0.0, "30 %": 0.3, "60 %": 0.6}[mask]
    return np.where(rng.random(X.shape) < share, np.nan, X)


def law_methods(X: Any, y: Any, learner: bool) -> dict[str, Callable[[list[Any]], list[Any]]]:
    """Functions of tables of rows (m, d) that return lower and upper ends of each, (m, 2)."""
    ours: dict[str, Any] = {"MaskConformalRegressor": MaskConformalRegressor().fit(X, y)}
    if learner:
        ours["LacunarRegressor"] = LacunarRegressor(random_state=0).fit(X, y)
    methods: dict[str, Callable[[list[Any]], list[Any]]] = {
        name: lambda tables, model=model: [model.predict_interval(rows) for rows in tables]
        for name, model in ours.items()
    }
    halves = {kind: len(X) // 2 if kind == "CQR" else (2 * len(X)) // 3 for kind, _ in PEERS.values()}
    bands = {kind: Band(kind).fit(X[:half], y[:half]) for kind, half in halves.items()}
    for name, (kind, way) in PEERS.items():
        methods[name] = partial(ends_of_all, way, bands[kind], X[halves[kind] :], y[halves[kind] :])
    return methods


def ends_of_all(way: Any, band: Band, X: Any, y: Any, tables: list[Any]) -> list[Any]:
    """Ends of the rows of every table, which share the work that their masks have in common."""
    return np.split(ends(way, band, X, y, np.vstack(tables)), np.cumsum([len(rows) for rows in tables])[:-1])


def law_cells(
    law: str, mask: str, n: int, seed: int, tested: int, learner: bool
) -> dict[tuple[str, str], tuple[float, float]]:
    """Coverage and mean interval score, by test mask and method."""
    rng = np.random.default_rng([seed, LAWS.index(law), TRAINING_MASKS.index(mask)])
    slopes, cells = rng.normal(size=LAW_COLUMNS), {}
    X, y = law_rows(law, n, slopes, rng)
    trained = hidden_of(X, mask, rng)
    tables, targets = [], []
    for test_mask in TEST_MASKS:
        full, target = law_rows(law, tested, slopes, rng)
        tables.append(hidden_of(full, mask if test_mask == "as in training" else test_mask, rng))
        targets.append(target)
    for name, way in law_methods(trained, y, learner).items():
        some = min(NESTED_TESTED, tested) if "Nested" in name else tested
        intervals = way([rows[:some] for rows in tables])
        for test_mask, (low, high), target in zip(TEST_MASKS, map(np.transpose, intervals), targets, strict=True):
            inside = (low <= target[:some]) & (target[:some] <= high)
            scores = high - low + 20 * np.maximum(np.maximum(low - target[:some], target[:some] - high), 0)
            cells[test_mask, name] = float(inside.mean()), float(scores.mean())
    return cells


def by_laws(
    sizes: Sequence[int], seeds: int, laws: Sequence[str], masks: Sequence[str], tested: int, learner: bool
) -> None:
    """For every size and method: cells in the band, and scores over the best rival's, of means over seeds."""
    for n in sizes:
        cells: dict[tuple[str, ...], list[Any]] = {}
        for law in laws:
            for mask in masks:
                for seed in range(seeds):
                    for (test_mask, name), found in law_cells(law, mask, n, seed, tested, learner).items():
                        cells.setdefault((law, mask, test_mask, name), []).append(found)
        names = list(dict.fromkeys(key[3] for key in cells))
        scores = {key: float(np.mean([score for _, score in found])) for key, found in cells.items()}
        best = {key[:3]: min(scores[(*key[:3], peer)] for peer in PEERS) for key in cells}
        for name in names:
            runs = [coverage for key, found in cells.items() if key[3] == name for coverage, _ in found]
            means = [np.mean([coverage for coverage, _ in found]) for key, found in cells.items() if key[3] == name]
            ratios = {key[:3]: scores[key] / best[key[:3]] for key in cells if key[3] == name}
            finite = [ratio for ratio in ratios.values() if np.isfinite(ratio)]
            worst = max(ratios, key=lambda key: ratios[key])
            print(
                f"| {n} | {name} | {in_band(means):.0%} | {in_band(runs):.0%} | {np.mean(finite):.3f} | "
                f"{ratios[worst]:.2f} ({', '.join(worst)}) | {1 - len(finite) / len(ratios):.0%} |",
                flush=True,
            )


def in_band(coverages: Sequence[float]) -> float:
    return float(np.mean([0.86 <= coverage <= 0.94 for coverage in coverages]))


SHARES = np.array([0.5, 0.25, 0.12, 0.07, 0.04, 0.02])
RARE_TABLES = ("cleveland", "dermatology", "horses", "hepatitis", "mixed_imbalance6")


def imbalanced(n: int, rng: np.random.Generator, means: Any, basis: Any) -> tuple[Any, Any]:
    """Six classes around their means, rows with none, 20 % or 60 % of the entries hidden."""
    y = rng.choice(len(SHARES), size=n, p=SHARES)
    X = means[y] + rng.normal(size=(n, 4)) @ basis + 0.5 * rng.normal(size=(n, 8))
    return np.where(rng.random(X.shape) < rng.choice([0, 0.2, 0.6], (n, 1)), np.nan, X), y


def imbalanced_runs(quick: bool) -> dict[str, list[tuple[Any, Any, Any, Any]]]:
    """Training rows and labels, test rows and labels, of every split of every law and table."""
    runs: dict[str, list[tuple[Any, Any, Any, Any]]] = {}
    for seed in range(1 if quick else 6):
        rng = np.random.default_rng(seed)
        law = 1.3 * rng.normal(size=(6, 8)), rng.normal(size=(4, 8))
        runs[f"law {seed}"] = [(*imbalanced(1200, rng, *law), *imbalanced(4000, rng, *law))]
    for name in () if quick else RARE_TABLES:
        try:
            problem = table(name)
        except (OSError, ValueError, LookupError) as reason:
            print(f"{name} is not here: {reason}", file=sys.stderr)
            continue
        X = np.asarray(TableEncoder().fit(problem.X).transform(problem.X) if hasattr(problem.X, "iloc") else problem.X)
        runs[name] = [(X[train], problem.y[train], X[test], problem.y[test]) for train, test in problem.splits]
    return runs


def in_sets(model: Any, condition: str, rows: Any) -> Any:
    if isinstance(model, MaskConformalClassifier):
        return model.set_params(condition=condition).predict_set(rows)
    return model.predict_set(rows, condition=condition)


def sets_by_class(name: str, runs: list[tuple[Any, Any, Any, Any]]) -> None:
    """Coverage of all rows, of every class, and classes in a set."""
    ways = {
        "MaskConformalClassifier": MaskConformalClassifier,
        "LacunarClassifier": lambda: LacunarClassifier(members=["logistic", "gaussian"]),
    }
    for way, make in ways.items():
        models = [make().fit(X, y) for X, y, _, _ in runs]
        for condition in ("missing", "auto", "class"):
            sets = [in_sets(model, condition, rows) for model, (_, _, rows, _) in zip(models, runs, strict=True)]
            inside = np.concatenate(
                [
                    held[np.arange(len(y)), np.searchsorted(model.classes_, y)]
                    for held, model, (_, _, _, y) in zip(sets, models, runs, strict=True)
                ]
            )
            target = np.concatenate([y for *_, y in runs])
            size = np.concatenate([held.sum(axis=1) for held in sets]).mean()
            by_class = " ".join(f"{inside[target == k].mean():.2f}" for k in np.unique(target))
            print(f"| {name} | {way} | {condition} | {inside.mean():.3f} | {by_class} | {size:.2f} |", flush=True)


def bought(name: str, X: Any, y: Any, seeds: int, steps: int) -> None:
    errors: dict[str, list[float]] = {}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        some, known, full, target = cut(X, y, 300, rng)
        full, target = full[:200], target[:200]
        hidden = rng.random(full.shape) < 0.75
        model = GaussianRegressor().fit(some, known)
        size = np.abs(
            [
                np.corrcoef(some[ok, j], known[ok])[0, 1] if some[ok, j].std() > 0 else 0.0
                for j, ok in enumerate((~np.isnan(some)).T)
            ]
        )
        ways = {
            "random": lambda rows, rng=rng: rng.random(rows.shape),
            "correlation": lambda rows, size=size: np.tile(size, (len(rows), 1)) + 1e-9,
            "one model": lambda rows, model=model: model.value_of_measuring(rows),
            "value_of_measuring": lambda rows, some=some, known=known: value_of_measuring(some, known, rows),
        }
        for way, values in ways.items():
            rows = np.where(hidden, np.nan, full)
            for _ in range(steps):
                missing = np.isnan(rows)
                best = np.argmax(np.where(missing, values(rows), -1.0), axis=1)
                at = np.flatnonzero(missing.any(axis=1))
                rows[at, best[at]] = full[at, best[at]]
            errors.setdefault(way, []).append(float(np.mean((model.predict(rows) - target) ** 2) / y.var()))
    print(
        f"| {name}, {steps} entries | " + " | ".join(f"{np.mean(each):.3f}" for each in errors.values()) + " |",
        flush=True,
    )


class FixedValues(BaseEstimator):
    """Stands in for a model whose values of measuring do not depend on what a row shows."""

    def __init__(self, values: Any) -> None:
        self.values = values
        self.n_features_in_ = values(1).shape[1]

    def fit(self, X: Any, y: Any) -> None:
        """Nothing to learn."""

    def value_of_measuring(self, X: Any, *, cost: Any = None) -> Any:
        return np.where(np.isnan(X), self.values(len(X)), 0.0)


def loop_law(name: str, n: int, seed: int) -> tuple[Any, Any]:
    """Complete rows and numbers: a linear sum of correlated columns, thresholds and products, or a sum of three latent numbers."""
    rng = np.random.default_rng(seed)
    d = 120 if name == "wide low rank" else 12
    if name == "linear":
        mix = np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d)
        X = rng.normal(size=(n, d)) @ mix
        y = X @ rng.normal(size=d)
    elif name == "nonlinear":
        X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.5 * rng.normal(size=(d, d)) / np.sqrt(d))
        y = 2.0 * (X[:, 0] > 0.3) + X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + X[:, 4] + 0.5 * np.exp(0.5 * X[:, 5])
    else:
        latent = rng.normal(size=(n, 3))
        X = latent @ rng.normal(size=(3, d)) + rng.uniform(0.1, 1.5, d) * rng.normal(size=(n, d))
        y = latent @ rng.normal(size=3)
    return X, y + 0.3 * y.std() * rng.normal(size=n)


def looped(name: str, classes: bool, seeds: int) -> None:
    """Squared error over the variance, or share of wrong labels, after three entries a row, and the seconds of the loop around the learner."""
    errors: dict[str, list[float]] = {}
    for seed in range(seeds):
        X, y = loop_law(name, 800, seed)
        target = (y > np.quantile(y, 0.6)).astype(int) if classes else y
        rng = np.random.default_rng(100 + seed)
        rows, known = np.where(rng.random(X[:400].shape) < 0.3, np.nan, X[:400]), target[:400]
        full, truth = X[400:], target[400:]
        arrived = np.where(rng.random(full.shape) < 0.75, np.nan, full)
        kind = LacunarClassifier if classes else LacunarRegressor
        learner = kind(members=["gaussian", "kernels"]).fit(rows, known)
        ok = ~np.isnan(rows)
        size = np.abs([np.corrcoef(rows[ok[:, j], j], known[ok[:, j]])[0, 1] for j in range(rows.shape[1])]) + 1e-9
        models = {
            "random": FixedValues(lambda m, rng=rng, d=full.shape[1]: rng.random((m, d))),
            "correlation": FixedValues(lambda m, size=size: np.tile(size, (m, 1))),
            "GaussianRegressor": GaussianRegressor().fit(rows, known.astype(float)),
            "learner": learner,
        }
        for way, model in models.items():
            loop = MeasuringLoop(model, budget=3)
            loop.add(arrived)
            predicted = learner.predict(loop.run(lambda row, column, full=full: full[row, column]).rows_)
            error = np.mean(predicted != truth) if classes else np.mean((predicted - truth) ** 2) / truth.var()
            errors.setdefault(way, []).append(float(error))
    task = "classes" if classes else "numbers"
    print(f"| {name}, {task} | " + " | ".join(f"{np.mean(each):.3f}" for each in errors.values()) + " |", flush=True)


def told(name: str, way: str) -> list[list[float]]:
    """Log loss, calibration error and the same by number missing: of the test rows as they are, and with more of them hidden."""
    problem, rng = table(name), np.random.default_rng(0)
    found: dict[bool, list[Any]] = {False: [], True: []}
    for train, test in problem.splits:
        some, rows = (problem.X.iloc[part] if hasattr(problem.X, "iloc") else problem.X[part] for part in (train, test))
        if hasattr(some, "iloc"):
            encoder = TableEncoder().fit(some)
            some, rows = encoder.transform(some), encoder.transform(rows)
        model = CLASSIFIERS[way]().fit(some, problem.y[train])
        hidden = rng.random(rows.shape) < rng.uniform(0, 0.9, (len(rows), 1))
        for more in found:
            given = np.where(hidden, np.nan, rows) if more else np.asarray(rows, dtype=float)
            found[more].append((given, problem.y[test], model.predict_proba(given)))
    made = []
    for parts in found.values():
        rows, y, shares = (np.concatenate(each) for each in zip(*parts, strict=True))
        code = np.searchsorted(np.unique(problem.y), y)
        losses = -np.log(np.maximum(shares[np.arange(len(y)), code], 1e-7))
        errors = []
        for n_bins in (1, 4):
            display = CalibrationByMissingDisplay.from_predictions(rows, y, {way: shares}, n_bins=n_bins)
            sizes = [len(group) for group in display.groups()]
            errors.append(float(np.average(display.errors()[way], weights=sizes)))
        made.append([float(losses.mean()), *errors])
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000], help="training rows of the laws")
    parser.add_argument("--tested", type=int, default=1000, help="test rows of the laws")
    parser.add_argument("--no-learner", action="store_true", help="laws without LacunarRegressor")
    parser.add_argument("--only", choices=["intervals", "laws", "sets", "measuring", "loops", "probabilities"])
    parser.add_argument("--quick", action="store_true", help="one table, one seed")
    asked = parser.parse_args()
    sets, asked.seeds = tables(asked.quick), 1 if asked.quick else asked.seeds
    if asked.only in (None, "intervals"):
        print(
            "| table | method | hidden in test | coverage | least by count | width, sd of y | infinite |\n|---|---|---|---|---|---|---|"
        )
        for name in ("diabetes", "friedman", "airquality"):
            if name in sets:
                covered(name, *sets[name], asked.seeds)
    if asked.only in (None, "laws"):
        print(
            "\n| rows | method | cells in band | runs in band | score over the best rival's | worst | infinite cells |"
        )
        print("|---|---|---|---|---|---|---|")
        quick = ([120], 1, LAWS[:1], TRAINING_MASKS[:1], 20, False)
        full = (asked.sizes, asked.seeds, LAWS, TRAINING_MASKS, asked.tested, not asked.no_learner)
        with warnings.catch_warnings(), threadpool_limits(1):  # threads of boosting wait for one another on few rows
            warnings.simplefilter("ignore", UserWarning)  # of rows that lack other entries, which is what is measured
            by_laws(*(quick if asked.quick else full))
    if asked.only in (None, "sets"):
        print("\n| table | method | condition | coverage | by class | classes in a set |\n|---|---|---|---|---|---|")
        for name, runs in imbalanced_runs(asked.quick).items():
            sets_by_class(name, runs)
    if asked.only in (None, "measuring"):
        print("\n| table | random | correlation | one model | value_of_measuring |\n|---|---|---|---|---|")
        for name, (X, y) in sets.items():
            bought(name, X, y, asked.seeds, 2 if name in ("NeuMiss", "wine") else 3)
    if asked.only in (None, "loops"):
        print("\n| law | random | correlation | GaussianRegressor | learner |\n|---|---|---|---|---|")
        for name in ("linear",) if asked.quick else ("linear", "nonlinear", "low rank", "wide low rank"):
            for classes in (False, True):
                looped(name, classes, asked.seeds)
    if asked.only in (None, "probabilities"):
        print(
            "\n| table | classifier | log loss, calibration error, by number missing | with more hidden |\n|---|---|---|---|"
        )
        means: dict[str, list[Any]] = {}
        for name in ("cancer_mar50",) if asked.quick else LABELLED:
            for way in list(CLASSIFIERS)[2:3] if asked.quick else CLASSIFIERS:
                means.setdefault(way, []).append(told(name, way))
                say(name, way, means[way][-1])
        for way, each in means.items():
            say("mean", way, np.mean(each, axis=0).tolist())


def say(name: str, way: str, made: list[list[float]]) -> None:
    print(f"| {name} | {way} | " + " | ".join(", ".join(f"{v:.3f}" for v in part) for part in made) + " |", flush=True)


if __name__ == "__main__":
    main()
