"""Times of the hot loops, commit by commit: record them, set two builds against each other, draw the history.

    python -m bench.tools.track record [-k EXPRESSION]           a folder for this commit in .benchmarks/history
    python -m bench.tools.track pair BEFORE NOW [-k EXPRESSION]  two builds in turn, and the verdict of bench/tools/compare.py
    python -m bench.tools.track plot [RUNS...] [--out PNG]       every case relative to the first recorded commit
    python -m bench.tools.track keep [--runs N]                  this release into bench/releases, and the record of its page

`keep` stores pytest-benchmark's file of the small cases with two figures a case, the smallest and the median time, and the instruction
counts that CI holds this build to. A relative time is a case's smallest time over the geometric mean of all cases of the same file: how
fast the processor is cancels out. Where a release lacks a case, "-" stands.

BEFORE and NOW are Python interpreters of two virtual environments, or folders made by `pip install --target`. Times are CPU times of
one thread, which other processes move less than the clock's. `pair` makes runs of both in turn, judges each case by the median of the
runs' ratios, and measures what looks slower again before it says so: a machine has its moods, a slow-down stays. RUNS are files of pytest-benchmark or folders
of them; `-k small` takes minutes, everything half an hour.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from bench.tools import compare, records

ROOT = Path(__file__).resolve().parents[2]
HISTORY = ROOT / ".benchmarks" / "history"
RELEASES = ROOT / "bench" / "releases"
THRESHOLD = 1.15  # docs/contributing/keeping-it-fast.md says what noise reaches and what it misses
OPTIONS = [
    "--benchmark-enable",
    "--benchmark-timer=time.process_time",
    "--benchmark-min-rounds=3",
    "--benchmark-max-time=0.1",
    "--benchmark-disable-gc",
]


def interpreter(build: str) -> tuple[list[str], dict[str, str]]:
    """How to start Python with a build, and the environment for it."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    if not Path(build).is_dir():
        return [build], {**os.environ, **one}
    # Without the .pth files of this environment: its editable install would come before the folder.
    packages = [path for path in sys.path if path.endswith("site-packages")]
    return [sys.executable, "-S"], {**os.environ, **one, "PYTHONPATH": os.pathsep.join([build, *packages])}


def measure(build: str, out: Path, *, chosen: list[str]) -> None:
    """One run of the chosen cases; RuntimeError where they cannot run or an answer is wrong."""
    python, environment = interpreter(build)
    out.parent.mkdir(parents=True, exist_ok=True)
    run = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *OPTIONS, f"--benchmark-json={out}", *chosen]
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the benchmarks failed with {build}:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")


def cases(expression: str | None) -> list[str]:
    return ["bench/hot/bench_hot_loops.py", *(["-k", expression] if expression else [])]


def commit() -> str:
    """Time and short name of the commit, which sort as history does; `+` where files differ from it."""
    changed = "+" if records.git("status", "--porcelain", "--untracked-files=no") else ""
    return records.git("log", "-1", "--format=%cd-%h", "--date=format:%Y%m%d-%H%M%S") + changed


def record(options: argparse.Namespace) -> int:
    folder = options.history / commit()
    for k in range(options.runs):
        measure(sys.executable, folder / f"{k}.json", chosen=cases(options.k))
    print(folder)
    return 0


def in_turn(sides: list[tuple[str, Path]], runs: range, chosen: list[str]) -> None:
    """Runs of both sides, the one to start changing every time."""
    for k in runs:
        for build, folder in sides[:: 1 if k % 2 else -1]:
            measure(build, folder / f"{k}.json", chosen=chosen)


