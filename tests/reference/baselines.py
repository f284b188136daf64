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


def solution(X, Y, lam, mu, logistic, ones):
    """The least of the objective to rounding: (Z, b), by full decompositions with momentum that starts afresh where it points back.

    The column of ones is observed with weight 1 / tau_Z, the problem whose steps `mc1` makes.
    """
    (tau, tau_b), d = steps(X, Y, lam, logistic), X.shape[1]
    step, bias_step = (tau, 0.0) if ones else (tau / 2, tau_b / 2)
    Z, b, t, calm = np.zeros((len(X), d + Y.shape[1] + ones)), np.zeros(Y.shape[1]), 1.0, 0
    P, c = Z, b
    while calm < 200:
        G = slopes(P, c, X, Y, lam, logistic)
        if ones:
            G[:, -1] = (P[:, -1] - 1) / tau
        new, new_b = shrink(P - step * G, step * mu), c - bias_step * G[:, d : d + Y.shape[1]].sum(axis=0)
        if np.sum((P - new) * (new - Z)) + (c - new_b) @ (new_b - b) > 0:
            t = 1.0
        calm = calm + 1 if np.linalg.norm(new - Z) < 4e-15 * max(np.linalg.norm(Z), 1) else 0
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        share, t = (t - 1) / after, after
        P, c, Z, b = new + share * (new - Z), new_b + share * (new_b - b), new, new_b
    return Z, b


def hinge_box(K, y, C):
    """argmax_a sum a - a y K y a / 2 over 0 <= a <= C, by projected coordinate steps until nothing moves."""
    Q, a = np.outer(y, y) * K, np.zeros(len(y))
    for _ in range(200_000):
        before = a.copy()
        for i in np.flatnonzero(np.diag(Q) > 0):
            a[i] = np.clip(a[i] + (1 - Q[i] @ a) / Q[i, i], 0, C)
        if np.abs(a - before).max() < 1e-12 * C:
            break
    return a


def geom(X, y, C, n_rounds, phi, least=1e-3):
    """Chechik et al. (2008): alternate the support vector machine of x_i / s_i and s_i = ||w^(i)|| / ||w||.

    `phi(x)` are the features of a row whose absent entries are 0; w^(i) keeps the features that the columns of i can make.
    """
    seen = ~np.isnan(X)
    F = np.array([phi(np.nan_to_num(x)) for x in X])
    can = np.array([phi(s.astype(float)) != 0 for s in seen])
    s = np.ones(len(X))
    for _ in range(n_rounds):
        scaled = F / s[:, None]
        w = scaled.T @ (hinge_box(scaled @ scaled.T, y, C) * y)
        s = np.maximum(np.linalg.norm(can * w, axis=1) / np.linalg.norm(w), least)
    return w, s
