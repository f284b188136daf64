"""Arrays and triplets become the same observed entries as their slow twins say, whatever their layout, dtype and threads."""

import itertools

import numpy as np
import pytest
from reference.ingest import dense_entries, triplet_entries

from lacunar import Observed, _core


def same(table, expected, shape, dtype):
    for mine, theirs in zip((table.indptr, table.indices, table.values), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert table.shape == shape
    assert table.dtype == dtype
    assert Observed(table.indptr, table.indices, table.values, shape) == table, "the contract holds"


def dense_table(n, d, dtype, kept=0.6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) > kept] = np.nan
    if n > 5 and d > 5:
        X[1], X[3], X[:, 2], X[:, 4] = np.nan, 7.0, np.nan, -0.0
    return X


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "every second row": lambda X: X[::2],
    "every second column": lambda X: X[:, ::2],
    "rows backwards": lambda X: X[::-1],
    "some columns": lambda X: X[1:, 1:-1],
    "columns of Fortran": lambda X: np.asfortranarray(X)[1:, ::-2],
    "all backwards": lambda X: X[::-1, ::-1],
    "not aligned": lambda X: np.frombuffer(b"\0" + X.tobytes(), X.dtype, offset=1).reshape(X.shape),
    "other bytes": lambda X: X.astype(X.dtype.newbyteorder()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("came", [np.float32, np.float64])
def test_dense_tables_of_every_layout(layout, came):
    for n, d in ((300, 17), (2, 70_000), (3000, 9)):
        X = LAYOUTS[layout](dense_table(n, d, came))
        for wanted in (None, np.float32, np.float64):
            dtype = wanted or (came if X.dtype == came else np.float64)
            for n_jobs in (1, 3):
                same(Observed.from_dense(X, dtype=wanted, n_jobs=n_jobs), dense_entries(X, dtype), X.shape, dtype)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 5])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_dense_tables_over_threads(order, n_jobs):
    X = np.array(dense_table(5000, 700, np.float32), order=order)
    same(Observed.from_dense(X, n_jobs=n_jobs), dense_entries(X, np.float32), X.shape, np.float32)


@pytest.mark.parametrize("shape", [(0, 0), (0, 4), (4, 0), (1, 1), (1, 9), (9, 1)])
@pytest.mark.parametrize("value", [np.nan, 0.0])
def test_tables_without_cells_or_entries(shape, value):
    for order in "CF":
        X = np.full(shape, value, order=order)
        same(Observed.from_dense(X), dense_entries(X, float), shape, np.float64)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, bool, np.float16, np.longdouble, object])
