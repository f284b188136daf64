"""The low-rank posterior, with and without self-masking, and the ridge on it."""

import numpy as np
import pytest
from reference import posterior as slow
from scipy.integrate import quad

from lacunar._cuts import cuts_of
from lacunar.lowrank import LowRankImputer
from lacunar.lowrank.em import fit_em
from lacunar.lowrank.posterior import LowRankPosterior, PosteriorRidge, mask_loss
from lacunar.lowrank.ridge import fold_ridge
from lacunar.observed import Observed
from lacunar.persistence import load_model, save_model


def rows_of(n=300, p=8, k=3, missing="random", seed=0):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(p, k))
    X = rng.normal(size=(n, k)) @ W.T + 0.2 * rng.normal(size=(n, p))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    chance = 0.4 if missing == "random" else 0.9 * np.exp(-((X - 1.5) ** 2) / 4)
    Z = np.where(rng.random(X.shape) < chance, np.nan, X)
    return Z, X, X.sum(axis=1, keepdims=True)


def folds_of(n, k=5):
    return np.array_split(np.random.default_rng(1).permutation(n), k)


def covariance(model):
    return model.components_.T @ model.components_ + model.noise_variance_ * np.eye(len(model.mean_))


@pytest.mark.parametrize("masking", [False, True])
def test_completion_is_the_conditional_expectation(masking):
    Z = rows_of(missing="own")[0]
    model = LowRankPosterior(3, self_masking=masking).fit(Z)
    asked = (model.mask_center_, model.mask_variance_) if masking else ()
    expected = [slow.bayes_completion(x, model.mean_, covariance(model), *asked) for x in Z]
    np.testing.assert_allclose(model.complete(Z), expected, rtol=1e-8, atol=1e-8)


