"""The tools that watch speed: comparing two timed runs, counting instructions out of callgrind's dumps."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from lacunar import _core, _linalg

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "tools" / "compare.py").is_file():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)


def load(name, monkeypatch):
    """A tool of bench/ as a module of its own, in which a test may replace names."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, f"bench.tools.{name}", raising=False)
    return importlib.import_module(f"bench.tools.{name}")


@pytest.fixture
def compare(monkeypatch):
    return load("compare", monkeypatch)


@pytest.fixture
def write(tmp_path):
    def result(file, times, cpu="one"):
        entries = [{"fullname": name, "stats": {"min": t, "median": 2 * t}} for name, t in times.items()]
        path = tmp_path / file
        path.write_text(json.dumps({"machine_info": {"cpu": {"brand_raw": cpu}}, "benchmarks": entries}))
        return str(path)

    return result


def test_within_the_threshold(compare, write, capsys):
    before, now = write("a.json", {"x": 1.0, "y": 2.0}), write("b.json", {"x": 1.2, "y": 1.0})
    assert compare.main([before, now]) == 0
    shown = capsys.readouterr().out
    assert "SLOWER" not in shown
    assert "2 compared, geometric mean of the ratios 0.775" in shown


def test_past_the_threshold_fails_and_comes_first(compare, write, capsys):
    before, now = write("a.json", {"x": 1.0, "y": 1.0}), write("b.json", {"x": 1.2, "y": 1.3})
    assert compare.main([before, now]) == 1
    assert compare.main([before, now, "--threshold", "1.31"]) == 0
    assert compare.main([before, now, "--statistic", "median"]) == 1
    first = capsys.readouterr().out.splitlines()[1]
    assert first.endswith("y  SLOWER")


def test_runs_in_turn_are_judged_by_the_median_of_their_ratios(compare, write, tmp_path, capsys):
    for side in ("before", "now"):
        (tmp_path / side).mkdir()
    # The machine is slow in run 1 and a freak halves one time of run 2: neither makes y slower or hides that x is.
    times = {"before": [(1.0, 1.0), (3.0, 3.0), (0.5, 0.5)], "now": [(1.3, 1.0), (3.9, 3.0), (1.3, 1.0)]}
    for side, runs in times.items():
        for k, (x, y) in enumerate(runs):
            write(f"{side}/{k}.json", {"x": x, "y": y})
    folders = [str(tmp_path / side) for side in times]
    assert compare.main([*folders, "--threshold", "1.2"]) == 1
    shown = capsys.readouterr().out
    assert shown.count("SLOWER") == 1
    assert "1.30  x  SLOWER" in shown
    assert "1.00  y" in shown


def test_runs_apart_are_judged_by_their_smallest_times(compare, write, tmp_path, capsys):
    (tmp_path / "before").mkdir()
    for k, x in enumerate((1.0, 9.0)):
        write(f"before/{k}.json", {"x": x})
    assert compare.main([str(tmp_path / "before"), write("now.json", {"x": 1.2})]) == 0
    assert "1.20  x" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert compare.main([str(tmp_path / "empty"), write("now.json", {"x": 1.2})]) == 2


def test_missing_benchmarks_are_named_and_fail_when_asked(compare, write, capsys):
    before, now = write("a.json", {"x": 1.0, "gone": 1.0}), write("b.json", {"x": 1.0, "new": 1.0})
    assert compare.main([before, now]) == 0
    assert "only before: gone" in capsys.readouterr().out
    assert compare.main([before, now, "--require-all"]) == 1


def test_another_processor_is_said(compare, write, capsys):
    assert compare.main([write("a.json", {"x": 1.0}), write("b.json", {"x": 1.0}, cpu="two")]) == 0
    assert "different processors, one and two" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "b.json"),
        ("[]", "not a pytest-benchmark JSON file"),
        ('{"benchmarks": [{"fullname": "x", "stats": {}}]}', "stats.min"),
        ('{"benchmarks": [{"fullname": "x", "stats": {"min": 0}}]}', "positive"),
        ('{"benchmarks": [{"fullname": "x", "stats": {"min": NaN}}]}', "positive"),
        ('{"benchmarks": []}', "no benchmark in common"),
    ],
)
def test_what_cannot_be_compared_is_refused(compare, write, tmp_path, capsys, text, said):
    bad = tmp_path / "b.json"
    bad.write_text(text)
    assert compare.main([write("a.json", {"x": 1.0}), str(bad)]) == 2
    assert said in capsys.readouterr().err


def test_a_file_that_is_not_there(compare, write, tmp_path, capsys):
    assert compare.main([str(tmp_path / "none.json"), write("a.json", {"x": 1.0})]) == 2
    assert "none.json" in capsys.readouterr().err


