"""Sums over pairs of observed entries, from a dense table."""

import numpy as np


def pair_sums(X, shift):
    """S = Z'Z, N = M'M, A = Z'M of a table with NaN holes, Z = X - shift where observed and 0 elsewhere."""
    seen = ~np.isnan(X)
    Z, M = np.where(seen, X - shift, 0.0), seen.astype(float)
    return Z.T @ Z, M.T @ M, Z.T @ M
