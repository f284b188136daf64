"""`LacunarClassifier` and `LacunarRegressor` on large tables beside gradient boosting: loss of new rows, CPU seconds, memory.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python bench/pages/large.py [--world thresholds,categories] [--rows N]
        [--learners lacunar,lightgbm] [--repeats 3] [--report] [--quick]

Worlds: thresholds and products in 20 columns, 20 % missing at random (300,000 and a million rows); 15 columns of which three are
categories (200,000); 100 columns of rank 8 with labels and with numbers (100,000); the sparse table of `million.py` (a million
rows of 200 columns, 30 observed). The loss is the log loss of 50,000 new rows, or their mean squared error over the variance of the
numbers. Every fit has a process of its own; its peak memory is above that of the table and the imported packages. Repeats draw the
table and the held-out part anew. LightGBM and HistGradientBoosting have 500 trees and otherwise their own settings; LightGBM runs
where it is installed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from million import problem
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from lacunar import LacunarClassifier, LacunarRegressor

NEW_ROWS, TREES, LEAST = 50_000, 500, 1e-7


class World(NamedTuple):
    """Rows to learn from, rows to predict, and whether their targets are classes."""

    X: Any
    y: Any
    X_new: Any
    y_new: Any
    classes: bool

    @classmethod
    def split(cls, X: Any, y: Any, n: int, classes: bool) -> World:
        take = X.iloc.__getitem__ if isinstance(X, pd.DataFrame) else X.__getitem__
        return cls(take(slice(0, n)), y[:n], take(slice(n, len(y))), y[n:], classes)


def with_gaps(X: Any, share: float, rng: Any) -> Any:
    X[rng.random(X.shape) < share] = np.nan
    return X


def labels_of(score: Any, rng: Any) -> Any:
    return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(np.int64)


def thresholds(n: int, seed: int) -> World:
    rng, m = np.random.default_rng(seed), n + NEW_ROWS
    X = rng.normal(size=(m, 20))
    score = 1.6 * np.sign(X[:, :6] - [0.0, 0.5, -0.5, 1.0, -1.0, 0.2]) @ [1.0, -0.8, 0.6, 0.9, -0.7, 0.5]
    score += 1.6 * (X[:, 6] * X[:, 7] - X[:, 8] * X[:, 9]) + 1.5 * (X[:, 10] > 0) * X[:, 11]
    y = labels_of(score, rng)
    return World.split(with_gaps(X, 0.2, rng), y, n, True)


def categories(n: int, seed: int) -> World:
    rng, m = np.random.default_rng(seed), n + NEW_ROWS
    X = rng.normal(size=(m, 12))
    levels = [rng.integers(size, size=m) for size in (5, 12, 40)]
    effects = [rng.normal(size=size) for size in (5, 12, 40)]
    score = sum(effect[level] for effect, level in zip(effects, levels, strict=True))
    score += 1.2 * np.sign(X[:, 0] - 0.3) + 1.2 * (levels[0] == 1) * np.sign(X[:, 1]) + 0.8 * X[:, 2] * (levels[1] < 4)
    y = labels_of(score, rng)
    table = pd.DataFrame(with_gaps(X, 0.15, rng), columns=[f"x{j}" for j in range(12)])
    for k, level in enumerate(levels):
        text = np.array([f"L{v}" for v in range(40)], dtype=object)[level]
        text[rng.random(m) < 0.1] = None
        table[f"c{k}"] = pd.Categorical(text)
    return World.split(table, y, n, True)


def low_rank(n: int, seed: int, classes: bool) -> World:
    rng, m = np.random.default_rng(seed), n + NEW_ROWS
    latent = rng.normal(size=(m, 8))
    X = latent @ rng.normal(size=(8, 100)) / np.sqrt(8) + 0.5 * rng.normal(size=(m, 100))
    a, b, c = (v / np.linalg.norm(v) for v in rng.normal(size=(3, 8)))
    score = latent @ a + (latent @ b) * (latent @ c) + np.sin(2 * latent[:, 0])
    score /= score.std()
    y = labels_of(8.0 * score, rng) if classes else score + 0.25 * rng.normal(size=m)
    return World.split(with_gaps(X, 0.4, rng), y, n, classes)


def sparse(n: int, seed: int) -> World:
    X, y = problem(n + NEW_ROWS, seed)
    return World.split(X, y.astype(np.int64), n, True)


WORLDS = {
    "thresholds": (thresholds, 300_000),
    "million": (thresholds, 1_000_000),
    "categories": (categories, 200_000),
    "low_rank": (lambda n, seed: low_rank(n, seed, True), 100_000),
    "low_rank_numbers": (lambda n, seed: low_rank(n, seed, False), 100_000),
    "sparse": (sparse, 1_000_000),
}


def dense(X: Any) -> Any:
    return X.to_dense() if hasattr(X, "to_dense") else X


def histgb(X: Any, classes: bool, seed: int) -> Any:
    make = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return make(max_iter=TREES, early_stopping=False, categorical_features="from_dtype", random_state=seed)


def lightgbm(X: Any, classes: bool, seed: int) -> Any:
    from lightgbm import LGBMClassifier, LGBMRegressor

    make = LGBMClassifier if classes else LGBMRegressor
    return make(n_estimators=TREES, n_jobs=1, verbose=-1, random_state=seed)


def lacunar(X: Any, classes: bool, seed: int) -> Any:
    return (LacunarClassifier if classes else LacunarRegressor)(random_state=seed)


LEARNERS = {"lacunar": lacunar, "lightgbm": lightgbm, "histgb": histgb}


def loss_of(world: World, answer: Any) -> float:
    if world.classes:
        return -float(np.mean(np.log(np.maximum(answer[np.arange(len(answer)), world.y_new], LEAST))))
    return float(np.mean((answer - world.y_new) ** 2) / np.var(world.y_new))


def error_of(world: World, answer: Any) -> float | None:
    return float(np.mean(answer.argmax(axis=1) != world.y_new)) if world.classes else None


def peak() -> float:
    """MiB of memory at most since the last `forget_peak` (Linux), or since the start."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Let the peak begin again from what is in memory now, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measured(name: str, learner: str, n: int, seed: int) -> dict[str, Any]:
    """Loss, CPU seconds of the fit and of the prediction, and MiB of peak memory above what was there before."""
    world = WORLDS[name][0](n, seed)
    X, X_new = (world.X, world.X_new) if learner == "lacunar" else (dense(world.X), dense(world.X_new))
    forget_peak()
    before = peak()
    model, started = LEARNERS[learner](X, world.classes, seed), time.process_time()
    model.fit(X, world.y)
    fitted, memory = time.process_time(), peak()
    answer = model.predict_proba(X_new) if world.classes else model.predict(X_new)
    done = time.process_time()
    line = {"loss": loss_of(world, answer), "fit": fitted - started, "predict": done - fitted}
    line |= {"MiB": memory - before, "error": error_of(world, answer)}
    return {**line, "report": getattr(model, "report_", None)}


