"""Records and the pages that are made of them: `python -m bench.tools.records`."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
if not (ROOT / "bench" / "tools" / "records.py").is_file():
    pytest.skip("bench is not beside the tests", allow_module_level=True)
sys.path.insert(0, str(ROOT))
records = pytest.importorskip("bench.tools.records")

PAGE = """# A page

The best has <!-- figure some best --><!-- / -->, b has <!-- figure some b error --><!-- / -->.

<!-- table some -->
<!-- /table -->
"""
SCRIPT = "# a comment\nfrom lacunar.lowrank import GROUSE\n\n\ndef run():\n    return 1\n"


@pytest.fixture
def house(tmp_path, monkeypatch):
    """A folder with one page, one script and its record."""
    (tmp_path / "docs" / "measured").mkdir(parents=True)
    (tmp_path / "bench" / "tools").mkdir(parents=True)
    (tmp_path / "bench" / "some.py").write_text(SCRIPT)
    (tmp_path / "docs" / "measured" / "page.md").write_text(PAGE)
    (tmp_path / "python").symlink_to(ROOT / "python")
    (tmp_path / "cpp").symlink_to(ROOT / "cpp")
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(records, "RECORDS", tmp_path / "docs" / "measured" / "records")
    monkeypatch.setattr(records, "commit", lambda: "1234567")
    save()
    return tmp_path


def save(error=".25"):
    records.save(
        "some",
        f"| | error |\n|---|---|\n| a | **.20** |\n| b | {error} |",
        command="python bench/some.py",
        computes=["bench/some.py"],
        repeats="three seeds",
        figures={"best": ".20"},
    )


def test_a_page_gets_its_tables_and_figures_with_their_source(house, capsys):
    page = house / "docs" / "measured" / "page.md"
    assert records.main(["check"]) == 1
    assert "docs/measured/page.md" in capsys.readouterr().err
    assert page.read_text() == PAGE  # only looked at
    assert records.main(["write"]) == 0
    text = page.read_text()
    assert (
        "The best has <!-- figure some best -->.20<!-- / -->, b has <!-- figure some b error -->.25<!-- / -->." in text
    )
    assert "| b | .25 |\n\n`python bench/some.py`, commit `1234567`, " in text
    assert "; three seeds." in text
    assert "older" not in text.lower()
    assert records.main(["check"]) == 0
    assert records.main(["write"]) == 0
    assert page.read_text() == text  # a second time changes nothing


VIEW = """[duels]
first = "the table"
ours = "Ours"
without = ["Part"]
rows = [["small", "race", "a"], ["large", "race", "b"]]
links = {race = "page.md"}
"""


def race(row_b):
    records.save(
        "race",
        f"| error | `Ours` | X | Y | Z | `Part` |\n|---|---|---|---|---|---|\n| a | **.10*** | .30 | .20 | .20 | .05 |\n{row_b}",
        command="python bench/some.py",
        computes=["bench/some.py"],
        repeats="once",
    )


def test_a_view_puts_ours_beside_the_best_of_its_rivals(house):
    (house / "bench" / "tools" / "views.toml").write_text(VIEW)
    race("| b | .40 | **1e-3** | .20 | - | .1 |")
    page = house / "docs" / "measured" / "page.md"
    page.write_text("# A page\n\n<!-- table duels -->\n<!-- /table -->\n")
    assert records.main(["write"]) == 0
    text = page.read_text()
    assert "| small | [error](page.md) | `a` | .10 | Y, Z | .20 |\n" in text
    assert "| large | [error](page.md) | `b` | .40 | X | 1e-3 |\n\nFrom the tables linked, commit `1234567`, " in text
    (house / "bench" / "some.py").write_text(SCRIPT.replace("return 1", "return 2"))
    records.main(["write"])
    assert "> Older than the code that they measure: `race` (1234567)." in page.read_text()


def test_a_view_of_a_row_that_is_not_there_is_an_error(house):
    (house / "bench" / "tools" / "views.toml").write_text(VIEW)
    race("| c | .40 | .1 | .2 | .3 | .1 |")
    (house / "docs" / "measured" / "page.md").write_text("# A page\n\n<!-- table duels -->\n<!-- /table -->\n")
    with pytest.raises(SystemExit, match=r"the row 'b' of the record race, which has a, c\."):
        records.main(["write"])


def test_no_line_begins_with_a_figure(house):
    """To Markdown it would be a block of HTML, and tear the sentence."""
    page = house / "docs" / "measured" / "page.md"
    page.write_text(
        "# A page\n\nThe best has\n  <!-- figure some best -->.20<!-- / -->,\n<!-- figure some b error -->.25<!-- / --> is b.\n"
    )
    assert records.main(["check"]) == 1
    assert records.main(["write"]) == 0
    assert (
        "The best has <!-- figure some best -->.20<!-- / -->, <!-- figure some b error -->.25<!-- / --> is b.\n"
        in page.read_text()
    )
    for first in ("", "- ", "> "):
        page.write_text(f"# A page\n\n{first}<!-- figure some best -->.20<!-- / --> is the best.\n")
        with pytest.raises(SystemExit, match=r"page\.md: a paragraph begins with a figure"):
            records.main(["check"])


def test_a_new_record_makes_the_page_wrong_and_so_does_a_hand_that_edits_it(house):
    page = house / "docs" / "measured" / "page.md"
    records.main(["write"])
    save(".26")
    assert records.main(["check"]) == 1
    records.main(["write"])
    assert ".26" in page.read_text()
    page.write_text(page.read_text().replace("| b | .26 |", "| b | .24 |"))
    assert records.main(["check"]) == 1


def test_a_page_says_when_the_code_has_changed_since(house):
    records.main(["write"])
    script = house / "bench" / "some.py"
    script.write_text(SCRIPT.replace("# a comment", "# another comment"))
    assert records.main(["check"]) == 0  # comments measure nothing
    script.write_text(SCRIPT.replace("return 1", "return 2"))
    assert records.main(["check"]) == 1
    records.main(["write"])
    text = (house / "docs" / "measured" / "page.md").read_text()
    assert text.startswith("# A page\n\n<!-- age -->\n> Older than the code that they measure: `some` (1234567).\n")
    script.write_text(SCRIPT)
    records.main(["write"])
    assert "Older" not in (house / "docs" / "measured" / "page.md").read_text()


def test_the_library_is_part_of_what_is_measured():
    reached = records.library([SCRIPT])
    assert "python/lacunar/lowrank/trackers.py" in reached
    assert not any("/observed/" in path or "/persistence/" in path for path in reached)
    assert records.digest(reached) == records.digest(records.library([SCRIPT, "import numpy"]))


def test_rows_are_told_apart_by_as_many_cells_as_needed():
    table = ["| n | p | error |", "|---|---|---|", "| 10 | .1 | **.5** |", "| 10 | .2 | `.4` |"]
    assert records.cells(table) == {"10, .1 error": ".5", "10, .2 error": ".4"}
    assert records.cells(["```text", "error .5", "```"]) == {}


def test_what_a_command_prints_is_its_record(house, capsys):
    (house / "bench" / "tools" / "records.toml").write_text(
        '[some]\ncommand = "ANSWER=42 python bench/some.py --rows 3"\nrepeats = "once"\n'
        '[plain]\ncommand = "python bench/plain.py"\nrepeats = "twice"\nlines = "error"\n'
        '[broken]\ncommand = "python bench/broken.py"\nrepeats = "never"\n'
    )
    (house / "bench" / "some.py").write_text(
        "import os, sys\nprint('begins')\nprint('| n | s |\\n|---|---|')\nprint(f'| {sys.argv[2]} | {os.environ[\"ANSWER\"]} |')\n"
    )
    (house / "bench" / "plain.py").write_text("print('load 3')\nprint('error .5  ')\n")
    (house / "bench" / "broken.py").write_text("raise SystemExit(3)\n")
    assert records.main(["run", "some", "plain"]) == 0
    assert "begins" in capsys.readouterr().out
    assert records.read("some")["table"] == ["| n | s |", "|---|---|", "| 3 | 42 |"]
    assert records.read("some")["command"] == "ANSWER=42 python bench/some.py --rows 3"
    assert records.read("plain")["table"] == ["```text", "error .5", "```"]
    with pytest.raises(SystemExit, match="exit status 3; broken is left as it was"):
        records.main(["run", "broken"])
    with pytest.raises(SystemExit):
        records.main(["run", "other"])
    assert "other: not among some, plain, broken" in capsys.readouterr().err


def test_tables_that_no_command_wrote_are_counted(house):
    page = house / "docs" / "measured" / "page.md"
    page.write_text(PAGE + "\n| n | seconds |\n|---|---|\n| 1 | 2 |\n")
    records.main(["write"])
    assert "Not compared with today's code: 1 tables without a command" in page.read_text()
    page.write_text(PAGE + "\n<!-- not measured -->\n| n | bound |\n|---|---|\n| 1 | 2 |\n")
    records.main(["write"])
    assert "without a command" not in page.read_text()


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            "<!-- figure some worst --><!-- / -->",
            "the figure 'worst' of the record some, which has a error, b error, best",
        ),
        ("<!-- figure other x --><!-- / -->", "asks for the record other"),
    ],
)
def test_a_place_without_a_record_is_an_error(house, place, message):
    (house / "docs" / "measured" / "page.md").write_text(f"# A page\n\n{place}\n")
    with pytest.raises(SystemExit, match=message):
        records.main(["write"])


def test_pages_for_users_quote_no_figures():
    """They have tables, made by `write`; a sentence says which way and links to what was measured."""
    pages = [ROOT / "README.md", ROOT / "docs" / "index.md", *(ROOT / "docs" / "user").glob("*.md")]
    assert not [page.name for page in pages if "<!-- figure" in page.read_text(encoding="utf-8")]


def test_the_pages_are_what_their_records_give():
    assert records.main(["check"]) == 0
