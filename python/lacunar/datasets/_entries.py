"""Entries of a table, dense or sparse, behind one face: what mechanisms of missingness need to know of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]


class DenseEntries:
    """Entries of an ndarray (n, d); NaN is missing already."""

    def __init__(self, X: Any) -> None:
        X = np.asarray(X)
        self.complete = X.astype(np.float32 if X.dtype == np.float32 else np.float64, copy=False)
        if self.complete.ndim != 2:
            raise ValueError(f"X must be a table, of two dimensions; got shape {self.complete.shape}.")
        self.shape: tuple[int, int] = self.complete.shape
        refuse_infinity(self.complete, lambda at: (at // self.shape[1], at % self.shape[1]))
        # Row and column of every entry, of shapes that broadcast to that of `draw` and `standardised`.
        self.rows, self.columns = np.ogrid[: self.shape[0], : self.shape[1]]

    def draw(self, rng: np.random.Generator) -> Floats:
        return rng.random(self.shape)

    def standardised(self) -> Floats:
        """Every column to mean 0 and variance 1 over what is there; a constant column and a hole are 0."""
        seen = ~np.isnan(self.complete)
        count = np.maximum(seen.sum(axis=0), 1)
        centred = np.where(seen, self.complete - np.where(seen, self.complete, 0).sum(axis=0) / count, 0.0)
        spread = np.sqrt((centred**2).sum(axis=0) / count)
        return np.asarray(centred / np.where(spread > 0, spread, 1))

    def row_sums(self, values: Floats, columns: NDArray[np.bool_]) -> Floats:
        """Sums (n,) of entries' values over the chosen columns."""
        return np.asarray(values[:, columns].sum(axis=1))

    def keep(self, kept: NDArray[np.bool_]) -> Floats:
        """A copy with NaN where not kept."""
        return np.asarray(np.where(kept, self.complete, self.complete.dtype.type(np.nan)))


class SparseEntries:
    """Stored entries of a sparse matrix (n, d), as vectors (nnz,); what is not stored is missing already."""

    def __init__(self, X: Any) -> None:
        table = sp.csr_array(X)
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        if table.nnz != X.nnz:
            raise ValueError(f"X must store every entry once; {X.nnz - table.nnz} are stored twice. Sum or drop them.")
        if not np.issubdtype(table.dtype, np.floating):
            table = table.astype(np.float64)
        refuse_infinity(table.data, lambda at: (np.searchsorted(table.indptr, at, "right") - 1, table.indices[at]))
        self.complete = table
        self.shape: tuple[int, int] = table.shape
        self.rows, self.columns = np.repeat(np.arange(self.shape[0]), np.diff(table.indptr)), table.indices

    def draw(self, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.random(self.complete.nnz))

    def standardised(self) -> Floats:
        columns, d = self.columns, self.shape[1]
        count = np.maximum(np.bincount(columns, minlength=d), 1)
        centred = self.complete.data - (np.bincount(columns, self.complete.data, d) / count)[columns]
        spread = np.sqrt(np.bincount(columns, centred**2, d) / count)
        return np.asarray(centred / np.where(spread > 0, spread, 1)[columns])

    def row_sums(self, values: Floats, columns: NDArray[np.bool_]) -> Floats:
        chosen = columns[self.columns]
        return np.asarray(np.bincount(self.rows[chosen], values[chosen], self.shape[0]), dtype=np.float64)

    def keep(self, kept: NDArray[np.bool_]) -> sp.csr_array:
        """The stored entries that are kept."""
        kept = np.broadcast_to(kept, self.rows.shape)
        before = np.concatenate([[0], np.cumsum(kept)])[self.complete.indptr]
        parts = self.complete.data[kept], self.complete.indices[kept], before.astype(self.complete.indptr.dtype)
        return sp.csr_array(parts, shape=self.shape)


def refuse_infinity(values: Floats, place: Callable[[int], tuple[Any, Any]]) -> None:
    wrong = np.isinf(values)
    if wrong.any():
        row, column = place(int(np.argmax(wrong)))
        raise ValueError(f"X must hold finite values or NaN; got inf in row {row}, column {column}. Make it NaN.")


Entries = DenseEntries | SparseEntries


def entries_of(X: Any) -> Entries:
    return SparseEntries(X) if sp.issparse(X) else DenseEntries(X)
