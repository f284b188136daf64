"""Files that are no plain table: packed ones that hold too much, sheets, comments, rows of other lengths, and words for missing in every format."""

import bz2
import gzip
import io
import json
import lzma
import re
import sys
import tracemalloc
import zipfile

import numpy as np
import pandas as pd
import pytest

import lacunar
from lacunar.cli import main
from lacunar.comparison import UserError, load_problem, read_table
from lacunar.comparison.packed import most_bytes

LINES = [f"{k},{k % 7},{'uv'[k % 2]}" for k in range(40)]
TEXT = "\n".join(["a,b,y", *LINES]) + "\n"


@pytest.fixture
def place(tmp_path):
    def write(content, name="t.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(tmp_path / name)

    return write


def zipped(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


# -- packed files -------------------------------------------------------------------------------------------------------

PACKERS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": lambda content: zipped(t_csv=content)}


@pytest.mark.parametrize("ending", PACKERS)
def test_packed_text_is_read(ending, place):
    packed = PACKERS[ending](TEXT.encode())
    assert read_table(place(packed, f"t.csv.{ending}")).frame.shape == (40, 3)
    assert read_table(place(packed, "no_ending")).frame.shape == (40, 3)


def test_packed_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode()))))
    assert read_table("-").frame.shape == (40, 3)


@pytest.mark.slow
@pytest.mark.parametrize("ending", PACKERS)
def test_a_bomb_is_refused_before_it_is_unpacked(ending, place, monkeypatch):
    monkeypatch.setattr("lacunar.comparison.packed.LEAST", 2**22)
    bomb = place(PACKERS[ending](b"0,1,2\n" * 2**23), f"bomb.csv.{ending}")
    tracemalloc.start()
    with pytest.raises(UserError, match=r"bomb\.csv.* the file has .* and unpacks to .*unpack it first"):
        read_table(bomb)
    assert tracemalloc.get_traced_memory()[1] < 2**24
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["npz", "xlsx", "parquet"])
def test_bombs_of_every_format(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("lacunar.comparison.packed.LEAST", 2**22)
    bomb = tmp_path / f"bomb.{kind}"
    if kind == "npz":
        np.savez_compressed(bomb, X=np.zeros((2**20, 10)), y=np.zeros(2**20))
    elif kind == "xlsx":
        bomb.write_bytes(zipped(xl__workbook_xml=""))
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/workbook.xml", " " * 2**24)
    else:
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.table({name: np.zeros(2**20) for name in "abcdefgh"}), bomb)
    size = bomb.stat().st_size
    assert size < 2**18
    with pytest.raises(UserError, match=rf"bomb\.{kind}: the file has .* and unpacks to"):
        read_table(str(bomb))


def test_the_limit_grows_with_the_file():
    assert most_bytes(1) == 2**28
    assert most_bytes(2**30) == 50 * 2**30


def test_an_archive_of_several_files_names_them(place):
    with pytest.raises(UserError, match=r"several files, a\.csv, b\.csv\. Unpack it and name one"):
        read_table(place(zipped(a_csv=TEXT, b_csv=TEXT), "t.zip"))


# -- sheets -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def book(tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.read_csv(io.StringIO(TEXT))
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        pd.DataFrame({"Read me": ["by hand", "in spring"]}).to_excel(writer, sheet_name="About", index=False)
        frame.to_excel(writer, sheet_name="Data", index=False)
        frame[:20].to_excel(writer, sheet_name="1", index=False)
    return str(tmp_path / "t.xlsx")


def test_an_odd_first_sheet_lists_the_sheets(book, capsys):
    assert main(["compare", book]) == 1
    said = capsys.readouterr().err
    assert "'About'" in said
    assert "'Data'" in said
    assert "--sheet" in said
    assert "--sep" not in said


@pytest.mark.parametrize(("sheet", "rows"), [("Data", 40), (2, 40), ("2", 40), ("1", 20), (3, 20)])
def test_a_sheet_is_named_or_numbered(book, sheet, rows):
    table = read_table(book, sheet=sheet)
    assert table.frame.shape == (rows, 3)
    assert any("--sheet reads another" in note for note in table.notes)
    assert len(load_problem(book, sheet=sheet).y) == rows


