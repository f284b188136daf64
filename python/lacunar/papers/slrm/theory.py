"""The objective (5), and Theorem 1 as functions: the risk of the predictions (6), and the choice of their gamma."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar._typing import Floats
from lacunar.observed.door import as_observed, check_numbers, flat_target, read_target


def joint_objective(
    X: Any,
    y: ArrayLike,
    U: ArrayLike,
    w: ArrayLike,
    latent: ArrayLike | None = None,
    *,
    lambda_1: float,
    lambda_2: float,
    lambda_3: float,
) -> float:
    """The value of (5): lambda_1 / n sum |x_O - U_O a|^2 + |y - A w|^2 / n + lambda_2 |w|_1 +
    lambda_3 |w|^2.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
    y : array-like of shape (n,)
        NaN where unknown: such a row has no second term.
    U : array-like of shape (D, d)
        `components_.T` of a fitted model.
    w : array-like of shape (d,)
        `coef_` of a fitted model.
    latent : array-like of shape (n, d), default=None
        The rows of A^T. None is those that minimise (5) for this U and w: each is that of step 5 of
        Algorithm 1.
    lambda_1, lambda_2, lambda_3 : float
        Weights of (5), above 0.

    Returns
    -------
    value : float

    Raises
    ------
    ValueError
        Shapes that do not fit, infinite entries, or weights out of range.

    Notes
    -----
    O(o d^2) for a row of o entries where `latent` is None, O(o d) where it is given. U need not
    be orthonormal, as (5) asks.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, equation (5).

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import joint_objective
    >>> X, U = [[1.0, np.nan], [2.0, 2.0]], np.full((2, 1), 0.5**0.5)
    >>> round(joint_objective(X, [1.0, 2.0], U, [0.5], lambda_1=1.0, lambda_2=0.1, lambda_3=0.1), 4)
    0.2409
    """
    _positive(lambda_1=lambda_1, lambda_2=lambda_2, lambda_3=lambda_3)
    table = as_observed(X).astype(np.float64).to_dense()
    labels = flat_target(read_target(y, y_numeric=True, multi_output=False, unknown="all").values)
    weights, basis = check_numbers(w, "w", ensure_2d=False), check_numbers(U, "U")
    n, d = len(table), basis.shape[1]
    if labels.shape != (n,) or weights.shape != (d,) or len(basis) != table.shape[1]:
        raise ValueError(
            f"y, w and U must have shapes ({n},), ({d},) and ({table.shape[1]}, {d}) here; got {labels.shape}, "
            f"{weights.shape} and {basis.shape}. Change what does not fit."
        )
    A = _best_latent(table, labels, basis, weights, lambda_1) if latent is None else check_numbers(latent, "latent")
    if A.shape != (n, d):
        raise ValueError(
            f"latent must have shape ({n}, {d}), one row a row of X; got {A.shape}. Leave it out for the best."
        )
    entries = np.nansum((table - A @ basis.T) ** 2) / n
    label_errors = np.nansum((labels - A @ weights) ** 2) / n
    penalty = lambda_2 * np.abs(weights).sum() + lambda_3 * weights @ weights
    return float(lambda_1 * entries + label_errors + penalty)


def _best_latent(table: Floats, labels: Floats, U: Floats, w: Floats, lambda_1: float) -> Floats:
    """Latent coordinates (n, d) of step 5 for every row (n, D), the shortest where there are several."""
    latent = np.zeros((len(table), U.shape[1]))
    for i, (x, label) in enumerate(zip(table, labels, strict=True)):
        seen = ~np.isnan(x)
        A, b = lambda_1**0.5 * U[seen], lambda_1**0.5 * x[seen]
        if not np.isnan(label):
            A, b = np.vstack([A, w]), np.append(b, label)
        latent[i] = np.linalg.lstsq(A, b, rcond=1e-10)[0]
    return latent


def coherence(U: ArrayLike) -> float:
    """mu(S) = (D / d) max_j |P_S e_j|^2 of the subspace that the columns of U span (section 5).

    1 when all coordinates have the same share of the subspace, D / d when one lies in it. O(D d^2).

    Parameters
    ----------
    U : array-like of shape (D, d)
        Any basis of the subspace, of full column rank; `components_.T` of a fitted model.

    Returns
    -------
    float
        Between 1 and D / d.

    Raises
    ------
    ValueError
        When the columns are dependent, or more than the rows.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import coherence
    >>> coherence(np.eye(6)[:, :2])
    3.0
    """
    basis = check_numbers(U, "U")
    D, d = basis.shape
    if np.linalg.matrix_rank(basis) < d:
        raise ValueError(f"U must have independent columns; got shape {basis.shape} of lower rank. Drop columns.")
    Q = np.linalg.qr(basis)[0]
    return float(D / d * np.max(np.sum(Q**2, axis=1)))


def gate_level(d: int, coherence: float, m: int, delta: float) -> float:
    """The gamma that lets all but a share delta of the rows through the gate of (6): sqrt(8 d mu
    log(2 d / delta) / (3 m)).

    For Omega of m entries drawn uniformly with replacement; a value of 1 or above says that m is
    too small for the claim, which needs gamma < 1. O(1).

    Parameters
    ----------
    d : int
        Dimension of the subspace.
    coherence : float
        mu(S), by `coherence`.
    m : int
        Entries seen of a row.
    delta : float
        Probability of a row that is refused, in (0, 1).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For numbers out of range.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 5,
       after L. Balzano, B. Recht, R. Nowak, "High-Dimensional Matched Subspace Detection When Data
       are Missing", 2010.

    Examples
    --------
    >>> from lacunar.papers.slrm import gate_level
    >>> round(gate_level(d=2, coherence=1.2, m=100, delta=0.1), 3)
    0.486
    """
    _positive(d=d, coherence=coherence, m=m)
    _between("delta", delta)
    return float(np.sqrt(8 * d * coherence * np.log(2 * d / delta) / (3 * m)))


def loss_bound(B_Y: float, R1: float, D: int, m: int, gamma: float) -> float:
    """b of Theorem 1, 2 (B_Y + D R_1 / (m (1 - gamma)))^2: how far two squared losses of (6) can
    lie apart (equation (25)). O(1).

    Parameters
    ----------
    B_Y : float
        Largest |y|.
    R1 : float
        Largest l1 norm of w.
    D, m : int
        Columns, and entries seen of a row.
    gamma : float
        Of (6), in [0, 1).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For numbers out of range.

    Notes
    -----
    As printed. The prediction is at most D R_1 / (m (1 - gamma)) times |x_Omega|_2, a factor that
    (25) leaves out, so that b holds for rows with |x_Omega|_2 <= 1.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Theorem 1 and
       equation (25).

    Examples
    --------
    >>> from lacunar.papers.slrm import loss_bound
    >>> loss_bound(B_Y=1.0, R1=1.0, D=10, m=5, gamma=0.5)
    50.0
    """
    _positive(B_Y=B_Y, R1=R1, D=D, m=m)
    _gamma(gamma)
    return float(2 * (B_Y + D * R1 / (m * (1 - gamma))) ** 2)


def complexity_bound(n: int, m: int, D: int, R1: float, B_X: float, gamma: float) -> float:
    """Lemma 3, (50 m / n + 14 / sqrt(n)) 3 D R_1 B_X / (1 - gamma): the Rademacher complexity of
    the functions (7). O(1).

    Parameters
    ----------
    n : int
        Rows.
    m, D : int
        Entries seen of a row, and columns.
    R1 : float
        Largest l1 norm of w.
    B_X : float
        Largest |x_j|.
    gamma : float
        Of (6), in [0, 1).

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For numbers out of range.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Lemma 3 and
       equation (24).

    Examples
    --------
    >>> from lacunar.papers.slrm import complexity_bound
    >>> round(complexity_bound(n=10_000, m=2, D=10, R1=1.0, B_X=1.0, gamma=0.5), 6)
    9.0
    """
    _positive(n=n, m=m, D=D, R1=R1, B_X=B_X)
    _gamma(gamma)
    return float((50 * m / n + 14 / np.sqrt(n)) * 3 * D * R1 * B_X / (1 - gamma))


def risk_bound(
    empirical: float,
    n: int,
    m: int,
    D: int,
    *,
    R1: float,
    B_X: float,
    B_Y: float,
    gamma: float,
    delta: float,
    constant: float = 1.0,
) -> float:
    """The right-hand side of Theorem 1, (8): with probability 1 - delta, no function (7) has a
    larger expected squared error.

    L^ + K [sqrt(L^) (s c + sqrt(b log(1 / delta) / n)) + b log(1 / delta) / n + log^3(n) s^2 c^2]
    with s = m / n + 1 / sqrt(n) and c = D R_1 B_X / (1 - gamma). O(1).

    Parameters
    ----------
    empirical : float
        L^, the mean squared error of the predictions (6) on the training rows, refused ones counted
        as 0.
    n : int
        Training rows.
    m, D : int
        Entries seen of a row, and columns.
    R1 : float
        Largest l1 norm of w, `np.abs(coef_).sum()`.
    B_X, B_Y : float
        Largest |x_j| and |y|.
    gamma : float
        Of (6), in [0, 1).
    delta : float
        Probability that the bound fails, in (0, 1).
    constant : float, default=1.0
        K, a universal constant to which the paper gives no value: the bound says how its terms
        scale, and 1 makes no promise.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        For numbers out of range.

    Notes
    -----
    As printed. Lemma 1 (11), from which (8) follows, has s c times log(n)^1.5 in the first term, as
    the square in the last has log(n)^3.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Theorem 1.

    Examples
    --------
    >>> from lacunar.papers.slrm import risk_bound
    >>> facts = {"m": 50, "D": 100, "R1": 1.0, "B_X": 1.0, "B_Y": 1.0, "gamma": 0.5, "delta": 0.05}
    >>> risk_bound(0.1, 10**8, **facts) < risk_bound(0.1, 10**6, **facts)
    True
    """
    _positive(n=n, m=m, D=D, R1=R1, B_X=B_X, B_Y=B_Y, constant=constant)
    _gamma(gamma)
    _between("delta", delta)
    if not (isinstance(empirical, Real) and empirical >= 0):
        raise ValueError(f"empirical must be a number of at least 0; got {empirical!r}. Pass a mean squared error.")
    spread = loss_bound(B_Y, R1, D, m, gamma) * np.log(1 / delta) / n
    scale = (m / n + 1 / np.sqrt(n)) * D * R1 * B_X / (1 - gamma)
    inner = np.sqrt(empirical) * (scale + np.sqrt(spread)) + spread + np.log(n) ** 3 * scale**2
    return float(empirical + constant * inner)


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (isinstance(value, Real) and 0 < value < np.inf):
            raise ValueError(f"{name} must be a finite number above 0; got {value!r}. Change it.")


def _between(name: str, value: float) -> None:
    if not (isinstance(value, Real) and 0 < value < 1):
        raise ValueError(f"{name} must lie between 0 and 1; got {value!r}. Change it.")


def _gamma(value: float) -> None:
    if not (isinstance(value, Real) and 0 <= value < 1):
        raise ValueError(f"gamma must be at least 0 and below 1; got {value!r}. Change it.")