DUMP = """\
desc: Trigger: Client Request: gram, dense
positions: line
events: Ir
summary: 1000

ob=/usr/lib/libc.so.6
fl=???
fn=memcpy
0 100

ob=/venv/site-packages/lacunar/_core.cpython-311-x86_64-linux-gnu.so
fl=???
fn=gram
0 20
cob=/usr/lib/libc.so.6
cfn=memcpy
calls=3 0
0 100
0 5

fn=other
12 7

ob=/venv/site-packages/numpy/_core/_multiarray_umath.so
fn=add
0 50
"""


@pytest.fixture
def instructions(monkeypatch):
    for name in [name for name in sys.modules if name == "hot" or name.startswith("hot.")]:
        monkeypatch.delitem(sys.modules, name)
    return load("instructions", monkeypatch)


def test_only_own_instructions_are_counted(instructions):
    assert instructions.own_instructions(DUMP) == 20 + 5 + 7
    assert instructions.name_of(DUMP) == "gram, dense"
    assert instructions.name_of("desc: Trigger: Program termination\n") is None


def test_counts_are_judged_by_the_tolerance(instructions):
    baseline = {"same": 1000, "slow": 1000, "fast": 1000}
    lines, good = instructions.judge({"same": 1029, "fast": 900}, baseline)
    assert good
    assert "--update" in lines[1]
    lines, good = instructions.judge({"slow": 1031}, baseline)
    assert not good
    assert "SLOWER" in lines[0]
    assert not instructions.judge({"new": 5}, baseline)[1]


def test_the_baseline_knows_every_counted_case(instructions):
    baselines = json.loads(instructions.BASELINE.read_text(encoding="utf-8"))
    assert baselines
    for counts in baselines.values():
        assert set(counts) == set(instructions.counted())
        assert len(counts) >= 12


def test_five_per_cent_more_is_seen_in_every_kernel(instructions):
    for baseline in json.loads(instructions.BASELINE.read_text(encoding="utf-8")).values():
        for name, before in baseline.items():
            lines, good = instructions.judge(baseline | {name: round(1.05 * before)}, baseline)
            assert not good
            assert [line.split("  ")[-2:] for line in lines if "SLOWER" in line] == [[name, "SLOWER"]]
            assert instructions.judge(baseline | {name: round(1.02 * before)}, baseline)[1]


@pytest.mark.parametrize(("built_by", "more", "code"), [("gcc 1.0", 0, 0), ("gcc 1.0", 5, 1), ("clang 99", 5, 0)])
def test_counts_of_another_compiler_are_not_compared(instructions, monkeypatch, tmp_path, capsys, built_by, more, code):
    baseline = tmp_path / "baseline.json"
    baseline.write_text(json.dumps({"gcc 1.0": {"x": 100}}))
    monkeypatch.setattr(instructions, "BASELINE", baseline)
    monkeypatch.setattr(instructions, "cannot_run", lambda: None)
    monkeypatch.setattr(instructions, "compiler", lambda: built_by)
    monkeypatch.setattr(instructions, "count", lambda: {"x": 100 + more})
    monkeypatch.setattr(sys, "argv", ["instructions.py", "--check"])
    assert instructions.main() == code
    assert ("NOT COMPARED" in capsys.readouterr().out) == (built_by == "clang 99")


@pytest.fixture
def track(monkeypatch):
    monkeypatch.delitem(sys.modules, "compare", raising=False)
    return load("track", monkeypatch)


def test_what_looks_slower_is_measured_again(track, monkeypatch, tmp_path, capsys):
    """Run 0 to 2 make y look slower; it is measured until its median is not. x stays slower."""
    asked = []
    now = {"x": [1.3] * 9, "y": [1.3, 1.3, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]}

    def measure(build, out, *, chosen):
        asked.append(chosen)
        names = [name for name in now if chosen[0].startswith("bench/") or name in chosen]
        times = {name: now[name][int(out.stem)] if build == "new" else 1.0 for name in names}
        entries = [{"fullname": name, "stats": {"min": t}} for name, t in times.items()]
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps({"benchmarks": entries}))

    monkeypatch.setattr(track, "measure", measure)
    assert track.main(["pair", "old", "new", "--out", str(tmp_path)]) == 1
    assert [chosen for chosen in asked if "y" in chosen] == [["x", "y"]] * 2
    assert len(asked) == 2 * 9
    assert capsys.readouterr().out.count("SLOWER") == 1


