"""Fixed point continuation: one partly observed matrix of features and labels, completed with a small nuclear norm.

A step is a gradient step and a singular value threshold, and the weight mu of the nuclear norm falls from value to
value. In order: the matrix and its loss, low rank as two factors, the thresholds, the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, qr, svd
from scipy.special import expit

from lacunar._typing import Floats
from lacunar.observed import Observed

Loss = Literal["logistic", "squared"]
SvdSolver = Literal["auto", "full", "truncated"]

_STEP = 0.95  # of 1 / Lipschitz constant: the 3.8 = 0.95 * 4 of Goldberg et al.

_FULL_WORK = 2e8  # n D min(n, D) up to which "auto" decomposes the whole matrix: some 20 ms a step
_ROWS = 256  # rows of the low-rank matrix that are written out at once
_ENTRIES = 4096  # entries whose factors are gathered at once
_SPARSER = 25  # one entry in so many cells: from there on gathering beats writing out rows (measured: equal at 4 %)
_SPARE = 8  # columns of a block beyond those wanted: they carry the directions that come next
_SWEEPS = 30

# A truncated decomposition is as exact as this share of the last step's change, and of at most this change: what it
# misses is found again from where it stopped.
_SHARE, _LOOSEST = 0.1, 1e-2

_RESOLVED = 1e-6  # relative change down to which inner products of factors tell it to a few digits
_WINDOW = 5  # steps whose largest change is compared with that of as many before, at least


@dataclass(frozen=True)
class Stacked:
    """Rows [features (d), labels (m), ones (0 or 1)]; the last m + [ones] columns are the block, held dense.

    The column of ones of mc-1 is reset to 1 after every threshold. The gradient step then starts from 1, as it would
    end there for an observed entry of weight 1 / step: the reset is that entry, and no other case.
    """

    rows: Observed  # (n, d)
    labels: Floats  # (n, m), NaN where unknown; 0 and 1 under the logistic loss
    loss: Loss
    ones: bool
    lam: float

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the whole matrix."""
        return self.rows.shape[0], self.rows.shape[1] + self.labels.shape[1] + self.ones

    @property
    def n_entries(self) -> int:
        """|Omega_X|, at least 1."""
        return max(self.rows.nnz, 1)

    @property
    def label_weight(self) -> float:
        """lambda / |Omega_Y|."""
        return self.lam / max(int(np.count_nonzero(~np.isnan(self.labels))), 1)

    @property
    def step(self) -> float:
        """tau_Z: the smaller of what labels and features allow."""
        return min(_STEP / (self.label_weight * self._curvature), float(self.n_entries))

    @property
    def bias_step(self) -> float:
        """tau_b: a bias meets at most n labels."""
        return _STEP / (self.label_weight * self._curvature * max(self.rows.shape[0], 1))

    @property
    def _curvature(self) -> float:
        return 0.25 if self.loss == "logistic" else 1.0

    def gradient(self, entries: Floats, block: Floats, bias: Floats) -> Gradient:
        """Of the loss at a matrix with these observed entries (nnz,) and this block (n, m + [ones])."""
        m = self.labels.shape[1]
        value = block[:, :m] + bias
        fitted = expit(value) if self.loss == "logistic" else value
        block_gradient = np.zeros_like(block)
        block_gradient[:, :m] = np.nan_to_num(fitted - self.labels) * self.label_weight
        if self.ones:
            block_gradient[:, m] = (block[:, m] - 1.0) / self.step
        return Gradient((entries - self.rows.values) / self.n_entries, block_gradient)


class Gradient(NamedTuple):
    """Gradient of the loss: its entries on observed features, and the block of the last columns; zero elsewhere."""

    entries: Floats  # (nnz,)
    block: Floats  # (n, m + [ones])


