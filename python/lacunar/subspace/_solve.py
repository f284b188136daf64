"""Leading eigenvectors: of a table, or of a covariance that is never formed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from lacunar.observed.door import check_sums
from lacunar.subspace._operator import Implicit

_Floats = NDArray[np.float64]
_TOL = 1e-3  # of eigenvalues without a table, far below their statistical error
_ROUGH = 0.1  # of the smallest eigenvalue, which only gauges noise


class Spectrum(NamedTuple):
    """Top eigenpairs by algebraic value, total variance, and the gauge of noise lambda_min."""

    values: _Floats  # (k,)
    vectors: _Floats  # (k, d)
    trace: float
    smallest: float
    negative: int  # eigenvalues below 0, -1 when not counted


def signed(vectors: _Floats) -> _Floats:
    """The entry of largest modulus of every row made positive."""
    at = np.argmax(np.abs(vectors), axis=1)
    sign = np.where(vectors[np.arange(len(vectors)), at] < 0, -1.0, 1.0)
    made: _Floats = vectors * sign[:, None]
    return made


def dense_spectrum(C: _Floats, k: int) -> Spectrum:
    """All eigenvalues of C (d, d). O(d^3)."""
    check_sums(C, "covariances")
    values, vectors = eigh(C)
    top = np.ascontiguousarray(vectors[:, ::-1][:, :k].T)
    return Spectrum(values[::-1][:k].copy(), signed(top), float(np.trace(C)), float(values[0]), int(np.sum(values < 0)))


def free_spectrum(C: Implicit, k: int, rng: np.random.Generator) -> Spectrum:
    """Top k < d eigenpairs by products alone: some 30 of them for k = 8, and about 10 for a rough smallest one.

    Lanczos vectors take 8 d max(2 k + 1, 20) bytes; nothing of size (d, d) is made.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    d = len(C.rest)
    check_sums(C.diagonal, "covariances")
    if not C.diagonal.any():  # Lanczos has nothing to start from
        return Spectrum(np.zeros(k), np.eye(k, d), 0.0, 0.0, -1)
    operator = LinearOperator((d, d), matvec=lambda v: C.times(v.reshape(d, 1)).ravel(), dtype=np.float64)
    start = rng.normal(size=d)
    values, vectors = eigsh(operator, k=k, which="LA", tol=_TOL, v0=start, ncv=min(d, max(2 * k + 1, 20)))
    low = eigsh(operator, k=1, which="SA", tol=_ROUGH, v0=start, ncv=min(d, 12), return_eigenvectors=False)
    order = np.argsort(-values)
    top = np.ascontiguousarray(vectors[:, order].T)
    return Spectrum(values[order], signed(top), float(C.diagonal.sum()), float(low[0]), -1)
