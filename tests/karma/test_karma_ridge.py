"""The closed form against its definition and scikit-learn."""

import numpy as np
import pytest
from reference.ridge import ridge_coef
from sklearn.kernel_ridge import KernelRidge

from lacunar.karma.solvers import solve_ridge

CS = (1e-2, 1.0, 30.0, 1e3)
N = 23


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(N, 6))
    Z[5] = Z[4]  # duplicate rows: a singular Gram
    K = (Z @ Z.T + 1) ** 2 / 20
    return K, rng.normal(size=(N, 2)), rng.uniform(0.2, 3, size=N)


def with_zeros(weight):
    return np.where(np.arange(len(weight)) % 5 == 2, 0, weight)


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("weights", ["none", "positive", "zeros"])
def test_solve_matches_the_definition(problem, C, weights):
    K, Y, w = problem
    weight = {"none": None, "positive": w, "zeros": with_zeros(w)}[weights]
    before = K.copy()
    coef = solve_ridge(K, Y, C, weight)
    np.testing.assert_allclose(coef, ridge_coef(K, Y, C, weight), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(K, before)
    if weights == "zeros":
        assert not coef[weight == 0].any()


def test_solve_minimises_the_objective(problem):
    K, Y, w = problem
    y, C = Y[:, 0], 2.0

    def objective(coef):
        f = K @ coef
        return coef @ f / 2 + C * w @ (f - y) ** 2

    best = solve_ridge(K, Y, C, w)[:, 0]
    rng = np.random.default_rng(0)
    assert all(objective(best) < objective(best + 1e-3 * rng.normal(size=N)) for _ in range(20))


@pytest.mark.parametrize("C", CS)
def test_solve_agrees_with_sklearn(problem, C):
    K, Y, w = problem
    theirs = KernelRidge(alpha=1 / (2 * C), kernel="precomputed").fit(K, Y, sample_weight=w)
    np.testing.assert_allclose(K @ solve_ridge(K, Y, C, w), theirs.predict(K), rtol=1e-6, atol=1e-8)


def test_weights_are_repeats(problem):
    K, Y, _ = problem
    repeats = np.arange(N) % 3
    row = np.repeat(np.arange(N), repeats)
    coef = solve_ridge(K, Y, 0.7, repeats)
    again = solve_ridge(K[np.ix_(row, row)], Y[row], 0.7)
    np.testing.assert_allclose(K @ coef, K[:, row] @ again, rtol=1e-9, atol=1e-10)


def test_float32_is_used_only_where_it_holds(problem):
    K, Y, _ = problem
    K32 = K.astype(np.float32)
    for C, tolerance in ((1e-2, 1e-5), (1.0, 1e-3), (1e4, 1e-5)):  # the last is past the limit: float64 inside
        exact = K @ solve_ridge(K32.astype(float), Y, C)
        np.testing.assert_allclose(K @ solve_ridge(K32, Y, C), exact, atol=tolerance)


def test_one_row_and_one_output():
    np.testing.assert_allclose(solve_ridge(np.array([[2.0]]), np.array([3.0]), 1.0), [3 / 2.5])


def test_zero_gram_is_solved():
    assert np.isfinite(solve_ridge(np.zeros((4, 4)), np.ones((4, 1)), 1e6)).all()


def test_indefinite_gram_is_named():
    with pytest.raises(np.linalg.LinAlgError, match=r"C=10 .*Lower C"):
        solve_ridge(-np.eye(3), np.ones((3, 1)), 10.0)
