"""Bounds of Gonen et al.: against their formulas written out, and against what they claim."""

import numpy as np
import pytest
from reference import popca
from reference import theory as twin

from lacunar.papers.subspace import (
    make_unit_vectors,
    mbeg_error_bound,
    mbeg_sample_bound,
    passive_lower_bound,
    penalised_covariance,
    penalised_error_bound,
    popca_error_bound,
    popca_sample_bound,
    sample_lower_bound,
)


def bounded_rows(rng, n, basis, spread):
    X = rng.normal(size=(n, len(spread))) * spread @ basis.T
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)


def test_corollary_3_holds_and_by_hand():
    """Rows in the unit ball: the mean loss beyond the best over 40 samples of m rows stays below the bound."""
    d, k, r, m = 6, 1, 3, 400
    rng, lost = np.random.default_rng(0), []
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    spread = np.array([0.9, 0.6, 0.4, 0.3, 0.2, 0.1])
    for _ in range(40):
        X, many = bounded_rows(rng, m, basis, spread), bounded_rows(rng, 20_000, basis, spread)
        C = many.T @ many / len(many)
        X[rng.random(X.shape) >= r / d] = np.nan
        top = popca.algorithm1(X, r / d, k)[1]
        lost.append(np.linalg.eigvalsh(C)[-k:].sum() - np.trace(top @ C @ top.T))
    assert 0 < np.mean(lost) <= popca_error_bound(d, k, r, m)
    assert popca_error_bound(d, k, r, m) == pytest.approx(d / r * np.sqrt(k / m))
    assert popca_sample_bound(d, k, r, popca_error_bound(d, k, r, m)) == m
    for bad in ({"n_components": 7}, {"r": 0}, {"r": 7}, {"epsilon": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            popca_sample_bound(**{"d": d, "n_components": k, "r": r, "epsilon": 0.1} | bad)


def test_theorem_7_by_hand():
    d, k, r = 5, 2, 4
    least = 2 * d**4 * r / (d + r) * np.log(d)
    assert mbeg_sample_bound(d, k, r, 0.9) == np.ceil(least)
    m = mbeg_sample_bound(d, k, r, 0.01)
    assert m == np.ceil(8 * k * (d + r) / r * k / 0.01**2 * np.log(d))
    assert mbeg_error_bound(d, k, r, m) <= 0.01 < mbeg_error_bound(d, k, r, m - 1)
    with pytest.raises(ValueError, match="m must be at least"):
        mbeg_error_bound(d, k, r, int(least) - 1)
    for bad in ({"n_components": 5}, {"n_observed": 3}, {"epsilon": 0.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            mbeg_sample_bound(**{"d": d, "n_components": k, "n_observed": r, "epsilon": 0.1} | bad)


@pytest.mark.parametrize("lam", [0.0, 0.3, 2.0])
def test_lemma_13_minimises_what_it_says(lam):
    A = np.random.default_rng(0).normal(size=(5, 5))
    C_hat = A + A.T
    found = penalised_covariance(C_hat, lam)
    np.testing.assert_allclose(found, twin.penalised_covariance(C_hat, lam), atol=1e-9)
    assert np.linalg.eigvalsh(found)[0] >= -1e-12


def test_the_bound_of_lemma_13_is_the_least_over_ranks():
    A = np.random.default_rng(1).normal(size=(6, 4))
    C = A @ A.T
    for m in (1, 100, 10_000):
        expected = twin.penalised_error_bound(C, 3, m, 0.7)
        assert penalised_error_bound(C, 3, m, constant=0.7) == pytest.approx(expected, rel=1e-9)
    assert penalised_error_bound(C, 3, 1) == pytest.approx(np.linalg.norm(C))  # S = 0: too few rows for any
    for call, words in (
        (lambda: penalised_covariance([[1.0, 2.0], [0.0, 1.0]], 1.0), "C_hat must be a symmetric matrix"),
        (lambda: penalised_covariance(np.eye(2), -1.0), "lam must be a finite number of at least 0; got -1"),
        (lambda: penalised_error_bound(-np.eye(2), 1, 10), "C must be positive semidefinite"),
        (lambda: penalised_error_bound(np.eye(2), 3, 10), "r must be above 0 and at most d = 2"),
        (lambda: penalised_error_bound(np.eye(2), 1, 0), "m must be at least 1 row"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize(("d", "r", "epsilon"), [(2, 1, 0.05), (3, 1, 0.1), (3, 2, 0.1), (4, 1, 0.15)])
def test_no_plan_does_with_fewer_rows_than_theorem_12(d, r, epsilon):
    least = sample_lower_bound(d, r, epsilon)
    assert least >= 1
    assert twin.least_worst_excess(d, r, least - 1, 4 * epsilon) > epsilon
    assert twin.least_worst_excess(d, r, 3 * least, 4 * epsilon) < epsilon  # and not for want of a plan


def test_theorem_12_grows_with_d_and_falls_with_r_and_epsilon():
    law = [sample_lower_bound(d, r, e) * r * e / d for d in (100, 1000) for r in (1, 10) for e in (1e-3, 1e-5)]
    np.testing.assert_allclose(law, np.log(4) / 4, rtol=0.02)
    for call, words in (
        (lambda: sample_lower_bound(1, 1, 0.1), "d must be at least 2"),
        (lambda: sample_lower_bound(5, 6, 0.1), "r must be above 0 and at most d = 5"),
        (lambda: sample_lower_bound(5, 2, 0.25), r"epsilon in \(0, 1 / c\)"),
        (lambda: sample_lower_bound(5, 2, 0.1, c=2.0), "c must be above 2"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize(("d", "k", "r"), [(8, 1, 8), (8, 2, 8), (8, 1, 4), (8, 2, 2)])
def test_no_learner_does_with_fewer_rows_than_theorems_4_and_5(d, k, r):
    """The best that can be done on the coins of the proof, by binomials: alpha is the proof's to choose."""
    epsilon = 0.0075
    least = passive_lower_bound(d, k, r, epsilon)
    assert least == np.ceil((d / r) ** 2 * k / (257 * epsilon**2))
    assert twin.coin_excess(least - 1, k, (r / d) ** 2, 8 * epsilon) > epsilon


def test_the_constant_of_the_printed_chain_does_not_hold():
    """k / (32 eps^2) rows, as Theorem 11 would have it, are far more than the coins of the proof need."""
    epsilon = 0.0075
    printed = passive_lower_bound(8, 1, 8, epsilon, constant=1 / 32)
    assert twin.coin_excess(printed - 1, 1, 1.0, 16 * epsilon) < 0.05 * epsilon


def test_theorems_4_and_5_are_below_corollary_3_and_refuse_what_they_do_not_say():
    for d, k, r in ((10, 2, 3), (40, 20, 40), (6, 1, 2)):
        assert passive_lower_bound(d, k, r, 0.005) < popca_sample_bound(d, k, r, 0.005)
    for bad, words in (
        ({"n_components": 6}, "n_components must be at most d / 2 = 5"),
        ({"epsilon": 1 / 128}, "epsilon must be above 0 and below 1/128"),
        ({"r": 11}, "r must be above 0 and at most d = 10"),
        ({"constant": 0.0}, "constant must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            passive_lower_bound(**{"d": 10, "n_components": 2, "r": 3, "epsilon": 0.005} | bad)


def test_the_rows_of_theorem_12():
    data = make_unit_vectors(20_000, 6, eps=0.05, random_state=0)
    s = int(data.components[0].argmax())
    np.testing.assert_array_equal(data.second_moment, 0.2 * np.outer(*[np.eye(6)[s]] * 2))
    np.testing.assert_allclose(data.complete.T @ data.complete / 20_000, data.second_moment, atol=0.01)
    assert set(np.unique(data.complete)) == {0.0, 1.0}
    with pytest.raises(ValueError, match=r"c \* eps must lie in \[0, 1\]"):
        make_unit_vectors(eps=0.3)
    with pytest.raises(ValueError, match="c must be above 2"):
        make_unit_vectors(c=1.0)
