"""Sums over rows with few entries each, and covariances from them. All tables are (d, d) float64 and add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacunar import _moments

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


class Cells:
    """Copies of the cells that rows with the attributes `drawn` (n, r) can change, of tables (d, d): O(n r^2)."""

    def __init__(self, tables: list[Floats], drawn: Ints) -> None:
        d = len(tables[0])
        self._at = (drawn[:, :, None] * d + drawn[:, None, :]).ravel()
        self._kept = [(table, table.reshape(-1)[self._at]) for table in tables]

    def restore(self) -> None:
        """The tables as they were."""
        for table, cells in self._kept:
            table.reshape(-1)[self._at] = cells


def means(tables: dict[str, Floats]) -> Floats:
    """Mean (d,) of each attribute over the rows that have it; 0 where none has."""
    mean: Floats = np.diag(tables["A"]) / np.maximum(np.diag(tables["N"]), 1)
    return mean


def second_moment(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """S / N (d, d), `pseudo_count` added to the counts off the diagonal; 0 where no row has both."""
    return _moments.second_moment(_sums(tables), "pairwise", pseudo_count=pseudo_count)


def covariance(tables: dict[str, Floats], pseudo_count: float = 0.0) -> Floats:
    """Covariance (d, d) centred by available cases, exactly unbiased given which entries were seen."""
    return _moments.covariance(_sums(tables), "pairwise", pseudo_count=pseudo_count)


def _sums(tables: dict[str, Floats]) -> _moments.Sums:
    """The tables as weights by joint counts see them: what rows have in all does not matter to these."""
    return _moments.Sums(tables["S"], tables["N"], tables["A"], nn=0.0, paired=0, m=0)


def designed_moment(tables: dict[str, Floats], m: int, single: float, pair: float) -> Floats:
    """Horvitz-Thompson: S_ij / (m pi_ij), S_ii / (m pi_i); unbiased for inclusion probabilities known in advance."""
    made = tables["S"] / (max(m, 1) * pair)
    np.fill_diagonal(made, np.diag(tables["S"]) / (max(m, 1) * single))
    return made
