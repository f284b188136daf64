"""What a search is scored on and what it reports: splits and orders of rows, and C of other losses."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lacunar._random import fixed_seed, generator
from lacunar.observed import Observed

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


_FOLDS = 5


def choose_C(
    model: Any,
    X: Observed,
    codes: _Ints,
    weight: _Floats,
    Cs: _Floats,
    limit: int,
    random_state: Any,
) -> tuple[float, _Floats, _Ints]:
    """The C of least weighted loss over folds, the smallest of those that tie; its values (n, outputs) of rows left out, their numbers.

    With too few rows for folds the model's own C, and the values of a fit to all rows.
    """
    kept = np.arange(len(codes))
    if len(kept) > limit:
        kept = np.sort(drawn_order(len(kept), codes, random_state)[:limit])
    outputs = 1 if codes.max() < 2 else int(codes.max()) + 1
    if len(kept) < _FOLDS:
        values = clone(model)._fit(X, codes, weight, calibrated=False).decision_function(X)
        return float(model.C), values.reshape(-1, outputs), kept
    splits = make_splits(_FOLDS, codes[kept], codes[kept], np.arange(len(kept)), random_state) or []
    losses, found = np.zeros(len(Cs)), np.full((len(Cs), len(kept), outputs), -1.0)
    for train, test in splits:
        for c, C in enumerate(Cs):
            one = clone(model).set_params(C=float(C), class_weight=None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns
                fitted = one._fit(X[kept[train]], codes[kept[train]], weight[kept[train]], calibrated=False)
            rows = X[kept[test]]
            losses[c] += float(weight[kept[test]] @ _row_losses(fitted, rows, codes[kept[test]]))
            values = fitted.decision_function(rows).reshape(len(test), -1)
            place = fitted.classes_ if values.shape[1] > 1 else np.array([outputs - 1])
            found[c][np.ix_(test, place)] = values
    best = losses.argmin()
    return float(Cs[best]), found[best], kept


def _row_losses(fitted: Any, X: Observed, codes: NDArray[np.intp]) -> _Floats:
    """-log p(label) for the logistic loss, else 1 for a wrong label; (n,). A class that no training row had gets the least p."""
    if fitted.loss != "logistic":
        return np.asarray(fitted.predict(X) != codes, dtype=np.float64)
    share = np.zeros((len(codes), int(max(codes.max(), fitted.classes_.max())) + 1))
    share[:, fitted.classes_] = fitted.predict_proba(X)
    return -np.log(np.maximum(share[np.arange(len(codes)), codes], np.finfo(np.float64).eps))
