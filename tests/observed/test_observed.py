"""The observed-entries format: every way in gives the same entries, and bad input is named."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from lacunar import Observed

SPARSE_FORMATS = ["csr", "csc", "coo", "lil", "dok"]


@pytest.fixture
def dense():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(23, 9)), 1)
    X[rng.random(X.shape) < 0.6] = np.nan
    X[rng.random(X.shape) < 0.1] = 0.0
    X[4] = np.nan
    X[:, 6] = np.nan
    return X


def as_sparse(dense, kind, container, index_dtype):
    rows, columns = np.nonzero(~np.isnan(dense))
    coo = sp.coo_array(
        (dense[rows, columns], (rows.astype(index_dtype), columns.astype(index_dtype))), shape=dense.shape
    )
    made = coo.asformat(kind)
    return made if container == "array" else getattr(sp, f"{kind}_matrix")(made)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("container", ["array", "matrix"])
@pytest.mark.parametrize("kind", SPARSE_FORMATS)
def test_every_sparse_format_gives_the_same_entries(dense, kind, container, index_dtype):
    assert Observed.from_scipy(as_sparse(dense, kind, container, index_dtype)) == Observed.from_dense(dense)


@pytest.mark.parametrize("make", [lambda X: X, lambda X: X.astype(object), lambda X: X.tolist()])
def test_dense_round_trip(dense, make):
    np.testing.assert_array_equal(Observed.from_dense(make(dense)).to_dense(), dense)


def test_float32_stays(dense):
    assert Observed.from_dense(dense.astype(np.float32)).dtype == np.float32
    assert Observed.from_dense(np.arange(6).reshape(2, 3)).dtype == np.float64


def test_sparse_missing_nan_means_absent_is_zero():
    X = sp.csr_array(np.array([[0.0, 1.0], [np.nan, 0.0]]))
    np.testing.assert_array_equal(Observed.from_scipy(X, sparse_missing="nan").to_dense(), X.toarray())


def test_a_stored_nan_is_missing_when_absent_is_missing():
    X = sp.csr_array((np.array([np.nan, 0.0, 2.0]), np.array([0, 2, 1]), np.array([0, 2, 3])), shape=(2, 3))
    np.testing.assert_array_equal(Observed.from_scipy(X).to_dense(), [[np.nan, np.nan, 0.0], [np.nan, 2.0, np.nan]])


@pytest.mark.parametrize("X", [sp.eye_array(4, format="dia"), sp.random_array((4, 4), density=0.5).tobsr((2, 2))])
def test_formats_that_invent_zeros_are_refused(X):
    with pytest.raises(TypeError, match="observed ones"):
        Observed.from_scipy(X)


def test_unsorted_indices_are_sorted_without_touching_the_input():
    X = sp.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    np.testing.assert_array_equal(Observed.from_scipy(X).to_dense(), [[2.0, np.nan, 1.0]])
    np.testing.assert_array_equal(X.indices, [2, 0])


@pytest.mark.parametrize(("policy", "value"), [("last", 5.0), ("mean", 4.0)])
def test_duplicate_triplets(policy, value):
    table = Observed.from_triplets([1, 0, 1], [2, 0, 2], [3.0, 1.0, 5.0], duplicates=policy)
    np.testing.assert_array_equal(table.to_dense(), [[1.0, np.nan, np.nan], [np.nan, np.nan, value]])


def test_duplicates_are_an_error_that_names_the_cell():
    with pytest.raises(ValueError, match="row 1, column 2"):
        Observed.from_triplets([1, 1], [2, 2], [3.0, 3.0])
    with pytest.raises(ValueError, match="row 1, column 2"):
        Observed.from_scipy(sp.coo_array((np.ones(2), ([1, 1], [2, 2])), shape=(2, 3)))
    with pytest.raises(ValueError, match="comes twice"):
        Observed(np.array([0, 2]), np.array([1, 1]), np.ones(2), (1, 3))


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([0, 2, 1], [0, 1], [1.0, 1.0]), "never fall"),
        (([0, 1, 3], [0, 1], [1.0, 1.0]), "never fall"),
        (([1, 1, 2], [0, 1], [1.0, 1.0]), "start at 0"),
        (([0, 1, 2], [0, -1], [1.0, 1.0]), "-1 in row 1"),
        (([0, 1, 2], [0, 3], [1.0, 1.0]), "3 in row 1"),
        (([0, 2, 2], [1, 0], [1.0, 1.0]), "column 0 of row 0"),
        (([0, 1, 2], [0, 1], [1.0, np.inf]), "inf in row 1, column 1"),
        (([0, 1], [0], [1.0]), "one offset a row"),
        (([0, 1, 2], [0], [1.0, 2.0]), "one length"),
    ],
)
def test_broken_arrays_are_refused(arrays, message):
    indptr, indices, values = (np.array(a) for a in arrays)
    with pytest.raises(ValueError, match=message):
        Observed(indptr, indices, values, (2, 3))


def test_infinity_is_refused_where_it_stands(dense):
    dense[3, 2] = np.inf
    with pytest.raises(ValueError, match="row 3, column 2"):
        Observed.from_dense(dense)


def test_too_many_columns_are_refused():
    with pytest.raises(ValueError, match="32 bits"):
        Observed(np.zeros(2, np.int64), np.empty(0, np.int32), np.empty(0), (1, 2**31))
    with pytest.raises(ValueError, match="must fit int32"):
        Observed(np.array([0, 1]), np.array([2**33]), np.ones(1), (1, 5))


@pytest.mark.parametrize(
    ("row", "col", "message"), [([0, -1], [0, 0], "-1 in triplet 1"), ([0, 1], [0, 7], "7 in triplet 1")]
)
def test_triplets_outside_the_shape(row, col, message):
    with pytest.raises(ValueError, match=message):
        Observed.from_triplets(row, col, [1.0, 2.0], shape=(3, 3))


@pytest.mark.parametrize("rows", [slice(2, 9), slice(None, None, -2), [3, 1, 1], np.arange(23) % 3 == 0, slice(5, 2)])
def test_row_selection(dense, rows):
    np.testing.assert_array_equal(Observed.from_dense(dense)[rows].to_dense(), dense[rows])


def test_batches_and_vstack_are_inverse(dense):
    table = Observed.from_dense(dense)
    batches = list(table.iter_batches(5))
    assert [batch.shape[0] for batch in batches] == [5, 5, 5, 5, 3]
    assert Observed.vstack(batches) == table


def test_immutable_and_picklable(dense):
    table = Observed.from_dense(dense)
    with pytest.raises(ValueError, match="read-only"):
        table.values[0] = 1.0
    with pytest.raises(AttributeError, match="immutable"):
        table.shape = (1, 1)
    assert pickle.loads(pickle.dumps(table)) == table


def test_columns_are_the_same_entries(dense):
    table = Observed.from_dense(dense)
    csc = table.to_scipy().tocsc()
    np.testing.assert_array_equal(table.columns.indptr, csc.indptr)
    np.testing.assert_array_equal(table.columns.rows, csc.indices)
    np.testing.assert_array_equal(table.values[table.columns.positions], csc.data)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (4, 2)])
def test_nothing_observed(shape):
    table = Observed.from_dense(np.full(shape, np.nan))
    assert table.nnz == 0
    assert repr(table)
    np.testing.assert_array_equal(table.to_dense(), np.full(shape, np.nan))


def test_scikit_learn_can_split_it(dense):
    train, test = train_test_split(Observed.from_dense(dense), random_state=0)
    assert train.shape[0] + test.shape[0] == dense.shape[0]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(dense, library):
    pytest.importorskip(library)
    columns = {f"c{j}": [None if np.isnan(v) else float(v) for v in dense[:, j]] for j in range(dense.shape[1])}
    if library == "pandas":
        import pandas as pd

        frame = pd.DataFrame(columns, dtype="Float64")
    elif library == "polars":
        import polars as pl

        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Float64))
    else:
        import pyarrow as pa

        frame = pa.table(columns, schema=pa.schema([(name, pa.float64()) for name in columns]))
    assert Observed.from_frame(frame) == Observed.from_dense(dense)


def test_columns_of_a_frame_may_be_named_by_numbers():
    pd = pytest.importorskip("pandas")
    dense = np.array([[1.0, np.nan], [3.0, 4.0]])
    assert Observed.from_frame(pd.DataFrame(dense)) == Observed.from_dense(dense)


def test_text_column_is_refused_by_name():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="got 'Oslo' in row 0, column 'city'"):
        Observed.from_frame(pd.DataFrame({"age": [1.0], "city": ["Oslo"]}))


def test_svmlight_keeps_written_zeros(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("1 1:0.5 3:0 # a comment\n\n-1 2:2\n", encoding="utf-8")
    table, y = Observed.from_svmlight(path, batch_rows=1)
    np.testing.assert_array_equal(table.to_dense(), [[0.5, np.nan, 0.0], [np.nan, 2.0, np.nan]])
    np.testing.assert_array_equal(y, [1, -1])


@pytest.mark.parametrize("line", ["1 a:2", "1 0:2", "x 1:2", "1 1"])
def test_broken_svmlight_line_is_named(tmp_path, line):
    path = tmp_path / "rows.svm"
    path.write_text(f"1 1:1\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        Observed.from_svmlight(path)


def test_parquet_triplets_in_batches(tmp_path, dense):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = Observed.from_dense(dense)
    rows = np.repeat(np.arange(table.shape[0]), table.row_counts)
    path = tmp_path / "triplets.parquet"
    parquet.write_table(pa.table({"row": rows, "col": table.indices, "value": table.values}), path)
    assert Observed.from_parquet(path, shape=table.shape, batch_rows=7) == table
