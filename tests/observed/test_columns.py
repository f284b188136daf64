"""Columns standardised over their observed entries, against the dense formula."""

from fractions import Fraction

import numpy as np
import pytest
from reference.columns import column_moments, reach
from sklearn.base import BaseEstimator

from lacunar import Observed, _core
from lacunar.observed.columns import ColumnScale, column_spread, fit_columns, scale_columns, scaled_rows
from lacunar.observed.door import LARGEST


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
    found = _core.column_moments(rows.indptr, rows.indices, rows.values, weight, 7, 1)
    for mine, theirs in zip(found, column_moments(X.astype(float), weight), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def test_moments_do_not_depend_on_threads():
    X, weight = table(np.float64, n=20_000)  # cut into four parts
    rows = Observed.from_dense(X)
    one, *others = (
        _core.column_moments(rows.indptr, rows.indices, rows.values, weight, 7, n_threads) for n_threads in (1, 2, 5)
    )
    for found in others:
        np.testing.assert_array_equal(found, one)
    np.testing.assert_allclose(one, column_moments(X, weight), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_standardised_rows(dtype):
    X, weight = table(dtype)
    columns = fit_columns(Observed.from_dense(X), weight, standardize=True)
    assert columns.seen.tolist() == [True] * 5 + [False, False], "never observed, and of one value"
    assert columns.scale[5:].tolist() == [1.0, 2.5]
    other = X.copy()
    other[:, 5] = 9.0  # never observed in fit
    rows = scale_columns(Observed.from_dense(other), columns)
    expected = ((X - columns.mean) / columns.scale).astype(dtype)
    expected[:, 6] = np.nan
    np.testing.assert_array_equal(rows.to_dense(), expected)
    assert rows.dtype == dtype
    assert rows == Observed(rows.indptr, rows.indices, rows.values, rows.shape)  # the contract holds


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1.0, 0.01, 2.0])
def test_entries_count_as_far_as_their_column_is_known(unit, dtype):
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(40, 7)).astype(dtype), unit * rng.choice([0.0, 1.0], 40, p=[0.1, 0.9])
    for j, entries in enumerate((0, 1, 2, 3, 15, 32, 40)):
        X[entries:, j] = np.nan
    columns = fit_columns(Observed.from_dense(X), weight, standardize=True)
    np.testing.assert_array_equal(columns.reach, reach(X, weight))
    if unit == 2.0:
        repeated = np.repeat(X, weight.astype(int), axis=0)
        one_by_one = fit_columns(Observed.from_dense(repeated), np.ones(len(repeated)), standardize=True)
        np.testing.assert_array_equal(one_by_one.reach, columns.reach)
    far = np.where(rng.random((5, 7)) < 0.5, -1e6, 1e6).astype(dtype)
    expected = np.where(columns.seen, (far - columns.mean) / columns.scale, np.nan)
    expected = np.clip(expected, -columns.reach, columns.reach).astype(dtype)
    for door in (far, Observed.from_dense(far)):
        rows = scaled_rows(Fitted(), door, columns)
        np.testing.assert_array_equal(rows.to_dense(), expected)
        assert rows.dtype == dtype
    assert (fit_columns(Observed.from_dense(X), weight, standardize=False).reach == LARGEST).all()


