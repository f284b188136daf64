"""C of a final loss other than squared, by 5 folds: the log loss of probabilities, the error where there are none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from lacunar.karma._splits import make_splits, search_rows
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_FOLDS = 5


def choose_C(
    model: Any,
    X: Observed,
    codes: NDArray[np.intp],
    weight: _Floats,
    Cs: _Floats,
    limit: int,
    random_state: Any,
) -> float:
    """The C of least weighted loss over folds; the smallest of those that tie, the model's own without folds."""
    kept = search_rows(np.flatnonzero(weight), codes, limit, random_state)
    if len(kept) < _FOLDS:
        return float(model.C)
    splits = make_splits(_FOLDS, codes[kept], codes[kept], np.arange(len(kept)), random_state) or []
    losses = np.zeros(len(Cs))
    for train, test in ((kept[a], kept[b]) for a, b in splits):
        for c, C in enumerate(Cs):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # the final fit warns
                fitted = (
                    clone(model).set_params(C=float(C), class_weight=None).fit(X[train], codes[train], weight[train])
                )
            losses[c] += float(weight[test] @ _row_losses(fitted, X[test], codes[test]))
    return float(Cs[losses.argmin()])


def _row_losses(fitted: Any, X: Observed, codes: NDArray[np.intp]) -> _Floats:
    """-log p(label) for the logistic loss, else 1 for a wrong label; (n,). A class that no training row had gets the least p."""
    if fitted.loss != "logistic":
        return np.asarray(fitted.predict(X) != codes, dtype=np.float64)
    share = np.zeros((len(codes), int(max(codes.max(), fitted.classes_.max())) + 1))
    share[:, fitted.classes_] = fitted.predict_proba(X)
    return -np.log(np.maximum(share[np.arange(len(codes)), codes], np.finfo(np.float64).eps))
