"""POPCA over shards is POPCA on one machine: tables, products without a table, and refinement are sums."""

import numpy as np
import pytest
from test_distributed import sources
from test_distributed_slrm import cut

from lacunar.distributed import fit_popca
from lacunar.lowrank import POPCA

pytest.importorskip("dask")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::UserWarning")]


def problem(n=500, d=20, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, k)) * [3, 2, 1]) @ rng.normal(size=(k, d)) + 0.3 * rng.normal(size=(n, d)) + 10
    X[rng.random(X.shape) < 0.5] = np.nan
    return X


LEARNED = ["components_", "explained_variance_", "mean_", "scale_", "noise_variance_", "explained_variance_ratio_"]


def assert_alike(one, other, tol):
    for name in LEARNED:
        a, b = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(b).max(), err_msg=name)
    assert one.solver_ == other.solver_
    assert one.n_samples_seen_ == other.n_samples_seen_
    np.testing.assert_array_equal(one.n_seen_per_feature_, other.n_seen_per_feature_)
    # Without a table lambda_min is found to a tenth: which tenth is rounding's.
    rough = 0.05 if one.solver_ == "matrix-free" else 1e-8
    assert one.diagnostics_["lambda_min"] == pytest.approx(other.diagnostics_["lambda_min"], rel=rough)
    below = [model.diagnostics_["n_negative_eigenvalues"] for model in (one, other)]
    assert abs(below[0] - below[1]) <= np.sum(one.n_seen_per_feature_ == 0)  # whose eigenvalue is 0, and rounding
    same = [{**model.diagnostics_, "lambda_min": 0.0, "n_negative_eigenvalues": 0} for model in (one, other)]
    assert same[0] == pytest.approx(same[1], rel=1e-8, abs=1e-8)


OPTIONS = {
    "refined": ({}, 1e-8),
    "one step": ({"refine": 1}, 1e-8),
    "closed form": ({"refine": 0}, 1e-10),
    "standardised": ({"standardize": True}, 1e-8),
    "kappa": ({"normalisers": "kappa", "refine": 0}, 1e-10),
    "known": ({"normalisers": 0.5, "refine": 2}, 1e-8),
    "share of variance": ({"n_components": 0.8}, 1e-8),
    "all": ({"n_components": None, "refine": 0}, 1e-8),
    "matrix-free": ({"solver": "matrix-free", "refine": 0}, 1e-10),
    "matrix-free, refined": ({"solver": "matrix-free", "normalisers": "kappa"}, 1e-8),
    "matrix-free, exact weights": (
        {"solver": "matrix-free", "pseudo_count": 0, "standardize": True, "refine": 0},
        1e-10,
    ),
}


@pytest.mark.parametrize(("options", "tol"), OPTIONS.values(), ids=OPTIONS)
def test_shards_are_one_machine(options, tol):
    X = problem()
    options = {"n_components": 3, "random_state": 0, **options}
    whole = POPCA(**options).fit(X)
    for k in (1, 2, 7):
        over = fit_popca(POPCA(**options), cut(X, k))
        assert_alike(over, whole, tol)
    np.testing.assert_allclose(over.transform(X), whole.transform(X), atol=100 * tol)


def test_wide_rows_go_without_a_table():
    rng = np.random.default_rng(0)
    X = 4 * rng.normal(size=(400, 2)) @ rng.normal(size=(2, 1100)) + rng.normal(size=(400, 1100))
    X[rng.random(X.shape) < 0.9] = np.nan
    whole, over = POPCA(2, random_state=0).fit(X), fit_popca(POPCA(2, random_state=0), cut(X))
    assert over.solver_ == "matrix-free"
    assert not hasattr(over, "state_")
    assert_alike(over, whole, 1e-8)


def test_every_kind_of_shard_refined(tmp_path):
    X = problem()
    whole = POPCA(3, random_state=0).fit(X)
    for source in sources(X, tmp_path):
        for keep in (True, False):
            assert_alike(fit_popca(POPCA(3, random_state=0), source, keep=keep), whole, 1e-8)


def test_learning_goes_on_from_shards():
    X = problem()
    over, whole = fit_popca(POPCA(3, refine=0), cut(X[:300])), POPCA(3, refine=0).fit(X)
    over.partial_fit(X[300:])
    np.testing.assert_allclose(over.get_covariance(), whole.get_covariance(), atol=1e-9)
    merged = fit_popca(POPCA(3, refine=0), cut(X[:300])).merge(fit_popca(POPCA(3, refine=0), cut(X[300:])))
    np.testing.assert_allclose(merged.get_covariance(), whole.get_covariance(), atol=1e-9)


def test_what_some_shards_lack():
    X = problem()
    X[:125, 3] = np.nan  # a column that the first of four shards never saw
    X[125:250] = np.nan  # a shard that saw nothing
    assert_alike(fit_popca(POPCA(3, random_state=0), cut(X)), POPCA(3, random_state=0).fit(X), 1e-8)
    X[:, 5] = np.nan
    with pytest.raises(ValueError, match="1 column without an observed entry, the first is column 5"):
        fit_popca(POPCA(3), cut(X))
    over, whole = (POPCA(3, random_state=0, unseen="drop") for _ in range(2))
    assert_alike(fit_popca(over, cut(X)), whole.fit(X), 1e-8)


def test_bad_shards_are_named():
    X = problem(80)
    parts = cut(X)
    cases = {
        "shard 3 has 19, shard 0 has 20": [*parts[:3], parts[3][:, 1:]],
        "shard 1 has none": [parts[0], parts[1][:0]],
        "shard 2: X must be finite where observed": [*parts[:2], np.full((3, 20), np.inf)],
    }
    for match, shards in cases.items():
        with pytest.raises(ValueError, match=match):
            fit_popca(POPCA(3), shards)
    for options in ({"robust": "rows"}, {"n_components": "holdout"}):
        with pytest.raises(ValueError, match="known by sums, so robust must be None and n_components no 'holdout'"):
            fit_popca(POPCA(**options), parts)
    with pytest.raises(ValueError, match="n_components must be at most the number of columns, 20; got 21"):
        fit_popca(POPCA(21), parts)
