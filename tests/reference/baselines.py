"""mc-1 and mc-b of Goldberg et al. (2010) as printed, rows as samples: dense matrices, full singular value decompositions."""

import numpy as np


def shrink(A, level):
    """S_level(A): singular values less level."""
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    return (U * np.maximum(s - level, 0)) @ Vt


def slopes(Z, b, X, Y, lam, logistic):
    """Gradient in Z = [features, labels] of 1/|Ox| sum (z - x)^2 / 2 + lam/|Oy| sum loss(z + b, y), NaN not observed."""
    d, n_x, n_y = X.shape[1], np.sum(~np.isnan(X)), np.sum(~np.isnan(Y))
    G = np.zeros_like(Z)
    G[:, :d] = np.where(np.isnan(X), 0, Z[:, :d] - X) / n_x
    value = Z[:, d : d + Y.shape[1]] + b
    if logistic:
        sign = 2 * Y - 1
        slope = -sign / (1 + np.exp(sign * value))
    else:
        slope = value - Y
    G[:, d : d + Y.shape[1]] = np.where(np.isnan(Y), 0, slope) * lam / n_y
    return G


def steps(X, Y, lam, logistic):
    """tau_Z and tau_b."""
    n_x, n_y, bound = np.sum(~np.isnan(X)), np.sum(~np.isnan(Y)), 3.8 if logistic else 0.95
    return min(bound * n_y / lam, n_x), bound * n_y / (lam * len(X))


def mc1(X, Y, lam, mus, n_steps, logistic=True):
    """Threshold, then reset the column of ones, n_steps times for every mu; Z = [features, labels, ones]."""
    tau, _ = steps(X, Y, lam, logistic)
    Z = np.zeros((len(X), X.shape[1] + Y.shape[1] + 1))
    Z[:, -1] = 1
    for mu in mus:
        for _ in range(n_steps):
            A = Z - tau * slopes(Z, 0.0, X, Y, lam, logistic)
            Z = shrink(A, tau * mu)
            Z[:, -1] = 1
    return Z


def mcb(X, Y, lam, mus, n_steps, logistic=True):
    """Gradient steps on b beside the matrix; Z = [features, labels]."""
    tau_z, tau_b = steps(X, Y, lam, logistic)
    Z, b = np.zeros((len(X), X.shape[1] + Y.shape[1])), np.zeros(Y.shape[1])
    for mu in mus:
        for _ in range(n_steps):
            G = slopes(Z, b, X, Y, lam, logistic)
            b = b - tau_b * G[:, X.shape[1] :].sum(axis=0)
            Z = shrink(Z - tau_z * G, tau_z * mu)
    return Z, b
