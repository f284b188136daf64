"""Shapley values of conditional expectations under a Gaussian: what each entry that a row shows adds to E[target | row].

The game: v(S) = E[y | x_S] for sets S of the entries that the row shows. Up to `MOST_EXACT` of these all sets are looked at, otherwise permutations are drawn.
"""

from __future__ import annotations

from math import factorial
from typing import Any, NamedTuple

import numpy as np

from lacunar._products import row_product
from lacunar._random import generator
from lacunar._typing import Bools, Floats, Ints
from lacunar.lowrank.patterns import patterns_of

MOST_EXACT = 14  # entries shown, of which all sets are looked at
_PAIRS = 64  # permutations, each with its reverse
_NUMBERS = 2**22  # held at once
_LEAST = 1e-12  # variance that is divided by


class ShownGroup(NamedTuple):
    """Rows (n,) that show k columns each, (patterns, k), and the pattern of every row (n,)."""

    rows: Ints
    own: Ints
    columns: Ints


def shapley_values(Z: Floats, mean: Floats, covariance: Floats, seed: Any) -> tuple[Floats, Floats]:
    """Values and their standard errors (m, d, q) of rows (m, d); the q targets are the last of the Gaussian's columns."""
    d = Z.shape[1]
    values = np.zeros((*Z.shape, len(mean) - d))
    errors, deviation = np.zeros_like(values), Z - mean[:d]
    ranks = antithetic_ranks(_PAIRS, d, seed)
    for group in _shown(~np.isnan(Z)):
        k, q = group.columns.shape[1], values.shape[2]
        a_row = 2 * 2**k * (q + 1) ** 2 if k <= MOST_EXACT else 4 * k * (k + q)
        for rows, own, columns in _blocks(group, max(_NUMBERS // a_row, 1)):
            places = columns[own]
            shown = deviation[rows[:, None], places]
            joint = np.hstack([columns, np.tile(np.arange(d, d + q), (len(columns), 1))])
            among = covariance[joint[:, :, None], joint[:, None, :]]
            at = rows[:, None], places
            if k <= MOST_EXACT:
                values[at] = _exact(shown, among, own, q)
            else:
                values[at], errors[at] = _sampled(shown, among, own, np.argsort(ranks[:, columns], axis=2))
    return values, errors


def _shown(seen: Bools) -> list[ShownGroup]:
    return [ShownGroup(*pattern) for pattern in patterns_of(seen)]


def _blocks(group: ShownGroup, size: int) -> list[ShownGroup]:
    """The group in parts of so many rows, each with the patterns that its rows have."""
    parts = []
    for first in range(0, len(group.rows), size):
        used, own = np.unique(group.own[first : first + size], return_inverse=True)
        parts.append(ShownGroup(group.rows[first : first + size], own.ravel(), group.columns[used]))
    return parts


def antithetic_ranks(pairs: int, d: int, seed: Any) -> Ints:
    """Places (2 pairs, d) of d columns in permutations, each followed by its reverse."""
    rng = generator(seed)
    ranks = np.stack([rng.permutation(d) for _ in range(pairs)])
    return np.stack([ranks, d - 1 - ranks], axis=1).reshape(-1, d)


def _exact(shown: Floats, covariance: Floats, own: Ints, q: int) -> Floats:
    """Values (n, k, q) of deviations (n, k) that are shown; covariances (patterns, k + q, k + q).

    Column by column every set doubles into one without it and one with it: what is left of the row and of the covariance is swept by the column. O(2^k) a row.
    """
    n, k = shown.shape
    residual = np.hstack([shown, np.zeros((n, q))])[None]  # (sets, n, columns to come and targets)
    remaining = covariance[None]  # (sets, patterns, the same, the same)
    for _ in range(k):
        slope = remaining[:, :, :1, 1:] / np.maximum(remaining[:, :, :1, :1], _LEAST)
        swept = residual[:, :, 1:] - residual[:, :, :1] * slope[:, own, 0]
        residual = np.concatenate([residual[:, :, 1:], swept])
        without = remaining[:, :, 1:, 1:]
        remaining = np.concatenate([without, without - remaining[:, :, 1:, :1] * slope])
    expected = -residual.reshape(2**k, n * q)  # the targets' part of the residual is less than 0 by their expectation
    values = row_product(np.ascontiguousarray(expected.T), set_weights(k).T)
    return values.reshape(n, q, k).transpose(0, 2, 1)


def set_weights(k: int) -> Floats:
    """Weights (k, 2^k) of the sets in the value of each of k entries; bit j of a set's number says whether j is in it."""
    within = (np.arange(2**k)[None] >> np.arange(k)[:, None]) & 1
    size = within.sum(axis=0) if k else np.zeros(1, dtype=int)
    of_size = np.array([factorial(s) * factorial(max(k - 1 - s, 0)) / factorial(max(k, 1)) for s in range(k + 1)])
    return np.asarray(np.where(within, of_size[size - 1], -of_size[size]))


def _sampled(shown: Floats, covariance: Floats, own: Ints, orders: Ints) -> tuple[Floats, Floats]:
    """Means and standard errors (n, k, q) over permutations (2 pairs, patterns, k), reverses beside each other.

    Along a permutation the whole path is one Cholesky factor: what an entry adds is its innovation times that of the target.
    """
    n, k = shown.shape
    total, squares = np.zeros((n, k, covariance.shape[1] - k)), np.zeros((n, k, covariance.shape[1] - k))
    at = np.arange(len(covariance))[:, None]
    for pair in range(0, len(orders), 2):
        of_pair = np.zeros_like(total)
        for order in orders[pair : pair + 2]:
            ordered = covariance[at[:, :, None], order[:, :, None], order[:, None, :]]
            inverse = np.linalg.inv(np.linalg.cholesky(ordered))
            along = inverse @ covariance[at, order, k:]
            innovations = np.einsum("nij,nj->ni", inverse[own], np.take_along_axis(shown, order[own], axis=1))
            of_pair[np.arange(n)[:, None], order[own]] += 0.5 * innovations[:, :, None] * along[own]
        total += of_pair
        squares += of_pair**2
    pairs = len(orders) // 2
    mean = total / pairs
    return mean, np.sqrt(np.maximum(squares / pairs - mean**2, 0.0) / (pairs - 1))
