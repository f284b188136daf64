"""Covariances of partially observed rows from sums that add up: pure functions of (d, d) tables, float64."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lacunar._typing import Floats

_TINY = 1e-12


class Sums(NamedTuple):
    """Sums over m rows of entries x minus a shift (0 where missing); everything adds up over rows."""

    S: Floats  # (d, d): sum x_i x_j
    N: Floats  # (d, d): rows with both; its diagonal n counts the entries of a column
    A: Floats  # (d, d): sum of x_i over rows that have j, not symmetric; its diagonal is s
    nn: float  # sum over rows of n_a (n_a - 1), n_a entries of the row
    paired: int  # rows with two entries or more; the others tell nothing about pairs
    m: int


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused where it is used
def moved(sums: Sums, delta: Floats) -> Sums:
    """The same rows with the shift increased by `delta` (d,). Exact; O(d^2)."""
    S, N, A = sums.S, sums.N, sums.A
    cross = delta[:, None] * A.T
    return sums._replace(S=S - cross - cross.T + N * np.outer(delta, delta), A=A - delta[:, None] * N)


def kappa_of(n: Floats, nn: float, m: int) -> float:
    """m nn / ((sum n)^2 - sum n^2): 1 for independent entries, not 1 when rows differ in rate or have a fixed number."""
    pairs = float(n.sum() ** 2 - np.sum(n**2))
    return m * nn / pairs if pairs > 0 and nn > 0 else 1.0


class Expected(NamedTuple):
    """Counts that a model of what is seen expects: outer(pair, pair) rows with both of two columns, `own` with one."""

    pair: Floats  # (d,)
    own: Floats  # (d,)


def expected_counts(weights: str, n: Floats, nn: float, m: int, p: Floats | None = None) -> Expected:
    """Counts expected of n (d,), the entries of the columns of m rows; `nn` as in `Sums`.

    "known": m p_i p_j; "global": m p^2 with p = nnz / (m d); "feature": n_i n_j / m; "kappa": kappa n_i n_j / m.
    A column has m p_i, m p or n_i: eq. (4) of Gonen et al. for "known" and "global".
    """
    m, d = max(m, 1), len(n)
    if weights == "known" and p is not None:
        rates = np.broadcast_to(np.asarray(p, dtype=np.float64), (d,))
    else:
        rates = np.full(d, n.sum() / (m * d)) if weights == "global" else n / m
    kappa = kappa_of(n, nn, m) if weights == "kappa" else 1.0
    return Expected(np.sqrt(m * kappa) * rates, m * rates)


def joint_counts(sums: Sums, weights: str, p: Floats | None = None) -> Floats:
    """What S is divided by (d, d): counts of rows with both under "pairwise", `expected_counts` otherwise."""
    if weights == "pairwise":
        return sums.N
    expected = expected_counts(weights, np.diag(sums.N).copy(), sums.nn, sums.m, p)
    counts: Floats = np.outer(expected.pair, expected.pair)
    np.fill_diagonal(counts, expected.own)
    return counts


def second_moment(sums: Sums, weights: str, *, p: Floats | None = None, pseudo_count: float = 0.0) -> Floats:
    """E x x^T (d, d) about the shift; entries without a row are 0. `pseudo_count` is added off the diagonal."""
    return _divided(sums.S, joint_counts(sums, weights, p), 1.0, pseudo_count)


def covariance(sums: Sums, weights: str, *, p: Floats | None = None, pseudo_count: float = 0.0) -> Floats:
    """Covariance (d, d) centred by available cases, exactly unbiased given the mask under "pairwise".

    Sums about the means over N_ij (1 - 1/n_i - 1/n_j + N_ij / (n_i n_j)), which is n_i - 1 on the diagonal. Under the other
    weights over the expected count times `own_freedom`, which is what that factor is on average. O(d^2).
    """
    n = np.maximum(np.diag(sums.N), 1.0)
    centred = moved(sums, np.diag(sums.A) / n).S
    counts = joint_counts(sums, weights, p)
    if weights == "pairwise":
        factor = 1 - 1 / n[:, None] - 1 / n + counts / np.outer(n, n)
    else:
        freedom = own_freedom(n, sums.m)
        factor = np.outer(freedom, freedom)
    np.fill_diagonal(factor, 1 - 1 / n)
    return _divided(centred, counts, factor, pseudo_count)


def own_freedom(n: Floats, m: int) -> Floats:
    """(1 - 1/n_i) sqrt(m / (m - 1)) of each column: what its mean costs an expected count.

    Of all masks with n_i and n_j entries, the mean of N (1 - 1/n_i - 1/n_j + N / (n_i n_j)) is (n_i n_j / m) times the
    product of these two (the first two moments of a hypergeometric count), so that division by it is exactly unbiased.
    """
    freedom: Floats = (1 - 1 / np.maximum(n, 1.0)) * np.sqrt(m / max(m - 1, 1))
    return freedom


def _divided(S: Floats, counts: Floats, factor: Floats | float, pseudo_count: float) -> Floats:
    """S / ((counts + pseudo) factor), 0 where nothing was seen."""
    divisor = (counts + pseudo_count * (1 - np.eye(len(S)))) * factor
    usable = (counts > 0) & (np.asarray(factor) > _TINY)
    return np.divide(S, divisor, out=np.zeros_like(S), where=usable)
