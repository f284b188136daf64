"""Leading eigenvectors: of a table, or of kappa-weighted covariance that is never formed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from lacunar._moments import kappa_of
from lacunar.observed import Observed

_Floats = NDArray[np.float64]


class Spectrum(NamedTuple):
    """Top eigenpairs by algebraic value, total variance, and the gauge of noise lambda_min (NaN when not computed)."""

    values: _Floats  # (k,)
    vectors: _Floats  # (k, d)
    trace: float
    smallest: float
    negative: int  # eigenvalues below 0, -1 when not computed


def signed(vectors: _Floats) -> _Floats:
    """The entry of largest modulus of every row made positive."""
    at = np.argmax(np.abs(vectors), axis=1)
    sign = np.where(vectors[np.arange(len(vectors)), at] < 0, -1.0, 1.0)
    made: _Floats = vectors * sign[:, None]
    return made


def dense_spectrum(C: _Floats, k: int) -> Spectrum:
    """All eigenvalues of C (d, d). O(d^3)."""
    values, vectors = eigh(C)
    top = np.ascontiguousarray(vectors[:, ::-1][:, :k].T)
    return Spectrum(values[::-1][:k].copy(), signed(top), float(np.trace(C)), float(values[0]), int(np.sum(values < 0)))


def free_spectrum(rows: Observed, k: int, *, centred: bool, rng: np.random.Generator) -> Spectrum:
    """Top k of P^-1 (X'X - diag q) P^-1 m / kappa + diag q / (n - 1) by products with rows (already centred) only.

    P = n - 1 where centred, n where not: equal to `covariance(weights="kappa")` up to a factor 1 + O(1/n) an entry.
    O(nnz) memory and per product; about 30 products for k = 8 at tol 1e-3, far below the statistical error.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    table = rows.to_scipy().astype(np.float64)
    m, d = table.shape
    n = np.bincount(rows.indices, minlength=d).astype(np.float64)
    q = np.bincount(rows.indices, rows.values.astype(np.float64) ** 2, minlength=d)
    entries = rows.row_counts.astype(np.float64)
    kappa = kappa_of(n, float(np.sum(entries * (entries - 1))), m)
    freedom = n - 1 if centred else n
    inverse = np.divide(1.0, freedom, out=np.zeros(d), where=freedom > 0)
    turned = table.T

    def product(v: _Floats) -> _Floats:
        u = inverse * v.ravel()
        made: _Floats = inverse * (turned @ (table @ u) - q * u) * (m / kappa) + q * inverse * v.ravel()
        return made

    operator = LinearOperator((d, d), matvec=product, dtype=np.float64)
    values, vectors = eigsh(operator, k=k, which="LA", tol=1e-3, v0=rng.normal(size=d), ncv=min(d, max(2 * k + 1, 20)))
    order = np.argsort(-values)
    top = np.ascontiguousarray(vectors[:, order].T)
    return Spectrum(values[order], signed(top), float(np.sum(q * inverse)), float("nan"), -1)
