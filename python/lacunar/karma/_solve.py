"""Dual coefficients for every loss, outputs by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.karma._ridge import solve_ridge

_Floats = NDArray[np.float64]


def one_vs_rest(codes: NDArray[np.intp], n_classes: int) -> _Floats:
    """Codes +-1: shape (n, 1) for two classes, (n, k) for more."""
    if n_classes == 2:
        return np.where(codes == 1, 1.0, -1.0)[:, None]
    return np.where(codes[:, None] == np.arange(n_classes), 1.0, -1.0)


def solve_classes(
    gram: NDArray[Any],
    codes: NDArray[np.intp],
    n_classes: int,
    upper: _Floats,
) -> tuple[_Floats, int]:
    """Coefficients (n, outputs) and the largest number of iterations; upper[i] = C * weight_i."""
    return solve_ridge(gram, one_vs_rest(codes, n_classes), 1.0, upper), 1
