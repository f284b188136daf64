"""Low-rank models x = V z + noise of partially observed rows, by EM and by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd, svd_flip

from lacunar._factor._codes import row_codes, transposed
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Progress = Callable[[int, float], None]

_CHUNK = 2**22  # numbers of packed second moments held at once
_TINY = 1e-200  # keeps ratios finite where every entry is 0
_LEAST_NOISE = 1e-12  # of sigma^2, in units of the mean square of an entry


class Factors(NamedTuple):
    """x_j = mean_j + basis_j z + noise of variance sigma2, z of unit covariance (EM) or of variance tau a coordinate (ALS)."""

    basis: _Floats  # (D, d)
    mean: _Floats  # (D,)
    sigma2: float
    tau: float
    n_iter: int
    converged: bool
    n_singular: int

    @property
    def ridge(self) -> float:
        """What makes codes posterior means."""
        return self.sigma2 / self.tau


def _norm(x: _Floats) -> float:
    return float(np.sqrt(np.sum(np.square(x))))


def first_basis(rows: Observed, d: int, rng: np.random.Generator) -> tuple[_Floats, _Floats]:
    """Leading right singular vectors (D, d) of the rows filled with zeros, and singular values; section 4.2 of SLRM."""
    n, D = rows.shape
    k = min(d, n, D)
    state = int(rng.integers(2**31 - 1))
    table = rows.to_scipy().astype(np.float64)
    left, values, right = randomized_svd(table, k, n_oversamples=20, n_iter=4, random_state=state, flip_sign=False)
    _, right = svd_flip(left, right, u_based_decision=False)
    basis = np.zeros((D, d))
    basis[:, :k] = right.T
    if k < d:  # fewer rows than directions: the others are any that are orthogonal
        basis[:, k:] = np.linalg.qr(np.column_stack([right.T, rng.normal(size=(D, d - k))]))[0][:, k:]
    return basis, np.concatenate([values, np.zeros(d - k)])


def fit_em(
    rows: Observed,
    d: int,
    *,
    rng: np.random.Generator,
    max_iter: int = 100,
    tol: float = 1e-4,
    mean: bool = False,
    start: Factors | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Factors:
    """Maximum likelihood of probabilistic PCA on the observed entries (Tipping and Bishop 1999, with holes).

    With `mean`, column means are parameters too: means of what happens to be observed are off by what is not.
    O(nnz d^2 + n d^3) a step, two thirds of it in products of matrices; D d^2 / 2 numbers of memory.
    """
    model, singular = start or _start(rows, d, rng), 0
    by_column, seen = _Grams(rows), max(rows.nnz, 1)
    size = float(np.sum(np.square(rows.values, dtype=np.float64)))
    floor = max(_LEAST_NOISE * size / seen, _TINY)
    for step in range(1, max_iter + 1):
        old = np.column_stack([model.basis, model.mean]) if mean else model.basis
        found = row_codes(_without(rows, model.mean), model.basis, model.sigma2, inverse=True, n_jobs=n_jobs)
        singular += found.n_singular
        codes, covariance = found.code, model.sigma2 * found.inverse
        if mean:  # a direction more, whose code is 1 for certain
            codes = np.column_stack([codes, np.ones(len(codes))])
            covariance = np.column_stack([covariance, np.zeros((len(codes), d + 1))])
        grams, products = by_column.sums(codes, covariance)
        made = _solve_columns(grams, products, old)
        # E|x - V z|^2 = |x|^2 - 2 sum_j v_j b_j + sum_j v_j G_j v_j, and v_j solves G_j v_j = b_j
        left = size - float(np.sum(made * products))
        model = Factors(
            made[:, :d], made[:, d] if mean else model.mean, max(left / seen, floor), 1.0, step, False, singular
        )
        moved = _norm(made - old) / max(_norm(made), 1e-300)
        if progress is not None:
            progress(step, moved)
        if moved <= tol:
            return model._replace(converged=True)
    return model


def _without(rows: Observed, mean: _Floats) -> Observed:
    return rows.with_values(rows.values - mean[rows.indices]) if mean.any() else rows


def _start(rows: Observed, d: int, rng: np.random.Generator) -> Factors:
    basis, values = first_basis(rows, d, rng)
    n, D = rows.shape
    share = max(rows.nnz / max(n * D, 1), 1e-12)
    variance = np.square(values) / max(n * share, 1.0)  # of the zero-filled directions, put right for the holes
    mean = float(np.mean(np.square(rows.values, dtype=np.float64))) if rows.nnz else 1.0
    noise = max(mean - float(variance.sum()) / D, 0.1 * mean)
    return Factors(basis * np.sqrt(np.maximum(variance, 1e-3 * mean)), np.zeros(D), noise, 1.0, 0, False, 0)


class _Grams:
    """Sums over the rows that saw a column of E z z^T, packed, and of x z: one product of matrices each."""

    def __init__(self, rows: Observed) -> None:
        self.values = rows.to_scipy().astype(np.float64).T.tocsr()
        self.shape, self.indptr, self.indices = rows.shape, rows.indptr, rows.indices
        self.dense = rows.nnz > 0.1 * rows.shape[0] * rows.shape[1]

    def sums(self, code: _Floats, covariance: _Floats) -> tuple[_Floats, _Floats]:
        """(D, d, d) and (D, d)."""
        D, d = self.shape[1], code.shape[1]
        row, column = np.tril_indices(d)
        packed = np.zeros((D, len(row)))
        step = max(_CHUNK // max(len(row), D if self.dense else 1), 1)
        for start in range(0, len(code), step):
            part = code[start : start + step]
            moments = part[:, row] * part[:, column] + covariance[start : start + step]
            packed += self._mask(start, min(start + step, len(code))) @ moments
        full = np.empty((D, d, d))
        full[:, row, column] = packed
        full[:, column, row] = packed
        return full, self.values @ code

    def _mask(self, start: int, stop: int) -> NDArray[np.float64]:
        from scipy.sparse import csr_array

        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        indices = self.indices[self.indptr[start] : self.indptr[stop]]
        mask = csr_array((np.ones(len(indices)), indices, indptr), shape=(stop - start, self.shape[1])).T
        made: NDArray[np.float64] = mask.toarray() if self.dense else mask.tocsr()
        return made


def _solve_columns(grams: _Floats, products: _Floats, old: _Floats) -> _Floats:
    """v_j = G_j^-1 b_j; columns that no row saw stay 0."""
    d = grams.shape[1]
    mean = np.einsum("jkk->j", grams) / d
    seen = mean > 0
    basis = np.zeros_like(old)
    ridge = 1e-12 * mean[seen, None, None] * np.eye(d)
    basis[seen] = np.linalg.solve(grams[seen] + ridge, products[seen, :, None])[:, :, 0]
    return basis


def fit_als(
    rows: Observed,
    d: int,
    *,
    rng: np.random.Generator,
    ridge: float | None = None,
    max_iter: int = 100,
    tol: float = 1e-4,
    mean: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Factors:
    """Alternating least squares with an orthonormal basis and a ridge on codes, learned when `ridge` is None.

    The ridge is sigma^2 / tau, noise of an entry over variance of a code: sigma^2 = sum |x - U a|^2 / sum (o - freedom).
    O(nnz d^2 + (n + D) d^3) a sweep, in parallel over rows and over columns.
    """
    basis, _ = first_basis(rows, d, rng)
    columns, sigma2, tau, singular, means = transposed(rows), 1.0, 1.0, 0, np.zeros(rows.shape[1])
    weight = 0.1 * rows.nnz / max(rows.shape[0] * rows.shape[1], 1) if ridge is None else ridge
    for step in range(1, max_iter + 1):
        table = _without(rows, means)
        found = row_codes(table, basis, weight, left=True, inverse=ridge is None, n_jobs=n_jobs)
        singular += found.n_singular
        if ridge is None:
            sigma2, tau = _noise(found.left, found.inverse, weight, table, basis)
            weight = sigma2 / tau
        codes = np.column_stack([found.code, np.ones(len(found.code))]) if mean else found.code
        made = row_codes(columns, codes, 0.0, n_jobs=n_jobs).code
        means = made[:, d] if mean else means
        new = np.linalg.qr(made[:, :d])[0]
        moved = float(np.sqrt(max(d - _norm(basis.T @ new) ** 2, 0.0) / d))
        basis = new
        if progress is not None:
            progress(step, moved)
        if moved <= tol:
            break
    noise = sigma2 if ridge is None else ridge
    return Factors(basis, means, noise, tau, step, moved <= tol, singular)


def _noise(left: _Floats, inverse: _Floats, ridge: float, rows: Observed, basis: _Floats) -> tuple[float, float]:
    """sigma^2 and tau from the residuals: freedom of a row is d - ridge tr (G + ridge I)^-1."""
    d, entries = basis.shape[1], rows.row_counts
    diagonal = np.cumsum(np.arange(1, d + 1)) - 1
    lost = np.where(entries > 0, d - ridge * inverse[:, diagonal].sum(axis=1), 0.0)
    sigma2 = float(left.sum() / max(float(np.sum(entries - lost)), 1.0))
    size = float(np.sum(np.square(rows.values, dtype=np.float64)))
    gram_trace = float(np.sum(np.square(basis)[rows.indices]))
    floor = max(_LEAST_NOISE * size / max(rows.nnz, 1), _TINY)
    tau = (size - rows.nnz * sigma2) / max(gram_trace, 1e-300)
    return max(sigma2, floor), max(tau, floor)
