"""Shards of one table: each was checked by itself, and they must agree."""

from __future__ import annotations

from typing import Any


def columns_of(checker: Any) -> tuple[int, Any]:
    """Number and names of the columns that an estimator has just checked."""
    return checker.n_features_in_, getattr(checker, "feature_names_in_", None)


def adopt_columns(estimator: Any, found: list[tuple[int, Any]]) -> int:
    """Number and names of columns, `columns_of` every shard, stored where they are the same; the number."""
    n, names = found[0]
    for shard, (other, named) in enumerate(found):
        if other != n:
            raise ValueError(
                f"shards must have the same columns; shard {shard} has {other}, shard 0 has {n}. Read the same columns of every "
                "shard, with missing values where it has none."
            )
        if names is None or named is None:
            names = None
        elif list(named) != list(names):
            at = next(j for j in range(n) if named[j] != names[j])
            raise ValueError(
                f"shards must have the same columns in the same order; column {at} of shard {shard} is {named[at]!r}, of shard 0 "
                f"{names[at]!r}. Select columns by name in one order."
            )
    estimator.n_features_in_ = n
    if names is not None:
        estimator.feature_names_in_ = names
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return int(n)


def agree_targets(found: list[tuple[int, bool]]) -> bool:
    """Whether y has one dimension, where every shard has as many (number, whether one dimension) as the first."""
    for shard, other in enumerate(found):
        if other != found[0]:
            shapes = [f"(n, {targets})" if not one else "(n,)" for targets, one in (other, found[0])]
            raise ValueError(
                f"y must have the same targets in every shard; it has shape {shapes[0]} in shard {shard} and {shapes[1]} in shard 0. "
                "Pass all targets with every shard, NaN where unknown."
            )
    return found[0][1]
