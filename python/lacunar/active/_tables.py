"""Sums over rows with few entries each, and covariances from them. All tables are (d, d) float64 and add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def empty_tables(d: int) -> dict[str, Floats]:
    """S_ij = sum x_i x_j, N_ij = rows with both, A_ij = sum x_i over rows that have j, too. N's diagonal counts entries."""
    return {name: np.zeros((d, d)) for name in ("S", "N", "A")}


def add_rows(tables: dict[str, Floats], indices: Ints, values: Floats) -> None:
    """Add rows: indices (n, r), distinct in a row, -1 for none; values (n, r), NaN where refused. O(n r^2)."""
    seen = (indices >= 0) & ~np.isnan(values)
    x = np.where(seen, values, 0.0)
    both = seen[:, :, None] & seen[:, None, :]
    cell = (indices[:, :, None] * len(tables["S"]) + indices[:, None, :])[both]
    np.add.at(tables["N"].reshape(-1), cell, 1.0)
    np.add.at(tables["S"].reshape(-1), cell, (x[:, :, None] * x[:, None, :])[both])
    np.add.at(tables["A"].reshape(-1), cell, np.broadcast_to(x[:, :, None], both.shape)[both])


def means(tables: dict[str, Floats]) -> Floats:
    """Mean (d,) of each attribute over the rows that have it; 0 where none has."""
    mean: Floats = np.diag(tables["A"]) / np.maximum(np.diag(tables["N"]), 1)
    return mean


def second_moment(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """S / N (d, d), `pseudo_count` added to the counts off the diagonal; 0 where no row has both."""
    N = tables["N"] + pseudo_count * (1 - np.eye(len(tables["N"])))
    return np.divide(tables["S"], N, out=np.zeros_like(N), where=N > 0)


def covariance(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """Covariance (d, d) centred by available cases, exactly unbiased given which entries were seen.

    The sums are moved to the means exactly, R = S - D_i A_ji - D_j A_ij + N_ij D_i D_j, and divided by
    N_ij (1 - 1/n_i - 1/n_j + N_ij / (n_i n_j)), which is n_i - 1 on the diagonal. Entries without joint rows are 0.
    """
    N, A, D = tables["N"], tables["A"], means(tables)
    moved = D[:, None] * A.T
    R = tables["S"] - moved - moved.T + N * np.outer(D, D)
    n = np.maximum(np.diag(N), 1)
    factor = 1 - 1 / n[:, None] - 1 / n + N / np.outer(n, n)
    divisor = (N + pseudo_count * (1 - np.eye(len(N)))) * factor
    usable = (N > 0) & (factor > 1e-12)
    made: Floats = np.divide(R, divisor, out=np.zeros_like(R), where=usable)
    return made


def designed_moment(tables: dict[str, Floats], m: int, single: float, pair: float) -> Floats:
    """Horvitz-Thompson: S_ij / (m pi_ij), S_ii / (m pi_i); unbiased for inclusion probabilities known in advance."""
    made = tables["S"] / (max(m, 1) * pair)
    np.fill_diagonal(made, np.diag(tables["S"]) / (max(m, 1) * single))
    return made
