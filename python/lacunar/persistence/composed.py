"""scikit-learn's `Pipeline` and `ColumnTransformer` around estimators of this package, as plain data and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

_WORDS = ("passthrough", "drop")
_MOST_COLUMNS = 10**6
Encode = Callable[[Any, str], Any]


def is_composed(model: Any) -> bool:
    """Whether a model is one of the two."""
    return type(model) in (Pipeline, ColumnTransformer)


def parts_of(model: Any) -> Iterator[Any]:
    """The estimators of this package in it."""
    if not is_composed(model):
        yield model
        return
    steps = model.steps if isinstance(model, Pipeline) else model.transformers
    for _, step, *_ in steps:
        if not isinstance(step, str) and step is not None:
            yield from parts_of(step)


def encoded(model: Any, where: str, encode: Encode) -> dict[str, Any]:
    """The node of a pipeline or of a fitted column transformer. TypeError for what a file cannot hold."""
    if isinstance(model, Pipeline):
        return {
            "t": "pipeline",
            "steps": [[name, _step(step, f"{where}[{name!r}]", encode)] for name, step in model.steps],
        }
    check_is_fitted(model)
    fitted = {name: (step, columns) for name, step, columns in model.transformers_}
    parts = []
    for name, step, _ in model.transformers:
        transformer, columns = fitted[name]
        plain = isinstance(columns, list) and all(type(column) in (int, str) for column in columns)
        if not plain:
            raise TypeError(
                f"columns of {where}[{name!r}] must be a list of names or numbers; got {columns!r:.80}. Name them, and fit again."
            )
        parts.append(
            [name, _step(step if isinstance(step, str) else transformer, f"{where}[{name!r}]", encode), columns]
        )
    if model.remainder not in _WORDS:
        raise TypeError(
            f"remainder of {where} must be 'drop' or 'passthrough'; got {model.remainder!r:.80}. Name its columns as a step."
        )
    names = getattr(model, "feature_names_in_", None)
    return {
        "t": "columns", "transformers": parts, "remainder": model.remainder, "verbose_feature_names_out": bool(model.verbose_feature_names_out),
        "n_features": int(model.n_features_in_), "names": None if names is None else [str(name) for name in names],
    }  # fmt: skip


def _step(step: Any, where: str, encode: Encode) -> Any:
    return encode("passthrough" if step is None else step, where)


def pipeline(steps: list[list[Any]], decode: Callable[[Any], Any]) -> Pipeline:
    """The pipeline of a node. ValueError where it holds something else than named estimators."""
    decoded = [(name, decode(step)) for name, step in steps]
    _check(decoded)
    return Pipeline(decoded)


def columns(
    transformers: list[list[Any]],
    remainder: str,
    verbose_feature_names_out: bool,
    n_features: int,
    names: list[str] | None,
    decode: Callable[[Any], Any],
) -> ColumnTransformer:
    """The column transformer of a node: fitted anew around its steps, which stay as they were."""
    decoded = [(name, decode(step), chosen) for name, step, chosen in transformers]
    _check([(name, step) for name, step, _ in decoded])
    sound = type(n_features) is int and 0 < n_features <= _MOST_COLUMNS and remainder in _WORDS
    if not sound or (names is not None and len(names) != n_features):
        raise ValueError("the model file's column transformer has no sound columns")
    frozen = [
        (name, step if isinstance(step, str) else FrozenEstimator(step), chosen) for name, step, chosen in decoded
    ]
    model = ColumnTransformer(frozen, remainder=remainder, verbose_feature_names_out=verbose_feature_names_out)
    model.fit(_nothing(n_features, names))
    model.transformers = decoded
    model.transformers_ = [
        (n, getattr(s, "estimator", s) if isinstance(s, FrozenEstimator) else s, c) for n, s, c in model.transformers_
    ]
    return model


def _nothing(n_features: int, names: list[str] | None) -> Any:
    """Two rows without an entry."""
    table = np.full((2, n_features), np.nan)
    if names is None:
        return table
    import pandas as pd

    return pd.DataFrame(table, columns=names)


def _check(steps: list[tuple[Any, Any]]) -> None:
    for name, step in steps:
        sound = step in _WORDS if isinstance(step, str) else hasattr(step, "get_params")
        if not isinstance(name, str) or not sound:
            raise ValueError("the model file's pipeline holds something else than named estimators")
