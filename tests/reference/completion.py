"""Algorithm 1 of the side-information paper as printed, by full eigendecompositions: O(N^3) a trial."""

import numpy as np


def power(S, function):
    values, vectors = np.linalg.eigh(S)
    return (vectors * function(values)) @ vectors.T


def algorithm_1(K_rows, K_cols, pairs, y, *, D, steps, gamma, conservative=False):
    """y_bar of every trial and whether it updated; K = M^+ and N^+, y in {-1, 1}. y_bar = 0 counts as a mistake."""
    m, n = len(K_rows), len(K_cols)
    roots = [power(K, lambda v: np.sqrt(np.maximum(v, 0))) / np.sqrt(2 * K.diagonal().max()) for K in (K_rows, K_cols)]
    log_W = np.log(D / (m + n)) * np.eye(m + n)
    scores, updated = [], []
    for (i, j), label, step in zip(pairs, y, steps, strict=True):
        x = np.concatenate([roots[0][i], roots[1][j]])
        y_bar = x @ power(log_W, np.exp) @ x - 1
        scores.append(y_bar)
        updated.append(label * y_bar <= (0 if conservative else gamma))
        if updated[-1]:
            log_W = log_W + step * label * np.outer(x, x)
    return np.array(scores), np.array(updated)
