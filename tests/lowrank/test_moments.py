"""Sums over pairs of observed entries, against the dense formula, and the covariance that is never formed, against the table."""

import itertools

import numpy as np
import pytest
from reference.pair_sums import pair_sums
from reference.popca import expected

from lacunar import Observed, _core, _moments
from lacunar.lowrank import column_pair_sums, moments
from lacunar.lowrank.diagnostics import _joint_counts
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.moments import column_means, implicit_covariance
from lacunar.lowrank.regression import latent_labelled
from lacunar.observed.columns import standardised


def table(dtype=np.float64, n=120, d=17, offset=0.0):
    rng = np.random.default_rng(0)
    X = (offset + rng.normal(size=(n, d))).astype(dtype)
    X[rng.random(X.shape) < 0.7] = np.nan
    X[3] = np.nan
    X[4, 1:], X[4, 0] = np.nan, offset
    X[:, 5] = np.nan
    return X


def sums(X, shift, stripe=5, n_threads=1, into=None):
    rows, d = Observed.from_dense(X), X.shape[1]
    out = into or (np.zeros((d, d)), np.zeros((d, d), np.int64), np.zeros((d, d)))
    _core.column_pair_sums(rows.indptr, rows.indices, rows.values, shift, *out, stripe, n_threads)
    return out


@pytest.mark.parametrize(("dtype", "offset"), [(np.float32, 0.0), (np.float32, 1e4), (np.float64, 1e4)])
def test_sums_are_those_of_the_formula(dtype, offset):
    X, shift = table(dtype, offset=offset), np.full(17, offset)
    S, N, A = pair_sums(X.astype(float), shift)
    product, count, cross = sums(X, shift)
    np.testing.assert_allclose(product, np.triu(S), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(count, np.triu(N))
    np.testing.assert_allclose(cross, A, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("stripe", [1, 5, 17, 1000])
@pytest.mark.parametrize("n_threads", [1, 4])
def test_same_bits_for_any_stripe_and_threads(stripe, n_threads):
    X, shift = table(), np.linspace(-1, 1, 17)
    for mine, theirs in zip(sums(X, shift, stripe, n_threads), sums(X, shift, 17), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n_threads", [2, 3, 7])
@pytest.mark.parametrize("cross", [False, True])
def test_same_bits_where_threads_cut_one_stripe(n_threads, cross):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30_000, 60)) < np.linspace(0.9, 0.02, 60), rng.normal(size=(30_000, 60)), np.nan)
    X[:, 7] = np.nan

    def made(n_threads):
        out = np.zeros((60, 60)), np.zeros((60, 60), np.int64), np.zeros((60, 60)) if cross else None
        return sums(X, np.linspace(-1, 1, 60), 1000, n_threads, out)

    for mine, theirs in zip(made(n_threads), made(1), strict=True):
        assert (mine is None) if theirs is None else np.array_equal(mine, theirs)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 4])
def test_same_bits_by_column(dtype, n_threads):
    X, shift = table(dtype, offset=3.0), np.linspace(-1, 1, 17)
    rows = Observed.from_dense(X)
    data, columns = (rows.indptr, rows.indices, rows.values), rows.columns
    for asked in ((True, True), (False, False)):
        out = [
            np.zeros((17, 17)),
            *(np.zeros((17, 17), t) if a else None for t, a in zip((np.int64, float), asked, strict=True)),
        ]
        _core.column_pair_sums_by_column(*data, *columns, shift, *out, n_threads)
        for mine, theirs in zip(out, sums(X, shift, 17), strict=True):
            if mine is not None:
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n", [1, 63, 64, 4096, 9001])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_counts_of_bits(n, n_threads):
    X = table(n=max(n, 5), d=19)[:n]
    rows, count = Observed.from_dense(X), np.ones((19, 19), np.int64)
    _core.column_pair_counts(rows.indptr, rows.indices, rows.values, None, count, 19, n_threads)
    seen = (~np.isnan(X)).astype(np.int64)
    np.testing.assert_array_equal(count, np.triu(seen.T @ seen) + 1)


@pytest.mark.parametrize("n", [1, 4096, 9001])
def test_counts_of_some_columns(n):
    X, chosen = table(n=max(n, 5), d=19)[:n], [2, 3, 11, 18]
    rows, count = Observed.from_dense(X), np.zeros((4, 4), np.int64)
    place = np.full(19, -1, np.int32)
    place[chosen] = np.arange(4)
    data = (rows.indptr, rows.indices, rows.values)
    _core.column_pair_counts(*data, place, count, 19, 1)
    seen = (~np.isnan(X[:, chosen])).astype(np.int64)
    np.testing.assert_array_equal(count, np.triu(seen.T @ seen))
    for wrong, complaint in ((np.full(19, 4, np.int32), "place must"), (place[:5], "place has 5 elements")):
        with pytest.raises(ValueError, match=complaint):
            _core.column_pair_counts(*data, wrong, count, 19, 1)


