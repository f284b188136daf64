"""Products of rows with a matrix, where a row's result must not depend on the rows that come with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar._threads import thread_count


def row_product(rows: NDArray[Any], matrix: NDArray[Any], n_jobs: int | None = None) -> NDArray[np.float64]:
    """rows (n, k) times matrix (k, m) or vector (k,), in float64: the bits of a row are those it has alone.

    BLAS takes other kernels for other shapes, and so rounds a row otherwise in another batch.
    """
    factor = np.ascontiguousarray(rows, dtype=rows.dtype if rows.dtype in (np.float32, np.float64) else np.float64)
    other = np.ascontiguousarray(matrix, dtype=np.float64)
    product = _core.row_product(factor, other[:, None] if other.ndim == 1 else other, thread_count(n_jobs))
    return product[:, 0] if other.ndim == 1 else product