def test_other_numbers_become_float64(dtype):
    X = np.arange(12).reshape(3, 4).astype(dtype)
    same(Observed.from_dense(X), dense_entries(X.astype(float), float), (3, 4), np.float64)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("bad", [np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_infinity_is_named(order, bad, dtype):
    X = np.array(dense_table(200, 50, dtype), order=order)
    X[150, 7] = X[31, 44] = bad
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=f"got {bad} in row 31, column 44"):
            Observed.from_dense(X, n_jobs=n_jobs)
    X[150, 7] = X[31, 44] = 1e39 if dtype == np.float64 else 1.0
    if dtype == np.float64:
        with pytest.raises(ValueError, match=r"got 1e\+39 in row 31, column 44, which float32 does not hold"):
            Observed.from_dense(X, dtype=np.float32)


@pytest.mark.parametrize("n_cols", [1, 5])
def test_the_core_refuses_cells_that_it_cannot_walk(n_cols):
    with pytest.raises(ValueError, match="cell by cell"):
        _core.dense_entries(np.zeros((6, 12))[::2, ::2], False, None, None, 1)
    with pytest.raises(ValueError, match="scale has"):
        _core.dense_entries(np.zeros((6, n_cols)), False, np.zeros(n_cols), np.zeros(n_cols + 1), 1)
    with pytest.raises(ValueError, match="come together"):
        _core.dense_entries(np.zeros((6, n_cols)), False, np.zeros(n_cols), None, 1)
    assert _core.dense_entries(np.zeros((6, n_cols)), False, np.zeros(n_cols), np.zeros(n_cols), 1) is None, "0 / 0"


# -- triplets ---------------------------------------------------------------------------------------------------------


def triplets(n_rows, n_cols, m, number, dtype, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    value = rng.normal(size=m).astype(dtype)
    value[rng.random(m) < missing] = np.nan
    return rng.integers(0, n_rows, m).astype(number), rng.integers(0, n_cols, m).astype(number), value


SIZES = [(1, 1, 0), (1, 1, 1), (5, 5, 3), (20, 100, 3000), (9000, 3, 4000), (3, 2**31 - 1, 500)]
SEVERAL_TASKS = (10**6, 40, 90_000)  # triplets of more than one task, which take the slow twin half a second
KINDS = [*itertools.product([np.int32, np.int64], [np.float32, np.float64], ["last", "mean"])]


@pytest.mark.parametrize(
    ("n_rows", "n_cols", "m", "number", "dtype", "duplicates"),
    [(*size, *kind) for size in SIZES for kind in KINDS] + [(*SEVERAL_TASKS, *kind) for kind in (KINDS[0], KINDS[-1])],
)
def test_triplets_in_any_order(n_rows, n_cols, m, number, dtype, duplicates):
    row, col, value = triplets(n_rows, n_cols, m, number, dtype)
    expected = triplet_entries(row, col, value, n_rows, duplicates)
    for n_jobs in (1, 3):
        made = Observed.from_triplets(row, col, value, shape=(n_rows, n_cols), duplicates=duplicates, n_jobs=n_jobs)
        same(made, expected, (n_rows, n_cols), dtype)
    order = np.repeat(np.arange(n_rows), made.row_counts).astype(number)
    for n_jobs in (1, 3):  # sorted, as they now are
        again = Observed.from_triplets(order, made.indices.astype(number), made.values, shape=made.shape, n_jobs=n_jobs)
        same(again, expected, (n_rows, n_cols), dtype)
        assert not np.shares_memory(again.values, made.values)


@pytest.mark.parametrize("n_jobs", [1, 2, 7])
def test_many_shuffled_triplets_over_threads(n_jobs):
    X = dense_table(4000, 250, np.float64)
    row, col = np.nonzero(~np.isnan(X))
    order = np.random.default_rng(1).permutation(len(row))
    row, col = row[order], col[order]
    made = Observed.from_triplets(row, col, X[row, col], shape=X.shape, n_jobs=n_jobs)
    same(made, dense_entries(X, float), X.shape, np.float64)


@pytest.mark.parametrize("number", [np.int8, np.uint8, np.int16, np.uint32, np.uint64])
def test_numbers_of_every_width(number):
    made = Observed.from_triplets(np.array([2, 0], number), np.array([1, 3], np.int64), [1.0, 2.0])
    np.testing.assert_array_equal(made.to_scipy().toarray(), [[0, 0, 0, 2.0], [0, 0, 0, 0], [0, 1.0, 0, 0]])


def test_int64_numbers_beyond_int32():
    with pytest.raises(ValueError, match="at most 2147483647 columns"):
        Observed.from_triplets([0], [2**31], [1.0])
    with pytest.raises(ValueError, match=f"got {2**40} in triplet 1"):
        Observed.from_triplets([0, 1], [0, 2**40], [1.0, 2.0], shape=(2, 5))
    with pytest.raises(ValueError, match=f"got {2**32} in triplet 0"):
        Observed.from_triplets([2**32], [0], [1.0], shape=(2, 5))
    with pytest.raises(ValueError, match="must fit int64"):
        Observed.from_triplets(np.array([2**63], np.uint64), [0], [1.0])


def test_triplets_that_are_refused():
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=r"value must be finite; got inf in triplet 2 \(row 0, column 1\)"):
            Observed.from_triplets([0, 1, 0], [0, 1, 1], [1.0, np.nan, np.inf], n_jobs=n_jobs)
    with pytest.raises(ValueError, match="-1 in triplet 1"):  # a place in the table is due to missing values, too
        Observed.from_triplets([0, -1], [0, 0], [1.0, np.nan], shape=(3, 3))
    with pytest.raises(ValueError, match="row 1, column 2 comes more than once"):
        Observed.from_triplets([3, 1, 1, 3], [2, 2, 2, 2], [3.0, 3.0, 4.0, 5.0])
    with pytest.raises(ValueError, match="row 1, column 2 comes more than once"):  # sorted but for that
        Observed.from_triplets([1, 1, 3], [2, 2, 2], [3.0, 3.0, 4.0])
    with pytest.raises(ValueError, match="one length"):
        Observed.from_triplets([1, 2], [1], [3.0])
    with pytest.raises(TypeError, match="row must be integers"):
        Observed.from_triplets([1.5], [1], [3.0])
    with pytest.raises(ValueError, match="sizes of at least 0"):
        Observed.from_triplets([], [], [], shape=(-1, 2))


def test_a_mean_of_many_is_summed_in_their_order():
    value = np.array([1e16, 1.0, -1e16, 3.0, 5.0])
    made = Observed.from_triplets(np.zeros(5, int), np.array([0, 0, 0, 1, 1]), value, duplicates="mean")
    np.testing.assert_array_equal(made.values, [((1e16 + 1.0) - 1e16) / 3, 4.0])


def test_triplets_are_copied():
    row, col, value = np.array([0, 1]), np.array([1, 0]), np.array([1.0, 2.0])
    made = Observed.from_triplets(row, col, value)
    value[:] = 9.0
    np.testing.assert_array_equal(made.values, [1.0, 2.0])
