"""The kernel's own features: which rows of a weight table a row of data meets, and how much they weigh."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.kernels import KernelForm
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
MapTuple = tuple[int, int, float, float, float, float, float, int]


_LINE = 64  # bytes of a cache line: wide loads that straddle two of them cost twice


def aligned_zeros(size: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros (size,) that begin at a cache line."""
    buffer = np.zeros(size * dtype.itemsize + _LINE, np.uint8)
    start = -buffer.ctypes.data % _LINE
    return buffer[start : start + size * dtype.itemsize].view(dtype)


def aligned_copy(values: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Values (size,) in an array that begins at a cache line."""
    made = aligned_zeros(values.size, dtype)
    made[:] = values
    return made


class FeatureMap(NamedTuple):
    """A kernel of gamma 1, 2 or 3 on a number of columns, with its table whole or folded to 2^hash_bits entries.

    (s + a n) g(n / c) is an inner product of x~ (values, constant, sqrt(a) indicators) with itself, repeated once for all,
    once for every common column (weight 1 / c, with gamma = 3 also 1 / c^2) and once for every common pair (2 / c^2),
    since n^2 = n + 2 C(n, 2).
    """

    form: KernelForm
    n_columns: int
    hash_bits: int = 0

    @property
    def core(self) -> MapTuple:
        """The arguments of the core."""
        form, c = self.form, self.form.count_scale
        singles = 1 / c + (1 / c**2 if form.gamma == 3 else 0.0)
        return (
            int(form.gamma),
            self.n_columns,
            float(form.constant),
            float(np.sqrt(form.indicators)),
            1 / form.trace,
            singles / form.trace,
            2 / c**2 / form.trace,
            self.hash_bits,
        )

    @property
    def entries(self) -> int:
        """Entries of the table of one output."""
        return int(_core.primal_table_shape(self.core)[2])

    def row_scale(self, rows: Observed) -> _Floats | None:
        """What a row is multiplied by: 1 / sqrt(k(x, x)) for the cosine."""
        return self.form.row_scale(self.form.raw_diagonal(rows)) if self.form.cosine else None


class _Kernel(Protocol):
    @property
    def gamma(self) -> float: ...
    @property
    def degree(self) -> int: ...


def has_map(form: _Kernel) -> bool:
    """Whether the kernel has a table: gamma 1, 2 or 3, not composed."""
    return form.gamma in (1, 2, 3) and form.degree == 1


def choose_map(form: KernelForm, n_columns: int, outputs: int, dtype: np.dtype[np.floating], memory: int) -> FeatureMap:
    """The whole table if two of it (weights and their average) fit in `memory` bytes, else the largest folded one that does."""
    columns = n_columns + (form.constant != 0)
    width = -(-columns * (2 if form.indicators else 1) // 16) * 16
    rows = 1 + (form.gamma > 1) * columns + (form.gamma > 2) * columns * (columns - 1) // 2
    budget = memory // (2 * outputs * dtype.itemsize)
    if rows < 2**31 and rows * width <= budget:
        return FeatureMap(form, n_columns)
    return FeatureMap(form, n_columns, max(int(np.log2(max(budget, 2))), 4))
