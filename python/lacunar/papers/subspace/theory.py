"""Lemmas 1, 2 and 13, Corollary 3 and Theorems 4, 5, 7 and 12 as functions: how many rows POPCA, MBEG and every learner need."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from lacunar._typing import Floats
from lacunar.observed.door import check_numbers


def popca_sample_bound(d: int, n_components: int, r: float, epsilon: float) -> int:
    """Rows with which POPCA is within epsilon of the best subspace in expectation, Corollary 3:
    ceil((d / r)^2 k / epsilon^2).

    For rows x with |x| <= 1 whose d entries are each observed with probability r / d, and Algorithm
    1 as printed; the loss is E |x - P x|^2. By Theorem 4 no algorithm needs fewer but for a
    constant. O(1).

    Parameters
    ----------
    d : int
        Columns.
    n_components : int
        k, at most d.
    r : float
        Entries observed in a row on average, above 0 and at most d; the paper has 2 and more.
    epsilon : float
        In (0, 1).

    Returns
    -------
    m : int

    Raises
    ------
    ValueError
        When an argument is out of range.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Corollary 3.

    Examples
    --------
    >>> from lacunar.papers.subspace import popca_sample_bound
    >>> popca_sample_bound(20, 2, 5, 0.1)
    3200
    """
    _check_popca(d, n_components, r)
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be above 0 and below 1; got {epsilon}.")
    return math.ceil((d / r) ** 2 * n_components / epsilon**2 * (1 - 1e-15))


def popca_error_bound(d: int, n_components: int, r: float, m: int) -> float:
    """Expected loss beyond that of the best subspace after m rows, Lemmas 1 and 2: (d / r) sqrt(k /
    m).

    Its factor (d / r) / sqrt(m) bounds the expected Frobenius error of the second moment. O(1).

    Parameters
    ----------
    d, n_components, r
        As for `popca_sample_bound`.
    m : int
        Rows, at least 1.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Lemmas 1 and 2.

    Examples
    --------
    >>> from lacunar.papers.subspace import popca_error_bound
    >>> popca_error_bound(20, 2, 5, 3200)
    0.1
    """
    _check_popca(d, n_components, r)
    if not m >= 1:
        raise ValueError(f"m must be at least 1 row; got {m}.")
    return d / r * math.sqrt(n_components / m)


def passive_lower_bound(d: int, n_components: int, r: float, epsilon: float, *, constant: float = 1 / 257) -> int:
    """Theorems 4 and 5: rows without which every learner fails on some distribution where each
    entry is seen with probability r / d.

    constant (d / r)^2 k / epsilon^2, rounded up: with fewer rows the expected loss beyond the best
    subspace is above epsilon on one of the distributions of `make_coins`, with eps = epsilon / 2 by
    the default constant. Theorem 5 is r = d. O(1).

    Parameters
    ----------
    d : int
        Columns.
    n_components : int
        k, at most d / 2.
    r : float
        Entries observed in a row on average, above 0 and at most d.
    epsilon : float
        In (0, 1/128).
    constant : float, default=1/257
        What the paper's Omega(...) leaves out. The default is derived below.

    Returns
    -------
    m : int

    Raises
    ------
    ValueError
        When an argument is out of range.

    Notes
    -----
    The chain of the paper's proof would give 1/32: Theorem 11 says that k coins of bias alpha = 8 e
    cannot be told with k / (8 e^2) flips, e = 2 epsilon. That is not so: the majority of n = 1 / (8
    e^2) flips is wrong with probability .002, and POPCA itself needs fewer rows than k / (32
    epsilon^2) on these coins. The default is a constant that holds, by the paper's own steps: by
    Lemma 10 the excess is at least alpha / 2 times the share of coins that are told wrongly; a coin
    of which n flips are seen is told wrongly with probability at least (1 - sqrt(n D / 2)) / 2, D =
    alpha log((1 + alpha) / (1 - alpha)), by Pinsker's inequality, which is convex in n; and a row
    shows a flip of a given coin with probability (r / d)^2 / k. With alpha = 8 epsilon the excess
    is above epsilon below (d / r)^2 k / (2 D) rows, and 2 D < 257 epsilon^2 for epsilon < 1/128.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Theorems 4 and 5, Appendix A.

    Examples
    --------
    >>> from lacunar.papers.subspace import passive_lower_bound, popca_sample_bound
    >>> passive_lower_bound(20, 2, 5, 0.005), popca_sample_bound(20, 2, 5, 0.005)
    (4981, 1280000)
    """
    _check_popca(d, n_components, r)
    if 2 * n_components > d:
        raise ValueError(
            f"n_components must be at most d / 2 = {d / 2:g} here; got {n_components}. Its coins take 2 k columns."
        )
    if not 0 < epsilon < 1 / 128:
        raise ValueError(
            f"epsilon must be above 0 and below 1/128; got {epsilon}. Theorems 4 and 5 say nothing beyond."
        )
    if not 0 < constant < np.inf:
        raise ValueError(f"constant must be a finite number above 0; got {constant}. Leave it out.")
    return math.ceil(constant * (d / r) ** 2 * n_components / epsilon**2)


def penalised_covariance(C_hat: ArrayLike, lam: float) -> Floats:
    """Lemma 13: argmin over positive semidefinite S of |S - C_hat|_F^2 + lambda |S|_1, |S|_1 the
    trace norm.

    Eigenvalues of C_hat are made smaller by lambda / 2, and those that fall below 0 are 0: the
    estimate of Lounici, which has no negative eigenvalues, as POPCA's unbiased one may have, and as
    many others as lambda leaves. O(d^3).

    Parameters
    ----------
    C_hat : array-like of shape (d, d)
        Symmetric: the unbiased estimate of the second moment from partial rows.
    lam : float
        lambda, at least 0.

    Returns
    -------
    C_tilde : ndarray of shape (d, d)

    Raises
    ------
    ValueError
        When `C_hat` is not a symmetric matrix, or `lam` is below 0.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Appendix E.
    .. [2] K. Lounici, "High-dimensional covariance matrix estimation with missing observations",
       Bernoulli 20(3), 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.subspace import penalised_covariance
    >>> penalised_covariance(np.diag([3.0, 0.5, -1.0]), lam=2.0).round(9) + 0.0
    array([[2., 0., 0.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    if not 0 <= lam < np.inf:
        raise ValueError(f"lam must be a finite number of at least 0; got {lam}.")
    values, vectors = np.linalg.eigh(_symmetric(C_hat, "C_hat"))
    return np.asarray((vectors * np.maximum(values - lam / 2, 0.0)) @ vectors.T)


def penalised_error_bound(C: ArrayLike, r: float, m: int, *, constant: float = 1.0) -> float:
    """Lemma 13: |C_tilde - C|_F of `penalised_covariance` at its best lambda, with probability 1 -
    1 / (2 d).

    sqrt(inf over S of |S - C|_F^2 + c_1 lambda_1(C) tr(C) d^2 / (r^2 m) rank(S) log(2 d)): each
    eigenvalue of C is either paid for or left out, whichever is less. O(d^3).

    Parameters
    ----------
    C : array-like of shape (d, d)
        The second moment, positive semidefinite.
    r : float
        Entries observed in a row on average, above 0 and at most d.
    m : int
        Rows, at least 1.
    constant : float, default=1.0
        c_1, to which the paper gives no value: the bound says how its terms scale, and 1 makes no
        promise.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When C is not a positive semidefinite matrix, or another argument is out of range.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Lemma 13.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.subspace import penalised_error_bound
    >>> round(penalised_error_bound(np.diag([0.6, 0.3, 0.0]), r=2, m=1000), 4)
    0.066
    """
    moment = _symmetric(C, "C")
    d = len(moment)
    _check_popca(d, 1, r)
    if not m >= 1 or not 0 < constant < np.inf:
        raise ValueError(f"m must be at least 1 row and constant above 0; got {m} and {constant}.")
    values = np.linalg.eigvalsh(moment)
    if values[0] < -1e-10 * max(values[-1], 1e-300):
        raise ValueError(
            f"C must be positive semidefinite; its least eigenvalue is {values[0]:.3g}. Give the moment itself."
        )
    price = constant * values[-1] * values.sum() * (d / r) ** 2 / m * math.log(2 * d)
    return math.sqrt(float(np.minimum(values**2, price).sum()))


def sample_lower_bound(d: int, r: int, epsilon: float, *, c: float = 4.0) -> int:
    """Theorem 12: rows without which every learner of one direction fails on some distribution, of
    the order d / (r epsilon).

    ((d - 1) / r) log(c (1 - 1/d)) / -log(1 - c epsilon), rounded up: with fewer rows, each seen in
    r entries that the learner may choose as it goes along, the expected loss beyond the best
    direction is above epsilon for one of the d distributions of `make_unit_vectors`. O(1).

    Parameters
    ----------
    d : int
        Columns, at least 2.
    r : int
        Entries looked at in a row, above 0 and at most d.
    epsilon : float
        In (0, 1 / c).
    c : float, default=4.0
        Of the proof, above 2: a row is not zero with probability c epsilon.

    Returns
    -------
    m : int

    Raises
    ------
    ValueError
        When an argument is out of range.

    Notes
    -----
    The paper says Omega(d / (r epsilon)); the constant comes from its proof. Until the learner sees
    an entry that is not 0, what it does cannot depend on s. If it looks at column s in n_s rows,
    sum n_s <= r m, it sees only zeros with probability (1 - c epsilon)^n_s, and then loses c
    epsilon (1 - u_s^2). The mean of this over the d values of s is at least c epsilon (1 - 1/d) (1
    - c epsilon)^(r m / (d - 1)), as u_s^2 sum to 1 and the power is convex.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Theorem 12.

    Examples
    --------
    >>> from lacunar.papers.subspace import sample_lower_bound
    >>> sample_lower_bound(100, 2, 0.01), sample_lower_bound(100, 2, 0.001)
    (1669, 16997)
    """
    _check_popca(d, 1, r)
    if d < 2:
        raise ValueError(f"d must be at least 2 columns; got {d}. There is one direction only.")
    if not 2 < c < np.inf or not 0 < epsilon * c < 1:
        raise ValueError(f"c must be above 2 and epsilon in (0, 1 / c); got c={c} and epsilon={epsilon}.")
    return math.ceil((d - 1) / r * math.log(c * (1 - 1 / d)) / -math.log1p(-c * epsilon))


def _symmetric(matrix: ArrayLike, name: str) -> Floats:
    moment = check_numbers(matrix, name)
    if moment.shape[0] != moment.shape[1] or not np.allclose(
        moment, moment.T, rtol=1e-10, atol=1e-12 * np.abs(moment).max()
    ):
        raise ValueError(f"{name} must be a symmetric matrix; got shape {moment.shape}. Pass a second moment.")
    return (moment + moment.T) / 2


def _check_popca(d: int, k: int, r: float) -> None:
    if not 1 <= k <= d:
        raise ValueError(f"n_components must be at least 1 and at most d = {d}; got {k}.")
    if not 0 < r <= d:
        raise ValueError(f"r must be above 0 and at most d = {d}; got {r}. It counts observed entries of a row.")


def mbeg_sample_bound(d: int, n_components: int, n_observed: int, epsilon: float) -> int:
    """Rows with which MBEG is within epsilon of the best subspace in expectation, Theorem 7.

    max(8 k (d + r) / r k / epsilon^2, 2 d^4 r / (d + r)) log d, for rows with |x| <= 1 and
    Algorithm 2 as printed, with as many rows for m. The second term makes alpha = eta d^2 at most
    1/2. O(1).

    Parameters
    ----------
    d : int
        Attributes, at least 2.
    n_components : int
        k, below d.
    n_observed : int
        r, even and at least 2.
    epsilon : float
        In (0, 1).

    Returns
    -------
    m : int

    Raises
    ------
    ValueError
        When an argument is out of range.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, Theorem 7.

    Examples
    --------
    >>> from lacunar.papers.subspace import mbeg_sample_bound
    >>> mbeg_sample_bound(4, 1, 2, 0.2)
    832
    """
    _check_mbeg(d, n_components, n_observed)
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be above 0 and below 1; got {epsilon}.")
    learning = 8 * n_components**2 * (d + n_observed) / (n_observed * epsilon**2)
    return math.ceil(max(learning * math.log(d), least_rows(d, n_observed)))


def mbeg_error_bound(d: int, n_components: int, n_observed: int, m: int) -> float:
    """Expected loss beyond that of the best subspace after m rows, proof of Theorem 7: sqrt(8 k^2
    (d + r) log d / (r m)). O(1).

    Parameters
    ----------
    d, n_components, n_observed
        As for `mbeg_sample_bound`.
    m : int
        Rows, at least 2 d^4 r log d / (d + r): alpha = eta d^2 is at most 1/2 from there on.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        When an argument is out of range, m too small among them.

    References
    ----------
    .. [1] A. Gonen, D. Rosenbaum, Y. C. Eldar, S. Shalev-Shwartz, "Subspace Learning with Partial
       Information", JMLR 2016, the proof of Theorem 7.

    Examples
    --------
    >>> from lacunar.papers.subspace import mbeg_error_bound
    >>> round(mbeg_error_bound(4, 1, 2, 832), 3)
    0.2
    """
    _check_mbeg(d, n_components, n_observed)
    if m < least_rows(d, n_observed):
        raise ValueError(
            f"m must be at least 2 d^4 r log d / (d + r) = {least_rows(d, n_observed):.6g} rows; got {m}. Theorem 7 says nothing before."
        )
    return math.sqrt(8 * n_components**2 * (d + n_observed) * math.log(d) / (n_observed * m))


def _check_mbeg(d: int, k: int, r: int) -> None:
    if not 1 <= k < d:
        raise ValueError(f"n_components must be at least 1 and below d = {d}; got {k}.")
    if r < 2 or r % 2:
        raise ValueError(f"n_observed must be even and at least 2: MBEG draws pairs; got {r}.")


def least_rows(d: int, r: int) -> float:
    """Rows from which on alpha = eta d^2 of MBEG is at most 1/2."""
    return 2 * d**4 * r / (d + r) * math.log(d)
