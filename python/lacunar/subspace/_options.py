"""Options of POPCA that do not go together, and columns without entries."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted


class Printed:
    """Parameters of a POPCA as Algorithm 1 has them: second moments by equation (4), with the rate `p` or the one observed."""

    center, scale, robust, codes = False, False, None, "ls"
    pseudo_count, refine = 0, 0

    def __init__(self, given: Any) -> None:
        self._given = given
        self.weights = "global" if given.p is None else "known"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


def check_options(model: Any, d: int) -> None:
    """Refuse options of a POPCA for d columns that do not go together."""
    k, how = model.n_components, model.robust
    if isinstance(k, Integral) and int(k) > d:
        raise ValueError(f"n_components must be at most the number of columns, {d}; got {k}. Lower n_components.")
    if (model.weights == "known") != (model.p is not None):
        raise ValueError(
            f"p goes with weights='known' and only with it; got weights={model.weights!r}, p={model.p!r}. Pass both or none."
        )
    if model.p is not None and np.shape(model.p) not in ((), (d,)):
        raise ValueError(
            f"p must be a number or have shape ({d},); got {np.shape(model.p)}. Pass one for every column."
        )
    if model.p is not None and not (np.greater(model.p, 0).all() and np.less_equal(model.p, 1).all()):
        raise ValueError("p must be above 0 and at most 1 in every column; got others. Drop columns never observed.")
    if isinstance(how, tuple) and not (len(how) == 2 and how[0] == "winsor" and how[1] > 0):
        raise ValueError(f"robust must be None, 'rows' or ('winsor', c) with c > 0; got {how!r}. Pass ('winsor', 3).")
    free = isinstance(k, Integral | str) and k != d and model.weights != "pairwise"
    if model.solver == "matrix-free" and not free:
        raise ValueError(
            "solver='matrix-free' needs an integer n_components below the number of columns, or 'holdout', and weights other "
            f"than 'pairwise'; got {k!r} and {model.weights!r}. Use solver='dense'."
        )


def check_seen(n: NDArray[np.float64], unseen: str) -> None:
    """Refuse columns without an entry, or say that they are left out."""
    lost = np.flatnonzero(n == 0)
    if len(lost) and unseen == "error":
        raise ValueError(f"{_unseen(lost)}. Every column must be observed. Drop them, or pass unseen='drop'.")
    if len(lost):
        warnings.warn(f"{_unseen(lost)}. They are left out: their components are 0.", UserWarning, stacklevel=4)


def warn_unseen(n: NDArray[np.float64]) -> None:
    """Say which columns of a stream have no entry so far."""
    lost = np.flatnonzero(n == 0)
    if len(lost):
        warnings.warn(f"{_unseen(lost)} so far. Their components are 0 until they do.", UserWarning, stacklevel=5)


def _unseen(lost: NDArray[np.int64]) -> str:
    return f"X has {len(lost)} columns without an observed entry, the first is column {lost[0]}"


def check_shift(shift: Any, d: int) -> NDArray[np.float64] | None:
    """A shift (d,) of finite numbers, or None."""
    if shift is None:
        return None
    made = np.array(shift, dtype=np.float64)
    if made.shape != (d,) or not np.isfinite(made).all():
        raise ValueError(
            f"shift must be {d} finite numbers, one a column; got shape {made.shape}. Pass None for the means of the batch."
        )
    return made


def check_alike(one: Any, other: Any) -> None:
    """Refuse to merge models whose sums do not mean the same."""
    for model in (one, other):
        check_is_fitted(model, "components_")
        if not hasattr(model, "tables_"):
            raise ValueError(
                "merge needs models with tables; got one fitted matrix-free. Use partial_fit or solver='dense'."
            )
        if model._how.robust is not None:
            raise ValueError(
                f"merge adds sums of rows as they came; got robust={model._how.robust!r}, which changes rows by all rows of its own "
                "model. Fit on all rows at once, or with robust=None."
            )
    if one.n_features_in_ != other.n_features_in_ or not _same_names(one, other):
        raise ValueError(
            f"merge needs models of the same columns; got {one.n_features_in_} and {other.n_features_in_}, or other names. "
            "Fit both on the same columns in the same order."
        )
    for name in ("center", "weights", "p", "scale"):
        mine, theirs = getattr(one._how, name), getattr(other._how, name)
        if not np.array_equal(np.asarray(mine, dtype=object), np.asarray(theirs, dtype=object)):
            raise ValueError(
                f"merge needs models of the same {name}; got {mine!r} and {theirs!r}. Fit both alike, or set_params."
            )


def _same_names(one: Any, other: Any) -> bool:
    names = [getattr(model, "feature_names_in_", None) for model in (one, other)]
    return names[0] is None or names[1] is None or list(names[0]) == list(names[1])
