"""Quantities of theorems by their definitions, on tables of a few rows and columns."""

from itertools import pairwise, product

import numpy as np
from scipy.optimize import minimize
from scipy.stats import binom


def quasi_dimension(U, M, N, gamma, starts=6, at_least=False):
    """Equation (3) over factors P (m, m + n) and Q (n, m + n) themselves, by sequential quadratic programming from random starts.

    `at_least`: its minimum over SP^1(U), where products have at least the modulus gamma.
    """
    (m, n), r = U.shape, sum(U.shape)
    R_M, R_N = (np.linalg.inv(each).diagonal().max() for each in (M, N))

    def parts(x):
        return x[: m * r].reshape(m, r), x[m * r :].reshape(n, r)

    def cost(x):
        P, Q = parts(x)
        return R_M * np.trace(P.T @ M @ P) + R_N * np.trace(Q.T @ N @ Q)

    def equations(x):
        P, Q = parts(x)
        across = [] if at_least else [(P @ Q.T - gamma * U).ravel()]
        return np.concatenate([*across, np.sum(P**2, axis=1) - 1, np.sum(Q**2, axis=1) - 1])

    def inequalities(x):
        P, Q = parts(x)
        return (U * (P @ Q.T) - gamma).ravel() if at_least else np.zeros(1)

    constraints = [{"type": "eq", "fun": equations}, {"type": "ineq", "fun": inequalities}]

    found = []
    for seed in range(starts):
        start = np.random.default_rng(seed).normal(size=(m + n) * r)
        result = minimize(cost, start, method="SLSQP", constraints=constraints, options={"maxiter": 1000})
        if np.abs(equations(result.x)).max() < 1e-6 and inequalities(result.x).min() > -1e-6:
            found.append(result.fun)
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


def regularity(U, observed):
    """Definition 1: the least eigenvalue above 0 of Q_oo over all rows; 0 where one has fewer of them than U has columns."""
    Q = U @ np.linalg.pinv(U)
    found = []
    for o in observed:
        values = np.linalg.eigvalsh(Q[np.ix_(o, o)])
        positive = values[values > 1e-10]
        found.append(positive.min() if len(positive) == U.shape[1] else 0.0)
    return min(found)


def linear_predictor(X, w, Q):
    """Definition 2, row by row."""
    seen = ~np.isnan(X)
    return np.array([w[o] @ np.linalg.pinv(Q[np.ix_(o, o)], rcond=1e-10) @ x[o] for x, o in zip(X, seen, strict=True)])


def truncated_predictor(X, w, Q, gamma):
    """Definition 3, row by row."""
    found = []
    for x in X:
        o = ~np.isnan(x)
        powers = sum(np.linalg.matrix_power(Q[np.ix_(o, o)], j) for j in range(gamma))
        found.append(w[o] @ powers @ x[o])
    return np.array(found)


def embedding_weights(w, Q, gamma):
    """Corollary 2's v, sequence by sequence."""
    v = []
    for length in range(1, gamma + 1):
        for s in product(range(len(w)), repeat=length):
            v.append(w[s[0]] * np.prod([Q[a, b] for a, b in pairwise(s)]))
    return np.array(v)


def h_of_blocks(x, blocks, weights):
    """h(x_o) of section 5.1.2 term by term, the last with its 1/3."""
    shown = [k for k, block in enumerate(blocks) if not np.isnan(x[block]).any()]
    said = {k: sum(x[j] * weights[k][j] for j in blocks[k]) for k in shown}
    total = sum(said.values())
    total -= sum(said[a] + said[b] for a in shown for b in shown if a < b) / 2
    return total + sum(said.values()) / 3 * (len(shown) == 3)


def joint_objective(X, y, U, w, lam1, lam2, lam3):
    """(5) with the latent coordinates that minimise it, each found by a general minimiser."""
    total, n = 0.0, len(X)
    for x, label in zip(X, y, strict=True):
        o = ~np.isnan(x)

        def cost(a, x=x, o=o, label=label):
            return lam1 * np.sum((x[o] - U[o] @ a) ** 2) + (0 if np.isnan(label) else (label - w @ a) ** 2)

        total += minimize(cost, np.zeros(len(w)), method="BFGS", options={"gtol": 1e-10}).fun
    return total / n + lam2 * np.abs(w).sum() + lam3 * np.sum(w**2)


