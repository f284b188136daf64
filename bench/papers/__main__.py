"""Figures and tables of the papers, with our code: `python -m bench.papers LIST|NAME|all [--quick] [--out DIR]`.

Each experiment writes NAME.md (a table, what the paper says, what we find) and NAME.png into DIR; an interrupted run goes on where it
was. At full size it writes the record of its table, its picture and the table of claims, and puts them on the pages of docs/measured.
With --quick, sizes fit into CI; the exit status is 1 where a trend does not hold. `check` computes one cell of every recorded table again and
compares it with the record. `--only TEXT` computes the cells whose names contain it, and puts their rows into the recorded table. `judge` makes the verdicts of recorded tables again by the rules of today, where they are read off the table, and
the pictures of tables that --only adds to.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench.papers._report import HEADER, Report, read_table, table
from bench.papers._run import Cell, Run, Unavailable, plain
from bench.tools import records

# Name of the module -> what it redraws.
EXPERIMENTS = {
    "karma_figure2": "KARMA, Figure 2: regression with entries missing completely at random",
    "karma_figure3": "KARMA, Figure 3: blocks of columns missing, large margin",
    "karma_table1": "KARMA, Table 1: tables with holes of their own",
    "karma_movielens": "KARMA, Table 1: MovieLens",
    "karma_peers": "KARMA's tables, expanded columns beside gradient boosting",
    "karma_problem_g": "KARMA, Problem G: completion leaves a label open",
    "learner_holes": "The pool beside its members on the data of KARMA's Figures 2 and 3",
    "slrm_figure1": "SLRM, Figure 1 (a)-(d): synthetic data",
    "slrm_floor": "SLRM, Figure 1 (a) with penalties of 1e-6",
    "slrm_real": "SLRM, Figure 2: real data",
    "subspace_theorem4": "POPCA, Theorem 4: the law of rows needed",
    "subspace_price": "POPCA, section 4: the price of partial information in d",
    "completion_table1": "Side information, Figure 2 and Table 1: noisy biclustered matrices",
    "completion_bounds": "Side information: bounds beside streams, sections 3 to 5",
    "conformal_missing": "Conformal prediction with missing values, Figure 3: coverage by mask",
    "subspace_active": "MBEG, Theorem 7: where its bound holds",
    "subspace_limits": "Subspace learning: r = 1, Theorem 12, zero products, Appendix E",
    "defaults": "Our defaults beside the printed algorithms, in twelve worlds",
    "neumiss": "NeuMiss and Impute-then-Regress: four mechanisms beside the Bayes predictor",
}


PICTURES = records.RECORDS.parent / "papers"
PEERS = {
    "LightGBM",
    "HistGradientBoosting",
    "mean + linear",
    "mean + indicator + linear",
    "iterative + linear",
    "linear",
}


def module_of(name: str) -> Any:
    return importlib.import_module(f"bench.papers.{name}")


def carry_out(name: str, options: argparse.Namespace) -> bool:
    """Whether every trend holds."""
    started = time.perf_counter()
    print(f"== {name}: {EXPERIMENTS[name]}", flush=True)
    run = Run(
        name,
        options.quick,
        options.out,
        options.jobs,
        options.fresh,
        options.seeds,
        options.long,
        options.only,
        options.hours,
    )
    try:
        report = module_of(name).run(run)
    except Unavailable as reason:
        print(f"not run: {reason}\n", flush=True)
        return True
    (options.out / f"{name}.md").write_text(report.markdown(), encoding="utf-8")
    print(f"\n{report.markdown()}\n{name} took {time.perf_counter() - started:.0f} s\n", flush=True)
    if not options.quick and options.seeds is None:
        (insert if options.only else record)(name, report, run.cells_used)
    return all(report.trends.values())


def record(name: str, report: Report, cells: list[Cell]) -> None:
    """The table, its claims, its picture, and one cheap cell for `check`."""
    own = [cell for cell in cells if not PEERS.intersection(map(str, cell.task))]
    cheap = min(own, key=lambda cell: (vanishes(cell.value), cell.seconds))
    records.save(
        name,
        report.body(),
        command=f"python -m bench.papers {name}",
        computes=sorted({cell.compute for cell in cells}),
        repeats=report.repeats,
        commit=", ".join(sorted({cell.commit for cell in cells})),
        hours=round(sum(cell.seconds for cell in cells) / 3600, 2),
        claims=[verdict.row(report.title) for verdict in report.verdicts],
        witness={"compute": cheap.compute, "task": cheap.task, "value": cheap.value},
    )
    if report.picture is not None:
        shutil.copy(report.picture, PICTURES / report.picture.name)


def insert(name: str, report: Report, cells: list[Cell]) -> None:
    """Rows of some cells put into the recorded table, whose other rows and age stay, and its notes where there are no new ones; its claims are judged again, its picture is drawn anew."""
    record = records.read(name)
    rows, fresh = read_table(record["table"]), read_table(report.table.splitlines())
    fresh = {row: values for row, values in fresh.items() if set(values.values()) != {"-"}}
    for row, values in fresh.items():
        rows.setdefault(row, {}).update((column, text) for column, text in values.items() if text != "-")
    first, *columns = [word.strip() for word in record["table"][0].strip("| ").split(" | ")]
    end = next((k for k, line in enumerate(record["table"]) if not line.startswith("|")), len(record["table"]))
    record["table"] = table(
        first, {r: {c: v.get(c, "-") for c in columns} for r, v in rows.items()}, columns
    ).splitlines() + (report.body().splitlines()[len(report.table.splitlines()) :] or record["table"][end:])
    record["claims"] = [verdict.row(report.title) for verdict in module_of(name).claims(rows)]
    module_of(name).draw(read_table(record["table"]), PICTURES / f"{name}.png")
    record["repeats"] = merged_repeats(record["repeats"], report.repeats, set(rows) - set(fresh))
    record["commit"] = ", ".join(sorted({*record["commit"].split(", "), *(cell.commit for cell in cells)}))
    record["computes"] = sorted({*record["computes"], *(cell.compute for cell in cells)})
    record["hours"] = round(record["hours"] + sum(cell.seconds for cell in cells) / 3600, 2)
    records.write_record(name, record)


def merged_repeats(before: str, now: str, untouched: set[str]) -> str:
    """What `now` says of repeats, with the "N of ROW" that `before` says of rows which stay."""
    first, *others = now.split("; ")
    counts = [part for part in before.split("; ") if part.partition(" of ")[2] in untouched]
    return "; ".join([first, *counts, *others])


def numbers(value: Any) -> list[float]:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [v for part in parts for v in numbers(part)] if parts is not None else [value] if value is not None else []


def vanishes(value: Any) -> bool:
    """Whether most numbers are zero but for rounding, so that they would be compared with nothing."""
    return bool(np.median(np.abs(numbers(value))) < 1e-6)


def judge(name: str) -> bool:
    """Whether an experiment reads its verdicts off its table: those of its record are then made again, by the rules of today.

    The picture, too, where cells may be put into the table one by one.
    """
    module = module_of(name)
    if not hasattr(module, "claims") or not (records.RECORDS / f"{name}.json").is_file():
        return False
    record = records.read(name)
    rows = read_table(record["table"])
    record["claims"] = [verdict.row(module.TITLE) for verdict in module.claims(rows)]
    records.write_record(name, record)
    if hasattr(module, "LONG"):
        module.draw(rows, PICTURES / f"{name}.png")
    return True


def save_claims() -> None:
    """All claims of the recorded experiments, in their order."""
    recorded = [records.read(name) for name in EXPERIMENTS if (records.RECORDS / f"{name}.json").is_file()]
    rows = [row for one in recorded for row in one["claims"]]
    computes = sorted({compute for one in recorded for compute in one["computes"]})
    hours = sum(one["hours"] for one in recorded)
    records.save(
        "claims",
        "\n".join([HEADER, *rows]),
        command="python -m bench.papers all",
        computes=computes,
        repeats=f"{hours:.1f} hours of one process in all, by the clock where records are older; spreads are those of the tables below",
    )


def same(a: Any, b: Any) -> bool:
    """Equal up to a twentieth: what another BLAS may move by a choice among nearly equal parameters."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b if a is None or b is None else bool(np.isclose(a, b, rtol=0.05, atol=1e-6, equal_nan=True))