class Factored(NamedTuple):
    """left @ right.T, `right` orthonormal after a threshold; `sizes` its singular values, `start` the next block."""

    left: Floats  # (n, r)
    right: Floats  # (D, r)
    sizes: Floats  # (r,)
    start: Floats | None  # (D, k >= r)

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Factored:
        return cls(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)), np.zeros(0), None)

    def at(self, rows: Observed) -> Floats:
        """Values (nnz,) at the observed cells: entry by entry where few are, else a few whole rows at a time."""
        values, right = np.empty(rows.nnz), self.right[: rows.shape[1]]
        line = rows.row_numbers
        if rows.nnz * _SPARSER < rows.shape[0] * rows.shape[1]:
            for start in range(0, rows.nnz, _ENTRIES):
                part = slice(start, start + _ENTRIES)
                np.einsum("ij,ij->i", self.left[line[part]], right[rows.indices[part]], out=values[part])
            return values
        basis = np.ascontiguousarray(right.T)
        for start in range(0, rows.shape[0], _ROWS):
            part = slice(*rows.indptr[[start, min(start + _ROWS, rows.shape[0])]])
            values[part] = (self.left[start : start + _ROWS] @ basis)[line[part] - start, rows.indices[part]]
        return values

    def inner(self, other: Factored) -> float:
        """Sum of products of the entries. O((n + D) r^2)."""
        return float(np.sum((self.left.T @ other.left) * (self.right.T @ other.right)))

    def beyond(self, before: Factored, share: float) -> Factored:
        """self + share (self - before); its `sizes` are those of self."""
        left = np.hstack([(1 + share) * self.left, -share * before.left])
        return Factored(left, np.hstack([self.right, before.right]), self.sizes, self.start)


def cores(*matrices: Factored) -> list[Floats]:
    """Small matrices A_i with matrix_i = P A_i Q', P and Q orthonormal and common to all.

    Differences of the small ones are exact to rounding; inner products of the factors lose half of the digits.
    """
    ends = np.cumsum([0, *(matrix.left.shape[1] for matrix in matrices)])
    left, right = (
        qr(np.hstack(sides), mode="r", check_finite=False)[0]
        for sides in ([matrix.left for matrix in matrices], [matrix.right for matrix in matrices])
    )
    return [left[:, a:b] @ right[:, a:b].T for a, b in pairwise(ends)]


class Moved:
    """Z - step * gradient: low rank, sparse on the features and dense in the last few columns; never written out."""

    def __init__(self, base: Factored, rows: Observed, entries: Floats, block: Floats) -> None:
        """`entries` (nnz,) and `block` (n, e) are what is added to `base`."""
        self.base, self.block = base, block
        self.sparse = sp.csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)
        self.shape = rows.shape[0], rows.shape[1] + block.shape[1]

    def times(self, right: Floats) -> Floats:
        """(n, k) of right (D, k)."""
        d = self.sparse.shape[1]
        product: Floats = self.base.left @ (self.base.right.T @ right)
        product += self.sparse @ right[:d] + self.block @ right[d:]
        return product

    def transposed_times(self, left: Floats) -> Floats:
        """(D, k) of left (n, k)."""
        product: Floats = self.base.right @ (self.base.left.T @ left)
        product += np.vstack([self.sparse.T @ left, self.block.T @ left])
        return product

    def dense(self) -> Floats:
        """Written out, for small matrices."""
        full: Floats = self.base.left @ self.base.right.T
        full[:, : self.sparse.shape[1]] += self.sparse.toarray()
        full[:, self.sparse.shape[1] :] += self.block
        return full


Threshold = Callable[[Moved, float, float], Factored]  # of a matrix, a level and an accuracy


def threshold_exactly(matrix: Moved, level: float, accuracy: float, *, max_rank: int) -> Factored:
    """Singular values less `level`. O(n D min(n, D)).

    From the eigenvectors of the smaller Gram, where the digits that lie between the largest singular value and `level`
    leave enough for `accuracy` (relative to the largest), else from a singular value decomposition, some five times the
    work.
    """
    full = matrix.dense()
    tall = full.shape[0] >= full.shape[1]
    gram = full.T @ full if tall else full @ full.T
    values, vectors = eigh(gram, check_finite=False)
    sizes = np.sqrt(np.maximum(values, 0.0))[::-1][:max_rank]
    if np.finfo(float).eps * sizes[0] > accuracy * level:
        return _by_svd(full, level, max_rank)
    above = sizes > level
    sizes, vectors = sizes[above], vectors[:, ::-1][:, : len(above)][:, above]
    if tall:
        return Factored(full @ vectors * (1 - level / sizes), vectors, sizes - level, None)
    return Factored(vectors * (sizes - level), full.T @ vectors / sizes, sizes - level, None)


def _by_svd(full: Floats, level: float, max_rank: int) -> Factored:
    left, sizes, right = svd(full, full_matrices=False, check_finite=False)
    above = sizes[:max_rank] > level
    left, sizes, right = left[:, : len(above)][:, above], sizes[: len(above)][above], right[: len(above)][above].T
    return Factored(left * (sizes - level), right, sizes - level, None)


