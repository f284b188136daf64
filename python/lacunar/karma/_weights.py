"""Sample weights and class weights: a weight w means the row w times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.validation import _check_sample_weight

from lacunar.observed import Observed

_Floats = NDArray[np.float64]


def row_weights(sample_weight: ArrayLike | None, X: Observed) -> _Floats:
    """Weights (n,) as float64, refused when negative or all zero."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    weight: _Floats = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64), dtype=np.float64)
    negative = np.flatnonzero(weight < 0)
    if negative.size:
        row = int(negative[0])
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: weights must be >= 0; got {weight[row]:g} in row {row}. "
            "Drop the row or give it weight 0."
        )
    if not weight.any():
        raise ValueError(
            "Sample weights must not all be zero: at least one must be > 0; got zeros only. "
            "Leave sample_weight out to weigh all rows alike."
        )
    if not np.isfinite(weight.sum()):
        raise ValueError(
            f"sample_weight must have a finite sum; that of weights up to {weight.max():.3g} overflows. Divide them by their mean."
        )
    return weight


def class_weights(class_weight: Any, classes: NDArray[Any], codes: NDArray[np.intp], weight: _Floats) -> _Floats:
    """Weight of every row's class, shape (n,); "balanced" gives every class the same total (of repeats)."""
    if class_weight is None:
        return np.ones(len(codes))
    if class_weight == "balanced":
        total = np.bincount(codes, weight, minlength=len(classes))
        each: _Floats = total.sum() / (len(classes) * total)
    else:
        each = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes[codes]), dtype=np.float64)
    return each[codes]
