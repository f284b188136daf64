"""Columns of frames by name: put into the order of `fit`, whatever order a later frame has.

A part of the door, which `lacunar.observed.door`, the encoder and the shell stand on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from lacunar._log import warn_user
from lacunar.observed.cells import cut, listed
from lacunar.observed.numbers import as_frame

_MOST = 20  # names in a message


def columns_by_name(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X with its columns in the order of `fit`, where both are frames with names; otherwise X unchanged.

    Names that are no text, such as years, dates and those of several levels, go by what they read as text, which the frame that comes back
    has for names. Columns of a frame numbered from 0, and of an array, are named by their numbers.

    A column that is absent is missing, and one that `fit` never saw is ignored, each with a warning of all of them. An error where two
    columns have one name, or none is of `fit`.
    """
    frame = as_frame(X)
    if frame is None:
        return X
    names = _names_of(frame)
    _refuse_twice(names)
    fitted_names = None if reset else _fitted_names(estimator, names)
    if fitted_names is None:
        return frame if _are_numbers(frame, len(names)) else _renamed(frame, names)
    has_names = hasattr(estimator, "feature_names_in_")
    if names == fitted_names:
        return _renamed(frame, names) if has_names else frame
    absent, unknown = match_names(names, fitted_names)
    if len(absent) == len(fitted_names):
        raise ValueError(
            f"X must have columns of fit, {listed(fitted_names, _MOST)}; got none of them, but {listed(names, _MOST)}. Rename the columns, or pass "
            "an array of them in the order of fit."
        )
    for columns, what in (
        (absent, "lacks columns of fit, taken as missing"),
        (unknown, "has columns that fit never saw, ignored"),
    ):
        if columns:
            warn_user(f"X {what}: {listed(columns, _MOST)}.")
    missing = {name: nw.lit(None, nw.Float64).alias(name) for name in absent}
    table = nw.from_native(_renamed(frame, names), eager_only=True)
    chosen = table.select(*[missing.get(name, nw.col(name)) for name in fitted_names]).to_native()
    return (
        chosen.set_axis(range(len(fitted_names)), axis=1) if not has_names and hasattr(chosen, "set_axis") else chosen
    )


def absent_columns(estimator: Any, X: Any) -> list[Any]:
    """Names of columns of `fit` that a frame lacks, of which `columns_by_name` warns."""
    frame = as_frame(X)
    if frame is None:
        return []
    names = _names_of(frame)
    fitted_names = _fitted_names(estimator, names)
    return [] if fitted_names is None else match_names(names, fitted_names)[0]


def cells_by_name(estimator: Any, X: Any) -> list[Any] | None:
    """The columns of a frame in the order of `fit`, each (m,), NaN where a column is absent; None where X is no frame.
    Warns of nothing.
    """
    frame = as_frame(X)
    if frame is None:
        return None
    names = _names_of(frame)
    table = nw.from_native(_renamed(frame, names), eager_only=True)
    fitted_names = _fitted_names(estimator, names) or names
    nothing = np.full(len(table), np.nan)
    return [table[name].to_numpy() if name in names else nothing for name in fitted_names]


def native_names(frame: Any) -> list[Any]:
    """Names of the columns of a frame, as its library has them."""
    # Not by narwhals, which reads no frame that names two columns alike.
    return list(frame.column_names if nw.dependencies.is_pyarrow_table(frame) else frame.columns)


def _names_of(frame: Any) -> list[str]:
    """Names of columns as text."""
    return [name if type(name) is str else str(name) for name in native_names(frame)]


def _are_numbers(frame: Any, n_columns: int) -> bool:
    """Whether columns are called 0, 1, ... in order, as a frame has them whose columns got no names."""
    names = native_names(frame)
    return not any(isinstance(name, str | bool) for name in names) and names == list(range(n_columns))


def _fitted_names(estimator: Any, names: list[str]) -> list[str] | None:
    """The column names of `fit` to match a frame by; None where columns are matched by position.

    It does where one of the two has names and the other has none, of which scikit-learn warns.
    """
    fitted_names, numbers = getattr(estimator, "feature_names_in_", None), [str(k) for k in range(len(names))]
    if fitted_names is not None:
        by_place = names == numbers and not set(names) & set(fitted_names)
        return None if by_place else list(fitted_names)
    numbers = [str(k) for k in range(getattr(estimator, "n_features_in_", 0))]
    return numbers if names and set(names) <= set(numbers) else None


def _renamed(frame: Any, names: list[Any]) -> Any:
    """The frame with these names; only libraries like pandas have names that are no text."""
    return frame if native_names(frame) == names else frame.set_axis(names, axis=1)


def match_names(names: Sequence[Any], fitted_names: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Names of `fit` that a table lacks, and names of the table that `fit` did not have."""
    came, fitted = set(names), set(fitted_names)
    return [name for name in fitted_names if name not in came], [name for name in names if name not in fitted]


def _refuse_twice(names: Sequence[Any]) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"X must have columns of different names; got {cut(twice)!r} {names.count(twice)} times. Rename or drop one."
        )
