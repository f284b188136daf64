"""Parquet and Arrow: wide tables, triplets and lists become the same rows, whatever their types, chunks and nulls."""

import numpy as np
import pytest
from reference.ingest import list_entries

from lacunar import Observed
from lacunar.observed import Lists, Triplets, read_batches

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def dense(n=230, d=11, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) < 0.5] = np.nan
    X[[0, 4, n - 1]] = np.nan
    return X


def as_lists(X, shuffled=False):
    rng = np.random.default_rng(1)
    columns = [np.flatnonzero(~np.isnan(row)) for row in X]
    columns = [rng.permutation(each) for each in columns] if shuffled else columns
    return [each.tolist() for each in columns], [row[each].tolist() for row, each in zip(X, columns, strict=True)]


def stacked(batches):
    return Observed.vstack(rows for rows, _ in batches)


# -- wide tables ------------------------------------------------------------------------------------------------------

MAKERS = {
    "float64": lambda x: pa.array(x, from_pandas=True),
    "NaN and null": lambda x: pa.array(x, mask=np.isnan(x) & (np.arange(len(x)) % 2 == 0)),
    "no null": lambda x: pa.array(np.nan_to_num(x)),
    "all null": lambda x: pa.nulls(len(x), pa.float64()),
    "float32": lambda x: pa.array(x.astype(np.float32), from_pandas=True),
    "float16": lambda x: pa.array(x.astype(np.float16)),
    "int64": lambda x: pa.array([None if np.isnan(v) else int(100 * v) for v in x], pa.int64()),
    "uint8": lambda x: pa.array([None if np.isnan(v) else int(abs(v)) for v in x], pa.uint8()),
    "boolean": lambda x: pa.array([None if np.isnan(v) else v > 0 for v in x]),
    "dictionary": lambda x: pa.array(np.round(x), from_pandas=True).dictionary_encode(),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", MAKERS)
def test_columns_of_every_type(kind, dtype, tmp_path):
    X = dense()
    table = pa.table({f"c{j}": MAKERS[kind](column) for j, column in enumerate(X.T)})
    values = [[np.nan if v is None else float(v) for v in column.to_pylist()] for column in table.columns]
    expected = Observed.from_dense(np.array(values).T.astype(dtype))
    assert Observed.from_frame(table, dtype=dtype) == expected
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=70)
    for source in (tmp_path / "t.parquet", table, table.to_batches(max_chunksize=33)):
        assert stacked(read_batches(source, size=50, dtype=dtype)) == expected
    for start, stop in ((1, 230), (7, 16), (13, 13), (100, 229)):  # bits do not begin with a byte
        assert Observed.from_frame(table.slice(start, stop - start), dtype=dtype) == expected[start:stop]
    chunked = pa.concat_tables([table.slice(3, 50), table.slice(60, 0), table.slice(101, 99)])
    assert Observed.from_frame(chunked, dtype=dtype, n_jobs=2) == Observed.vstack([expected[3:53], expected[101:200]])


def test_many_rows_and_columns_over_threads():
    X = dense(3000, 300)
    table = pa.table({f"c{j}": pa.array(column, from_pandas=True) for j, column in enumerate(X.T)}).slice(5)
    for n_jobs in (1, 3):
        assert Observed.from_frame(table, n_jobs=n_jobs) == Observed.from_dense(X[5:])


def test_wide_columns_that_are_refused():
    X = dense(20)
    with pytest.raises(ValueError, match="got 'x' in row 0, column 'b'"):
        Observed.from_frame(pa.table({"a": X[:, 0], "b": ["x"] * 20}))
    X[3, 1], X[9, 0] = np.inf, -np.inf
    with pytest.raises(ValueError, match="got inf in row 3, column 1"):
        Observed.from_frame(pa.table({"a": X[:, 0], "b": X[:, 1]}))
    hidden = pa.array(X[:, 1], mask=np.isinf(X[:, 1]))  # under a null nothing counts
    assert Observed.from_frame(pa.table({"b": hidden})).nnz == np.isfinite(X[:, 1]).sum()


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_without_copies_of_their_columns(package):
    frames = pytest.importorskip(package)
    X = dense()
    names = [f"c{j}" for j in range(X.shape[1])]
    for order in "CF":
        frame = frames.DataFrame(
            np.array(X, order=order), **({"columns": names} if package == "pandas" else {"schema": names})
        )
        assert Observed.from_frame(frame) == Observed.from_dense(X)
        assert Observed.from_frame(frame[1::2]) == Observed.from_dense(X[1::2])


