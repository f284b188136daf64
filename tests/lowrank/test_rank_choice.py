"""The rank that `LowRankImputer` chooses: what it reaches, what it costs, and what it does not depend on."""

import numpy as np
import pytest
import scipy.sparse as sp

from lacunar import Observed
from lacunar.lowrank import LowRankImputer, SLRMRegressor, SLRMRegressorCV, em, hidden, slrm


def low_rank(n, d, rank, noise, missing, seed=0):
    """Complete rows, and the same with missing entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    return X, np.where(rng.random(X.shape) < missing, np.nan, X)


def error(model, X, seen):
    missing = np.isnan(seen)
    return np.mean(((model.transform(seen) - X) / model.scale_)[missing] ** 2)


def test_small_tables_get_the_rank_that_completes_them():
    """One hidden tenth and the smallest rank within a standard error lost a third to the best rank in the mean, and chose rank 1 at times."""
    ratios = []
    for seed in range(3):
        X, seen = low_rank(80, 12, 5, 0.7, 0.3, seed)
        errors = [error(LowRankImputer(k, random_state=0).fit(seen), X, seen) for k in (3, 4, 5, 6, 7, 9)]
        ratios.append(error(LowRankImputer(random_state=0).fit(seen), X, seen) / min(errors))
    assert np.mean(ratios) < 1.15
    assert max(ratios) < 1.6


def test_a_large_table_is_judged_by_a_sample_of_its_rows(monkeypatch):
    X, seen = low_rank(9000, 12, 4, 0.1, 0.3)
    cells, fit_em = [], hidden.fit_em

    def counted(rows, rank, **options):
        cells.append(rows.nnz)
        return fit_em(rows, rank, **options)

    monkeypatch.setattr(hidden, "fit_em", counted)
    model = LowRankImputer(random_state=0).fit(seen)
    assert max(cells[:-1]) < 0.5 * cells[-1]  # the last is the fit to all rows
    assert error(model, X, seen) < 1.02 * error(LowRankImputer(4, random_state=0).fit(seen), X, seen)


def test_errors_that_differ_by_rounding_are_no_reason_for_a_larger_rank():
    """A table of rank 3 without noise: every rank from 3 on is exact."""
    X, seen = low_rank(300, 15, 3, 0.0, 0.2)
    model = LowRankImputer(random_state=0).fit(seen)
    assert len(model.components_) == 3
    assert error(model, X, seen) < 1e-5


@pytest.mark.parametrize("shape", [(60, 9), (4000, 12)], ids=["small", "sampled"])
def test_the_choice_is_that_of_every_form_and_number_of_threads(shape):
    _, seen = low_rank(*shape, 3, 0.3, 0.3)
    model = LowRankImputer(random_state=3).fit(seen)
    known = ~np.isnan(seen)
    stored = sp.csr_array((seen[known], np.nonzero(known)), shape=seen.shape)
    others = [LowRankImputer(random_state=3).fit(form) for form in (stored, Observed.from_dense(seen))]
    others += [LowRankImputer(random_state=3, n_jobs=3).fit(seen)]
    for other in others:
        np.testing.assert_array_equal(other.rank_errors_, model.rank_errors_)
        np.testing.assert_array_equal(other.components_, model.components_)
    cut = np.concatenate([model.transform(part) for part in np.array_split(seen, 7)])
    np.testing.assert_array_equal(cut, model.transform(seen))


def test_tiny_and_empty_tables():
    _, seen = low_rank(40, 6, 2, 0.2, 0.3)
    seen[:, 2], seen[5] = np.nan, np.nan
    with_empty = LowRankImputer(random_state=0).fit(seen)
    np.testing.assert_array_equal(with_empty.transform(seen)[:, 2], 0)
    assert np.isfinite(with_empty.rank_errors_).all()
    for tiny in (seen[:2], seen[:1], seen[:, :1], np.full((4, 3), np.nan), np.ones((8, 5))):
        assert np.isfinite(LowRankImputer(random_state=0).fit_transform(tiny)).all()


def test_ranks_on_the_way_to_the_largest():
    assert list(hidden._ranks(1)) == [1]
    assert list(hidden._ranks(5)) == [1, 2, 3, 4, 5]
    assert list(hidden._ranks(49)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 49]
    assert list(hidden._ranks(64)) == [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]


@pytest.mark.parametrize(("best", "found"), [(1, 1), (2, 2), (5, 5), (7, 7), (10, 10), (11, 10), (37, 40), (49, 49)])
def test_ranks_halfway_between_those_on_the_way_are_tried(best, found):
    rank, errors = hidden.best_rank(lambda k: 1.0 + 0.1 * abs(k - best), 49)
    assert rank == found
    assert list(errors) == sorted(errors)
    assert len(errors) <= 13
    flat, _ = hidden.best_rank(lambda k: max(1.0, 2.0 - k / 5), 49)
    assert flat == 5


def test_folds_over_rows_share_the_subspace_that_labels_do_not_tell_about(monkeypatch):
    X, seen = low_rank(120, 8, 3, 0.3, 0.3)
    y = X[:, 0] + X[:, 1]
    fits, fit_em = [], slrm.fit_em

    def counted(rows, rank, **options):
        fits.append(rank)
        return fit_em(rows, rank, **options)

    monkeypatch.setattr(slrm, "fit_em", counted)
    options = {"lam1": ["inf"], "cv": 4, "random_state": 0}
    model = SLRMRegressorCV([1, 3], **options).fit(seen, y)
    assert fits == [1, 3, 3]  # one of each dimension for all four folds, and the fit to all rows
    for rank, shared in zip((1, 3), model.cv_results_["mean_test_score"], strict=True):
        errors = []
        for test in np.array_split(np.arange(120), 4):
            visible = y.copy()
            visible[test] = np.nan
            alone = SLRMRegressor(rank, lam1="inf", random_state=0).fit(seen, visible)
            errors.append(np.mean((alone.predict(seen) - y)[test] ** 2))
        np.testing.assert_allclose(shared, -np.mean(errors), rtol=0.02)


def labelled(n, d, rank, noise, missing, known=1.0, seed=0):
    """Rows with missing entries, labels that are linear in the latent coordinates, and the labels that are known."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n, rank))
    X = latent @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    y = latent @ rng.normal(size=rank) + 0.3 * rng.normal(size=n)
    return np.where(rng.random(X.shape) < missing, np.nan, X), y, np.where(rng.random(n) < known, y, np.nan)


