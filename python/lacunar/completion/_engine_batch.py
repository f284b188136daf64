"""Lanczos processes of many pairs side by side, where a product with many vectors costs little more than with one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar import _core

if TYPE_CHECKING:
    from lacunar.completion._engine import Engine

Floats = NDArray[np.float64]
Indices = NDArray[np.int32]

_TOGETHER = 32  # processes at a time
_MOST_STEPS = 200  # then one by one, where the core has its own limit


def batched_log_scores(engine: Engine, i: Indices, j: Indices) -> Floats | None:
    """log(y_bar + 1) of pairs; None when one of them does not converge in `_MOST_STEPS`."""
    products = _Products(engine)
    done = [_process(products, engine, i[k : k + _TOGETHER], j[k : k + _TOGETHER]) for k in range(0, len(i), _TOGETHER)]
    return None if any(part is None for part in done) else np.concatenate([p for p in done if p is not None])


class _Products:
    """A and K over all vertices, on columns of vectors."""

    def __init__(self, engine: Engine) -> None:
        cells, m, n = engine.cells(), engine.rows.size, engine.cols.size
        at = cells["row_seats"][cells["cell_rows"]], cells["col_seats"][cells["cell_cols"]]
        cross = sp.csr_array((cells["cells"], at), shape=(m, n))
        sums = np.zeros(m + n)
        sums[cells["row_seats"]] = cells["row_sums"]
        sums[m + cells["col_seats"]] = cells["col_sums"]
        self.a = sp.csr_array(sp.diags_array(sums) + sp.block_array([[None, cross], [cross.T, None]]))
        self._rows, self._cols, self._m = engine.rows, engine.cols, m

    def k(self, v: Floats) -> Floats:
        """K v, halved."""
        return 0.5 * np.vstack([self._rows.apply(v[: self._m]), self._cols.apply(v[self._m :])])


def _process(products: _Products, engine: Engine, i: Indices, j: Indices) -> Floats | None:
    pairs = np.arange(len(i))
    q = np.zeros((engine.rows.size + engine.cols.size, len(i)))
    q[i, pairs] = q[engine.rows.size + j, pairs] = 1
    p = products.k(q)
    norm2 = np.einsum("ik,ik->k", q, p)
    scale = np.divide(1, np.sqrt(norm2), out=np.zeros(len(i)), where=norm2 > 0)
    q, p, before = q * scale, p * scale, np.zeros_like(q)
    alpha, beta = np.zeros((2, _MOST_STEPS, len(i)))
    low, ended = np.full(len(i), -np.inf), norm2 == 0
    for k in range(_MOST_STEPS):
        u = products.a @ p
        alpha[k] = np.einsum("ik,ik->k", p, u)
        value = _core.tridiagonal_log_first(*(np.ascontiguousarray(c[: k + 1].T) for c in (alpha, beta)))
        if not np.isfinite(value).all():
            return None  # which pair it is, the core says one by one
        still = (np.abs(value - low) < 0.1 * engine.tol) & (k >= 2)
        low = np.where(ended, low, value)
        ended |= still
        u -= alpha[k] * q + (beta[k - 1] if k else 0) * before
        w = products.k(u)
        square = np.einsum("ik,ik->k", u, w)
        ended |= square <= 1e-30 * (1 + alpha[k] ** 2)
        if ended.all():
            with np.errstate(divide="ignore"):
                return np.asarray(engine.log_scale + np.log(norm2) + low)
        beta[k] = np.where(ended, 0, np.sqrt(np.maximum(square, 0)))
        scale = np.divide(1, beta[k], out=np.zeros(len(i)), where=~ended)
        before, q, p = q, u * scale, w * scale
    return None
