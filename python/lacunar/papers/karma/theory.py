"""Theorems 1 to 3 as functions: how many rows are enough, how large gamma has to be, and what Algorithm 1 loses at most."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal

import numpy as np

# Of Theorem 2 in the source of the paper's O(...): 21 c ln(T / delta) / (rho T), c = (2 L sqrt(Gamma))^2.
_PEGASOS = 21.0 * 4
# Numerator within the logarithm of the gamma that is enough, by where it is printed.
_NUMERATOR = {"Theorem 2": 2.0, "Corollary 1": 1.0}


def embedding_size(n_features: int, gamma: int) -> int:
    """Gamma of Theorem 2: the coordinates d + d^2 + ... + d^gamma of the embedding. O(gamma).

    Parameters
    ----------
    n_features : int
        d, >= 1.
    gamma : int
        >= 1.

    Returns
    -------
    size : int
        Exact, however large.

    Raises
    ------
    ValueError
        Either is below 1 or not whole.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Theorem 2.

    Examples
    --------
    >>> from lacunar.papers.karma import embedding_size
    >>> embedding_size(20, 4)
    168420
    """
    for name, value in (("n_features", n_features), ("gamma", gamma)):
        if not (value >= 1 and value == int(value)):
            raise ValueError(
                f"{name} must be a whole number >= 1; got {value!r}. The embedding has sequences of columns."
            )
    return sum(int(n_features) ** length for length in range(1, int(gamma) + 1))


def truncation_bound(regularity: float, gamma: float) -> float:
    """Lemma 2: how far `truncated_predictor` with I - P_E is from `linear_predictor` with P_E at
    most.

    (1 - lambda)^gamma / lambda, for |w| <= 1 and rows with |P_o x| <= 1. O(1).

    Parameters
    ----------
    regularity : float
        lambda, in (0, 1]: the smallest eigenvalue above 0 of Q_oo, Q the projection on the
        subspace, over all rows' observed columns o: `regularity`. (Definition 1 of the paper speaks
        of singular values of P_o P_E, whose squares these are; its proof of Lemma 2 needs the
        eigenvalues.)
    gamma : float
        > 0.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        lambda outside (0, 1].

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Lemma 2.

    Examples
    --------
    >>> from lacunar.papers.karma import truncation_bound
    >>> truncation_bound(0.5, 4)
    0.125
    """
    _check(regularity=regularity, gamma=gamma)
    return float((1 - regularity) ** gamma / regularity)


def gamma_needed(
    regularity: float,
    epsilon: float,
    *,
    lipschitz: float = 1.0,
    result: Literal["Theorem 2", "Corollary 1"] = "Theorem 2",
) -> int:
    """The least whole gamma of Theorem 2, item 3, log(2 L / (lambda epsilon)) / lambda, or of
    Corollary 1, without the 2.

    By Theorem 2 some v with |v|^2 <= Gamma loses at most epsilon more than the best linear
    predictor on complete data, by Corollary 1 the class F^gamma has such a predictor. Both numbers
    are at least 1. O(1).

    Parameters
    ----------
    regularity : float
        lambda, in (0, 1]: `regularity` of the subspace and the masks.
    epsilon : float
        > 0.
    lipschitz : float, default=1.0
        L of the loss, > 0: 1 for the hinge, the logistic and the absolute loss.
    result : {"Theorem 2", "Corollary 1"}, default="Theorem 2"
        Which of the two is asked.

    Returns
    -------
    gamma : int

    Raises
    ------
    ValueError
        lambda outside (0, 1], another argument not above 0, or an unknown `result`.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Theorem 2 and Corollary 1.

    Examples
    --------
    >>> from lacunar.papers.karma import gamma_needed
    >>> gamma_needed(0.5, 0.1), gamma_needed(0.5, 0.1, result="Corollary 1")
    (8, 6)
    """
    _check(regularity=regularity, epsilon=epsilon, lipschitz=lipschitz)
    if result not in _NUMERATOR:
        raise ValueError(f"result must be 'Theorem 2' or 'Corollary 1'; got {result!r}. The paper has these two.")
    return max(1, math.ceil(math.log(_NUMERATOR[result] * lipschitz / (regularity * epsilon)) / regularity))


def sample_bound(
    n_features: int,
    regularity: float,
    epsilon: float,
    *,
    delta: float = 0.05,
    lipschitz: float = 1.0,
    constant: float = 1.0,
) -> int:
    """Theorem 1: rows with which a predictor is epsilon-good with probability 1 - delta, K L^2
    Gamma^2 log(1 / delta) / epsilon^2.

    Gamma has `gamma_needed` for gamma, so that the number is quasipolynomial in d. O(1).

    Parameters
    ----------
    n_features : int
        d, >= 1.
    regularity : float
        lambda of the distribution, in (0, 1]: `regularity` of its subspace and masks.
    epsilon : float
        > 0.
    delta : float, default=0.05
        In (0, 1).
    lipschitz : float, default=1.0
        L of the loss, > 0.
    constant : float, default=1.0
        K, to which the paper, with its Omega(...), gives no value: the bound says how its terms
        scale, and 1 makes no promise.

    Returns
    -------
    m : int
        Exact, however large.

    Raises
    ------
    ValueError
        An argument outside its range.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Theorem 1.

    Examples
    --------
    >>> from lacunar.papers.karma import sample_bound
    >>> sample_bound(5, regularity=0.9, epsilon=0.5) < sample_bound(5, regularity=0.9, epsilon=0.05)
    True
    """
    _check(delta=delta, constant=constant)
    size = embedding_size(n_features, gamma_needed(regularity, epsilon, lipschitz=lipschitz))
    return math.ceil(Fraction(constant * lipschitz**2 * math.log(1 / delta) / epsilon**2) * size**2)


def objective_bound(
    n_steps: int,
    n_features: int,
    gamma: int,
    rho: float,
    *,
    delta: float = 0.05,
    lipschitz: float = 1.0,
    constant: float = _PEGASOS,
) -> float:
    """Theorem 2, item 2: how far the plain mean of T iterates is from the least objective, with
    probability 1 - delta.

    K max(L^2 Gamma, 1) ln(T / delta) / (rho T), for rows with |P_o x| <= 1 drawn independently.
    O(1).

    Parameters
    ----------
    n_steps : int
        T, >= 1.
    n_features, gamma : int
        d and gamma, >= 1.
    rho : float
        Weight of |v|^2 / 2, in (0, 1/4]: the paper asks for less than 1/4, its source for at most
        that.
    delta : float, default=0.05
        In (0, 1].
    lipschitz : float, default=1.0
        L of the loss, > 0. The squared loss has none.
    constant : float, default=84.0
        K, to which the paper, with its O(...), gives no value. 84 is that of the theorem to which
        it refers.

    Returns
    -------
    bound : float

    Raises
    ------
    ValueError
        An argument outside its range.

    Notes
    -----
    The paper prints O(...) and refers to Pegasos [1]_, whose Theorem 2 has 21 c ln(T / delta) /
    (rho T) without projection, c = (2 L sqrt(Gamma))^2 by the paper's bound on a gradient (Lemma
    4). That theorem asks for L sqrt(Gamma) >= 1: a smaller L counts as 1 / sqrt(Gamma), of which it
    is no less a Lipschitz constant.

    References
    ----------
    .. [1] S. Shalev-Shwartz, Y. Singer, N. Srebro, A. Cotter, "Pegasos", Mathematical Programming
       127, 2011.

    Examples
    --------
    >>> from lacunar.papers.karma import objective_bound
    >>> round(objective_bound(10_000_000, 5, 2, 0.1), 4)
    0.0482
    """
    _check(n_steps=n_steps, rho=rho, delta=delta, lipschitz=lipschitz, constant=constant)
    if rho > 0.25:
        raise ValueError(f"rho must be at most 1/4 for Theorem 2; got {rho:g}. Use a smaller rho.")
    size = embedding_size(n_features, gamma)
    return constant * max(lipschitz**2 * size, 1.0) * math.log(n_steps / delta) / (rho * n_steps)


def theory_rho(
    n_steps: int,
    n_features: int,
    gamma: int,
    *,
    largest: float = 1.0,
    lipschitz: float = 1.0,
    ball: float | None = None,
) -> float:
    """The rho of Theorem 3's last line: L X sqrt(Gamma) / sqrt(B T). O(1).

    Parameters
    ----------
    n_steps : int
        T, >= 1.
    n_features, gamma : int
        d and gamma, >= 1.
    largest : float, default=1.0
        X, the largest modulus of an entry.
    lipschitz : float, default=1.0
        L of the loss.
    ball : float, default=None
        B, the squared norm of the competitors; None is Gamma, that of Corollary 2.

    Returns
    -------
    rho : float

    Raises
    ------
    ValueError
        An argument not above 0.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Theorem 3.

    Examples
    --------
    >>> from lacunar.papers.karma import theory_rho
    >>> theory_rho(10_000, 5, 2)
    0.01
    """
    size = embedding_size(n_features, gamma)
    ball = size if ball is None else ball
    _check(n_steps=n_steps, largest=largest, lipschitz=lipschitz, ball=ball)
    return lipschitz * largest * math.sqrt(size) / math.sqrt(ball * n_steps)


def regret_bound(
    n_steps: int,
    n_features: int,
    gamma: int,
    *,
    regularity: float,
    rho: float | None = None,
    largest: float = 1.0,
    lipschitz: float = 1.0,
    ball: float | None = None,
) -> float:
    """Theorem 3: what Algorithm 1 loses in T steps above the best linear predictor over the best
    subspace, in hindsight.

    2 L^2 X^2 Gamma / rho (1 + log T) + rho / 2 T B + exp(-lambda gamma) / lambda L T, for any
    sequence of rows that is lambda-regular. O(1).

    Parameters
    ----------
    n_steps : int
        T, >= 1.
    n_features, gamma : int
        d and gamma, >= 1.
    regularity : float
        lambda, in (0, 1]: `regularity` of the subspace and the masks.
    rho : float, default=None
        Of the steps 1 / (rho t); None is `theory_rho`.
    largest : float, default=1.0
        X, the largest modulus of an entry.
    lipschitz : float, default=1.0
        L of the loss; the squared loss has none.
    ball : float, default=None
        B, the squared norm of the competitors; None is Gamma, that of Corollary 2.

    Returns
    -------
    bound : float
        Of the sum of losses over T rows.

    Raises
    ------
    ValueError
        An argument outside its range.

    Notes
    -----
    With `theory_rho` the first two terms are X L sqrt(Gamma B T) (2 (1 + log T) + 1/2): the paper's
    last line leaves out the logarithm. With a constant feature d counts it, and X is at least 1.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> from lacunar.papers.karma import regret_bound
    >>> round(regret_bound(1000, 3, 2, regularity=0.5), 1)
    6927.1
    """
    rho = (
        theory_rho(n_steps, n_features, gamma, largest=largest, lipschitz=lipschitz, ball=ball) if rho is None else rho
    )
    size = embedding_size(n_features, gamma)
    ball = size if ball is None else ball
    _check(n_steps=n_steps, regularity=regularity, rho=rho, largest=largest, lipschitz=lipschitz, ball=ball)
    steps = 2 * (lipschitz * largest) ** 2 * size / rho * (1 + math.log(n_steps))
    truncation = math.exp(-regularity * gamma) / regularity * lipschitz * n_steps
    return steps + rho / 2 * n_steps * ball + truncation


def _check(**values: float) -> None:
    for name, value in values.items():
        most = 1.0 if name in ("regularity", "delta") else np.inf
        if not 0 < value <= most or not np.isfinite(value):
            wish = "above 0 and at most 1" if most == 1 else "a finite number above 0"
            raise ValueError(f"{name} must be {wish}; got {value!r}. See the theorem in the docstring.")
