"""Algorithms 2 and 3 of the subspace paper, word for word, on matrices: for small d only."""

import numpy as np
from scipy.linalg import expm, logm
from scipy.optimize import brentq


def law(W, k, alpha):
    """Equation (7): probabilities (d, d) of the pairs."""
    d, w = len(W), np.diag(W)
    return (1 - alpha) * (w[:, None] + w) / (2 * d * k) + alpha / d**2


def tilted(W, costs):
    """The strong and the weak law (d,) of an attribute that costs c: diag(W) and 1, over sqrt(c)."""
    return (law / law.sum() for law in (np.diag(W) / np.sqrt(costs), 1 / np.sqrt(costs)))


def estimate(pairs, values, p):
    """Equation (8) and its mean over r / 2 pairs; values maps an attribute to what was told."""
    C = np.zeros_like(p)
    for s, q in pairs:
        E = np.zeros_like(p)
        E[s, q] += 1
        E[q, s] += 1
        C += values[s] * values[q] / (2 * p[s, q]) * E / len(pairs)
    return C


def project(mu, k):
    """min(c mu, 1) with sum k, c by bisection."""
    c = brentq(lambda log_c: np.minimum(np.exp(log_c) * mu, 1).sum() - k, -60, 60, xtol=1e-14)
    return np.minimum(np.exp(c) * mu, 1)


def step(W, C, eta, k):
    """Equation (6)."""
    mu, V = np.linalg.eigh(expm(logm(W) + eta * C))
    return (V * project(mu, k)) @ V.T


def decomposition(lam, k):
    """Algorithm 3 on eigenvalues: [(beta, members)]."""
    lam, terms = np.array(lam) / k, []
    while lam.sum() > 1e-10:
        J = np.argsort(-lam)[:k]
        outside = np.delete(lam, J)
        beta = min(lam[J].min() * k, lam.sum() - (outside.max() if len(outside) else 0) * k)
        lam[J] -= beta / k
        lam = np.maximum(lam, 0)
        terms.append((beta, J))
    return terms