def test_history_is_drawn(track, write, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for k, x in enumerate((1.0, 1.1, 1.4)):
        (tmp_path / f"{k}").mkdir()
        write(f"{k}/0.json", {"bench.py::test[x]": x, "bench.py::test[y]": 1.0})
    out = tmp_path / "history.png"
    assert track.main(["--history", str(tmp_path / "none"), "plot", "--out", str(out)]) == 2
    assert track.main(["--history", str(tmp_path), "plot", "--out", str(out)]) == 0
    assert out.stat().st_size > 1000


# Compiled functions that are no loop: sizes and single numbers.
NO_LOOP = {"build_info", "isa_of", "primal_table_shape", "rls_stride", "shared_ridge"}
ENGINE = ("decide", "learn", "run", "value", "values")


def compiled_loops():
    """(where, name) of every compiled function, and of what the engine of completion does a trial with."""
    for module in (_core, _linalg):
        for name, function in list(vars(module).items()):
            if callable(function) and not isinstance(function, type) and not name.startswith("_"):
                yield module, name
    yield from ((_core.Meg, name) for name in ENGINE)


@pytest.mark.slow
def test_small_hot_loops_give_their_answers_and_reach_every_compiled_loop(instructions, monkeypatch):
    missing = set()

    def watch(owner, name):
        function = getattr(owner, name)
        missing.add(name)

        def call(*args, **kwargs):
            missing.discard(name)
            return function(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    for owner, name in compiled_loops():
        watch(owner, name)
    for case in instructions.hot.CASES.values():
        run, check = case.at("small")
        check(run())
        check(run())  # a second call starts from the same state
    assert missing <= NO_LOOP, f"no case of bench/hot reaches {sorted(missing - NO_LOOP)}"


def kept(path, times, counts, compiler="gcc 1.0"):
    entries = [{"fullname": f"bench.py::test[small-{name}]", "stats": {"min": t}} for name, t in times.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"compiler": compiler, "instructions": counts, "benchmarks": entries}))


def cells(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_releases_stand_side_by_side_in_the_order_of_their_versions(track, tmp_path):
    kept(tmp_path / "0.10.0.json", {"x": 1.0, "new": 1.0}, {"x": 3_000_000, "new": 5_000})
    kept(tmp_path / "0.9.0.json", {"x": 0.5, "y": 2.0}, {"x": 2_000_000})
    head, _, *rows = cells(track.table(track.releases(tmp_path)))
    assert [title.split(":")[0] for title in head[1:]] == ["0.9.0", "0.9.0", "0.10.0", "0.10.0"]
    assert rows == [["new", "-", "-", "0.005", "1"], ["x", "2", "0.5", "3", "1"], ["y", "-", "2", "-", "-"]]


def test_relative_times_do_not_know_the_processor(track, tmp_path):
    for version, factor in (("1.0.0", 1.0), ("1.1.0", 4.0)):
        kept(tmp_path / f"{version}.json", {"x": factor, "y": 3 * factor, "z": 7 * factor}, {})
    slow, quick = (track.relative(of) for of in track.releases(tmp_path).values())
    assert slow == pytest.approx(quick)
    assert slow["z"] / slow["x"] == pytest.approx(7)


@pytest.fixture
def release(track, instructions, monkeypatch, tmp_path):
    """`keep` in a folder of its own, with times that a test sets: (folder, times of every run)."""
    records = importlib.import_module("bench.tools.records")
    baseline, runs = tmp_path / "instructions.json", {"x": [2.0, 1.0, 6.0], "y": [1.0, 1.0, 1.0]}
    baseline.write_text(json.dumps({"gcc 1.0": {"x": 2_000_000}}))
    monkeypatch.setattr(records, "RECORDS", tmp_path / "records")
    monkeypatch.setattr(track.records, "commit", lambda: "1234567")
    monkeypatch.setattr(instructions, "BASELINE", baseline)
    monkeypatch.setattr(instructions, "compiler", lambda: "gcc 1.0")

    def measure(build, out, *, chosen):
        assert chosen[-2:] == ["-k", "small"]
        kept(out, {name: times[int(out.stem)] for name, times in runs.items()}, {})

    monkeypatch.setattr(track, "measure", measure)
    return tmp_path, instructions


def test_a_release_is_kept_with_its_record(track, release, compare):
    folder, _ = release
    assert track.main(["keep", "--releases", str(folder / "releases")]) == 0
    (file,) = (folder / "releases").glob("*.json")
    content = json.loads(file.read_text())
    assert content["instructions"] == {"x": 2_000_000}
    assert content["benchmarks"][0]["stats"] == {"min": 1.0, "median": 2.0}
    assert compare.main([str(file), str(file)]) == 0  # still a file of pytest-benchmark
    record = json.loads((folder / "records" / "releases.json").read_text())
    assert cells("\n".join(record["table"]))[2:] == [["x", "2", "1"], ["y", "-", "1"]]


def test_a_release_by_a_compiler_without_counts_is_refused(track, release, monkeypatch, capsys):
    folder, instructions = release
    monkeypatch.setattr(instructions, "compiler", lambda: "clang 99")
    assert track.main(["keep", "--releases", str(folder / "releases")]) == 2
    assert "clang 99" in capsys.readouterr().err
    assert not (folder / "releases").exists()
