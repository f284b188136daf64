"""Eigenvectors without LAPACK's freedom: the basis of an eigenspace, and its part that a cut leaves, follow from the space alone.

Where eigenvalues agree, LAPACK may return any orthonormal basis of their space, and rounding, which differs between
machines, chooses it; of a single eigenvector it chooses the sign. What cuts eigenvectors to a number, learns a coefficient
for each or returns them uses the functions here.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from lacunar._random import generator
from lacunar._typing import Floats

# Nearer than this share of the largest, two eigenvalues count as one. LAPACK turns eigenvectors by about eps / gap towards each
# other: beyond the gap each keeps half of its digits, below it only the space of all of them does.
SAME = float(np.sqrt(np.finfo(np.float64).eps))
_SEED = 862  # of the reference; any would do, and with this one models of version 0.1.0 and new fits agree in signs


def spaces(values: Floats) -> list[tuple[int, int]]:
    """First and last-plus-one position of each run of equal eigenvalues, of sorted `values` (n,)."""
    if not len(values):
        return []
    steps = np.abs(np.diff(values)) > SAME * np.abs(values).max()
    return list(pairwise([0, *(np.flatnonzero(steps) + 1).tolist(), len(values)]))


def reference(d: int, width: int) -> Floats:
    """Directions (d, width) that no table has a hand in; a column does not depend on how many come after it."""
    return generator(_SEED).standard_normal((width, d)).T


def canonical_turn(values: Floats, vectors: Floats, k: int | None = None) -> Floats:
    """T (n, k) such that `vectors @ T` are k leading eigenvectors that depend on the eigenspaces alone, not on their bases.

    `vectors` (d, n) are eigenvectors of the sorted `values` (n,), the leading ones first. T is orthonormal and mixes vectors of
    equal eigenvalues only: in each space the reference directions' projections are orthonormalised in their order. The last space is
    cut to as many of them as k leaves. A space of one vector keeps it but for the sign.
    """
    n = len(values)
    k = n if k is None else min(k, n)
    runs = [(start, stop) for start, stop in spaces(values) if start < k]
    directions = reference(len(vectors), max((min(stop, k) - start for start, stop in runs), default=0))
    turn = np.zeros((n, k))
    for start, stop in runs:
        width = min(stop, k) - start
        inner, triangle = np.linalg.qr(vectors[:, start:stop].T @ directions[:, :width])
        turn[start:stop, start : start + width] = inner * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    return turn


def leading_eigenvectors(matrix: Floats, k: int | None = None) -> tuple[Floats, Floats]:
    """The k largest eigenvalues, falling, and canonical eigenvectors (n, k) of a symmetric matrix (n, n); all without k. O(n^3)."""
    values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1], vectors[:, ::-1]
    turn = canonical_turn(values, vectors, k)
    return values[: turn.shape[1]].copy(), vectors @ turn


def completed(basis: Floats, k: int) -> Floats:
    """Orthonormal columns (d, k), k <= d: those of `basis` (d, r), r <= k, and canonical ones of what is orthogonal to them all."""
    r = basis.shape[1]
    if r >= k:
        return basis
    outside = reference(len(basis), k - r)
    for _ in range(2):  # the second time takes off what rounding left of the basis
        outside = outside - basis @ (basis.T @ outside)
    inner, triangle = np.linalg.qr(outside)
    return np.hstack([basis, inner * np.where(np.diag(triangle) < 0, -1.0, 1.0)])


def signed(vectors: Floats) -> Floats:
    """The entry of largest modulus of every row made positive; of several equal ones the first."""
    sizes = np.abs(vectors)
    at = np.argmax(sizes >= (1 - SAME) * sizes.max(axis=1, keepdims=True, initial=0.0), axis=1)
    sign = np.where(vectors[np.arange(len(vectors)), at] < 0, -1.0, 1.0)
    return np.asarray(vectors * sign[:, None])
