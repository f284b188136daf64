"""Side information from its formulas: dense matrices, one line each."""

import numpy as np
import scipy.linalg
import scipy.optimize


def corr(K):
    """Unit diagonal: K_ij / sqrt(K_ii K_jj)."""
    root = np.sqrt(np.diag(K))
    return K / np.outer(root, root)


def mix(K, info, const, own):
    """info K + const 11^T + own I."""
    return info * K + const + own * np.eye(len(K))


def one_hot(values):
    """Indicators (n, levels) of sorted categories; None is a row of zeros."""
    levels = sorted({v for v in values if v is not None})
    return np.array([[v == level for level in levels] for v in values], dtype=float)


def cosine(F):
    """Rows scaled to length 1, and their products."""
    F = F / np.linalg.norm(F, axis=1, keepdims=True)
    return F @ F.T


def gaussian(x, t, length_scale=1.0):
    """exp(-|x - t|^2 / (2 l^2))."""
    return np.exp(-np.sum((np.asarray(x) - np.asarray(t)) ** 2) / (2 * length_scale**2))


def min_kernel(x, t, r):
    """Section 5.1: prod min(s(x), s(t)), s(x) = (r-1)/(2r) x + (r+1)/2."""

    def s(v):
        return (r - 1) / (2 * r) * np.asarray(v) + (r + 1) / 2

    return np.prod(np.minimum(s(x), s(t)))


def linear(x, t, epsilon):
    """Section 5: <x, t> + epsilon [x = t]."""
    return np.dot(x, t) + epsilon * np.array_equal(x, t)


def gram(f, points):
    """(f(x, t)) over all pairs."""
    return np.array([[f(x, t) for t in points] for x in points])


def laplacian(A):
    """D - A of section 2."""
    A = np.asarray(A, dtype=float) - np.diag(np.diag(A))
    return np.diag(A.sum(axis=1)) - A


def pinv_kernel(A):
    """L^+, the whole graph at once: its null space is that of the components."""
    return scipy.linalg.pinvh(laplacian(A))


def pd_laplacian(A):
    """Section 2: L + (1/m)(1/m)^T / R_L with R_L = max_i (L^+)_ii, of a connected graph."""
    m = len(A)
    return laplacian(A) + np.ones((m, m)) / m**2 / np.diag(pinv_kernel(A)).max()


def pieces_kernel(A):
    """L^+ of a graph in pieces with 4 R_L added within pieces; vertices without an edge are for themselves."""
    K, reached = pinv_kernel(A), np.linalg.matrix_power(np.eye(len(A)) + (np.asarray(A) > 0), len(A)) > 0
    K = K + 4 * np.diag(K).max() * reached
    alone = np.asarray(A).sum(axis=1) == 0
    K[alone] = K[:, alone] = 0
    K[alone, alone] = np.nan if alone.any() else 0
    return K


def energy(K, classes):
    """tr(R^T M R) R_M with M = K^-1, R the one-hot classes, R_M = max K_ii (Theorem 3)."""
    R = np.equal.outer(classes, np.unique(classes)).astype(float)
    return np.trace(R.T @ np.linalg.inv(K) @ R) * np.diag(K).max()


def max_norm_dual(U, seed=0):
    """A lower bound of the max-norm, usually tight: the trace norm of diag(sqrt p) U diag(sqrt q), ascended by BFGS."""
    m, n = U.shape

    def minus_trace_norm(logits):
        p, q = (np.exp(v - v.max()) / np.exp(v - v.max()).sum() for v in (logits[:m], logits[m:]))
        return -np.linalg.svd(np.sqrt(p)[:, None] * U * np.sqrt(q), compute_uv=False).sum()

    start = 0.1 * np.random.default_rng(seed).normal(size=m + n)
    return -scipy.optimize.minimize(minus_trace_norm, start, method="BFGS").fun


def likeness(K, Y):
    """(correlation, agreement) of K with entries Y (n, places; NaN unseen), pair by pair."""
    Z, rows = Y - np.nanmean(Y, axis=0), []
    for i in range(len(Y)):
        for k in range(i):
            common = ~np.isnan(Y[i] * Y[k])
            if common.any():
                equal = (np.sign(Y[i, common]) == np.sign(Y[k, common])).mean()
                rows.append((K[i, k], (Z[i, common] * Z[k, common]).mean(), common.sum(), equal))
    k, alike, weight, equal = np.array(rows).T
    cov = np.cov(np.stack([k, alike]), fweights=weight.astype(int), ddof=0)
    return cov[0, 1] / np.sqrt(cov[0, 0] * cov[1, 1]), np.average(equal, weights=weight)


def diffusion_kernel(A, k, diffusion):
    """Heat exp(diffusion (S / l_1 - I)) of S = D^-1/2 A D^-1/2, D the degrees plus their mean, cut to k eigenvectors."""
    root = 1 / np.sqrt(A.sum(axis=1) + A.sum() / len(A))
    values, vectors = np.linalg.eigh(A * np.outer(root, root))
    values, vectors = values[-k:], vectors[:, -k:]
    return (vectors * np.exp(diffusion * (values / values[-1] - 1))) @ vectors.T