def test_features_are_mean_and_covariance_of_latent_coordinates():
    Z = rows_of()[0]
    model = LowRankPosterior(3).fit(Z)
    latent, inverse = model.features(Z)
    for x, z, A in zip(Z[:20], latent, inverse, strict=False):
        W = model.components_.T[~np.isnan(x)]
        np.testing.assert_allclose(A, np.linalg.inv(W.T @ W + model.noise_variance_ * np.eye(3)), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(z, A @ W.T @ (x - model.mean_)[~np.isnan(x)], rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(latent, model.latent(Z))


def test_self_masking_climbs_the_likelihood():
    Z = rows_of(n=500, missing="own")[0]

    def likelihood(steps):
        model = LowRankPosterior(3, self_masking=True, max_iter=steps).fit(Z)
        functions = (model.mask_height_, model.mask_center_, model.mask_variance_)
        return slow.log_likelihood(Z, model.mean_, covariance(model), *functions)

    found = [likelihood(steps) for steps in (4, 12, 40)]
    assert found[0] < found[1] < found[2]


def test_self_masking_finds_the_function_that_hid():
    Z, X, _ = rows_of(n=3000, p=10, missing="own")
    model = LowRankPosterior(self_masking=True, max_iter=60).fit(Z)
    np.testing.assert_allclose(model.mask_center_, 1.5, atol=0.25)
    np.testing.assert_allclose(model.mask_height_, 0.9, atol=0.12)
    truth = (X.mean(axis=0), np.cov(X.T), np.full(10, 1.5), np.full(10, 2.0))
    best = np.array([slow.bayes_completion(x, *truth) for x in Z])
    plain = LowRankPosterior().fit(Z)
    least, ours, theirs = (np.sum((made - X) ** 2) for made in (best, model.complete(Z), plain.complete(Z)))
    assert ours < 1.03 * least
    assert theirs > 1.2 * least


def test_loss_of_masks():
    """Against quadrature of the expected log likelihood of one column, and by differences."""
    logit, center, log_variance, sigma2 = 0.3, 0.7, 0.4, 0.2
    quantiles, seen, hidden = np.array([[-1.0, 0.1, 0.5, 2.0]]), np.array([12.0]), np.array([3.0])
    means = np.array([0.2, 1.0, -0.4])
    args = (quantiles, seen, hidden, np.array([means.sum()]), np.array([np.sum(means**2)]), sigma2)
    height, variance = 1 / (1 + np.exp(-logit)), np.exp(log_variance)

    def masked(h):
        density = np.sqrt(2 * np.pi * sigma2)
        return np.log(
            quad(lambda x: height * np.exp(-((x - center) ** 2) / (2 * variance) - (x - h) ** 2 / (2 * sigma2)), -9, 9)[
                0
            ]
            / density
        )

    known = np.log1p(-height * np.exp(-((quantiles - center) ** 2) / (2 * variance))).sum() * 3
    prior = (log_variance - 1) ** 2 + logit**2 / 4 + center**2 / 8
    at = np.array([logit, center, log_variance])
    value, slope = mask_loss(at, *args)
    assert value == pytest.approx(-(known + sum(map(masked, means)) - prior) / 15, rel=1e-9)
    for k in range(3):
        step = 1e-6 * np.eye(3)[k]
        assert slope[k] == pytest.approx(
            (mask_loss(at + step, *args)[0] - mask_loss(at - step, *args)[0]) / 2e-6, rel=1e-5
        )


def test_a_weight_is_a_number_of_equal_rows():
    Z = rows_of(n=60)[0]
    weight = np.random.default_rng(3).integers(0, 3, 60)
    start = fit_em(Observed.from_dense(Z), 3, rng=np.random.default_rng(0), max_iter=1).model
    options = {"rng": np.random.default_rng(0), "max_iter": 8, "tol": 0.0, "mean": True, "start": start}
    ours = fit_em(Observed.from_dense(Z), 3, weight=weight.astype(float), **options).model
    theirs = fit_em(Observed.from_dense(np.repeat(Z, weight, axis=0)), 3, **options).model
    np.testing.assert_allclose(ours.basis, theirs.basis, rtol=1e-8, atol=1e-10)
    assert ours.noise == pytest.approx(theirs.noise, rel=1e-10)


def test_longer_steps_arrive_sooner():
    table = Observed.from_dense(rows_of(n=400, p=12)[0])

    def noise(**options):
        return fit_em(table, 8, rng=np.random.default_rng(0), tol=0.0, mean=True, **options).model.noise

    limit, plain, longer = noise(max_iter=400), noise(max_iter=20), noise(max_iter=20, relax=1.8)
    assert abs(longer - limit) < 0.6 * abs(plain - limit)


@pytest.mark.parametrize(
    "columns", [4, 30, 90], ids=["by normal equations", "by the hat matrix", "more columns than rows"]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_of_the_ridge_are_exact(columns, weighted):
    rng = np.random.default_rng(columns)
    F, Y = rng.normal(size=(70, columns)) + 3, rng.normal(size=(70, 2))
    F[:, 0] = 5.0  # constant
    weight = rng.uniform(0.5, 2, 70) if weighted else np.ones(70)
    folds = folds_of(70)
    found = fold_ridge(F, Y, cuts_of(folds, len(F)), weight if weighted else None, [3.0])
    for fold in folds:
        expected = slow.ridge_without(F, Y, fold, weight, 3.0)
        np.testing.assert_allclose(found.oof[fold], expected, rtol=1e-6, atol=1e-7)
    every = slow.ridge_without(np.vstack([F, F]), np.vstack([Y, Y]), np.arange(70), np.tile(weight, 2), 3.0)
    np.testing.assert_allclose(F @ found.coef + found.intercept, every, rtol=1e-6, atol=1e-7)


def test_a_row_of_weight_0_is_predicted_without_its_fold():
    rng = np.random.default_rng(0)
    F, Y, weight = rng.normal(size=(60, 3)), rng.normal(size=(60, 1)), rng.integers(0, 2, 60).astype(float)
    folds = folds_of(60)
    found = fold_ridge(F, Y, cuts_of(folds, len(F)), weight, [1.0])
    for fold in folds:
        np.testing.assert_allclose(found.oof[fold], slow.ridge_without(F, Y, fold, weight, 1.0), rtol=1e-5, atol=1e-7)


def explained(made, truth):
    return 1 - np.mean((made - truth) ** 2) / np.var(truth)


@pytest.mark.parametrize(("missing", "masked"), [("random", False), ("own", True)])
def test_the_ridge_takes_self_masking_where_it_helps(missing, masked):
    Z, X, Y = rows_of(n=2500, p=10, missing=missing)
    train, test = slice(0, 2000), slice(2000, None)
    posterior = LowRankPosterior().fit(Z[train])
    ridge = PosteriorRidge()
    oof = ridge.fit(Z[train], Y[train], cuts_of(folds_of(2000), 2000), posterior)
    assert (ridge.posterior_ is not None) == masked
    assert explained(oof, Y[train]) == pytest.approx(explained(ridge.predict(Z[test], posterior), Y[test]), abs=0.02)
    hiding = (np.full(10, 1.5), np.full(10, 2.0)) if masked else ()
    best = np.array([slow.bayes_completion(x, X.mean(axis=0), np.cov(X.T), *hiding).sum() for x in Z[train]])
    least = np.mean((best[:, None] - Y[train]) ** 2)
    assert min(ridge.errors_.values()) < 1.03 * least
    assert (ridge.errors_["latent and mask"] > 1.03 * least) == masked


def test_the_ridge_tries_no_self_masking_where_only_completion_helps():
    """Columns apart from one another: completed rows say more than latent coordinates, masks say nothing."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(1200, 12))
    Y = Z[:, :4].sum(axis=1, keepdims=True)
    Z[rng.random(Z.shape) < 0.2] = np.nan
    ridge = PosteriorRidge()
    ridge.fit(Z, Y, cuts_of(folds_of(1200), 1200), LowRankPosterior(3).fit(Z))
    assert ridge.errors_["completed and mask"] < 0.9 * ridge.errors_["latent"]
    assert sorted(ridge.errors_) == ["completed and mask", "latent", "latent and mask"]


@pytest.mark.parametrize("masking", [False, True])
def test_any_number_of_threads_and_any_batch(masking):
    Z, _, Y = rows_of(n=400, missing="own")
    one, four = (LowRankPosterior(self_masking=masking, n_jobs=jobs).fit(Z) for jobs in (1, 4))
    np.testing.assert_array_equal(one.complete(Z), four.complete(Z))
    ridge = PosteriorRidge(self_masking=masking)
    np.testing.assert_array_equal(
        ridge.fit(Z, Y, cuts_of(folds_of(400), 400), one), ridge.fit(Z, Y, cuts_of(folds_of(400), 400), four)
    )
    whole = ridge.predict(Z, one)
    np.testing.assert_array_equal(whole[5:6], ridge.predict(Z[5:6], one))
    np.testing.assert_array_equal(one.complete(Z)[7:9], one.complete(Z[7:9]))


def test_the_imputer_with_self_masking():
    Z, X, _ = rows_of(n=1500, p=10, missing="own")
    Z, X = 3 * Z + 7, 3 * X + 7
    plain, ours = LowRankImputer(5).fit(Z), LowRankImputer(5, self_masking=True).fit(Z)
    made = ours.transform(Z)
    np.testing.assert_array_equal(made[~np.isnan(Z)], Z[~np.isnan(Z)])
    assert np.sum((made - X) ** 2) < 0.85 * np.sum((plain.transform(Z) - X) ** 2)
    np.testing.assert_array_equal(ours.transform(Z[3:5]), made[3:5])


HOSTILE = {
    "one row": lambda rng: rng.normal(size=(1, 4)),
    "one cell": lambda rng: rng.normal(size=(1, 1)),
    "fewer than 10 rows": lambda rng: rng.normal(size=(7, 5)),
    "one column": lambda rng: np.where(rng.random((50, 1)) < 0.5, np.nan, rng.normal(size=(50, 1))),
    "nothing seen": lambda rng: np.full((60, 5), np.nan),
    "zeros": lambda rng: np.where(rng.random((60, 5)) < 0.5, np.nan, 0.0),
    "equal columns": lambda rng: np.repeat(rng.normal(size=(60, 1)), 6, axis=1),
    "equal rows": lambda rng: np.repeat(rng.normal(size=(1, 6)), 60, axis=0),
    "columns and rows without an entry": lambda rng: np.where(
        np.add.outer(np.arange(60) < 3, np.arange(6) < 2), np.nan, rng.normal(size=(60, 6))
    ),
    "many more columns than rows": lambda rng: np.where(
        rng.random((20, 900)) < 0.5, np.nan, rng.normal(size=(20, 900))
    ),
}


@pytest.mark.parametrize("masking", [False, True])
@pytest.mark.parametrize("name", HOSTILE)
def test_never_nan(name, masking):
    rng = np.random.default_rng(0)
    Z = HOSTILE[name](rng)
    Y = rng.normal(size=(len(Z), 2))
    weight = np.ones(len(Z))
    posterior = LowRankPosterior(self_masking=masking).fit(Z, weight)
    ridge = PosteriorRidge(self_masking=masking)
    oof = ridge.fit(Z, Y, cuts_of([fold for fold in folds_of(len(Z)) if len(fold)], len(Z)), posterior, weight)
    for made in (oof, ridge.predict(Z, posterior), posterior.complete(Z), *posterior.features(Z)):
        assert np.isfinite(made).all()
    empty = np.full((1, Z.shape[1]), np.nan)
    assert np.isfinite(ridge.predict(empty, posterior)).all()


def test_model_files(tmp_path):
    Z, _, Y = rows_of(n=1200, missing="own")
    posterior, ridge = LowRankPosterior().fit(Z), PosteriorRidge(self_masking=True)
    ridge.fit(Z, Y, cuts_of(folds_of(1200), 1200), posterior)
    for model in (posterior, ridge):
        save_model(model, tmp_path / "model")
        again = load_model(tmp_path / "model")
        if model is posterior:
            np.testing.assert_array_equal(again.complete(Z), posterior.complete(Z))
        else:
            np.testing.assert_array_equal(again.predict(Z, posterior), ridge.predict(Z, posterior))


def test_variances_are_those_of_the_posterior_covariances():
    Z, _, _ = rows_of(n=30)
    model, weights = LowRankPosterior(3).fit(Z), np.random.default_rng(0).normal(size=(3, 2))
    covariances = model.noise_variance_ * model.features(Z)[1]
    expected = np.einsum("kq,nkl,lq->nq", weights, covariances, weights)
    np.testing.assert_allclose(model.variances(Z, weights), expected, rtol=1e-12)
