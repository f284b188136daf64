"""Quantities of theorems by their definitions, on tables of a few rows and columns."""

import numpy as np
from scipy.optimize import minimize


def quasi_dimension(U, M, N, gamma, starts=6):
    """Equation (3) over factors P (m, m + n) and Q (n, m + n) themselves, by sequential quadratic programming from random starts."""
    (m, n), r = U.shape, sum(U.shape)
    R_M, R_N = (np.linalg.inv(each).diagonal().max() for each in (M, N))

    def parts(x):
        return x[: m * r].reshape(m, r), x[m * r :].reshape(n, r)

    def cost(x):
        P, Q = parts(x)
        return R_M * np.trace(P.T @ M @ P) + R_N * np.trace(Q.T @ N @ Q)

    def equations(x):
        P, Q = parts(x)
        return np.concatenate([(P @ Q.T - gamma * U).ravel(), np.sum(P**2, axis=1) - 1, np.sum(Q**2, axis=1) - 1])

    found = []
    for seed in range(starts):
        start = np.random.default_rng(seed).normal(size=(m + n) * r)
        made = minimize(
            cost, start, method="SLSQP", constraints={"type": "eq", "fun": equations}, options={"maxiter": 1000}
        )
        if np.abs(equations(made.x)).max() < 1e-6:
            found.append(made.fun)
    return min(found)


def box_points(lower, upper, rng, each):
    """Points (k each, d) of boxes, and the box of every one."""
    k, d = lower.shape
    box = np.repeat(np.arange(k), each)
    return lower[box] + rng.random((k * each, d)) * (upper - lower)[box], box


def min_kernel(X, r):
    """Section 5.1: prod_i min(s(x)_i, s(t)_i), s(x) = (r - 1) / (2 r) x + (r + 1) / 2."""
    s = (r - 1) / (2 * r) * X + (r + 1) / 2
    return np.minimum(s[:, None], s[None]).prod(axis=2)
