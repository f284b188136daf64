"""Every example is short and runs."""

import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))
if not EXAMPLES:
    pytest.skip("the examples are not beside the tests", allow_module_level=True)


FITS_MANY = {"either_way", "five_minutes", "more_missing_values"}  # whole learners, for seconds


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if path.stem in FITS_MANY else ()) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example(path, capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    assert set(path.read_text(encoding="utf-8").splitlines()[2]) == {"="}, "the gallery wants a title"
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 60
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
