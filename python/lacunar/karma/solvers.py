"""The solvers behind the KARMA estimators: over any Gram matrix, over support rows, and over a weight table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack
from sklearn.exceptions import ConvergenceWarning

from lacunar._dual import DualResult, solve_crammer_singer, solve_dual
from lacunar._log import warn_user
from lacunar._threads import one_blas_thread
from lacunar._typing import Floats
from lacunar.karma.losses import has
from lacunar.karma.support import OnlineModel
from lacunar.karma.table import AscentResult, PrimalModel, average_states, has_map
from lacunar.kernels import KernelForm

__all__ = [
    "AscentResult",
    "DualResult",
    "OnlineModel",
    "PrimalModel",
    "average_states",
    "solve_crammer_singer",
    "solve_dual",
    "solve_ridge",
]

# Above this C * (largest eigenvalue), fitted values of a float32 Cholesky are wrong in their second digit:
# off by 1e-4 at C = 10, by 1e-2 at C = 1000.
_FLOAT32_LIMIT = 1e4
_SMALL = 2048  # rows up to which threads of BLAS save 50 ms at most, and cost seconds on a busy machine
# Below this many rows the Gram is solved, exactly, in a fraction of a second whatever the table would cost.
_FEW_ROWS = 3000
# Nanoseconds, one core (docs/measured/karma-solvers.md): a visit of a row to the weight table and each float it reads
# there; a pair of the Gram with its share of an iterative solver's passes; a multiplication of the Cholesky
# factorisation.
_VISIT_NS, _TABLE_NS, _PAIR_NS, _FLOP_NS = 150.0, 0.13, 2.5, 0.025
_SWEEPS = 16


def solve_ridge(gram: NDArray[np.floating], Y: Floats, C: float, weight: ArrayLike | None = None) -> Floats:
    """Coefficients, of the shape of targets Y (n, k) or (n,), of kernel ridge regression over a
    Gram (n, n) that stays as it is, for weights (n,) >= 0 that count rows; 0 in the rows of weight
    0.

    Minimises 1/2 ||v||^2 + C sum_i w_i (f(x_i) - y_i)^2 over v = sum_j coef_j phi(x_j), so that f =
    gram @ coef and (K + diag(1 / (2 C w_i))) coef = Y: Hazan, Livni, Mansour, "Classification with
    Low Rank and Missing Data", ICML 2015, section 2. One Cholesky factorisation, n^3 / 3 flops, in
    float64, or for a float32 Gram in float32 as long as C times (a bound on) its largest eigenvalue
    stays below 1e4. LinAlgError where C is too large for the Gram.
    """
    with one_blas_thread() if len(gram) <= _SMALL else nullcontext():
        return _solve(gram, Y, C, _weight_root(len(gram), weight))[0]


def ridge_left_out(gram: NDArray[np.floating], Y: Floats, weight: Floats, share: Floats) -> tuple[Floats, Floats]:
    """`solve_ridge` with C = 1, and exact values (m, k) of the last m rows without a share (m,) of their own weights.

    m^3/3 flops more. A row has leverage h = 1 - (G^-1)_ii / 2, G = W^(1/2) K W^(1/2) + I/2 = L L^T; without the share q
    of its weight its residual is that of the fit over 1 - q h. The last diagonal entries of G^-1 are those of
    (L' L'^T)^-1, L' the last block of L.
    """
    last = slice(len(gram) - len(share), None)
    with one_blas_thread() if len(gram) <= _SMALL else nullcontext():
        coef, factor = _solve(gram, Y, 1.0, _weight_root(len(gram), weight))
        block = np.tril(factor[last, last])
        inverse, _ = lapack.get_lapack_funcs(("trtri",), (block,))[0](block, lower=1)
    half_diagonal = np.einsum("ij,ij->j", inverse, inverse, dtype=np.float64) / 2
    residual = coef[last] / (2 * weight[last, None])
    return coef, Y[last] - residual / (1 - share * (1 - half_diagonal))[:, None]


def _solve(gram: NDArray[np.floating], Y: Floats, C: float, root: Floats | None) -> tuple[Floats, NDArray[np.floating]]:
    """Coefficients (n, k), and the lower Cholesky factor (n, n)."""
    system = _weighted_copy(gram, root)
    if system.dtype != np.float64 and C * np.abs(system).sum(axis=1, dtype=np.float64).max(initial=0) >= _FLOAT32_LIMIT:
        system = _weighted_copy(np.asarray(gram, dtype=np.float64), root)
    target = _scale_rows(np.asarray(Y, dtype=np.float64), root)
    system.flat[:: len(system) + 1] += 1 / (2 * C)
    try:
        factor = cho_factor(system.T, lower=True, overwrite_a=True)  # .T: Fortran order, factorised in place
    except LinAlgError as error:
        largest = C if root is None else C * float(np.max(root)) ** 2
        raise LinAlgError(
            f"C must leave the ridge system K + I/(2C) positive definite; with C={largest:g} (times the largest sample "
            f"weight) its Cholesky factorisation fails in {system.dtype} ({error}). Lower C, or check that the kernel "
            "is symmetric and positive semi-definite."
        ) from error
    solution = cho_solve(factor, target.astype(system.dtype, copy=False), check_finite=False)
    return _scale_rows(np.asarray(solution, dtype=np.float64), root), factor[0]


def _weight_root(n: int, weight: ArrayLike | None) -> Floats | None:
    if weight is None:
        return None
    root: Floats = np.sqrt(np.broadcast_to(np.asarray(weight, dtype=np.float64), n))
    return root


def _weighted_copy(gram: NDArray[np.floating], root: Floats | None) -> NDArray[np.floating]:
    """W^(1/2) K W^(1/2) as a fresh C-contiguous array of the Gram's dtype."""
    system: NDArray[np.floating] = np.array(gram, order="C")
    if root is not None:
        scale = root.astype(system.dtype)
        system *= scale[:, None]
        system *= scale
    return system


