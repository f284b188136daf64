"""Tables of any estimator, their masks, more of them, and quantiles of scores that depend on how much is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_feature_names, _check_n_features

from lacunar.encode import TableEncoder
from lacunar.observed.door import validate_X

_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]

_WIDTH = 0.1  # of the kernel over numbers missing, in units of the number of columns
_ENOUGH = 100.0  # rows near a number of missing entries, at which copies are not needed
_LARGEST_SHARE = 0.9  # of the entries that a copy hides


def opened(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as an array with NaN, or as the frame it is where columns are not numbers; its width and names are checked."""
    if hasattr(X, "dtypes") and hasattr(X, "isna") and not all(dtype.kind in "biuf" for dtype in X.dtypes):
        _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, X, reset=reset)
        return X
    return validate_X(estimator, X, reset=reset).to_dense().astype(np.float64)


def missing_of(rows: Any) -> _Bools:
    """Where entries are missing (n, d)."""
    mask: _Bools = np.asarray(rows.isna() if hasattr(rows, "isna") else np.isnan(rows))
    return mask


def with_hidden(rows: Any, hidden: _Bools) -> Any:
    """The rows with more entries missing."""
    return rows.mask(hidden) if hasattr(rows, "mask") else np.where(hidden, np.nan, rows)


def random_masks(shape: tuple[int, int], rng: np.random.Generator) -> _Bools:
    """Masks whose rows hide shares drawn between 0 and 0.9."""
    share = rng.uniform(0, _LARGEST_SHARE, (shape[0], 1))
    mask: _Bools = rng.random(shape) < share
    return mask


def encoder_of(rows: Any) -> TableEncoder | None:
    """What makes numbers of a frame; None for numbers."""
    return TableEncoder().fit(rows) if hasattr(rows, "isna") else None


def numbers_of(rows: Any, encoder: TableEncoder | None) -> Any:
    return rows if encoder is None else encoder.transform(rows)


def quantile(scores: _Floats, level: float) -> float:
    """The ceil(level (n + 1))-th smallest of n scores; infinite where there are too few."""
    k = int(np.ceil(level * (len(scores) + 1) - 1e-9))
    return np.inf if k > len(scores) else float(np.partition(scores, k - 1)[k - 1])


def near_quantiles(
    scores: _Floats, missing: _Floats, copied: _Bools, at: _Floats, n_columns: int, level: float, copies_count: bool
) -> _Floats:
    """Quantiles of scores (n,) at numbers of missing entries `at` (m,), of weight exp(-|difference| / (columns / 10)).

    Copies with hidden entries weigh what rows as they came leave free, max(0, 1 - rows near / 100); as much as rows if they count.
    """
    order = np.argsort(scores, kind="stable")
    scores, missing, copied = scores[order], missing[order], copied[order]
    values, own = np.unique(at, return_inverse=True)
    made = np.empty(len(values))
    for k, value in enumerate(values):
        weight = np.exp(-np.abs(missing - value) / (_WIDTH * n_columns))
        if not copies_count:
            weight[copied] *= max(0.0, 1 - float(weight[~copied].sum()) / _ENOUGH)
        below = np.cumsum(weight) / (weight.sum() + 1)
        first = int(np.searchsorted(below, level - 1e-12))
        made[k] = scores[first] if first < len(scores) else np.inf
    return made[own.ravel()]
