"""Columns standardised over their observed entries, against the dense formula."""

import numpy as np
import pytest
from reference.columns import column_moments

from lacunar import Observed, _core
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns


def table(dtype, n=200, d=7):
    rng = np.random.default_rng(0)
    X = (1e3 * np.arange(d) + rng.normal(size=(n, d))).astype(dtype)
    X[rng.random(X.shape) < 0.4] = np.nan
    X[:, 5] = np.nan
    X[:, 6] = 2.5
    return X, rng.integers(0, 3, n).astype(float)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_are_those_of_the_formula(dtype):
    X, weight = table(dtype)
    rows = Observed.from_dense(X)
    found = _core.column_moments(rows.indptr, rows.indices, rows.values, weight, 7)
    for mine, theirs in zip(found, column_moments(X.astype(float), weight), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standardised_rows(dtype):
    X, weight = table(dtype)
    columns = fit_columns(Observed.from_dense(X), weight, standardize=True)
    assert columns.seen.tolist() == [True] * 5 + [False, True]
    assert columns.scale[5:].tolist() == [1.0, 1.0]
    other = X.copy()
    other[:, 5] = 9.0  # never observed in fit
    rows = scale_columns(Observed.from_dense(other), columns)
    expected = ((X - columns.mean) / columns.scale).astype(dtype)
    np.testing.assert_array_equal(rows.to_dense(), expected)
    assert rows.dtype == dtype
    assert rows == Observed(rows.indptr, rows.indices, rows.values, rows.shape)  # the contract holds


def test_what_overflows_is_named():
    rows = Observed.from_dense(np.array([[0.0, 1.0], [1.0, 3e38]], np.float32))
    columns = ColumnScale(np.zeros(2), np.array([1.0, 1e-3]), np.ones(2, bool))
    with pytest.raises(ValueError, match="row 1, column 1"):
        scale_columns(rows, columns)


def test_sizes_are_checked():
    rows = Observed.from_dense(np.ones((3, 2)))
    arrays = (rows.indptr, rows.indices, rows.values)
    with pytest.raises(ValueError, match="weight has 2 elements, not 3"):
        _core.column_moments(*arrays, np.ones(2), 2)
    with pytest.raises(ValueError, match="center has 1 elements, not 2"):
        _core.standardise(*arrays, np.ones(1), np.ones(2), 2)
