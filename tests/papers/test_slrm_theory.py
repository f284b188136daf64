"""Theorem 1 of SLRM as functions: against its formulas written out, and against what it claims."""

import numpy as np
import pytest
from reference import theory as twin

from lacunar.papers.slrm import (
    PrintedSLRM,
    coherence,
    complexity_bound,
    gate_level,
    joint_objective,
    loss_bound,
    risk_bound,
)

FACTS = {"m": 30, "D": 80, "R1": 1.5, "B_X": 2.0, "B_Y": 3.0, "gamma": 0.4, "delta": 0.05}


@pytest.mark.parametrize("empirical", [0.0, 0.3])
def test_the_risk_bound_is_equation_8(empirical):
    n, K = 5000, 2.5
    c, s = 80 * 1.5 * 2 / 0.6, 30 / 5000 + 5000**-0.5
    b = 2 * (3 + 80 * 1.5 / (30 * 0.6)) ** 2
    e = b * np.log(20) / n
    expected = empirical + K * (empirical**0.5 * (s * c + e**0.5) + e + np.log(n) ** 3 * s**2 * c**2)
    np.testing.assert_allclose(risk_bound(empirical, n, **FACTS, constant=K), expected, rtol=1e-13)
    np.testing.assert_allclose(loss_bound(3.0, 1.5, 80, 30, 0.4), b, rtol=1e-13)
    np.testing.assert_allclose(
        complexity_bound(n, 30, 80, 1.5, 2.0, 0.4), (50 * 30 / n + 14 / n**0.5) * 3 * c, rtol=1e-13
    )


def test_bounds_fall_with_rows_and_grow_with_gamma():
    bounds = [risk_bound(0.1, n, **FACTS) for n in (10**6, 10**9, 10**15)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(0.1, rel=0.05)
    assert risk_bound(0.1, 10**6, **{**FACTS, "gamma": 0.9}) > bounds[0]


def test_coherence_is_between_1_and_its_largest():
    rng = np.random.default_rng(0)
    U = rng.normal(size=(40, 4))
    expected = 40 / 4 * np.max(np.diag(U @ np.linalg.pinv(U)))
    np.testing.assert_allclose(coherence(U), expected, rtol=1e-12)
    np.testing.assert_allclose(coherence(U @ rng.normal(size=(4, 4))), expected, rtol=1e-10)
    assert coherence(np.eye(40)[:, :4]) == 10
    hadamard = np.array([[1, 1], [1, -1], [1, 1], [1, -1.0]])
    assert coherence(hadamard) == pytest.approx(1)
    with pytest.raises(ValueError, match="independent"):
        coherence(np.ones((5, 2)))


def test_the_gate_level_lets_rows_through():
    """All but a share delta of uniform draws with replacement satisfy |(U_O^T U_O)^-1| <= D / (m (1 - gamma))."""
    rng, (D, d, m, delta) = np.random.default_rng(0), (400, 2, 400, 0.1)
    U = np.linalg.qr(rng.normal(size=(D, d)))[0]
    gamma = gate_level(d, coherence(U), m, delta)
    assert 0 < gamma < 1
    least = [np.linalg.norm(U[rng.integers(D, size=m)], -2) ** 2 for _ in range(500)]
    assert np.mean(np.array(least) < m * (1 - gamma) / D) <= delta


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gamma": 1.0}, "gamma must"),
        ({"delta": 0.0}, "delta must"),
        ({"R1": -1.0}, "R1 must"),
        ({"m": np.nan}, "m must"),
    ],
)
def test_numbers_out_of_range_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        risk_bound(0.1, 100, **{**FACTS, **changed})
    with pytest.raises(ValueError, match="empirical must"):
        risk_bound(-0.1, 100, **FACTS)


def test_the_objective_is_equation_5():
    rng = np.random.default_rng(0)
    X, y, U, w = rng.normal(size=(12, 6)), rng.normal(size=12), np.linalg.qr(rng.normal(size=(6, 2)))[0], [0.7, -0.2]
    X[rng.random(X.shape) < 0.5] = np.nan
    y[::4] = np.nan
    lambdas = {"lambda_1": 2.0, "lambda_2": 0.1, "lambda_3": 0.3}
    least = joint_objective(X, y, U, w, **lambdas)
    assert least == pytest.approx(twin.joint_objective(X, y, U, np.array(w), 2.0, 0.1, 0.3), rel=1e-6)
    latent = rng.normal(size=(12, 2))
    by_hand = 2.0 * np.nansum((X - latent @ U.T) ** 2) / 12 + np.nansum((y - latent @ w) ** 2) / 12
    given = joint_objective(X, y, U, w, latent, **lambdas)
    assert given == pytest.approx(by_hand + 0.1 * 0.9 + 0.3 * 0.53, rel=1e-12)
    assert given > least


def test_the_printed_steps_descend_the_objective():
    """With lambda_3 / 2, as step 8 prints the term."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(300, 3))
    X, y = a @ rng.normal(size=(3, 15)), a @ [1.0, 0.5, 0.0]
    X[rng.random(X.shape) < 0.4] = np.nan
    values = []
    for passes in (1, 2, 6):
        model = PrintedSLRM(3, rho=0.01, max_iter=passes, validate=None, gamma=0.999, random_state=0).fit(X, y)
        lambdas = {"lambda_1": 10.0, "lambda_2": 1e-3, "lambda_3": 5e-4}
        values.append(joint_objective(X, y, model.components_.T, model.coef_, **lambdas))
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.9 * values[0]


def test_what_does_not_fit_the_objective_is_refused():
    lambdas = {"lambda_1": 1.0, "lambda_2": 1.0, "lambda_3": 1.0}
    for arguments, more, words in (
        (([[1.0, 2.0]], [1.0], np.ones((3, 1)), [1.0]), {}, r"y, w and U must have shapes \(1,\), \(1,\) and \(2, 1\)"),
        (([[1.0, 2.0]], [1.0], np.ones((2, 1)), [1.0], [[1.0, 2.0]]), {}, r"latent must have shape \(1, 1\)"),
        (([[1.0, 2.0]], [1.0], np.ones((2, 1)), [1.0]), {"lambda_1": 0.0}, "lambda_1 must be a finite number above 0"),
    ):
        with pytest.raises(ValueError, match=words):
            joint_objective(*arguments, **{**lambdas, **more})
