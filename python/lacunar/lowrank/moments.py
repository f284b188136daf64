"""Sums over pairs of observed entries of a row, the covariance that they give, and its leading eigenvectors.

The covariance is a table, or, for many columns, an operator that is never formed and multiplies vectors by the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh

from lacunar import _core, _moments
from lacunar._eigen import canonical_turn, signed
from lacunar._moments import Expected, Sums, expected_counts, moved, own_freedom
from lacunar._threads import thread_count
from lacunar._typing import Floats
from lacunar.lowrank import ridge
from lacunar.lowrank.em import gram_product, sums_over
from lacunar.lowrank.parts import RowParts, count
from lacunar.observed import Observed
from lacunar.observed.door import SparseMissing, as_observed, check_sums

_DENSE = 0.35  # density above which zero-filled products beat scattering: .4 measured at 200 columns, .3 at 2,000
_STRIPE = 2**22  # bytes of table rows that a thread keeps in its caches
_WIDE = 3000  # columns above which a stripe is too few rows of a table
_NARROW = 400  # columns up to which reading the rows again for more stripes than threads costs more than it evens out
_BITS = 0.09  # density above which joint counts are cheaper by bits than in the scatter
_CHUNK, _FEWEST = 2**18, 512  # numbers of a zero-filled block of rows, but at least so many rows
_NODES = 32  # values of a count that the division by counts is interpolated from
_LEFT_OUT = 1e-5  # of that division, relative to its largest eigenvalue
_TOL = 1e-3  # of eigenvalues without a table, far below their statistical error
_ROUGH = 0.1  # of the smallest eigenvalue, which only gauges noise
_LOW_ROUNDS = 8  # that the smallest one may ask for
_MOST_ROUNDS = 1000
_LEAST_BASIS = 48  # vectors before a restart
_DEPENDENT = 1e-12  # of the largest eigenvalue: shorter directions are rounding


def column_means(rows: Observed) -> Floats:
    """Mean (d,) of the observed entries of each column, 0 where there is none. O(nnz)."""
    return count(rows).means


class PairSums(NamedTuple):
    """Sums over pairs of observed entries of a row, about a shift, as `column_pair_sums` returns them.

    Attributes
    ----------
    product : ndarray of shape (d, d)
        Sum of z_i z_j over the rows that observe both, z the entries minus the shift.
    counts : ndarray of int64, shape (d, d), or None
        The number of those rows.
    cross : ndarray of shape (d, d) or None
        Sum of z_i over those rows; not symmetric.
    """

    product: Floats
    counts: NDArray[np.int64] | None
    cross: Floats | None


def column_pair_sums(
    X: Any,
    shift: ArrayLike | None = None,
    *,
    counts: bool = True,
    cross: bool = False,
    sparse_missing: SparseMissing = "absent",
    n_jobs: int | None = None,
) -> PairSums:
    """Sums over the pairs of observed entries of each row: they add up over rows, and give
    covariances of rows with missing entries.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    shift : array-like of shape (d,), default=None
        Subtracted from observed entries in float64, for precision; zeros.
    counts, cross : bool, default=True and False
        Whether to count rows, and to sum single entries over the rows that have another, too.
    sparse_missing : {"absent", "nan"}, default="absent"
    n_jobs : int, default=None
        Threads; the same bits for any number.

    Returns
    -------
    PairSums

    Raises
    ------
    ValueError
        For a shift of another shape, or not finite.

    Notes
    -----
    O(sum of squared entries of a row) up to a density of .35: a thread owns stripes of the tables
    that stay in its cache, or beyond 3,000 columns one row of them at a time. O(n d^2) in products
    of zero-filled rows above. From a density of .09 counts are common bits of columns. 8 d^2 bytes
    a table, float64 sums whatever the dtype of X.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import column_pair_sums
    >>> sums = column_pair_sums([[1.0, 2.0], [3.0, np.nan]])
    >>> sums.product.tolist(), sums.counts.tolist()
    ([[10.0, 2.0], [2.0, 4.0]], [[2, 1], [1, 1]])
    """
    rows = as_observed(X, sparse_missing=sparse_missing)
    origin = check_shift(shift, rows.shape[1])
    return pair_tables(rows, np.zeros(rows.shape[1]) if origin is None else origin, counts, cross, n_jobs)


def pair_sums(rows: Observed, shift: Floats, n_jobs: int | None = None, cross: bool = True) -> Sums:
    """All sums over rows, minus the shift, that `lacunar._moments` makes covariances of; A is empty without `cross`."""
    entries = rows.row_counts.astype(np.float64)
    S, N, A = pair_tables(rows, shift, True, cross, n_jobs)
    assert N is not None
    A = np.zeros((0, 0)) if A is None else A
    nn, paired = float(np.sum(entries * (entries - 1))), int(np.sum(entries > 1))
    return Sums(S, N.astype(np.float64), A, nn, paired, rows.shape[0])


def pair_tables(rows: Observed, shift: Floats, counts: bool, cross: bool, n_jobs: int | None) -> PairSums:
    """The `PairSums` of rows that are already checked."""
    n, d = rows.shape
    density, threads = rows.nnz / max(n * d, 1), thread_count(n_jobs)
    N = np.zeros((d, d), np.int64) if counts else None
    data = (rows.indptr, rows.indices, rows.values)
    apart = density > _BITS
    if N is not None and apart:
        _core.column_pair_counts(*data, None, N, d, threads)
    if density > _DENSE:
        S, A = _products(rows, shift, cross)
    else:
        S, A = np.zeros((d, d)), np.zeros((d, d)) if cross else None
        origin = np.ascontiguousarray(shift, dtype=np.float64)
        scattered = None if apart else N
        if d > _WIDE:
            by = rows.columns
            _core.column_pair_sums_by_column(*data, by.indptr, by.rows, by.positions, origin, S, scattered, A, threads)
        else:
            n_tables = 1 + (scattered is not None) + (A is not None)
            stripe = max(_STRIPE // (8 * n_tables * max(d, 1)), 1)
            if threads > 1 and d > _NARROW:  # several a thread, as they differ in work
                stripe = min(stripe, -(-d // (2 * threads)))
            _core.column_pair_sums(*data, origin, S, scattered, A, stripe, threads)
        _core.mirror_upper(S, threads)
    if N is not None:
        _core.mirror_upper(N, threads)
    return PairSums(S, N, A)


@np.errstate(over="ignore", invalid="ignore")  # `check_sums` refuses them
def _products(rows: Observed, shift: Floats, cross: bool) -> tuple[Floats, Floats | None]:
    """Sums of products and cross sums (d, d), the latter None without `cross`, by matrix products of zero-filled blocks
    of rows.
    """
    n, d = rows.shape
    S, A = np.zeros((d, d)), np.zeros((d, d)) if cross else None
    step = max(_CHUNK // max(d, 1), _FEWEST)
    for start in range(0, n, step):
        part = slice(rows.indptr[start], rows.indptr[min(start + step, n)])
        at = np.repeat(np.arange(len(rows.row_counts[start : start + step])), rows.row_counts[start : start + step])
        columns = rows.indices[part]
        z = np.zeros((min(step, n - start), d))
        z[at, columns] = rows.values[part].astype(np.float64) - shift[columns]
        S += z.T @ z  # NumPy calls dsyrk for it
        if A is not None:
            seen = np.zeros_like(z)
            seen[at, columns] = 1.0
            A += z.T @ seen
    return S, A


def added(first: Sums, second: Sums) -> Sums:
    """Sums over two sets of rows about the same shift."""
    nn, paired, m = first.nn + second.nn, first.paired + second.paired, first.m + second.m
    return Sums(first.S + second.S, first.N + second.N, first.A + second.A, nn, paired, m)


def added_across(first: Sums, first_shift: Floats, second: Sums, second_shift: Floats) -> Sums:
    """Sums over two sets of rows, which have shifts of their own, about that of the first. Exact."""
    return added(first, moved(second, first_shift - second_shift))


def check_shift(shift: Any, d: int) -> NDArray[np.float64] | None:
    """A shift (d,) of finite numbers, or None."""
    if shift is None:
        return None
    numbers = np.array(shift, dtype=np.float64)
    if numbers.shape != (d,) or not np.isfinite(numbers).all():
        raise ValueError(
            f"shift must be {d} finite numbers, one a column; got shape {numbers.shape}. Pass None for the means of the batch."
        )
    return numbers


def covariance_of(sums: Sums, *, center: bool, weights: str, p: Any, pseudo_count: float) -> Floats:
    """Covariance (d, d), or second moment where not centred; "auto" weights are "pairwise"."""
    scheme = "pairwise" if weights == "auto" else weights
    rate = None if p is None else np.asarray(p, dtype=np.float64)
    estimate = _moments.covariance if center else _moments.second_moment
    return estimate(sums, scheme, p=rate, pseudo_count=pseudo_count)


class Implicit(NamedTuple):
    """The matrix sum_r sign_r diag(side_r) X'X diag(side_r) + diag(remainder), X the rows with 0 where nothing is observed."""

    total: ridge.Total  # over rows about their means, where centred
    sides: Floats  # (d, r)
    signs: Floats  # (r,)
    remainder: Floats  # (d,)
    diagonal: Floats  # (d,)

    def times(self, V: Floats) -> Floats:
        """The matrix times a block of vectors (d, v). O(nnz r v)."""
        d, v = V.shape
        block = np.ascontiguousarray((self.sides[:, :, None] * V[:, None, :]).reshape(d, -1))
        products = self.total(gram_product, block)[0]
        product: Floats = np.einsum("dr,drv->dv", self.sides * self.signs, products.reshape(d, -1, v))
        return product + self.remainder[:, None] * V

    def divided(self, scale: Floats) -> Implicit:
        """The matrix of the columns divided by a scale (d,)."""
        sides, square = self.sides / scale[:, None], scale**2
        return self._replace(sides=sides, remainder=self.remainder / square, diagonal=self.diagonal / square)


