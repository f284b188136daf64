"""Properties that hold for any table with holes, looked for by Hypothesis."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from reference.karma import karma_gram

from lacunar import Observed
from lacunar.kernels import karma_kernel

CELLS = st.one_of(st.just(np.nan), st.just(0.0), st.floats(-100, 100, allow_subnormal=False))
TABLES = st.tuples(st.integers(1, 12), st.integers(1, 40)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=CELLS)
)
RELAXED = settings(max_examples=60, deadline=None)


@RELAXED
@given(TABLES)
def test_every_way_there_and_back(X):
    table = Observed.from_dense(X)
    np.testing.assert_array_equal(table.to_dense(), X)
    assert Observed.from_scipy(table.to_scipy()) == table
    assert Observed.from_scipy(table.to_scipy().tocsc()) == table
    assert Observed.vstack([table[:1], table[1:]]) == table
    rows = np.repeat(np.arange(table.shape[0]), table.row_counts)
    shuffled = np.random.default_rng(0).permutation(table.nnz)
    triplets = rows[shuffled], table.indices[shuffled], table.values[shuffled]
    assert Observed.from_triplets(*triplets, shape=table.shape) == table


@RELAXED
@given(TABLES, st.sampled_from(["dense", "spmm", "inverted"]), st.sampled_from([1, 2, 3, 2.5]), st.booleans())
def test_the_kernel_is_the_papers(X, method, gamma, constant):
    ours = karma_kernel(X, gamma=gamma, count_scale=3.0, constant=float(constant), indicators=1.0, method=method)
    twin = karma_gram(X, X, gamma, 3.0, float(constant), 1.0)
    np.testing.assert_allclose(ours, twin, rtol=1e-11, atol=1e-11 * np.abs(twin).max())


@RELAXED
@given(TABLES, st.integers(0, 2**32 - 1))
def test_rows_and_columns_have_no_order(X, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(X.shape[0]), rng.permutation(X.shape[1])
    gram = karma_kernel(X)
    moved = karma_kernel(X[rows][:, columns])
    np.testing.assert_allclose(moved, gram[np.ix_(rows, rows)], rtol=1e-11, atol=1e-11 * np.abs(gram).max())
