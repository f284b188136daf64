"""Chained equations and Rubin's rules from the formulas of van Buuren (2018) and Barnard and Rubin (1999), in loops."""

import numpy as np
from scipy.optimize import minimize


def least_squares(X, y, weight=None):
    """Coefficients, their inverse information and the residual sum of squares."""
    w = np.ones(len(y)) if weight is None else weight
    information = (X * w[:, None]).T @ X
    coef = np.linalg.solve(information, (X * w[:, None]).T @ y)
    return coef, np.linalg.inv(information), np.sum(w * (y - X @ coef) ** 2)


def nearest_rows(fits, target, k):
    """The k positions whose fits are nearest to one number; of equally near ones any."""
    return set(np.argsort(np.abs(fits - target), kind="stable")[:k].tolist())


def place_of_few(ascending, target, uniform, k, reach):
    """The place that a uniform number picks of the k nearest, or of those within reach where not all are; and whether not all are."""
    near = sorted(range(len(ascending)), key=lambda i: abs(ascending[i] - target))[:k]
    within = sorted(i for i in near if abs(ascending[i] - target) <= reach) or near[:1]
    return within[int(uniform * len(within))], len(within) < k or abs(ascending[near[-1]] - target) > reach


def donor_of_few(fits, target, k, reach, rng):
    """Of a bootstrap of the positions, one of the k nearest that are within reach, or the nearest."""
    sample = rng.integers(len(fits), size=len(fits))
    near = sorted(sample, key=lambda i: abs(fits[i] - target))[:k]
    return rng.choice([i for i in near if abs(fits[i] - target) <= reach] or near[:1])


def log_posterior(theta, X, places, k, precision, intercept):
    """Multinomial logistic with a normal prior, level 0 without coefficients."""
    coef = np.vstack([np.zeros(X.shape[1]), theta.reshape(k - 1, -1)])
    scores = X @ coef.T
    log_likelihood = np.sum(scores[np.arange(len(X)), places] - np.log(np.exp(scores).sum(axis=1)))
    prior = np.full((k - 1, X.shape[1]), precision)
    prior[:, 0] = intercept
    return log_likelihood - 0.5 * np.sum(prior * coef[1:] ** 2)


def multinomial_mode(X, places, k, precision=1 / 2.5**2, intercept=1e-4):
    """The mode by BFGS."""
    start = np.zeros((k - 1) * X.shape[1])
    best = minimize(lambda t: -log_posterior(t, X, places, k, precision, intercept), start, options={"gtol": 1e-6})
    return best.x.reshape(k - 1, -1)


def odds_log_likelihood(theta, X, places, k):
    """Proportional odds: P(level <= j) = logistic(cut_j - x b)."""
    total = 0.0
    for row, place in zip(X, places, strict=True):
        below = [0.0, *(1 / (1 + np.exp(-(cut - row @ theta[k - 1 :]))) for cut in theta[: k - 1]), 1.0]
        total += np.log(below[place + 1] - below[place])
    return total


def cox_derivatives(A, time, event, weight, coef):
    """Slope and information of the partial likelihood with Breslow's ties, one event at a time."""
    slope, information = np.zeros(len(coef)), np.zeros((len(coef), len(coef)))
    for i in np.flatnonzero(event):
        at_risk = time >= time[i]
        risk = weight[at_risk] * np.exp(A[at_risk] @ coef)
        mean = risk @ A[at_risk] / risk.sum()
        apart = A[at_risk] - mean
        slope += weight[i] * (A[i] - mean)
        information += weight[i] * (apart * risk[:, None]).T @ apart / risk.sum()
    return slope, information


def breslow(A, time, event, weight, coef):
    """Cumulative hazard of every row at its time."""
    steps = np.zeros(len(time))
    for i in np.flatnonzero(event):
        at_risk = time >= time[i]
        steps[i] = weight[i] / np.sum(weight[at_risk] * np.exp(A[at_risk] @ coef))
    return np.array([steps[time <= t].sum() for t in time])


def rubin(estimates, variances, complete):
    """Pooled estimate, standard error, degrees of freedom, fraction missing and relative increase of one coefficient."""
    m, mean, within = len(estimates), np.mean(estimates), np.mean(variances)
    between = sum((e - mean) ** 2 for e in estimates) / (m - 1)
    total = within + (1 + 1 / m) * between
    share = (1 + 1 / m) * between / total
    old, observed = (m - 1) / share**2, (complete + 1) / (complete + 3) * complete * (1 - share)
    df = old * observed / (old + observed)
    increase = (1 + 1 / m) * between / within
    return mean, np.sqrt(total), df, (increase + 2 / (df + 3)) / (increase + 1), increase
