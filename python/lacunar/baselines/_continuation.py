"""Fixed point continuation: gradient step, singular value threshold, and a nuclear norm that weighs less and less."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.baselines._stacked import Stacked
from lacunar.baselines._threshold import Factored, Moved, Threshold, cores, threshold_exactly, threshold_truncated

_Floats = NDArray[np.float64]
SvdSolver = Literal["auto", "full", "truncated"]

_FULL_WORK = 2e8  # n D min(n, D) up to which "auto" decomposes the whole matrix: some 20 ms a step

# A truncated decomposition is as exact as this share of the last step's change, and of at most this change: what it misses
# is found again from where it stopped.
_SHARE, _LOOSEST = 0.1, 1e-2

_RESOLVED = 1e-6  # relative change down to which inner products of factors tell it to a few digits
_WINDOW = 5  # steps whose largest change is compared with that of as many before, at least


class Steps(NamedTuple):
    """How steps are made and when they end."""

    bias: bool
    tol: float
    max_iter: int
    accelerate: bool
    printed: bool = False  # end on the change of a step, as Goldberg et al. and Hazan et al. do


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
    made: _Floats = solution.matrix.left @ solution.matrix.right[d : d + m].T + solution.bias
    return made


def make_threshold(
    shape: tuple[int, int], svd_solver: SvdSolver, max_rank: int | None, rng: np.random.Generator
) -> Threshold:
    """How a matrix of this shape is decomposed."""
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


def continuation(stacked: Stacked, mus: Iterator[float], threshold: Threshold, options: Steps) -> Iterator[Solution]:
    """Solutions along falling mu, each started from the one before.

    A step is Z <- S_{step mu}(Z - step grad); with `bias` also b <- b - bias_step grad_b, from the same gradient. With
    `accelerate` it starts from beyond the last iterate (Nesterov), momentum reset where it points back.
    """
    found = Solution(np.inf, Factored.zero(stacked.shape), np.zeros(stacked.labels.shape[1]), 0, np.inf, False)
    for mu in mus:
        yield (found := _settle(stacked, found, mu, threshold, options))


def _settle(stacked: Stacked, start: Solution, mu: float, threshold: Threshold, options: Steps) -> Solution:
    before = here = point = Iterate.of(stacked, start.matrix, start.bias)
    momentum, change, changes, left = 1.0, np.inf, list[float](), np.inf
    while len(changes) < options.max_iter and left > options.tol:
        accuracy = _SHARE * min(max(change, options.tol), _LOOSEST)
        after = _step(stacked, point, mu, threshold, accuracy, options)
        changes.append(change := _change(here, after))
        left = change if options.printed else distance_left(changes)
        before, here = here, after
        if not options.accelerate:
            point = here
            continue
        if _turns_back(point, here, before, change):
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        share, momentum = (momentum - 1) / following, following
        point = here.beyond(before, share)
    return Solution(mu, here.matrix, here.bias, len(changes), left, left <= options.tol)


def distance_left(changes: list[float]) -> float:
    """What the changes to come add up to, from those of the steps so far: an estimate of the distance to the fixed point.

    Changes fall like a geometric series in the end, though not from step to step under momentum: the largest of the last
    quarter of the steps is compared with the largest of the quarter before. Infinite while they do not fall.
    """
    window = max(len(changes) // 4, _WINDOW)
    if len(changes) < 2 * window:
        return np.inf if changes[-1] > 0 else 0.0
    now, then = max(changes[-window:]), max(changes[-2 * window : -window])
    return now if now == 0 else window * now * now / (then - now) if now < then else np.inf


def _step(
    stacked: Stacked, point: Iterate, mu: float, threshold: Threshold, accuracy: float, options: Steps
) -> Iterate:
    m = stacked.labels.shape[1]
    slope = stacked.gradient(point.entries, point.block, point.bias)
    # Matrix and bias move together under one label: with momentum, half a step each.
    half = 0.5 if options.bias and options.accelerate else 1.0
    step, bias_step = half * stacked.step, half * stacked.bias_step if options.bias else 0.0
    moved = Moved(point.matrix, stacked.rows, -step * slope.entries, -step * slope.block)
    bias = point.bias - bias_step * slope.block[:, :m].sum(axis=0)
    return Iterate.of(stacked, threshold(moved, step * mu, accuracy), bias)


def _change(before: Iterate, after: Iterate) -> float:
    """Relative change of matrix or bias."""
    size = max(float(np.linalg.norm(before.matrix.sizes)), 1.0)
    squared = float(np.sum(before.matrix.sizes**2)) + float(np.sum(after.matrix.sizes**2))
    moved = float(np.sqrt(max(squared - 2 * before.matrix.inner(after.matrix), 0.0)))
    if moved < _RESOLVED * size:
        moved = before.matrix.distance(after.matrix)
    shift, bias = (float(np.abs(b).max(initial=0.0)) for b in (after.bias - before.bias, before.bias))
    return max(moved / size, shift / max(bias, 1.0))


def _turns_back(point: Iterate, here: Iterate, before: Iterate, change: float) -> bool:
    """Whether <point - here, here - before> > 0: momentum points away from where the gradient leads [O'Donoghue, Candes]."""
    if change >= _RESOLVED:
        return point.inner(here) - point.inner(before) - here.inner(here) + here.inner(before) > 0
    A, B, C = cores(point.matrix, here.matrix, before.matrix)
    return float(np.sum((A - B) * (B - C))) + float((point.bias - here.bias) @ (here.bias - before.bias)) > 0
