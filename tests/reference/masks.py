"""Slow twin of the comparison of masks: every comparison from its definition, one column or pair at a time."""

import itertools

import numpy as np


def z_of_means(new, old, variance):
    return (np.mean(new) - np.mean(old)) / np.sqrt(variance * (1 / len(new) + 1 / len(old)))


def share(new, old):
    """z of the difference of two shares of true answers."""
    p = (np.sum(new) + np.sum(old) + 0.5) / (len(new) + len(old) + 1)
    return z_of_means(new, old, p * (1 - p))


def pair(new, old):
    """z of the difference of the covariances of two masks (rows, 2); the variance is that of the products of centred masks of all rows."""
    every = np.vstack([new, old]).astype(float)
    products = np.prod(every - every.mean(axis=0), axis=1)
    difference = np.cov(new.T.astype(float), bias=True)[0, 1] - np.cov(old.T.astype(float), bias=True)[0, 1]
    variance = products.var() + 0.5 / (len(every) + 1)
    return difference / np.sqrt(variance * (1 / len(new) + 1 / len(old)))


def scores(T, training, knots=32):
    """Mid-ranks of observed values among `knots` quantiles of training's, from -1 to 1."""
    out = np.full(T.shape, np.nan)
    for j, column in enumerate(training.T):
        seen = np.sort(column[~np.isnan(column)])
        quantiles = [seen[int(np.ceil((k + 0.5) / knots * len(seen))) - 1] for k in range(knots)]
        for i in np.flatnonzero(~np.isnan(T[:, j])):
            out[i, j] = np.mean(np.sign(T[i, j] - quantiles))
    return out


def compared(T, training):
    """All z: shares, pairs, values."""
    new, old = np.isnan(T), np.isnan(training)
    t = T.shape[1]
    a, b = scores(T, training), scores(training, training)
    shares = np.array([share(new[:, j], old[:, j]) for j in range(t)])
    pairs, values = np.zeros((t, t)), np.zeros(t)
    for i in range(t):
        mine, theirs = a[~new[:, i], i], b[~old[:, i], i]
        if min(len(mine), len(theirs)) >= 10 and max(new[:, i].mean(), old[:, i].mean()) >= 0.01:
            values[i] = z_of_means(mine, theirs, np.r_[mine, theirs].var())
        for j in range(i + 1, t):
            pairs[i, j] = pair(new[:, [i, j]], old[:, [i, j]])
    return shares, pairs, values


def has_unseen_pair(T, training):
    """Whether each row of T (m, t) has a pair of columns in a state that is as frequent in training as a tenth of what 20 rows or more would be by chance."""
    n, t = training.shape
    answers = []
    for row in np.isnan(T):
        unseen = False
        for j, k in itertools.permutations(range(t), 2):
            first, second = (np.isnan(training[:, column]) == row[column] for column in (j, k))
            expected = first.mean() * second.mean() * n
            unseen |= expected >= 20 and (first & second).sum() <= 0.1 * expected
        answers.append(unseen)
    return answers
