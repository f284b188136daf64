"""POPCA over shards: sums over pairs of columns add up, whatever machine made them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from lacunar.distributed._shards import dask_module, shards
from lacunar.subspace import POPCA


def fit_popca(model: POPCA, X: Any) -> POPCA:
    """Fit the closed form of `POPCA` to shards: the same sums as on one machine, to rounding.

    Parameters
    ----------
    model : POPCA
        Parameters, with refine=0: refinement reads rows again, which sums do not hold. It is not changed.
    X : as in `shards`

    Returns
    -------
    fitted : POPCA
        As after `partial_fit` on all rows; `merge`, `transform` and `partial_fit` go on from it.

    Raises
    ------
    ValueError
        refine is not 0; or as `POPCA.partial_fit` and `POPCA.merge`.

    Notes
    -----
    O(sum of squared entries of a row) a shard, one decomposition of a (d, d) table a shard and merge; merges in a tree of fixed
    shape, so that the result does not depend on who finishes first. (d, d) tables travel: 3 of them a shard.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import fit_popca
    >>> from lacunar.subspace import POPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(400, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(fit_popca(POPCA(1, refine=0), [X[:200], X[200:]]).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """
    if model.refine != 0:
        raise ValueError(
            f"refine must be 0 over shards, whose sums do not hold the rows that refinement reads; got {model.refine}. Set refine=0, "
            "or refine on one machine with POPCA.fit."
        )
    dask = dask_module()
    parts = [dask.delayed(_fit)(model, shard) for shard in shards(X)]
    while len(parts) > 1:
        pairs = [
            dask.delayed(_merge)(*parts[k : k + 2]) if k + 1 < len(parts) else parts[k] for k in range(0, len(parts), 2)
        ]
        parts = pairs
    fitted: POPCA = dask.compute(parts[0])[0]
    return fitted


def _fit(model: POPCA, shard: tuple[Any, Any]) -> POPCA:
    fitted: POPCA = clone(model).partial_fit(shard[0])
    return fitted


def _merge(one: POPCA, other: POPCA) -> POPCA:
    # A task may run again from the same inputs, so it must not change them.
    from copy import deepcopy

    merged: POPCA = deepcopy(one).merge(other)
    return merged
