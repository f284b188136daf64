"""Latent coordinates of rows, EM and ALS, against slow twins."""

import numpy as np
import pytest
from reference.factor import em_step
from reference.slrm import code
from test_rls import table

from lacunar import Observed
from lacunar._latent import latent_rows
from lacunar.lowrank.em import fit_als, fit_em
from lacunar.lowrank.model import LowRankGaussian


@pytest.mark.parametrize("d", [1, 4, 5, 8, 30, 70])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_latent_coordinates_are_ridge_regressions(d, dtype):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(40, 90)).astype(dtype), rng.normal(size=(90, d))
    X[rng.random(X.shape) > 0.6] = np.nan
    X[3] = np.nan
    for ridge in (0.5, 1.7):
        found = latent_rows(Observed.from_dense(X), V, ridge, residual=True, inverse=True)
        for i, x in enumerate(X.astype(np.float64)):
            o = ~np.isnan(x)
            expected = code(V, o, np.nan_to_num(x), ridge)
            np.testing.assert_allclose(found.latent[i], expected, atol=1e-9)
            np.testing.assert_allclose(found.residual[i], np.sum((x[o] - V[o] @ expected) ** 2), atol=1e-7)
            inverse = np.linalg.inv(V[o].T @ V[o] + ridge * np.eye(d))
            np.testing.assert_allclose(found.inverse[i], inverse[np.tril_indices(d)], atol=1e-9)


def test_latent_coordinates_do_not_depend_on_threads_and_singular_rows_are_counted():
    X, _, U, _ = table(3000, 40, 6, 0.1)
    rows = Observed.from_dense(X)
    one, many = (latent_rows(rows, U, 0.0, residual=True, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.latent, many.latent)
    assert one.n_singular == many.n_singular > 0
    assert np.isfinite(one.latent).all()


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_em_steps_are_literal(share):
    X, _, U, _ = table(200, 30, 3, share, noise=0.3)
    V, sigma2 = U * 2.0, 0.5
    steps = LowRankGaussian(np.zeros(30), V.T, sigma2)
    for _ in range(3):
        V, sigma2 = em_step(X, V, sigma2)
    with np.errstate(all="raise"):
        ours = fit_em(Observed.from_dense(X), 3, rng=np.random.default_rng(0), max_iter=3, tol=0.0, start=steps).model
    np.testing.assert_allclose(ours.basis, V, rtol=1e-6, atol=1e-8)
    assert ours.noise == pytest.approx(sigma2, rel=1e-8)


@pytest.mark.parametrize("fit", [fit_em, fit_als])
def test_noise_and_subspace_are_learned(fit):
    X, _, U, _ = table(3000, 60, 4, 0.4, noise=0.5)
    best = fit(Observed.from_dense(X), 4, rng=np.random.default_rng(0), max_iter=200)
    assert best.converged
    model = best.model
    assert model.noise == pytest.approx(0.25, rel=0.05)
    assert model.prior * np.linalg.norm(model.basis) ** 2 / 4 == pytest.approx(9.0, rel=0.1)
    Q = np.linalg.qr(model.basis)[0]
    assert np.linalg.norm(U - Q @ (Q.T @ U)) ** 2 / 4 < 5e-3


@pytest.mark.parametrize("fit", [fit_em, fit_als])
def test_fits_do_not_depend_on_threads(fit):
    X, _, _, _ = table(600, 30, 3, 0.5)
    rows = Observed.from_dense(X)
    one, many = (fit(rows, 3, rng=np.random.default_rng(0), max_iter=5, n_jobs=n_jobs).model for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.basis, many.basis)


@pytest.mark.parametrize("fit", [fit_em, fit_als])
def test_degenerate_tables(fit):
    X, _, _, _ = table(40, 12, 3, 0.5)
    X[3], X[:, 5], X[4] = np.nan, np.nan, np.where(np.arange(12) == 1, 1.0, np.nan)
    model = fit(Observed.from_dense(X), 5, rng=np.random.default_rng(0), max_iter=30).model
    assert np.isfinite(model.basis).all()
    assert model.noise > 0
    np.testing.assert_allclose(model.basis[5], 0, atol=1e-6)


@pytest.mark.parametrize("fit", [fit_em, fit_als])
def test_means_are_learned_with_the_subspace(fit):
    X, _, _, _ = table(800, 40, 3, 0.4, noise=0.05)
    shift = np.random.default_rng(3).normal(size=40)
    X, seen_mean = X + shift - np.nanmean(X + shift, axis=0), np.nanmean(X + shift, axis=0)
    plain = fit(Observed.from_dense(X), 3, rng=np.random.default_rng(0), max_iter=300, tol=1e-6, mean=True).model
    np.testing.assert_allclose(plain.mean + seen_mean, shift, atol=0.15)  # 1 / sqrt(800), times the spread of a column
    assert plain.noise == pytest.approx(0.05**2, rel=0.1)
