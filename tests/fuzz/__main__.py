"""The command: targets one after another, each in a process of its own; exit code 1 when something was found."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    """Runs the targets named, or all."""
    wanted = arguments()
    wanted.findings.mkdir(parents=True, exist_ok=True)  # libFuzzer asks for it
    instrumented = contextlib.nullcontext()
    if wanted.driver == "atheris":
        import atheris

        instrumented = atheris.instrument_imports(include=["lacunar", "zipfile"])
    with instrumented:
        targets = importlib.import_module("fuzz.targets").TARGETS
    drive, coverage = importlib.import_module("fuzz.drive"), importlib.import_module("fuzz.coverage")
    names = wanted.names or list(targets)
    share, slack = wanted.seconds / len(names), wanted.slack or (4.0 if wanted.sanitized else 1.0)
    failed = False
    for name in names:
        target = targets[name]

        def act(log: Any, place: Path, target: Any = target) -> None:
            limit_memory(wanted)
            with coverage.lines_of(target) if wanted.coverage else contextlib.nullcontext():
                if wanted.driver == "atheris":
                    drive.with_atheris(
                        target, log, place, seconds=share, seed=wanted.seed, slack=slack, corpus=wanted.corpus
                    )
                else:
                    drive.seeded(target, log, place, seconds=share, inputs=wanted.inputs, seed=wanted.seed, slack=slack)

        counts = drive.in_child(target, wanted.findings, act)
        print(f"{name:<18}", ", ".join(f"{value} {key}" for key, value in counts.items()), flush=True)
        failed = failed or bool(counts.keys() & {"ended with", "finding"})
    return int(failed)


def limit_memory(wanted: argparse.Namespace) -> None:
    """What is asked for beyond this is a MemoryError; the address sanitizer has its own limit (max_allocation_size_mb)."""
    if not wanted.sanitized:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**30, resource.RLIM_INFINITY))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz", description="Hostile files for every reader.")
    parser.add_argument("names", nargs="*", help="targets; default: all")
    parser.add_argument("--driver", choices=["seeded", "atheris"], default="seeded")
    parser.add_argument("--seconds", type=float, default=60, help="for all targets together")
    parser.add_argument("--inputs", type=float, default=float("inf"), help="for each target, seeded only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--slack", type=float, default=0, help="times the seconds that one input may take")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--corpus", type=Path, default=Path("fuzz-corpus"))
    parser.add_argument(
        "--sanitized", action="store_true", help="the core is built with sanitizers: slower, no limit of addresses"
    )
    parser.add_argument(
        "--coverage", action="store_true", help="say which share of the reader's lines was reached (slow)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