@pytest.mark.parametrize("density", [0.02, 0.15, 0.5])
@pytest.mark.parametrize("wide", [False, True])
def test_tables_by_every_path(density, wide, monkeypatch):
    monkeypatch.setattr(moments, "_WIDE", 5 if wide else 3000)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 23)) < density, rng.normal(size=(300, 23)) + 2, np.nan)
    shift = np.linspace(0, 3, 23)
    S, N, A = pair_sums(X, shift)
    made, again = (moments.pair_sums(Observed.from_dense(X), shift, jobs) for jobs in (None, 3))
    for mine, theirs, formula in zip(made, again, (S, N, A), strict=False):
        np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(mine, formula, rtol=1e-12, atol=1e-12)


def test_the_public_door():
    X = table(np.float32)
    S, N, _ = pair_sums(X.astype(float), np.full(17, 0.5))
    made = column_pair_sums(X, np.full(17, 0.5))
    np.testing.assert_allclose(made.product, S, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(made.counts, N)
    assert made.cross is None
    assert column_pair_sums(X[:, :3], counts=False).counts is None
    with pytest.raises(ValueError, match="shift must be 3 finite numbers"):
        column_pair_sums(X[:, :3], np.zeros(4))


def test_batches_add_up_bit_for_bit():
    X, shift = table(), np.zeros(17)
    out = None
    for batch in np.array_split(X, 120):
        out = sums(batch, shift, into=out)
    for mine, theirs in zip(out, sums(X, shift), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 100])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_mirrored_tables(n, dtype):
    made = np.arange(n * n, dtype=dtype).reshape(n, n)
    whole = np.triu(made) + np.triu(made, 1).T
    _core.mirror_upper(made, 2)
    np.testing.assert_array_equal(made, whole)
    with pytest.raises(ValueError, match="table has 6 elements, not 4"):
        _core.mirror_upper(np.zeros((2, 3)), 1)


def test_tables_are_checked():
    rows = Observed.from_dense(np.ones((3, 2)))
    arrays = (rows.indptr, rows.indices, rows.values, np.zeros(2))
    with pytest.raises(ValueError, match="product has 6 elements, not 4"):
        _core.column_pair_sums(*arrays, np.zeros((2, 3)), None, None, 1, 1)
    with pytest.raises(ValueError, match="count has 1 elements, not 4"):
        _core.column_pair_sums(*arrays, np.zeros((2, 2)), np.zeros(1, np.int64), None, 1, 1)
    with pytest.raises(ValueError, match="column_offsets has 2 elements, not 3"):
        _core.column_pair_sums_by_column(
            *arrays[:3], np.zeros(2, np.int64), *rows.columns[1:], np.zeros(2), np.zeros((2, 2)), None, None, 1
        )
    with pytest.raises(ValueError, match="count has 1 elements, not 4"):
        _core.column_pair_counts(*arrays[:3], None, np.zeros(1, np.int64), 2, 1)
    frozen = np.zeros((2, 2))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writeable"):
        _core.column_pair_sums(*arrays, frozen, None, None, 1, 1)
    with pytest.raises(TypeError):
        _core.column_pair_sums(*arrays, np.zeros((2, 2), np.float32), None, None, 1, 1)