# -- lists ------------------------------------------------------------------------------------------------------------

INTEGERS = [pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64()]


def list_table(columns, values, index=pa.int32(), value=pa.float64(), kind=pa.list_):  # noqa: B008
    return pa.table({"indices": pa.array(columns, kind(index)), "values": pa.array(values, kind(value))})


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("kind", [pa.list_, pa.large_list], ids=["list", "large list"])
@pytest.mark.parametrize("index", INTEGERS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_of_every_type(index, dtype, kind, shuffled, tmp_path):
    X = dense(dtype=dtype)
    table = list_table(*as_lists(X, shuffled), index, pa.from_numpy_dtype(dtype), kind)
    expected = Observed.from_dense(X)
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=70)
    for size in (9, 1000):
        for source in (path, table, table.to_batches(max_chunksize=33), table.to_reader(max_chunksize=41)):
            made = stacked(read_batches(source, size=size, lists=Lists(11)))
            assert made == expected
    whole = Observed.from_parquet(path, lists=("indices", "values"), batch_rows=64)
    assert whole == expected
    assert Observed.from_parquet(path, lists=("indices", "values"), shape=(230, 20)).shape == (230, 20)
    for start, stop in ((1, 230), (7, 16), (13, 13), (100, 229)):
        parts = list(read_batches(table.slice(start, stop - start), size=1000, lists=Lists(11)))
        assert not parts if start == stop else parts[0][0] == expected[start:stop]
    other = np.float32 if dtype == np.float64 else np.float64
    assert stacked(read_batches(path, lists=Lists(11), dtype=other)) == expected.astype(other)


