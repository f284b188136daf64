"""Columns of frames by name: those of `fit` in their order, whatever a later frame holds.

A part of the door, which `lacunar.observed.door`, the encoder and the shell stand on.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import narwhals.stable.v1 as nw

from lacunar.observed.cells import cut, listed

_MOST = 20  # names in a message


def columns_by_name(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X with the columns of `fit` in their order, where both are frames with names; anything else as it is.

    A column that is absent is missing, and one that `fit` never saw is ignored, each with a warning of all of them. An error where two
    columns have one name, or none is of `fit`.
    """
    if not nw.dependencies.is_into_dataframe(X):
        return X
    names = _names_of(X)
    _refuse_twice(names)
    fitted_names = None if reset else getattr(estimator, "feature_names_in_", None)
    if fitted_names is None or names == list(fitted_names) or not any(isinstance(name, str) for name in names):
        return X
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
            warnings.warn(f"X {what}: {listed(columns, _MOST)}.", UserWarning, stacklevel=4)
    missing = {name: nw.lit(None, nw.Float64).alias(name) for name in absent}
    frame = nw.from_native(X, eager_only=True)
    return frame.select(*[missing.get(name, nw.col(name)) for name in fitted_names]).to_native()


def absent_columns(estimator: Any, X: Any) -> list[Any]:
    """Names of columns of `fit` that a frame lacks, of which `columns_by_name` warns."""
    fitted = getattr(estimator, "feature_names_in_", None)
    if fitted is None or not nw.dependencies.is_into_dataframe(X):
        return []
    names = _names_of(X)
    return match_names(names, list(fitted))[0] if any(isinstance(name, str) for name in names) else []


def _names_of(frame: Any) -> list[Any]:
    # Not by narwhals, which reads no frame that names two columns alike.
    return list(frame.column_names if nw.dependencies.is_pyarrow_table(frame) else frame.columns)


def match_names(names: Sequence[Any], fitted_names: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Names of wanted columns that a table lacks, and names of its columns that nobody wants."""
    came, fitted = set(names), set(fitted_names)
    return [name for name in fitted_names if name not in came], [name for name in names if name not in fitted]


def _refuse_twice(names: Sequence[Any]) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise ValueError(
            f"X must have columns of different names; got {cut(twice)!r} {names.count(twice)} times. Rename or drop one."
        )
