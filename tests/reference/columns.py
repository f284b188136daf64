"""Weighted moments of columns over their observed entries, from a dense table."""

import numpy as np


def column_moments(X, weight):
    """Total weight, mean and variance of every column of a table with NaN holes; 0 for a column without entries."""
    seen = ~np.isnan(X)
    total = (weight[:, None] * seen).sum(axis=0)
    known = np.where(total > 0, total, 1.0)
    mean = (weight[:, None] * np.where(seen, X, 0)).sum(axis=0) / known
    return total, mean, (weight[:, None] * np.where(seen, X - mean, 0) ** 2).sum(axis=0) / known
