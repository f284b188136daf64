"""POPCA by its formulas, one pair of columns at a time."""

import numpy as np


def algorithm1(X, p, k):
    """Gonen et al., eq. (4) and Algorithm 1: X (n, d) with NaN, one probability p; (d, d) estimate and top k rows."""
    Z, n = np.nan_to_num(X), len(X)
    C = Z.T @ Z / (n * p**2)
    np.fill_diagonal(C, np.sum(Z**2, axis=0) / (n * p))
    return C, np.linalg.eigh(C)[1][:, ::-1][:, :k].T


def available(X):
    """Covariance by available cases: joint sums about the columns' own means, unbiased given what was seen."""
    seen, d = ~np.isnan(X), X.shape[1]
    n, mean = seen.sum(axis=0), np.nanmean(X, axis=0)
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            both = seen[:, i] & seen[:, j]
            N = both.sum()
            R = np.sum((X[both, i] - mean[i]) * (X[both, j] - mean[j]))
            C[i, j] = R / (n[i] - 1) if i == j else R / (N * (1 - 1 / n[i] - 1 / n[j] + N / (n[i] * n[j])))
    return C


def ridge_code(x, mean, V, values, noise):
    """(V_o'V_o + s2 diag(1 / (l - s2)))^-1 V_o'(x_o - mean_o) of one row; V (d, k)."""
    seen = ~np.isnan(x)
    inner = V[seen].T @ V[seen] + noise * np.diag(1 / (values - noise))
    return np.linalg.solve(inner, V[seen].T @ (x - mean)[seen]), noise * np.linalg.inv(inner)


def expected(X, weights, p=None, pseudo=0.0, center=True):
    """Covariance (d, d) by expected joint counts, one pair at a time: eq. (4) and its kin, about column means where centred."""
    seen, (m, d) = ~np.isnan(X), X.shape
    n, Z = seen.sum(axis=0), np.nan_to_num(X - (np.nanmean(X, axis=0) if center else 0.0))
    o = seen.sum(axis=1)
    kappa = m * np.sum(o * (o - 1)) / (n.sum() ** 2 - np.sum(n**2)) if weights == "kappa" else 1.0
    rate = {"known": np.broadcast_to(p or 0.0, d), "global": np.full(d, n.sum() / (m * d))}.get(weights, n / m)
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            count = m * rate[i] if i == j else kappa * m * rate[i] * rate[j] + pseudo
            lost = 1 - 1 / n[i] if i == j else (1 - 1 / n[i]) * (1 - 1 / n[j]) * m / (m - 1)
            C[i, j] = Z[:, i] @ Z[:, j] / (count * (lost if center else 1.0))
    return C
