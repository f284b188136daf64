"""Explicit features of the kernel for gamma 1 and 2: products of what is seen and that it is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.kernels import KernelForm
from lacunar.observed import Observed

_BLOCK = 2**17  # entries whose temporaries are held at once


def widths(form: KernelForm, n_columns: int) -> tuple[int, int]:
    """Columns that are seen or not, and channels of values: each column, the constant, their indicators."""
    masks = n_columns + (form.constant != 0)
    return masks, masks * (2 if form.indicators else 1)


def n_features(form: KernelForm, n_columns: int) -> int:
    """Features of the exact map."""
    masks, channels = widths(form, n_columns)
    return channels if form.gamma == 1 else masks * channels


def n_entries(form: KernelForm, X: Observed) -> int:
    """Entries that the features of all rows have: o, or o^2, a row."""
    seen = X.row_counts + (form.constant != 0)
    each = seen * (2 if form.indicators else 1)
    return int(np.sum(each if form.gamma == 1 else each * seen))


def _channels(form: KernelForm, X: Observed) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """By row: seen columns and their offsets, channels and values (sorted, so that features come out sorted)."""
    n, d = X.shape
    row = np.repeat(np.arange(n), X.row_counts)
    columns, values = X.indices.astype(np.int64), X.values.astype(np.float64)
    if form.constant:
        row, columns = np.concatenate([row, np.arange(n)]), np.concatenate([columns, np.full(n, d)])
        values = np.concatenate([values, np.full(n, form.constant)])
        order = np.argsort(row, kind="stable")
        row, columns, values = row[order], columns[order], values[order]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
    if not form.indicators:
        return columns, offsets, columns, values
    masks = d + (form.constant != 0)
    both = np.concatenate([row, row])
    order = np.argsort(both, kind="stable")
    channels = np.concatenate([columns, masks + columns])[order]
    weights = np.concatenate([values, np.full(len(columns), np.sqrt(form.indicators))])[order]
    return columns, offsets, channels, weights


def _index_type(form: KernelForm, X: Observed) -> type[np.int32] | type[np.int64]:
    """int32 where columns and offsets fit: some linear learners of scikit-learn refuse int64."""
    return np.int32 if max(n_features(form, X.shape[1]), n_entries(form, X)) < 2**31 else np.int64


def n_bytes(form: KernelForm, X: Observed) -> int:
    """Bytes of the CSR features: a value and a column each entry, an offset each row."""
    width = np.dtype(_index_type(form, X)).itemsize
    return n_entries(form, X) * (8 + width) + (X.shape[0] + 1) * width


def exact_features(form: KernelForm, X: Observed) -> sp.csr_array:
    """CSR features (n, n_features) whose inner products are the kernel's values.

    gamma = 2: x_k [j seen] / sqrt(c) for every seen pair of column j and channel k, and sqrt(1 + 1 / c) x_k where channel k
    is of column j itself; all over sqrt(trace), or over the row's norm for the cosine. O(o^2) a row. Rows are written by
    blocks into the result, so that temporaries stay at some 10 MB (a row of more entries than that is a block).
    """
    n, d = X.shape
    seen = X.row_counts + (form.constant != 0)
    each = seen * (2 if form.indicators else 1)
    dtype = _index_type(form, X)
    offsets = np.concatenate([[0], np.cumsum(each if form.gamma == 1 else each * seen)])
    values, columns = np.empty(offsets[-1]), np.empty(offsets[-1], dtype)
    start = 0
    while start < n:
        stop = max(int(np.searchsorted(offsets, offsets[start] + _BLOCK, side="right")) - 1, start + 1)
        part = slice(offsets[start], offsets[stop])
        values[part], columns[part] = _block(form, X[start:stop])
        start = stop
    return sp.csr_array((values, columns, offsets.astype(dtype)), shape=(n, n_features(form, d)))


def _block(form: KernelForm, X: Observed) -> tuple[NDArray[Any], NDArray[Any]]:
    """Values and columns of the entries of a few rows, one row after the other."""
    n, d = X.shape
    masks, width = widths(form, d)
    seen, offsets, channels, values = _channels(form, X)
    each = width // max(masks, 1)
    scale = form.row_scale(form.raw_diagonal(X)) if form.cosine else np.full(n, 1 / np.sqrt(form.trace))
    counts = np.diff(offsets)
    if form.gamma == 1:
        return values * np.repeat(scale, counts * each), channels
    sizes = counts * counts * each
    within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    row_width = np.repeat(counts * each, sizes)
    start = np.repeat(offsets[:-1], sizes)
    mask = seen[start + within // np.maximum(row_width, 1)]
    at = start * each + within % np.maximum(row_width, 1)
    own = channels[at] % max(masks, 1) == mask
    c = form.count_scale
    factor = np.where(own, np.sqrt(1 + 1 / c), np.sqrt(1 / c)) * np.repeat(scale, sizes)
    return values[at] * factor, mask * width + channels[at]