def implicit_covariance(
    rows: Observed | RowParts,
    *,
    weights: str,
    p: Floats | None,
    center: bool,
    pseudo_count: float,
    n_jobs: int | None,
) -> Implicit:
    """The matrix of `_moments.covariance`, or of `second_moment` where not centred, of rows about their means, never formed.

    For any weights but "pairwise"; "auto" is "kappa".

    Exact for `pseudo_count` 0. Otherwise 1 / (count + pseudo_count) is no product of two columns' numbers, and a sum of such
    products stands for it: one or two for counts that are alike (to 1e-6), some fifteen for counts that span four orders of
    magnitude (to 2e-3). O(nnz) to make.
    """
    m, n, nn, *_, q = count(rows, n_jobs)
    d = len(n)
    scheme = "kappa" if weights == "auto" else weights
    expected = expected_counts(scheme, n, nn, m, p)
    usable = n > (1 if center else 0)
    freedom = own_freedom(n, m) if center else np.ones(d)
    sides, signs = _inverse_counts(expected, pseudo_count)
    sides = np.divide(sides, freedom[:, None], out=np.zeros_like(sides), where=usable[:, None])
    own = expected.own * ((1 - 1 / np.maximum(n, 1)) if center else 1.0)
    diagonal = np.divide(q, own, out=np.zeros(d), where=usable)
    remainder = diagonal - (sides**2 @ signs) * q
    return Implicit(sums_over(rows, None, n_jobs), np.ascontiguousarray(sides), signs, remainder, diagonal)


