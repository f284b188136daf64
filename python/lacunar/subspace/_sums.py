"""Sums over pairs of observed entries of a row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar import _core
from lacunar._moments import Sums, moved
from lacunar._parts import Whole
from lacunar._threads import thread_count
from lacunar.observed import Observed
from lacunar.observed.door import SparseMissing, as_observed
from lacunar.subspace._options import check_shift
from lacunar.subspace._rows import means_over

_Floats = NDArray[np.float64]
_DENSE = 0.35  # density above which zero-filled products beat scattering: .4 measured at 200 columns, .3 at 2,000
_STRIPE = 2**22  # bytes of table rows that a thread keeps in its caches
_WIDE = 3000  # columns above which a stripe is too few rows of a table
_NARROW = 400  # columns up to which reading the rows again for each stripe costs more than threads bring
_BITS = 0.09  # density above which joint counts are cheaper by bits than in the scatter
_CHUNK, _FEWEST = 2**18, 512  # numbers of a zero-filled block of rows, but at least so many rows


def column_means(rows: Observed) -> _Floats:
    """Mean (d,) of the observed entries of each column, 0 where there is none. O(nnz)."""
    return means_over(Whole(rows), np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64))


class PairSums(NamedTuple):
    """Sums over pairs of observed entries of a row, about a shift: what `column_pair_sums` gives.

    Attributes
    ----------
    product : ndarray of shape (d, d)
        Sum of z_i z_j over the rows that observe both, z the entries minus the shift.
    counts : ndarray of int64, shape (d, d), or None
        The number of those rows.
    cross : ndarray of shape (d, d) or None
        Sum of z_i over those rows; not symmetric.
    """

    product: _Floats
    counts: NDArray[np.int64] | None
    cross: _Floats | None


def column_pair_sums(
    X: Any,
    shift: ArrayLike | None = None,
    *,
    counts: bool = True,
    cross: bool = False,
    sparse_missing: SparseMissing = "absent",
    n_jobs: int | None = None,
) -> PairSums:
    """Sums over the pairs of observed entries of each row: covariances of rows with holes are made of them, and they add up.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    shift : array-like of shape (d,), default=None
        Subtracted from observed entries in float64, for precision; zeros.
    counts, cross : bool, default=True and False
        Whether to count rows, and to sum single entries over the rows that have another, too.
    sparse_missing : {"absent", "nan"}, default="absent"
    n_jobs : int, default=None
        Threads; the same bits for any number.

    Returns
    -------
    PairSums

    Raises
    ------
    ValueError
        For a shift of another shape, or not finite.

    Notes
    -----
    O(sum of squared entries of a row) up to a density of .35: a thread owns stripes of the tables that stay in its cache, or
    beyond 3,000 columns one row of them at a time. O(n d^2) in products of zero-filled rows above. From a density of .09 counts are
    common bits of columns. 8 d^2 bytes a table, float64 sums whatever the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.subspace import column_pair_sums
    >>> sums = column_pair_sums([[1.0, 2.0], [3.0, np.nan]])
    >>> sums.product.tolist(), sums.counts.tolist()
    ([[10.0, 2.0], [2.0, 4.0]], [[2, 1], [1, 1]])
    """
    rows = as_observed(X, sparse_missing=sparse_missing)
    about = check_shift(shift, rows.shape[1])
    return pair_tables(rows, np.zeros(rows.shape[1]) if about is None else about, counts, cross, n_jobs)


def pair_sums(rows: Observed, shift: _Floats, n_jobs: int | None = None) -> Sums:
    """All sums of rows minus the shift."""
    entries = rows.row_counts.astype(np.float64)
    S, N, A = pair_tables(rows, shift, True, True, n_jobs)
    assert N is not None
    assert A is not None
    nn, paired = float(np.sum(entries * (entries - 1))), int(np.sum(entries > 1))
    return Sums(S, N.astype(np.float64), A, nn, paired, rows.shape[0])


def pair_tables(rows: Observed, shift: _Floats, counts: bool, cross: bool, n_jobs: int | None) -> PairSums:
    """`column_pair_sums` of rows that were checked."""
    n, d = rows.shape
    density, threads = rows.nnz / max(n * d, 1), thread_count(n_jobs)
    N = np.zeros((d, d), np.int64) if counts else None
    data = (rows.indptr, rows.indices, rows.values)
    apart = density > _BITS
    if N is not None and apart:
        _core.column_pair_counts(*data, N, d, threads)
    if density > _DENSE:
        S, A = _products(rows, shift, cross)
    else:
        S, A = np.zeros((d, d)), np.zeros((d, d)) if cross else None
        about = np.ascontiguousarray(shift, dtype=np.float64)
        scattered = None if apart else N
        if d > _WIDE:
            by = rows.columns
            _core.column_pair_sums_by_column(*data, by.indptr, by.rows, by.positions, about, S, scattered, A, threads)
        else:
            held = 1 + (scattered is not None) + (A is not None)
            stripe = max(_STRIPE // (8 * held * max(d, 1)), 1)
            if threads > 1 and d > _NARROW:  # several a thread, as they differ in work
                stripe = min(stripe, -(-d // (2 * threads)))
            _core.column_pair_sums(*data, about, S, scattered, A, stripe, threads)
        _core.mirror_upper(S, threads)
    if N is not None:
        _core.mirror_upper(N, threads)
    return PairSums(S, N, A)


def _products(rows: Observed, shift: _Floats, cross: bool) -> tuple[_Floats, _Floats | None]:
    """S and A, a block of rows at a time that stays in cache."""
    n, d = rows.shape
    S, A = np.zeros((d, d)), np.zeros((d, d)) if cross else None
    step = max(_CHUNK // max(d, 1), _FEWEST)
    for start in range(0, n, step):
        part = slice(rows.indptr[start], rows.indptr[min(start + step, n)])
        at = np.repeat(np.arange(len(rows.row_counts[start : start + step])), rows.row_counts[start : start + step])
        columns = rows.indices[part]
        z = np.zeros((min(step, n - start), d))
        z[at, columns] = rows.values[part].astype(np.float64) - shift[columns]
        S += z.T @ z  # NumPy calls dsyrk for it
        if A is not None:
            seen = np.zeros_like(z)
            seen[at, columns] = 1.0
            A += z.T @ seen
    return S, A


def added(left: Sums, right: Sums) -> Sums:
    """Sums of both sets of rows; same shift."""
    nn, paired, m = left.nn + right.nn, left.paired + right.paired, left.m + right.m
    return Sums(left.S + right.S, left.N + right.N, left.A + right.A, nn, paired, m)


def added_across(left: Sums, left_shift: _Floats, right: Sums, right_shift: _Floats) -> Sums:
    """Sums of both sets of rows about the left shift. Exact whatever the shifts."""
    return added(left, moved(right, left_shift - right_shift))