@pytest.mark.parametrize("sheet", ["Date", 0, 9, "-1"])
def test_a_sheet_that_is_not_there(book, sheet, tmp_path, capsys):
    assert main(["fit", book, "--output", str(tmp_path / "m"), f"--sheet={sheet}"]) == 2
    assert "'About', 'Data', '1'" in capsys.readouterr().err


def test_one_column_of_a_frame_has_no_separator():
    with pytest.raises(UserError, match="more columns"):
        load_problem(pd.DataFrame({"a": [1, 2]}))


# -- comments and rows of other lengths ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "remedy", "options"),
    [
        ("# made by hand\n" + TEXT, 2, "--comment '#'", {"comment": "#"}),
        ("Exported by a program\n\n" + TEXT, 3, "--skip-rows N", {"skip_rows": 2}),
        (TEXT + "1,2,u,4\n", 42, "--ragged skip", {"ragged": "skip"}),
    ],
)
def test_a_row_that_does_not_fit_is_named_with_a_way_on(text, line, remedy, options, place):
    file = place(text)
    with pytest.raises(UserError, match=rf"line {line} has .*{remedy}"):
        read_table(file)
    assert read_table(file, **options).frame.shape == (40, 3)
    assert read_table(file, **options).frame["a"].dtype.kind == "i"


def test_ragged_rows_are_counted(place):
    file = place(TEXT + "1,2,u,4\n3,4\n")
    cut, skipped = read_table(file, ragged="cut"), read_table(file, ragged="skip")
    assert (len(cut.frame), len(skipped.frame)) == (42, 40)
    assert cut.frame["y"].iloc[40] == "u"
    for table in (cut, skipped):
        assert any("Warning: 2 rows" in note and "line 42" in note for note in table.notes)


def test_a_comment_between_rows_is_found(place):
    file = place(TEXT + "# checked on Monday\n" + "1,2,u\n")
    assert any("line 42" in note and "--comment '#'" in note for note in read_table(file).notes)
    assert len(read_table(file, comment="#").frame) == 41
    assert not any("fewer cells" in note for note in read_table(place("a,b\n1,\n2,3\n")).notes)


def test_a_mark_inside_a_cell_begins_no_comment(place):
    assert read_table(place("colour,y\n#ff0000,1\nred # two,2\n"), comment="//").frame["colour"].tolist() == [
        "#ff0000",
        "red # two",
    ]


def test_options_of_the_shell_reach_the_reader(place, tmp_path, capsys):
    file = place("Title\n" + "# x\n" + TEXT + "1,2,u,4\n")
    words = ["--skip-rows", "1", "--comment", "#", "--ragged", "skip", "--learner", "karma-2"]
    assert main(["fit", file, "--output", str(tmp_path / "m"), *words]) == 0
    assert "40 rows, 2 columns" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        {"ragged": "drop"},
        {"skip_rows": -1},
        {"decimal": "x"},
        {"thousands": "."},
        {"decimal": ",", "thousands": ","},
        {"thousands": ",,"},
        {"encoding": "no such"},
        {"encoding": "base64"},
        {"na_values": "c=-9"},
    ],
)
def test_options_that_there_are_not(options, place):
    with pytest.raises(UserError, match="--") as refused:
        read_table(place(TEXT), **options)
    assert refused.value.code == 2


def test_a_word_for_missing_may_have_an_equals_sign(place):
    assert read_table(place(TEXT.replace("v", "x=y")), na_values="x=y").frame["y"].isna().sum() == 20


@pytest.mark.parametrize("sep", ["::", "||", r"\t", "\t", ".*"])
def test_separators_of_several_characters(sep, place, capsys):
    marks = "\t" if sep == r"\t" else sep
    whole = read_table(place(TEXT))
    pd.testing.assert_frame_equal(read_table(place(TEXT.replace(",", marks)), sep=sep).frame, whole.frame)
    odd = place(TEXT.replace(",", marks) + marks.join(["1", "2", "u", "4"]) + "\n")
    with pytest.raises(UserError, match="line 42 has 4 cells"):
        read_table(odd, sep=sep)
    pd.testing.assert_frame_equal(read_table(odd, sep=sep, ragged="skip").frame, whole.frame)


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\x00\xff", b"\x80\x05\x95\x9d\x81", bytes(range(256))])
def test_other_files_say_which_there_are(content, place):
    with pytest.raises(UserError, match="Known are CSV and other text"):
        read_table(place(content))