def partitions(items):
    """All divisions of a list into classes."""
    if not items:
        yield []
        return
    first, *others = items
    for division in partitions(others):
        yield [[first], *division]
        for k in range(len(division)):
            yield [*division[:k], [first, *division[k]], *division[k + 1 :]]


def least_side(M, alike, laplacians, count=None):
    """One side of Theorem 3 by all divisions of the ids into classes of equal rows of `alike`."""
    radius, found = np.linalg.inv(M).diagonal().max(), []
    for division in partitions(list(range(len(M)))):
        if count in (None, len(division)) and all((alike[c] == alike[c[0]]).all() for c in division):
            trace = sum(M[np.ix_(c, c)].sum() for c in division)
            k = len(division)
            found.append(2 * trace * radius + 2 * k if laplacians else k * trace * radius)
    return min(found)


def coin_excess(m, k, rate, alpha):
    """Appendix A: alpha / 2 times the chance to tell a coin of bias +-alpha wrongly, of which each of m rows shows a flip with chance `rate`."""
    chance = np.zeros(m + 1)
    for n in range(m + 1):
        heads = np.arange(n + 1)
        p, q = (binom.pmf(heads, n, (1 + sign * alpha) / 2) for sign in (1, -1))
        chance[n] = np.minimum(p, q).sum() / 2
    return alpha / 2 * np.sum(binom.pmf(np.arange(m + 1), m, rate / k) * chance)


def margin_complexity(U, starts=3):
    """Right-hand side of (2): the largest margin of unit vectors with the signs of U, by sequential quadratic programming."""
    (m, n), r = U.shape, sum(U.shape)

    def products(x):
        P, Q = (
            rows / np.linalg.norm(rows, axis=1, keepdims=True)
            for rows in (x[:-1].reshape(m + n, r)[:m], x[:-1].reshape(m + n, r)[m:])
        )
        return P @ Q.T

    found = []
    for seed in range(starts):
        start = np.append(np.random.default_rng(seed).normal(size=(m + n) * r), -1.0)
        constraint = {"type": "ineq", "fun": lambda x: (np.sign(U) * products(x)).ravel() - x[-1]}
        result = minimize(lambda x: -x[-1], start, method="SLSQP", constraints=constraint, options={"maxiter": 1000})
        found.append((np.sign(U) * products(result.x)).min())
    return 1 / max(found)


def hinge(y, score, gamma):
    """h_gamma of the proof of Theorem 1."""
    return np.maximum(0.0, gamma - y * score) / gamma


def penalised_covariance(C_hat, lam, steps=20_000):
    """Lemma 13 by projected gradients on S >= 0, where the trace norm is the trace."""
    S = np.zeros_like(C_hat)
    for _ in range(steps):
        values, vectors = np.linalg.eigh(S - 0.1 * (2 * (S - C_hat) + lam * np.eye(len(S))))
        S = (vectors * np.maximum(values, 0)) @ vectors.T
    return S


def penalised_error_bound(C, r, m, constant):
    """The infimum of Lemma 13 over ranks: the best S of rank k keeps the k largest eigenvalues."""
    values, d = np.linalg.eigvalsh(C)[::-1], len(C)
    price = constant * values[0] * values.sum() * d**2 / (r**2 * m) * np.log(2 * d)
    return np.sqrt(min(np.sum(values[k:] ** 2) + k * price for k in range(d + 1)))


def least_worst_excess(d, r, m, rate):
    """Theorem 12 for learners with a fixed plan: the least expected excess on the worst of the d distributions of unit vectors.

    All ways to spread r m looks over the columns, and the best u (whose squares are `shares`) to answer after nothing but zeros: the
    excess on s is rate (1 - shares_s) (1 - rate)^looks_s, made equal over s by water-filling.
    """
    worst = []
    for looks in product(range(m + 1), repeat=d):
        if sum(looks) == r * m:
            unseen = rate * (1 - rate) ** np.array(looks, dtype=float)
            low, high = 0.0, unseen.max()
            for _ in range(60):
                level = (low + high) / 2
                short = np.maximum(1 - level / unseen, 0).sum() > 1
                low, high = (level, high) if short else (low, level)
            worst.append(high)
    return min(worst)
