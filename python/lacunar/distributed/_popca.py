"""POPCA over shards: sums over pairs of columns, or of products with rows, add up, whatever machine made them."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from lacunar.distributed._parts import DaskParts
from lacunar.distributed._shards import shards
from lacunar.subspace import POPCA


def fit_popca(model: POPCA, X: Any, *, keep: bool = True) -> POPCA:
    """Fit `POPCA` to shards, refinement included: what one machine makes of all rows, to rounding.

    Rows stay with the workers. Counts, means, tables of sums over pairs (or products with the rows, where no table is formed) and
    the steps of refinement are sums over rows, added in a tree of fixed shape, so that the result does not depend on who finishes
    first.

    Parameters
    ----------
    model : POPCA
        robust=None, and n_components not "holdout". It is not changed.
    X : as in `shards`
    keep : bool, default=True
        Whether workers hold rows between steps, in float64 beside what they read, or read shards again: four times for a table,
        and at every step of refinement or product.

    Returns
    -------
    fitted : POPCA
        As after `fit` on all rows, tested to 1e-10 (1e-8 after refinement; diagnostics_["lambda_min"] is rough without a
        table); with a table `merge` and `partial_fit` go on from it.

    Raises
    ------
    ValueError
        As `POPCA.fit_parts` and `fit`, with the number of the shard; shards without rows, or with other columns than the first.

    Notes
    -----
    Once, 24 d^2 bytes for the table from every shard, and from every sum of two; or 8 d bytes both ways some 40 times without a
    table (times the width of the weights' division, one or two for columns seen alike). Then for k components, a step of refinement
    sends at most 4 d (k + 1) (k + 4) bytes both ways. Time as of `fit`, divided by the workers; the decomposition is made here.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.distributed import fit_popca
    >>> from lacunar.subspace import POPCA
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1)) @ np.ones((1, 6)) + 0.1 * rng.normal(size=(400, 6))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> np.round(fit_popca(POPCA(1), [X[:200], X[200:]]).components_, 1)
    array([[0.4, 0.4, 0.4, 0.4, 0.4, 0.4]])
    """
    fitted: POPCA = clone(model).fit_parts(DaskParts(shards(X), keep=keep))
    return fitted