def test_nulls_in_and_instead_of_lists(tmp_path):
    columns = [[2, 0], None, [], [1], [3, 1, 0], None]
    values = [[1.0, None], None, [], [np.nan], [None, 5.0, 6.0], []]
    expected = list_entries(columns, values)
    table = list_table(columns, values)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    for source in (table, tmp_path / "t.parquet", table.slice(0)):
        made = stacked(read_batches(source, size=4, lists=Lists(4)))
        for mine, theirs in zip((made.indptr, made.indices, made.values), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    labels = table.append_column("y", pa.array([1, 0, 1, 1, None, 0]))
    made = list(read_batches(labels, size=4, lists=Lists(4), target="y", drop_unlabelled=True))
    np.testing.assert_array_equal(np.concatenate([y for _, y in made]), [1, 0, 1, 1, 0])
    whole = Observed.from_parquet(tmp_path / "t.parquet", lists=("indices", "values"))
    assert whole.shape == (6, 3), "column 3 has no value"
    np.testing.assert_array_equal(whole.values, expected[2])


def test_lists_of_integers_of_one_length_and_of_categories():
    fixed = pa.array([[0, 2], [3, 1]], pa.list_(pa.int32(), 2))
    whole = pa.array([[1, 2], [3, 4]], pa.list_(pa.int64()))
    made = stacked(read_batches(pa.table({"i": fixed, "v": whole}), lists=Lists(4, "i", "v")))
    np.testing.assert_array_equal(made.to_scipy().toarray(), [[1, 0, 2, 0], [0, 4, 0, 3]])
    coded = pa.ListArray.from_arrays(pa.array([0, 2, 4]), pa.array([0, 2, 3, 1]).dictionary_encode())
    assert stacked(read_batches(pa.table({"i": coded, "v": whole}), lists=Lists(4, "i", "v"))) == made


@pytest.mark.parametrize(
    ("columns", "values", "message"),
    [
        (
            [[0], [1, 0, 1]],
            [[1.0], [1.0, 2.0, 3.0]],
            "column 'indices' must hold every column once in a row; row 1 has column 1 twice",
        ),
        ([[0], [1, 1]], [[1.0], [1.0, 2.0]], "row 1 has column 1 twice"),
        ([[0], [1, 4]], [[1.0], [1.0, 2.0]], "column 'indices' must hold numbers 0 to 3; got 4 in row 1"),
        ([[], [-1]], [[], [1.0]], "got -1 in row 1"),
        ([[0], [2**32 + 1]], [[1.0], [2.0]], f"got {2**32 + 1} in row 1"),
        (
            [[0], [1, None]],
            [[1.0], [1.0, 2.0]],
            "column 'indices' must hold a number for every value; there is a null in row 1",
        ),
        (
            [[0], [1, 2]],
            [[1.0], [1.0]],
            "column 'values' must hold lists as long as those of 'indices'; row 1 has 1 values and 2 columns",
        ),
        ([[0], [1]], [[1.0], None], "row 1 has 0 values and 1 columns"),
        ([[0, 1], [1]], [[1.0, 2.0], [np.inf]], "column 'values' must hold finite numbers; got inf in row 1"),
    ],
)
def test_lists_that_are_refused(columns, values, message, tmp_path):
    table = list_table(columns, values, pa.int64())
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    for size in (1, 10):
        with pytest.raises(ValueError, match=message):
            list(read_batches(table, size=size, lists=Lists(4)))
        with pytest.raises(ValueError, match=rf"t\.parquet.* cannot be read: .*{message}"):
            list(read_batches(tmp_path / "t.parquet", size=size, lists=Lists(4)))


def test_sources_that_hold_no_lists(tmp_path):
    table = pa.table({"indices": [[0], [1]], "values": [1.0, 2.0], "words": [["a"], ["b"]]})
    with pytest.raises(TypeError, match="column 'values' must hold lists; it holds double"):
        list(read_batches(table, lists=Lists(4)))
    with pytest.raises(TypeError, match="column 'words' must hold lists of numbers"):
        list(read_batches(table, lists=Lists(4, values="words")))
    with pytest.raises(TypeError, match="column 'values' must hold lists of integers"):
        list(read_batches(pa.table({"values": [[1.0]], "v": [[1.0]]}), lists=Lists(4, "values", "v")))
    with pytest.raises(ValueError, match="a column 'cells'"):
        list(read_batches(table, lists=Lists(4, "cells")))
    with pytest.raises(ValueError, match="triplets or lists; got both"):
        read_batches(table, lists=Lists(4), triplets=Triplets(4))
    with pytest.raises(ValueError, match="a column 'y'"):
        list(read_batches(table, lists=Lists(4), target="y"))
    pq.write_table(list_table([[0]], [[1.0]]), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="as many rows as the file; got 3, and the file has 1"):
        Observed.from_parquet(tmp_path / "t.parquet", lists=("indices", "values"), shape=(3, 4))
    pq.write_table(list_table([], []), tmp_path / "t.parquet")
    assert Observed.from_parquet(tmp_path / "t.parquet", lists=("indices", "values")).shape == (0, 0)


# -- triplets, and damage ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [pa.float32(), pa.float64(), pa.int16()], ids=str)
@pytest.mark.parametrize("index", [pa.int32(), pa.int64(), pa.uint16()], ids=str)
@pytest.mark.parametrize("coded", [False, True], ids=["plain", "dictionary"])
def test_triplets_of_every_type(index, value, coded, tmp_path):
    X = np.round(10 * dense())
    row, col = np.nonzero(~np.isnan(X))
    parts = {"row": pa.array(row, index), "col": pa.array(col, index), "value": pa.array(X[row, col]).cast(value)}
    table = pa.table({name: part.dictionary_encode() if coded else part for name, part in parts.items()})
    expected = Observed.from_dense(X)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=97)
    last = expected[:229]  # the last row has no entry
    for source in (tmp_path / "t.parquet", table, table.to_batches(max_chunksize=33)):
        assert stacked(read_batches(source, size=50, triplets=Triplets(11))) == last
    half = next(iter(np.flatnonzero(row >= 100)))
    later = pa.table(
        {"row": pa.array(row[half:] - 100), "col": table["col"].slice(half), "value": table["value"].slice(half)}
    )
    assert stacked(read_batches(later, size=50, triplets=Triplets(11))) == last[100:]


def test_row_group_and_column_of_what_is_damaged(tmp_path):
    path = tmp_path / "t.parquet"
    rng = np.random.default_rng(0)
    table = pa.table({"a": rng.normal(size=600), "b": rng.normal(size=600), "c": rng.normal(size=600)})
    pq.write_table(table, path, row_group_size=200, use_dictionary=False, compression="zstd")
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(2)
    raw = bytearray(path.read_bytes())
    for k in range(chunk.data_page_offset, chunk.data_page_offset + chunk.total_compressed_size):
        raw[k] ^= 0x5A
    path.write_bytes(raw)
    for size in (7, 150, 1000):
        with pytest.raises(ValueError, match=r"t\.parquet.* cannot be read: row group 1, column 'c': "):
            list(read_batches(path, size=size))
