"""Runs every script of bench/pages at its smallest, to see that each still runs: `python -m bench.tools.smoke [NAME ...]`.

Decides no bar. Two at a time, three minutes at most for each; exit status 1 and its last lines where one fails. The
figures of the papers have `python -m bench.papers all --quick`, and the hot loops a test.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PAGES = Path(__file__).resolve().parents[1] / "pages"
LONGEST = 180 * float(os.environ.get("LACUNAR_SLOW", "1"))  # seconds
ELSEWHERE = {"learner_ensembles", "learner_tables", "completion_peers"}  # the scripts import them
SMALLER = {  # than their --quick
    "features": ["--rows", "1000"],
    "million": ["--rows", "2000"],
    "scale": ["--rows", "500"],
    "streams": ["--rows", "4000", "--size", "100", "--only", "POPCA"],
    "workers": ["--quick", "--only", "KARMA"],
}


def run(script: Path) -> tuple[str, float, str]:
    """Name, seconds, and what went wrong."""
    start = time.perf_counter()
    command = [sys.executable, "-W", "ignore::UserWarning", str(script), *SMALLER.get(script.stem, ["--quick"])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)
        wrong = done.stderr[-2000:] or f"exit status {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        wrong = f"still running after {LONGEST:.0f} s"
    return script.stem, time.perf_counter() - start, wrong


def main(names: list[str]) -> int:
    scripts = [path for path in sorted(PAGES.glob("*.py")) if path.stem not in ELSEWHERE]
    unknown = set(names) - {path.stem for path in scripts}
    if unknown:
        print(f"no such script: {sorted(unknown)}", file=sys.stderr)
        return 2
    good = True
    with ThreadPoolExecutor(2) as pool:
        for name, seconds, wrong in pool.map(run, [path for path in scripts if not names or path.stem in names]):
            print(f"{name:20s} {seconds:5.1f} s  {'FAILED' if wrong else 'runs'}", flush=True)
            if wrong:
                print(wrong, file=sys.stderr)
                good = False
    return int(not good)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
