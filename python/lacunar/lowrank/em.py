"""Low-rank models x = V z + noise of partially observed rows, by EM and by alternating least squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._codes import LARGEST_CORE_RANK, Codes, row_codes
from lacunar._eigen import canonical_turn
from lacunar._threads import thread_count
from lacunar.lowrank.parts import Parts, column_totals, in_parts, row_blocks
from lacunar.observed import Observed
from lacunar.observed.door import check_sums
from lacunar.observed.memory import own

_Floats = NDArray[np.float64]
Progress = Callable[[int, float], None]

_TINY = 1e-200  # keeps ratios finite where every entry is 0
_LEAST_NOISE = 1e-12  # of sigma^2, in units of the mean square of an entry
_SPARE, _PRODUCTS = 20, 5  # of the randomised start: directions beside those wanted, products with X^T X
_SAME_RANK = 1e-12  # squared singular values below it, in units of the largest, are rounding
_SURE, _RESCUE = 1e-12, 1e-8  # ridges of columns, in units of their mean diagonal: with covariances of codes, without
_CHUNK = 2**20  # numbers of packed second moments held at once


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


def first_basis(
    rows: Observed | Parts, d: int, rng: np.random.Generator, *, n_jobs: int | None = None
) -> tuple[_Floats, _Floats]:
    """Leading right singular vectors (D, d) of the rows filled with zeros, and singular values; section 4.2 of SLRM.

    Randomised subspace iteration (Halko, Martinsson and Tropp 2011, algorithm 4.4) by products with X^T X, which are sums over
    rows. Five of them, O(nnz d) each.
    """
    parts = in_parts(rows)
    n, counts, _ = sizes(parts, None, n_jobs)
    D, k = len(counts), min(d, n, len(counts))
    basis = np.linalg.qr(rng.normal(size=(D, min(k + _SPARE, D))))[0]
    for _ in range(_PRODUCTS - 1):
        basis = np.linalg.qr(parts.total(gram_product, basis, n_jobs)[0])[0]
    products = parts.total(gram_product, basis, n_jobs)[0]
    check_sums(products, "squares")
    left, squares, _ = np.linalg.svd(products, full_matrices=False)
    rank = int(np.sum(squares > _SAME_RANK * squares[0]))
    found = left[:, :rank] @ canonical_turn(squares[:rank], left[:, :rank], min(k, rank))
    if found.shape[1] < d:  # fewer rows than directions: the others are any that are orthogonal
        rest = rng.normal(size=(D, d - found.shape[1]))
        found = np.column_stack([found, np.linalg.qr(np.column_stack([found, rest]))[0][:, found.shape[1] :]])
    values = np.zeros(d)
    values[: min(k, len(squares))] = np.sqrt(squares[:k])
    return found, values


def fit_em(
    rows: Observed | Parts,
    d: int,
    *,
    rng: np.random.Generator,
    max_iter: int = 100,
    tol: float = 1e-4,
    mean: bool = False,
    start: Factors | None = None,
    weight: _Floats | None = None,
    relax: float = 1.0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Factors:
    """Maximum likelihood of probabilistic PCA on the observed entries (Tipping and Bishop 1999, with missing entries).

    With `mean`, column means are parameters too: means of what happens to be observed are off by what is not. A row of `weight`
    (n,) w counts as w equal rows; it needs rows in one part. `relax` below 2 multiplies every step: EM shrinks the distance to its
    limit by factors in [0, 1), so that steps of 1.7 times the length arrive in about half as many (Salakhutdinov and Roweis 2003).
    O(nnz d^2 + n d^3) a step, two thirds of it in products of matrices; D d^2 / 2 numbers of memory, and of every part's sums.
    """
    parts = in_parts(rows)
    n, counts, size = sizes(parts, weight, n_jobs)
    model = start or _start(parts.map(_scaled, weight, keep=weight is not None), d, rng, n, counts, size, n_jobs)
    tables, seen, singular = parts.map(to_sum, weight, n_jobs, keep=False), max(float(counts.sum()), 1.0), 0
    floor = max(_LEAST_NOISE * size / seen, _TINY)
    for step in range(1, max_iter + 1):
        old = np.column_stack([model.basis, model.mean]) if mean else model.basis
        packed, products, rescued = tables.total(em_sums, model.basis, model.mean, model.sigma2, mean)
        singular += int(rescued)
        made = solve_columns(packed, products, _SURE)
        # E|x - V z|^2 = |x|^2 - 2 sum_j v_j b_j + sum_j v_j G_j v_j, and v_j solves G_j v_j = b_j
        noise = max((size - float(np.sum(made * products))) / seen, floor)
        if relax != 1:
            made = old + relax * (made - old)
            noise = longer(max(model.sigma2, floor), noise, relax, floor)
        model = Factors(made[:, :d], made[:, d] if mean else model.mean, noise, 1.0, step, False, singular)
        moved = _norm(made - old) / max(_norm(made), 1e-300)
        if progress is not None:
            progress(step, moved)
        if moved <= tol:
            return model._replace(converged=True)
    return model


def longer(old: float, new: float, relax: float, floor: float) -> float:
    """A positive number after a step of its logarithm that is `relax` times as long."""
    return float(max(old * min(new / old, 1e6) ** relax, floor))


def _start(
    parts: Parts, d: int, rng: np.random.Generator, n: int, counts: _Floats, size: float, n_jobs: int | None
) -> Factors:
    basis, values = first_basis(parts, d, rng, n_jobs=n_jobs)
    D, nnz = len(counts), float(counts.sum())
    share = max(nnz / max(n * D, 1), 1e-12)
    variance = np.square(values) / max(n * share, 1.0)  # of zero-filled rows, corrected for that
    mean = size / nnz if nnz else 1.0
    noise = max(mean - float(variance.sum()) / D, 0.1 * mean)
    return Factors(basis * np.sqrt(np.maximum(variance, 1e-3 * mean)), np.zeros(D), noise, 1.0, 0, False, 0)


def fit_als(
    rows: Observed | Parts,
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
    O(nnz d^2 + (n + D) d^3) a sweep.
    """
    parts = in_parts(rows)
    n, counts, _ = sizes(parts, None, n_jobs)
    basis, _ = first_basis(parts, d, rng, n_jobs=n_jobs)
    tables, means = parts.map(to_sum, None, n_jobs, keep=False), np.zeros(len(counts))
    sigma2, tau, singular = 1.0, 1.0, 0
    weight = 0.1 * float(counts.sum()) / max(n * len(counts), 1) if ridge is None else ridge
    for step in range(1, max_iter + 1):
        sums = tables.total(als_sums, basis, means, weight, mean, ridge is None)
        packed, products, rescued, size, left, freedom = sums
        singular += int(rescued)
        if ridge is None:
            sigma2, tau = _noise(size, left, freedom, counts, basis)
            weight = sigma2 / tau
        made = solve_columns(packed, products, _RESCUE)
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


