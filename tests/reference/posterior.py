"""The Gaussian posterior with self-masking as Le Morvan et al. (2020) write it, row by row on full covariances."""

import numpy as np


def bayes_completion(x, mean, cov, center=None, variance=None):
    """E[x | x_O, mask] of x ~ N(mean, cov), entry j missing with probability ~ exp(-(x_j - center_j)^2 / (2 variance_j)): proposition 3.2."""
    m = np.isnan(x)
    o, made = ~m, x.copy()
    gain = np.linalg.solve(cov[np.ix_(o, o)], cov[np.ix_(o, m)]).T
    expected = mean[m] + gain @ (x[o] - mean[o])
    if center is not None:
        left = cov[np.ix_(m, m)] - gain @ cov[np.ix_(o, m)]
        expected = expected + left @ np.linalg.solve(left + np.diag(variance[m]), center[m] - expected)
    made[m] = expected
    return made


def log_likelihood(X, mean, cov, height, center, variance):
    """log p(x_O, mask), averaged over rows; columns whose variance is NaN are missing at random."""
    total = 0.0
    for x in X:
        m = np.isnan(x)
        own = m & ~np.isnan(variance)
        both = np.concatenate([np.flatnonzero(~m), np.flatnonzero(own)])
        values = np.concatenate([x[~m], center[own]])
        noise = np.concatenate([np.zeros((~m).sum()), variance[own]])
        C = cov[np.ix_(both, both)] + np.diag(noise)
        away = values - mean[both]
        total -= 0.5 * (np.linalg.slogdet(2 * np.pi * C)[1] + away @ np.linalg.solve(C, away))
        total += np.sum(np.log(height[own]) + 0.5 * np.log(2 * np.pi * variance[own]))
        s = ~m & ~np.isnan(variance)
        total += np.sum(np.log1p(-height[s] * np.exp(-((x[s] - center[s]) ** 2) / (2 * variance[s]))))
    return total / len(X)


def ridge_without(F, Y, out, weight, penalty):
    """Predictions of rows `out` by a ridge on the others, columns standardised over all rows, intercept free."""
    mean = np.average(F, axis=0, weights=weight)
    scale = np.sqrt(np.average((F - mean) ** 2, axis=0, weights=weight))
    A = np.column_stack([(F - mean) / np.where(scale > 1e-9, scale, 1), np.ones(len(F))])
    kept = np.setdiff1d(np.arange(len(F)), out)
    W = np.diag(weight[kept])
    added = np.diag(np.append(np.full(F.shape[1], penalty), 1e-8))
    return A[out] @ np.linalg.solve(A[kept].T @ W @ A[kept] + added, A[kept].T @ W @ Y[kept])
