"""Options of POPCA that do not go together, and columns without entries."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    free = isinstance(k, Integral | str) and k != d and model.weights in ("auto", "kappa")
    if model.solver == "matrix-free" and not free:
        raise ValueError(
            "solver='matrix-free' needs an integer n_components below the number of columns and weights 'auto' or "
            f"'kappa'; got {k!r} and {model.weights!r}. Use solver='dense'."
        )


def check_seen(n: NDArray[np.float64], unseen: str) -> None:
    """Refuse columns without an entry, or say that they are left out."""
    lost = np.flatnonzero(n == 0)
    if len(lost) == 0:
        return
    which = f"X has {len(lost)} columns without an observed entry, the first is column {lost[0]}"
    if unseen == "error":
        raise ValueError(f"{which}. Every column must be observed. Drop them, or pass unseen='drop'.")
    warnings.warn(f"{which}. They are left out: their components are 0.", UserWarning, stacklevel=4)
