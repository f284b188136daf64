"""POPCA by its formulas, one pair of columns at a time."""

import numpy as np


def algorithm1(X, p, k):
    """Gonen et al., eq. (4) and Algorithm 1: X (n, d) with NaN, one probability p; (d, d) estimate and top k rows."""
    Z, n = np.nan_to_num(X), len(X)
    C = Z.T @ Z / (n * p**2)
    np.fill_diagonal(C, np.sum(Z**2, axis=0) / (n * p))
    return C, np.linalg.eigh(C)[1][:, ::-1][:, :k].T


def available(X):
    """Covariance by available cases: joint sums about the columns' own means, unbiased given what was seen."""
    seen, d = ~np.isnan(X), X.shape[1]
    n, mean = seen.sum(axis=0), np.nanmean(X, axis=0)
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            both = seen[:, i] & seen[:, j]
            N = both.sum()
            R = np.sum((X[both, i] - mean[i]) * (X[both, j] - mean[j]))
            C[i, j] = R / (n[i] - 1) if i == j else R / (N * (1 - 1 / n[i] - 1 / n[j] + N / (n[i] * n[j])))
    return C


def ridge_code(x, mean, V, values, noise):
    """(V_o'V_o + s2 diag(1 / (l - s2)))^-1 V_o'(x_o - mean_o) of one row; V (d, k)."""
    seen = ~np.isnan(x)
    inner = V[seen].T @ V[seen] + noise * np.diag(1 / (values - noise))
    return np.linalg.solve(inner, V[seen].T @ (x - mean)[seen]), noise * np.linalg.inv(inner)


def expected(X, weights, p=None, pseudo=0.0, center=True):
    """Covariance (d, d) by expected joint counts, one pair at a time: eq. (4) and its kin, about column means where centred."""
    seen, (m, d) = ~np.isnan(X), X.shape
    n, Z = seen.sum(axis=0), np.nan_to_num(X - (np.nanmean(X, axis=0) if center else 0.0))
    o = seen.sum(axis=1)
    kappa = m * np.sum(o * (o - 1)) / (n.sum() ** 2 - np.sum(n**2)) if weights == "kappa" else 1.0
    rate = {"known": np.broadcast_to(p or 0.0, d), "global": np.full(d, n.sum() / (m * d))}.get(weights, n / m)
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            count = m * rate[i] if i == j else kappa * m * rate[i] * rate[j] + pseudo
            lost = 1 - 1 / n[i] if i == j else (1 - 1 / n[i]) * (1 - 1 / n[j]) * m / (m - 1)
            C[i, j] = Z[:, i] @ Z[:, j] / (count * (lost if center else 1.0))
    return C


def variational_step(X, basis, spread, mean, noise, prior, centre=True):
    """One step of variational PCA with holes (Ilin and Raiko 2010, section 3.3), a row and a column at a time.

    basis (d, k), spread (d, k, k), prior (k,); the mean of a column is a parameter. Afterwards codes are made white and the
    basis orthogonal. Returns the five parameters.
    """
    seen, (d, k) = ~np.isnan(X), basis.shape
    codes, spreads = np.zeros((len(X), k)), np.zeros((len(X), k, k))
    for i, row in enumerate(X):
        o = seen[i]
        second = basis[o].T @ basis[o] + spread[o].sum(axis=0)
        inverse = np.linalg.inv(second + noise * np.eye(k))
        codes[i], spreads[i] = inverse @ basis[o].T @ (row[o] - mean[o]), noise * inverse
    new, new_spread, new_mean, left = np.zeros((d, k)), np.zeros((d, k, k)), mean.copy(), 0.0
    for j in range(d):
        o, free = seen[:, j], k + centre
        u = np.column_stack([codes[o], np.ones(o.sum())])[:, :free]
        gram = u.T @ u
        gram[:k, :k] += spreads[o].sum(axis=0)
        ridge = np.zeros(free)
        ridge[:k] = noise / prior
        inverse = np.linalg.inv(gram + np.diag(ridge))
        w = inverse @ u.T @ X[o, j]
        new[j], new_spread[j] = w[:k], noise * inverse[:k, :k]
        new_mean[j] = w[k] if centre else mean[j]
        left += np.sum((X[o, j] - u @ w) ** 2) + np.sum(spreads[o] * np.outer(w[:k], w[:k]))
        left += np.sum(new_spread[j] * gram[:k, :k])
    used = seen.any(axis=1)
    moment = (codes[used].T @ codes[used] + spreads[used].sum(axis=0)) / used.sum()
    root = np.linalg.cholesky(moment)
    turn = root @ np.linalg.svd(new @ root)[2].T
    new, new_spread = new @ turn, np.array([turn.T @ each @ turn for each in new_spread])
    prior = np.mean(new**2 + np.array([np.diag(each) for each in new_spread]), axis=0)
    return new, new_spread, new_mean, left / seen.sum(), prior


def expected_error(left, right, rank, masks, unit):
    """Mean squared error, in `unit`, of missing entries that the model of `left` with `rank` components predicts, for rows of covariance `right`."""
    values, vectors = np.linalg.eigh(left)
    values, vectors = values[::-1], vectors[:, ::-1]
    noise = values[rank:].mean()
    model = (vectors[:, :rank] * (values[:rank] - noise)) @ vectors[:, :rank].T + noise * np.eye(len(left))
    errors = []
    for seen in masks:
        for j in np.flatnonzero(~seen):
            w = np.linalg.solve(model[np.ix_(seen, seen)], model[seen, j])
            errors.append((right[j, j] - 2 * w @ right[seen, j] + w @ right[np.ix_(seen, seen)] @ w) / unit[j])
    return np.mean(errors)


def evidence(X, basis, covariances, mean, noise, prior):
    """Bound of the log likelihood of rows, row by row and column by column, up to a constant."""
    k, bound = len(prior), 0.0
    for row in X:
        seen = ~np.isnan(row)
        x, v = (row - mean)[seen], basis[seen]
        precision = np.eye(k) + (v.T @ v + covariances[seen].sum(axis=0)) / noise
        bound += 0.5 * (v.T @ x) @ np.linalg.solve(precision, v.T @ x) / noise**2 - 0.5 * x @ x / noise
        bound -= 0.5 * (len(x) * np.log(noise) + np.log(np.linalg.det(precision)))
    for v, covariance in zip(basis, covariances, strict=True):
        if covariance.any():
            bound -= 0.5 * np.sum((v**2 + np.diag(covariance)) / prior + np.log(prior))
            bound += 0.5 * np.log(np.linalg.det(covariance))
    return bound
