"""Kernel ridge regression from its definition: one linear system a fit, n fits for leave-one-out."""

import numpy as np


def ridge_coef(K, Y, C, weight=None):
    """(K + diag(1 / (2 C w))) coef = Y over the rows of positive weight, 0 elsewhere."""
    w = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    on = np.flatnonzero(w > 0)
    coef = np.zeros_like(Y, dtype=float)
    coef[on] = np.linalg.solve(K[np.ix_(on, on)] + np.diag(1 / (2 * C * w[on])), Y[on])
    return coef


def leave_one_out(K, Y, C, weight=None):
    w = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    return np.stack([K[i] @ ridge_coef(K, Y, C, np.where(np.arange(len(K)) == i, 0, w)) for i in range(len(K))])
