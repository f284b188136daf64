"""Rows of files larger than memory, in batches: every source gives the same rows, and models the same fit."""

import sys

import numpy as np
import pandas as pd
import pytest

from lacunar import KarmaOnlineClassifier, Observed
from lacunar.completion import read_pair_batches
from lacunar.lowrank import POPCA
from lacunar.observed import ObservedFile, Triplets, read_batches, read_svmlight

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(n=430, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.5] = np.nan
    X[[3, 4, n - 2]] = np.nan  # rows without entries
    return X, y


def wide(X, y):
    return pa.table({**{f"c{j}": X[:, j] for j in range(X.shape[1])}, "y": y}, metadata=None)


def lines(X):
    row, col = np.nonzero(~np.isnan(X))
    return pa.table({"row": row, "col": col, "value": X[row, col]})


def stacked(batches):
    rows, labels = zip(*batches, strict=True)
    return Observed.vstack(rows), None if labels[0] is None else np.concatenate(labels)


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_every_source_gives_the_same_rows(size, tmp_path):
    X, y = table()
    whole = Observed.from_dense(X)
    folder = tmp_path / "wide"
    folder.mkdir()
    for k in range(3):
        pq.write_table(wide(X, y).slice(150 * k, 150), folder / f"{k}.parquet")
    pq.write_table(lines(X), tmp_path / "triplets.parquet")
    whole.save(tmp_path / "t.observed")
    stored = ObservedFile(tmp_path / "t.observed")
    for source in (folder, wide(X, y), wide(X, y).to_batches(max_chunksize=64), wide(X, y).to_reader()):
        made, labels = stacked(read_batches(source, size=size, target="y"))
        assert made == whole
        np.testing.assert_array_equal(labels, y)
    made, labels = stacked(read_batches(stored, size=size, target=y))
    assert made == whole
    np.testing.assert_array_equal(labels, y)
    made, labels = stacked(read_batches(tmp_path / "triplets.parquet", size=size, triplets=Triplets(7)))
    assert labels is None
    assert made == whole
    for source in (folder, wide(X, y).to_batches(max_chunksize=64), whole):
        widths = [rows.shape for rows, _ in read_batches(source, size=size)]
        assert [n for n, _ in widths] == [min(size, 430 - k) for k in range(0, 430, size)], "layouts do not show"
        assert {d for _, d in widths} == {7 if source is whole else 8}  # the labels are a column without a target


def test_models_fit_from_batches_as_from_the_table(tmp_path):
    X, y = table(n=2000)
    pq.write_table(wide(X, y), tmp_path / "w.parquet", row_group_size=300)
    options = {"classes": [0, 1]}
    by_file = KarmaOnlineClassifier().fit_batches(read_batches(tmp_path / "w.parquet", size=500, target="y"), **options)
    by_table = KarmaOnlineClassifier().fit_batches(read_batches(Observed.from_dense(X), size=500, target=y), **options)
    assert by_file.n_rows_seen_ == by_table.n_rows_seen_ == 2000
    pq.write_table(lines(X), tmp_path / "t.parquet")
    streamed, whole = POPCA(2, refine=0), POPCA(2, refine=0).partial_fit(X)
    for rows, _ in read_batches(tmp_path / "t.parquet", size=500, triplets=Triplets(7)):
        streamed.partial_fit(rows)
    np.testing.assert_allclose(streamed.get_covariance(), whole.get_covariance(), atol=1e-10)


