"""SLRM's batch form over shards: all that a step wants of rows are sums."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from lacunar.distributed._parts import DaskParts
from lacunar.distributed._shards import shards
from lacunar.regression import SLRMRegressor


def fit_slrm(model: SLRMRegressor, X: Any, y: Any, *, keep: bool = True) -> SLRMRegressor:
    """Fit `SLRMRegressor` by EM or alternating least squares to shards: what one machine makes of all rows, to rounding.

    Rows stay with the workers. Means and scales of columns, products for the start, the sums of a step, and the regression of
    labels with its leave-one-out errors are sums over rows, added in a tree of fixed shape, so that the result does not depend on
    who finishes first.

    Parameters
    ----------
    model : SLRMRegressor
        With solver="em" or "als". `random_state`, `n_jobs` (threads of a task) and `verbose` (steps, printed here) count too. It
        is not changed.
    X : as in `shards`
    y : as in `shards`
        Labels of every shard, (n_i,) or (n_i, targets), NaN where unknown.
    keep : bool, default=True
        Whether workers hold the standardised rows between steps, twice their size, or read and standardise shards again.

    Returns
    -------
    fitted : SLRMRegressor
        As after `fit` on all rows: float64 values agree to rounding that EM carries on, tested to 1e-8; the column means of
        float32 values are rounded differently, tested to 1e-5.

    Raises
    ------
    ValueError
        As `SLRMRegressor.fit_parts` and `fit`, with the number of the shard; shards without rows, without labels, or with other
        columns or targets than the first.

    Notes
    -----
    For D columns, d components and k = d + 1 (k = d with center=False), a step sends 8 D k bytes to every shard, and from every
    shard, and from every sum of two, 8 D (k (k + 1) / 2 + k); the start sends 8 D (d + 20) bytes both ways, five times. Time as of
    `fit`, divided by the workers.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import fit_slrm
    >>> from lacunar.regression import SLRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> y = a[:, 0]
    >>> model = SLRMRegressor(2, random_state=0)
    >>> over = fit_slrm(model, [X[:100], X[100:200]], [y[:100], y[100:200]])
    >>> bool(np.allclose(over.predict(X[200:]), model.fit(X[:200], y[:200]).predict(X[200:])))
    True
    """
    fitted: SLRMRegressor = clone(model).fit_parts(DaskParts(shards(X, y), keep=keep))
    return fitted
