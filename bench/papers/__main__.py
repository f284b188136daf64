"""Figures and tables of the papers, with our code: `python -m bench.papers LIST|NAME|all [--quick] [--out DIR]`.

Each experiment writes NAME.md (a table, what the paper says, what we find) and NAME.png into DIR; summary.md has all verdicts. An
interrupted run goes on where it was. With --quick, sizes fit into CI; the exit status is 1 where a trend does not hold.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from bench.papers._report import HEADER
from bench.papers._run import Run, Unavailable

# Name of the module -> what it redraws.
EXPERIMENTS = {
    "karma_figure2": "KARMA, Figure 2: regression with entries missing completely at random",
    "karma_figure3": "KARMA, Figure 3: blocks of columns missing, large margin",
    "karma_table1": "KARMA, Table 1: tables with holes of their own",
    "karma_movielens": "KARMA, Table 1: MovieLens",
    "karma_peers": "KARMA's tables, expanded columns beside gradient boosting",
    "slrm_figure1": "SLRM, Figure 1 (a)-(d): synthetic data",
    "slrm_real": "SLRM, Figure 2: real data",
    "subspace_theorem4": "POPCA, Theorem 4: the law of rows needed",
    "subspace_price": "POPCA, section 4: the price of partial information in d",
    "completion_table1": "Side information, Figure 2 and Table 1: noisy biclustered matrices",
    "conformal_missing": "Conformal prediction with missing values, Figure 3: coverage by mask",
    "subspace_active": "MBEG, Theorem 7: where its bound holds",
    "neumiss": "NeuMiss and Impute-then-Regress: four mechanisms beside the Bayes predictor",
}


def module_of(name: str) -> Any:
    return importlib.import_module(f"bench.papers.{name}")


def carry_out(name: str, options: argparse.Namespace) -> tuple[list[str], bool]:
    """Rows of verdicts and whether every trend holds."""
    started = time.perf_counter()
    print(f"== {name}: {EXPERIMENTS[name]}", flush=True)
    run = Run(name, options.quick, options.out, options.jobs, options.fresh, options.seeds)
    try:
        report = module_of(name).run(run)
    except Unavailable as reason:
        print(f"not run: {reason}\n", flush=True)
        return [f"| {EXPERIMENTS[name]} | | not run: {reason} | - |"], True
    (options.out / f"{name}.md").write_text(report.markdown(), encoding="utf-8")
    print(f"\n{report.markdown()}\n{name} took {time.perf_counter() - started:.0f} s\n", flush=True)
    return [verdict.row(report.title) for verdict in report.verdicts], all(report.trends.values())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.papers", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="+", help="LIST, all, or names of experiments")
    parser.add_argument("--quick", action="store_true", help="small sizes: under three minutes for all")
    parser.add_argument("--out", type=Path, help="folder for tables, pictures and finished cells")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--seeds", type=int, help="at most so many seeds, splits or repeats")
    parser.add_argument("--fresh", action="store_true", help="forget finished cells")
    options = parser.parse_args()
    if options.name == ["LIST"]:
        print("\n".join(f"{name:20s} {title}" for name, title in EXPERIMENTS.items()))
        return
    names = list(EXPERIMENTS) if options.name == ["all"] else options.name
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(EXPERIMENTS)}")
    options.out = options.out or Path("paper-results" + ("-quick" if options.quick else ""))
    options.out.mkdir(parents=True, exist_ok=True)
    rows, failed = [], []
    for name in names:
        found, holds = carry_out(name, options)
        rows += found
        failed += [] if holds else [name]
        (options.out / "summary.md").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    if failed:
        sys.exit(f"a trend does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
