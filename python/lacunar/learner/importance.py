"""Which columns matter, by permutation: their values and which of them are missing, apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.learner.views import TableViews, View

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]
Loss = Callable[[View], float]
Complete = Callable[[_Floats], _Floats]


def importance(
    views: TableViews, view: View, loss: Loss, complete: Complete | None, repeats: int, rng: Any
) -> dict[str, _Floats]:
    """How much the loss rises, (repeats, columns of the table): "value" and "missing"."""
    columns, before = views.encoder_.n_features_in_, loss(view)
    made = {name: np.zeros((repeats, columns)) for name in ("value", "missing")}
    filled = view if complete is None else _filled(views, view, complete)
    for source in range(columns):
        of_T = np.flatnonzero(views.source_ == source)
        if not of_T.size:
            continue  # left out in fit: nothing depends on it
        of_Z = np.flatnonzero(np.isin(views.places_, of_T))
        for k in range(repeats):
            made["value"][k, source] = loss(_other_values(view, of_T, of_Z, rng)) - before
            changed = _other_mask(view, filled, of_T, of_Z, rng)
            made["missing"][k, source] = 0.0 if changed is None else loss(changed) - before
    return made


def _filled(views: TableViews, view: View, complete: Complete) -> View:
    """Without missing entries: what an entry might have been."""
    made = views.completed(view, complete(view.Z), np.ones(view.T.shape[1], dtype=bool))
    return View(np.nan_to_num(made.Z), np.nan_to_num(made.T))


def _other_values(view: View, of_T: _Ints, of_Z: _Ints, rng: Any) -> View:
    """The observed values of a column in other rows; the same entries are missing."""
    Z, T = view.Z.copy(), view.T.copy()
    seen = np.flatnonzero(~np.isnan(T[:, of_T]).any(axis=1))
    drawn = rng.permutation(seen)
    Z[np.ix_(seen, of_Z)], T[np.ix_(seen, of_T)] = view.Z[np.ix_(drawn, of_Z)], view.T[np.ix_(drawn, of_T)]
    return View(Z, T)


def _other_mask(view: View, filled: View, of_T: _Ints, of_Z: _Ints, rng: Any) -> View | None:
    """A column missing in as many other rows, where it was missing filled as best it can be; None where nothing or all is missing."""
    missing = np.isnan(view.T[:, of_T]).any(axis=1)
    if missing.all() or not missing.any():
        return None
    hidden = rng.permutation(missing)
    Z, T = view.Z.copy(), view.T.copy()
    shown = np.flatnonzero(missing & ~hidden)
    Z[np.ix_(shown, of_Z)], T[np.ix_(shown, of_T)] = filled.Z[np.ix_(shown, of_Z)], filled.T[np.ix_(shown, of_T)]
    gone = np.flatnonzero(hidden)
    Z[np.ix_(gone, of_Z)], T[np.ix_(gone, of_T)] = np.nan, np.nan
    return View(Z, T)
