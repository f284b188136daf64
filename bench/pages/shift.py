"""Rows to predict that lack other entries than the training rows did: `python bench/pages/shift.py`.

Intervals: `LacunarRegressor.predict_interval` at level .9, trained on complete rows or with 30 % of the entries hidden at random, tested with 30 % and 60 % hidden at random, by
other columns, or by their own values, on laws of eight columns: linear, nonlinear, two more with errors that depend on a column and with heavy tails, and Friedman's.
Sets (`--sets`): of `LacunarClassifier`, of thirds of the same y, the log loss, the error of calibration of the likeliest class, and coverage and size of `predict_set`.
Widths are in standard deviations of y; the score is the width plus 2 / (1 - level) times how far y is outside.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from lacunar import LacunarClassifier, LacunarRegressor

LEVEL, COLUMNS, SLOPE = 0.9, 8, 2.0
ROOT = np.linalg.cholesky(0.5 ** np.abs(np.subtract.outer(np.arange(COLUMNS), np.arange(COLUMNS))))
Draw = Callable[[int], tuple[Any, Any]]


def linear(X: Any, w: Any, rng: np.random.Generator) -> Any:
    return X @ w + 0.5 * rng.normal(size=len(X))


def nonlinear(X: Any, w: Any, rng: np.random.Generator) -> Any:
    return X @ w + 2 * np.sin(2 * X[:, 0]) * X[:, 1] + 0.5 * rng.normal(size=len(X))


def heteroscedastic(X: Any, w: Any, rng: np.random.Generator) -> Any:
    return X @ w + (0.2 + np.abs(X[:, 0])) * rng.normal(size=len(X))


def heavy(X: Any, w: Any, rng: np.random.Generator) -> Any:
    return X @ w + 0.5 * rng.standard_t(3, size=len(X))


def friedman(X: Any, w: Any, rng: np.random.Generator) -> Any:
    U = ndtr(X)
    smooth = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2
    return smooth + 10 * U[:, 3] + 5 * U[:, 4] + rng.normal(size=len(X))


LAWS = {each.__name__: each for each in (linear, nonlinear, heteroscedastic, heavy, friedman)}


def drawn(law: str, rng: np.random.Generator) -> Draw:
    """Rows and targets of a law; of heavy tails the columns, too, are t with four degrees of freedom."""
    w = rng.normal(size=COLUMNS)

    def draw(n: int) -> tuple[Any, Any]:
        X = rng.normal(size=(n, COLUMNS)) @ ROOT.T
        if law == "heavy":
            X /= np.sqrt(rng.chisquare(4, size=(n, 1)) / 4)
        return X, LAWS[law](X, w, rng)

    return draw


def hidden(X: Any, share: float, mechanism: str, rng: np.random.Generator) -> Any:
    """Rows with a share of their entries missing: at random, by the first quarter of the columns, or large values of each column."""
    chances = np.zeros(X.shape)
    if mechanism == "MCAR":
        chances[:] = share
    elif mechanism == "MAR":
        seen = max(X.shape[1] // 4, 1)
        chances[:, seen:] = _logistic(X[:, :seen].mean(axis=1), share * X.shape[1] / (X.shape[1] - seen))[:, None]
    else:
        chances[:] = np.column_stack([_logistic(column, share) for column in X.T])
    return np.where(rng.random(X.shape) < chances, np.nan, X)


def _logistic(values: Any, share: float) -> Any:
    """Chances that rise with the values and have a mean of `share`."""
    scaled = SLOPE * (values - values.mean()) / values.std()
    return expit(scaled + brentq(lambda shift: expit(scaled + shift).mean() - share, -30.0, 30.0))


def intervals(law: str, n: int, trained: float, seed: int) -> tuple[list[list[float]], float]:
    """For every test the coverage, the width and the score, and CPU seconds of the fit."""
    rng = np.random.default_rng(seed)
    draw = drawn(law, rng)
    X, y = draw(n)
    start = process_time()
    model = LacunarRegressor(random_state=0).fit(hidden(X, trained, "MCAR", rng), y)
    seconds = process_time() - start
    figures = []
    for mechanism, share in tests(trained):
        rows, target = draw(2000)
        low, high = model.predict_interval(hidden(rows, share, mechanism, rng), LEVEL).T
        outside = np.maximum(np.maximum(low - target, target - high), 0)
        score = high - low + 2 / (1 - LEVEL) * outside
        figures.append([np.mean(outside == 0), np.mean(high - low) / y.std(), np.mean(score) / y.std()])
    return figures, seconds


def tests(trained: float) -> list[tuple[str, float]]:
    own = [("MCAR", trained)]
    return own + [(mechanism, share) for mechanism in ("MCAR", "MAR", "self") for share in (0.3, 0.6)][(trained > 0) :]


def print_intervals(laws: list[str], sizes: list[int], seeds: int, shares: list[float]) -> None:
    print(
        "| trained with | law | n | test | coverage by seed | mean | width | score |\n|---|---|---|---|---|---|---|---|"
    )
    for trained in shares:
        below = cells = 0
        for law in laws:
            for n in sizes:
                runs, seconds = zip(*(intervals(law, n, trained, seed) for seed in range(seeds)), strict=True)
                for k, (mechanism, share) in enumerate(tests(trained)):
                    coverage, width, score = np.array([run[k] for run in runs]).T
                    seen = " ".join(f"{each:.2f}" for each in coverage)
                    numbers = f"{coverage.mean():.3f} | {width.mean():.2f} | {score.mean():.2f}"
                    print(f"| {trained:.0%} | {law} | {n} | {mechanism} {share:.0%} | {seen} | {numbers} |")
                    if share > trained:
                        below, cells = below + int((coverage < 0.86).sum()), cells + len(coverage)
                print(f"{np.mean(seconds):.2f} CPU seconds a fit", flush=True)
        print(f"{below} of {cells} coverages of rows that lack more are below .86")


def sets(law: str, n: int, trained: float, seed: int) -> list[list[float]]:
    """For every test log loss, calibration error, coverage and size of the sets."""
    rng = np.random.default_rng(seed)
    draw = drawn(law, rng)
    X, y = draw(n)
    cuts = np.quantile(y, [1 / 3, 2 / 3])
    model = LacunarClassifier(random_state=0).fit(hidden(X, trained, "MCAR", rng), np.digitize(y, cuts))
    figures = []
    for mechanism, share in tests(trained):
        rows, target = draw(2000)
        labels, rows = np.digitize(target, cuts), hidden(rows, share, mechanism, rng)
        chances, inside = model.predict_proba(rows), model.predict_set(rows, LEVEL)
        own = np.arange(len(labels))
        loss = -np.log(np.maximum(chances[own, labels], 1e-15)).mean()
        figures.append(
            [loss, calibration_error(chances, labels), inside[own, labels].mean(), inside.sum(axis=1).mean()]
        )
    return figures


def calibration_error(chances: Any, labels: Any) -> float:
    """Mean distance of the likeliest class's probability from how often it is right, in ten bins of as many rows."""
    right, likeliest = chances.argmax(axis=1) == labels, chances.max(axis=1)
    bins = np.array_split(np.argsort(likeliest), 10)
    return float(np.mean([abs(right[rows].mean() - likeliest[rows].mean()) for rows in bins]))


