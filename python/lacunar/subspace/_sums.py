"""Sums over pairs of observed entries of a row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._moments import Sums, moved
from lacunar._threads import thread_count
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_DENSE = 0.2  # density above which zero-filled products beat scattering
_STRIPE = 2**21  # bytes of the table rows that a thread keeps in its cache
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


def pair_sums(rows: Observed, shift: _Floats, n_jobs: int | None = None) -> Sums:
    """S, N, A of rows minus the shift, in float64; the same bits for any number of threads.

    O(sum n_a^2) by scattering entries into stripes of the tables, O(n d^2) in products of matrices above a density of .2.
    """
    n, d = rows.shape
    entries = rows.row_counts.astype(np.float64)
    tables = _products(rows, shift) if rows.nnz > _DENSE * n * d else _scattered(rows, shift, n_jobs)
    return Sums(*tables, float(np.sum(entries * (entries - 1))), int(np.sum(entries > 1)), n)


def _scattered(rows: Observed, shift: _Floats, n_jobs: int | None) -> tuple[_Floats, _Floats, _Floats]:
    d = rows.shape[1]
    S, N, A = np.zeros((d, d)), np.zeros((d, d), np.int64), np.zeros((d, d))
    stripe = max(_STRIPE // (8 * max(d, 1)), 1)
    data = (rows.indptr, rows.indices, rows.values, np.ascontiguousarray(shift, dtype=np.float64))
    _core.column_pair_sums(*data, S, N, A, stripe, thread_count(n_jobs))
    counts = N.astype(np.float64)
    return S + np.triu(S, 1).T, counts + np.triu(counts, 1).T, A


def _products(rows: Observed, shift: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    d = rows.shape[1]
    table = centred(rows, shift).to_scipy()
    mask = rows.with_values(np.ones(rows.nnz)).to_scipy()
    S, N, A = np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    step = max(_CHUNK // max(d, 1), 1)
    for start in range(0, rows.shape[0], step):
        z, o = (part[start : start + step].toarray() for part in (table, mask))
        for total, made in ((S, z.T @ z), (N, o.T @ o), (A, z.T @ o)):
            total += made
    return S, N, A


def added(left: Sums, right: Sums) -> Sums:
    """Sums of both sets of rows; same shift."""
    nn, paired, m = left.nn + right.nn, left.paired + right.paired, left.m + right.m
    return Sums(left.S + right.S, left.N + right.N, left.A + right.A, nn, paired, m)


def added_across(left: Sums, left_shift: _Floats, right: Sums, right_shift: _Floats) -> Sums:
    """Sums of both sets of rows about the left shift. Exact whatever the shifts."""
    return added(left, moved(right, left_shift - right_shift))