def in_a_process(*arguments: Any) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def show(name: str, learner: str, n: int, lines: list[dict[str, Any]], report: bool) -> None:
    means = {key: float(np.mean([line[key] for line in lines])) for key in ("loss", "fit", "predict", "MiB")}
    spread = f" ({min(line['loss'] for line in lines):.4f} to {max(line['loss'] for line in lines):.4f})"
    error = "" if lines[0]["error"] is None else f" error {np.mean([line['error'] for line in lines]):.4f},"
    print(
        f"{name:17s} {n:9,d} {learner:9s} loss {means['loss']:.4f}{spread if len(lines) > 1 else ''},{error} "
        f"fit {means['fit']:6.1f} s, predict {means['predict']:5.2f} s, {means['MiB']:6.0f} MiB",
        flush=True,
    )
    for line in lines if report else ():
        table = line["report"] or {}
        for row in zip(*table.values(), strict=True):
            print("   ", dict(zip(table, row, strict=True)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", default=",".join(WORLDS))
    parser.add_argument("--rows", type=int, help="in place of every world's own number")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report", action="store_true", help="print `report_` of every fit")
    parser.add_argument(
        "--quick", action="store_true", help="two worlds of 21,000 rows, once, without peers: decides no bar"
    )
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        name, learner, n, seed = options.one
        print(json.dumps(measured(name, learner, int(n), int(seed))))
        return
    if options.quick:
        options.world, options.rows, options.learners, options.repeats = (
            "categories,low_rank_numbers",
            21_000,
            "lacunar",
            1,
        )
    learners = [name for name in options.learners.split(",") if name != "lightgbm" or importlib.util.find_spec(name)]
    for name in options.world.split(","):
        n = options.rows or WORLDS[name][1]
        for learner in learners:
            show(
                name,
                learner,
                n,
                [in_a_process(name, learner, n, seed) for seed in range(options.repeats)],
                options.report,
            )


if __name__ == "__main__":
    main()