def pair(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        before, now = (Path(options.out or scratch, side) for side in ("before", "now"))
        sides = [(options.before, before), (options.now, now)]
        in_turn(sides, range(options.runs), cases(options.k))
        for k in range(options.runs, options.runs + options.again):
            found = compare.compare(compare.read(before), compare.read(now))
            slower = [each.name for each in found if each.ratio > options.threshold]
            if not slower:
                break
            print(f"measured again: {len(slower)}", flush=True)
            in_turn(sides, range(k, k + 1), slower)
        return compare.main([str(before), str(now), "--threshold", str(options.threshold), "--require-all"])


def smallest(side: compare.Side) -> compare.Times:
    return {name: min(times[name] for times in side.runs.values() if name in times) for name in side.names}


def plot(options: argparse.Namespace) -> int:
    """A line of the mean ratio to the first run, and every case as a row of colours, what is slowest now on top."""
    import numpy as np

    runs = options.runs or sorted(options.history.glob("*"))
    if len(runs) < 2:
        print(f"a history has at least two runs; {len(runs)} found. Use `record` at more commits.", file=sys.stderr)
        return 2
    times = [smallest(compare.read(run)) for run in runs]
    names = [name for name in times[0] if all(name in each for each in times)]
    log = np.log2([[each[name] / times[0][name] for name in names] for each in times])  # (runs, names)
    order = np.argsort(-log[-1])
    labels = [names[k].partition("[")[2].removesuffix("]") or names[k] for k in order]
    draw([run.stem for run in runs], labels, log[:, order], options.threshold, options.out)
    print(options.out)
    return 0


def draw(runs: list[str], names: list[str], log: "NDArray[np.float64]", threshold: float, out: Path) -> None:
    """log: binary logarithms of the ratios, (runs, names)."""
    import numpy as np
    from matplotlib import pyplot as plt

    tall = max(0.16 * len(names), 1)
    figure, (mean, cells) = plt.subplots(
        2, 1, figsize=(4 + 0.5 * len(runs), 3 + tall), height_ratios=[2, tall], sharex=True, layout="constrained"
    )
    mean.plot(2 ** log.mean(axis=1), "o-", color="k")
    mean.axhline(1, color="0.7", zorder=0)
    mean.set_ylabel("geometric mean")
    mean.set_title(f"time relative to {runs[0]}")
    most = np.log2(1.5)
    shown = cells.imshow(log.T, aspect="auto", cmap="RdBu_r", vmin=-most, vmax=most, interpolation="nearest")
    cells.set_yticks(range(len(names)), names, fontsize=6)
    cells.set_xticks(range(len(runs)), runs, rotation=60, ha="right", fontsize=7)
    for at, case in np.argwhere(log > np.log2(threshold)):
        dark = "w" if log[at, case] > most / 2 else "k"
        cells.text(at, case, f"{2 ** log[at, case]:.2f}", ha="center", va="center", fontsize=5, color=dark)
    bar = figure.colorbar(shown, ax=cells, location="bottom", aspect=60, shrink=0.7)
    bar.set_ticks(np.log2([2 / 3, 0.8, 1, 1.25, 1.5]), labels=["2/3", ".8", "1", "1.25", "1.5"])
    figure.savefig(out, dpi=150)
    plt.close(figure)


def reduced(folder: Path) -> dict[str, Any]:
    """The runs of a folder as one file of pytest-benchmark: of every case the smallest time and the median run's."""
    side = compare.read(folder)
    stats = {name: sorted(times[name] for times in side.runs.values()) for name in sorted(side.names)}
    return {
        "machine_info": {"cpu": {"brand_raw": side.machine}},
        "benchmarks": [
            {"fullname": name, "stats": {"min": times[0], "median": median(times)}} for name, times in stats.items()
        ],
    }


def releases(folder: Path) -> dict[str, dict[str, Any]]:
    """What was kept, by version, the oldest first."""
    files = sorted(folder.glob("*.json"), key=lambda file: [int(part) for part in re.findall(r"\d+", file.stem)])
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def relative(kept: dict[str, Any]) -> compare.Times:
    """Times over their geometric mean, by the case's short name."""
    times = compare.seconds(kept, "min")
    middle = math.exp(sum(map(math.log, times.values())) / len(times))
    return {short(name): value / middle for name, value in times.items()}


def short(name: str) -> str:
    """`file::test[case-size]` as `case`."""
    return name.partition("[")[2].removesuffix("]").removesuffix("-small").removeprefix("small-") or name


def table(kept: dict[str, dict[str, Any]]) -> str:
    """A line a case, two columns a release: millions of instructions, relative time."""
    columns: list[tuple[str, str, dict[str, float]]] = []
    for version, of in kept.items():
        columns += [
            (f"{version}: million instructions", "{:.4g}", {k: n / 1e6 for k, n in of["instructions"].items()}),
            (f"{version}: relative time", "{:.2g}", relative(of)),
        ]
    names = sorted({name for _, _, cells in columns for name in cells})
    lines = [["case", *(head for head, _, _ in columns)], ["---"] * (1 + len(columns))]
    for name in names:
        lines.append([name, *(form.format(cells[name]) if name in cells else "-" for _, form, cells in columns)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def keep(options: argparse.Namespace) -> int:
    from bench.tools import instructions

    import lacunar  # the other verbs measure other builds than the one that is installed here

    counts = json.loads(instructions.BASELINE.read_text(encoding="utf-8"))
    if (built_by := instructions.compiler()) not in counts:
        print(f"no instruction counts of {built_by}: run bench.tools.instructions --update first", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        for k in range(options.runs):
            measure(sys.executable, Path(scratch, f"{k}.json"), chosen=cases(options.k))
        about = {"commit": records.commit(), "compiler": built_by, "instructions": counts[built_by]}
        kept = about | reduced(Path(scratch))
    options.releases.mkdir(parents=True, exist_ok=True)
    path = options.releases / f"{lacunar.__version__}.json"
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    runs = f"relative times are the smallest of {options.runs} runs"
    records.save(
        "releases",
        table(releases(options.releases)),
        command="python -m bench.tools.track keep",
        computes=[],
        repeats=runs,
    )
    print(path)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--history", type=Path, default=HISTORY, help="folder of the recorded runs")
    verbs = parser.add_subparsers(required=True)
    for verb in (record, pair, plot, keep):
        of = verbs.add_parser(verb.__name__)
        of.set_defaults(verb=verb)
        if verb is pair:
            of.add_argument("before")
            of.add_argument("now")
            of.add_argument("--again", type=int, default=6, help="further runs of what looks slower (default 6)")
            of.add_argument("--out", type=Path, help="keep the JSON files there")
        if verb is plot:
            of.add_argument("runs", nargs="*", type=Path)
            of.add_argument("--out", type=Path, default=Path("history.png"))
        else:
            kept = "small" if verb is keep else None
            of.add_argument("-k", default=kept, help="which cases, as pytest takes it; `small` or `large` for a size")
            of.add_argument("--runs", type=int, default=3, help="runs of everything (default 3)")
        if verb is keep:
            of.add_argument("--releases", type=Path, default=RELEASES, help="folder of the releases")
        if verb in (pair, plot):
            of.add_argument("--threshold", type=float, default=THRESHOLD)
    options = parser.parse_args(arguments)
    return int(options.verb(options))


if __name__ == "__main__":
    sys.exit(main())
