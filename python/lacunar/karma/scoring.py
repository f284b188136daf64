"""What searches and calibrations are scored on: splits and orders of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._random import fixed_seed, generator

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]
Split = tuple[_Ints, _Ints]
HOLDOUT = 0.25  # share of rows the paper holds out


def drawn_order(n: int, codes: _Ints | None, random_state: Any) -> _Ints:
    """Rows in random order; of classes, so that every beginning has about the shares of all."""
    rng = generator(fixed_seed(random_state))
    order = rng.permutation(n)
    if codes is None:
        return order
    key = np.empty(n)
    for code in range(int(codes.max()) + 1):
        mine = order[codes[order] == code]
        key[mine] = (np.arange(len(mine)) + rng.random()) / max(len(mine), 1)
    return np.argsort(key, kind="stable")


def _holdout(codes: _Ints | None, random_state: Any) -> Any:
    """One random split, stratified where every class can be on both sides."""
    from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit  # imports rich: not at import time

    possible = False
    if codes is not None:
        counts = np.unique(codes, return_counts=True)[1]
        test = len(codes) * HOLDOUT
        possible = counts.min() >= 2 and min(test, len(codes) - test) >= len(counts)
    return (StratifiedShuffleSplit if possible else ShuffleSplit)(1, test_size=HOLDOUT, random_state=random_state)


def make_splits(cv: Any, y: NDArray[Any], codes: _Ints | None, kept: _Ints, random_state: Any) -> list[Split] | None:
    """Splits as positions among the rows `kept`; None means leave-one-out.

    `cv` counts rows of the whole table: rows not kept are left out of each split, and empty splits are dropped.
    """
    if isinstance(cv, str) and cv == "loo":
        return None
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv

    random_state = fixed_seed(random_state)

    if isinstance(cv, str):
        splitter = _holdout(codes, random_state)
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
