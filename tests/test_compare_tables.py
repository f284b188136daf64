"""Every kind of file reads to the same table, and what is no table is refused with a place and a remedy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from lacunar.compare import Table, TableEncoder, UserError, choose_target, guess_task, load_problem, read_table
from lacunar.datasets import load_breast_panels

NAN = np.nan
TEXT = "a,colour,y\n1.5,red,0\n?,,1\n-2, blue ,0\nNA,null,1\n"


def check_small(table):
    assert table.names == ["a", "colour", "y"]
    np.testing.assert_array_equal(table.column("a"), [1.5, NAN, -2, NAN])
    assert table.column("colour").tolist() == ["red", "", "blue", ""]
    np.testing.assert_array_equal(table.column("y"), [0, 1, 0, 1])


@pytest.mark.parametrize(("ending", "separator"), [(".csv", ","), (".csv", ";"), (".tsv", "\t"), (".txt", "\t")])
def test_separated_text(tmp_path, ending, separator):
    file = tmp_path / f"t{ending}"
    file.write_text("\ufeff" + TEXT.replace(",", separator), encoding="utf-8")
    check_small(read_table(str(file)))


def test_text_without_header_and_with_quotes(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("1,2\n3,.\n")
    table = read_table(str(file))
    assert table.names == ["c1", "c2"]
    np.testing.assert_array_equal(table.column("c2"), [2, NAN])
    file.write_text('name,y\n"a, ""b""\nc",1\nd,2\n')
    assert read_table(str(file)).column("name").tolist() == ['a, "b"\nc', "d"]


def test_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.5, None, -2.0, None], "colour": ["red", None, "blue", "null"], "y": [0, 1, 0, 1]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    check_small(read_table(str(tmp_path / "t.parquet")))


def test_arff(tmp_path):
    file = tmp_path / "t.arff"
    head = "% comment\n@RELATION r\n@attribute a numeric\n@attribute 'colour' {red, blue}\n@ATTRIBUTE y {0,1}\n@DATA\n"
    file.write_text(head + "1.5,'red',0\n\n% more\n?,?,1\n-2, blue,0\n?,?,1\n")
    check_small(read_table(str(file)))
    file.write_text(head + "{0 1.5}\n")
    with pytest.raises(UserError, match=r"line 7 is sparse ARFF"):
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
        np.testing.assert_array_equal(np.column_stack(table.columns), np.column_stack([X, y]))


def test_svmlight_round_trip(tmp_path):
    X = np.array([[1.0, 2.5], [-3.0, 4.0]])
    dump_svmlight_file(X, [1, 2], str(tmp_path / "t.svm"))
    table = read_table(str(tmp_path / "t.svm"))
    np.testing.assert_array_equal(np.column_stack(table.columns[:2]), X)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,y\n1,2\n1,2,3\n", "line 3 has 3 cells where 2"),
        ("t.csv", "a,a\nx,2\n", "'a' occurs more than once"),
        ("t.csv", "", "empty"),
        ("t.csv", "a,b\n", "no rows"),
        ("t.csv", "a,b\n1,2\ninf,3\n", r"column 'a' has an infinite number in data row 2"),
        ("t.csv", "\0\1\2", "not text"),
        ("t.npz", "no archive", "cannot be read as .npz"),
        ("t.parquet", "no parquet", "cannot be read as .parquet"),
        ("t.svm", "x y z", "cannot be read as .svm"),
        ("t.arff", "1,2,3\n", "no ARFF file"),
        ("t.xlsx", "x", "Endings read: .csv"),
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
    table = Table(["Class", "x", "age"], [np.zeros(3)] * 3, "here")
    assert choose_target(table, None)[0] == "Class"
    assert choose_target(table, "x")[0] == "x"
    with pytest.raises(UserError, match="did you mean 'age'"):
        choose_target(table, "agge")
    assert guess_task(np.array(["a", "b"]))[0] == "classification"
    assert guess_task(np.tile([0.0, 1.0], 20))[0] == "classification"
    assert guess_task(np.linspace(0, 1, 40))[0] == "regression"
    assert guess_task(np.arange(40.0))[0] == "regression"


def test_encoder_keeps_holes_and_names_what_is_new():
    table = Table(["c", "v"], [np.array(["b", "", "a", "b", "a"]), np.array([1.0, NAN, 3, 4, 5])], "here")
    encoder = TableEncoder().fit(table)
    assert encoder.output_names_ == ["c=a", "c=b", "v"]
    X, notes = encoder.transform(table)
    np.testing.assert_array_equal(X[:3], [[0, 1, 1], [NAN, NAN, NAN], [1, 0, 3]])
    assert notes == []
    X, notes = encoder.transform(Table(["c"], [np.array(["new", "a"])], "there"))
    np.testing.assert_array_equal(X, [[NAN] * 3, [1, 0, NAN]])
    assert "v" in notes[0]
    assert "new" in notes[1]
    X, notes = encoder.transform(Table(["v"], [np.array(["7", "seven"])], "there"))
    np.testing.assert_array_equal(X[:, 2], [7, NAN])
    with pytest.raises(UserError, match="none of the model's columns"):
        encoder.transform(Table(["z"], [np.zeros(2)], "there"))


def test_identifiers_are_left_out():
    table = Table(["id", "v"], [np.array([f"p{i}" for i in range(30)]), np.arange(30.0)], "here")
    assert TableEncoder().fit(table).left_out_ == ["id"]


def test_rows_without_target_are_left_out(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,u\n2,\n3,v\n4,u\n")
    problem = load_problem(str(tmp_path / "t.csv"))
    assert problem.y.tolist() == ["u", "v", "u"]
    np.testing.assert_array_equal(problem.X[:, 0], [1, 3, 4])
    assert any("1 rows without a target" in note for note in problem.notes)


def test_default_table_is_fixed():
    np.testing.assert_array_equal(load_breast_panels()[0], load_breast_panels()[0])
