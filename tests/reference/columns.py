"""Weighted moments of columns over their observed entries, from a dense table."""

import numpy as np


def column_moments(X, weight):
    """Total weight, mean and variance of every column of a table with NaN holes; 0 for a column without entries."""
    seen = ~np.isnan(X)
    total = (weight[:, None] * seen).sum(axis=0)
    known = np.where(total > 0, total, 1.0)
    mean = (weight[:, None] * np.where(seen, X, 0)).sum(axis=0) / known
    return total, mean, (weight[:, None] * np.where(seen, X - mean, 0) ** 2).sum(axis=0) / known


def reach(X, weight):
    """How many standard deviations from its mean an entry of every column of a table with NaN holes counts at most."""
    answers = []
    for column in X.T:
        weights = [w for value, w in zip(column, weight, strict=True) if not np.isnan(value) and w > 0]
        entries = max(sum(weights), len(weights))
        answers.append(max(entries - 1, 0) if entries < 30 else 1e150)
    return np.array(answers)