# -- words for missing --------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": [1.0, -999, 3, 4] * 10, "b": [1, 2, -999, 4] * 10, "y": ["u", "v", "u", "-999"] * 10})


def table_of(kind, folder):
    """The frame as a file or a frame of another library."""
    file = str(folder / f"t.{kind}")
    if kind == "pandas":
        return FRAME
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(FRAME)
    if kind == "xlsx":
        pytest.importorskip("openpyxl")
        FRAME.to_excel(file, index=False)
    elif kind == "parquet":
        FRAME.to_parquet(file)
    elif kind == "arrow":
        FRAME.to_feather(file)
    elif kind == "stream":
        arrow = pytest.importorskip("pyarrow").Table.from_pandas(FRAME)
        with pytest.importorskip("pyarrow.ipc").new_stream(file, arrow.schema) as stream:
            stream.write_table(arrow, max_chunksize=7)
    elif kind == "jsonl":
        FRAME.to_json(file, orient="records", lines=True)
    else:
        FRAME.to_csv(file, index=False)
    return file


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet", "arrow", "stream", "jsonl", "pandas", "polars"])
@pytest.mark.parametrize(
    ("na_values", "missing"),
    [(["-999"], "aby"), (-999, "aby"), ("a=-999", "a"), ({"b": -999}, "b"), ({"b": ["-999.0"], "y": "-999"}, "by")],
)
def test_words_for_missing_mean_it_in_every_format(kind, na_values, missing, tmp_path):
    problem = load_problem(table_of(kind, tmp_path), "y", na_values=na_values)
    assert (len(problem.y) == 30) == ("y" in missing)
    for name in "ab":
        assert bool(problem.frame[name].isna().any()) == (name in missing)
        assert bool((problem.frame[name] == -999).any()) == (name not in missing)


def test_words_for_missing_in_arrays():
    X = FRAME[["a", "b"]].to_numpy()
    assert load_problem(X, np.arange(40.0), na_values=-999).missing_share == 0.25
    assert load_problem(X, np.arange(40.0), na_values={"x1": -999}).missing_share == 0.125


def test_words_for_a_column_that_is_not_there():
    with pytest.raises(UserError, match="na_values='c': no such column"):
        lacunar.compare(FRAME, "y", na_values={"c": 9})


@pytest.mark.parametrize("line", ['{"a": 1, "y":', "{'a': 1, 'y': 2}", "1, 2"])
def test_a_broken_line_of_json_is_named(line, place):
    file = place('{"a": 1, "y": 2}\n\n' + line + '\n{"a": 3, "y": 4}\n', "bad.jsonl")
    with pytest.raises(UserError, match=r"line 3 .* is no JSON object. .* mend the line"):
        read_table(file)


# -- tables as spreadsheets and other programs write them --------------------------------------------------------------------


def test_a_first_line_may_say_the_separator(tmp_path):
    (tmp_path / "t.csv").write_text("sep=;\na;b\n1,5;x\n2,5;y\n")
    assert read_table(str(tmp_path / "t.csv")).frame.to_dict("list") == {"a": [1.5, 2.5], "b": ["x", "y"]}


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_title_above_the_names_is_warned_of(tmp_path, ending):
    rows = [["Report", "", ""], ["a", "b", "c"], [1, 2.5, "x"], [3, 4.5, "y"]]
    place = str(tmp_path / f"t{ending}")
    frame = pd.DataFrame(rows)
    frame.to_csv(place, header=False, index=False) if ending == ".csv" else frame.to_excel(
        place, header=False, index=False
    )
    note = next(note for note in read_table(place).notes if "names" in note)
    assert "names 1 of 3 columns (Report)" in note
    assert "--skip-rows N" in note
    table = read_table(place, skip_rows=1)
    assert table.frame.to_dict("list") == {"a": [1, 3], "b": [2.5, 4.5], "c": ["x", "y"]}
    assert table.notes == []