def _scale_rows(table: Floats, root: Floats | None) -> Floats:
    return table if root is None else (table.T * root).T


def one_vs_rest(y_encoded: NDArray[np.intp], n_classes: int) -> Floats:
    """Targets +-1: shape (n, 1) for two classes, (n, k) for more."""
    if n_classes == 2:
        return np.where(y_encoded == 1, 1.0, -1.0)[:, None]
    return np.where(y_encoded[:, None] == np.arange(n_classes), 1.0, -1.0)


def solve_classes(
    gram: NDArray[Any],
    y_encoded: NDArray[np.intp],
    n_classes: int,
    upper: Floats,
    *,
    loss: Any,
    tol: float,
    max_iter: int,
    verbose: int,
) -> tuple[Floats, int]:
    """Coefficients (n, outputs) and the largest number of iterations; upper[i] = C * weight_i."""
    if has(loss, "closed_form"):
        return solve_ridge(gram, one_vs_rest(y_encoded, n_classes), 1.0, upper), 1
    small = np.ascontiguousarray(gram, dtype=np.float32)
    if loss == "crammer_singer":
        result = solve_crammer_singer(small, y_encoded, n_classes, upper, tol=tol, max_iter=max_iter, verbose=verbose)
        warn_if_unfinished([result], loss, tol)
        coef = np.asarray(result.coef, dtype=np.float64)
        return coef if n_classes > 2 else coef[:, 1:] - coef[:, :1], int(result.n_iter)
    targets = one_vs_rest(y_encoded, n_classes)
    results = [
        solve_dual(small, y, upper, loss=loss, tol=tol, max_iter=max_iter, verbose=verbose)
        for y in np.ascontiguousarray(targets.T)
    ]
    warn_if_unfinished(results, loss, tol)
    return np.column_stack([result.coef for result in results]), max(int(result.n_iter) for result in results)


def cross_values(
    gram: NDArray[Any], y_encoded: NDArray[np.intp], n_classes: int, upper: Floats, folds: Sequence[Any], **options: Any
) -> Floats:
    """Values (rows of the folds, outputs) of `solve_classes` on the other rows, fold after fold."""
    values = []
    for fold in folds:
        others = np.setdiff1d(np.arange(len(y_encoded)), fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fit to all rows warns
            coef, _ = solve_classes(
                gram[np.ix_(others, others)], y_encoded[others], n_classes, upper[others], **options
            )
        values.append(gram[np.ix_(fold, others)] @ coef)
    return np.concatenate(values).astype(np.float64)


def warn_if_unfinished(results: list[Any], loss: str, tol: float) -> None:
    """One ConvergenceWarning a fit, with the largest relative duality gap."""
    gap = max((result.gap for result in results if not result.converged), default=None)
    if gap is not None:
        warn_user(
            f"the {loss} loss stopped at relative duality gap {gap:.2g}, above tol={tol:g}; raise max_iter, lower C "
            "or scale the columns (standardize=True, normalize='trace').",
            ConvergenceWarning,
        )


class Shape(NamedTuple):
    """What the choice of the solver reads: sizes, mean observed entries of a row, outputs; the loss's closed form."""

    n_rows: int
    n_columns: int
    observed: float
    n_outputs: int
    closed_form: bool


def gram_bytes(n_rows: int) -> int:
    """Memory of a Gram and the copy its solver factorises."""
    return 16 * n_rows**2


def table_floats(form: KernelForm, shape: Shape) -> float:
    """Floats of the weight table one visit of a row reads: a stripe for every observed column (gamma 2) or pair (3)."""
    o, width = shape.observed + 1, (shape.n_columns + 1) * (2 if form.indicators else 1)
    stripes = {1: 1.0, 2: 1 + o, 3: 1 + o + o * (o - 1) / 2}[int(form.gamma)]
    return stripes * min(width, 16 * o)


def choose_solver(form: KernelForm, shape: Shape, memory_limit: float) -> Literal["gram", "primal"]:
    """The solver of least estimated time among those that the kernel has and that fit in memory.

    Examples
    --------
    >>> form = KernelForm(gamma=2)
    >>> choose_solver(form, Shape(500, 30, 20, 1, True), 2**31)
    'gram'
    >>> choose_solver(form, Shape(1_000_000, 200, 30, 1, True), 2**31)
    'primal'
    >>> choose_solver(KernelForm(gamma=2.5), Shape(5000, 200, 30, 1, True), 2**31)
    'gram'
    """
    n = shape.n_rows
    gram_fits = gram_bytes(n) <= memory_limit
    if not has_map(form):
        return "gram"
    if n <= _FEW_ROWS and gram_fits:
        return "gram"
    outputs = 1 if shape.closed_form else shape.n_outputs
    gram = _PAIR_NS * n**2 * outputs + (_FLOP_NS * n**3 / 3 if shape.closed_form else 0.0)
    primal = _SWEEPS * n * shape.n_outputs * (_VISIT_NS + _TABLE_NS * table_floats(form, shape))
    return "gram" if gram_fits and gram < primal else "primal"