def check(name: str) -> bool:
    """Whether one cell of a recorded table comes out again."""
    if not (records.RECORDS / f"{name}.json").is_file():
        print(f"{name}: no record", flush=True)
        return True
    witness, started = records.read(name)["witness"], time.perf_counter()
    module, function = witness["compute"].split(":")
    task = [tuple(value) if isinstance(value, list) else value for value in witness["task"]]
    try:
        value = plain(getattr(importlib.import_module(module), function)(*task))
    except Unavailable as reason:
        print(f"{name}: not compared: {reason}", flush=True)
        return True
    good = same(value, witness["value"])
    print(
        f"{name} {task}: {'as' if good else 'NOT as'} on the page ({time.perf_counter() - started:.1f} s)", flush=True
    )
    if not good:
        print(f"  the page: {witness['value']}\n  now: {value}", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.papers", description=__doc__.split("\n\n")[0])
    parser.add_argument("name", nargs="+", help="LIST, all, check, judge, or names of experiments")
    parser.add_argument("--quick", action="store_true", help="small sizes: under three minutes for all")
    parser.add_argument("--out", type=Path, help="folder for tables, pictures and finished cells")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--seeds", type=int, help="at most so many seeds, splits or repeats")
    parser.add_argument("--long", action="store_true", help="also cells of many minutes each")
    parser.add_argument("--only", default="", help="cells whose names contain this text")
    parser.add_argument("--hours", type=float, default=float("inf"), help="after which no further cell begins")
    parser.add_argument("--fresh", action="store_true", help="forget finished cells")
    options = parser.parse_args()
    if options.name == ["LIST"]:
        print("\n".join(f"{name:20s} {title}" for name, title in EXPERIMENTS.items()))
        return
    if options.name == ["judge"]:
        print("\n".join(f"{name}: judged again" for name in EXPERIMENTS if judge(name)))
        save_claims()
        records.main(["write"])
        return
    if options.name == ["check"]:
        different = [name for name in EXPERIMENTS if not check(name)]
        sys.exit(f"not as on the page: {', '.join(different)}" if different else 0)
    names = list(EXPERIMENTS) if options.name == ["all"] else options.name
    if unknown := [name for name in names if name not in EXPERIMENTS]:
        parser.error(f"{', '.join(unknown)}: not among {', '.join(EXPERIMENTS)}")
    if options.only and (closed := [name for name in names if not hasattr(module_of(name), "LONG")]):
        parser.error(f"{', '.join(closed)}: --only is for karma_figure3, karma_table1, karma_movielens and slrm_real")
    options.out = options.out or Path("paper-results" + ("-quick" if options.quick else ""))
    options.out.mkdir(parents=True, exist_ok=True)
    failed = [name for name in names if not carry_out(name, options)]
    if not options.quick and options.seeds is None:
        save_claims()
        records.main(["write"])
    if failed:
        sys.exit(f"a trend does not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
