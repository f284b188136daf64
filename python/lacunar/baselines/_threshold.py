"""Singular value thresholding of low rank plus sparse: exactly for small matrices, by warm block iteration for large ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh, qr, svd

from lacunar.observed import Observed

_Floats = NDArray[np.float64]

_ROWS = 256  # rows of the low-rank matrix that are written out at once
_ENTRIES = 4096  # entries whose factors are gathered at once
_SPARSER = 25  # one entry in so many cells: from there on gathering beats writing out rows (measured: equal at 4 %)
_SPARE = 8  # columns of a block beyond those wanted: they carry the directions that come next
_SWEEPS = 30


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
        line = np.repeat(np.arange(rows.shape[0]), rows.row_counts)
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

    def distance(self, other: Factored) -> float:
        """Frobenius norm of the difference, to rounding of the norms themselves. O((n + D) r^2)."""
        here, there = cores(self, other)
        return float(np.linalg.norm(here - there))

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
