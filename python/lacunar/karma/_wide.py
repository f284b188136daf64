"""Algorithm 1 on a table that no cache holds: blocks of rows, so that the table is read once a block instead of once a row.

The last rows, up to a whole block of them, are pending: kept as support rows with their coefficients, not yet in the table.
Blocks are counted from the first row ever seen, so that how calls are cut makes no difference to a bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.karma._map import FeatureMap, aligned_copy
from lacunar.karma._support import Support, row_kernel, row_scales
from lacunar.observed import Observed

if TYPE_CHECKING:
    from lacunar.karma._primal import PrimalModel

_Floats = NDArray[np.float64]

_BLOCK = 2048  # rows: fewer read the table more often, more compare more rows with one another
_CACHES = 2**23  # bytes of a table from which on rows of data miss the caches


def is_wide(table: FeatureMap, dtype: np.dtype[Any]) -> bool:
    """Whether steps are taken by blocks: a whole table of gamma 2 beyond the caches."""
    return table.form.gamma == 2 and not table.hash_bits and table.entries * dtype.itemsize >= _CACHES


def nothing_pending(table: FeatureMap, outputs: int, dtype: np.dtype[Any]) -> Support:
    """No rows."""
    rows = Observed(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, dtype), (0, table.n_columns))
    return Support.of(rows, np.zeros((0, outputs)), np.zeros((0, outputs)), table.form)


def descend_by_blocks(
    model: PrimalModel,
    data: Observed,
    targets: _Floats,
    weight: _Floats | None,
    order: NDArray[np.int64],
    decisions: _Floats,
    n_threads: int,
) -> int:
    """Steps for these rows; -1, or the row that diverged. Writes the values before every row's own step."""
    done, valued = 0, False
    while done < len(order):
        part = order[done : done + _BLOCK - model.t % _BLOCK]
        rows, made = data[part], np.zeros((len(part), model.n_outputs))
        if valued:
            made[0] = decisions[part[0]]
        base = _decide(model.map, rows, model.first, np.zeros_like(made), n_threads)
        assert model.pending is not None
        support, clock = model.pending.with_room(len(part), rows.nnz), model.clock.copy()
        reached, n_rows = _core.online_descend(
            kernel=row_kernel(model.map.form, rows),
            n_cols=model.map.n_columns,
            indptr=rows.indptr,
            indices=rows.indices,
            values=rows.values,
            scale=row_scales(model.map.form, rows),
            target=np.ascontiguousarray(targets[part], dtype=np.float64),
            weight=None if weight is None else np.ascontiguousarray(weight[part], dtype=np.float64),
            curvature=model.map.form.diagonal(rows),
            base=base,
            order=np.arange(len(part)),
            **model.step_rule(),
            block=_BLOCK,
            support=support.core,
            clock=clock,
            decisions=made,
            valued=valued,
            n_threads=n_threads,
        )
        if reached < 0:
            return int(part[-1 - reached])
        done += reached
        whole = reached == len(part)
        decisions[part if whole else part[: reached + 1]] = made if whole else made[: reached + 1]
        support = support._replace(n_rows=n_rows)
        valued = not whole and bool(clock[1] == 0)
        if whole:
            model.pending, model.clock = support, clock
            if model.t % _BLOCK == 0:
                _flush(model, n_threads)
        else:
            _fold(model, support, clock)
    return -1


def _decide(table: FeatureMap, rows: Observed, weights: NDArray[Any], values: _Floats, n_threads: int) -> _Floats:
    entries = (rows.indptr, rows.indices, rows.values, table.row_scale(rows))
    _core.primal_decide(table.core, *entries, weights, values, n_threads, True)
    return values


def _flush(model: PrimalModel, n_threads: int) -> None:
    assert model.pending is not None
    model.torn = True  # until the tables hold the whole block: an interrupt before that takes back the call
    _add(model.map, model.pending, model.first, model.second, n_threads)
    model.pending, model.torn = nothing_pending(model.map, model.n_outputs, model.dtype), False


def _add(table: FeatureMap, pending: Support, first: NDArray[Any], second: NDArray[Any] | None, n_threads: int) -> None:
    rows = pending.rows
    entries = (rows.indptr, rows.indices, rows.values, table.row_scale(rows))
    _core.primal_add(table.core, *entries, *pending.coefficients, first, second, n_threads)


def _fold(model: PrimalModel, pending: Support, clock: _Floats) -> None:
    """v = first from here on; in new tables, so that a failed call goes back to the old ones."""
    scale, reach = clock[1], clock[2]
    first = aligned_copy(scale * model.first, model.dtype)
    second = None if model.second is None else aligned_copy(model.second - reach * model.first, model.dtype)
    clock[1:3] = 1.0, 0.0
    model.first, model.second, model.pending, model.clock = first, second, pending.folded(scale, reach), clock


def with_pending(model: PrimalModel) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Both tables with the pending rows in them; the model's own where there are none."""
    if model.pending is None or model.pending.n_rows == 0:
        return model.first, model.second
    first = aligned_copy(model.first, model.dtype)
    second = None if model.second is None else aligned_copy(model.second, model.dtype)
    _add(model.map, model.pending, first, second, 1)
    return first, second
