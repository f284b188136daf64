"""Kernels between rows: the calls of the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar import _core
from lacunar._check import refuse_range
from lacunar._threads import thread_count
from lacunar.kernels._form import KernelForm, Method
from lacunar.observed import Observed


@dataclass(frozen=True)
class _Call:
    """The arrays of one call of the core, in the dtype of its result."""

    entries: tuple[Any, Any, Any, Any, Any, Any, int]
    forms: NDArray[Any]
    tables: NDArray[Any]
    row_scale: NDArray[Any] | None
    col_scale: NDArray[Any] | None


def _prepare(forms: Sequence[KernelForm], X: Observed, Y: Observed | None, dtype: np.dtype[Any]) -> _Call:
    for form in forms:
        refuse_range(form.range_needed(X, Y), form.gamma, dtype)
    x, y = X.astype(dtype), (X if Y is None else Y).astype(dtype)
    largest = int(min(x.row_counts.max(initial=0), y.row_counts.max(initial=0)))
    row_scale = col_scale = None
    if any(form.cosine for form in forms):
        row_scale = _scales(forms, X).astype(dtype)
        col_scale = row_scale if Y is None else _scales(forms, Y).astype(dtype)
    return _Call(
        (x.indptr, x.indices, x.values, y.indptr, y.indices, y.values, X.shape[1]),
        np.array([form.coefficients() for form in forms]).astype(dtype),
        np.array([form.table(largest) for form in forms]).astype(dtype),
        row_scale,
        col_scale,
    )


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
    call = _prepare(forms, X, Y, dtype)
    if out is None:
        out = np.empty((len(forms), X.shape[0], (X if Y is None else Y).shape[0]), dtype=dtype)
    scales = (call.row_scale, call.col_scale)
    _core.karma_gram(*call.entries, Y is None, call.forms, call.tables, *scales, out, method, thread_count(n_jobs))
    for form, values in zip(forms, out, strict=True):
        form.compose(values)
    return out


def compute_sparse_gram(
    form: KernelForm, X: Observed, Y: Observed | None, dtype: np.dtype[Any], n_jobs: int | None
) -> sp.csr_array:
    """One kernel as a CSR array of the pairs that share a column, shape (n, m)."""
    call = _prepare([form], X, Y, dtype)
    scales = (call.row_scale, call.col_scale)
    indptr, indices, data = _core.karma_gram_csr(*call.entries, call.forms, call.tables, *scales, thread_count(n_jobs))
    return sp.csr_array((data, indices, indptr), shape=(X.shape[0], (X if Y is None else Y).shape[0]))


def _scales(forms: Sequence[KernelForm], X: Observed) -> NDArray[np.float64]:
    ones = np.ones(X.shape[0])
    return np.array([form.row_scale(form.raw_diagonal(X)) if form.cosine else ones for form in forms])


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
    refuse_range(KernelForm(gamma=1.0).range_needed(X, Y), 1.0, np.dtype(np.float64))
    x, y = X.astype(np.float64), (X if Y is None else Y).astype(np.float64)
    largest = int(min(x.row_counts.max(initial=0), y.row_counts.max(initial=0)))
    out = np.empty((2, x.shape[0], y.shape[0]))
    arrays = (x.indptr, x.indices, x.values, y.indptr, y.indices, y.values)
    forms = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    _core.karma_gram(
        *arrays, X.shape[1], Y is None, forms, np.ones((2, largest + 1)), None, None, out, "auto", thread_count(n_jobs)
    )
    return out[0], out[1].astype(np.int32)
