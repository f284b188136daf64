"""Kernels, ids and weights on their way in."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.completion._side._state import DENSE_LIMIT, Floats, plain_ids, shown


def rounding(matrix: Any) -> float:
    """What counts as rounding in a matrix that somebody computed, of its largest entry: 1e-8, or 1e-5 in single precision."""
    dtype = getattr(matrix, "dtype", None)
    return 1e-5 if dtype in (np.float32, np.float16) else 1e-8


def check_kernel(K: Any) -> Floats:
    """A symmetric positive semidefinite matrix (n, n) of finite numbers, a copy, exactly symmetric. O(n^3 / 3)."""
    dense, slack = _as_square(K), rounding(K)
    if not np.isfinite(dense).all():
        row, column = (int(k) for k in np.argwhere(~np.isfinite(dense))[0])
        raise ValueError(
            f"K must be finite; got {dense[row, column]} in row {row}, column {column}. Replace or drop it."
        )
    scale = float(np.abs(dense).max(initial=0.0))
    gap = np.abs(dense - dense.T)
    if gap.size and gap.max() > slack * scale:
        row, column = (int(k) for k in np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(
            f"K must be symmetric; got {dense[row, column]:.6g} in row {row}, column {column} and "
            f"{dense[column, row]:.6g} in row {column}, column {row}. Pass (K + K.T) / 2 if that is what is meant."
        )
    dense = (dense + dense.T) / 2
    check_semidefinite(dense, slack)
    return dense


def _as_square(K: Any) -> Floats:
    if sp.issparse(K):
        if max(K.shape) > DENSE_LIMIT:
            raise ValueError(
                f"a sparse K may have at most {DENSE_LIMIT} ids; got shape {K.shape}. Use Graph (its inverse is what is "
                "sparse) or Features."
            )
        K = K.toarray()
    try:
        dense = np.array(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"K must be a matrix of numbers; got {type(K).__name__} ({error}).") from None
    if dense.ndim != 2 or dense.shape[0] != dense.shape[1]:
        raise ValueError(f"K must be square, a row and a column for every id; got shape {dense.shape}.")
    if not len(dense):
        raise ValueError("K must have at least one id; got an empty matrix. Use Identity() to begin with none.")
    return dense


def check_semidefinite(K: Floats, relative: float) -> None:
    """No eigenvalue below -relative times the largest diagonal entry: a Cholesky factor of K plus that much exists."""
    diagonal = np.diag(K)
    if (diagonal < 0).any():
        i = int(diagonal.argmin())
        raise ValueError(
            f"K must be positive semidefinite; got {diagonal[i]:.6g} on its diagonal, row {i}. Pass a kernel."
        )
    slack = relative * float(diagonal.max())
    lifted = K.copy()
    np.fill_diagonal(lifted, diagonal + slack + np.finfo(float).tiny)
    try:
        scipy.linalg.cholesky(lifted, lower=True, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError:
        smallest = float(scipy.linalg.eigh(K, eigvals_only=True, subset_by_index=[0, 0])[0])
        raise ValueError(
            f"K must be positive semidefinite; its smallest eigenvalue is {smallest:.6g}, the largest diagonal entry "
            f"{diagonal.max():.6g}. Add {abs(smallest):.3g} to the diagonal, or pass K @ K.T."
        ) from None


def check_ids(ids: Sequence[Hashable] | None, size: int, what: str) -> list[Hashable] | None:
    """As many distinct hashable ids as there are vertices, or None."""
    if ids is None:
        return None
    named = plain_ids(list(ids))
    assert named is not None
    if len(named) != size:
        raise ValueError(f"ids must name every row of {what}; got {len(named)} ids for {size} rows. Pass one a row.")
    first: dict[Hashable, int] = {}
    for number, name in enumerate(named):
        try:
            known = first.setdefault(name, number)
        except TypeError:
            raise TypeError(
                f"ids must be hashable; got {shown(name)} for row {number}. Use strings or numbers."
            ) from None
        if known != number:
            raise ValueError(
                f"ids must be distinct; {shown(name)} names rows {known} and {number} of {what}. Drop one."
            )
    return named


def index_names(table: Any) -> list[Hashable] | None:
    """The index of a pandas frame as ids; None for a plain range, and for anything else."""
    index = getattr(table, "index", None)
    if index is None or callable(index) or type(index).__name__ == "RangeIndex":
        return None
    return plain_ids(list(index))


def check_weight(value: Any, name: str, *, low: float = 0.0, high: float = 1.0) -> float:
    """A finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError(f"{name} must be a number; got {type(value).__name__} {shown(value)}.")
    if not low <= value <= high:
        wish = f"from {low:g} to {high:g}" if np.isfinite(high) else f"finite and at least {low:g}"
        raise ValueError(f"{name} must be {wish}; got {value}.")
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite; got {value}.")
    return float(value)


def check_positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    number = check_weight(value, name, high=np.inf)
    if number == 0:
        raise ValueError(f"{name} must be above 0; got 0.")
    return number


def check_index(index: Any, size: int) -> NDArray[np.int64]:
    """Vertex numbers 0..size-1 as an array (k,)."""
    numbers = np.atleast_1d(np.asarray(index))
    if numbers.size and numbers.dtype.kind not in "iu":
        raise TypeError(f"vertices must be integers 0 to {size - 1}; got dtype {numbers.dtype}.")
    outside = (numbers < 0) | (numbers >= size)
    if outside.any():
        raise IndexError(f"vertices must be 0 to {size - 1}; got {numbers[outside][0]}.")
    return numbers.astype(np.int64, copy=False)
