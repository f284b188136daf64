"""Norms of a classifier in the subspaces that rows observe."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.observed import Observed

_Floats = NDArray[np.float64]


def linear_norms(rows: Observed, support: Observed, dual: _Floats, constant: float) -> tuple[_Floats, float]:
    """||w^(i)|| (n,), over the observed columns of every row and the constant one, and ||w||. O(nnz)."""
    squares = np.square(support.to_scipy().T @ dual)
    always = (constant * float(dual.sum())) ** 2
    return np.sqrt(_pattern(rows) @ squares + always), float(np.sqrt(squares.sum() + always))


def poly_norms(rows: Observed, support: Observed, dual: _Floats, constant: float, degree: int) -> tuple[_Floats, float]:
    """The same for w = sum dual_j phi(x_j) under (x.x' + constant^2)^degree.

    What is left of w in a subspace is the same sum over the rows of `support` cut to its columns: sqrt(dual K^(i) dual).
    O(n_support^2 o) for every pattern of o observed columns that occurs.
    """

    def norm(columns: sp.csc_array) -> float:
        gram = (columns @ columns.T).toarray()
        return float(np.sqrt(max(dual @ (gram + constant**2) ** degree @ dual, 0.0)))

    table, known, made = support.to_scipy().tocsc(), {}, np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        seen = rows.indices[rows.indptr[i] : rows.indptr[i + 1]]
        key = seen.tobytes()
        if key not in known:
            known[key] = norm(table[:, seen])
        made[i] = known[key]
    return made, norm(table)


def _pattern(rows: Observed) -> sp.csr_array:
    """1 where observed."""
    return sp.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