@pytest.mark.parametrize("sep", [" ", "\t", ",", ";"])
def test_tables_that_r_writes(place, sep):
    lines = ['"size" "kind of" "c"', '"1" 1.5 "x y" 7', '"2" NA "z" 8', '"k 3" 2.5 NA 9']
    cells = [["1", 1.5, "x y", 7], ["2", None, "z", 8], ["k 3", 2.5, None, 9]]
    text = "\n".join(sep.join(re.findall(r'"[^"]*"|\S+', line)) for line in lines) + "\n"
    table = read_table(place(text, "t.txt"))
    assert [*table.frame] == ["Unnamed: 0", "size", "kind of", "c"]
    assert table.frame.astype(object).where(table.frame.notna(), None).to_numpy().tolist() == cells
    assert table.notes == []
    without = "\n".join(line.split(sep, 1)[k > 0] for k, line in enumerate(text.replace("k 3", "k3").splitlines()))
    table = read_table(place(text.splitlines()[0] + "\n" + without.split("\n", 1)[1], "t.txt"))
    assert table.frame["kind of"].tolist()[:2] == ["x y", "z"]


def test_a_mark_at_the_end_of_every_line_is_no_row_name(place):
    assert read_table(place('"a","b"\n1,2,\n3,4,\n')).frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


def test_a_word_over_numbers_is_their_name(place):
    table = read_table(place("a,y\n" + "".join(f"{k},{'yn'[k % 2]}\n" for k in range(9))))
    assert [*table.frame] == ["a", "y"]
    assert table.notes == []


def test_names_of_a_sheet_are_its_own(tmp_path):
    place = str(tmp_path / "t.xlsx")
    frame = pd.DataFrame([[None] * 3, ["na", None, 2026], [1, "n/a", 5], [2, "x", None]])
    frame.to_excel(place, header=False, index=False)
    table = read_table(place)  # an empty row above is none
    assert table.frame.astype(object).where(table.frame.notna(), None).to_dict("list") == {
        "na": [1, 2], "c2": [None, "x"], "2026": [5, None],
    }  # fmt: skip
    pd.DataFrame([["a", "a"], [1, 2]]).to_excel(place, header=False, index=False)
    with pytest.raises(UserError, match="'a' occurs more than once"):
        read_table(place)


