"""Pairs of ids, and the labels that come with them."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


def read_ids(values: Any, name: str) -> list[Hashable]:
    """A column of ids of any hashable kind, NumPy's scalars as Python's: O(n)."""
    if hasattr(values, "to_list") and not isinstance(values, np.ndarray):
        values = values.to_list()  # a Series of pandas or polars
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(
                f"{name} must be one-dimensional, an id for each observation; got shape {values.shape}. "
                "Ids that are tuples go in a list."
            )
        ids: list[Hashable] = values.tolist()
    elif isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence of ids; got {values!r}. Pass one id in a list.")
    else:
        ids = list(values)
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "iubUS"):
        ids = [read_id(each, f"{name}[{k}]") for k, each in enumerate(ids)]
    return ids


def read_id(value: Any, name: str) -> Hashable:
    """One id: hashable and equal to itself, which NaN is not; an infinity is no name either."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        hash(value)
        sound = value is not None and bool(value == value) and value not in (math.inf, -math.inf)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be hashable (a number, a string, a tuple); got {type(value).__name__}. Use tuple() for a list."
        ) from None
    if not sound:
        raise ValueError(
            f"{name} must be an id, not NaN, infinity or None; got {value!r}. Drop observations without a row or column."
        )
    known: Hashable = value
    return known


def read_pairs(X: Any) -> tuple[list[Hashable], list[Hashable]]:
    """Ids of rows and columns from pairs: an (n, 2) array, list or frame, or the tuple (rows, cols)."""
    if isinstance(X, tuple) and len(X) == 2:
        rows, cols = read_ids(X[0], "rows"), read_ids(X[1], "cols")
    elif hasattr(X, "columns") or hasattr(X, "column_names"):
        import narwhals as nw

        frame = nw.from_native(X, eager_only=True)
        if frame.shape[1] != 2:
            raise ValueError(f"X must have two columns, row ids and column ids; got {frame.shape[1]}. Select them.")
        rows, cols = (read_ids(frame[:, k].to_list(), name) for k, name in ((0, "rows"), (1, "cols")))
    else:
        rows, cols = _from_list(X)
    if len(rows) != len(cols):
        raise ValueError(f"rows and cols must be of one length; got {len(rows)} and {len(cols)}.")
    return rows, cols


def _from_list(X: Any) -> tuple[list[Hashable], list[Hashable]]:
    if sp.issparse(X):
        raise TypeError(
            "X must be pairs (row id, column id): sparse input is not supported. Use pairs, y = lacunar.completion.table_pairs(X)."
        )
    if isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"X must be pairs (row id, column id), shape (n, 2); got shape {X.shape}. Use np.column_stack, or the tuple "
                "(rows, cols)."
            )
        return read_ids(X[:, 0], "rows"), read_ids(X[:, 1], "cols")
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__"):
        raise TypeError(f"X must be pairs (row id, column id); got {type(X).__name__}. Pass a list of pairs.")
    for k, pair in enumerate(X):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"X must be pairs (row id, column id); got {pair!r} at position {k}.")
    return read_ids([pair[0] for pair in X], "rows"), read_ids([pair[1] for pair in X], "cols")


def read_labels(y: Any, n: int) -> NDArray[Any]:
    """Labels as an array (n,) without holes."""
    target = np.asarray(y)
    if target.ndim != 1 or len(target) != n:
        raise ValueError(f"y must hold one label for each of {n} pairs; got shape {target.shape}.")
    if target.dtype.kind == "f":
        holes = np.flatnonzero(~np.isfinite(target))
    elif target.dtype.kind == "O":
        holes = np.flatnonzero([label is None or label != label for label in target])
    else:
        holes = np.zeros(0, dtype=np.intp)
    if holes.size:
        raise ValueError(
            f"y must be known and finite (no NaN or infinity); got {target[holes[0]]} at position {holes[0]}. Drop it."
        )
    return target
