"""Ids of rows and columns, alone and in pairs, and groups of rows: the part of the door that names things."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Set
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.observed.contract import as_array, refuse_masked, unmasked
from lacunar.observed.numbers import as_frame
from lacunar.observed.table import Observed


def read_ids(values: Any, name: str) -> list[Hashable]:
    """A column of ids of any hashable kind, NumPy's scalars as Python's: O(n)."""
    values = unmasked(values, name, keep_kind=True)
    if hasattr(values, "to_list") and not isinstance(values, np.ndarray):
        values = values.to_list()  # a Series of pandas or polars
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise ValueError(
                f"{name} must be one-dimensional, an id for each observation; got shape {values.shape}. "
                "Ids that are tuples go in a list."
            )
        ids: list[Hashable] = values.tolist()
    elif isinstance(values, str | bytes | Set | Mapping) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence of ids; got {type(values).__name__}. Pass ids in a list, in order.")
    else:
        ids = list(values)
    if not (isinstance(values, np.ndarray) and values.dtype.kind in "iubUS"):
        ids = [read_id(value, f"{name}[{k}]") for k, value in enumerate(ids)]
    return ids


def read_id(value: Any, name: str) -> Hashable:
    """One id: hashable and equal to itself, which NaN is not; an infinity is no name either."""
    if isinstance(value, np.generic):
        value = value.item()
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"{name} must be hashable (a number, a string, a tuple); got {type(value).__name__}. Use tuple() for a "
            "list."
        ) from None
    if value is None or not _equals_itself(value):
        raise ValueError(
            f"{name} must be an id, not NaN, infinity or None; got {value!r}. Give it an id, or leave it out."
        )
    known: Hashable = value
    return known


def _equals_itself(value: Any) -> bool:
    """Whether a value, and every part of a tuple or frozenset, is neither NA nor NaN nor an infinity."""
    if isinstance(value, tuple | frozenset):
        return all(map(_equals_itself, value))
    try:
        return bool(value == value) and value not in (math.inf, -math.inf)
    except TypeError:  # pandas' NA is neither equal nor unequal
        return False


def read_groups(groups: Any, n: int, rows: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Numbers of the groups that some of n rows belong to, by first appearance; None where there are no groups."""
    if groups is None:
        return None
    ids = read_ids(refuse_masked(groups, "groups"), "groups")
    if len(ids) != n:
        raise ValueError(
            f"groups must name the group of every row of X; got {len(ids)} groups and {n} rows. Pass one a row."
        )
    numbers: dict[Hashable, int] = {}
    of_rows = np.array([numbers.setdefault(ids[row], len(numbers)) for row in rows], dtype=np.intp)
    if len(numbers) < 2:
        raise ValueError(
            f"groups must hold at least two different groups among the rows with a target; got {next(iter(numbers), None)!r} in all "
            f"{len(rows)} rows. Leave groups out where rows are independent."
        )
    return of_rows


def read_pairs(X: Any) -> tuple[list[Hashable], list[Hashable]]:
    """Ids of rows and columns from pairs: an (n, 2) array, list or frame, or the tuple (rows, cols)."""
    _refuse_table(X)
    if isinstance(X, tuple) and len(X) == 2:
        rows, cols = read_ids(X[0], "rows"), read_ids(X[1], "cols")
    elif (native := as_frame(X)) is not None:
        frame = nw.from_native(native, eager_only=True)
        if frame.shape[1] != 2:
            raise ValueError(f"X must have two columns, row ids and column ids; got {frame.shape[1]}. Select them.")
        rows, cols = (read_ids(frame[:, k].to_list(), name) for k, name in ((0, "rows"), (1, "cols")))
    else:
        rows, cols = _from_list(X)
    if len(rows) != len(cols):
        raise ValueError(f"rows and cols must be of one length; got {len(rows)} and {len(cols)}.")
    return rows, cols


def _refuse_table(X: Any) -> None:
    if sp.issparse(X) or isinstance(X, Observed):
        kind = "sparse input" if sp.issparse(X) else "an Observed table"
        raise TypeError(
            f"X must be pairs (row id, column id): {kind} is not supported. Use pairs, y = "
            "lacunar.completion.table_pairs(X)."
        )


def _from_list(X: Any) -> tuple[list[Hashable], list[Hashable]]:
    if isinstance(X, np.ndarray) or hasattr(X, "__array__"):
        X = as_array(X, keep_kind=True)
        if X.ndim != 2 or X.shape[1] != 2:
            raise ValueError(
                f"X must be pairs (row id, column id), shape (n, 2); got shape {X.shape}. Use np.column_stack, or the "
                "tuple (rows, cols)."
            )
        return read_ids(X[:, 0], "rows"), read_ids(X[:, 1], "cols")
    if not hasattr(X, "__len__") or not hasattr(X, "__iter__"):
        raise TypeError(f"X must be pairs (row id, column id); got {type(X).__name__}. Pass a list of pairs.")
    for k, pair in enumerate(X):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise ValueError(f"X must be pairs (row id, column id); got {pair!r} at position {k}.")
    return read_ids([pair[0] for pair in X], "rows"), read_ids([pair[1] for pair in X], "cols")
