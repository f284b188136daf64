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
_WIDE = 4000  # columns above which a stripe is too few rows of a table
_BITS = 0.09  # density above which joint counts are cheaper by bits than in the scatter
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

    O(sum n_a^2) by scattering entries into stripes of the tables, or a row of them at a time where stripes would be low;
    O(n d^2) in products of matrices above a density of .2. Counts are of bits from a density of .09.
    """
    n, d = rows.shape
    entries, density = rows.row_counts.astype(np.float64), rows.nnz / max(n * d, 1)
    counts = _counted(rows, n_jobs) if density > _BITS else None
    if density > _DENSE:
        S, A = _products(rows, shift)
    else:
        S, A, counts = _scattered(rows, shift, counts, n_jobs)
    assert counts is not None
    N = counts.astype(np.float64)
    return Sums(S, N + np.triu(N, 1).T, A, float(np.sum(entries * (entries - 1))), int(np.sum(entries > 1)), n)


def _counted(rows: Observed, n_jobs: int | None) -> NDArray[np.int64]:
    """Joint counts (d, d), upper triangle."""
    d = rows.shape[1]
    counts = np.zeros((d, d), np.int64)
    _core.column_pair_counts(rows.indptr, rows.indices, rows.values, counts, d, thread_count(n_jobs))
    return counts


def _scattered(
    rows: Observed, shift: _Floats, counts: NDArray[np.int64] | None, n_jobs: int | None
) -> tuple[_Floats, _Floats, NDArray[np.int64]]:
    """S, A and the upper triangle of joint counts, which are `counts` where given."""
    d, threads = rows.shape[1], thread_count(n_jobs)
    S, A = np.zeros((d, d)), np.zeros((d, d))
    N = np.zeros((d, d), np.int64) if counts is None else None
    data = (rows.indptr, rows.indices, rows.values)
    about = np.ascontiguousarray(shift, dtype=np.float64)
    if d > _WIDE:
        columns = rows.columns
        _core.column_pair_sums_by_column(
            *data, columns.indptr, columns.rows, columns.positions, about, S, N, A, threads
        )
    else:
        _core.column_pair_sums(*data, about, S, N, A, max(_STRIPE // (8 * max(d, 1)), 1), threads)
    made = counts if N is None else N
    assert made is not None
    return S + np.triu(S, 1).T, A, made


def _products(rows: Observed, shift: _Floats) -> tuple[_Floats, _Floats]:
    """S and A."""
    d = rows.shape[1]
    table = centred(rows, shift).to_scipy()
    mask = rows.with_values(np.ones(rows.nnz)).to_scipy()
    S, A = np.zeros((d, d)), np.zeros((d, d))
    step = max(_CHUNK // max(d, 1), 1)
    for start in range(0, rows.shape[0], step):
        z, o = (part[start : start + step].toarray() for part in (table, mask))
        S += z.T @ z  # NumPy calls dsyrk for it
        A += z.T @ o
    return S, A


def added(left: Sums, right: Sums) -> Sums:
    """Sums of both sets of rows; same shift."""
    nn, paired, m = left.nn + right.nn, left.paired + right.paired, left.m + right.m
    return Sums(left.S + right.S, left.N + right.N, left.A + right.A, nn, paired, m)


def added_across(left: Sums, left_shift: _Floats, right: Sums, right_shift: _Floats) -> Sums:
    """Sums of both sets of rows about the left shift. Exact whatever the shifts."""
    return added(left, moved(right, left_shift - right_shift))
