"""One partly observed matrix of features and labels, completed by fixed point continuation.

A step is a gradient step and a singular value threshold; the weight mu of the nuclear norm falls from value to value. In order:
the matrix and its loss, low rank as two factors, the thresholds, the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd
from scipy.special import expit

from lacunar.observed import Observed

_Floats = NDArray[np.float64]
Loss = Literal["logistic", "squared"]
SvdSolver = Literal["auto", "full", "truncated"]

_STEP = 0.95  # of 1 / Lipschitz constant: the 3.8 = 0.95 * 4 of Goldberg et al.

_FULL_WORK = 2e8  # n D min(n, D) up to which "auto" decomposes the whole matrix: some 20 ms a step
_ROWS = 256  # rows of the low-rank matrix that are written out at once
_ENTRIES = 4096  # entries whose factors are gathered at once
_SPARSER = 25  # one entry in so many cells: from there on gathering beats writing out rows (measured: equal at 4 %)
_SPARE = 8  # columns of a block beyond those wanted: they carry the directions that come next
_SWEEPS = 30

# A truncated decomposition is as exact as this share of the last step's change, and of at most this change: what it misses
# is found again from where it stopped.
_SHARE, _LOOSEST = 0.1, 1e-2

_RESOLVED = 1e-6  # relative change down to which inner products of factors tell it to a few digits
_WINDOW = 5  # steps whose largest change is compared with that of as many before, at least


@dataclass(frozen=True)
class Stacked:
    """Rows [features (d), labels (m), ones (0 or 1)]; the last m + [ones] columns are the block, held dense.

    The column of ones of mc-1 is reset to 1 after every threshold. The gradient step then starts from 1, as it would end
    there for an observed entry of weight 1 / step: the reset is that entry, and no other case.
    """

    rows: Observed  # (n, d)
    labels: _Floats  # (n, m), NaN where unknown; 0 and 1 under the logistic loss
    loss: Loss
    ones: bool
    lam: float

    @property
    def shape(self) -> tuple[int, int]:
        """Of the whole matrix."""
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

    def gradient(self, entries: _Floats, block: _Floats, bias: _Floats) -> Gradient:
        """Of the loss at a matrix with these observed entries (nnz,) and this block (n, m + [ones])."""
        m = self.labels.shape[1]
        value = block[:, :m] + bias
        fitted = expit(value) if self.loss == "logistic" else value
        made = np.zeros_like(block)
        made[:, :m] = np.nan_to_num(fitted - self.labels) * self.label_weight
        if self.ones:
            made[:, m] = (block[:, m] - 1.0) / self.step
        return Gradient((entries - self.rows.values) / self.n_entries, made)


class Gradient(NamedTuple):
    """Nonzero only on observed features and in the block."""

    entries: _Floats  # (nnz,)
    block: _Floats  # (n, m + [ones])


class Factored(NamedTuple):
    """left @ right.T, `right` orthonormal after a threshold; `sizes` its singular values, `start` the next block."""

    left: _Floats  # (n, r)
    right: _Floats  # (D, r)
    sizes: _Floats  # (r,)
    start: _Floats | None  # (D, k >= r)

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> Factored:
        return cls(np.zeros((shape[0], 0)), np.zeros((shape[1], 0)), np.zeros(0), None)

    def at(self, rows: Observed) -> _Floats:
        """Values (nnz,) at the observed cells: entry by entry where few are, else a few whole rows at a time."""
        made, right = np.empty(rows.nnz), self.right[: rows.shape[1]]
        line = rows.row_numbers
        if rows.nnz * _SPARSER < rows.shape[0] * rows.shape[1]:
            for start in range(0, rows.nnz, _ENTRIES):
                part = slice(start, start + _ENTRIES)
                np.einsum("ij,ij->i", self.left[line[part]], right[rows.indices[part]], out=made[part])
            return made
        basis = np.ascontiguousarray(right.T)
        for start in range(0, rows.shape[0], _ROWS):
            part = slice(*rows.indptr[[start, min(start + _ROWS, rows.shape[0])]])
            made[part] = (self.left[start : start + _ROWS] @ basis)[line[part] - start, rows.indices[part]]
        return made

    def inner(self, other: Factored) -> float:
        """Sum of products of the entries. O((n + D) r^2)."""
        return float(np.sum((self.left.T @ other.left) * (self.right.T @ other.right)))

    def beyond(self, before: Factored, share: float) -> Factored:
        """self + share (self - before); its `sizes` are those of self."""
        left = np.hstack([(1 + share) * self.left, -share * before.left])
        return Factored(left, np.hstack([self.right, before.right]), self.sizes, self.start)


def cores(*matrices: Factored) -> list[_Floats]:
    """Small matrices A_i with matrix_i = P A_i Q', P and Q orthonormal and common to all.

    Differences of the small ones are exact to rounding; inner products of the factors lose half of the digits.
    """
    ends = np.cumsum([0, *(each.left.shape[1] for each in matrices)])
    left, right = (
        qr(np.hstack(sides), mode="r", check_finite=False)[0]
        for sides in ([each.left for each in matrices], [each.right for each in matrices])
    )
    return [left[:, a:b] @ right[:, a:b].T for a, b in pairwise(ends)]


class Moved:
    """Z - step * gradient: low rank, sparse on the features and dense in the last few columns; never written out."""

    def __init__(self, base: Factored, rows: Observed, entries: _Floats, block: _Floats) -> None:
        """`entries` (nnz,) and `block` (n, e) are what is added to `base`."""
        self.base, self.block = base, block
        self.sparse = sp.csr_array((entries, rows.indices, rows.indptr), shape=rows.shape)
        self.shape = rows.shape[0], rows.shape[1] + block.shape[1]

    def times(self, right: _Floats) -> _Floats:
        """(n, k) of right (D, k)."""
        d = self.sparse.shape[1]
        made: _Floats = self.base.left @ (self.base.right.T @ right)
        made += self.sparse @ right[:d] + self.block @ right[d:]
        return made

    def transposed_times(self, left: _Floats) -> _Floats:
        """(D, k) of left (n, k)."""
        made: _Floats = self.base.right @ (self.base.left.T @ left)
        made += np.vstack([self.sparse.T @ left, self.block.T @ left])
        return made

    def dense(self) -> _Floats:
        """Written out, for small matrices."""
        made: _Floats = self.base.left @ self.base.right.T
        made[:, : self.sparse.shape[1]] += self.sparse.toarray()
        made[:, self.sparse.shape[1] :] += self.block
        return made


Threshold = Callable[[Moved, float, float], Factored]  # of a matrix, a level and an accuracy


def threshold_exactly(matrix: Moved, level: float, accuracy: float, *, max_rank: int) -> Factored:
    """Singular values less `level`. O(n D min(n, D)).

    From the eigenvectors of the smaller Gram, where the digits that lie between the largest singular value and `level` leave
    enough for `accuracy` (relative to the largest), else from a singular value decomposition, some five times the work.
    """
    full = matrix.dense()
    tall = full.shape[0] >= full.shape[1]
    gram = full.T @ full if tall else full @ full.T
    values, vectors = eigh(gram, check_finite=False)
    sizes = np.sqrt(np.maximum(values, 0.0))[::-1][:max_rank]
    if np.finfo(float).eps * sizes[0] > accuracy * level:
        return _by_svd(full, level, max_rank)
    kept = sizes > level
    sizes, vectors = sizes[kept], vectors[:, ::-1][:, : len(kept)][:, kept]
    if tall:
        return Factored(full @ vectors * (1 - level / sizes), vectors, sizes - level, None)
    return Factored(vectors * (sizes - level), full.T @ vectors / sizes, sizes - level, None)


def _by_svd(full: _Floats, level: float, max_rank: int) -> Factored:
    left, sizes, right = svd(full, full_matrices=False, check_finite=False)
    kept = sizes[:max_rank] > level
    left, sizes, right = left[:, : len(kept)][:, kept], sizes[: len(kept)][kept], right[: len(kept)][kept].T
    return Factored(left * (sizes - level), right, sizes - level, None)


def threshold_truncated(
    matrix: Moved, level: float, accuracy: float, *, max_rank: int, rng: np.random.Generator
) -> Factored:
    """The same from products with the matrix: block iteration from the last step's directions, widened until enough.

    `accuracy` is what a sweep may still change in a singular value, relative to the largest. O((nnz + (n + D) r) k) a sweep.
    """
    most = min(matrix.shape)
    start = matrix.base.start
    width = min(_SPARE, most) if start is None else start.shape[1]
    start = rng.normal(size=(matrix.shape[1], width)) if start is None else start
    while True:
        left, sizes, right = _block_iteration(matrix, start, level, accuracy)
        kept = int(np.count_nonzero(sizes > level))
        if kept >= max_rank or len(sizes) == most or kept + _SPARE // 2 <= len(sizes):
            break
        wider = min(len(sizes) + max(_SPARE, len(sizes) // 2), most, max_rank + _SPARE)
        if wider == len(sizes):
            break
        start = np.hstack([right, rng.normal(size=(matrix.shape[1], wider - len(sizes)))])
    kept, following = min(kept, max_rank), right[:, : kept + 2 * _SPARE]
    return Factored(left[:, :kept] * (sizes[:kept] - level), right[:, :kept], sizes[:kept] - level, following)


def _block_iteration(matrix: Moved, start: _Floats, level: float, accuracy: float) -> tuple[_Floats, _Floats, _Floats]:
    right, before = start, np.zeros(start.shape[1])
    for _ in range(_SWEEPS):
        left, _ = qr(matrix.times(right), mode="economic", check_finite=False)
        right, sizes, turn = svd(matrix.transposed_times(left), full_matrices=False, check_finite=False)
        wanted = max(int(np.count_nonzero(sizes > level)), 1)  # what is below converges slowest, and is cut off
        if np.abs(sizes - before)[:wanted].max() <= accuracy * max(sizes[0], 1e-300):
            break
        before = sizes
    return left @ turn.T, sizes, right


class Iterate(NamedTuple):
    """The unknowns, and what the loss sees of them; all but `inner` is linear."""

    matrix: Factored
    bias: _Floats  # (m,)
    entries: _Floats  # (nnz,)
    block: _Floats  # (n, m + [ones])

    @classmethod
    def of(cls, stacked: Stacked, matrix: Factored, bias: _Floats) -> Iterate:
        """Reads the observed cells off the matrix."""
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
    bias: _Floats  # (m,)
    n_iter: int
    left: float  # relative: distance to the fixed point as estimated, or the change of the last step as printed
    converged: bool


def values_of(stacked: Stacked, solution: Solution) -> _Floats:
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
    found = threshold(Moved(zero.matrix, stacked.rows, slope.entries, slope.block), 0.0, _SHARE * _LOOSEST)
    return float(found.sizes.max(initial=0.0))


def mu_path(largest: float, smallest: float, eta: float) -> Iterator[float]:
    """largest * eta, largest * eta^2, ... and `smallest`."""
    mu = largest * eta
    while mu > smallest:
        yield mu
        mu *= eta
    yield smallest


def continuation(
    stacked: Stacked, mus: Iterator[float], threshold: Threshold, tol: float, max_iter: int, *, printed: bool = False
) -> Iterator[Solution]:
    """Solutions along falling mu, each started from the one before, of at most `max_iter` steps each.

    A step is Z <- S_{step mu}(Z - step grad); without a column of ones also b <- b - bias_step grad_b, from the same gradient. It
    starts from beyond the last iterate (Nesterov), momentum reset where it points back, and steps end where the distance to the
    solution is `tol`. As `printed` by Goldberg et al. and Hazan et al. there is no momentum, and `tol` is the change of a step.
    """
    found = Solution(np.inf, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]), 0, np.inf, False)
    for mu in mus:
        yield (found := _settle(stacked, found, mu, threshold, tol, max_iter, printed))


def _settle(
    stacked: Stacked, start: Solution, mu: float, threshold: Threshold, tol: float, max_iter: int, printed: bool
) -> Solution:
    before = here = point = Iterate.of(stacked, start.matrix, start.bias)
    momentum, change, changes, left = 1.0, np.inf, list[float](), np.inf
    while len(changes) < max_iter and left > tol:
        accuracy = _SHARE * min(max(change, tol), _LOOSEST)
        # Matrix and bias move together under one label: with momentum, half a step each.
        length = 1.0 if stacked.ones or printed else 0.5
        after = _step(stacked, point, mu, threshold, accuracy, length)
        changes.append(change := _change(here, after))
        left = change if printed else distance_left(changes)
        before, here = here, after
        if printed:
            point = here
            continue
        if _turns_back(point, here, before, change):
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        share, momentum = (momentum - 1) / following, following
        point = here.beyond(before, share)
    return Solution(mu, here.matrix, here.bias, len(changes), left, left <= tol)


def distance_left(changes: list[float]) -> float:
    """An estimate of the distance to the fixed point: what the changes of steps to come add up to, from those so far.

    Changes fall like a geometric series in the end, though not from step to step under momentum: the largest of the last
    quarter of the steps is compared with the largest of the quarter before. Infinite while they do not fall.
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
    """Whether <point - here, here - before> > 0: momentum points away from where the gradient leads [O'Donoghue, Candes]."""
    if change >= _RESOLVED:
        return point.inner(here) - point.inner(before) - here.inner(here) + here.inner(before) > 0
    A, B, C = cores(point.matrix, here.matrix, before.matrix)
    return float(np.sum((A - B) * (B - C))) + float((point.bias - here.bias) @ (here.bias - before.bias)) > 0
