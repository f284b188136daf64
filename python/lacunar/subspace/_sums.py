"""Sums over pairs of observed entries of a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacunar._moments import Sums, moved
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_DENSE = 0.05  # density above which zero-filled products beat sparse ones
_CHUNK = 2**22  # numbers of a zero-filled chunk of rows


def column_means(rows: Observed) -> _Floats:
    """Mean (d,) of the observed entries of each column, 0 where there is none. O(nnz)."""
    d = rows.shape[1]
    total = np.bincount(rows.indices, rows.values.astype(np.float64), minlength=d)
    made: _Floats = total / np.maximum(np.bincount(rows.indices, minlength=d), 1)
    return made


def centred(rows: Observed, shift: _Floats) -> Observed:
    """Rows minus the shift, on observed entries only, in float64."""
    return rows.with_values(rows.values.astype(np.float64) - shift[rows.indices])


def pair_sums(rows: Observed, shift: _Floats) -> Sums:
    """S, N, A of rows minus the shift. O(sum n_a^2) sparse, O(n d^2) in products of matrices above a density of .05."""
    n, d = rows.shape
    table = centred(rows, shift).to_scipy()
    mask = rows.with_values(np.ones(rows.nnz)).to_scipy()
    S, N, A = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    dense = rows.nnz > _DENSE * n * d
    step = max(_CHUNK // max(d, 1), 1)
    for start in range(0, n, step):
        z, o = table[start : start + step], mask[start : start + step]
        if dense:
            z, o = z.toarray(), o.toarray()
        for total, made in ((S, z.T @ z), (N, o.T @ o), (A, z.T @ o)):
            total += made if dense else made.toarray()
    entries = rows.row_counts.astype(np.float64)
    return Sums(S, N, A, float(np.sum(entries * (entries - 1))), n)


def added(left: Sums, right: Sums) -> Sums:
    """Sums of both sets of rows; same shift."""
    return Sums(left.S + right.S, left.N + right.N, left.A + right.A, left.nn + right.nn, left.m + right.m)


def added_across(left: Sums, left_shift: _Floats, right: Sums, right_shift: _Floats) -> Sums:
    """Sums of both sets of rows about the left shift. Exact whatever the shifts."""
    return added(left, moved(right, left_shift - right_shift))
