"""Theorem 1 of SLRM as functions: against its formulas written out, and against what it claims."""

import numpy as np
import pytest

from lacunar.papers.slrm import coherence, complexity_bound, gate_level, loss_bound, risk_bound

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