@pytest.mark.parametrize("weights", [1.0, 1e-300, 1e300])
def test_spreads_far_from_zero(weights):
    """Against sums of exact fractions."""
    away = np.round(np.random.default_rng(0).normal(size=50_000) * 2**12) / 2**12
    exact = [Fraction(float(each)) for each in away]
    mean = sum(exact) / len(exact)
    deviation = float(sum((each - mean) ** 2 for each in exact) / len(exact)) ** 0.5
    for offset in (0.0, 1e12, -(2.0**40)):
        rows = Observed.from_dense((away + offset)[:, None])
        spread = column_spread(rows, np.full(len(away), weights))
        np.testing.assert_allclose(spread.deviation, deviation, rtol=1e-12)
        np.testing.assert_allclose(spread.mean, float(mean + Fraction(offset)), rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize("value", [0.1, 1e18 / 3, 1.7e308, 1e-300, 3.3e38])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_value_has_no_spread(dtype, value):
    with np.errstate(all="ignore"):
        one = dtype(value)
    if not np.isfinite(one):
        return
    spread = column_spread(Observed.from_dense(np.full((12_345, 1), one)), None)
    assert spread.mean[0] == one
    assert spread.deviation[0] == 0
    neighbours = Observed.from_dense(np.tile([[one], [np.nextafter(one, dtype(0))]], (500, 1)))
    assert not fit_columns(neighbours, np.ones(1000), standardize=True).seen.any(), "rounding is no spread"


@pytest.mark.parametrize("clip", [None, 8.0])
def test_what_overflows_is_named(clip):
    rows = Observed.from_dense(np.array([[0.0, 1.0], [1.0, 3e38]], np.float32))
    columns = ColumnScale(np.zeros(2), np.array([1.0, 1e-3]), np.ones(2, bool))
    with pytest.raises(ValueError, match="row 1, column 1"):
        scale_columns(rows, columns, clip)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_lies_far_out_is_clipped(dtype):
    X, weight = table(dtype)
    rows = Observed.from_dense(X)
    columns = fit_columns(rows, weight, standardize=True)
    whole, made = scale_columns(rows, columns).values, scale_columns(rows, columns, 0.7).values
    assert np.abs(whole).max() > 0.7
    np.testing.assert_array_equal(made, np.clip(whole, -0.7, 0.7))
    assert made.dtype == dtype


def test_sizes_are_checked():
    rows = Observed.from_dense(np.ones((3, 2)))
    arrays = (rows.indptr, rows.indices, rows.values)
    with pytest.raises(ValueError, match="weight has 2 elements, not 3"):
        _core.column_moments(*arrays, np.ones(2), 2, 1)
    with pytest.raises(ValueError, match="scale has 2 elements, not 1"):
        _core.standardise(rows.values, rows.indices, np.ones(1), np.ones(2), np.inf, np.empty(rows.nnz), 1)
    with pytest.raises(ValueError, match="out has 5 elements, not 6"):
        _core.standardise(rows.values, rows.indices, np.ones(2), np.ones(2), np.inf, np.empty(5), 1)


class Fitted(BaseEstimator):
    """An estimator of which only the columns are known."""

    n_features_in_, n_jobs = 7, 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_scaled_where_they_are_read(order, dtype):
    X, weight = table(dtype)
    columns = fit_columns(Observed.from_dense(X), weight, standardize=True)
    X = np.array(X, order=order)
    X[:, 5] = 9.0  # never observed in fit
    made = scaled_rows(Fitted(), X, columns)
    assert made == scale_columns(Observed.from_dense(X), columns), "the very bits"
    assert made == scaled_rows(Fitted(), Observed.from_dense(X), columns)
    assert made.dtype == dtype
    X[11, 3], X[12, 2] = np.finfo(dtype).max, np.nan
    tiny = columns._replace(scale=np.full(7, 1e-3))
    with pytest.raises(ValueError, match="row 11, column 3"):
        scaled_rows(Fitted(), X, tiny)
    X[11, 3] = -np.inf
    with pytest.raises(ValueError, match="got -inf in row 11, column 3"):
        scaled_rows(Fitted(), X, columns)
    with pytest.raises(ValueError, match="6 features"):
        scaled_rows(Fitted(), X[:, :6], columns)


def test_a_change_of_dtype_looks_only_where_it_may_overflow():
    rows = Observed.from_dense([[1.0, np.nan], [1e39, 2.0]])
    with pytest.raises(ValueError, match="inf in row 1, column 0"):
        rows.astype(np.float32)
    assert rows[:1].astype("float32").astype(float) == rows[:1]
    with pytest.raises(TypeError, match="dtype must be float64 or float32; got int64"):
        rows.astype(np.int64)