def test_what_is_no_batch_is_refused(tmp_path):
    X, y = table(20)
    with pytest.raises(ValueError, match="size must be at least 1 row; got 0"):
        next(read_batches(Observed.from_dense(X), size=0))
    with pytest.raises(ValueError, match=r"target must be a column; got 'z' among \['c0'"):
        next(read_batches(wide(X, y), target="z"))
    with pytest.raises(ValueError, match="a label for every row; got 3 labels and at least 20 rows"):
        next(read_batches(Observed.from_dense(X), target=[1, 2, 3]))
    with pytest.raises(ValueError, match="a label for every row; got 30 labels and 20 rows"):
        list(read_batches(Observed.from_dense(X), target=np.zeros(30)))
    with pytest.raises(ValueError, match="hold the labels of all rows; got 'y' and an Observed"):
        read_batches(Observed.from_dense(X), target="y")
    with pytest.raises(ValueError, match="drop_unlabelled=True must come with a target"):
        read_batches(wide(X, y), drop_unlabelled=True)
    for source, came in ((X, "ndarray"), (3, "int"), ([X, X], "ndarray"), (pd.DataFrame(X), "DataFrame")):
        with pytest.raises(TypeError, match=f"source must be a path .*; got {came}. .* fit_batches"):
            list(read_batches(source))
    with pytest.raises(FileNotFoundError, match=r"no such file or folder: '.*nowhere\.parquet'"):
        list(read_batches(tmp_path / "nowhere.parquet"))
    pd.DataFrame(X).to_csv(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.csv' cannot be read: it is no Parquet file, .*read_csv\(path, chunksize"):
        list(read_batches(tmp_path / "t.csv"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "part-0.parquet").write_bytes(b"cut off")
    with pytest.raises((ValueError, OSError), match=r"part-0\.parquet"):
        list(read_batches(tmp_path / "folder"))
    back = pa.table({"row": [0, 2, 1], "col": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"by ascending row; row 1 comes after a later one"):
        list(read_batches(back, triplets=Triplets(3)))
    with pytest.raises(ValueError, match="hold the labels of all rows; got 'y' and triplets"):
        next(read_batches(back, triplets=Triplets(3), target="y"))
    twice = pa.table({"row": [0, 7, 7], "col": [1, 1, 1], "value": [1.0, 1.0, 2.0]})
    with pytest.raises(ValueError, match="row 7, column 1 comes more than once"):
        list(read_batches(twice, size=5, triplets=Triplets(3)))
    once = twice.slice(0, 2)
    with pytest.raises(ValueError, match="'row' must hold numbers 0 to 6; got 7"):
        list(read_batches(once, triplets=Triplets(3, n_rows=7)))
    with pytest.raises(ValueError, match="'row' must hold numbers 0 to 3; got 7"):
        list(read_batches(once, target=[0, 1, 2, 3], triplets=Triplets(3)))
    with pytest.raises(ValueError, match="a label for every row; got 4 and 9 rows"):
        list(read_batches(once, target=[0, 1, 2, 3], triplets=Triplets(3, n_rows=9)))
    with pytest.raises(ValueError, match=r"a column 'cell'; got \['row', 'col', 'value'\]"):
        list(read_batches(once, triplets=Triplets(3, col="cell")))
    holes = pa.table({"row": [0, None], "col": [1, 1], "value": [1.0, 2.0]})
    with pytest.raises(ValueError, match="column 'row' must hold a number in every line with a value; got a null"):
        list(read_batches(holes, triplets=Triplets(3)))


def test_labels_of_every_kind(tmp_path):
    X, _ = table(60)
    numbers = np.where(np.arange(60) % 7 == 2, np.nan, np.arange(60.0))
    words = np.array([None if k % 7 == 2 else str(k % 3) for k in range(60)], dtype=object)
    whole = {f"c{j}": X[:, j] for j in range(7)}
    given = {
        "floats": pa.array(numbers, from_pandas=True),
        "integers": pa.array(numbers, from_pandas=True).cast(pa.int64()),
        "strings": pa.array(words),
        "categories": pa.array(words).dictionary_encode(),
        "booleans": pa.array([None if w is None else w == "1" for w in words]),
    }
    known = np.arange(60) % 7 != 2
    for kind, column in given.items():
        wanted = numbers if kind in ("floats", "integers") else words if kind != "booleans" else column.to_pylist()
        path = tmp_path / f"{kind}.parquet"
        pq.write_table(pa.table(whole | {"y": column}), path, row_group_size=11)
        _, labels = stacked(read_batches(path, size=13, target="y"))
        np.testing.assert_array_equal(labels, np.array(wanted, dtype=labels.dtype))
        made = list(read_batches(path, size=13, target="y", drop_unlabelled=True))
        assert [len(labels) for _, labels in made] == [13, 13, 13, 12]
        rows, labels = stacked(made)
        assert rows == Observed.from_dense(X[known])
        np.testing.assert_array_equal(labels, np.array(wanted)[known])
    rows, labels = stacked(read_batches(Observed.from_dense(X), size=7, target=numbers, drop_unlabelled=True))
    assert rows == Observed.from_dense(X[known])
    assert not np.isnan(labels).any()


def test_rows_without_entries_at_the_end_and_narrow_numbers():
    X, y = table(30)
    X[25:] = np.nan
    rows, labels = stacked(read_batches(lines(X), size=8, target=y, triplets=Triplets(7)))
    assert rows == Observed.from_dense(X)
    np.testing.assert_array_equal(labels, y)
    rows, labels = stacked(read_batches(lines(X), size=8, triplets=Triplets(7, n_rows=30), dtype=np.float32))
    assert labels is None
    assert rows == Observed.from_dense(X).astype(np.float32)
    nothing = lines(X).slice(0, 0)
    assert list(read_batches(nothing, triplets=Triplets(7))) == []
    (empty, _), (last, _) = read_batches(nothing, size=3, triplets=Triplets(7, n_rows=5))
    assert (empty.shape, last.shape, empty.nnz) == ((3, 7), (2, 7), 0)


def test_pairs_come_in_order_and_whole(tmp_path):
    when = np.array([0, 1, 1, 2, 5, 5, 9])
    made = pa.table(
        {
            "who": pa.array(list("abcabca")).dictionary_encode(),
            "what": np.arange(7) % 3,
            "like": [True, False, None, True, True, False, True],
            "when": when.astype("datetime64[s]"),
        }
    )
    names = {"row": "who", "col": "what", "label": "like"}
    for k in range(2):
        pq.write_table(made.slice(4 * k, 4), tmp_path / f"{k}.parquet", row_group_size=2)
    for source in (tmp_path, made, made.to_reader(2)):
        batches = list(read_pair_batches(source, size=4, time="when", **names))
        assert [len(y) for _, y in batches] == [4, 2]
        assert [who for (rows, _), _ in batches for who in rows] == list("ababca")
        assert [y for _, labels in batches for y in labels] == [True, False, True, True, False, True]
    pq.write_table(made.slice(4, 1), tmp_path / "9.parquet")
    with pytest.raises(ValueError, match=r"by ascending 'when'; got 1970-01-01T00:00:05.* after 1970-01-01T00:00:09"):
        list(read_pair_batches(tmp_path, time="when", **names))
    with pytest.raises(ValueError, match="column 'when' must hold a time in every line; got a null"):
        list(read_pair_batches(made.set_column(3, "when", pa.nulls(7, pa.float64())), time="when", **names))
    with pytest.raises(ValueError, match="a column 'row'"):
        list(read_pair_batches(made))
    with pytest.raises(ValueError, match="size must be at least 1 pair; got 0"):
        read_pair_batches(made, size=0)


def test_entries_of_a_table_are_pairs():
    X, _ = table(40)
    whole = Observed.from_dense(X)
    for size in (1, 5, 1000):
        made = list(read_pair_batches(whole, size=size))
        row, col, value = (np.concatenate(each) for each in zip(*((*pair, y) for pair, y in made), strict=True))
        np.testing.assert_array_equal(np.column_stack([row, col]), np.argwhere(~np.isnan(X)))
        np.testing.assert_array_equal(value, whole.values)
    assert list(read_pair_batches(whole[:0])) == []


def test_without_pyarrow(monkeypatch):
    for name in ("pyarrow", "pyarrow.dataset"):
        monkeypatch.setitem(sys.modules, name, None)
    for read in (read_batches, read_pair_batches):
        with pytest.raises(ImportError, match="pip install pyarrow"):
            list(read("somewhere.parquet"))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_lines_of_text_come_in_batches(size, tmp_path):
    X, y = table(60)
    whole = Observed.from_dense(X)
    path = tmp_path / "rows.svm"
    with open(path, "w", encoding="utf-8") as text:
        text.write("# nothing yet\n\n")
        for row, label in zip(X, y, strict=True):
            text.write(
                f"{label} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist()) if v == v) + " # row\n"
            )
    made = list(read_svmlight(path, n_features=7, size=size))
    assert [len(labels) for _, labels in made] == [min(size, 60 - k) for k in range(0, 60, size)]
    rows, labels = stacked(made)
    assert rows == whole
    np.testing.assert_array_equal(labels, y)
    found, at_once = Observed.from_svmlight(path, n_features=7, batch_rows=size)
    assert found == whole
    np.testing.assert_array_equal(at_once, y)
    with pytest.raises(ValueError, match="size must be at least 1 row; got 0"):
        read_svmlight(path, n_features=7, size=0)
    with pytest.raises(ValueError, match="col must hold numbers 0 to 4"):
        list(read_svmlight(path, n_features=5, size=size))
    path.write_text("1 1:2\n1 2:x\n", encoding="utf-8")
    batches = read_svmlight(path, n_features=7, size=1)
    next(batches)
    with pytest.raises(ValueError, match=r"line 2 must be 'label column:value"):
        next(batches)
