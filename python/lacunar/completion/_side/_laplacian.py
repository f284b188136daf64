"""Kernels of a graph Laplacian L = D - A without its inverse: one sparse factor, products and the exact diagonal."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.completion._side._graph_input import components
from lacunar.completion._side._sparse_inverse import SparseInverse
from lacunar.completion._side._state import Floats


class LaplacianKernel(Protocol):
    """A positive semidefinite matrix (n, n) made of a Laplacian."""

    def apply(self, V: Floats) -> Floats:
        """Its product with V, (n,) or (n, k)."""
        ...

    def diagonal(self) -> Floats:
        """Its diagonal, (n,), exact."""
        ...


def laplacian(A: Any) -> Any:
    """D - A, csc."""
    return sp.csc_array(sp.diags_array(A.sum(axis=1)) - A)


class Regularized:
    """(L + rho I)^-1."""

    def __init__(self, A: Any, rho: float) -> None:
        self._inverse = SparseInverse(laplacian(A) + rho * sp.eye_array(A.shape[0], format="csc"))

    @property
    def fill(self) -> int:
        """Entries of the factor."""
        return self._inverse.fill

    def apply(self, V: Floats) -> Floats:
        return self._inverse.solve(V)

    def diagonal(self) -> Floats:
        return self._inverse.diagonal()


class PseudoInverse:
    """L^+, of each component by itself.

    With one vertex g of every component left out the Laplacian is positive definite; G is its inverse, zero at g. On a
    component, J centring it, L^+ = J G J, and L^+_ii = G_ii - 2 (G 1)_i / n + 1^T G 1 / n^2 over its n vertices.
    """

    def __init__(self, A: Any) -> None:
        n = A.shape[0]
        self._label: NDArray[np.int64] = components(A)
        self._sizes: Floats = np.bincount(self._label).astype(np.float64)
        ground = np.zeros(n, dtype=bool)
        # The best connected vertex of each component: its long column stays out of the factor.
        order = np.lexsort((-np.diff(A.indptr), self._label))
        ground[order[np.unique(self._label[order], return_index=True)[1]]] = True
        self._kept = np.flatnonzero(~ground)
        self._member = sp.csr_array((np.ones(n), (self._label, np.arange(n))), shape=(len(self._sizes), n))
        self._inverse = SparseInverse(laplacian(A)[self._kept][:, self._kept])

    @property
    def fill(self) -> int:
        """Entries of the factor."""
        return self._inverse.fill

    def apply(self, V: Floats) -> Floats:
        return self._centred(self._grounded(self._centred(V)))

    def diagonal(self) -> Floats:
        own = np.zeros(len(self._label))
        own[self._kept] = self._inverse.diagonal()
        ones = self._grounded(np.ones(len(self._label)))
        total = (self._member @ ones) / self._sizes**2
        exact: Floats = own - 2 * ones / self._sizes[self._label] + total[self._label]
        # A vertex alone has L^+_ii = 0; elsewhere it is positive, and rounding stays far below it.
        return np.where(self._sizes[self._label] == 1, 0.0, exact)

    def _grounded(self, V: Floats) -> Floats:
        out = np.zeros_like(V)
        out[self._kept] = self._inverse.solve(V[self._kept])
        return out

    def _centred(self, V: Floats) -> Floats:
        if len(self._sizes) == 1:
            single: Floats = V - V.mean(axis=0)
            return single
        mean = (self._member @ V) / (self._sizes if V.ndim == 1 else self._sizes[:, None])
        several: Floats = V - mean[self._label]
        return several


class Written:
    """A kernel written out, for graphs small or dense enough."""

    def __init__(self, K: Floats) -> None:
        self._K = K

    def apply(self, V: Floats) -> Floats:
        return self._K @ V

    def diagonal(self) -> Floats:
        return np.diag(self._K).copy()


def written_kernel(A: Any, rho: float | None) -> Written:
    """(L + rho I)^-1, or L^+ for rho None, by one dense inverse, O(n^3).

    With U the components' unit vectors, which span the null space of L, L^+ = (L + t U U^T)^-1 - U U^T / t for any t > 0.
    """
    L = laplacian(A).toarray()
    if rho is not None:
        return Written(_inverse(L + rho * np.eye(len(L))))
    label = components(A)
    same = (label[:, None] == label) / np.bincount(label)[label]
    t = float(np.diag(L).mean())
    return Written(_inverse(L + t * same) - same / t)


def _inverse(M: Floats) -> Floats:
    """Of a symmetric positive definite matrix, exactly symmetric."""
    factor, _ = scipy.linalg.cho_factor(M, lower=True)
    lower, info = scipy.linalg.lapack.dpotri(factor, lower=1)
    assert info == 0
    whole = np.tril(lower)
    symmetric: Floats = whole + np.tril(whole, -1).T
    return symmetric
