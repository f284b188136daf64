"""Mechanisms of missingness: what they keep, how often, and the same of dense and sparse tables."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar.datasets import hide_all_but, hide_blocks, hide_by_row, hide_mar, hide_mcar, hide_mnar, hide_panels

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2000, 8)) @ RNG.normal(size=(8, 8))
X[:, 7] = 3.0  # a constant column
BLOCKS = [[0, 1, 2], [3, 4]]
MECHANISMS = {
    "mcar": lambda A, **k: hide_mcar(A, 0.4, **k),
    "columns": lambda A, **k: hide_mcar(A, np.linspace(0, 1, 8), **k),
    "rows": lambda A, **k: hide_by_row(A, np.linspace(0, 1, A.shape[0]), **k),
    "all_but": lambda A, **k: hide_all_but(A, 3, **k),
    "mar": lambda A, **k: hide_mar(A, 0.4, drivers=[0, 2], strength=2, **k),
    "mnar": lambda A, **k: hide_mnar(A, 0.4, strength=2, **k),
    "blocks": lambda A, **k: hide_blocks(A, BLOCKS, 0.5, **k),
    "panels": lambda A, **k: hide_panels(A, 3, overlap=0.25, **k),
}
EVERY = pytest.mark.parametrize("name", MECHANISMS)


def seen(made):
    return np.isfinite(made.data)


@EVERY
def test_kept_entries_are_unchanged_and_the_complete_table_too(name):
    original = X.copy()
    made = MECHANISMS[name](X, random_state=0)
    np.testing.assert_array_equal(X, original)
    np.testing.assert_array_equal(made.complete, X)
    np.testing.assert_array_equal(made.data[seen(made)], X[seen(made)])
    assert not seen(made).all()


@EVERY
def test_sparse_tables_get_the_same_holes_as_dense_ones(name):
    """Row by row a complete CSR stores its entries in the order of the dense table, so even the draws agree."""
    dense = MECHANISMS[name](X, random_state=3)
    stored = sp.csr_array((X.ravel(), np.tile(np.arange(8), 2000), np.arange(0, 16001, 8)), shape=X.shape)
    made = MECHANISMS[name](stored, random_state=3)
    mask = made.data.copy()
    mask.data = np.ones_like(mask.data)
    np.testing.assert_array_equal(mask.toarray() > 0, seen(dense))
    np.testing.assert_array_equal(made.data.data, X[seen(dense)])
    assert made.complete.nnz == X.size


@EVERY
def test_holes_stay_and_stored_zeros_too(name):
    holed = np.where(RNG.random(X.shape) < 0.3, np.nan, X)
    made = MECHANISMS[name](holed, random_state=0)
    assert not seen(made)[np.isnan(holed)].any()
    zeros = sp.random_array(X.shape, density=0.5, random_state=0, format="csr")
    zeros.data[:] = 0
    made = MECHANISMS[name](zeros, random_state=0).data
    assert 0 < made.nnz < zeros.nnz
    assert not made.data.any()


@EVERY
def test_same_seed_same_holes(name):
    once, again, other = (MECHANISMS[name](X, random_state=s).data for s in (1, 1, 2))
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(np.isnan(once), np.isnan(other))


@EVERY
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_array, sp.csc_array])
def test_sparse_kinds_and_dtypes(name, kind):
    made = MECHANISMS[name](kind(X.astype(np.float32)), random_state=0).data
    assert made.dtype == np.float32
    assert made.has_canonical_format
    assert MECHANISMS[name](X.astype(np.float32), random_state=0).data.dtype == np.float32
    assert MECHANISMS[name](np.ones((20, 8), dtype=int), random_state=0).data.dtype == np.float64


def near(share, expected, n):
    assert share == pytest.approx(expected, abs=4.5 * np.sqrt(expected * (1 - expected) / n) + 1e-12)


def test_mcar_rates():
    near(seen(hide_mcar(X, 0.4, random_state=0)).mean(), 0.4, X.size)
    for share, found in zip(
        np.linspace(0, 1, 8), seen(MECHANISMS["columns"](X, random_state=0)).mean(axis=0), strict=True
    ):
        near(found, share, len(X))
    assert seen(hide_mcar(X, 1.0)).all()
    assert not seen(hide_mcar(X, 0.0)).any()


def test_rows_have_their_rates():
    shares = np.repeat([0.05, 0.9], 1000)
    found = seen(hide_by_row(X, shares, random_state=0)).mean(axis=1)
    near(found[:1000].mean(), 0.05, 8000)
    near(found[1000:].mean(), 0.9, 8000)


def test_fixed_number_a_row_is_uniform():
    kept = seen(hide_all_but(X, 3, random_state=0))
    assert (kept.sum(axis=1) == 3).all()
    for column in range(8):
        near(kept[:, column].mean(), 3 / 8, 2000)
    near((kept[:, 0] & kept[:, 1]).mean(), 3 * 2 / (8 * 7), 2000)
    holed = X.copy()
    holed[:, :6] = np.nan
    assert (seen(hide_all_but(holed, 3, random_state=0)).sum(axis=1) == 2).all()


def test_mar_depends_on_drivers_only():
    made = hide_mar(X, 0.4, drivers=[0, 2], strength=2, random_state=0)
    kept = seen(made)
    assert kept[:, [0, 2]].all()
    others = kept[:, [1, 3, 4, 5, 6, 7]]
    near(others.mean(), 0.4, others.size / 6)  # entries of a row share their probability
    z = ((X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1))[:, [0, 2]].sum(axis=1) / np.sqrt(2)
    low, high = z < np.median(z), z >= np.median(z)
    assert others[low].mean() > others[high].mean() + 0.3
    odds = np.log(made.probability / (1 - made.probability))
    np.testing.assert_allclose(np.diff(odds) / np.diff(z), -2, rtol=1e-6)
    np.testing.assert_allclose(made.probability.mean(), 0.4, atol=1e-6)


def test_mnar_hides_what_is_large():
    kept = seen(hide_mnar(X, 0.4, strength=2, random_state=0))
    near(kept.mean(), 0.4, X.size)
    for column in range(7):
        large = X[:, column] > np.median(X[:, column])
        assert kept[~large, column].mean() > kept[large, column].mean() + 0.3
    small = seen(hide_mnar(X, 0.4, strength=-2, random_state=0))
    assert small[X[:, 0] > 0, 0].mean() > small[X[:, 0] < 0, 0].mean()
    near(seen(hide_mnar(X, 0.4, strength=0, random_state=0)).mean(), 0.4, X.size)


def test_blocks():
    made = hide_blocks(X, BLOCKS, 0.5, random_state=0)
    kept = seen(made)
    for k, block in enumerate(BLOCKS):
        for column in block:
            np.testing.assert_array_equal(kept[:, column], made.seen[:, k])
    assert kept[:, 5:].all()
    assert made.seen.any(axis=1).all()
    near(made.seen[:, 0].mean(), 2 / 3, 2000)  # P(seen | one of two seen) = .5 / .75
    assert seen(hide_blocks(X, [])).all()
    both = seen(hide_blocks(X, [[0, 1], [1, 2]], 0.5, random_state=0))
    np.testing.assert_array_equal(both[:, 1], both[:, 0] | both[:, 2])


def test_panels():
    made = hide_panels(X, 3, overlap=0.25, random_state=0)
    shared = set.intersection(*map(set, made.panels))
    assert len(shared) == 2
    assert set.union(*map(set, made.panels)) == set(range(8))
    for panel, columns in enumerate(made.panels):
        rows = seen(made)[made.panel == panel]
        assert rows[:, columns].all()
        assert rows.sum() == len(rows) * len(columns)
    weighted = hide_panels(X, BLOCKS, weights=[3, 1], random_state=0)
    near((weighted.panel == 0).mean(), 0.75, 2000)
    assert seen(weighted)[:, 5:].all()


def test_a_million_stored_entries_in_a_huge_shape():
    rows, columns = RNG.integers(10**6, size=(2, 10**6))
    table = sp.csr_array(sp.coo_array((np.ones(10**6), (rows, columns)), shape=(10**6, 10**6)))
    table.data[:] = RNG.normal(size=table.nnz)
    for made in (hide_mcar(table, 0.3), hide_mnar(table, 0.3), hide_mar(table, 0.3), hide_all_but(table, 1)):
        assert made.data.nnz < table.nnz


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: hide_mcar(X, 1.5), ValueError, r"share_observed.*\[0, 1\].*1\.5"),
        (lambda: hide_mcar(X, "half"), TypeError, r"share_observed.*number in \[0, 1\].*'half'"),
        (lambda: hide_mcar(X, [0.5, 0.5]), ValueError, r"each of the 8 columns; got shape \(2,\)"),
        (lambda: hide_mcar(X, [0.5] * 7 + [np.nan]), ValueError, "got nan at 7"),
        (lambda: hide_mcar(X[0]), ValueError, r"two-dimensional .*; got shape \(8,\)"),
        (lambda: hide_mcar([[1.0, 2.0], [np.inf, 3.0]]), ValueError, "inf in row 1, column 0"),
        (lambda: hide_mnar(sp.csr_array([[0, 2.0], [0, -np.inf]])), ValueError, "inf in row 1, column 1"),
        (lambda: hide_by_row(X, [0.5]), ValueError, r"each of the 2000 rows; got shape \(1,\)"),
        (lambda: hide_by_row(X[:2], [0.5, -1]), ValueError, r"got -1\.0 at 1"),
        (lambda: hide_all_but(X, 0), ValueError, "n_observed.*at least 1 and at most 8; got 0"),
        (lambda: hide_all_but(X, 2.5), TypeError, "n_observed"),
        (lambda: hide_mar(X, 0.0), ValueError, r"share_observed must lie in \(0, 1\)"),
        (lambda: hide_mar(X, drivers=[8]), ValueError, "drivers must be numbers of columns, 0 to 7.*8"),
        (lambda: hide_mar(X, drivers=[]), ValueError, "drivers"),
        (lambda: hide_mar(X, drivers=range(8)), ValueError, "drivers must leave a column.*all 8"),
        (lambda: hide_mar(X, strength="much"), TypeError, "strength.*'much'"),
        (lambda: hide_mnar(X, 1.0), ValueError, "share_observed"),
        (lambda: hide_blocks(X, [[0], [9]]), ValueError, r"blocks\[1\].*0 to 7; got \[9\]"),
        (lambda: hide_blocks(X, [[0.5]]), ValueError, r"blocks\[0\]"),
        (lambda: hide_blocks(X, [], 0), ValueError, "share_observed"),
        (lambda: hide_panels(X, 9), ValueError, "panels.*at most 8; got 9"),
        (lambda: hide_panels(X, 2, overlap=2), ValueError, "overlap"),
        (lambda: hide_panels(X, 2, weights=[1]), ValueError, "weights must be 2 numbers"),
        (lambda: hide_panels(X, 2, weights=[0, 0]), ValueError, "weights"),
        (
            lambda: hide_mcar(sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))),
            ValueError,
            "1 are stored twice",
        ),
    ],
)
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
