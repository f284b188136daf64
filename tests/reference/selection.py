"""Kernel ridge regression with the mean of its rows taken off first, refitted for everything that is left out."""

import numpy as np

from reference.karma import karma_gram
from reference.ridge import ridge_coef


def radial_gram(z, o, other_z, other_o, length, mask, laplace):
    """exp(-D / (2 l^2)) or exp(-sqrt(D) / l), D the squared distance between the vectors (z, sqrt(mask) o)."""
    x, y = (np.column_stack([a, np.sqrt(mask) * b]) for a, b in ((z, o), (other_z, other_o)))
    D = ((x[:, None] - y) ** 2).sum(axis=2)
    return np.exp(-np.sqrt(D) / length) if laplace else np.exp(-D / (2 * length**2))


def form_gram(X, Y, form):
    """A settled KARMA kernel, from Theorem 4; X, Y with NaN."""

    def raw(A, B):
        return karma_gram(A, B, form.gamma, form.count_scale, form.constant, form.indicators) / form.trace

    K = raw(X, Y)
    if form.cosine:
        K = K / np.sqrt(np.outer(*([raw(a[None], a[None])[0, 0] for a in A] for A in (X, Y))))
    return ((K + form.coef0) / (1 + form.coef0)) ** form.degree if form.degree > 1 else K


def held_out(K, Y, C, folds, weight=None):
    """Every fold predicted by a fit to the other rows."""
    w = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    made = np.empty_like(Y)
    for fold in folds:
        rest = w.copy()
        rest[fold] = 0
        mean = np.average(Y, axis=0, weights=rest) if rest.any() else np.zeros(Y.shape[1])
        made[fold] = mean + K[fold] @ ridge_coef(K, Y - mean, C, rest)
    return made


def landmark_held_out(Kmm, Knm, Y, C, folds, ridge, weight):
    """min sum w (Knm v - y)^2 + v' (Kmm / (2 C) + ridge) v, on the rows outside every fold."""
    made = np.empty_like(Y)
    for fold in folds:
        rest = weight.copy()
        rest[fold] = 0
        mean = np.average(Y, axis=0, weights=rest)
        system = Knm.T @ (rest[:, None] * Knm) + Kmm / (2 * C) + ridge * np.eye(len(Kmm))
        made[fold] = mean + Knm[fold] @ np.linalg.solve(system, Knm.T @ (rest[:, None] * (Y - mean)))
    return made
