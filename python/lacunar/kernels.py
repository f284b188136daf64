"""The KARMA kernel on observed entries (Hazan, Livni, Mansour 2015, Theorem 4), as plain functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar import _core
from lacunar._check import SparseMissing, as_observed, check_kernel_options, check_out, check_same_columns, float_dtype
from lacunar._threads import thread_count
from lacunar.observed import Observed

Scale = float | Literal["mean", "raw"]
Normalize = Literal["cosine", "trace"] | None
Method = Literal["auto", "dense", "spmm", "inverted"]


def series(counts: NDArray[Any], gamma: float) -> NDArray[np.float64]:
    """g(u) = 1 + u + ... + u^(gamma - 1), continued to (u^gamma - 1) / (u - 1) where gamma is no integer.

    Examples
    --------
    >>> series(np.array([0.0, 1.0, 3.0]), 3)
    array([ 1.,  3., 13.])
    """
    u = np.asarray(counts, dtype=np.float64)
    if float(gamma).is_integer():
        total = np.ones_like(u)  # Horner on floats: exact where the result is, no quotient near u = 1
        for _ in range(int(gamma) - 1):
            total = total * u + 1.0
        return total
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient = np.expm1(gamma * np.log(u)) / (u - 1.0)
    return np.where(u == 0.0, 1.0, np.where(np.abs(u - 1.0) < 1e-12, gamma, quotient))


@dataclass(frozen=True)
class KernelForm:
    """One kernel of the family, with every data-dependent constant settled.

    k(x, x') = (s + constant^2 + indicators (n + [constant])) g((n + [constant]) / count_scale) / trace, where s and n are
    the sum over and the number of common observed columns, and [constant] is 1 when there is a constant feature. With
    ``cosine`` the value is divided by sqrt(k(x, x) k(x', x')) instead; a row of zero norm stays zero.

    Attributes
    ----------
    gamma : float
    count_scale : float
        The c of n / c: 1 is the paper's raw kernel.
    constant : float
        Value of the constant feature; 0 means none.
    indicators : float
        Weight of the observed-indicator part.
    cosine : bool
    trace : float
        What the kernel is divided by.
    """

    gamma: float = 2.0
    count_scale: float = 1.0
    constant: float = 0.0
    indicators: float = 0.0
    cosine: bool = False
    trace: float = 1.0

    @classmethod
    def fit(
        cls,
        reference: Observed,
        *,
        gamma: float = 2.0,
        scale: Scale = "mean",
        constant: float = 0.0,
        indicators: float = 0.0,
        normalize: Normalize = None,
    ) -> KernelForm:
        """Settle the count scale and the trace on the rows the kernel refers to (the training rows). O(nnz)."""
        count_scale = 1.0 if scale == "raw" else scale
        if count_scale == "mean":
            counts = reference.row_counts
            count_scale = max(float(counts.mean()) if counts.size else 0.0, 0.0) + (constant != 0) or 1.0
        form = cls(float(gamma), float(count_scale), float(constant), float(indicators), normalize == "cosine")
        if normalize != "trace":
            return form
        trace = float(form.raw_diagonal(reference).mean()) if reference.shape[0] else 1.0
        return replace(form, trace=trace if trace > 0 else 1.0)

    def coefficients(self) -> tuple[float, float, float]:
        """(on_sum, on_count, constant) of the factor before g."""
        base = self.constant**2 + (self.indicators if self.constant else 0.0)
        return 1.0 / self.trace, self.indicators / self.trace, base / self.trace

    def table(self, largest: int) -> NDArray[np.float64]:
        """g by number of common observed columns, 0 to `largest`."""
        return series((np.arange(largest + 1) + (self.constant != 0)) / self.count_scale, self.gamma)

    def _combine(self, sums: NDArray[Any], counts: NDArray[Any], table: NDArray[np.float64]) -> NDArray[np.float64]:
        on_sum, on_count, constant = self.coefficients()
        values: NDArray[np.float64] = (on_sum * sums + (on_count * counts + constant)) * table[counts]
        return values

    def raw_diagonal(self, X: Observed) -> NDArray[np.float64]:
        """k(x, x) before the cosine, shape (n,). O(nnz)."""
        squares = np.concatenate([[0.0], np.cumsum(np.square(X.values, dtype=np.float64))])
        counts = X.row_counts
        sums = squares[X.indptr[1:]] - squares[X.indptr[:-1]]
        return self._combine(sums, counts, self.table(int(counts.max(initial=0))))

    def row_scale(self, raw_diagonal: NDArray[np.float64]) -> NDArray[np.float64]:
        """1 / sqrt(k(x, x)), and 0 for a row of zero norm."""
        norm = np.sqrt(raw_diagonal)
        return np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)

    def diagonal(self, X: Observed) -> NDArray[np.float64]:
        """k(x, x) of every row, shape (n,)."""
        raw = self.raw_diagonal(X)
        return np.asarray(raw > 0, dtype=np.float64) if self.cosine else raw

    def from_sums(
        self, sums: NDArray[np.float64], counts: NDArray[np.int32], X: Observed, Y: Observed | None = None
    ) -> NDArray[np.float64]:
        """The kernel from sums and counts of `pair_sums`, shape (n, m): many kernels share one pass over pairs."""
        values = self._combine(sums, counts, self.table(int(counts.max(initial=0))))
        if self.cosine:
            rows = self.row_scale(self.raw_diagonal(X))
            columns = rows if Y is None else self.row_scale(self.raw_diagonal(Y))
            values *= rows[:, None]
            values *= columns
        return values

    def gram(
        self,
        X: Observed,
        Y: Observed | None = None,
        *,
        dtype: DTypeLike = np.float64,
        n_jobs: int | None = None,
        out: NDArray[Any] | None = None,
        method: Method = "auto",
    ) -> NDArray[Any]:
        """The kernel between the rows of X and those of Y (default X), shape (n, m)."""
        filled = None if out is None else out[None]
        made: NDArray[Any] = compute_grams([self], X, Y, np.dtype(dtype), n_jobs, filled, method)[0]
        return made


def compute_grams(
    forms: Sequence[KernelForm],
    X: Observed,
    Y: Observed | None,
    dtype: np.dtype[Any],
    n_jobs: int | None,
    out: NDArray[Any] | None = None,
    method: Method = "auto",
) -> NDArray[Any]:
    """Several kernels from one pass over the pairs of rows, shape (q, n, m)."""
    _refuse_overflow(forms, X, Y, dtype)
    x, y = X.astype(dtype), X.astype(dtype) if Y is None else Y.astype(dtype)
    largest = int(min(x.row_counts.max(initial=0), y.row_counts.max(initial=0)))
    tables = np.array([form.table(largest) for form in forms])
    coefficients = np.array([form.coefficients() for form in forms])
    row_scale = col_scale = None
    if any(form.cosine for form in forms):
        row_scale = _scales(forms, X).astype(dtype)
        col_scale = row_scale if Y is None else _scales(forms, Y).astype(dtype)
    if out is None:
        out = np.empty((len(forms), X.shape[0], y.shape[0]), dtype=dtype)
    _core.karma_gram(
        x.indptr,
        x.indices,
        x.values,
        y.indptr,
        y.indices,
        y.values,
        X.shape[1],
        Y is None,
        coefficients.astype(dtype),
        tables.astype(dtype),
        row_scale,
        col_scale,
        out,
        method,
        thread_count(n_jobs),
    )
    return out


def _scales(forms: Sequence[KernelForm], X: Observed) -> NDArray[np.float64]:
    ones = np.ones(X.shape[0])
    return np.array([form.row_scale(form.raw_diagonal(X)) if form.cosine else ones for form in forms])


def _refuse_overflow(forms: Sequence[KernelForm], X: Observed, Y: Observed | None, dtype: np.dtype[Any]) -> None:
    """By Cauchy-Schwarz no entry exceeds the larger diagonal: if that is representable, so is the matrix."""
    limit = float(np.finfo(dtype).max) / 4
    for form in forms:
        with np.errstate(over="ignore", invalid="ignore"):
            largest = max(
                (float(form.raw_diagonal(rows).max(initial=0)) for rows in (X, Y) if rows is not None), default=0
            )
        if not largest < limit:
            raise ValueError(
                f"the kernel must be representable in {dtype}; gamma={form.gamma:g} with {int(X.row_counts.max())} observed "
                f"columns in a row gives {largest:.3g}. Use scale='mean', a smaller gamma, or float64."
            )


def pair_sums(
    X: Observed, Y: Observed | None = None, *, n_jobs: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Sums and numbers of common observed columns for every pair of rows: what every kernel of the family is made of.

    Parameters
    ----------
    X, Y : Observed of shape (n, d) and (m, d)
        Y defaults to X.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors.

    Returns
    -------
    sums : ndarray of float64, shape (n, m)
    counts : ndarray of int32, shape (n, m)
    """
    x, y = X.astype(np.float64), (X if Y is None else Y).astype(np.float64)
    largest = int(min(x.row_counts.max(initial=0), y.row_counts.max(initial=0)))
    out = np.empty((2, x.shape[0], y.shape[0]))
    arrays = (x.indptr, x.indices, x.values, y.indptr, y.indices, y.values)
    forms = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    _core.karma_gram(
        *arrays, X.shape[1], Y is None, forms, np.ones((2, largest + 1)), None, None, out, "auto", thread_count(n_jobs)
    )
    return out[0], out[1].astype(np.int32)


def karma_kernel(
    X: Any,
    Y: Any = None,
    *,
    gamma: float | Sequence[float] = 2,
    scale: Scale = "mean",
    constant: float = 0.0,
    indicators: float = 0.0,
    normalize: Normalize = None,
    sparse_missing: SparseMissing = "absent",
    dtype: DTypeLike | None = None,
    out: NDArray[Any] | None = None,
    method: Method = "auto",
    n_jobs: int | None = None,
) -> NDArray[Any]:
    """KARMA kernel between partially observed rows.

    k(x, x') = g(|o n o'| / c) <x, x'> over the columns observed in both, with g(u) = 1 + u + ... + u^(gamma - 1). Linear
    learners on its feature space compete with the best linear learner that sees the complete low-rank data.

    Parameters
    ----------
    X : array-like, frame, sparse matrix or Observed of shape (n, d)
        Rows with holes: NaN, null or entries not stored.
    Y : like X, of shape (m, d), optional
        Default X. When given, these are the reference rows (the training rows) that scales refer to.
    gamma : float or sequence of float, default=2
        Longest sequence of columns in the embedding; 1 is 0-imputation. A sequence gives all kernels from one pass.
    scale : {"mean", "raw"} or float, default="mean"
        The c that counts are divided by: the mean number of observed columns of the reference rows, 1 (the paper's raw
        form), or a number. With "mean" good regularisation hardly depends on gamma or the data set.
    constant : float, default=0.0
        Value of a constant feature, observed in every row, that is appended without storing it; 0 for none.
    indicators : float, default=0.0
        Weight a of the observed-indicator part: s + a n in place of s.
    normalize : {None, "trace", "cosine"}, default=None
        Divide by the mean diagonal of the reference rows, or by sqrt(k(x, x) k(x', x')).
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse matrix does not store: missing, or zero.
    dtype : float32 or float64, optional
        Of the result; default that of X.
    out : ndarray of shape (n, m), or (q, n, m) for q gammas, optional
        C-contiguous array to fill and return.
    method : {"auto", "dense", "spmm", "inverted"}, default="auto"
        Path over the pairs; "auto" estimates the fastest from sizes and density. All give the same to rounding.
    n_jobs : int, optional
        Threads; None is 1, -1 all processors. The result does not depend on it.

    Returns
    -------
    ndarray of shape (n, m), or (q, n, m) for q gammas

    Raises
    ------
    ValueError
        For infinite entries, differing numbers of columns, gamma below 0 or a kernel beyond the largest float.

    Notes
    -----
    Hazan, Livni, Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Theorem 4. Time O(n m d / lanes)
    on dense tables, O(n m o) by sparse rows and O(n m v) by inverted index, for o entries a row and v common ones.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_kernel
    >>> X = np.array([[1.0, 2.0, np.nan], [3.0, np.nan, 1.0]])
    >>> karma_kernel(X, gamma=3, scale="raw")
    array([[35.,  9.],
           [ 9., 70.]])
    """
    x = as_observed(X, sparse_missing=sparse_missing)
    y = None if Y is None else as_observed(Y, sparse_missing=sparse_missing)
    check_same_columns(x, y)
    gammas = [float(value) for value in np.atleast_1d(np.asarray(gamma, dtype=np.float64))]
    check_kernel_options(gammas, scale, normalize, method)
    reference = x if y is None else y
    forms = [
        KernelForm.fit(reference, gamma=g, scale=scale, constant=constant, indicators=indicators, normalize=normalize)
        for g in gammas
    ]
    result_dtype = float_dtype(dtype, x.dtype)
    shape = (x.shape[0], reference.shape[0])
    single = np.ndim(gamma) == 0
    if out is not None:
        check_out(out, shape if single else (len(forms), *shape), result_dtype)
    filled = compute_grams(forms, x, y, result_dtype, n_jobs, None if out is None else out.reshape(-1, *shape), method)
    if out is not None:
        return out
    return filled[0] if single else filled