@pytest.mark.parametrize(("over", "known"), [("rows", 1.0), ("cells", 0.05)])
def test_a_search_in_a_large_table_looks_at_a_sample_of_its_rows(monkeypatch, over, known):
    """All rows in all steps of all fits took 59 s where the peers take 6."""
    seen, _, y = labelled(9000, 12, 4, 0.3, 0.3, known)
    cells, em_sums = [], em.em_sums

    def counted(table, *given):
        cells.append(table.rows.nnz)
        return em_sums(table, *given)

    monkeypatch.setattr(em, "em_sums", counted)
    SLRMRegressorCV([2, 4, 8], over=over, random_state=0).fit(seen, y)
    whole = max(cells)
    steps = [size > 0.6 * whole for size in cells]
    # A last step of every fit (one more a fold for cells), and the final model, without and with directions of labels.
    assert sum(steps) <= 3 * (1 + 5) + 3 * 5 + 2 * 15
    assert max(size for size, is_last in zip(cells, steps, strict=True) if not is_last) < 0.5 * whole


@pytest.mark.parametrize("shape", [(150, 8), (6000, 10)], ids=["small", "sampled"])
@pytest.mark.parametrize("lam1", ["inf", 1.0])
def test_scores_of_a_search_are_those_of_fits_to_the_end(shape, lam1):
    """Slow twin: every fold fitted afresh by `SLRMRegressor`, all rows and all steps."""
    seen, y, _ = labelled(*shape, 4, 0.5, 0.3)
    model = SLRMRegressorCV([2, 4], lam1=[lam1], cv=3, random_state=0).fit(seen, y)
    for rank, score in zip((2, 4), model.cv_results_["mean_test_score"], strict=True):
        errors = []
        for test in np.array_split(np.arange(len(y)), 3):
            visible = y.copy()
            visible[test] = np.nan
            alone = SLRMRegressor(rank, lam1=lam1, random_state=0).fit(seen, visible)
            errors.append(np.mean((alone.predict(seen) - y)[test] ** 2))
        np.testing.assert_allclose(score, -np.mean(errors), rtol=0.05)


def test_the_model_of_a_search_is_as_good_as_one_of_all_steps():
    seen, y, _ = labelled(8000, 12, 4, 0.5, 0.3)
    model = SLRMRegressorCV([4], lam1=["inf"], random_state=0).fit(seen[:6000], y[:6000])
    alone = SLRMRegressor(4, lam1="inf", random_state=0).fit(seen[:6000], y[:6000])
    errors = [np.mean((each.predict(seen[6000:]) - y[6000:]) ** 2) for each in (model, alone)]
    assert errors[0] < 1.01 * errors[1]


def test_hidden_labels_tell_a_search_nothing():
    """Labels that are noise: a fit that had seen them would predict them, as it has as many dimensions as columns."""
    seen, _, _ = labelled(300, 10, 3, 1.0, 0.3)
    y = np.random.default_rng(7).normal(size=300)
    model = SLRMRegressorCV([8], lam1=[0.01, 1.0], random_state=0).fit(seen, y)
    assert model.cv_results_["mean_test_score"].max() < -0.9 * y.var()


def test_a_sample_of_rows_has_the_labelled_ones():
    rows = Observed.from_dense(np.ones((10_000, 5)))
    some, half, every = (np.arange(10_000) < m for m in (50, 5000, 10_000))
    for marks, least in ((some, 50), (half, 2900), (every, 6000)):
        sample = hidden.sampled_rows(rows, np.random.default_rng(0), marks)
        assert len(sample) == len(set(sample)) == 6000
        assert marks[sample].sum() >= least
    assert abs(half[hidden.sampled_rows(rows, np.random.default_rng(0), half)].sum() - 3000) <= 1
    assert hidden.sampled_rows(rows[:100], np.random.default_rng(0), some[:100]) is None
