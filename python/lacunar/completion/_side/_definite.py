"""A Gram matrix of a function that nobody vouches for, checked for positive semidefiniteness as it grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lacunar.completion._side._state import Floats, RowStore, shown

_TOL = 1e-8  # of the own values: rounding in somebody's function


class GrowingGram:
    """Pivot-free Cholesky of a growing Gram matrix: rows W with K = W W^T up to 1e-8. O(n rank) a point.

    A new point's row w solves W w = k; what is left of its own value, k(x, x) - |w|^2, opens a new direction, is rounding,
    or is negative: then the function is no kernel. The same for its left-over products with points met before.
    """

    def __init__(self) -> None:
        self._rows, self._own = RowStore(np.empty((0, 64))), np.empty(0)
        self._basis: list[int] = []  # points that opened a direction, in order
        self._pending: tuple[Floats, float, float] | None = None

    def measure(self, column: Floats, own: float, value: Any) -> None:
        """Refuses a point whose kernel values (n,) contradict positive semidefiniteness."""
        rank, rows = len(self._basis), self._rows.rows
        w = np.zeros(rows.shape[1])
        for k, point in enumerate(self._basis):  # forward substitution: rows of the basis are lower triangular
            w[k] = (column[point] - rows[point, :k] @ w[:k]) / rows[point, k]
        left = own - float(w[:rank] @ w[:rank])
        off = np.abs(column - rows @ w)
        allowed = np.sqrt(_TOL * self._own * own)  # |<x - proj x, y - proj y>| of points y the basis spans
        if left < -_TOL * own or (off > np.maximum(allowed, _TOL * np.sqrt(self._own * own))).any():
            raise ValueError(
                f"the kernel function must be positive semidefinite; with the point {shown(value)} (number {len(column)}) "
                "its Gram matrix is not. Pass a symmetric positive semidefinite function."
            )
        self._pending = (w, left, own)

    def take(self) -> None:
        """The point last measured belongs to the Gram matrix."""
        assert self._pending is not None
        w, left, own = self._pending
        if left > _TOL * own:
            rank = len(self._basis)
            if rank == w.size:
                rows = np.zeros((self._rows.size, 2 * rank))
                rows[:, :rank] = self._rows.rows
                self._rows, w = RowStore(rows), np.concatenate([w, np.zeros(rank)])
            w[rank] = np.sqrt(left)
            self._basis.append(self._rows.size)
        self._rows.append(w)
        self._own = np.append(self._own, own)
        self._pending = None