def _inverse_counts(expected: Expected, pseudo_count: float) -> tuple[Floats, Floats]:
    """Sides (d, r) and signs (r,) with 1 / (a_i a_j + c) = sum_r sign_r side_ir side_jr, a the expected counts' roots."""
    a = expected.pair
    seen = a > 0
    sides = np.zeros((len(a), 1))
    if pseudo_count == 0 or not seen.any():
        np.divide(1.0, a, out=sides[:, 0], where=seen)
        return sides, np.ones(1)
    low, high = np.log(a[seen].min()), np.log(a[seen].max())
    turn = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    nodes = np.exp((low + high) / 2 + turn * (high - low) / 2)
    # Relative to its own diagonal the division is smooth in log a, bounded by 1 and of low numerical rank.
    values, vectors = np.linalg.eigh(_relative(nodes, nodes, pseudo_count))
    large = np.abs(values) > _LEFT_OUT * np.abs(values).max()
    values, vectors = values[large], vectors[:, large]
    sides = np.zeros((len(a), len(values)))
    sides[seen] = (_relative(a[seen], nodes, pseudo_count) @ vectors) / np.sqrt(np.abs(values))
    sides[seen] /= np.sqrt(a[seen, None] ** 2 + pseudo_count)
    return sides, np.sign(values)


def _relative(a: Floats, b: Floats, c: float) -> Floats:
    return np.sqrt(np.outer(a**2 + c, b**2 + c)) / (np.outer(a, b) + c)