def threshold_truncated(
    matrix: Moved, level: float, accuracy: float, *, max_rank: int, rng: np.random.Generator
) -> Factored:
    """The same from products with the matrix: block iteration from the last step's directions, widened until enough.

    `accuracy` is what a sweep may still change in a singular value, relative to the largest. O((nnz + (n + D) r) k) a
    sweep.
    """
    most = min(matrix.shape)
    start = matrix.base.start
    width = min(_SPARE, most) if start is None else start.shape[1]
    start = rng.normal(size=(matrix.shape[1], width)) if start is None else start
    while True:
        left, sizes, right = _block_iteration(matrix, start, level, accuracy)
        rank = int(np.count_nonzero(sizes > level))
        if rank >= max_rank or len(sizes) == most or rank + _SPARE // 2 <= len(sizes):
            break
        wider = min(len(sizes) + max(_SPARE, len(sizes) // 2), most, max_rank + _SPARE)
        if wider == len(sizes):
            break
        start = np.hstack([right, rng.normal(size=(matrix.shape[1], wider - len(sizes)))])
    rank, following = min(rank, max_rank), right[:, : rank + 2 * _SPARE]
    return Factored(left[:, :rank] * (sizes[:rank] - level), right[:, :rank], sizes[:rank] - level, following)


def _block_iteration(matrix: Moved, start: Floats, level: float, accuracy: float) -> tuple[Floats, Floats, Floats]:
    right, before = start, np.zeros(start.shape[1])
    for _ in range(_SWEEPS):
        left, _ = qr(matrix.times(right), mode="economic", check_finite=False)
        right, sizes, turn = svd(matrix.transposed_times(left), full_matrices=False, check_finite=False)
        n_above = max(int(np.count_nonzero(sizes > level)), 1)  # what is below converges slowest, and is cut off
        if np.abs(sizes - before)[:n_above].max() <= accuracy * max(sizes[0], 1e-300):
            break
        before = sizes
    return left @ turn.T, sizes, right


class Iterate(NamedTuple):
    """The unknowns, and what the loss sees of them; all but `inner` is linear."""

    matrix: Factored
    bias: Floats  # (m,)
    entries: Floats  # (nnz,)
    block: Floats  # (n, m + [ones])

    @classmethod
    def of(cls, stacked: Stacked, matrix: Factored, bias: Floats) -> Iterate:
        """The iterate of a matrix and a bias, with the observed cells of the matrix."""
        block = matrix.left @ matrix.right[stacked.rows.shape[1] :].T
        return cls(matrix, bias, matrix.at(stacked.rows), block)

    def beyond(self, before: Iterate, share: float) -> Iterate:
        """self + share (self - before)."""
        bias, entries, block = (
            (1 + share) * now - share * then for now, then in zip(self[1:], before[1:], strict=True)
        )
        return Iterate(self.matrix.beyond(before.matrix, share), bias, entries, block)

    def inner(self, other: Iterate) -> float:
        return self.matrix.inner(other.matrix) + float(self.bias @ other.bias)


class Solution(NamedTuple):
    """Where the continuation stands after the steps at one mu."""

    mu: float
    matrix: Factored
    bias: Floats  # (m,)
    n_iter: int
    distance: float  # relative: to the fixed point as estimated or, without momentum, the change of the last step
    converged: bool


def values_of(stacked: Stacked, solution: Solution) -> Floats:
    """Values (n, m) of the labels, bias included."""
    d, m = stacked.rows.shape[1], stacked.labels.shape[1]
    return solution.matrix.left @ solution.matrix.right[d : d + m].T + solution.bias


def make_threshold(
    shape: tuple[int, int], svd_solver: SvdSolver, max_rank: int | None, rng: np.random.Generator
) -> Threshold:
    """How a matrix of this shape is decomposed, at most `max_rank` singular values of it kept."""
    most = min(shape) if max_rank is None else min(max_rank, *shape)
    work = float(shape[0]) * shape[1] * min(shape)
    if svd_solver == "full" or (svd_solver == "auto" and work <= _FULL_WORK):
        return partial(threshold_exactly, max_rank=most)
    return partial(threshold_truncated, max_rank=most, rng=rng)


def largest_mu(stacked: Stacked, threshold: Threshold) -> float:
    """The least mu at which the matrix is zero: the largest singular value of the gradient there.

    `threshold` need keep one singular value only.
    """
    zero = Iterate.of(stacked, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]))
    slope = stacked.gradient(zero.entries, zero.block, zero.bias)
    moved = threshold(Moved(zero.matrix, stacked.rows, slope.entries, slope.block), 0.0, _SHARE * _LOOSEST)
    return float(moved.sizes.max(initial=0.0))


def mu_path(largest: float, smallest: float, eta: float) -> Iterator[float]:
    """largest * eta, largest * eta^2, ... and `smallest`."""
    mu = largest * eta
    while mu > smallest:
        yield mu
        mu *= eta
    yield smallest


