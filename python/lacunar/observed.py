"""`Observed`: the sparse observed-entries format that every learner reads."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar import _core
from lacunar._check import check_entries


class Columns(NamedTuple):
    """The same entries by column: entry ``p`` of column ``j`` is row ``rows[p]``, ``values[positions[p]]``."""

    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    positions: NDArray[np.int64]


class Observed:
    """Observed entries of a table, row by row; what is not stored is missing and a stored zero is observed.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    indices : ndarray of int32, shape (nnz,)
    values : ndarray of float64 or float32, shape (nnz,)
    shape : (int, int)
    """

    def __init__(self, indptr, indices, values, shape):
        indptr, indices, values = check_entries(indptr, indices, values, shape)
        for array in (indptr, indices, values):
            array.flags.writeable = False
        self.indptr, self.indices, self.values, self.shape = indptr, indices, values, shape

    @classmethod
    def from_dense(cls, X, dtype=None):
        X = np.asarray(X)
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        seen = ~np.isnan(X)
        indptr = np.concatenate([[0], np.cumsum(seen.sum(axis=1))]).astype(np.int64)
        return cls(indptr, np.nonzero(seen)[1].astype(np.int32), X[seen], X.shape)

    @property
    def nnz(self) -> int:
        return self.values.size

    @cached_property
    def columns(self) -> Columns:
        return Columns(*_core.column_view(self.indptr, self.indices, self.shape[1]))

    def to_scipy(self) -> sp.csr_array:
        return sp.csr_array((self.values, self.indices, self.indptr), shape=self.shape)
