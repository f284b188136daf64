"""`python -m bench.papers`: what it lists is there, and an interrupted run goes on where it was."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "papers" / "__main__.py").is_file():
    pytest.skip("bench is not beside the tests", allow_module_level=True)


def python(*arguments, cwd=ROOT):
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, timeout=120)
    return run.returncode, run.stdout, run.stderr


@pytest.fixture(scope="module")
def main():
    sys.path.insert(0, str(ROOT))
    try:
        import bench.papers.__main__ as module
    finally:
        sys.path.remove(str(ROOT))
    return module


def run_with(main, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["papers", *arguments])
    return main.main()


def test_every_listed_experiment_has_its_module(main, monkeypatch, capsys):
    run_with(main, monkeypatch, "LIST")
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert len(names) >= 11
    for name in names:
        assert "def run(run: Run) -> Report" in (ROOT / "bench" / "papers" / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["karma_figure9"], "karma_figure9: not among karma_figure2"),
        (
            ["karma_peers", "--only", "auto"],
            "karma_peers: --only is for karma_figure3, karma_table1, karma_movielens and slrm_real",
        ),
    ],
)
def test_what_is_not_there_is_refused(main, monkeypatch, capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        run_with(main, monkeypatch, *arguments)
    assert message in capsys.readouterr().err


RESUME = """
import sys
from pathlib import Path
from types import SimpleNamespace
import bench.papers.subspace_price as module
from bench.papers._run import Run

counted = []
def cell(a, b):
    counted.append(a)
    if a == int(sys.argv[2]):
        raise KeyboardInterrupt
    return {"sum": a + b, "none": None}
cell.__module__ = module.__name__
module.cell = cell
import bench.papers._run
bench.papers._run.sources = lambda compute: {"cell": "the same"}
run = Run("some", True, Path(sys.argv[1]))
try:
    print(run.cells(cell, {f"{a}": (a, 10) for a in range(4)}))
finally:
    print("computed", counted)
"""


@pytest.mark.slow
def test_finished_cells_are_kept(tmp_path):
    code, said, _ = python("-c", RESUME, str(tmp_path), "2")
    assert code != 0
    assert "computed [0, 1, 2]" in said
    code, said, wrong = python("-c", RESUME, str(tmp_path), "-1")
    assert code == 0, wrong
    assert "computed [2, 3]" in said
    assert "2 of 4 cells are there already" in said
    assert "'3': {'sum': 13, 'none': None}" in said


def test_cells_that_are_not_asked_for_are_left_out(main, tmp_path, monkeypatch):
    from bench.papers import _run

    monkeypatch.setattr(_run, "sources", lambda compute: {"cell": "the same"})
    tasks = {f"{name} seed {s}": (s,) for name in ("short", "long") for s in range(2)}
    assert _run.Run("some", True, tmp_path, hours=0).cells(float, tasks) == {}
    run = _run.Run("some", True, tmp_path, only="long")
    assert run.cells(float, tasks) == {"long seed 0": 0.0, "long seed 1": 1.0}
    assert [cell.name for cell in run.cells_used] == ["long seed 0", "long seed 1"]


RECORDED = ["| error | age | sex |", "|---|---|---|", "| one | 0.1 | 0.2 |", "| two | - | - |", "", "- A note."]


def test_rows_of_some_cells_go_into_the_recorded_table(main, tmp_path, monkeypatch):
    from bench.papers._report import Verdict

    monkeypatch.setattr(main.records, "RECORDS", tmp_path)
    monkeypatch.setattr(
        main,
        "module_of",
        lambda name: SimpleNamespace(
            claims=lambda shown: [Verdict(*shown["two"].values(), *"abcd")],
            draw=lambda shown, path: drawn.append((list(shown), path.name)),
        ),
    )
    drawn = []
    record = {
        "table": RECORDED,
        "commit": "b",
        "hours": 1,
        "computes": ["m:f"],
        "repeats": "2; 7 of one; 8 of two; so",
        "code": "c",
        "claims": [],
    }
    main.records.write_record("some", record)
    report = main.Report(
        "Some", "| error | age | sex |\n|---|---|---|\n| two | 0.3 | - |\n| three | 0.4 | - |", "3; 9 of two; so"
    )
    main.insert("some", report, [main.Cell("two seed 0", "m:g", (), 0.3, 3600.0, "a")])
    after = main.records.read("some")
    assert after["table"] == [*RECORDED[:3], "| two | 0.3 | - |", "| three | 0.4 | - |", *RECORDED[4:]]
    assert drawn == [(["one", "two", "three"], "some.png")]
    report.notes.append("Another note.")
    main.insert("some", report, [])
    assert main.records.read("some")["table"][-2:] == ["", "- Another note."]
    main.records.write_record("some", after)
    assert (after["commit"], after["hours"], after["computes"]) == ("a, b", 2.0, ["m:f", "m:g"])
    assert (after["repeats"], after["code"]) == ("3; 7 of one; 9 of two; so", "c")
    assert after["claims"][0].startswith("| Some, - | 0.3 ")


@pytest.mark.parametrize("name", ["karma_figure3", "karma_table1", "karma_movielens", "slrm_real"])
def test_a_recorded_table_is_drawn(main, tmp_path, name):
    module = main.module_of(name)
    picture = module.draw(main.read_table(main.records.read(name)["table"]), tmp_path / f"{name}.png")
    assert picture.stat().st_size > 10_000


def test_the_picture_of_figure_3_ends_where_its_table_does(main, tmp_path, monkeypatch):
    figure3, figures = main.module_of("karma_figure3"), []
    monkeypatch.setattr(figure3, "save", lambda figure, path: figures.append(figure))
    figure3.draw(main.read_table(main.records.read("karma_figure3")["table"]), tmp_path / "figure.png")
    ends = [max(axis.lines[0].get_xdata()) for axis in figures[0].axes]
    assert ends == [10_000, 10_000]