def continuation(
    stacked: Stacked, mus: Iterator[float], threshold: Threshold, tol: float, max_iter: int, *, momentum: bool = True
) -> Iterator[Solution]:
    """Solutions along falling mu, each started from the one before, of at most `max_iter` steps each.

    A step is Z <- S_{step mu}(Z - step grad); without a column of ones also b <- b - bias_step grad_b, from the same
    gradient. It starts from beyond the last iterate (Nesterov), momentum reset where it points back, and steps end
    where the distance to the solution is `tol`. Without momentum, as Goldberg et al. and Hazan et al. print it, `tol`
    is the change of a step.
    """
    solution = Solution(np.inf, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]), 0, np.inf, False)
    for mu in mus:
        yield (solution := _solve(stacked, solution, mu, threshold, tol, max_iter, momentum))


def _solve(
    stacked: Stacked, start: Solution, mu: float, threshold: Threshold, tol: float, max_iter: int, momentum: bool
) -> Solution:
    """The solution after the steps at one mu."""
    before = here = point = Iterate.of(stacked, start.matrix, start.bias)
    weight, change, changes, distance = 1.0, np.inf, list[float](), np.inf
    while len(changes) < max_iter and distance > tol:
        accuracy = _SHARE * min(max(change, tol), _LOOSEST)
        # Matrix and bias move together under one label: with momentum, half a step each.
        length = 1.0 if stacked.ones or not momentum else 0.5
        after = _step(stacked, point, mu, threshold, accuracy, length)
        changes.append(change := _change(here, after))
        distance = distance_left(changes) if momentum else change
        before, here = here, after
        if not momentum:
            point = here
            continue
        if _turns_back(point, here, before, change):
            weight = 1.0
        following = (1 + np.sqrt(1 + 4 * weight**2)) / 2
        share, weight = (weight - 1) / following, following
        point = here.beyond(before, share)
    return Solution(mu, here.matrix, here.bias, len(changes), distance, distance <= tol)


def distance_left(changes: list[float]) -> float:
    """An estimate of the distance to the fixed point: what the changes of steps to come add up to, from those so far.

    Changes fall like a geometric series in the end, though not from step to step under momentum: the largest of the
    last quarter of the steps is compared with the largest of the quarter before. Infinite while they do not fall.
    """
    window = max(len(changes) // 4, _WINDOW)
    if len(changes) < 2 * window:
        return np.inf if changes[-1] > 0 else 0.0
    now, then = max(changes[-window:]), max(changes[-2 * window : -window])
    return now if now == 0 else window * now * now / (then - now) if now < then else np.inf


def _step(stacked: Stacked, point: Iterate, mu: float, threshold: Threshold, accuracy: float, length: float) -> Iterate:
    m = stacked.labels.shape[1]
    slope = stacked.gradient(point.entries, point.block, point.bias)
    step, bias_step = length * stacked.step, 0.0 if stacked.ones else length * stacked.bias_step
    moved = Moved(point.matrix, stacked.rows, -step * slope.entries, -step * slope.block)
    bias = point.bias - bias_step * slope.block[:, :m].sum(axis=0)
    return Iterate.of(stacked, threshold(moved, step * mu, accuracy), bias)


def _change(before: Iterate, after: Iterate) -> float:
    """Relative change of matrix or bias."""
    size = max(float(np.linalg.norm(before.matrix.sizes)), 1.0)
    squared = float(np.sum(before.matrix.sizes**2)) + float(np.sum(after.matrix.sizes**2))
    moved = float(np.sqrt(max(squared - 2 * before.matrix.inner(after.matrix), 0.0)))
    if moved < _RESOLVED * size:
        moved = float(np.linalg.norm(np.subtract(*cores(before.matrix, after.matrix))))
    shift, bias = (float(np.abs(b).max(initial=0.0)) for b in (after.bias - before.bias, before.bias))
    return max(moved / size, shift / max(bias, 1.0))


def _turns_back(point: Iterate, here: Iterate, before: Iterate, change: float) -> bool:
    """Whether <point - here, here - before> > 0: momentum points away from where the gradient leads [O'Donoghue,
    Candes].
    """
    if change >= _RESOLVED:
        return point.inner(here) - point.inner(before) - here.inner(here) + here.inner(before) > 0
    A, B, C = cores(point.matrix, here.matrix, before.matrix)
    return float(np.sum((A - B) * (B - C))) + float((point.bias - here.bias) @ (here.bias - before.bias)) > 0
