"""The joint Gaussian of columns and targets, row by row."""

import numpy as np


def conditional(x, mean, cov):
    """E[x | x_o] and Cov(x_m | x_o) of one row, the target last and missing."""
    m, o = np.isnan(x), ~np.isnan(x)
    gain = np.linalg.solve(cov[np.ix_(o, o)], cov[np.ix_(o, m)]).T
    made = x.copy()
    made[m] = mean[m] + gain @ (x[o] - mean[o])
    return made, cov[np.ix_(m, m)] - gain @ cov[np.ix_(o, m)]


def em(T, steps, shrinkage):
    """Plain EM of Little and Rubin from independent columns."""
    n, p = T.shape
    mean, cov = np.zeros(p), np.eye(p)
    for _ in range(steps):
        rows, spread = np.empty_like(T), np.zeros((p, p))
        for i, x in enumerate(T):
            rows[i], left = conditional(x, mean, cov)
            m = np.isnan(x)
            spread[np.ix_(m, m)] += left
        mean = rows.mean(axis=0)
        cov = ((rows - mean).T @ (rows - mean) + spread + shrinkage * np.eye(p)) / (n + shrinkage)
    return mean, cov


def best_shrinkage(T, shrinkages, steps=20):
    """The shrinkage whose models of two folds predict the targets of the third, the last column, with the least squared error."""
    fold, losses = np.arange(len(T)) % 3, []
    for shrinkage in shrinkages:
        models = [em(T[fold != k], steps, shrinkage) for k in range(3)]
        hidden = np.column_stack([T[:, :-1], np.full(len(T), np.nan)])
        made = np.array([conditional(x, *models[k])[0][-1] for k, x in zip(fold, hidden, strict=True)])
        losses.append(np.sum((made - T[:, -1]) ** 2))
    return shrinkages[int(np.argmin(losses))]
