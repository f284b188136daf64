"""Theorem 7 of the subspace paper: how many rows MBEG needs, and what so many leave open."""

from __future__ import annotations

import math


def mbeg_sample_bound(d: int, n_components: int, budget: int, epsilon: float) -> int:
    """Rows with which MBEG is within epsilon of the best subspace in expectation, Theorem 7.

    max(8 k (d + r) / r k / epsilon^2, 2 d^4 r / (d + r)) log d, for rows with |x| <= 1 and `options="paper"` with as many rows for
    `horizon`. The second term makes alpha = eta d^2 at most 1/2. O(1).

    Parameters
    ----------
    d : int
        Attributes, at least 2.
    n_components : int
        k, below d.
    budget : int
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

    Examples
    --------
    >>> from lacunar.active import mbeg_sample_bound
    >>> mbeg_sample_bound(4, 1, 2, 0.2)
    832
    """
    _check(d, n_components, budget)
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be above 0 and below 1; got {epsilon}.")
    learning = 8 * n_components**2 * (d + budget) / (budget * epsilon**2)
    return math.ceil(max(learning * math.log(d), _least_rows(d, budget)))


def mbeg_error_bound(d: int, n_components: int, budget: int, m: int) -> float:
    """Expected loss beyond that of the best subspace after m rows, proof of Theorem 7: sqrt(8 k^2 (d + r) log d / (r m)).

    Parameters
    ----------
    d, n_components, budget
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

    Examples
    --------
    >>> from lacunar.active import mbeg_error_bound
    >>> round(mbeg_error_bound(4, 1, 2, 832), 3)
    0.2
    """
    _check(d, n_components, budget)
    if m < _least_rows(d, budget):
        raise ValueError(
            f"m must be at least 2 d^4 r log d / (d + r) = {_least_rows(d, budget):.6g} rows; got {m}. Theorem 7 says nothing before."
        )
    return math.sqrt(8 * n_components**2 * (d + budget) * math.log(d) / (budget * m))


def _least_rows(d: int, r: int) -> float:
    return 2 * d**4 * r / (d + r) * math.log(d)


def _check(d: int, k: int, r: int) -> None:
    if not 1 <= k < d:
        raise ValueError(f"n_components must be at least 1 and below d = {d}; got {k}.")
    if r < 2 or r % 2:
        raise ValueError(f"budget must be even and at least 2: MBEG draws pairs; got {r}.")
