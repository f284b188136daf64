"""Compares two pytest-benchmark JSON files and fails where the second is slower past a threshold.

    python bench/compare.py before.json now.json [--threshold 1.25] [--statistic min|median] [--require-all]

Benchmarks are matched by their full name. The minimum is what noise moves least; take `--statistic median` where a call's time
really varies. Exit status: 0 all within the threshold, 1 some are slower (or missing, with --require-all), 2 nothing to compare.
"""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Pair(NamedTuple):
    name: str
    before: float  # seconds
    now: float

    @property
    def ratio(self) -> float:
        return self.now / self.before


def seconds(content: dict[str, Any], statistic: str) -> dict[str, float]:
    """Seconds by full name; ValueError where the content is no pytest-benchmark result or a time is not positive."""
    try:
        found = {entry["fullname"]: float(entry["stats"][statistic]) for entry in content["benchmarks"]}
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a pytest-benchmark JSON file with stats.{statistic}: {error!r}") from error
    wrong = [name for name, value in found.items() if not (math.isfinite(value) and value > 0)]
    if wrong:
        raise ValueError(f"times must be positive and finite; {wrong[0]} is {found[wrong[0]]}")
    return found


def read(path: Path, statistic: str) -> tuple[dict[str, float], str]:
    """Times of a file, and the processor they were measured on."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = seconds(content, statistic)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    machine = content.get("machine_info", {})
    return found, str(machine.get("cpu", {}).get("brand_raw", "") or machine.get("machine", "unknown"))


def compare(before: dict[str, float], now: dict[str, float]) -> list[Pair]:
    """What both hold, the worst ratio first."""
    pairs = [Pair(name, before[name], now[name]) for name in before.keys() & now.keys()]
    return sorted(pairs, key=lambda pair: (-pair.ratio, pair.name))


def report(pairs: list[Pair], threshold: float) -> str:
    lines = [f"{'before':>11} {'now':>11}  ratio"]
    for name, before, now in pairs:
        verdict = "  SLOWER" if now / before > threshold else ""
        lines.append(f"{1e3 * before:8.3f} ms {1e3 * now:8.3f} ms {now / before:6.2f}  {name}{verdict}")
    middle = math.exp(sum(math.log(pair.ratio) for pair in pairs) / len(pairs))
    return "\n".join([*lines, f"{len(pairs)} compared, geometric mean of the ratios {middle:.3f}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("now", type=Path)
    parser.add_argument("--threshold", type=float, default=1.25, help="largest allowed now / before (default 1.25)")
    parser.add_argument("--statistic", choices=["min", "median", "mean"], default="min")
    parser.add_argument(
        "--require-all", action="store_true", help="fail where a benchmark of `before` is missing in `now`"
    )
    options = parser.parse_args(arguments)
    if not options.threshold > 0:
        parser.error(f"--threshold must be positive; got {options.threshold}")
    try:
        (before, machine), (now, other) = (read(path, options.statistic) for path in (options.before, options.now))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    pairs, gone = compare(before, now), sorted(before.keys() - now.keys())
    if not pairs:
        print("the two files have no benchmark in common", file=sys.stderr)
        return 2
    if machine != other:
        print(f"measured on different processors, {machine} and {other}: ratios mean little")
    print(report(pairs, options.threshold))
    for name in gone:
        print(f"only before: {name}")
    slower = any(pair.ratio > options.threshold for pair in pairs)
    return int(slower or (options.require_all and bool(gone)))


if __name__ == "__main__":
    sys.exit(main())
