"""`POPCA`: streams, codes, options, fits without tables, and rows and options that are not as they should be."""

import numpy as np
import pytest
from reference.popca import available, ridge_code

from lacunar import Observed, _moments
from lacunar.lowrank import POPCA
from lacunar.lowrank.moments import pair_sums


def table(n=300, d=8, k=2, p=0.5, seed=0, offset=0.0, noise=0.5):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(d, k)))[0] * np.sqrt(d)
    X = rng.normal(size=(n, k)) @ basis.T + noise * rng.normal(size=(n, d)) + offset
    return np.where(rng.random((n, d)) < p, X, np.nan), X, basis


def overlap(left, right):
    """Mean squared cosine of the angles between row spaces; 1 for the same."""
    q, r = (np.linalg.qr(np.atleast_2d(m).T)[0] for m in (left, right))
    return np.sum((q.T @ r) ** 2) / q.shape[1]


def test_centred_covariance_is_that_of_available_cases():
    X, _, _ = table(offset=30.0)
    sums = pair_sums(Observed.from_dense(X), np.full(8, 3.0))
    np.testing.assert_allclose(_moments.covariance(sums, "pairwise"), available(X), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("weights", ["pairwise", "kappa", "feature"])
def test_covariance_of_complete_rows_is_the_usual_one(weights):
    _, X, _ = table(offset=5.0)
    made = _moments.covariance(pair_sums(Observed.from_dense(X), np.zeros(8)), weights)
    np.testing.assert_allclose(made, np.cov(X.T), rtol=1e-8, atol=1e-10)


def test_pairwise_covariance_is_unbiased():
    rng = np.random.default_rng(0)
    truth = np.array([[2.0, 0.8, 0.3], [0.8, 1.0, -0.4], [0.3, -0.4, 1.5]])
    mask = rng.random((12, 3)) < 0.7
    half = np.linalg.cholesky(truth)
    made = np.zeros((3, 3))
    for _ in range(2000):
        X = np.where(mask, rng.normal(size=(12, 3)) @ half.T + 4.0, np.nan)
        sums = pair_sums(Observed.from_dense(X), np.full(3, 3.5))
        made += _moments.covariance(sums, "pairwise") / 2000
    np.testing.assert_allclose(made, truth, atol=0.08)


def test_known_rates_are_unbiased_by_enumeration():
    x, p = np.array([1.0, -2.0, 3.0]), 0.3
    total = np.zeros((3, 3))
    for code in range(8):
        seen = np.array([code >> j & 1 for j in range(3)], dtype=bool)
        rows = Observed.from_dense(np.where(seen, x, np.nan)[None])
        weight = np.prod(np.where(seen, p, 1 - p))
        total += weight * _moments.second_moment(pair_sums(rows, np.zeros(3)), "known", p=np.array([p] * 3))
    np.testing.assert_allclose(total, np.outer(x, x), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_hundreds_of_batches_equal_one_fit():
    X, _, _ = table(n=1200, offset=4.0)
    whole, stream = POPCA(2, refine=0).fit(X), POPCA(2)
    for batch in np.array_split(X, 400):
        stream.partial_fit(batch)
    for name in ("components_", "explained_variance_", "mean_"):
        np.testing.assert_allclose(getattr(stream, name), getattr(whole, name), rtol=1e-10, atol=1e-10)
    assert stream.n_samples_seen_ == 1200


def test_shards_of_different_shifts_merge():
    X, _, _ = table(n=400, offset=4.0)
    left, right = POPCA(2).partial_fit(X[:100]), POPCA(2).partial_fit(X[100:], shift=np.full(8, -3.0))
    merged, whole = left.merge(right), POPCA(2, refine=0).fit(X)
    np.testing.assert_allclose(merged.components_, whole.components_, atol=1e-10)
    np.testing.assert_allclose(merged.explained_variance_, whole.explained_variance_, rtol=1e-10)


def test_codes_are_posterior_means():
    X, _, _ = table()
    model = POPCA(2).fit(X)
    Z, std = model.transform(X, return_std=True)
    for i in range(20):
        z, covariance = ridge_code(
            X[i], model.mean_, model.components_.T, model.explained_variance_, model.noise_variance_
        )
        np.testing.assert_allclose(Z[i], z, atol=1e-9)
        np.testing.assert_allclose(std[i], np.sqrt(np.diag(covariance)), rtol=1e-8)
    assert (model.transform(np.full((1, 8), np.nan)) == 0).all()


def test_imputes_and_scores_better_than_means():
    X, truth, _ = table(n=1000)
    model, hole = POPCA(2, random_state=0).fit(X), np.isnan(X)
    made = model.impute(X)
    assert (made[~hole] == X[~hole]).all()
    assert np.mean((made - truth)[hole] ** 2) < 0.6 * np.mean(truth[hole] ** 2)
    assert -np.nanstd(X) < model.score(X) < 0


def test_refinement_helps_and_both_recover_the_subspace():
    plain, better = [], []
    for seed in range(10):
        X, _, basis = table(n=500, d=30, k=3, p=0.2, noise=1.0, seed=seed)
        plain.append(overlap(POPCA(3, refine=0).fit(X).components_, basis.T))
        better.append(overlap(POPCA(3).fit(X).components_, basis.T))
    assert np.mean(better) > np.mean(plain) > 0.8


def test_matrix_free_agrees_with_the_table_of_kappa():
    X, _, _ = table(n=4000, d=30, k=3, p=0.4, offset=2.0)
    how = {"refine": 0, "normalisers": "kappa", "pseudo_count": 0}
    free, dense = POPCA(3, solver="matrix-free", random_state=0, **how).fit(X), POPCA(3, solver="dense", **how).fit(X)
    assert overlap(free.components_, dense.components_) > 1 - 1e-5
    np.testing.assert_allclose(free.explained_variance_, dense.explained_variance_, rtol=3e-3)
    assert free.solver_ == "matrix-free"


def test_precision_inverts_covariance_and_columns_scale():
    X, _, _ = table()
    X[:, 0] *= 100
    model = POPCA(2, standardize=True).fit(X)
    np.testing.assert_allclose(model.get_covariance() @ model.get_precision(), np.eye(8), atol=1e-8)
    same = POPCA(2, standardize=True).fit(np.where(np.arange(8) == 0, X / 100, X))
    np.testing.assert_allclose(model.components_, same.components_, atol=1e-8)


def test_chooses_the_number_of_components():
    X, _, _ = table(n=1500, d=20, k=3, p=0.5, noise=1.0)
    assert POPCA("holdout", random_state=0).fit(X).n_components_ == 3
    assert POPCA(0.7, refine=0).fit(X).n_components_ >= 3


@pytest.mark.parametrize("robust", ["rows", ("winsor", 3)])
def test_outlying_cells_are_tamed(robust):
    X, _, basis = table(n=2000, d=20, p=0.5)
    rng = np.random.default_rng(1)
    X[rng.random(X.shape) < 0.01] *= 30
    assert overlap(POPCA(2, robust=robust, refine=0).fit(X).components_, basis.T) > 0.95


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_says_what_is_wrong():
    X, _, _ = table()
    with pytest.raises(ValueError, match="Lower n_components"):
        POPCA(9).fit(X)
    with pytest.raises(ValueError, match=r"normalisers must be .* shape \(8,\); got \(3,\)"):
        POPCA(2, normalisers=[0.5, 0.5, 0.5]).fit(X)
    with pytest.raises(ValueError, match="normalisers must be above 0 and at most 1 in every column"):
        POPCA(2, normalisers=[0.5] * 7 + [0.0]).fit(X)
    empty = X.copy()
    empty[:, 3] = np.nan
    with pytest.raises(ValueError, match="first is column 3"):
        POPCA(2).fit(empty)
    with pytest.warns(UserWarning, match=r"(?s)left out") as caught:
        model = POPCA(2, unseen="drop").fit(empty)
    assert caught
    assert (model.components_[:, 3] == 0).all()
    with pytest.raises(ValueError, match="same columns"):
        POPCA(2).partial_fit(X).merge(POPCA(2).partial_fit(X[:, :5]))
    with pytest.raises(ValueError, match="keeps sums, not rows"):
        POPCA(2, robust="rows").partial_fit(X)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_warns_where_pairs_are_not_seen():
    X, _, _ = table(n=60, p=1.0)
    X[:30, :4], X[30:, 4:] = np.nan, np.nan
    with pytest.warns(UserWarning, match="never seen together"):
        POPCA(1, refine=0).fit(X)
    with pytest.warns(UserWarning, match="no method recovers"):
        POPCA(1, refine=0).fit(table(n=20, p=0.2)[0])


def shifted_table(n=200, d=9, seed=0, spread=False, dtype=np.float64):
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


def share_found(components, basis):
    return np.sum((components @ np.linalg.qr(basis)[0]) ** 2) / len(components)


@pytest.mark.parametrize("how", [{}, {"standardize": True}, {"normalisers": "global"}, {"pseudo_count": 0}])
def test_solver_agrees_with_tables(how):
    X = Observed.from_dense(shifted_table(2000, 40))
    how = {"normalisers": "kappa", "refine": 0, "random_state": 0, **how}
    free, dense = POPCA(2, solver="matrix-free", **how).fit(X), POPCA(2, solver="dense", **how).fit(X)
    assert (free.solver_, dense.solver_) == ("matrix-free", "dense")
    assert share_found(free.components_, dense.components_.T) > 1 - 1e-5
    np.testing.assert_allclose(free.explained_variance_, dense.explained_variance_, rtol=3e-3)
    np.testing.assert_allclose(free.scale_, dense.scale_)
    assert free.total_variance_ == pytest.approx(dense.total_variance_)
    found, full = free.diagnostics_, dense.diagnostics_
    assert found["lambda_min"] == pytest.approx(full["lambda_min"], rel=0.2, abs=0.02)
    for name in ("kappa", "effective_rows", "median_joint_count", "independence_gap", "frac_pairs_unseen"):
        assert found[name] == pytest.approx(full[name])  # 40 columns: all pairs are probed


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_auto_goes_without_tables_from_a_thousand_columns():
    rows, basis = spiked(2000, 1000, 30)
    for solver in ("auto", "dense"):
        model = POPCA(2, solver=solver, refine=0, random_state=0).fit(rows)
        assert model.solver_ == {"auto": "matrix-free"}.get(solver, solver)
        assert share_found(model.components_, basis) > 0.9
    assert POPCA(2, normalisers="pairwise", refine=0).fit(rows).solver_ == "dense"
    chosen = POPCA("holdout", refine=2, random_state=0).fit(rows)
    assert (chosen.n_components_, chosen.solver_) == (2, "matrix-free")
    tried, errors = chosen.holdout_errors_.T
    assert tried[np.argmin(errors)] == 2


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
    for how in ({}, {"n_components": 0.5}, {"n_components": 2, "normalisers": "pairwise"}):
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
    with pytest.raises(ValueError, match="fitted matrix-free or from a file"):
        model.partial_fit(rows)
    with pytest.raises(ValueError, match="fitted matrix-free"):
        model.merge(model)
    assert model.n_samples_seen_ == 1500


def small_table(n=200, d=6, p=0.6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    return np.where(rng.random((n, d)) < p, X, np.nan)


def state(model):
    return {name: np.copy(value) for name, value in vars(model).items() if isinstance(value, np.ndarray)}


def unchanged(model, before):
    after = state(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_rows_with_one_entry_inform_means_only():
    X = small_table()
    single = np.full((300, 6), np.nan)
    single[np.arange(300), np.arange(300) % 6] = 100.0 + np.arange(300) % 6
    plain, more = POPCA(2, refine=0).fit(X), POPCA(2, refine=0).fit(np.vstack([X, single]))
    assert more.diagnostics_["effective_rows"] == plain.diagnostics_["effective_rows"] < 201
    assert more.diagnostics_["median_joint_count"] == plain.diagnostics_["median_joint_count"]
    assert (more.mean_ > plain.mean_ + 10).all()
    np.testing.assert_array_equal(more.state_["N"] - plain.state_["N"], 50 * np.eye(6))
    with pytest.warns(UserWarning, match="no method recovers"):
        nothing = POPCA(1).fit(single)
    np.testing.assert_allclose(nothing.mean_, 100 + np.arange(6))


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("refine", [0, 10])
def test_constant_columns_have_no_part(scale, refine):
    X = small_table()
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, 7.0)
    model = POPCA(2, standardize=scale, refine=refine).fit(X)
    np.testing.assert_allclose(model.components_[:, 2], 0, atol=1e-3)
    assert model.mean_[2] == pytest.approx(7.0, abs=1e-6)
    assert np.isfinite(model.transform(X)).all()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_constant_table_has_no_variance():
    model = POPCA(2).fit(np.where(np.isnan(small_table()), np.nan, 3.0))
    np.testing.assert_allclose(model.explained_variance_, 0, atol=1e-12)
    np.testing.assert_allclose(model.impute(small_table(5)[:1] * np.nan), 3.0)


@pytest.mark.filterwarnings("ignore:.*never seen together")
def test_unseen_columns_by_parameter():
    X = small_table()
    X[:, 3] = np.nan
    with pytest.raises(
        ValueError,
        match=r"X has 1 column without an observed entry, .* column 3\. Every column must be observed\. Drop these, or pass unseen='drop'",
    ):
        POPCA(2).fit(X)
    with pytest.warns(UserWarning, match="left out"):
        dropped = POPCA(2, unseen="drop").fit(X)
    kept = np.delete(np.arange(6), 3)
    np.testing.assert_allclose(
        np.abs(dropped.components_[:, kept]), np.abs(POPCA(2).fit(X[:, kept]).components_), atol=1e-6
    )
    assert (dropped.components_[:, 3] == 0).all()
    assert dropped.n_seen_per_feature_[3] == 0
    filled = dropped.impute(X)
    assert np.isnan(filled[:, 3]).all()
    assert np.isfinite(filled[:, kept]).all()
    seen_now = np.full((1, 6), 2.5)
    np.testing.assert_array_equal(dropped.impute(seen_now), seen_now)
    with pytest.warns(UserWarning, match="so far"):
        stream = POPCA(2).partial_fit(X)
    assert (stream.components_[:, 3] == 0).all()
    again = small_table(seed=1)
    whole = POPCA(2, refine=0).fit(np.vstack([X, again]))
    np.testing.assert_allclose(stream.partial_fit(again).components_, whole.components_, atol=1e-10)


@pytest.mark.filterwarnings("ignore:eigenvalue 6")
def test_more_components_than_columns():
    for call in (POPCA(7).fit, POPCA(7).partial_fit):
        with pytest.raises(ValueError, match="at most the number of columns, 6; got 7"):
            call(small_table())
    assert POPCA(6).fit(small_table()).n_components_ == 6


def test_a_failed_batch_leaves_everything():
    X = small_table()
    fresh = POPCA(2)
    with pytest.raises(ValueError, match=r"shift must be 6 finite numbers, one a column; got shape \(5,\)"):
        fresh.partial_fit(X, shift=np.zeros(5))
    with pytest.raises(ValueError, match="finite"):
        fresh.partial_fit(X, shift=[np.inf, 0, 0, 0, 0, 0])
    assert not [name for name in vars(fresh) if name.endswith("_")]
    model = fresh.partial_fit(X)
    before = state(model)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :4])
    with pytest.raises(ValueError, match="robust"):
        model.set_params(robust="rows").partial_fit(X)
    unchanged(model, before)
    assert model.n_samples_seen_ == 200


@pytest.mark.parametrize(
    "other",
    [
        {"normalisers": "kappa"},
        {"normalisers": 0.6},
        {"standardize": True},
        {"normalisers": "global"},
        {"robust": "rows"},
    ],
)
def test_unlike_models_do_not_merge(other):
    X = small_table()
    model, more = POPCA(2).fit(X), POPCA(2, **other).fit(X)
    before = state(model)
    with pytest.raises(ValueError, match=f"merge .*{next(iter(other))}"):
        model.merge(more)
    unchanged(model, before)


def test_merging_compares_rates_and_names():
    import pandas as pd

    X = small_table()
    one, other = (POPCA(2, normalisers=p).fit(X) for p in (0.6, [0.61] * 6))
    with pytest.raises(ValueError, match="same normalisers"):
        one.merge(other)
    assert one.merge(POPCA(2, normalisers=0.6).fit(X)).n_samples_seen_ == 400
    left, right = (POPCA(2).fit(pd.DataFrame(X, columns=list(names))) for names in ("abcdef", "abcdeg"))
    with pytest.raises(ValueError, match="other names"):
        left.merge(right)


def test_long_rows_are_shortened_whatever_their_length():
    X = small_table()
    X[7, 2], one = 1e200, X.copy()
    one[7, 2] = 1e140
    far, near = (POPCA(2, robust="rows", refine=0).fit(each) for each in (X, one))
    np.testing.assert_allclose(np.abs(far.components_), np.abs(near.components_), rtol=1e-9)
    X[:, 2] = np.linspace(0.0, 1e-3, len(X))
    X[7, 2] = 1e308
    with pytest.raises(ValueError, match=r"robust='rows' .* got 1e\+308 in row 7, column 2\. Correct it"):
        POPCA(2, robust="rows").fit(X)


@pytest.mark.parametrize(
    "options", [{}, {"normalisers": "kappa", "solver": "matrix-free"}], ids=["dense", "matrix-free"]
)
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (2, 2), (3, 1), (3, 3), (6, 3)])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_holdout_takes_one_component_of_the_smallest_tables(shape, options):
    """Fewer than 20 entries: too few to hide a tenth."""
    rows = np.random.default_rng(0).normal(size=shape)
    model = POPCA("holdout", **options).fit(rows)
    assert model.n_components_ == 1
    assert model.holdout_errors_.size == 0
    assert rows.size == 1 or np.isfinite(model.score(rows))


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("standardize", [False, True])
def test_holdout_does_not_depend_on_the_unit(unit, standardize):
    X, _, _ = table(n=150, d=8, k=5, p=0.7, noise=0.1)
    X[:, 7] = 3.0  # a constant column, which is no unit of errors
    model = POPCA("holdout", standardize=standardize, refine=0).fit(X * unit)
    assert model.n_components_ == 5


@pytest.mark.slow
def test_holdout_finds_the_number_in_most_draws_of_small_tables():
    right = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.normal(size=(30, 3)))[0] * np.linspace(1, 0.6, 3) * np.sqrt(10)
        X = rng.normal(size=(300, 3)) @ basis.T + rng.normal(size=(300, 30))
        X[rng.random(X.shape) > 0.5] = np.nan
        right += POPCA("holdout", random_state=0).fit(X).n_components_ == 3
    assert right >= 5  # errors of the covariance alone, without a fit to rows, find it in fewer
