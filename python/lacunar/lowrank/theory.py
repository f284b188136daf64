"""Lemma 2 and Corollary 3 of the subspace paper: how many rows POPCA needs, and what so many leave open."""

from __future__ import annotations

import math


def popca_sample_bound(d: int, n_components: int, r: float, epsilon: float) -> int:
    """Rows with which POPCA is within epsilon of the best subspace in expectation, Corollary 3: ceil((d / r)^2 k / epsilon^2).

    For rows x with |x| <= 1 whose d entries are each observed with probability r / d, and `options="paper"`; the loss is
    E |x - P x|^2. By Theorem 4 no algorithm needs fewer but for a constant. O(1).

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

    Examples
    --------
    >>> from lacunar.lowrank import popca_sample_bound
    >>> popca_sample_bound(20, 2, 5, 0.1)
    3200
    """
    _check(d, n_components, r)
    if not 0 < epsilon < 1:
        raise ValueError(f"epsilon must be above 0 and below 1; got {epsilon}.")
    return math.ceil((d / r) ** 2 * n_components / epsilon**2 * (1 - 1e-15))


def popca_error_bound(d: int, n_components: int, r: float, m: int) -> float:
    """Expected loss beyond that of the best subspace after m rows, Lemmas 1 and 2: (d / r) sqrt(k / m).

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

    Examples
    --------
    >>> from lacunar.lowrank import popca_error_bound
    >>> popca_error_bound(20, 2, 5, 3200)
    0.1
    """
    _check(d, n_components, r)
    if not m >= 1:
        raise ValueError(f"m must be at least 1 row; got {m}.")
    return d / r * math.sqrt(n_components / m)


def _check(d: int, k: int, r: float) -> None:
    if not 1 <= k <= d:
        raise ValueError(f"n_components must be at least 1 and at most d = {d}; got {k}.")
    if not 0 < r <= d:
        raise ValueError(f"r must be above 0 and at most d = {d}; got {r}. It counts observed entries of a row.")
