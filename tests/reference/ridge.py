"""Kernel ridge regression from its definition: one linear system a fit."""

import numpy as np


def ridge_coef(K, Y, C, weight=None):
    """(K + diag(1 / (2 C w))) coef = Y over the rows of positive weight, 0 elsewhere."""
    w = np.ones(len(K)) if weight is None else np.asarray(weight, dtype=float)
    on = np.flatnonzero(w > 0)
    coef = np.zeros_like(Y, dtype=float)
    coef[on] = np.linalg.solve(K[np.ix_(on, on)] + np.diag(1 / (2 * C * w[on])), Y[on])
    return coef
