"""Dual solvers over a cached float32 Gram: hinge, squared hinge, logistic, and Crammer-Singer's multiclass hinge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._log import say
from lacunar._typing import Floats

_Slice: TypeAlias = Callable[[int], tuple[int, float, float, float, bool]]
Loss: TypeAlias = Literal["hinge", "squared_hinge", "logistic"]

_SLICE_ENTRIES = 200_000_000  # Gram entries read between two looks at the keyboard: about a tenth of a second
_BLOCK_ROWS = 256  # rows of the Gram widened to float64 at a time


@dataclass(frozen=True)
class DualResult:
    """Where a dual solver stopped.

    Attributes
    ----------
    coef : ndarray of shape (n,) or (n, k)
        Signed coefficients: f = gram @ coef.
    gap : float
        (primal - dual) / max(|primal|, tiny) of these coefficients.
    primal, dual : float
        Values of 1/2 ||v||^2 + sum_i upper_i loss_i and of its dual, dual <= optimum <= primal.
    n_iter : int
        Passes, of n coordinate steps each, begun.
    converged : bool
        Whether `gap <= tol`.
    """

    coef: Floats
    gap: float
    primal: float
    dual: float
    n_iter: int
    converged: bool


def solve_dual(
    gram: NDArray[np.float32],
    y: Floats,
    upper: Floats,
    *,
    loss: Loss = "hinge",
    tol: float = 1e-3,
    max_iter: int = 1000,
    verbose: int = 0,
) -> DualResult:
    """Minimise 1/2 ||v||^2 + sum_i upper_i loss(y_i f(x_i)) with f = gram @ coef, by greedy dual
    coordinate ascent.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float32, C-contiguous
        Kernel values, symmetric positive semi-definite. There is no bias: a constant belongs into
        the kernel.
    y : ndarray of shape (n,), float64
        Labels, +1 or -1.
    upper : ndarray of shape (n,), float64
        C times the sample weight, >= 0. A row with 0 gets the coefficient 0.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        max(0, 1 - m), its square, or log(1 + exp(-m)) of the margin m.
    tol : float, default=1e-3
        Largest relative duality gap to stop at.
    max_iter : int, default=1000
        Most passes, of n steps each.
    verbose : int, default=0
        1 prints the gap as the solver goes.

    Returns
    -------
    result : DualResult
        `result.converged` is False if `max_iter` came first, or if rounding left no step that
        gains.

    Raises
    ------
    ValueError
        An array of the wrong size, or a Gram with NaN or infinite values.

    Notes
    -----
    A step costs one fused pass, O(n), over a row of the Gram: the float64 gradient moves and the
    next coordinate, the one with the largest clipped-step gain, is found in the same loop. The
    logistic dual is solved in the logit of each coordinate by safeguarded Newton steps [1]_.

    References
    ----------
    .. [1] Yu, Huang, Lin, "Dual coordinate descent methods for logistic regression and maximum
       entropy models", Machine Learning 85, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.karma.solvers import solve_dual
    >>> solve_dual(np.eye(2, dtype=np.float32), np.array([1.0, -1.0]), np.array([0.5, 3.0])).coef
    array([ 0.5, -1. ])
    """
    n = len(y)
    beta, logit, gradient = np.zeros(n), np.zeros(n), np.array(y, dtype=np.float64)
    if loss == "logistic":
        beta, logit, gradient = _logistic_start(gram, y, upper)

    def run(steps: int) -> tuple[int, float, float, float, bool]:
        return _core.dual_ascend(gram, y, upper, loss, beta, gradient, logit, steps, tol)

    return _in_slices(run, beta, tol, max_iter, verbose)


def solve_crammer_singer(
    gram: NDArray[np.float32],
    classes_index: NDArray[np.integer],
    n_classes: int,
    upper: Floats,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    verbose: int = 0,
) -> DualResult:
    """Minimise 1/2 sum_k ||v_k||^2 + sum_i upper_i max_k (f_k + [k != c_i] - f_{c_i}), f = gram @
    coef.

    Parameters
    ----------
    gram : ndarray of shape (n, n), float32, C-contiguous
        Kernel values, symmetric positive semi-definite.
    classes_index : ndarray of shape (n,), integer
        Class c_i of every row, in [0, n_classes).
    n_classes : int
        k, >= 2; a class without rows is legal.
    upper : ndarray of shape (n,), float64
        C times the sample weight, >= 0.
    tol, max_iter, verbose
        As in `solve_dual`.

    Returns
    -------
    result : DualResult
        `result.coef` has shape (n, n_classes) and rows that sum to 0.

    Raises
    ------
    ValueError
        A class outside [0, n_classes), an array of the wrong size, or a Gram with NaN or infinite
        values.

    Notes
    -----
    A step solves the k variables of one row exactly by sorting [1]_ and costs O(n k + k log k).

    References
    ----------
    .. [1] Crammer, Singer, "On the algorithmic implementation of multiclass kernel-based vector
       machines", JMLR 2, 2001, Sections 5 and 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.karma.solvers import solve_crammer_singer
    >>> solve_crammer_singer(
    ...     np.eye(2, dtype=np.float32), np.array([0, 1]), 2, np.array([0.25, 3.0])
    ... ).coef
    array([[ 0.25, -0.25],
           [-0.5 ,  0.5 ]])
    """
    label = np.ascontiguousarray(classes_index, dtype=np.int64)
    if label.size and not (label.min() >= 0 and label.max() < n_classes):
        raise ValueError(
            f"classes_index must lie in [0, {n_classes}) but holds {label.min()} to {label.max()}; number the classes "
            "with np.unique(..., return_inverse=True)"
        )
    score = np.ones((n_classes, len(label)))
    score[label, np.arange(len(label))] = 0
    tau = _isolated_rows(gram, score, upper)

    def run(steps: int) -> tuple[int, float, float, float, bool]:
        return _core.dual_ascend_multiclass(gram, label, upper, tau, score, steps, tol)

    return _in_slices(run, tau.T, tol, max_iter, verbose)


def _in_slices(run: _Slice, coef: Floats, tol: float, max_iter: int, verbose: int) -> DualResult:
    """Call `run` for bounded numbers of steps, so that Ctrl-C and progress reports get their turn."""
    n = max(len(coef), 1)
    slice_steps = max(_SLICE_ENTRIES // (n * (coef.size // n or 1)), 1)
    steps, stalled, gap = 0, False, np.inf
    while not stalled:
        done, primal, dual, gap, stalled = run(min(slice_steps, max_iter * n - steps))
        steps += done
        say(verbose, "[dual] pass %.1f: primal %.6g, relative gap %.2e", steps / n, primal, gap)
        if gap <= tol or steps >= max_iter * n:
            break
    return DualResult(np.ascontiguousarray(coef), gap, primal, dual, max(-(-steps // n), 1), gap <= tol)


def _logistic_start(gram: NDArray[np.float32], y: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
    """(beta, logit, gradient) of alpha = t upper for the best t among 1/2, 1/8, 1/32, ...: inside the box, one product."""
    direction = y * upper
    response = _product(gram, direction)
    shares = 0.5 * 0.25 ** np.arange(16)
    entropy = -(shares * np.log(shares) + (1 - shares) * np.log1p(-shares))
    t = shares[np.argmax(upper.sum() * entropy - 0.5 * shares**2 * (direction @ response))]
    logit = np.full(len(y), np.log(t / (1 - t)))
    return t * direction, logit, -t * response - y * logit


def _isolated_rows(gram: NDArray[np.float32], score: Floats, upper: Floats) -> Floats:
    """Start of Crammer-Singer (k, n): 0, but the optimum for rows with k(x, x) = 0, which no other row feels."""
    tau = np.zeros_like(score)
    alone = np.diagonal(gram) == 0
    tau[:, alone] = upper[alone] * np.where(score[:, alone] == 0, 1.0, -1 / (len(score) - 1))
    return tau


def _product(gram: NDArray[np.float32], vector: Floats) -> Floats:
    """gram @ vector in float64, without a float64 copy of the Gram."""
    out = np.empty(len(vector))
    for start in range(0, len(vector), _BLOCK_ROWS):
        out[start : start + _BLOCK_ROWS] = gram[start : start + _BLOCK_ROWS].astype(np.float64) @ vector
    return out
