"""The observed-entries format: three arrays and their promises."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar import _core

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
MAX_COLUMNS = 2**31 - 1


def float_dtype(dtype: DTypeLike | None, came: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to compute in: the one asked for, else float32 where it came so, else float64."""
    if dtype is None:
        return FLOATS[1] if came == FLOATS[1] else FLOATS[0]
    if np.dtype(dtype) not in FLOATS:
        raise TypeError(
            f"dtype must be float64 or float32; got {np.dtype(dtype)}. Leave it out to keep that of the input."
        )
    return np.dtype(dtype)


_FAULTS = {
    "offsets_decrease": "indptr must start at 0, never fall and end at the number of entries; it breaks that at row {row}. "
    "Rebuild the matrix, or use Observed.from_triplets.",
    "index_negative": "indices must be columns 0 to {last}; got {came} in row {row}. Drop or shift that entry.",
    "index_too_large": "indices must be columns 0 to {last}; got {came} in row {row}. Drop that entry or pass a wider shape.",
    "index_unsorted": "indices must ascend inside a row; column {came} of row {row} comes too late. "
    "Sort them (sort_indices()) or use Observed.from_triplets.",
    "index_repeated": "every cell may come once; column {came} of row {row} comes twice. "
    "Use Observed.from_triplets(..., duplicates='last' or 'mean') to say which value counts.",
    "not_finite": "values must be finite; got {value} in row {row}, column {came}. "
    "Leave missing cells out, and replace infinities by a number or by NaN.",
}


def check_entries(
    indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """The arrays of an `Observed` with exact dtypes, every promise of the format checked."""
    n_rows, n_cols = (int(size) for size in shape)
    refuse_wide(n_cols)
    values = np.asarray(values)
    indptr, indices = as_integers(indptr, np.int64, "indptr"), as_integers(indices, np.int32, "indices")
    values = _as_read(values, float_dtype(None, values.dtype))
    if n_rows < 0 or n_cols < 0 or indptr.shape != (n_rows + 1,):
        raise ValueError(
            f"indptr must have one offset a row and one more, for shape {shape}; got shape {indptr.shape}."
        )
    if indices.ndim != 1 or indices.shape != values.shape:
        raise ValueError(f"indices and values must be of one length; got shapes {indices.shape} and {values.shape}.")
    fault = _core.find_fault(indptr, indices, values, n_cols)
    if fault is not None:
        kind, row, position = fault
        inside = 0 <= position < indices.size
        came = int(indices[position]) if inside else position
        value = values[position] if inside else None
        raise ValueError(_FAULTS[kind].format(row=row, came=came, value=value, last=n_cols - 1))
    return indptr, indices, values


def as_integers(array: NDArray[Any], dtype: type, name: str) -> NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be integers; got dtype {array.dtype}. Convert them with astype.")
    if array.size and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise ValueError(
            f"{name} must fit {np.dtype(dtype)}; got {array.min()} to {array.max()}. Renumber the columns."
        )
    return _as_read(array, dtype)


def _as_read(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The array as the core reads it: of this dtype, contiguous and aligned; itself where it is so already."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "ENSUREARRAY"])


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nobody can write to the array's memory: a read-only buffer owns it, such as a mapped file or bytes.

    A read-only array that owns its memory may have writable views, and anyone may turn its flag back.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        owner = owner.base
    try:
        return owner is not None and memoryview(owner).readonly
    except TypeError:  # no buffer: what else there is to write with cannot be known
        return False


def refuse_wide(n_cols: int) -> None:
    """Column numbers are int32."""
    if n_cols > MAX_COLUMNS:
        raise ValueError(
            f"X must have at most {MAX_COLUMNS} columns, since column numbers are stored in 32 bits; got {n_cols}. "
            "Hash the columns, or renumber those that are ever observed."
        )
