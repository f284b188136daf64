"""The inverse of a sparse symmetric positive definite matrix: products by its factor, its diagonal by selected inversion."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import splu

from lacunar import _core
from lacunar.completion._side._state import DENSE_LIMIT, Floats

# A trailing block of the factor this full and this large is inverted densely, by LAPACK: 3x faster where fill is heavy.
_FULL, _LARGE = 0.8, 500


class SparseInverse:
    """M^-1 for a sparse symmetric positive definite M (n, n): one L D L^T factorisation, ordered by minimum degree.

    A product with k vectors is O(k nnz(L)). Raises ValueError when M is not positive definite.
    """

    def __init__(self, M: Any) -> None:
        options = {"SymmetricMode": True}
        lu = splu(sp.csc_array(M), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
        self._pivots: Floats = lu.U.diagonal()
        # Without exchanges of rows U is D L^T, and positive pivots are what makes M positive definite.
        if not (np.array_equal(lu.perm_r, lu.perm_c) and (self._pivots > 0).all()):
            raise ValueError("the graph's matrix must be positive definite to rounding; it is not. Use regularization.")
        L = sp.csc_array(sp.tril(lu.L, -1, format="csc"))
        L.sort_indices()
        self._lower = (
            L.indptr.astype(np.int64),
            L.indices.astype(np.int32),
            np.ascontiguousarray(L.data, dtype=np.float64),
        )
        self._place = lu.perm_c.astype(np.int32)

    @property
    def fill(self) -> int:
        """Entries of the factor."""
        return len(self._lower[1]) + len(self._pivots)

    def solve(self, V: Floats) -> Floats:
        """M^-1 V for V of shape (n,) or (n, k)."""
        right = np.ascontiguousarray(V, dtype=np.float64).reshape(len(V), -1)
        return _core.factor_solve(*self._lower, self._pivots, self._place, right).reshape(V.shape)

    def diagonal(self) -> Floats:
        """diag(M^-1), shape (n,): exact, from the entries of M^-1 on the pattern of L only."""
        start = _dense_from(np.diff(self._lower[0]))
        n = len(self._pivots)
        L = sp.csc_array((self._lower[2], self._lower[1], self._lower[0]), shape=(n, n))
        tail = _dense_inverse(L[start:, start:].toarray(), self._pivots[start:])
        selected: Floats = _core.selected_inverse(*self._lower, self._pivots, tail)[self._place]
        return selected


def _dense_from(counts: NDArray[Any]) -> int:
    """The first column from which on the strict triangle is nearly full and not too large."""
    n = len(counts)
    size = np.arange(min(n, DENSE_LIMIT) + 1)
    held = np.concatenate([[0], np.cumsum(counts[::-1])])[: len(size)]
    full = np.flatnonzero(held >= _FULL * size * (size - 1) / 2)
    size_of_tail = int(full.max(initial=0))
    return n - size_of_tail if size_of_tail >= _LARGE else n


def _dense_inverse(L: Floats, pivots: Floats) -> Floats:
    """(L D L^T)^-1 of a strict lower triangle (k, k), C order."""
    k = len(pivots)
    if k == 0:
        return np.empty((0, 0))
    L[np.diag_indices(k)] = 1.0
    lower, info = scipy.linalg.lapack.dpotri(np.asfortranarray(L * np.sqrt(pivots)), lower=1, overwrite_c=1)
    assert info == 0
    inverse = np.tril(lower)
    return np.ascontiguousarray(inverse + np.tril(inverse, -1).T)
