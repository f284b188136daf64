"""What a step of EM or of alternating least squares wants of the rows: sums, which add up over parts of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._factor._codes import Codes, row_codes
from lacunar._parts import Parts
from lacunar._threads import thread_count
from lacunar.observed import Observed

_Floats = NDArray[np.float64]

_CHUNK = 2**22  # numbers of packed second moments held at once


class Table:
    """A part of the rows, and their values by column for products."""

    def __init__(self, rows: Observed) -> None:
        self.rows = rows
        self.by_column = rows.to_scipy().astype(np.float64).T.tocsr()
        self.dense = rows.nnz > 0.1 * rows.shape[0] * rows.shape[1]


def sizes(parts: Parts) -> tuple[int, _Floats, float]:
    """Number of rows, of entries in every column (D,), and the sum of their squares."""
    n, counts, size = parts.total(_sizes)
    return int(n), counts, float(size)


def _sizes(rows: Observed) -> tuple[int, _Floats, float]:
    counts = np.bincount(rows.indices, minlength=rows.shape[1]).astype(np.float64)
    return rows.shape[0], counts, float(np.sum(np.square(rows.values, dtype=np.float64)))


def gram_product(rows: Observed, V: _Floats, n_jobs: int | None) -> tuple[_Floats]:
    """X^T X V (D, v), X the rows with zeros for what is missing. O(nnz v)."""
    block = np.ascontiguousarray(V)
    return (_core.column_gram_product(rows.indptr, rows.indices, rows.values, block, thread_count(n_jobs)),)


def em_sums(
    table: Table, basis: _Floats, mean: _Floats, sigma2: float, with_mean: bool, n_jobs: int | None
) -> tuple[Any, ...]:
    """Sums by column of E z z^T, packed, and of x z; rows that needed rescue."""
    found = row_codes(_without(table.rows, mean), basis, sigma2, inverse=True, n_jobs=n_jobs)
    codes, covariance = found.code, sigma2 * found.inverse
    if with_mean:  # a direction more, whose code is 1 for certain
        codes = _and_one(codes)
        covariance = np.column_stack([covariance, np.zeros((len(codes), codes.shape[1]))])
    return *_column_sums(table, codes, covariance), found.n_singular


def als_sums(
    table: Table, basis: _Floats, mean: _Floats, ridge: float, with_mean: bool, learns: bool, n_jobs: int | None
) -> tuple[Any, ...]:
    """Sums by column of z z^T, packed, and of x z; rows that needed rescue; squares of entries, what is left of them, and its
    degrees of freedom (with `learns`, else zeros)."""
    rows = _without(table.rows, mean)
    found = row_codes(rows, basis, ridge, left=True, inverse=learns, n_jobs=n_jobs)
    codes = _and_one(found.code) if with_mean else found.code
    size = float(np.sum(np.square(rows.values, dtype=np.float64)))
    freedom = _freedom(found, rows, ridge) if learns else 0.0
    return *_column_sums(table, codes, None), found.n_singular, size, float(found.left.sum()), freedom


def _freedom(found: Codes, rows: Observed, ridge: float) -> float:
    """sum (o - f), f = d - ridge tr (G + ridge I)^-1 of a row with o entries."""
    d, entries = found.code.shape[1], rows.row_counts
    diagonal = np.cumsum(np.arange(1, d + 1)) - 1
    lost = np.where(entries > 0, d - ridge * found.inverse[:, diagonal].sum(axis=1), 0.0)
    return float(np.sum(entries - lost))


def _and_one(codes: _Floats) -> _Floats:
    return np.column_stack([codes, np.ones(len(codes))])


def _without(rows: Observed, mean: _Floats) -> Observed:
    return rows.with_values(rows.values - mean[rows.indices]) if mean.any() else rows


def _column_sums(table: Table, code: _Floats, covariance: _Floats | None) -> tuple[_Floats, _Floats]:
    """(D, d (d + 1) / 2) and (D, d): one product of matrices each."""
    D, d = table.rows.shape[1], code.shape[1]
    row, column = np.tril_indices(d)
    packed = np.zeros((D, len(row)))
    step = max(_CHUNK // max(len(row), D if table.dense else 1), 1)
    for start in range(0, len(code), step):
        part = code[start : start + step]
        moments = part[:, row] * part[:, column]
        if covariance is not None:
            moments += covariance[start : start + step]
        packed += _mask(table, start, min(start + step, len(code))) @ moments
    return packed, table.by_column @ code


def _mask(table: Table, start: int, stop: int) -> Any:
    """Where entries of these rows are (D, rows), as ones."""
    from scipy.sparse import csr_array

    rows = table.rows
    indptr = rows.indptr[start : stop + 1] - rows.indptr[start]
    indices = rows.indices[rows.indptr[start] : rows.indptr[stop]]
    mask = csr_array((np.ones(len(indices)), indices, indptr), shape=(stop - start, rows.shape[1])).T
    return mask.toarray() if table.dense else mask.tocsr()


def solve_columns(packed: _Floats, products: _Floats, ridge: float) -> _Floats:
    """v_j = G_j^-1 b_j (D, d), with a ridge in units of the mean diagonal of G_j; columns that no row saw stay 0."""
    d = products.shape[1]
    row, column = np.tril_indices(d)
    grams = np.empty((len(packed), d, d))
    grams[:, row, column] = packed
    grams[:, column, row] = packed
    mean = np.einsum("jkk->j", grams) / d
    seen = mean > 0
    made = np.zeros_like(products)
    least = ridge * mean[seen, None, None] * np.eye(d)
    made[seen] = np.linalg.solve(grams[seen] + least, products[seen, :, None])[:, :, 0]
    return made
