"""`python -m bench.papers`: what it lists is there, and an interrupted run goes on where it was."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "papers" / "__main__.py").is_file():
    pytest.skip("bench is not beside the tests", allow_module_level=True)


def python(*arguments, cwd=ROOT):
    run = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, timeout=120)
    return run.returncode, run.stdout, run.stderr


def test_every_listed_experiment_has_its_module():
    code, said, _ = python("-m", "bench.papers", "LIST")
    assert code == 0
    names = [line.split()[0] for line in said.splitlines()]
    assert len(names) >= 11
    for name in names:
        assert "def run(run: Run) -> Report" in (ROOT / "bench" / "papers" / f"{name}.py").read_text(encoding="utf-8")


def test_unknown_names_are_refused():
    code, _, said = python("-m", "bench.papers", "karma_figure9")
    assert code == 2
    assert "karma_figure9: not among karma_figure2" in said


RESUME = """
import sys
from pathlib import Path
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
