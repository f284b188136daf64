"""Slow twin of the comparison of masks: every comparison from its definition, one column or pair at a time."""

import numpy as np


def normal(difference, pooled, plus, minus):
    """z of a difference of means of groups drawn from `pooled`; `plus` and `minus` are sizes of the groups whose means are added and subtracted."""
    mean = np.mean(pooled)
    variance = np.mean((pooled - mean) ** 2)
    if variance == 0:
        return 0.0
    skewness = np.mean((pooled - mean) ** 3) / variance**1.5
    return corrected(difference, variance, skewness, plus, minus)


def corrected(difference, variance, skewness, plus, minus):
    inverse = sum(1 / k for k in (*plus, *minus))
    x = difference / np.sqrt(variance * inverse)
    g = skewness * (sum(1 / k**2 for k in plus) - sum(1 / k**2 for k in minus)) / inverse**1.5 / 6 * np.sign(x)
    if g <= 0:
        return x
    roots = np.roots([g, 1, -g - abs(x)])  # |x| = z + g (z^2 - 1)
    return np.sign(x) * min(abs(x), roots.max())


def share(new, old):
    """z of the difference of two shares of true answers."""
    m, n = len(new), len(old)
    p = (np.sum(new) + np.sum(old) + 0.5) / (m + n + 1)
    return corrected(np.mean(new) - np.mean(old), p * (1 - p), (1 - 2 * p) / np.sqrt(p * (1 - p)), (m,), (n,))


def scores(T, training, knots=32):
    """Mid-ranks of observed values among `knots` quantiles of training's, from -1 to 1."""
    out = np.full(T.shape, np.nan)
    for j, column in enumerate(training.T):
        seen = np.sort(column[~np.isnan(column)])
        quantiles = [seen[int(np.ceil((k + 0.5) / knots * len(seen))) - 1] for k in range(knots)]
        for i in np.flatnonzero(~np.isnan(T[:, j])):
            out[i, j] = np.mean(np.sign(T[i, j] - quantiles))
    return out


def compared(T, training, limits):
    """All z: shares, rows, pairs, values, beside."""
    new, old = np.isnan(T), np.isnan(training)
    t = T.shape[1]
    a, b = scores(T, training), scores(training, training)
    shares = np.array([share(new[:, j], old[:, j]) for j in range(t)])
    rows = np.array([share(new.sum(axis=1) > k, old.sum(axis=1) > k) for k in limits])
    pairs, values, beside = np.zeros((t, t)), np.zeros(t), np.zeros((t, t))
    for i in range(t):
        mine, theirs = a[~new[:, i], i], b[~old[:, i], i]
        pooled = np.r_[mine, theirs]
        if min(len(mine), len(theirs)) >= 10 and max(new[:, i].mean(), old[:, i].mean()) >= 0.01:
            values[i] = normal(mine.mean() - theirs.mean(), pooled, (len(mine),), (len(theirs),))
        for j in range(t):
            if i < j:
                pairs[i, j] = share(new[:, i] & new[:, j], old[:, i] & old[:, j])
            groups = [x[~m[:, i] & (m[:, j] == lacks), i] for x, m in ((a, new), (b, old)) for lacks in (True, False)]
            if i != j and min(map(len, groups)) >= 10:
                difference = groups[0].mean() - groups[1].mean() - (groups[2].mean() - groups[3].mean())
                sizes = [len(group) for group in groups]
                beside[i, j] = normal(difference, pooled, (sizes[0], sizes[3]), (sizes[1], sizes[2]))
    return shares, rows, pairs, values, beside
