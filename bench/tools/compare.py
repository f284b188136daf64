"""Compares what pytest-benchmark measured before and now, and fails where now is slower past a threshold.

    python -m bench.tools.compare before.json now.json [--threshold 1.25] [--statistic min|median|mean] [--require-all]

A side is a file, or a folder of files. Files of the same name in both folders are runs made in turn (`python -m bench.tools.track pair`
makes them): the ratio of a benchmark is the median over these runs of now / before, which neither one slow run nor one freak moves.
Without common names, it is that of the smallest times. Benchmarks are matched by their full name. Exit status: 0 all within the
threshold, 1 some are slower (or missing, with --require-all), 2 nothing to compare.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

Times = dict[str, float]  # seconds by full name


class Pair(NamedTuple):
    name: str
    before: float  # seconds
    now: float
    ratio: float


class Side(NamedTuple):
    runs: dict[str, Times]  # by file name
    machine: str

    @property
    def names(self) -> set[str]:
        return {name for times in self.runs.values() for name in times}


def seconds(content: dict[str, Any], statistic: str) -> Times:
    """Seconds by full name; ValueError where the content is no pytest-benchmark result or a time is not positive."""
    try:
        found = {entry["fullname"]: float(entry["stats"][statistic]) for entry in content["benchmarks"]}
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a pytest-benchmark JSON file with stats.{statistic}: {error!r}") from error
    wrong = [name for name, value in found.items() if not (math.isfinite(value) and value > 0)]
    if wrong:
        raise ValueError(f"times must be positive and finite; {wrong[0]} is {found[wrong[0]]}")
    return found


def read_file(path: Path, statistic: str) -> tuple[Times, str]:
    """Times of a file, and the processor they were measured on."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = seconds(content, statistic)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    machine = content.get("machine_info", {})
    return found, str(machine.get("cpu", {}).get("brand_raw", "") or machine.get("machine", "unknown"))


def read(path: Path, statistic: str = "min") -> Side:
    """A file, or all of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: no .json file in this folder")
    found = [read_file(file, statistic) for file in files]
    names = [file.name if path.is_dir() else "" for file in files]
    runs = {name: times for name, (times, _) in zip(names, found, strict=True)}
    return Side(runs, " and ".join(sorted({machine for _, machine in found})))


def of_one(name: str, before: Side, now: Side) -> Pair:
    """One benchmark, by the runs made in turn, or by the smallest time of each side."""
    mine, theirs = ({run: times[name] for run, times in side.runs.items() if name in times} for side in (before, now))
    turns = sorted(mine.keys() & theirs.keys())
    if turns:
        ratio = median(theirs[run] / mine[run] for run in turns)
        return Pair(name, median(mine[run] for run in turns), median(theirs[run] for run in turns), ratio)
    was, took = min(mine.values()), min(theirs.values())
    return Pair(name, was, took, took / was)


def compare(before: Side, now: Side) -> list[Pair]:
    """What both hold, the worst ratio first."""
    pairs = [of_one(name, before, now) for name in before.names & now.names]
    return sorted(pairs, key=lambda pair: (-pair.ratio, pair.name))


def report(pairs: list[Pair], threshold: float) -> str:
    lines = [f"{'before':>11} {'now':>11}  ratio"]
    for name, before, now, ratio in pairs:
        verdict = "  SLOWER" if ratio > threshold else ""
        lines.append(f"{1e3 * before:8.3f} ms {1e3 * now:8.3f} ms {ratio:6.2f}  {name}{verdict}")
    middle = math.exp(sum(math.log(pair.ratio) for pair in pairs) / len(pairs))
    return "\n".join([*lines, f"{len(pairs)} compared, geometric mean of the ratios {middle:.3f}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("now", type=Path)
    parser.add_argument("--threshold", type=float, default=1.25, help="largest allowed now / before (default 1.25)")
    parser.add_argument("--statistic", choices=["min", "median", "mean"], default="min", help="of the rounds of a run")
    parser.add_argument(
        "--require-all", action="store_true", help="fail where a benchmark of `before` is missing in `now`"
    )
    options = parser.parse_args(arguments)
    if not options.threshold > 0:
        parser.error(f"--threshold must be positive; got {options.threshold}")
    try:
        before, now = (read(path, options.statistic) for path in (options.before, options.now))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    pairs, gone = compare(before, now), sorted(before.names - now.names)
    if not pairs:
        print("the two sides have no benchmark in common", file=sys.stderr)
        return 2
    if before.machine != now.machine:
        print(f"measured on different processors, {before.machine} and {now.machine}: ratios mean little")
    print(report(pairs, options.threshold))
    for name in gone:
        print(f"only before: {name}")
    slower = any(pair.ratio > options.threshold for pair in pairs)
    return int(slower or (options.require_all and bool(gone)))


if __name__ == "__main__":
    sys.exit(main())
