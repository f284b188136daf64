"""Counts the instructions of the hot kernels: a slow-down shows on a machine however busy it is.

    python -m bench.tools.instructions            prints the counts
    python -m bench.tools.instructions --check    fails where a kernel takes over 3 % more than bench/tools/instructions.json says
    python -m bench.tools.instructions --update   writes that file: after a change that is meant to cost, with its reason in the commit

valgrind's callgrind runs the small counted cases of `bench/hot` once each, after a first call that is not counted, and what is
summed is the instructions executed inside lacunar's own compiled modules: not Python's, NumPy's, libm's or memcpy's, which differ
from machine to machine. LACUNAR_ISA=base, one thread and tables that are the same everywhere make the counts depend on our sources
and the compiler only; the baseline is kept by compiler, and one that is not in the file is reported and not compared.

Needs Linux on x86-64, valgrind with its headers (Debian: `valgrind`) and a C compiler. Exit status: 0 within the tolerance or
nothing to compare with, 1 past it, 2 where it cannot run.
"""

import argparse
import contextlib
import ctypes
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import hot

import lacunar

ROOT = Path(__file__).resolve().parents[2]
BASELINE = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.03  # share of the baseline; what other versions of NumPy and SciPy were seen to move is below a hundredth
OURS = re.compile(r"/lacunar/_(core|linalg)\.")
MARKER = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char* name) { CALLGRIND_DUMP_STATS_AT(name); CALLGRIND_STOP_INSTRUMENTATION; }
"""


def own_instructions(dump: str) -> int:
    """Self cost in lacunar's modules, summed over one callgrind dump written with neither strings nor positions compressed."""
    total, ours, inclusive = 0, False, False
    for line in dump.splitlines():
        if line.startswith("ob="):
            ours = OURS.search(line) is not None
        elif line.startswith("calls="):
            inclusive = True  # the next line holds the cost of the callee, which is counted where it was spent
        elif line[:1].isdigit():
            total += int(line.split()[1]) if ours and not inclusive else 0
            inclusive = False
    return total


def name_of(dump: str) -> str | None:
    found = re.search(r"^desc: Trigger: Client Request: (.+)$", dump, re.MULTILINE)
    return found and found[1]


def counted() -> dict[str, "hot.Case"]:
    return {name: case for name, case in hot.CASES.items() if case.counted}


def run_cases(marker: Path) -> None:
    """Inside valgrind: every counted case, the second call between the marks."""
    marks = ctypes.CDLL(str(marker))
    for name, case in counted().items():
        run, check = case.at("small")
        check(run())
        marks.start()
        run()
        marks.stop(name.encode())


def count() -> dict[str, int]:
    """Instructions by case, from one run under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        source, marker = Path(folder, "marker.c"), Path(folder, "marker.so")
        source.write_text(MARKER, encoding="utf-8")
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", marker, source], check=True)
        command = [
            "valgrind",
            "-q",
            "--tool=callgrind",
            "--instr-atstart=no",
            "--compress-strings=no",
            "--compress-pos=no",
        ]
        command += [f"--callgrind-out-file={folder}/dump", sys.executable, "-m", "bench.tools.instructions"]
        command += ["--inside", str(marker)]
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        environment = {**os.environ, **one, "LACUNAR_ISA": "base", "PYTHONHASHSEED": "0", "PYTHONMALLOC": "malloc"}
        subprocess.run(command, check=True, env=environment, cwd=ROOT)
        dumps = [path.read_text(encoding="utf-8") for path in Path(folder).glob("dump.*")]
        found = {name: own_instructions(dump) for dump in dumps if (name := name_of(dump))}
    missing = [name for name in counted() if not found.get(name)]
    if missing:
        raise RuntimeError(f"nothing was counted for {missing}: is lacunar's compiled core the installed one?")
    return {name: found[name] for name in counted()}


def compiler() -> str:
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        lacunar.show_config()
    found = re.search(r"^compiler +(.+)$", shown.getvalue(), re.MULTILINE)
    return found[1].strip() if found else "unknown"


def judge(found: dict[str, int], baseline: dict[str, int], tolerance: float = TOLERANCE) -> tuple[list[str], bool]:
    """A line for every case, and whether all are within the tolerance."""
    lines, good = [], True
    for name, now in found.items():
        before = baseline.get(name)
        change = now / before - 1 if before else float("nan")
        verdict = ""
        if before is None:
            verdict, good = "NOT IN THE BASELINE: --update", False
        elif change > tolerance:
            verdict, good = "SLOWER", False
        elif change < -tolerance:
            verdict = "faster: --update keeps it so"
        lines.append(f"{now:>12,d}  {change:+8.2%}  {name}  {verdict}".rstrip())
    return lines, good


def cannot_run() -> str | None:
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "counts are compared on Linux, x86-64"
    missing = [tool for tool in ("valgrind", "cc") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} not found" if missing else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        run_cases(options.inside)
        return 0
    if reason := cannot_run():
        print(f"instructions are not counted: {reason}", file=sys.stderr)
        return 2
    baselines = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.is_file() else {}
    name, found = compiler(), count()
    lines, good = judge(found, baselines.get(name, found))
    print("\n".join([f"instructions inside lacunar, {name}, LACUNAR_ISA=base", *lines]))
    if options.update:
        BASELINE.write_text(json.dumps(baselines | {name: found}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    elif options.check and name not in baselines:
        print(f"NOT COMPARED: the baseline knows {sorted(baselines)}, this build is by {name}")
    return int(options.check and not good)


if __name__ == "__main__":
    sys.exit(main())