@pytest.mark.parametrize("orient", ["columns", "list"])
@pytest.mark.parametrize("indent", [None, 1])
def test_json_of_columns(tmp_path, orient, indent):
    frame = pd.DataFrame({"a": [1.5, None, 3.0], "b": ["x", "y", None]})
    place = tmp_path / "t.json"
    if orient == "columns":
        frame.to_json(place, indent=indent)
    else:
        place.write_text(json.dumps({"a": [1.5, None, 3.0], "b": ["x", "y", None]}, indent=indent))
    read = read_table(str(place)).frame
    assert read.astype(object).where(read.notna(), None).to_dict("list") == {
        "a": [1.5, None, 3.0],
        "b": ["x", "y", None],
    }


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "Excel before 2007. Save it as .xlsx"),
        ("t.arff", b"@relation r\n@attribute a string\n@data\nx\n", "write other tables as CSV"),
    ],
)
def test_files_that_are_not_read_say_what_to_write(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_table(str(tmp_path / name))


def test_a_table_of_opendocument_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.ods", "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("content.xml", "<x/>")
    with pytest.raises(UserError, match=r"OpenDocument\. Save it as .xlsx"):
        read_table(str(tmp_path / "t.ods"))


def test_a_target_that_rows_are_too_short_for(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,2\n3,4\n" * 5)
    with pytest.raises(UserError, match=r"'y' is missing in every row.*10 rows have fewer cells"):
        load_problem(str(tmp_path / "t.csv"))


def text_of(cells, head="a,y"):
    return "\n".join([head, *(f"{cell},{'uv'[k % 2]}" for k, cell in enumerate(cells))]) + "\n"


def warned_of(table):
    return " ".join(note for note in table.notes if note.startswith("Warning: "))


def test_numbers_with_and_without_a_unit_are_said(place):
    table = read_table(place(text_of(f"{k}%" if k % 3 else f"0.{k}" for k in range(30))))
    assert "numbers with '%', and 10 numbers without" in warned_of(table)
    assert not warned_of(read_table(place(text_of(f"{k}%" for k in range(30)))))


@pytest.mark.parametrize(
    "cell",
    [
        lambda k: f"{'$€'[k % 2]}{k}.50",
        lambda k: f"CHF {k}.50",
        lambda k: f"{k}.5-",
        lambda k: f"{k} 1/2",
        lambda k: f"{k % 28 + 1:02d}.03.2024" if k % 2 else f"2024-03-{k % 28 + 1:02d}",
        lambda k: f"{k % 28 + 1}. März 2024",
        lambda k: f"{k} {['kg', 'g'][k % 2]}",
        lambda k: f"{k}{'kM'[k % 2]}",
        lambda k: f"20{10 + k // 4}Q{k % 4 + 1}",
        lambda k: f"2024-03-{k % 28 + 1:02d} 10:00:00 CET",
    ],
)
def test_text_that_looks_like_numbers_or_dates_is_said(cell, place):
    assert "look like numbers or dates" in warned_of(read_table(place(text_of(map(cell, range(30))))))


@pytest.mark.parametrize(
    "cell",
    [
        lambda k: f"{k % 9}0-{k % 9}9",
        lambda k: f"{k}-{k + 5}",
        lambda k: f"6.{k}.1",
        lambda k: f"192.168.{k}.7",
        lambda k: f"+49 30 {k}1401",
        lambda k: f"#{k}",
        lambda k: "(" + 40 * " " + f"{k}",
        lambda k: f"A{k}",
        lambda k: f"{k} Main Street",
        lambda k: f"0{100 + k}",
    ],
)
def test_text_that_is_text_needs_no_warning(cell, place):
    assert not warned_of(read_table(place(text_of(map(cell, range(30))))))


def test_a_last_row_of_totals_is_said(place):
    assert "the last row has 'Total'" in warned_of(read_table(place(text_of([*"rst" * 9, "Total"]))))
    assert not warned_of(read_table(place(text_of(["total", "part"] * 9 + ["total"]))))


def test_words_of_other_programs_for_missing(place):
    table = read_table(place(text_of(["<NA>", "n.a.", "NaT", *range(30)])))
    assert table.frame["a"].isna().sum() == 3
    assert not warned_of(table)


def test_what_macos_packs_beside_a_file_is_left_out(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        archive.writestr("t.csv", text_of(range(9)))
        archive.writestr("__MACOSX/._t.csv", b"\0\5\26\7")
    assert len(read_table(str(tmp_path / "t.zip")).frame) == 9


def test_utf_32_says_so_itself_and_utf_16_may_not(tmp_path):
    (tmp_path / "a.csv").write_text(text_of(range(9)), encoding="utf-32")
    assert len(read_table(str(tmp_path / "a.csv")).frame) == 9
    (tmp_path / "b.csv").write_text(text_of(range(9)), encoding="utf-16-le")
    with pytest.raises(UserError, match="--encoding utf-16-le"):
        read_table(str(tmp_path / "b.csv"))
    assert len(read_table(str(tmp_path / "b.csv"), encoding="utf-16-le").frame) == 9


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"<!DOCTYPE html>\n<html><body>Not found</body></html>", "a page of HTML"),
        ("t.dta", b"\x72\2\1\0", r"pandas\.read_stata"),
        ("t.sav", b"$FL2@(#) SPSS DATA FILE", r"pandas\.read_spss"),
    ],
)
def test_files_of_others_are_named(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=words):
        read_table(str(tmp_path / name))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_json_in_other_encodings(encoding, tmp_path):
    (tmp_path / "t.json").write_text('[{"a": "ä", "y": 1}, {"a": "ö", "y": 0}]', encoding=encoding)
    assert read_table(str(tmp_path / "t.json")).frame["a"].tolist() == ["ä", "ö"]


def test_json_that_is_no_table_says_what_is(tmp_path):
    (tmp_path / "t.json").write_text("3")
    with pytest.raises(UserError, match="a list of rows"):
        read_table(str(tmp_path / "t.json"))