def shifted_table(n=200, d=9, seed=0, spread=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(n, d)) + 3.0).astype(dtype)
    X[rng.random((n, d)) > (np.linspace(0.05, 0.9, d) if spread else 0.4)] = np.nan
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 2, 3, 8, 11])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_pass_is_two_products(dtype, width, n_threads):
    X = shifted_table(3000, dtype=dtype)
    X[5] = np.nan
    rows, v = Observed.from_dense(X), np.random.default_rng(1).normal(size=(9, width))
    Z = np.nan_to_num(X.astype(np.float64))
    found = _core.column_gram_product(rows.indptr, rows.indices, rows.values, v, n_threads)
    np.testing.assert_allclose(found, Z.T @ (Z @ v), rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(
        found, _core.column_gram_product(rows.indptr, rows.indices, rows.values, v, 1 + n_threads)
    )


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("pseudo", [0.0, 2.0])
@pytest.mark.parametrize(("weights", "p"), [("kappa", None), ("feature", None), ("global", None), ("known", 0.4)])
@pytest.mark.parametrize("spread", [False, True])
def test_the_operator_is_the_table_that_it_replaces(weights, p, pseudo, center, spread):
    X = shifted_table(spread=spread)
    rows = Observed.from_dense(X)
    shift = column_means(rows) if center else np.zeros(9)
    C = expected(X, weights, p, pseudo, center)
    how = {"p": p, "pseudo_count": pseudo}
    made = (_moments.covariance if center else _moments.second_moment)(moments.pair_sums(rows, shift), weights, **how)
    np.testing.assert_allclose(made, C, rtol=1e-9, atol=1e-9)
    implicit = implicit_covariance(standardised(rows, shift), weights=weights, center=center, n_jobs=None, **how)
    exact = pseudo == 0 or weights in ("global", "known")
    np.testing.assert_allclose(implicit.times(np.eye(9)), C, rtol=1e-9 if exact else 3e-4, atol=1e-9)
    np.testing.assert_allclose(implicit.diagonal, np.diag(C))
    scale = np.arange(1.0, 10)
    scaled = implicit.divided(scale).times(np.eye(9))
    np.testing.assert_allclose(scaled, C / np.outer(scale, scale), rtol=1e-9 if exact else 3e-4, atol=1e-9)


@pytest.mark.parametrize("k", [2, 10])
def test_eigenpairs_by_products_are_those_of_the_matrix(k):
    """Eigenvalues that fall slowly, so that the basis is full and restarted several times."""
    d = 400
    rng = np.random.default_rng(k)
    X = rng.normal(size=(600, d)) * np.linspace(1.3, 1.0, d) ** 2
    X[rng.random(X.shape) < 0.3] = np.nan
    rows = Observed.from_dense(X)
    C = implicit_covariance(rows, weights="kappa", p=None, center=False, pseudo_count=0.0, n_jobs=None)
    calls = []

    class Counted:
        remainder, diagonal = C.remainder, C.diagonal

        def times(self, block):
            calls.append(block.shape[1])
            return C.times(block)

    found = moments.free_spectrum(Counted(), k, np.random.default_rng(0))
    full = C.times(np.eye(d))
    values = np.linalg.eigvalsh(full)[::-1]
    assert sum(calls) > 2 * max(48, 2 * k + 4 * calls[0])  # vectors beyond two whole bases: there were restarts
    np.testing.assert_allclose(found.values, values[:k], rtol=1e-3)
    left = np.linalg.norm(full @ found.vectors.T - found.vectors.T * found.values, axis=0)
    assert (left <= 1.01e-3 * found.values).all()
    np.testing.assert_allclose(found.vectors @ found.vectors.T, np.eye(k), atol=1e-10)
    assert found.trace == pytest.approx(values.sum())
    assert values[-1] - 1e-9 <= found.smallest <= 0.8 * values[-1]  # a Ritz value, and only a rough one


def test_expected_counts_are_unbiased_over_all_masks():
    m, counts = 5, (3, 2)
    masks = [
        [np.isin(range(m), chosen) for chosen in pair]
        for pair in itertools.product(*(itertools.combinations(range(m), n) for n in counts))
    ]
    total = 0.0
    for seen in masks:  # quadratic in the rows: the expectation sums over a unit row alone, rows being independent
        for a in range(m):
            X = np.where(np.array(seen).T, 0.0, np.nan)
            X[a] += 1.0
            total += expected(X, "feature")[0, 1] / len(masks)
    assert total == pytest.approx(1.0)


def test_light_sums_do_not_depend_on_blocks(monkeypatch):
    """Blocks of other sizes, one row longer than a block, and rows without an entry: the buffer of one block serves the next."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 80))
    X[rng.random(X.shape) < np.linspace(0.2, 1, 300)[:, None]] = np.nan
    X[150], X[200:210] = rng.normal(size=80), np.nan
    rows, mean, basis = Observed.from_dense(X), rng.normal(size=80), rng.normal(size=(80, 3))
    chosen, labels = np.sort(rng.choice(80, 64, replace=False)), rng.normal(size=(300, 1))
    seen = np.isfinite(X[:, chosen]).astype(float)
    model = LowRankGaussian(mean, basis.T, 0.1)
    whole = latent_labelled((rows, labels), model, 1)[0]
    monkeypatch.setattr("lacunar.observed.columns._ENTRIES", 70)
    np.testing.assert_array_equal(latent_labelled((rows, labels), model, 1)[0], whole)
    np.testing.assert_array_equal(np.triu(_joint_counts(rows, chosen)[0]), np.triu(seen.T @ seen))
    for i in (0, 150, 205, 299):
        v, away = basis[np.isfinite(X[i])], (X[i] - mean)[np.isfinite(X[i])]
        np.testing.assert_allclose(whole[i], np.linalg.solve(v.T @ v + 0.1 * np.eye(3), v.T @ away), atol=1e-10)