def _noise(size: float, left: float, freedom: float, counts: _Floats, basis: _Floats) -> tuple[float, float]:
    """sigma^2 and tau from the residuals of entries whose squares sum to `size`."""
    nnz = float(counts.sum())
    sigma2 = left / max(freedom, 1.0)
    floor = max(_LEAST_NOISE * size / max(nnz, 1.0), _TINY)
    gram_trace = float(counts @ np.sum(np.square(basis), axis=1))
    tau = (size - nnz * sigma2) / max(gram_trace, 1e-300)
    return max(sigma2, floor), max(tau, floor)


class Table(NamedTuple):
    """A part of the rows, what each counts for, and threads to sum them with."""

    rows: Observed
    weight: _Floats | None = None
    threads: int = 1

    def pieces(self, d: int) -> Iterator[Table]:
        """Rows whose second moments of d codes are held at once."""
        for some in row_blocks(self.rows, max(_CHUNK // (d * (d + 1) // 2), 1)):
            yield self._replace(rows=self.rows[some], weight=None if self.weight is None else self.weight[some])


def to_sum(rows: Observed, weight: _Floats | None, n_jobs: int | None) -> Table:
    return Table(rows, weight, thread_count(n_jobs))


def sizes(parts: Parts, weight: _Floats | None = None, n_jobs: int | None = None) -> tuple[int, _Floats, float]:
    """Number of rows, of entries in every column (D,), and the sum of their squares."""
    n, counts, size = parts.total(_sizes, weight, n_jobs)
    return int(n), counts, float(size)


def _sizes(rows: Observed, weight: _Floats | None, n_jobs: int | None) -> tuple[int, _Floats, float]:
    counts, _, squares = column_totals(rows, weight, n_jobs=n_jobs)
    return rows.shape[0], counts, float(squares.sum())


def _scaled(rows: Observed, weight: _Floats | None) -> Observed:
    """Rows whose squares count by their weights."""
    return rows if weight is None else rows.with_values(rows.values * np.sqrt(np.repeat(weight, rows.row_counts)))


def gram_product(rows: Observed, V: _Floats, n_jobs: int | None) -> tuple[_Floats]:
    """X^T X V (D, v), X the rows with zeros for what is missing. O(nnz v)."""
    block = np.ascontiguousarray(V)
    return (_core.column_gram_product(rows.indptr, rows.indices, rows.values, block, thread_count(n_jobs)),)


def em_sums(table: Table, basis: _Floats, mean: _Floats, sigma2: float, with_mean: bool) -> tuple[Any, ...]:
    """Sums by column of E z z^T, packed, and of x z; rows that needed rescue."""
    d = basis.shape[1]
    if table.weight is None and d <= LARGEST_CORE_RANK:
        row, column = np.tril_indices(d)
        model = np.column_stack([basis[:, row] * basis[:, column], basis, mean])
        sums, _, rescued = factor_sums(table, model, d, float(sigma2))
        free, pairs = d + with_mean, (d + 1) * (d + 2) // 2
        return sums[:, : free * (free + 1) // 2], sums[:, pairs : pairs + free], rescued
    found = [_piece_sums(each, basis, mean, sigma2, with_mean) for each in table.pieces(d)]
    return tuple(sum(each) for each in zip(*found, strict=True))


def factor_sums(table: Table, model: _Floats, k: int, noise: float) -> tuple[_Floats, _Floats, int]:
    """Sums by column of E u u^T, packed, and of x E u, u = (z, 1), over rows; sum of E z z^T, packed; rows that needed rescue.

    `model` (D, k (k + 1) / 2 + k + 1) has, of each column, v v^T, packed, v and the mean. One pass of the core.
    """
    sums, moment = np.zeros((len(model), (k + 1) * (k + 2) // 2 + k + 1)), np.zeros(k * (k + 1) // 2)
    data = (table.rows.indptr, table.rows.indices, table.rows.values, model, k, noise)
    rescued = _core.factor_sums(*data, sums, moment, table.threads)
    check_sums(sums, "sums")
    return sums, moment, rescued


def _piece_sums(table: Table, basis: _Floats, mean: _Floats, sigma2: float, with_mean: bool) -> tuple[Any, ...]:
    rows = less(table.rows, mean, n_jobs=table.threads)
    found = row_codes(rows, basis, sigma2, inverse=True, n_jobs=table.threads)
    codes, covariance = found.code, sigma2 * found.inverse
    if with_mean:  # a direction more, whose code is 1 for certain
        codes = and_one(codes)
        covariance = np.column_stack([covariance, np.zeros((len(codes), codes.shape[1]))])
    return *column_sums(table, codes, covariance), found.n_singular


def als_sums(
    table: Table, basis: _Floats, mean: _Floats, ridge: float, with_mean: bool, learns: bool
) -> tuple[Any, ...]:
    """Sums by column of z z^T, packed, and of x z; rows that needed rescue; squares of entries, what is left of them, and its
    degrees of freedom (with `learns`, else zeros)."""
    found = [_als_piece(each, basis, mean, ridge, with_mean, learns) for each in table.pieces(basis.shape[1])]
    return tuple(sum(each) for each in zip(*found, strict=True))


def _als_piece(
    table: Table, basis: _Floats, mean: _Floats, ridge: float, with_mean: bool, learns: bool
) -> tuple[Any, ...]:
    rows = less(table.rows, mean, n_jobs=table.threads)
    found = row_codes(rows, basis, ridge, left=True, inverse=learns, n_jobs=table.threads)
    codes = and_one(found.code) if with_mean else found.code
    size = float(np.sum(np.square(rows.values, dtype=np.float64)))
    freedom = _freedom(found, rows, ridge) if learns else 0.0
    return *column_sums(table, codes, None), found.n_singular, size, float(found.left.sum()), freedom


def _freedom(found: Codes, rows: Observed, ridge: float) -> float:
    """sum (o - f), f = d - ridge tr (G + ridge I)^-1 of a row with o entries."""
    d, entries = found.code.shape[1], rows.row_counts
    diagonal = np.cumsum(np.arange(1, d + 1)) - 1
    lost = np.where(entries > 0, d - ridge * found.inverse[:, diagonal].sum(axis=1), 0.0)
    return float(np.sum(entries - lost))


def and_one(codes: _Floats) -> _Floats:
    return np.column_stack([codes, np.ones(len(codes))])


def less(rows: Observed, mean: _Floats, out: _Floats | None = None, *, n_jobs: int | None = None) -> Observed:
    """Rows less a mean, their values at the front of `out`; what overflows is met in the codes."""
    if not mean.any():
        return rows
    values = np.empty(rows.nnz) if out is None else out[: rows.nnz]
    about = np.ascontiguousarray(mean), np.ones(rows.shape[1])
    _core.standardise(rows.values, rows.indices, *about, np.inf, values, thread_count(n_jobs))
    return Observed._trusted(rows.indptr, rows.indices, own(values), rows.shape)


def blocks_less(
    rows: Observed, mean: _Floats, most: int | None = None, *, n_jobs: int | None = None
) -> Iterator[tuple[slice, Observed]]:
    """`row_blocks` and their rows less a mean, in memory that the next block takes over: fresh pages cost more than the difference."""
    out = np.empty(0)
    for some in row_blocks(rows, most):
        block = rows[some]
        out = out if len(out) >= block.nnz else np.empty(block.nnz)
        yield some, less(block, mean, out, n_jobs=n_jobs)


def column_sums(table: Table, code: _Floats, covariance: _Floats | None) -> tuple[_Floats, _Floats]:
    """Sums by column of z z^T, packed (D, d (d + 1) / 2), and of x z (D, d), of a piece of the rows."""
    row, column = np.tril_indices(code.shape[1])
    moments = code[:, row] * code[:, column]
    if covariance is not None:
        moments += covariance
    if table.weight is not None:
        moments *= table.weight[:, None]
        code = code * table.weight[:, None]
    entries = table.rows.to_scipy().T
    seen = type(entries)((np.ones(entries.nnz), entries.indices, entries.indptr), shape=entries.shape)
    return seen @ moments, entries @ code


def unpacked(packed: _Floats, k: int) -> _Floats:
    """Symmetric matrices (n, k, k) of lower triangles by rows (n, k (k + 1) / 2)."""
    row, column = np.tril_indices(k)
    full = np.empty((len(packed), k, k))
    full[:, row, column] = packed
    full[:, column, row] = packed
    return full


def solve_columns(packed: _Floats, products: _Floats, ridge: float) -> _Floats:
    """v_j = G_j^-1 b_j (D, d), with a ridge in units of the mean diagonal of G_j; columns that no row saw stay 0."""
    d = products.shape[1]
    grams = unpacked(packed, d)
    mean = np.einsum("jkk->j", grams) / d
    seen = mean > 0
    made = np.zeros_like(products)
    least = ridge * mean[seen, None, None] * np.eye(d)
    made[seen] = np.linalg.solve(grams[seen] + least, products[seen, :, None])[:, :, 0]
    return made
