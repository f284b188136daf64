"""Every kind of file reads to the same table, and what is no table is refused with a place and a remedy."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from lacunar.comparison import Table, TableModel, UserError, compare, load_problem, read_table
from lacunar.comparison.cells import as_keywords
from lacunar.comparison.problem import choose_target, guess_task
from lacunar.datasets import load_digit_quadrants
from lacunar.karma import KarmaClassifier
from lacunar.observed import Observed

NAN = np.nan
TEXT = "a,colour,y\n1.5,red,0\n?,,1\n-2, blue ,0\nNA,null,1\n"


def texts(table, name):
    return table.frame[name].astype(object).where(table.frame[name].notna(), "").tolist()


def check_small(table):
    assert list(table.frame) == ["a", "colour", "y"]
    np.testing.assert_array_equal(table.frame["a"].astype(float), [1.5, NAN, -2, NAN])
    assert texts(table, "colour") == ["red", "", "blue", ""]
    np.testing.assert_array_equal(table.frame["y"], [0, 1, 0, 1])


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", "\t")])
def test_separated_text(tmp_path, ending, separator):
    file = tmp_path / f"t{ending}"
    file.write_text("\ufeff" + TEXT.replace(",", separator), encoding="utf-8")
    check_small(read_table(str(file)))


def test_text_without_header_and_with_quotes(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("1,2\n3,.\n")
    table = read_table(str(file))
    assert list(table.frame) == ["c1", "c2"]
    assert "--header" in table.notes[0]
    np.testing.assert_array_equal(table.frame["c2"], [2, NAN])
    file.write_text('name,y\n"a, ""b""\nc",1\nd,2\n')
    assert texts(read_table(str(file)), "name") == ['a, "b"\nc', "d"]


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.5, None, -2.0, None], "colour": ["red", None, "blue", "null"], "y": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    check_small(read_table(str(tmp_path / "t.parquet")))


def test_arff(tmp_path):
    file = tmp_path / "t.arff"
    head = "% comment\n@RELATION r\n@attribute a numeric\n@attribute 'colour' {red, blue}\n@ATTRIBUTE y {0,1}\n@DATA\n"
    file.write_text(head + "1.5,'red',0\n\n% more\n?,?,1\n-2,blue,0\n?,?,1\n")
    table = read_table(str(file))
    np.testing.assert_array_equal(table.frame["a"], [1.5, NAN, -2, NAN])
    assert texts(table, "colour") == ["red", "", "blue", ""]
    assert texts(table, "y") == ["0", "1", "0", "1"]  # the file says that these are names of classes
    file.write_text(head + "{0 1.5}\n")
    with pytest.raises(UserError, match=r"cannot be read as ARFF"):
        read_table(str(file))


def test_npz_and_svmlight(tmp_path):
    X, y = np.array([[1.0, NAN, 0.0], [NAN, 2.0, 3.0]]), np.array([0.0, 1.0])
    row, col = np.nonzero(~np.isnan(X))
    sparse = sp.csr_array((X[row, col], (row, col)), shape=X.shape)
    np.savez(tmp_path / "dense.npz", X=X, y=y)
    parts = {"indptr": sparse.indptr, "indices": sparse.indices, "values": sparse.data, "shape": sparse.shape}
    np.savez(tmp_path / "sparse.npz", y=y, **parts)
    (tmp_path / "t.svmlight").write_text("0 1:1 3:0\n1 2:2 3:3\n")  # the zero is stored: observed
    for name in ("dense.npz", "sparse.npz", "t.svmlight"):
        table = read_table(str(tmp_path / name))
        assert table.target == "y"
        np.testing.assert_array_equal(table.frame, np.column_stack([X, y]))


def test_svmlight_round_trip(tmp_path):
    X = np.array([[1.0, 2.5], [-3.0, 4.0]])
    dump_svmlight_file(X, [1, 2], str(tmp_path / "t.svm"))
    table = read_table(str(tmp_path / "t.svm"))
    np.testing.assert_array_equal(table.frame.iloc[:, :2], X)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,y\n1,2\n1,2,3\n", r"line 3 has 3 cells \('1, 2, 3'\) and the first row, on line 1, has 2"),
        ("t.csv", "a,y\n1,2,3\n4,5,6\n", r"line 2 has 3 cells .*--ragged"),
        ("t.csv", "a,a\nx,2\n", "'a' occurs more than once"),
        ("t.csv", "", "empty"),
        ("t.csv", "a,b\n", "no rows"),
        ("t.csv", "\0\1\2", "not text"),
        ("t.npz", "no archive", "cannot be read as .npz"),
        ("t.parquet", "no parquet", "cannot be read as Parquet"),
        ("t.svm", "x y z", "cannot be read as svmlight"),
        ("t.arff", "1,2,3\n", "no ARFF file|cannot be read"),
        ("t.xlsx", "x", "cannot be read as Excel"),
    ],
)
def test_no_table(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=message):
        read_table(str(tmp_path / name))


def test_pickled_npz_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[object()]]), y=np.zeros(1))
    with pytest.raises(UserError, match="cannot be read"):
        read_table(str(tmp_path / "t.npz"))


def test_target_and_task():
    table = Table(pd.DataFrame(np.zeros((3, 3)), columns=["Class", "x", "age"]), "here")
    assert choose_target(table, None)[0] == "Class"
    assert choose_target(table, "x")[0] == "x"
    with pytest.raises(UserError, match="did you mean 'age'"):
        choose_target(table, "agge")
    assert guess_task(np.array(["a", "b"]))[0] == "classification"
    assert guess_task(np.tile([0.0, 1.0], 20))[0] == "classification"
    assert guess_task(np.linspace(0, 1, 40))[0] == "regression"
    assert guess_task(np.arange(40.0))[0] == "regression"


def test_a_model_finds_its_columns_by_name_and_says_what_is_new(tmp_path):
    lines = [f"{'abc'[k % 3]},{k},2026-03-{k + 1:02},{'uv'[k % 2]}" for k in range(12)]
    (tmp_path / "t.csv").write_text("c,v,day,y\n" + "\n".join(lines))
    problem = load_problem(str(tmp_path / "t.csv"))
    assert problem.encoder.kinds_ == ["category", "number", "date"]
    model = TableModel(KarmaClassifier()).fit(problem)
    np.testing.assert_array_equal(
        model.predict(read_table(str(tmp_path / "t.csv")).frame), model.estimator.predict(problem.X)
    )

    def said():
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.predict(read_table(str(tmp_path / "n.csv")).frame)
        return [str(w.message) for w in caught]

    (tmp_path / "n.csv").write_text("v,c,extra\n7,new,1\nseven,a,2\n")
    notes = said()
    assert notes[0] == "not in the table, taken as missing: day"
    assert "'seven' in 1 cell of column 'v' (first in row 1)" in notes[1]
    assert "'new' in 1 cell of column 'c' (first in row 0)" in notes[2]
    (tmp_path / "n.csv").write_text("day\nsome day\n2026-03-31 12:00\n")
    assert any("'some day' in 1 cell is no date" in note for note in said())
    (tmp_path / "n.csv").write_text("z\n1\n")
    with pytest.raises(UserError, match="none of the model's columns"):
        said()


def test_identifiers_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("id,v,y\n" + "".join(f"p{k},{k % 7},{k % 2}\n" for k in range(30)))
    problem = load_problem(str(tmp_path / "t.csv"))
    assert list(problem.frame) == ["v"]
    assert any("identifiers" in note and "--use 'id' keeps it" in note for note in problem.notes)
    assert list(load_problem(str(tmp_path / "t.csv"), use=["id"]).frame) == ["id", "v"]


def test_words_for_text_files_reach_pandas(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe|y\n1,5|u\n-99|v\n".encode("latin-1"))
    table = read_table(str(tmp_path / "t.csv"), sep="|", decimal=",", encoding="latin-1", na_values=["-99"])
    np.testing.assert_array_equal(table.frame["größe"], [1.5, NAN])
    assert "Windows-1252" in read_table(str(tmp_path / "t.csv"), sep="|").notes[0]


@pytest.mark.parametrize(("cell", "place"), [("inf,u", "row 1, column 'a'"), ("3,u", None)])
def test_infinite_numbers_are_refused(tmp_path, cell, place):
    (tmp_path / "t.csv").write_text(f"a,y\n1,u\n{cell}\n2,v\n")
    if place is None:
        assert load_problem(str(tmp_path / "t.csv")).X.shape == (3, 1)
    else:
        with pytest.raises(UserError, match=place):
            load_problem(str(tmp_path / "t.csv"))
    (tmp_path / "t.csv").write_text("a,y\n1,0.5\n1,inf\n2,3\n")
    with pytest.raises(UserError, match="infinite"):
        load_problem(str(tmp_path / "t.csv"))


def test_rows_without_target_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,\n3,v\n4,u\n")
    problem = load_problem(str(tmp_path / "t.csv"))
    assert problem.y.tolist() == ["u", "v", "u"]
    np.testing.assert_array_equal(problem.X[:, 0], [1, 3, 4])
    assert any("1 row without a target was" in note for note in problem.notes)


def test_default_table_is_fixed():
    np.testing.assert_array_equal(load_digit_quadrants()[0], load_digit_quadrants()[0])


# -- what is handed over in Python, and first rows ------------------------------------------------------------------------

NUMBERS = np.random.default_rng(0).normal(size=(40, 3)).round(2)
PLAIN = pd.DataFrame(NUMBERS, columns=["a", "b", "c"]).assign(y=NUMBERS[:, 0] > 0)
TEXTS = np.array([["red" if row[1] > 0 else "blue", str(row[2])] for row in NUMBERS])
FORMS = {
    "polars": pl.from_pandas(PLAIN), "arrow": pa.Table.from_pandas(PLAIN), "records": PLAIN.to_records(index=False),
    "several levels": pd.concat({"p": PLAIN}, axis=1), "record batch": pa.RecordBatch.from_pandas(PLAIN),
    "whole numbers of 128 bits": pl.from_pandas(PLAIN).with_columns(pl.Series("c", range(40), dtype=pl.Int128)),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_all_kinds_are_tables(form):
    problem = load_problem(FORMS[form])
    assert problem.X.shape == (40, 3)
    assert problem.task == "classification"


@pytest.mark.parametrize("dtype", [str, object])
def test_arrays_of_text_are_read_as_frames_are(dtype):
    problem = load_problem(TEXTS.astype(dtype), PLAIN["y"].to_numpy())
    assert problem.encoder.kinds_ == ["category", "number"]


def test_a_number_names_a_column():
    assert load_problem(pd.DataFrame(NUMBERS), 0).target == "0"


NO_TABLES = {
    "lazy": (pl.from_pandas(PLAIN).lazy(), "a polars.LazyFrame. Collect it first"),
    "dict": (PLAIN.to_dict("list"), "a dict. Make a frame of it, pandas.DataFrame(data)"),
    "list of dicts": (PLAIN.to_dict("records"), "an array of shape (40,). Make a frame of it"),
    "series": (PLAIN["a"], "a pandas.Series. Make a frame of it"),
    "one dimension": (NUMBERS[:, 0], "an array of shape (40,)"),
    "three dimensions": (NUMBERS[None], "an array of shape (1, 40, 3)"),
    "sparse": (sp.csr_array(NUMBERS), "where what is not stored is NaN, or data.toarray(), where it is 0"),
    "Observed": (Observed.from_dense(NUMBERS), "Pass data.to_dense(), where what is missing is NaN"),
    "generator": ((row for row in NUMBERS), "a generator"),
    "number": (5, "an int"),
    "two columns of one name": (pa.table([[1.0, 2.0]] * 2, names=["a", "a"]), "'a' occurs more than once"),
    "complex numbers": (PLAIN.assign(d=1j), "Complex data not supported"),
    "an array of complex numbers": (NUMBERS * 1j, "Complex data not supported"),
    "lists in cells": (PLAIN.assign(d=[[1]] * 40), "'d' holds lists or records"),
    "arrays in cells": (pl.DataFrame({"d": [[1]] * 40, "y": PLAIN["y"].tolist()}), "'d' holds lists or records"),
}


@pytest.mark.parametrize("what", NO_TABLES)
def test_what_is_no_table_is_refused_with_a_remedy(what):
    data, message = NO_TABLES[what]
    with pytest.raises(UserError) as raised:
        load_problem(data, PLAIN["y"].to_numpy() if what != "arrays in cells" else "y")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "class"}, UserError, "task must be 'classification' or 'regression'; got 'class'"),
        ({"sepp": ","}, TypeError, "sepp is no option.*Did you mean sep?"),
        ({"target": [[1], [2, 3]] * 20}, UserError, "target must be a column's name or 40 values"),
        ({"folds": 1}, ValueError, "'folds' parameter of compare"),
        ({"folds": 2.5}, ValueError, "'folds' parameter of compare"),
        ({"repeats": 0}, ValueError, "'repeats' parameter of compare"),
        ({"time_limit": -1}, ValueError, "'time_limit' parameter of compare"),
        ({"max_rows": 30.5}, ValueError, "'max_rows' parameter of compare"),
        ({"random_state": -1}, ValueError, "'random_state' parameter of compare"),
    ],
)
def test_options_that_are_wrong_are_named(options, error, message):
    with pytest.raises(error, match=message):
        compare(PLAIN, **options)


DATES = PLAIN.assign(
    day=pd.date_range("2026-01-01", periods=len(PLAIN)), gone=NAN, pair=[f"p{k // 4}" for k in range(len(PLAIN))]
)


@pytest.mark.parametrize(("label", "other"), [("up", "down"), (7, 8)])
def test_a_rare_class_is_named_as_it_is_written(label, other):
    table = PLAIN.assign(y=np.array([label] * 2 + [other] * (len(PLAIN) - 2)))
    result = compare(table, "y", task="classification", learner="no columns", folds=3, repeats=1)
    assert any(f"fewer than 3 rows are of class '{label}':" in warning for warning in result.warnings)


def test_splits_in_time_order_are_not_said_to_lack_rows_of_a_class():
    result = compare(PLAIN.assign(day=np.arange(len(PLAIN))), "y", time="day", learner="no columns", folds=3)
    assert not [line for line in result.caveats if "stratified" in line]
    assert repr(result).startswith("Comparison of 1 learner on y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "yy"}, "target='yy': no such column in the table; did you mean 'y'?"),
        ({"target": "day"}, "Predict a number of days instead, or choose another with `target`."),
        ({"target": "gone"}, "is missing in every row. Choose another with `target`."),
        ({"target": "y", "learner": "nobody"}, "learner='nobody': no learner of this name is here."),
        (
            {"target": "y", "folds": 30},
            "are too few for 30 folds of at least two each. Lower `folds`, or bring more rows.",
        ),
        ({"target": "y", "groups": "pair", "folds": 9}, "Lower `folds`, or bring more groups."),
        ({"target": "y", "max_rows": 3, "folds": 2}, "`max_rows` must be at least 4 for 2 folds"),
        ({"target": "y", "groups": "y", "time": "a"}, "groups='y' and time='a' ask for two kinds of folds."),
        ({"target": "y", "groups": np.arange(60)}, "`groups` must be the name of a column; got a numpy.ndarray. Put"),
        ({"target": "y", "time": [1, 2]}, "`time` must be the name of a column; got a list. Put the values into"),
        ({"target": "y", "drop": ["y"]}, "drop='y' is the target (as asked). Name another with `target`"),
    ],
)
def test_errors_name_keywords_in_python(options, message):
    with pytest.raises(UserError) as raised:
        compare(DATES, **options)
    assert message in str(raised.value)
    assert "--" not in str(raised.value)


def test_what_a_comparison_says_names_keywords_in_python():
    table = pd.DataFrame(
        {"id": [f"u{k}" for k in range(60)], "a": np.arange(60) % 7.0, "b": np.r_[-999, -999, -999, 0:57]}
    )
    result = compare(table, target="a", task="classification", learner=["no columns"], time_limit=1e-9, repeats=1)
    lines = [*result.warnings, *result.caveats, *result.table["remark"]]
    assert any("use='id' keeps it" in line for line in lines)
    assert any("`time_limit` allows more" in line for line in lines)
    assert any("na_values={'b': -999}" in line for line in lines)
    assert not [line for line in lines if "--" in line and "in Python" not in line]
    with pytest.raises(UserError, match="there is no best learner"):
        _ = result.best_model_


@pytest.mark.parametrize(
    ("at_the_shell", "in_python"),
    [
        ("Say --dates dmy or --dates mdy", "Say dates='dmy' or dates='mdy'"),
        ("--time-limit 34 may let it finish", "time_limit=34 may let it finish"),
        ("or say --no-header if the", "or say header=False if the"),
        ("--skip-rows N leaves out lines, --comment '#' too", "skip_rows=N leaves out lines, comment='#' too"),
        ("say --sep, --decimal or --encoding.", "say `sep`, `decimal` or `encoding`."),
        ("the target '--x' is text", "the target '--x' is text"),
        ('--drop "it\'s" leaves it out', 'drop="it\'s" leaves it out'),
        ("--na-values b=-9 says so, in Python na_values={'b': -9}", "--na-values b=-9 says so, in Python na_values={'b': -9}"),
    ],
)  # fmt: skip
def test_options_become_keywords(at_the_shell, in_python):
    assert as_keywords(at_the_shell) == in_python


@pytest.mark.parametrize("first", ["5,5,u", "1.5,2,u"])
def test_a_first_row_of_data_is_kept_also_where_its_cells_repeat(first, tmp_path):
    rows = "".join(f"{a},{b},{'uv'[int(a > 0)]}\n" for a, b, _ in NUMBERS)
    (tmp_path / "t.csv").write_text(f"{first}\n{rows}")
    problem = load_problem(str(tmp_path / "t.csv"))
    assert (len(problem.y), problem.target) == (41, "c3")
    assert any("--header takes it for names" in note for note in problem.notes)
    with pytest.raises(UserError, match="occurs more than once") if first == "5,5,u" else contextlib.nullcontext():
        load_problem(str(tmp_path / "t.csv"), header=True)
