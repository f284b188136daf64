"""Fixed point continuation: gradient step, singular value threshold, and a nuclear norm that weighs less and less."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.baselines._stacked import Stacked
from lacunar.baselines._threshold import Factored, Moved, Threshold, threshold_exactly, threshold_truncated

_Floats = NDArray[np.float64]
SvdSolver = Literal["auto", "full", "truncated"]

_FULL_WORK = 2e8  # n D min(n, D) up to which "auto" decomposes the whole matrix: some 20 ms a step


class Steps(NamedTuple):
    """How steps are made and when they end."""

    bias: bool
    tol: float
    max_iter: int
    accelerate: bool


class Iterate(NamedTuple):
    """The unknowns."""

    matrix: Factored
    bias: _Floats  # (m,)

    def inner(self, other: Iterate) -> float:
        return self.matrix.inner(other.matrix) + float(self.bias @ other.bias)


class Solution(NamedTuple):
    """Where the continuation stands after the steps at one mu."""

    mu: float
    matrix: Factored
    bias: _Floats  # (m,)
    n_iter: int
    change: float  # relative, of the last step
    converged: bool


def values_of(stacked: Stacked, solution: Solution) -> _Floats:
    """Values (n, m) of the labels, bias included."""
    d, m = stacked.rows.shape[1], stacked.labels.shape[1]
    made: _Floats = solution.matrix.left @ solution.matrix.right[d : d + m].T + solution.bias
    return made


def make_threshold(
    shape: tuple[int, int], svd_solver: SvdSolver, max_rank: int | None, tol: float, rng: np.random.Generator
) -> Threshold:
    """How a matrix of this shape is decomposed."""
    most = min(shape) if max_rank is None else min(max_rank, *shape)
    work = float(shape[0]) * shape[1] * min(shape)
    if svd_solver == "full" or (svd_solver == "auto" and work <= _FULL_WORK):
        return partial(threshold_exactly, max_rank=most)
    return partial(threshold_truncated, max_rank=most, accuracy=0.1 * tol, rng=rng)


def largest_mu(stacked: Stacked, threshold: Threshold) -> float:
    """The least mu at which the matrix is zero: the largest singular value of the gradient there.

    `threshold` need keep one singular value only.
    """
    zero = Factored.zero(stacked.shape)
    slope = stacked.gradient(np.zeros(stacked.rows.nnz), _block(stacked, zero), np.zeros(stacked.labels.shape[1]))
    found = threshold(Moved(zero, stacked.rows, slope.entries, slope.block), 0.0)
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
    before = here = point = Iterate(start.matrix, start.bias)
    momentum, n_iter, change = 1.0, 0, np.inf
    while n_iter < options.max_iter and change > options.tol:
        after = _step(stacked, point, mu, threshold, options)
        change, n_iter = _change(here, after), n_iter + 1
        before, here = here, after
        if not options.accelerate:
            point = here
            continue
        if _turns_back(point, here, before):
            momentum = 1.0
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        share, momentum = (momentum - 1) / following, following
        point = Iterate(here.matrix.beyond(before.matrix, share), here.bias + share * (here.bias - before.bias))
    return Solution(mu, here.matrix, here.bias, n_iter, change, change <= options.tol)


def _step(stacked: Stacked, point: Iterate, mu: float, threshold: Threshold, options: Steps) -> Iterate:
    m = stacked.labels.shape[1]
    slope = stacked.gradient(point.matrix.at(stacked.rows), _block(stacked, point.matrix), point.bias)
    # Matrix and bias move together under one label: with momentum, half a step each.
    half = 0.5 if options.bias and options.accelerate else 1.0
    step, bias_step = half * stacked.step, half * stacked.bias_step if options.bias else 0.0
    moved = Moved(point.matrix, stacked.rows, -step * slope.entries, -step * slope.block)
    return Iterate(threshold(moved, step * mu), point.bias - bias_step * slope.block[:, :m].sum(axis=0))


def _change(before: Iterate, after: Iterate) -> float:
    """Relative change of matrix or bias, to about 1e-8."""
    size = float(np.sum(before.matrix.sizes**2))
    moved = size + float(np.sum(after.matrix.sizes**2)) - 2 * before.matrix.inner(after.matrix)
    shift, bias = (float(np.abs(b).max(initial=0.0)) for b in (after.bias - before.bias, before.bias))
    return max(float(np.sqrt(max(moved, 0.0))) / max(float(np.sqrt(size)), 1.0), shift / max(bias, 1.0))


def _turns_back(point: Iterate, here: Iterate, before: Iterate) -> bool:
    """Whether <point - here, here - before> > 0: momentum points away from where the gradient leads [O'Donoghue, Candes]."""
    return point.inner(here) - point.inner(before) - here.inner(here) + here.inner(before) > 0


def _block(stacked: Stacked, matrix: Factored) -> _Floats:
    made: _Floats = matrix.left @ matrix.right[stacked.rows.shape[1] :].T
    return made
