"""A table with holes as pairs and answers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._random import generator
from lacunar.observed import Observed
from lacunar.observed.door import SparseMissing, as_observed


def table_pairs(
    table: Any, *, sparse_missing: SparseMissing = "absent", shuffle: bool = True, random_state: Any = None
) -> tuple[tuple[NDArray[Any], NDArray[Any]], NDArray[Any]]:
    """What is observed of a table, as the pairs and values that `OnlineMatrixClassifier` takes.

    Parameters
    ----------
    table : array-like with NaN, frame, sparse matrix or Observed, shape (m, n)
        Ratings or answers: numbers or booleans.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse table does not store: missing, or zero.
    shuffle : bool, default=True
        Pairs in random order. Row after row, a stream would learn one row at a time, and know nothing of the next.
    random_state : int, RandomState or None, default=None
        Of that order.

    Returns
    -------
    pairs : (rows, cols), two ndarrays of shape (nnz,)
        Numbers of rows and columns; for a frame its column names, and for a pandas frame its index.
    values : ndarray of shape (nnz,)

    Raises
    ------
    TypeError, ValueError
        As `lacunar.Observed.from_dense`, `from_frame` and `from_scipy`.

    Notes
    -----
    O(nnz) beside the table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from lacunar.completion import OnlineMatrixClassifier, table_pairs
    >>> likes = pd.DataFrame(
    ...     {"Alien": [1, 0, 1, 0], "Heat": [1, None, 1, 0], "Ran": [None, 0, 1, 0], "Tron": [1, 0, None, None]},
    ...     index=["ann", "bob", "cid", "dan"],
    ... )
    >>> pairs, y = table_pairs(likes, random_state=0)
    >>> model = OnlineMatrixClassifier().fit(pairs, y)
    >>> model.predict([("ann", "Ran"), ("bob", "Heat")])
    array([1., 0.])
    """
    seen = as_observed(table, sparse_missing=sparse_missing, warn_counts=False)
    rows, cols, values = np.repeat(np.arange(seen.shape[0]), seen.row_counts), seen.indices, seen.values
    if shuffle:
        order = generator(random_state).permutation(len(values))
        rows, cols, values = rows[order], cols[order], values[order]
    return (_names(getattr(table, "index", None), rows), _names(_column_names(table), cols)), values


def _column_names(table: Any) -> Any:
    """Of a pandas or polars frame, or an Arrow table; None for what has none."""
    if isinstance(table, Observed):
        return None
    return getattr(table, "column_names", getattr(table, "columns", None))


def _names(names: Any, numbers: NDArray[Any]) -> NDArray[Any]:
    if names is None or callable(names):  # `index` of a list is a method
        return numbers.astype(np.int64)
    listed: NDArray[Any] = np.empty(len(names), dtype=object)
    listed[:] = list(names)
    chosen: NDArray[Any] = listed[numbers]
    return chosen
