"""How much of `time_limit` the one learner uses, and what it costs: `python bench/pages/time_limit.py`.

Tables with 30 % of the entries hidden: three classes or numbers by a rule of products and thresholds of six latent numbers. Limits of 5, 12 and 30 s and
none. With `--processor` the learner's clock counts seconds of the processor, so that other work on the machine does not.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

from lacunar import LacunarClassifier, LacunarRegressor

TEST_ROWS = 2000


def made_table(n: int, d: int, classes: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(n, 6))
    X = latent @ rng.normal(size=(6, d)) + rng.normal(size=(n, d))
    y = latent[:, 0] * latent[:, 1] + np.abs(latent[:, 2]) + X[:, 0] * (X[:, 1] > 0) + 0.5 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, (np.digitize(y, np.quantile(y, [1 / 3, 2 / 3])) if classes else y)


def measured(n: int, d: int, limit: float | None, classes: bool, clock: Any) -> None:
    X, y = made_table(n + TEST_ROWS, d, classes)
    learner = (LacunarClassifier if classes else LacunarRegressor)(time_limit=limit)
    started = clock()
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        learner.fit(X[:n], y[:n])
    seconds, score = clock() - started, learner.score(X[n:], y[n:])
    share = "" if limit is None else f"{seconds / limit:.2f}"
    report = learner.report_
    cost = zip(report["member"], report.get("shortened", [""] * len(report["member"])), strict=True)
    shortened = [f"{name}: {text}" for name, text in cost if text]
    kind = "classes" if classes else "numbers"
    print(
        f"| {n:,} | {d} | {kind} | {limit or 'none'} | {seconds:.1f} | {share} | {1 - score:.3f} | {'; '.join(shortened)} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="the smallest table, 3 s")
    parser.add_argument("--processor", action="store_true", help="the learner's clock counts seconds of the processor")
    parser.add_argument("--tables", nargs="*", default=["2000x20", "34000x30", "10000x100"], help="rows x columns")
    parser.add_argument("--limits", type=float, nargs="*", default=[5, 12, 30, 0], help="0 is none")
    parser.add_argument("--task", choices=["classes", "numbers"])
    options = parser.parse_args()
    clock = time.perf_counter
    if options.processor:
        clock = time.process_time
        from lacunar.karma import selection
        from lacunar.learner import base, ensemble, members, regressor, trees, views
        from lacunar.lowrank import posterior

        for module in (base, ensemble, members, trees, views, selection, regressor, posterior):
            module.perf_counter = clock  # type: ignore[attr-defined]  # another clock in the place of its own
    if options.quick:
        options.tables, options.limits = ["2000x10"], [3]
    print("| rows | columns | target | limit | seconds | used | error | shortened |\n|---|---|---|---|---|---|---|---|")
    for rows, columns in (table.split("x") for table in options.tables):
        for task in [options.task] if options.task else ["classes", "numbers"]:
            for limit in options.limits:
                measured(int(rows), int(columns), limit or None, task == "classes", clock)


if __name__ == "__main__":
    main()
