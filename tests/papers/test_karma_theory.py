"""The definitions of KARMA's paper, the bounds of its theorems and corollaries, and Lemmas 1 and 2 on random subspaces."""

import numpy as np
import pytest
from reference import karma as slow
from reference import theory as twin

from lacunar.kernels import karma_kernel
from lacunar.papers.karma import (
    block_predictor,
    embedding,
    embedding_size,
    embedding_weights,
    gamma_needed,
    kernel_sum,
    linear_predictor,
    make_block_margin,
    make_rank_conflict,
    objective_bound,
    regret_bound,
    regularity,
    sample_bound,
    theory_rho,
    truncated_predictor,
    truncation_bound,
)


def holes(n, d, share, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.random((n, d)) > share] = np.nan
    return X


@pytest.mark.parametrize("gamma", [1, 2, 3, 4, 0.5, 2.25, 3.5])
def test_the_public_definitions_are_the_kernel(gamma):
    X, Y = holes(7, 4, 0.6), holes(5, 4, 0.6, seed=1)
    X[2] = np.nan
    across = karma_kernel(X, Y, gamma=gamma, count_scale="raw")
    np.testing.assert_allclose(embedding(X, gamma) @ embedding(Y, gamma).T, across, rtol=1e-12, atol=1e-12)
    if gamma == int(gamma):
        np.testing.assert_array_equal(embedding(X, gamma), [slow.embedding(x, gamma) for x in X])
        np.testing.assert_allclose(kernel_sum(X, Y, gamma=gamma), across, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(kernel_sum(X, gamma=gamma), kernel_sum(X, X, gamma=gamma))


def test_the_public_definitions_refuse_what_they_cannot_write_out():
    with pytest.raises(ValueError, match="at most 134217728 numbers; got gamma=9 with 3 rows of 12 columns"):
        embedding(holes(3, 12, 0.5), 9)
    with pytest.raises(ValueError, match="gamma must be positive; got 0"):
        embedding(holes(3, 4, 0.5), 0)
    with pytest.raises(ValueError, match=r"whole number >= 1; got 1\.5"):
        kernel_sum(holes(3, 4, 0.5), gamma=1.5)


def test_the_embedding_has_its_size():
    X = np.random.default_rng(0).normal(size=(2, 3))
    for gamma in (1, 2, 3, 4):
        assert embedding(X, gamma).shape[1] == embedding_size(3, gamma)
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
    least = eigenvalues[eigenvalues > 1e-10].min()
    assert np.sqrt(least) == pytest.approx(np.linalg.svd(E[seen], compute_uv=False).min())
    assert regularity(E @ rng.normal(size=(r, r)), [seen]) == pytest.approx(least)
    exact, w, x = np.linalg.pinv(part, rcond=1e-10), *rng.normal(size=(2, d))
    x = (E @ E.T @ x)[seen]
    x, w = x / np.linalg.norm(x), (w / np.linalg.norm(w))[seen]
    worst = basis[:, np.argmin(np.where(eigenvalues > 1e-10, eigenvalues, np.inf))]
    for gamma in (1, 2, 5, 20):
        short = sum(np.linalg.matrix_power(np.eye(len(part)) - part, j) for j in range(gamma))
        bound = truncation_bound(least, gamma)
        assert abs(w @ (short - exact) @ x) <= bound + 1e-12
        assert abs(worst @ (short - exact) @ worst) == pytest.approx(bound, rel=1e-8, abs=1e-12)


def test_gamma_needed_leaves_half_of_epsilon():
    for least in (0.05, 0.3, 0.9):
        for epsilon in (1e-4, 0.1, 3.0):
            for lipschitz in (0.5, 1.0, 4.0):
                gamma = gamma_needed(least, epsilon, lipschitz=lipschitz)
                exact = np.log(2 * lipschitz / (least * epsilon)) / least
                assert max(exact, 1) <= gamma < max(exact, 1) + 1
                if exact >= 1:
                    assert lipschitz * truncation_bound(least, gamma) <= epsilon / 2 * (1 + 1e-12)


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


def table_of_a_subspace(seed, d=6, r=2, n=40):
    """A basis (d, r), rows of the subspace that show at least r columns, and the complete rows."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(d, r)))[0]
    complete = rng.normal(size=(n, r)) @ U.T
    complete /= np.linalg.norm(complete, axis=1, keepdims=True)
    hidden = rng.random((n, d)).argsort(axis=1) >= rng.integers(r, d + 1, size=(n, 1))
    return U, np.where(hidden, np.nan, complete), complete


@pytest.mark.parametrize("seed", range(5))
def test_predictors_on_a_subspace_are_their_definitions_and_lemma_1(seed):
    U, X, complete = table_of_a_subspace(seed)
    w, Q = np.random.default_rng(seed).normal(size=6), U @ U.T
    w /= np.linalg.norm(w)
    values = linear_predictor(X, w, Q)
    np.testing.assert_allclose(values, twin.linear_predictor(X, w, Q), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(linear_predictor(X, Q @ w, Q), complete @ w, rtol=1e-7, atol=1e-8)
    least = regularity(U, ~np.isnan(X))
    assert least == pytest.approx(twin.regularity(U, ~np.isnan(X)), rel=1e-9)
    for gamma in (1, 2, 7):
        short = truncated_predictor(X, w, np.eye(6) - Q, gamma)
        np.testing.assert_allclose(short, twin.truncated_predictor(X, w, np.eye(6) - Q, gamma), rtol=1e-11, atol=1e-12)
        assert np.abs(short - values).max() <= truncation_bound(least, gamma) + 1e-9


def test_oblique_projections_are_projections():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))
    Q = A @ np.linalg.solve(B.T @ A, B.T)
    X, w = holes(8, 5, 0.7), rng.normal(size=5)
    np.testing.assert_allclose(linear_predictor(X, w, Q), twin.linear_predictor(X, w, Q), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(truncated_predictor(X, w, Q, 4), twin.truncated_predictor(X, w, Q, 4), rtol=1e-10)


def test_regularity_is_0_where_a_row_does_not_tell_the_others():
    U = np.eye(3)[:, :2]
    assert regularity(U, [[1, 1, 0]]) == 1
    assert regularity(U, [[1, 1, 0], [1, 0, 1]]) == 0
    assert regularity(U, [[0, 0, 0]]) == 0


@pytest.mark.parametrize("gamma", [1, 2, 3, 4])
def test_corollary_2_has_its_v(gamma):
    U, X, _ = table_of_a_subspace(3)
    w, Q = np.random.default_rng(1).normal(size=6), np.eye(6) - U @ U.T
    v = embedding_weights(w, Q, gamma)
    np.testing.assert_allclose(v, twin.embedding_weights(w, Q, gamma), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(embedding(X, gamma) @ v, truncated_predictor(X, w, Q, gamma), rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(v) <= np.sqrt(embedding_size(6, gamma)) * np.linalg.norm(w)


def test_corollary_1_is_its_formula_and_enough():
    for lam, epsilon, L in ((0.5, 0.1, 1.0), (0.2, 0.01, 3.0), (1.0, 5.0, 1.0)):
        gamma = gamma_needed(lam, epsilon, lipschitz=L, result="Corollary 1")
        assert gamma == max(1, np.ceil(np.log(L / (lam * epsilon)) / lam))
        assert L * truncation_bound(lam, gamma) <= epsilon
        assert L * truncation_bound(lam, gamma_needed(lam, epsilon, lipschitz=L)) <= max(epsilon / 2, 0)
    with pytest.raises(ValueError, match="result must be 'Theorem 2' or 'Corollary 1'; got 'Lemma 2'"):
        gamma_needed(0.5, 0.1, result="Lemma 2")


@pytest.mark.parametrize("margin", [None, 1.0])
def test_h_of_the_blocks_is_the_target_whatever_is_seen(margin):
    data = make_block_margin(200, 18, 4, margin=margin, random_state=0)
    weights = np.zeros((3, 18))
    for k, block in enumerate(data.blocks):
        weights[k, block] = np.linalg.pinv(data.basis[block]).T @ (data.basis.T @ data.coef)
    values = block_predictor(data.data, data.blocks, weights)
    assert {tuple(seen) for seen in data.seen.tolist()} == {
        (a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)
    } - {(0, 0, 0)}
    np.testing.assert_allclose(values, data.complete @ data.coef, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(values, [twin.h_of_blocks(x, data.blocks, weights) for x in data.data], atol=1e-9)


def test_h_of_three_blocks_is_in_the_embedding_of_three():
    """v of the norm 7/3 sum |w^A|, as printed: by sequences (end), (of another block, end) and (of both others, end)."""
    blocks, d = [[0, 1], [2], [3]], 4
    weights = np.zeros((3, d))
    for k, block in enumerate(blocks):
        weights[k, block] = np.random.default_rng(k).normal(size=len(block))
    v, first = np.zeros(embedding_size(d, 3)), [block[0] for block in blocks]
    for k, block in enumerate(blocks):
        others = [first[other] for other in range(3) if other != k]
        for j in block:
            v[j] += weights[k, j]
            for a in others:
                v[d + a * d + j] -= weights[k, j] / 2
            v[d + d**2 + others[0] * d**2 + others[1] * d + j] += weights[k, j] / 3
    X = np.random.default_rng(9).normal(size=(7, d))
    for row, shown in zip(X, ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]), strict=True):
        row[[j for k in range(3) if k not in shown for j in blocks[k]]] = np.nan
    np.testing.assert_allclose(embedding(X, 3) @ v, block_predictor(X, blocks, weights), rtol=1e-12)
    assert np.linalg.norm(v) <= 7 / 3 * np.linalg.norm(weights, axis=1).sum()


@pytest.mark.parametrize("copies", [1, 5])
def test_problem_g_leaves_the_label_open(copies):
    data = make_rank_conflict(copies)
    known = np.column_stack([data.data, data.target])
    for Z in data.completions:
        np.testing.assert_array_equal(Z[~np.isnan(known)], known[~np.isnan(known)])
        assert np.linalg.matrix_rank(Z) == 2
    assert {Z[-1, -1] for Z in data.completions} == {-1.0, 1.0}
    # Rank one is impossible: the rows of the second kind would be 1 and -1 times those of the third.
    np.testing.assert_array_equal(known[copies, [1, 4]] / known[2 * copies, [1, 4]], [1, -1])
    alike = (np.isnan(data.data) == np.isnan(data.data[-1])).all(axis=1)[:-1]
    assert set(data.target[:-1][alike]) == {data.answer}


def test_theorem_1_is_its_formula():
    gamma = gamma_needed(0.5, 0.2, lipschitz=2.0)
    size = sum(3**length for length in range(1, gamma + 1))
    printed = 1.5 * 2.0**2 * size**2 * np.log(1 / 0.1) / 0.2**2
    assert sample_bound(3, 0.5, 0.2, delta=0.1, lipschitz=2.0, constant=1.5) == np.ceil(printed)
    assert sample_bound(10_000, 0.01, 1e-6) > 10**300  # no overflow


def test_ranges_are_checked():
    for call, words in (
        (lambda: regularity([[1.0], [0.0]], [[1, 1, 1]]), "observed must have 2 columns"),
        (lambda: regularity([[1.0, 2.0], [2.0, 4.0]], [[1, 1]]), "independent columns"),
        (lambda: linear_predictor([[1.0, 2.0]], [1.0], np.eye(2)), r"shapes \(2,\) and \(2, 2\)"),
        (lambda: linear_predictor([[1.0, 2.0]], [1.0, 1.0], 2 * np.eye(2)), "Q must be a projection"),
        (
            lambda: truncated_predictor([[1.0, 2.0]], [1.0, 1.0], np.eye(2), 0),
            "gamma must be a whole number >= 1; got 0",
        ),
        (lambda: sample_bound(3, 0.5, 0.1, delta=2.0), "delta must be above 0 and at most 1"),
        (lambda: truncation_bound(1.5, 2), r"regularity must be above 0 and at most 1; got 1\.5"),
        (lambda: gamma_needed(0.5, 0), "epsilon must be a finite number above 0; got 0"),
        (lambda: objective_bound(10, 3, 2, 0.5), r"rho must be at most 1/4 for Theorem 2; got 0\.5"),
        (lambda: embedding_weights([1.0, 2.0], np.ones((2, 2)), 2), "Q must be a projection"),
        (lambda: embedding_weights([1.0], np.eye(1), 1.5), r"gamma must be a whole number >= 1; got 1\.5"),
        (lambda: embedding_weights(np.ones(60), np.eye(60), 5), "gamma must keep d .* at most 134217728 numbers"),
        (lambda: block_predictor([[1.0, 2.0]], [[0], [1]], [[1.0, 2.0]]), r"weights must have shape \(2, 2\)"),
        (lambda: make_rank_conflict(0), "copies"),
        (lambda: embedding_size(3, 1.5), r"gamma must be a whole number >= 1; got 1\.5"),
        (lambda: regret_bound(0, 3, 2, regularity=0.5, rho=1), "n_steps must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            call()
