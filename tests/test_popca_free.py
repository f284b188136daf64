"""POPCA without (d, d) tables: the operator, its solver, what it is chosen for, and refusals where tables would be needed."""

import itertools

import numpy as np
import pytest
from reference.popca import expected

from lacunar import Observed, _core, _moments
from lacunar.lowrank import POPCA
from lacunar.lowrank.moments import column_means, implicit_covariance, pair_sums
from lacunar.lowrank.parts import centred


def table(n=200, d=9, seed=0, spread=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.5 * rng.normal(size=(n, d)) + 3.0).astype(dtype)
    X[rng.random((n, d)) > (np.linspace(0.05, 0.9, d) if spread else 0.4)] = np.nan
    return X


def spiked(n, d, entries, k=2, seed=0):
    """Sparse rows of k random directions and unit noise; (rows, basis)."""
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(d, k))
    columns = np.sort(rng.random((n, d)).argsort(axis=1)[:, :entries], axis=1).astype(np.int32)
    values = np.einsum("nk,nek->ne", rng.normal(size=(n, k)), basis[columns]) + rng.normal(size=columns.shape)
    return Observed(np.arange(0, n * entries + 1, entries), columns.ravel(), values.ravel(), (n, d)), basis


def overlap(components, basis):
    return np.sum((components @ np.linalg.qr(basis)[0]) ** 2) / len(components)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 8, 11])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_one_pass_is_two_products(dtype, width, n_threads):
    X = table(3000, dtype=dtype)
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
    X = table(spread=spread)
    rows = Observed.from_dense(X)
    shift = column_means(rows) if center else np.zeros(9)
    C = expected(X, weights, p, pseudo, center)
    how = {"p": p, "pseudo_count": pseudo}
    made = (_moments.covariance if center else _moments.second_moment)(pair_sums(rows, shift), weights, **how)
    np.testing.assert_allclose(made, C, rtol=1e-9, atol=1e-9)
    implicit = implicit_covariance(centred(rows, shift), weights=weights, center=center, n_jobs=None, **how)
    exact = pseudo == 0 or weights in ("global", "known")
    np.testing.assert_allclose(implicit.times(np.eye(9)), C, rtol=1e-9 if exact else 3e-4, atol=1e-9)
    np.testing.assert_allclose(implicit.diagonal, np.diag(C))
    scale = np.arange(1.0, 10)
    scaled = implicit.divided(scale).times(np.eye(9))
    np.testing.assert_allclose(scaled, C / np.outer(scale, scale), rtol=1e-9 if exact else 3e-4, atol=1e-9)


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


@pytest.mark.parametrize(
    "how", [{}, {"standardize": True}, {"center": False, "weights": "global"}, {"pseudo_count": 0}]
)
def test_solver_agrees_with_tables(how):
    X = Observed.from_dense(table(2000, 40))
    how = {"weights": "kappa", "refine": 0, "random_state": 0, **how}
    free, dense = POPCA(2, solver="matrix-free", **how).fit(X), POPCA(2, solver="dense", **how).fit(X)
    assert (free.solver_, dense.solver_) == ("matrix-free", "dense")
    assert overlap(free.components_, dense.components_.T) > 1 - 1e-5
    np.testing.assert_allclose(free.explained_variance_, dense.explained_variance_, rtol=3e-3)
    np.testing.assert_allclose(free.scale_, dense.scale_)
    assert free.total_variance_ == pytest.approx(dense.total_variance_)
    found, full = free.diagnostics_, dense.diagnostics_
    assert found["lambda_min"] == pytest.approx(full["lambda_min"], rel=0.2, abs=0.02)
    for name in ("kappa", "effective_rows", "median_joint_count", "independence_gap", "frac_pairs_unseen"):
        assert found[name] == pytest.approx(full[name])  # 40 columns: all pairs are probed


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_auto_goes_without_tables_from_a_thousand_columns():
    rows, basis = spiked(3000, 1200, 30)
    for solver in ("auto", "dense"):
        model = POPCA(2, solver=solver, refine=0, random_state=0).fit(rows)
        assert model.solver_ == {"auto": "matrix-free"}.get(solver, solver)
        assert overlap(model.components_, basis) > 0.9
    assert POPCA(2, weights="pairwise", refine=0).fit(rows).solver_ == "dense"
    chosen = POPCA("holdout", refine=2, random_state=0).fit(rows)
    assert (chosen.n_components_, chosen.solver_) == (2, "matrix-free")
    assert len(chosen.holdout_errors_) == 20


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_panels_are_not_left_to_expected_counts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1000))
    X[:150, :500], X[150:, 500:] = np.nan, np.nan
    X[:, :10] = rng.normal(size=(300, 10))
    rows = Observed.from_dense(X)
    assert POPCA(1, refine=0, random_state=0).fit(rows).solver_ == "dense"
    with pytest.warns(UserWarning, match="panels"):
        POPCA(1, solver="matrix-free", refine=0, random_state=0).fit(rows)


def test_threads_make_no_difference():
    rows, _ = spiked(2000, 1000, 30)
    one, three = (POPCA(2, n_jobs=jobs, refine=1, random_state=0).fit(rows) for jobs in (1, 3))
    np.testing.assert_array_equal(one.components_, three.components_)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_large_tables_are_refused_with_the_remedy():
    rows, _ = spiked(400, 9000, 5)
    for how in ({}, {"n_components": 0.5}, {"n_components": 2, "weights": "pairwise"}):
        with pytest.raises(ValueError, match=r"9000 x 9000 numbers, 5 GiB.*integer n_components"):
            POPCA(unseen="drop", **how).fit(rows)
    with pytest.raises(ValueError, match="partial_fit and merge need tables"):
        POPCA(2).partial_fit(rows)
    model = POPCA(2, unseen="drop", refine=1, random_state=0).fit(rows)
    assert model.solver_ == "matrix-free"
    assert model.transform(rows).shape == (400, 2)


def test_a_fit_without_tables_is_not_silently_begun_again():
    rows, _ = spiked(1500, 1000, 20)
    model = POPCA(2, refine=0, random_state=0).fit(rows)
    with pytest.raises(ValueError, match="fitted matrix-free without any"):
        model.partial_fit(rows)
    with pytest.raises(ValueError, match="fitted matrix-free"):
        model.merge(model)
    assert model.n_samples_seen_ == 1500
