"""(3), Theorems 1, 3 and 21, Lemmas 18 and 28 and Proposition 5 as functions: quasi-dimensions of a matrix, and bounds by them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from lacunar._log import warn_user
from lacunar._typing import Floats
from lacunar.completion.graph import GraphState, components, laplacian, read_adjacency, written_kernel
from lacunar.completion.side import DENSE_LIMIT, SideInformation, SideState
from lacunar.papers.completion.norms import CHECK_EVERY, margin_complexity, max_norm, nearest_semidefinite, sign_matrix

_TOL = 1e-10  # of conjugate gradients
_MOST_SPLIT = 12  # ids whose partitions are all looked at


def quasi_dimension(
    U: ArrayLike, rows: Any, cols: Any, gamma: float, *, tol: float = 1e-6, max_iter: int = 20_000
) -> float:
    """D^gamma_{M,N}(U) itself, equation (3): the least D that Theorem 1 allows for the comparator
    U.

    min R_M tr(P^T M P) + R_N tr(Q^T N Q) over P Q^T = gamma U with rows of length 1, M = K^-1, R_M
    = max_i K_ii. With G = [P; Q][P; Q]^T it is a semidefinite program, solved by alternating
    directions and bracketed by its dual.

    Parameters
    ----------
    U : array-like of shape (m, n)
        The comparator, signs usually.
    rows, cols : side information, or its begun state
        Of m rows and n columns.
    gamma : float
        The margin, in (0, 1]; at most 1 / `max_norm(U)`.
    tol : float, default=1e-6
        Relative distance of the value to a certified lower bound, and of G to a semidefinite
        matrix.
    max_iter : int, default=20000
        Most steps.

    Returns
    -------
    float
        Infinite where ||U||_max > 1 / gamma (to 1e-6) or a kernel is singular; m + n for `Identity`
        on both sides.

    Raises
    ------
    ValueError
        When U does not fit the number of ids, or gamma is out of range.

    Warns
    -----
    ConvergenceWarning
        When `max_iter` came before `tol`.

    Notes
    -----
    O((m + n)^3) a step, tens to thousands of steps: for tens of rows and columns.
    `quasi_dimension_bound` is above it, and O(n^3) in all.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, equation (3).

    Examples
    --------
    >>> from lacunar.completion import Kernel
    >>> from lacunar.papers.completion import quasi_dimension
    >>> alike = Kernel([[1.0, 0.9], [0.9, 1.0]])
    >>> round(quasi_dimension([[1, 1], [1, 1]], alike, alike, gamma=1.0), 4)
    2.1053
    """
    signs, program = _quasi_program(U, rows, cols, gamma, at_least=False)
    if gamma * max_norm(signs, tol=1e-8, max_iter=20_000) > 1 + 1e-6 or program is None:
        return float("inf")
    return _solve(program, "quasi_dimension", tol, max_iter)


def least_quasi_dimension(
    U: ArrayLike, rows: Any, cols: Any, gamma: float, *, tol: float = 1e-6, max_iter: int = 20_000
) -> float:
    """min of D^gamma_{M,N}(V) over V in SP^1(U), the D of (6): the least quasi-dimension of a
    matrix with the signs of U and modulus >= 1.

    The program of `quasi_dimension` with inequalities, sign(U_ij) G_ij >= gamma where rows meet
    columns.

    Parameters
    ----------
    U : array-like of shape (m, n)
        Of which the signs count; no entry is 0.
    rows, cols : side information, or its begun state
        Of m rows and n columns.
    gamma : float
        The margin, in (0, 1]; at most 1 / `margin_complexity(U)`.
    tol : float, default=1e-6
        Relative distance of the value to a certified lower bound, and of G to a semidefinite
        matrix.
    max_iter : int, default=20000
        Most steps.

    Returns
    -------
    float
        At most `quasi_dimension` of the signs; infinite where mc(U) > 1 / gamma (to 1e-6) or a
        kernel is singular.

    Raises
    ------
    ValueError
        When U has a 0 or does not fit the number of ids, or gamma is out of range.

    Warns
    -----
    ConvergenceWarning
        When `max_iter` came before `tol`.

    Notes
    -----
    O((m + n)^3) a step, tens to thousands of steps: for tens of rows and columns. Source: [1]_,
    Theorem 1 and Appendix B.1.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020.

    Examples
    --------
    >>> from lacunar.completion import Kernel
    >>> from lacunar.papers.completion import least_quasi_dimension, quasi_dimension
    >>> U, alike = [[1, 1], [1, -1]], Kernel([[1.0, 0.5], [0.5, 1.0]])
    >>> (
    ...     round(least_quasi_dimension(U, alike, alike, gamma=0.3), 3),
    ...     round(quasi_dimension(U, alike, alike, gamma=0.3), 3),
    ... )
    (3.147, 3.589)
    """
    signs, program = _quasi_program(U, rows, cols, gamma, at_least=True)
    if gamma * margin_complexity(signs, tol=1e-8) > 1 + 1e-6 or program is None:
        return float("inf")
    return _solve(program, "least_quasi_dimension", tol, max_iter)


def _quasi_program(
    U: ArrayLike, rows: Any, cols: Any, gamma: float, *, at_least: bool
) -> tuple[Floats, _Program | None]:
    """U (m, n) or its signs, and the program of its quasi-dimension; None where a kernel is singular."""
    M, N = begun(rows, "rows"), begun(cols, "cols")
    matrix = sign_matrix(U) if at_least else np.asarray(U, dtype=np.float64)
    if matrix.shape != (M.size, N.size):
        raise ValueError(f"U must have shape ({M.size}, {N.size}), ids of rows by ids of columns; got {matrix.shape}.")
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1; got {gamma}. A margin is at most 1.")
    precision_rows, precision_cols = _precision(M), _precision(N)
    if precision_rows is None or precision_cols is None:
        return matrix, None
    return matrix, _program(gamma * matrix, precision_rows, precision_cols, at_least)


def quasi_dimension_bound(rows: Any, cols: Any, row_classes: ArrayLike, col_classes: ArrayLike) -> float:
    """D of Theorem 3: how well side information predicts a division into k row classes and l column
    classes.

    2 tr(R^T M R) R_M + 2 tr(C^T N C) R_N + 2k + 2l when both sides are PDLaplacians
    (`Graph(kind="pd", normalize=False)`), else k tr(R^T M R) R_M + l tr(C^T N C) R_N; R and C the
    one-hot classes, M = K^-1, R_M = max_i K_ii.

    Parameters
    ----------
    rows, cols : side information, or its begun state
        Of m rows and n columns.
    row_classes, col_classes : array-like of shape (m,) and (n,)
        The latent class of every row and column, of any kind of label.

    Returns
    -------
    float
        A valid D of Algorithm 1; m + n for `Identity` on both sides with one class each, infinite
        when a kernel is singular (to rounding): the theorem asks for positive definite ones, which
        a share of `Mix` or `own` makes of any.

    Raises
    ------
    ValueError
        When classes do not fit the number of ids, or solving does not converge.

    Notes
    -----
    O(n^3) for dense kernels, O(n d^2) for features, O(edges k) for graphs.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Theorem 3.

    Examples
    --------
    >>> from lacunar.completion import Identity
    >>> from lacunar.papers.completion import quasi_dimension_bound
    >>> quasi_dimension_bound(Identity(4), Identity(3), [0, 0, 0, 0], ["a", "a", "a"])
    7.0
    """
    M, N = begun(rows, "rows"), begun(cols, "cols")
    R, C = one_hot(row_classes, M.size, "row_classes"), one_hot(col_classes, N.size, "col_classes")
    k, ell = R.shape[1], C.shape[1]
    energy_rows = precision_trace(M, R) * float(M.diagonal().max())
    energy_cols = precision_trace(N, C) * float(N.diagonal().max())
    if getattr(M, "is_pd_laplacian", False) and getattr(N, "is_pd_laplacian", False):
        return float(2 * energy_rows + 2 * energy_cols + 2 * k + 2 * ell)
    return float(k * energy_rows + ell * energy_cols)


def least_quasi_dimension_bound(
    U: ArrayLike, rows: Any, cols: Any, *, n_row_classes: int | None = None, n_col_classes: int | None = None
) -> float:
    """D of Theorem 3: the minimum of `quasi_dimension_bound` over all decompositions U = R U* C^T.

    Equal rows of U may share a class and others may not, so that the classes are partitions of the
    sets of equal rows; columns as well.

    Parameters
    ----------
    U : array-like of shape (m, n)
        The comparator, of which the signs count.
    rows, cols : side information, or its begun state
        Of m rows and n columns.
    n_row_classes, n_col_classes : int, default=None
        k and l of the decompositions, at least the numbers of different rows and columns of U. None
        is any number.

    Returns
    -------
    float
        Infinite where a kernel is singular.

    Raises
    ------
    ValueError
        When U has a 0 or does not fit the number of ids, a number of classes cannot be, or a set of
        more than 12 equal rows would have to be split in every way.

    Notes
    -----
    For PDLaplacians and any number of classes the fewest are best, one a set of equal rows:
    splitting a set into q classes takes at most 4 (1 - 1/q) from 2 tr(R^T M R) R_M, and 2k grows by
    2 (q - 1). The same where no two ids of a set have a positive entry of M. Otherwise a dynamic
    program over subsets finds the best split of each set of s ids, O(3^s).

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Theorem 3.

    Examples
    --------
    >>> from lacunar.completion import Identity, Kernel
    >>> from lacunar.papers.completion import least_quasi_dimension_bound
    >>> U = [[1, 1, -1], [1, 1, -1], [-1, 1, 1]]
    >>> least_quasi_dimension_bound(U, Identity(3), Identity(3))
    15.0
    >>> apart = Kernel([[1.0, -0.9, 0.0], [-0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])  # alike in U
    >>> round(least_quasi_dimension_bound(U, apart, Identity(3), n_row_classes=3), 2)
    43.58
    """
    M, N = begun(rows, "rows"), begun(cols, "cols")
    signs = sign_matrix(U)
    if signs.shape != (M.size, N.size):
        raise ValueError(f"U must have shape ({M.size}, {N.size}), ids of rows by ids of columns; got {signs.shape}.")
    laplacians = bool(getattr(M, "is_pd_laplacian", False) and getattr(N, "is_pd_laplacian", False))
    sides = ((M, signs, n_row_classes, "n_row_classes"), (N, signs.T, n_col_classes, "n_col_classes"))
    return float(sum(_least_side(*side, laplacians) for side in sides))


def _least_side(side: SideState, alike: Floats, count: int | None, name: str, laplacians: bool) -> float:
    """The terms of Theorem 3 that belong to one side, at their least; equal rows of `alike` (size, other) may share a
    class.
    """
    sets = [np.flatnonzero(group) for group in _groups(alike)]
    if count is not None and not len(sets) <= count <= side.size:
        raise ValueError(f"{name} must be between {len(sets)}, the different ones of U, and {side.size}; got {count}.")
    radius = float(side.diagonal().max())

    def cost(trace: float, k: int) -> float:
        return 2 * trace * radius + 2 * k if laplacians else k * trace * radius

    whole = precision_trace(side, one_hot(np.unique(alike, axis=0, return_inverse=True)[1].ravel(), side.size, name))
    if count == len(sets) or not np.isfinite(whole) or (count is None and laplacians):
        return cost(whole, len(sets))
    precision = _precision(side)
    if precision is None:
        return float("inf")
    M = precision / radius
    if count is None and not any(_split_lowers_trace(M, ids) for ids in sets):
        return cost(whole, len(sets))
    traces = _traces(M, sets, side.size if count is None else count)
    return min(cost(trace, k) for k, trace in enumerate(traces) if count in (None, k) and np.isfinite(trace))


def _groups(alike: Floats) -> NDArray[np.bool_]:
    """Masks (number of different rows, size) of equal rows."""
    member = np.unique(alike, axis=0, return_inverse=True)[1].ravel()
    masks: NDArray[np.bool_] = member == np.arange(member.max() + 1)[:, None]
    return masks


def _split_lowers_trace(M: Floats, ids: NDArray[np.intp]) -> bool:
    """Whether a split of these ids makes the trace smaller: two of them have a positive entry of M."""
    block = M[np.ix_(ids, ids)]
    return bool((block - np.diag(np.diag(block)) > 1e-12 * np.diag(block).max()).any())


def _traces(M: Floats, sets: list[NDArray[np.intp]], most: int) -> Floats:
    """The least tr(R^T M R) of k classes, for k = 0, ..., most: infinite where there is no such R."""
    best = np.full(most + 1, np.inf)
    best[0] = 0.0
    for ids in sets:
        own, before = _split_traces(M[np.ix_(ids, ids)]), best
        best = np.full(most + 1, np.inf)
        for parts, trace in enumerate(own[: most + 1]):
            best[parts:] = np.minimum(best[parts:], before[: most + 1 - parts] + trace)
    return best


def _split_traces(block: Floats) -> Floats:
    """The least sum of 1_S^T M 1_S over the classes S of a partition of s ids into q classes, for q = 0, ..., s."""
    s = len(block)
    if s > _MOST_SPLIT:
        raise ValueError(
            f"U must have at most {_MOST_SPLIT} equal rows, or columns, where their side information pulls them apart; got {s}. Use "
            "quasi_dimension_bound for classes of your choice."
        )
    masks = np.arange(2**s)
    inside = (masks[:, None] >> np.arange(s)) & 1
    energy = np.einsum("ai,ij,aj->a", inside, block, inside)
    least = np.full((s + 1, 2**s), np.inf)
    least[0, 0] = 0.0
    for mask in range(1, 2**s):
        low = mask & -mask
        remainder = mask ^ low
        subset = remainder
        while True:  # over all classes that have the lowest id of the mask
            part = subset | low
            least[1:, mask] = np.minimum(least[1:, mask], least[:-1, mask ^ part] + energy[part])
            if subset == 0:
                break
            subset = (subset - 1) & remainder
    return least[:, -1]


def one_hot(classes: ArrayLike, size: int, name: str) -> NDArray[np.float64]:
    """The block expansion matrix (size, k) of class labels."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(labels) != size:
        raise ValueError(f"{name} must give a class for each of {size} ids; got shape {labels.shape}.")
    _, numbers = np.unique(labels, return_inverse=True)
    expanded: NDArray[np.float64] = (numbers[:, None] == np.arange(numbers.max() + 1)).astype(np.float64)
    return expanded


def begun(side: Any, name: str) -> SideState:
    """The state of side information that knows its ids; a state is given back as it is."""
    state: SideState = side.begin() if isinstance(side, SideInformation) else side
    if not hasattr(state, "digest"):
        raise TypeError(f"{name} must be side information or its begun state; got {type(side).__name__}.")
    if state.size == 0:
        raise ValueError(f"{name} must know its ids; it has none yet. Use Identity(n), or give points.")
    return state


def precision_trace(side: SideState, R: Floats) -> float:
    """tr(R^T K^-1 R) of R (size, k); infinite when K is singular to rounding.

    Factors by the Woodbury identity, graphs by their Laplacian, matrices by Cholesky; mixtures over graphs, whose inverse
    is not sparse, by conjugate gradients.
    """
    if side.kind == "factor":
        return _of_factor(*side.factor(), R)
    if isinstance(side, GraphState):
        return side.energy(R)
    return _of_matrix(side.dense(), R) if side.kind == "dense" else _by_gradients(side, R)


def _of_matrix(K: Floats, R: Floats) -> float:
    try:
        factor = scipy.linalg.cholesky(K, lower=True)
    except scipy.linalg.LinAlgError:
        return float("inf")
    smallest, largest = np.diag(factor).min(), np.diag(factor).max()
    if smallest**2 <= len(K) * np.finfo(float).eps * largest**2:
        return float("inf")
    return float((scipy.linalg.solve_triangular(factor, R, lower=True) ** 2).sum())


def _of_factor(Phi: Floats, own: float, const: float, R: Floats) -> float:
    """(F F^T + own I)^-1 = (I - F (own I + F^T F)^-1 F^T) / own, F = [Phi, sqrt(const) 1]."""
    F = np.column_stack([Phi, np.full(len(Phi), np.sqrt(const))])
    if own == 0:
        return float("inf") if F.shape[1] < len(F) else _of_matrix(F @ F.T, R)
    inner = F.T @ R
    small = own * np.eye(F.shape[1]) + F.T @ F
    return float(((R**2).sum() - (inner * scipy.linalg.solve(small, inner, assume_a="pos")).sum()) / own)


def _by_gradients(side: SideState, R: Floats) -> float:
    operator = LinearOperator((side.size, side.size), matvec=lambda v: side.apply(np.ravel(v)), dtype=np.float64)
    total = 0.0
    for column in R.T:
        solved, info = cg(operator, column, rtol=_TOL, maxiter=5000)
        if info:
            raise ValueError(
                "side information must be well enough conditioned to be solved with; conjugate gradients did not converge in "
                "5000 steps. Give more weight to own in Mix."
            )
        total += float(column @ solved)
    return total


def box_bound(lower: ArrayLike, upper: ArrayLike) -> float:
    """Proposition 5: tr(R^T K^-1 R) <= k (4 / delta*)^d for points in k boxes under the min kernel.

    delta* = min(2, delta / 4), delta the least distance between two boxes in the maximum norm. With
    r >= 2 bounding all coordinates, `KernelFunction("min", r=r, normalize=False)` and l boxes of
    columns, equation (8) becomes D <= k r^d box_bound(rows) + l r^d box_bound(columns). O(k^2 d).

    Parameters
    ----------
    lower, upper : array-like of shape (k, d)
        Corners of the boxes, lower <= upper.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        When corners are not finite, do not fit, or boxes touch.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Proposition 5.

    Examples
    --------
    >>> from lacunar.papers.completion import box_bound
    >>> box_bound([[-2.0], [1.0]], [[-1.0], [2.0]])
    16.0
    """
    low, high = (np.asarray(corner, dtype=np.float64) for corner in (lower, upper))
    if low.ndim != 2 or low.shape != high.shape or low.size == 0:
        raise ValueError(f"lower and upper must be of one shape (k, d); got {low.shape} and {high.shape}.")
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise ValueError("lower and upper must be finite, lower <= upper everywhere; they are not. Exchange corners.")
    k, d = low.shape
    between = np.maximum(low[:, None] - high[None], low[None] - high[:, None]).max(axis=2)
    np.fill_diagonal(between, np.inf)
    least = float(between.min())
    if not least > 0:
        first, second = (int(i) for i in np.unravel_index(between.argmin(), between.shape))
        raise ValueError(f"boxes must be apart; boxes {first} and {second} touch. Proposition 5 says nothing of them.")
    return float(k * (4 / min(2.0, least / 4)) ** d)


def mistake_bound(quasi_dimension: float, gamma: float, m: int, n: int, *, D_hat: float | None = None) -> float:
    """Equation (6): the learner makes at most 3.6 D / gamma^2 log(m + n) mistakes, if some U with
    mc(U) <= 1 / gamma gives all labels.

    Lemma 28 is for an algorithm that runs with another number D_hat in place of D: its bound is 3.6
    / gamma^2 (D (log(m + n) + log(D / D_hat)) + D_hat - D). Both are for conservative updates with
    eta = gamma. O(1).

    Parameters
    ----------
    quasi_dimension : float
        D, at least 1: `least_quasi_dimension`, or `quasi_dimension_bound` above it.
    gamma : float
        The margin, in (0, 1]; at most 1 / `margin_complexity(U)`.
    m, n : int
        Numbers of rows and columns, at least 3 together.
    D_hat : float, default=None
        The algorithm's parameter, at least 1; None is D, for which Lemma 28 is (6).

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Theorem 1 and Lemma 28.

    Examples
    --------
    >>> from lacunar.papers.completion import mistake_bound
    >>> round(mistake_bound(20.0, 0.5, 50, 50))
    1326
    """
    D_hat = quasi_dimension if D_hat is None else D_hat
    _check_bound(quasi_dimension, gamma, m, n)
    _check_bound(D_hat, gamma, m, n, "D_hat")
    relative_entropy = quasi_dimension * (np.log(m + n) + np.log(quasi_dimension / D_hat)) + D_hat - quasi_dimension
    return float(3.6 * relative_entropy / gamma**2)


def regret_bound(quasi_dimension: float, gamma: float, m: int, n: int, n_trials: int, *, theorem: int = 1) -> float:
    """Expected mistakes beyond those of the best U, equation (5): 4 sqrt(2 D log(m + n) T) / gamma.

    For non-conservative updates with eta = sqrt(D log(m + n) / (2 T)) and randomised predictions,
    against every U with ||U||_max <= 1 / gamma. Theorem 21 has 2 sqrt(2 D log(m + n) T) / gamma + 2
    D log(m + n) / gamma, less than (5) for T >= 2 D log(m + n), where it holds. O(1).

    Parameters
    ----------
    quasi_dimension, gamma, m, n
        As for `mistake_bound`.
    n_trials : int
        T, at least 1.
    theorem : {1, 21}, default=1
        Equation (5), or (28).

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range, T below 2 D log(m + n) for Theorem 21.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Theorems 1 and 21.

    Examples
    --------
    >>> from lacunar.papers.completion import regret_bound
    >>> round(regret_bound(20.0, 0.5, 50, 50, 2500))
    5429
    """
    _check_bound(quasi_dimension, gamma, m, n)
    if not n_trials >= 1:
        raise ValueError(f"n_trials must be at least 1; got {n_trials}.")
    if theorem not in (1, 21):
        raise ValueError(f"theorem must be 1 or 21; got {theorem!r}.")
    cost = quasi_dimension * float(np.log(m + n))
    if theorem == 1:
        return float(4 * np.sqrt(2 * cost * n_trials) / gamma)
    if n_trials < 2 * cost:
        raise ValueError(
            f"n_trials must be at least 2 D log(m + n) = {2 * cost:.6g} for Theorem 21; got {n_trials}. Use theorem=1."
        )
    return float(2 * np.sqrt(2 * cost * n_trials) / gamma + 2 * cost / gamma)


def hinge_regret_bound(quasi_dimension: float, gamma: float, m: int, n: int, n_trials: int) -> float:
    """Lemma 18, (25): the hinge loss of the scores y_bar beyond that of gamma U.

    4 sqrt(2 D log(m + n) T) / gamma + 4 D log(m + n) / gamma, twice the bound of Theorem 21, the
    hinge loss being max(0, gamma - y y_bar) / gamma. O(1).

    Parameters
    ----------
    quasi_dimension, gamma, m, n
        As for `regret_bound`.
    n_trials : int
        T, at least 2 D log(m + n).

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Lemma 18.

    Examples
    --------
    >>> from lacunar.papers.completion import hinge_regret_bound
    >>> round(hinge_regret_bound(20.0, 0.5, 50, 50, 2500))
    6166
    """
    return 2 * regret_bound(quasi_dimension, gamma, m, n, n_trials, theorem=21)


def pd_laplacian(adjacency: Any) -> NDArray[np.float64]:
    """The paper's PDLaplacian, L + (1/m)(1/m)^T / R_L with R_L = max_i (L^+)_ii (section 2), shape
    (m, m).

    For looking at, and for other algorithms: `Graph(adjacency, kind="pd", normalize=False)` does
    not write it out.

    Parameters
    ----------
    adjacency : array-like or sparse matrix of shape (m, m), pandas DataFrame, or networkx graph
        Symmetric, not negative, connected; at most 4000 vertices.

    Returns
    -------
    laplacian : ndarray of shape (m, m)

    Raises
    ------
    ValueError
        When it is no such graph.

    Notes
    -----
    O(m^3).

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, section 2.

    Examples
    --------
    >>> from lacunar.papers.completion import pd_laplacian
    >>> pd_laplacian([[0, 1], [1, 0]]).round(9).tolist()
    [[2.0, -0.0], [-0.0, 2.0]]
    """
    A, _ = read_adjacency(adjacency)
    m, pieces = A.shape[0], int(components(A).max()) + 1
    if m > DENSE_LIMIT:
        raise ValueError(f"adjacency may have at most {DENSE_LIMIT} vertices here; got {m}. Use Graph(kind='pd').")
    if pieces > 1:
        raise ValueError(
            f"adjacency must be connected; it has {pieces} pieces. Join them, or use Graph(kind='regularized')."
        )
    radius = float(written_kernel(A, None).diagonal().max())
    whole: NDArray[np.float64] = laplacian(A).toarray() + 1.0 / (m * m * radius)
    return whole


def _check_bound(quasi_dimension: float, gamma: float, m: int, n: int, name: str = "quasi_dimension") -> None:
    if not quasi_dimension >= 1:
        raise ValueError(f"{name} must be at least 1; got {quasi_dimension}.")
    if not 0 < gamma <= 1:
        raise ValueError(f"gamma must be above 0 and at most 1; got {gamma}. A margin is at most 1.")
    if not (m >= 1 and n >= 1 and m + n >= 3):
        raise ValueError(f"m and n must be at least 1, and 3 together; got {m} and {n}.")


class _Program(NamedTuple):
    """min <C, G> over G >= 0 with G = I on the diagonal and, where rows meet columns, G = `fixed` or sign(fixed) G >=
    |fixed|.
    """

    C: Floats  # (m + n, m + n), blocks R_M M and R_N N
    fixed: Floats  # (m + n, m + n), 1 on the diagonal, gamma U where rows meet columns
    is_fixed: NDArray[np.bool_]  # (m + n, m + n), the diagonal and where rows meet columns
    at_least: NDArray[np.bool_]  # (m + n, m + n), where `fixed` is the least modulus

    def project(self, A: Floats) -> Floats:
        """The nearest matrix to A that meets the equations and inequalities."""
        nearest = np.where(self.is_fixed, self.fixed, A)
        beyond = self.at_least & (np.sign(self.fixed) * A > np.abs(self.fixed))
        return np.where(beyond, A, nearest)

    def lower(self, S: Floats) -> float:
        """A bound by any S: made feasible for the dual, whose slack C - diag - blocks is S >= 0, a block's sign that of
        `fixed`.
        """
        S = np.where(self.is_fixed, S, self.C)
        S = np.where(self.at_least & (np.sign(self.fixed) * S > 0), 0.0, S)
        S = S + max(0.0, -float(np.linalg.eigvalsh(S)[0])) * np.eye(len(S))
        return float(np.sum((self.C - S) * self.fixed, where=self.is_fixed))


def _precision(side: SideState) -> Floats | None:
    """R_M M (size, size) of a kernel M^-1; None where it is singular to rounding."""
    K = np.asarray(side.columns(np.arange(side.size)), dtype=np.float64)
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    if values[0] <= len(K) * np.finfo(float).eps * values[-1]:
        return None
    return np.asarray(float(K.diagonal().max()) * (vectors / values) @ vectors.T)


def _program(scaled: Floats, M: Floats, N: Floats, at_least: bool) -> _Program:
    m, n = scaled.shape
    C, fixed = np.zeros((m + n, m + n)), np.eye(m + n)
    C[:m, :m], C[m:, m:] = M, N
    fixed[:m, m:], fixed[m:, :m] = scaled, scaled.T
    across = np.zeros((m + n, m + n), dtype=bool)
    across[:m, m:] = across[m:, :m] = True
    return _Program(C, fixed, across | np.eye(m + n, dtype=bool), across & at_least)


def _solve(program: _Program, name: str, tol: float, max_iter: int) -> float:
    """Alternating directions: G meets the equations, Z is positive semidefinite, their disagreement prices both.

    `best` is the highest dual bound, which is what may be trusted; it is returned once the primal value is within tol of it
    and G is semidefinite to tol.
    """
    C = program.C
    weight = max(float(np.linalg.norm(C)) / len(C), 1e-12)
    Z = np.where(program.is_fixed, program.fixed, 0.0)
    price, best, value, off = np.zeros_like(C), -np.inf, np.inf, np.inf
    for step in range(1, max_iter + 1):
        G = program.project(Z - price - C / weight)
        before, Z = Z, nearest_semidefinite(G + price)
        price = G + price - Z
        primal, dual = float(np.linalg.norm(G - Z)), weight * float(np.linalg.norm(Z - before))
        if step % CHECK_EVERY == 0:
            best = max(best, program.lower(-weight * price))
            value, off = float(np.sum(C * G)), primal / np.sqrt(len(C))
            if value - best <= tol * max(abs(value), 1.0) and off <= tol:
                return max(value, best)
            factor = 2.0 if primal * weight > 10 * dual else 0.5 if dual > 10 * primal * weight else 1.0
            weight, price = weight * factor, price / factor
    warn_user(
        f"{name} lies above {best:.6g}; after {max_iter} steps the value is {value:.6g}, {off:.2g} short of feasible. "
        "Raise max_iter or tol, or use quasi_dimension_bound.",
        ConvergenceWarning,
    )
    return max(value, best)
