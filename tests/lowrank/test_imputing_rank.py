"""With how many components `POPCA()` imputes: chosen from sums alone, so that every way to fit has the same answer."""

import numpy as np
import pytest
import scipy.sparse as sp
from reference.popca import available, expected_error

from lacunar import Observed
from lacunar.lowrank import POPCA, hidden
from lacunar.lowrank.parts import InMemory
from lacunar.observed import ObservedFile, write_batches
from lacunar.persistence import load_model, save_model

pytestmark = pytest.mark.filterwarnings("ignore:eigenvalue", "ignore:half of the pairs")  # which all components have


def low_rank(n, d, rank, noise, missing, seed=0):
    """Complete rows, and the same with missing entries."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    return X, np.where(rng.random(X.shape) < missing, np.nan, X)


def error(model, X, seen):
    return np.mean((model.impute(seen) - X)[np.isnan(seen)] ** 2 / X.var())


SHAPES, SHARES = [(80, 12), (150, 40), (600, 20)], [0.1, 0.3, 0.6]


@pytest.mark.parametrize(
    ("shape", "missing"),
    [
        pytest.param(shape, missing, marks=() if SHAPES.index(shape) == SHARES.index(missing) else pytest.mark.slow)
        for shape in SHAPES
        for missing in SHARES
    ],
)
def test_imputes_nearly_as_well_as_the_best_number_in_hindsight(shape, missing):
    """All components imputed at 1.2 to 6 times the error of the best number."""
    for how in ({}, {"refine": 0}):
        ratios = []
        for seed in range(2):
            X, seen = low_rank(*shape, 5, 0.7, missing, seed)
            best = min(error(POPCA(k, **how).fit(seen), X, seen) for k in (4, 5, 6, 8, 11))
            ratios.append(error(POPCA(**how).fit(seen), X, seen) / best)
        assert np.mean(ratios) < (1.25 if how else 1.15)
        assert max(ratios) < 1.5


def test_components_codes_and_complete_rows_of_codes_are_those_of_all_components():
    _, seen = low_rank(200, 10, 3, 0.5, 0.3)
    model = POPCA().fit(seen)
    assert model.components_.shape == (10, 10)
    assert model.n_components_ == 10
    assert 3 <= model.n_impute_components_ <= 4
    codes = model.transform(seen)
    assert codes.shape == (200, 10)
    assert model.inverse_transform(codes).shape == seen.shape
    np.testing.assert_allclose(codes, POPCA(10).fit(seen).transform(seen), atol=1e-10)
    number = POPCA(4).fit(seen)
    assert number.n_impute_components_ == number.n_components_ == 4
    assert "imputing_" not in vars(model.set_params(n_components=4).fit(seen))
    np.testing.assert_array_equal(model.impute(seen), number.impute(seen))


def test_imputes_as_that_number_of_components_does():
    X, seen = low_rank(200, 10, 3, 0.5, 0.3)
    for how in ({}, {"refine": 0}, {"standardize": True}, {"whiten": True}):
        model = POPCA(**how).fit(seen + 3)
        number = POPCA(model.n_impute_components_, **how).fit(seen + 3)
        np.testing.assert_allclose(model.impute(seen + 3), number.impute(seen + 3), atol=1e-8)
        assert model.score(X + 3) == pytest.approx(number.score(X + 3), abs=1e-8)


def test_every_way_to_fit_has_the_same_answer(tmp_path):
    _, seen = low_rank(90, 9, 3, 0.5, 0.4)
    seen[:, 3] += 100.0
    known = ~np.isnan(seen)
    rows = Observed.from_dense(seen)
    write_batches(tmp_path / "t", [rows[:40], rows[40:]])
    for how in ({}, {"refine": 0}):
        model = POPCA(**how).fit(seen)
        stored = sp.csr_array((seen[known], np.nonzero(known)), shape=seen.shape)
        forms = [rows, stored, ObservedFile(tmp_path / "t"), seen[::-1]]
        others = [POPCA(**how).fit(form) for form in forms] + [POPCA(**how).fit_parts(InMemory((seen, None)))]
        if how:
            streamed = POPCA()
            for batch in np.array_split(seen, 7):
                streamed.partial_fit(batch)
            others += [streamed, POPCA().fit_batches(np.array_split(seen, 3))]
            others += [POPCA(refine=0).fit(seen[:35]).merge(POPCA(refine=0).fit(seen[35:]))]
        for other in others:
            assert other.n_impute_components_ == model.n_impute_components_
            np.testing.assert_allclose(other.impute(seen), model.impute(seen), rtol=1e-6, atol=1e-6)


def test_a_saved_model_imputes_as_before_and_one_without_a_choice_by_all_components(tmp_path):
    _, seen = low_rank(100, 8, 3, 0.5, 0.3)
    model = POPCA().fit(seen)
    save_model(model, tmp_path / "m.npz")
    np.testing.assert_array_equal(load_model(tmp_path / "m.npz").impute(seen), model.impute(seen))
    every = POPCA(8).fit(seen)
    del model.imputing_
    np.testing.assert_allclose(model.impute(seen), every.impute(seen), atol=1e-10)


@pytest.mark.parametrize("unit", [1e-80, 1e-30, 1.0, 1e100])
def test_the_unit_of_the_table_does_not_matter(unit):
    _, seen = low_rank(100, 8, 3, 0.5, 0.3)
    model, other = POPCA(refine=0).fit(seen), POPCA(refine=0).fit(seen * unit)
    assert other.n_impute_components_ == model.n_impute_components_
    np.testing.assert_allclose(other.impute(seen * unit), model.impute(seen) * unit, rtol=1e-6, atol=1e-9 * unit)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_tiny_constant_and_complete_tables():
    X, seen = low_rank(40, 6, 2, 0.2, 0.3)
    seen[:, 2], seen[5] = np.nan, np.nan
    dropped = POPCA(unseen="drop").fit(seen).impute(seen)
    assert np.isnan(dropped[:, 2]).all()
    assert np.isfinite(np.delete(dropped, 2, axis=1)).all()
    for tiny in (X[:1], X[:2], X[:, :1], np.ones((8, 5)), np.zeros((3, 2)), X):
        model = POPCA().fit(tiny)
        assert 1 <= model.n_impute_components_ <= max(min(tiny.shape), 1)
        assert np.isfinite(model.impute(np.full((1, tiny.shape[1]), np.nan))).all()


def test_errors_of_moments_are_those_of_predicted_entries():
    """Slow twin: entry by entry, by weights on the seen ones."""
    rng = np.random.default_rng(0)
    d = 7
    left, right = (np.cov(rng.normal(size=(d, 30)) * np.arange(1, d + 1)[:, None]) for _ in range(2))
    values, vectors = np.linalg.eigh(left)
    masks = rng.random((5, d)) < 0.6
    masks[0] = True
    masks[1] = False
    half = hidden._Half(values[::-1], vectors[:, ::-1], right, masks)
    unit = np.diag(left) + 1
    for rank in (1, 3, 6):
        ours = hidden._moment_error(half, rank, unit)
        np.testing.assert_allclose(ours, expected_error(left, right, rank, masks, unit), rtol=1e-10)


def test_noise_has_the_variance_of_a_covariance_of_rows_with_missing_entries():
    """Entries of 600 covariances of normal rows, of which two thirds are seen, and of 600 draws; entries of a row of
    both correlate alike.
    """
    rng = np.random.default_rng(1)
    mix, n, d = rng.normal(size=(5, 5)), 400, 5
    covariances, truth = [], mix.T @ mix
    for _ in range(600):
        rows = np.where(rng.random((n, d)) < 0.67, rng.normal(size=(n, d)) @ mix, np.nan)
        covariances.append(available(rows))
    counts = np.where(np.eye(d) > 0, 0.67, 0.67**2) * n
    draw = hidden._moment_noise(truth, counts, 0.67, rng)
    draws = np.array([draw() for _ in range(600)])
    ratio = draws.var(axis=0) / np.var(covariances, axis=0)
    assert np.all((ratio > 0.6) & (ratio < 1.7))
    assert 0.8 < ratio.mean() < 1.25


def test_the_next_rank_that_is_tried():
    assert [hidden.next_rank(rank, 30) for rank in (1, 4, 6, 24, 30)] == [2, 6, 8, 30, 30]
    assert hidden.next_rank(1, 1) == 1
