"""Rows and splits of a search: subsample, folds, the paper's holdout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._random import fixed_seed

_Ints = NDArray[np.intp]
Split = tuple[_Ints, _Ints]
HOLDOUT = 0.25  # share of rows the paper holds out


def search_rows(index: _Ints, codes: _Ints | None, limit: int, random_state: Any) -> _Ints:
    """At most `limit` of the rows, stratified by class where every class has two members; sorted."""
    if len(index) <= limit:
        return index
    splitter = _shuffle(
        None if codes is None else codes[index], train_size=limit, random_state=fixed_seed(random_state)
    )
    chosen, _ = next(splitter.split(index, None if codes is None else codes[index]))
    return np.sort(index[chosen])


def _shuffle(codes: _Ints | None, **sizes: Any) -> Any:
    """One random split, stratified where every class can be on both sides."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

    if codes is None:
        return ShuffleSplit(1, **sizes)
    counts = np.unique(codes, return_counts=True)[1]
    test = len(codes) - sizes["train_size"] if "train_size" in sizes else len(codes) * HOLDOUT
    possible = counts.min() >= 2 and min(test, len(codes) - test) >= len(counts)
    return (StratifiedShuffleSplit if possible else ShuffleSplit)(1, **sizes)


def make_splits(cv: Any, y: NDArray[Any], codes: _Ints | None, kept: _Ints, random_state: Any) -> list[Split] | None:
    """Splits as positions among the rows `kept`; None means leave-one-out.

    `cv` counts rows of the whole table: rows not kept are left out of each split, and empty splits are dropped.
    """
    if isinstance(cv, str) and cv == "loo":
        return None
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    random_state = fixed_seed(random_state)

    if isinstance(cv, str):
        splitter = _shuffle(codes, test_size=HOLDOUT, random_state=random_state)
    elif isinstance(cv, int | np.integer):
        enough = codes is not None and np.bincount(codes).min() >= cv
        splitter = (StratifiedKFold if enough else KFold)(int(cv), shuffle=True, random_state=random_state)
    else:
        splitter = check_cv(cv, y, classifier=codes is not None)
    position = np.full(len(y), -1, dtype=np.intp)
    position[kept] = np.arange(len(kept))
    splits = [(_kept(position[a]), _kept(position[b])) for a, b in splitter.split(np.zeros((len(y), 1)), y)]
    splits = [(train, test) for train, test in splits if len(train) and len(test)]
    if not splits:
        raise ValueError(
            f"cv must leave at least one split with training and test rows; got none from cv={cv!r} and {len(kept)} rows "
            "of positive weight. Use cv='loo'."
        )
    return splits


def _kept(position: _Ints) -> _Ints:
    return position[position >= 0]
