"""Label weights from sums over rows are scikit-learn's from the rows; the start by products is the singular
vectors'.
"""

import numpy as np
import pytest
from sklearn.linear_model import ElasticNet, Ridge, RidgeCV

from lacunar import Observed
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.parts import InMemory
from lacunar.lowrank.ridge import _RIDGES, fit_labels


def problem(n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.normal(size=(n, d)) * np.logspace(0, -3, d) + 2
    y = codes[:, :3] @ rng.normal(size=(3, 4)) + rng.normal(size=(n, 4)) * [0, 0.1, 1, 10]
    y[rng.random(y.shape) < 0.4] = np.nan
    return codes, y


@pytest.mark.parametrize(("alpha", "l1_ratio"), [("auto", 0.0), (0.3, 0.0), (0.0, 0.0), (0.3, 0.5), (0.01, 1.0)])
def test_weights_are_those_of_scikit_learn(alpha, l1_ratio):
    # Of two rows all ridges are as good, and without any few rows say little of many directions.
    for n in {"auto": (200, 7), 0.0: (200,)}.get(alpha, (200, 7, 2)):
        codes, y = problem(n, seed=n)
        found = fit_labels(InMemory((codes, y)), alpha, l1_ratio)
        for t in range(y.shape[1]):
            known = ~np.isnan(y[:, t])
            if known.sum() < 2:
                continue
            unit = np.mean(np.square(codes[known])) * known.sum()
            if alpha == "auto":
                model = RidgeCV(alphas=_RIDGES * unit)
            elif l1_ratio == 0:
                model = Ridge(alpha=max(alpha * known.sum(), 1e-12 * unit))
            else:
                model = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, max_iter=100_000, tol=1e-12)
            model.fit(codes[known], y[known, t])
            np.testing.assert_allclose(found.weights[:, t], model.coef_, rtol=1e-4, atol=1e-6)
            assert found.intercept[t] == pytest.approx(model.intercept_, rel=1e-4, abs=1e-5)


def test_labels_without_anything_to_learn():
    codes, y = problem()
    y[:, 0], y[:, 1], y[1:, 2] = np.nan, 3.3, np.nan
    found = fit_labels(InMemory((codes, y)), "auto", 0.0)
    np.testing.assert_array_equal(found.weights[:, :3], 0)
    np.testing.assert_allclose(found.intercept[:3], [np.nan, 3.3, y[0, 2]])
    assert found.weights[:, 3].any()


@pytest.mark.parametrize(("n", "D", "rank"), [(300, 40, 40), (30, 80, 30), (200, 50, 3)])
def test_the_start_is_the_leading_singular_vectors(n, D, rank):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(n, rank)) * 0.7 ** np.arange(rank)) @ rng.normal(size=(rank, D))
    basis, values = first_basis(Observed.from_dense(X), 5, rng)
    _, s, right = np.linalg.svd(X, full_matrices=False)
    k = min(rank, 5)
    np.testing.assert_allclose(values, s[:5], rtol=1e-3, atol=1e-5 * s[0])
    np.testing.assert_allclose(np.abs(np.sum(basis[:, :k] * right[:k].T, axis=0)), 1, atol=1e-3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-10)
