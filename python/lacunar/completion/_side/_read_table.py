"""What becomes a table of features: arrays, sparse matrices, mappings and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.completion._side._state import shown

# A column is float64 with NaN for holes, or object with None for holes: then it holds categories.
Columns = dict[str, NDArray[Any]]


def read_table(X: Any) -> Columns:
    """The columns of an array (n,) or (n, d), a sparse matrix, a mapping of sequences or a data frame."""
    if sp.issparse(X):
        return _of_array(X.toarray())  # what is not stored is a zero here: features, not observations
    if isinstance(X, Mapping):
        columns = {str(name): _column(str(name), values) for name, values in X.items()}
        _check_lengths(columns)
        return _checked(columns)
    if hasattr(X, "__narwhals_dataframe__") or nw.dependencies.is_into_dataframe(X):
        return _of_frame(nw.from_native(X, eager_only=True))
    return _of_array(X)


def read_row(values: Any, names: Sequence[str]) -> Columns:
    """One row: a mapping from names (those not there are holes), or a sequence in the order of the columns."""
    if hasattr(values, "to_dict") and not isinstance(values, Mapping):
        values = values.to_dict() if getattr(values, "ndim", 1) == 1 else {k: next(iter(v)) for k, v in values.items()}
    if isinstance(values, Mapping):
        given = {str(name): value for name, value in values.items()}
        unknown = sorted(set(given) - set(names))
        if unknown:
            raise ValueError(f"features must be of the columns known at the beginning; got {unknown[0]!r}. Drop it.")
        return _checked({name: _column(name, [given.get(name)]) for name in names})
    row = [values] if np.isscalar(values) else list(np.ravel(np.asarray(values, dtype=object)))
    if len(row) != len(names):
        raise ValueError(f"a row must have {len(names)} features, as at the beginning; got {len(row)}.")
    return _checked({name: _column(name, [value]) for name, value in zip(names, row, strict=True)})


def _of_array(X: Any) -> Columns:
    array = np.asarray(X)
    if array.dtype.kind not in "fiubOUS":
        raise TypeError(f"X must be numbers or categories; got dtype {array.dtype}. Convert it first.")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"X must have a row for every id and at least one feature; got shape {np.shape(X)}.")
    return _checked({str(k): _column(str(k), array[:, k]) for k in range(array.shape[1])})


def _of_frame(frame: Any) -> Columns:
    columns = {}
    for name, dtype in frame.schema.items():
        series = frame.get_column(name)  # a name may be a number
        if dtype.is_numeric() or dtype == nw.Boolean:
            columns[name] = _column(name, [np.nan if v is None else v for v in series.to_list()])
        elif dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
            columns[name] = _column(name, series.to_list(), categories=True)
        else:
            raise TypeError(
                f"column {name!r} must hold numbers, booleans or categories; it is {dtype}. Convert or drop it."
            )
    return _checked(columns)


def _column(name: str, values: Any, *, categories: bool = False) -> NDArray[Any]:
    """Float64 with NaN where everything is a number or a hole, else objects with None for holes."""
    if not categories and isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return values.astype(np.float64)
    items = [_item(v) for v in (values.tolist() if isinstance(values, np.ndarray) else list(values))]
    if not categories and all(v is None or isinstance(v, int | float) for v in items):
        return np.array([np.nan if v is None else v for v in items], dtype=np.float64)
    if all(v is None for v in items):
        return np.full(len(items), np.nan)
    column = np.empty(len(items), dtype=object)
    for row, value in enumerate(items):
        if value is not None and not isinstance(value, str | int | float):
            raise TypeError(f"feature {name!r} must hold numbers or strings; got {shown(value)} in row {row}.")
        column[row] = category(value)
    return column


def category(value: str | float | None) -> str | None:
    """The name of a category, None for a hole: its text, of a whole number without the point."""
    if value is None or value != value:
        return None
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)


def _item(value: Any) -> Any:
    """Python's own value; NaN and pandas' NA and NaT are holes."""
    value = value.item() if isinstance(value, np.generic) else value
    hole = (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
    return None if hole else value


def _check_lengths(columns: Columns) -> None:
    sizes = {name: len(values) for name, values in columns.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"every column of X must have a value for every id; got lengths {sizes}.")


def _checked(columns: Columns) -> Columns:
    if not columns:
        raise ValueError("X must have at least one feature; got none.")
    for name, values in columns.items():
        if values.dtype != object and np.isinf(values).any():
            row = int(np.argmax(np.isinf(values)))
            raise ValueError(
                f"features must be finite; got {values[row]} in row {row}, column {name!r}. Replace it, by NaN if it is missing."
            )
    return columns