def print_sets(laws: list[str], sizes: list[int], seeds: int, shares: list[float]) -> None:
    print("| trained with | law | n | test | log loss | calibration error | coverage by seed | mean | size |\n|---|---|---|---|---|---|---|---|---|")  # fmt: skip
    for trained in shares:
        for law in laws:
            for n in sizes:
                runs = [sets(law, n, trained, seed) for seed in range(seeds)]
                for k, (mechanism, share) in enumerate(tests(trained)):
                    loss, error, coverage, size = np.array([run[k] for run in runs]).T
                    seen = " ".join(f"{each:.2f}" for each in coverage)
                    numbers = (
                        f"{loss.mean():.3f} | {error.mean():.3f} | {seen} | {coverage.mean():.3f} | {size.mean():.2f}"
                    )
                    print(f"| {trained:.0%} | {law} | {n} | {mechanism} {share:.0%} | {numbers} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--laws", nargs="+", default=list(LAWS))
    parser.add_argument("--trained", type=float, nargs="+", default=[0.0, 0.3], help="shares hidden in training")
    parser.add_argument("--sets", action="store_true", help="probabilities and sets of the classifier")
    parser.add_argument("--quick", action="store_true", help="one law, one seed")
    wish = parser.parse_args()
    if wish.quick:
        wish.seeds, wish.sizes, wish.laws, wish.trained = 1, [200], ["linear"], [0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the rows are unlike those of training
        (print_sets if wish.sets else print_intervals)(wish.laws, wish.sizes, wish.seeds, wish.trained)


if __name__ == "__main__":
    main()
