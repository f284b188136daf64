"""The bounds of KARMA's Theorems 2 and 3, and Lemma 2 on random subspaces."""

import numpy as np
import pytest

from lacunar.karma import (
    embedding_size,
    gamma_needed,
    objective_bound,
    regret_bound,
    theory_rho,
    truncation_bound,
)
from lacunar.kernels import karma_embedding


def test_the_embedding_has_its_size():
    X = np.random.default_rng(0).normal(size=(2, 3))
    for gamma in (1, 2, 3, 4):
        assert karma_embedding(X, gamma).shape[1] == embedding_size(3, gamma)
    assert embedding_size(1, 7) == 7
    assert embedding_size(1000, 30) == (1000**31 - 1000) // 999


@pytest.mark.parametrize("seed", range(20))
def test_lemma_2_holds_and_is_met(seed):
    rng = np.random.default_rng(seed)
    d, r = 8, 2
    E, _ = np.linalg.qr(rng.normal(size=(d, r)))
    Q = E @ E.T
    seen = rng.random(d) < 0.7
    seen[rng.choice(d, r, replace=False)] = True
    part = Q[np.ix_(seen, seen)]
    eigenvalues, basis = np.linalg.eigh(part)
    regularity = eigenvalues[eigenvalues > 1e-10].min()
    assert np.sqrt(regularity) == pytest.approx(np.linalg.svd(E[seen], compute_uv=False).min())
    exact, w, x = np.linalg.pinv(part, rcond=1e-10), *rng.normal(size=(2, d))
    x = (E @ E.T @ x)[seen]
    x, w = x / np.linalg.norm(x), (w / np.linalg.norm(w))[seen]
    worst = basis[:, np.argmin(np.where(eigenvalues > 1e-10, eigenvalues, np.inf))]
    for gamma in (1, 2, 5, 20):
        short = sum(np.linalg.matrix_power(np.eye(len(part)) - part, j) for j in range(gamma))
        bound = truncation_bound(regularity, gamma)
        assert abs(w @ (short - exact) @ x) <= bound + 1e-12
        assert abs(worst @ (short - exact) @ worst) == pytest.approx(bound, rel=1e-8, abs=1e-12)


def test_gamma_needed_leaves_half_of_epsilon():
    for regularity in (0.05, 0.3, 0.9):
        for epsilon in (1e-4, 0.1, 3.0):
            for lipschitz in (0.5, 1.0, 4.0):
                gamma = gamma_needed(regularity, epsilon, lipschitz=lipschitz)
                exact = np.log(2 * lipschitz / (regularity * epsilon)) / regularity
                assert max(exact, 1) <= gamma < max(exact, 1) + 1
                if exact >= 1:
                    assert lipschitz * truncation_bound(regularity, gamma) <= epsilon / 2 * (1 + 1e-12)


def test_bounds_are_the_printed_formulas():
    T, d, gamma, lam, X, L, B, rho = 500, 4, 3, 0.4, 2.0, 1.5, 7.0, 0.05
    size = d + d**2 + d**3
    printed = 2 * L**2 * X**2 * size / rho * (1 + np.log(T)) + rho / 2 * T * B + np.exp(-lam * gamma) / lam * L * T
    options = {"regularity": lam, "largest": X, "lipschitz": L}
    assert regret_bound(T, d, gamma, rho=rho, ball=B, **options) == pytest.approx(printed)
    best = L * X * np.sqrt(size) / np.sqrt(B * T)
    assert theory_rho(T, d, gamma, largest=X, lipschitz=L, ball=B) == pytest.approx(best)
    assert regret_bound(T, d, gamma, ball=B, **options) == regret_bound(T, d, gamma, ball=B, rho=best, **options)
    assert theory_rho(T, d, gamma) == pytest.approx(1 / np.sqrt(T))
    assert objective_bound(T, d, gamma, 0.2, delta=0.1, lipschitz=L) == pytest.approx(
        84 * L**2 * size * np.log(T / 0.1) / (0.2 * T)
    )
    assert objective_bound(T, 1, 1, 0.2, lipschitz=1e-3) == objective_bound(T, 1, 1, 0.2)  # R >= 1 in Pegasos


def test_ranges_are_checked():
    for call, words in (
        (lambda: truncation_bound(1.5, 2), r"regularity must be above 0 and at most 1; got 1\.5"),
        (lambda: gamma_needed(0.5, 0), "epsilon must be a finite number above 0; got 0"),
        (lambda: objective_bound(10, 3, 2, 0.5), r"rho must be at most 1/4 in Theorem 2; got 0\.5"),
        (lambda: embedding_size(3, 1.5), r"gamma must be a whole number >= 1; got 1\.5"),
        (lambda: regret_bound(0, 3, 2, regularity=0.5, rho=1), "n_steps must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
