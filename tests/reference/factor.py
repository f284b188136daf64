"""Probabilistic PCA with holes: one step of EM, row by row and column by column (Tipping and Bishop 1999)."""

import numpy as np


def em_step(X, V, sigma2):
    """New V (D, d) and sigma^2 from X (n, D) with NaN."""
    d, seen = V.shape[1], ~np.isnan(X)
    z, second = np.zeros((len(X), d)), np.zeros((len(X), d, d))
    for i, (x, o) in enumerate(zip(X, seen, strict=True)):
        inverse = np.linalg.inv(V[o].T @ V[o] + sigma2 * np.eye(d))
        z[i] = inverse @ V[o].T @ x[o]
        second[i] = np.outer(z[i], z[i]) + sigma2 * inverse
    new = np.zeros_like(V)
    for j in np.flatnonzero(seen.any(axis=0)):
        rows = seen[:, j]
        new[j] = np.linalg.solve(second[rows].sum(axis=0), z[rows].T @ X[rows, j])
    i, j = np.nonzero(seen)
    spread = np.einsum("ek,ekl,el->e", new[j], second[i], new[j])
    left = X[i, j] ** 2 - 2 * X[i, j] * np.einsum("ek,ek->e", new[j], z[i]) + spread
    return new, left.mean()
