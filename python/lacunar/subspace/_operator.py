"""Covariance that is never formed: its products with vectors, in one pass over the rows each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._factor import gram_product
from lacunar._moments import Expected, expected_counts, own_freedom
from lacunar._parts import Parts, in_parts
from lacunar.observed import Observed
from lacunar.subspace._rows import count, squares

_Floats = NDArray[np.float64]
_NODES = 32  # values of a count that the division by counts is interpolated from
_LEFT_OUT = 1e-5  # of that division, relative to its largest eigenvalue


class Implicit(NamedTuple):
    """The matrix sum_r sign_r diag(side_r) X'X diag(side_r) + diag(rest), X the rows with 0 where nothing is observed."""

    parts: Parts  # of rows about their means, where centred
    sides: _Floats  # (d, r)
    signs: _Floats  # (r,)
    rest: _Floats  # (d,)
    diagonal: _Floats  # (d,)
    n_jobs: int | None

    def times(self, V: _Floats) -> _Floats:
        """Product (d, v) with a block (d, v). O(nnz r v)."""
        d, v = V.shape
        block = np.ascontiguousarray((self.sides[:, :, None] * V[:, None, :]).reshape(d, -1))
        found = self.parts.total(gram_product, block, self.n_jobs)[0]
        made: _Floats = np.einsum("dr,drv->dv", self.sides * self.signs, found.reshape(d, -1, v))
        return made + self.rest[:, None] * V

    def divided(self, scale: _Floats) -> Implicit:
        """The same of columns divided by scale (d,)."""
        sides, square = self.sides / scale[:, None], scale**2
        return self._replace(sides=sides, rest=self.rest / square, diagonal=self.diagonal / square)


def implicit_covariance(
    rows: Observed | Parts,
    *,
    weights: str,
    p: _Floats | None,
    center: bool,
    pseudo_count: float,
    n_jobs: int | None,
) -> Implicit:
    """What `_moments.covariance` (or `second_moment`) gives for rows about their means, for any weights but "pairwise".

    "auto" weights are "kappa".

    Exact for `pseudo_count` 0. Otherwise 1 / (count + pseudo_count) is no product of two columns' numbers, and a sum of such
    products stands for it: one or two for counts that are alike (to 1e-6), some fifteen for counts that span four orders of
    magnitude (to 2e-3). O(nnz) to make.
    """
    parts = in_parts(rows)
    m, n, nn, _, _ = count(parts)
    d, q = len(n), parts.total(squares)[0]
    how = "kappa" if weights == "auto" else weights
    expected = expected_counts(how, n, nn, m, p)
    usable = n > (1 if center else 0)
    freedom = own_freedom(n, m) if center else np.ones(d)
    sides, signs = _inverse_counts(expected, pseudo_count)
    sides = np.divide(sides, freedom[:, None], out=np.zeros_like(sides), where=usable[:, None])
    own = expected.own * ((1 - 1 / np.maximum(n, 1)) if center else 1.0)
    diagonal = np.divide(q, own, out=np.zeros(d), where=usable)
    rest = diagonal - (sides**2 @ signs) * q
    return Implicit(parts, np.ascontiguousarray(sides), signs, rest, diagonal, n_jobs)


def _inverse_counts(expected: Expected, pseudo_count: float) -> tuple[_Floats, _Floats]:
    """Sides (d, r) and signs (r,) with 1 / (a_i a_j + c) = sum_r sign_r side_ir side_jr, a the expected counts' roots."""
    a = expected.pair
    seen = a > 0
    sides = np.zeros((len(a), 1))
    if pseudo_count == 0 or not seen.any():
        np.divide(1.0, a, out=sides[:, 0], where=seen)
        return sides, np.ones(1)
    low, high = np.log(a[seen].min()), np.log(a[seen].max())
    turn = np.cos(np.pi * (np.arange(_NODES) + 0.5) / _NODES)
    nodes = np.exp((low + high) / 2 + turn * (high - low) / 2)
    # Relative to its own diagonal the division is smooth in log a, bounded by 1 and of low numerical rank.
    values, vectors = np.linalg.eigh(_relative(nodes, nodes, pseudo_count))
    kept = np.abs(values) > _LEFT_OUT * np.abs(values).max()
    values, vectors = values[kept], vectors[:, kept]
    sides = np.zeros((len(a), len(values)))
    sides[seen] = (_relative(a[seen], nodes, pseudo_count) @ vectors) / np.sqrt(np.abs(values))
    sides[seen] /= np.sqrt(a[seen, None] ** 2 + pseudo_count)
    return sides, np.sign(values)


def _relative(a: _Floats, b: _Floats, c: float) -> _Floats:
    made: _Floats = np.sqrt(np.outer(a**2 + c, b**2 + c)) / (np.outer(a, b) + c)
    return made