class Spectrum(NamedTuple):
    """Top eigenpairs by algebraic value, total variance, and the gauge of noise lambda_min."""

    values: Floats  # (k,)
    vectors: Floats  # (k, d)
    trace: float
    smallest: float
    negative: int  # eigenvalues below 0, -1 when not counted


def dense_spectrum(C: Floats, k: int) -> Spectrum:
    """Top k eigenpairs of C (d, d), from all eigenvalues. O(d^3)."""
    check_sums(C, "covariances")
    values, vectors = eigh(C)
    top = _leading(values, vectors, k)
    return Spectrum(values[::-1][:k].copy(), signed(top), float(np.trace(C)), float(values[0]), int(np.sum(values < 0)))


def free_spectrum(C: Implicit, k: int, rng: np.random.Generator) -> Spectrum:
    """Top k < d eigenpairs by products alone, and a rough smallest one: some ten products with blocks of k + 2 to k + 9 vectors.

    Block Lanczos with thick restarts (Zhou and Saad, "Block Krylov-Schur method for large symmetric eigenvalue problems", 2008):
    a pass over the rows costs little more for eight vectors than for one. Its basis takes 8 d (2 k + 4 b) bytes for blocks of b;
    nothing of size (d, d) is made. SciPy's eigsh and lobpcg take more passes.
    """
    d = len(C.remainder)
    check_sums(C.diagonal, "covariances")
    if not C.diagonal.any():  # nothing to start from
        return Spectrum(np.zeros(k), np.eye(k, d), 0.0, 0.0, -1)
    b = min(d, -(-(k + 2) // 8) * 8)
    basis, inner, values, turn = np.empty((d, 0)), np.empty((0, 0)), np.empty(0), np.empty((0, 0))
    block = np.linalg.qr(rng.normal(size=(d, b)))[0]
    for round_ in range(_MOST_ROUNDS):
        if basis.shape[1] + b > max(2 * k + 4 * b, _LEAST_BASIS):  # a thick restart
            ritz = np.r_[:1, len(values) - k - b : len(values)]
            basis, inner = basis @ turn[:, ritz], np.diag(values[ritz])
        image = C.times(block)
        basis, inner = _with_block(basis, inner, block, image)
        values, turn = np.linalg.eigh(inner)
        block, missed = _left_over(image, basis, values, turn[-block.shape[1] :])
        low = missed[0] <= _ROUGH * np.abs(values[0]) or round_ >= _LOW_ROUNDS
        if not block.shape[1] or (low and np.all(missed[-k:] <= _TOL * np.abs(values[-k:]))):
            break
    top = _leading(values[-k - b :], basis @ turn[:, -k - b :], k)
    return Spectrum(values[::-1][:k].copy(), signed(top), float(C.diagonal.sum()), float(values[0]), -1)


def _leading(values: Floats, vectors: Floats, k: int) -> Floats:
    """Rows (k, d): canonical eigenvectors of the largest of rising `values`, of `vectors` (d, n)."""
    falling = np.ascontiguousarray(vectors[:, ::-1])
    return np.ascontiguousarray((falling @ canonical_turn(values[::-1], falling, k)).T)


def _with_block(basis: Floats, inner: Floats, block: Floats, image: Floats) -> tuple[Floats, Floats]:
    """The basis Q (d, m) with a block more, and Q' C Q with the products of its image C block."""
    start, basis = basis.shape[1], np.hstack([basis, block])
    across = basis.T @ image
    own = (across[start:] + across[start:].T) / 2
    return basis, np.block([[inner, across[:start]], [across[:start].T, own]])


def _left_over(image: Floats, basis: Floats, values: Floats, last: Floats) -> tuple[Floats, Floats]:
    """Orthonormal directions (d, v) of the image outside the basis, and |C q - value q| (m,) of every Ritz pair.

    `last` (b, m) are the Ritz vectors in the coordinates of the block whose image it is.
    """
    for _ in range(2):
        image = image - basis @ (basis.T @ image)
    directions, lengths, right = np.linalg.svd(image, full_matrices=False)
    new = lengths > _DEPENDENT * np.abs(values).max()
    new[max(basis.shape[0] - basis.shape[1], 0) :] = False
    return directions[:, new], np.linalg.norm((lengths[:, None] * right) @ last, axis=0)
