"""The contract of the observed-entries format, and checks of what becomes a table: arrays, sparse matrices, triplets,
frames.

The part of the door that `Observed` itself stands on; everyone else reads it through `lacunar.observed.door`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Set
from copy import copy
from numbers import Number
from typing import Any, Literal, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lacunar import _core
from lacunar.observed.memory import owned
from lacunar.observed.numbers import Place, as_frame, is_missing, numbers_of, refuse_other_kinds

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
MAX_COLUMNS = 2**31 - 1


def float_dtype(dtype: DTypeLike | None, came: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype to compute in: the requested one, else float32 for float32 input, else float64."""
    if dtype is None:
        return FLOATS[1] if came == FLOATS[1] else FLOATS[0]
    if np.dtype(dtype) not in FLOATS:
        raise TypeError(
            f"dtype must be float64 or float32; got {np.dtype(dtype)}. Leave it out to keep that of the input."
        )
    return np.dtype(dtype)


_FAULTS = {
    "offsets_decrease": "indptr must start at 0, never fall and end at the number of entries; it breaks that at row "
    "{row}. "
    "Rebuild the matrix, or use Observed.from_triplets.",
    "index_negative": "indices must be columns 0 to {last}; got {came} in row {row}. Drop or shift that entry.",
    "index_too_large": "indices must be columns 0 to {last}; got {came} in row {row}. Drop that entry or pass a "
    "wider shape.",
    "index_unsorted": "indices must ascend inside a row; column {came} of row {row} comes too late. "
    "Sort them (sort_indices()) or use Observed.from_triplets.",
    "index_repeated": "every cell may come once; column {came} of row {row} comes twice. "
    "Use Observed.from_triplets(..., duplicates='last' or 'mean') to say which value counts.",
    "not_finite": "values must be finite; got {value} in row {row}, column {came}. "
    "Leave missing cells out, and replace infinities by a number or by NaN.",
}


def check_entries(
    indptr: NDArray[Any], indices: NDArray[Any], values: ArrayLike, shape: tuple[int, int]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """The arrays of an `Observed` with exact dtypes, in memory that nobody else writes to, every promise of the format
    checked.
    """
    n_rows, n_cols = (int(size) for size in shape)
    refuse_wide(n_cols)
    values = numbers_of(as_array(values, "values"), Place("values"))
    indptr, indices = owned_integers(indptr, np.int64, "indptr"), owned_integers(indices, np.int32, "indices")
    values = owned(values, float_dtype(None, values.dtype))
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


def as_integers(array: ArrayLike, dtype: type, name: str) -> NDArray[Any]:
    """Integers as the core reads them, in the caller's memory where they are so already."""
    return _as_read(_checked_integers(as_array(array, name), dtype, name), dtype)


def owned_integers(array: ArrayLike, dtype: type, name: str) -> NDArray[Any]:
    """Integers as the core reads them, in memory that nobody else writes to."""
    return owned(_checked_integers(as_array(array, name), dtype, name), dtype)


def _checked_integers(array: NDArray[Any], dtype: type, name: str) -> NDArray[Any]:
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be integers; got dtype {array.dtype}. Convert them with astype.")
    fits = array.dtype.kind in "iu" and np.can_cast(array.dtype, dtype)
    if array.size and not fits and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise ValueError(
            f"{name} must fit {np.dtype(dtype)}; got {array.min()} to {array.max()}. Renumber the columns."
        )
    return array


def _as_read(array: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """The array in this dtype, contiguous and aligned, copied only where needed."""
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "ENSUREARRAY"])


def refuse_wide(n_cols: int) -> None:
    """ValueError for more columns than numbers of 32 bits can count."""
    if n_cols > MAX_COLUMNS:
        raise ValueError(
            f"X must have at most {MAX_COLUMNS} columns, since column numbers are stored in 32 bits; got {n_cols}. "
            "Hash the columns, or renumber those that are ever observed."
        )


SparseMissing = Literal["absent", "nan"]


def _refuse_masked_records(values: Any, name: str) -> None:
    if isinstance(values, np.ma.MaskedArray) and values.dtype.names is not None:
        raise TypeError(
            f"{name} must be an array of one dtype; got a masked array of records with fields "
            f"{', '.join(values.dtype.names)}. Stack its fields as columns: "
            "numpy.ma.stack([array[field] for field in array.dtype.names], axis=-1)."
        )


def unmasked(values: Any, name: str = "X", *, keep_kind: bool = False) -> Any:
    """A masked array of NumPy as a plain one that is NaN where it was masked; anything else as it came.

    Text and objects are None there, dates NaT, and whole numbers and booleans become float64, or objects with None
    where `keep_kind` says that they are labels or ids. A list of masked arrays is one masked array.
    """
    if isinstance(values, list | tuple) and any(isinstance(row, np.ma.MaskedArray) and row.ndim for row in values):
        values = np.ma.array(values)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    _refuse_masked_records(values, name)
    plain, mask = np.asarray(values.data), np.ma.getmaskarray(values)
    if not mask.any():
        return plain
    if plain.dtype.kind in "biu" and not keep_kind:
        plain = plain.astype(np.float64)
    elif plain.dtype.kind not in "fcmMO":
        plain = plain.astype(object)
    missing = {"f": np.nan, "c": np.nan, "m": "NaT", "M": "NaT"}.get(plain.dtype.kind)
    return np.where(mask, np.array(missing, dtype=plain.dtype), plain)


def refuse_masked(values: Any, name: str) -> Any:
    """The values as they came; ValueError where one is masked."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0][0])
        raise ValueError(
            f"{name} must be known for every row; it is masked in row {row}. Drop that row, or fill in a value "
            "(masked.filled)."
        )
    return values


def as_array(values: Any, name: str = "X", *, keep_kind: bool = False) -> NDArray[Any]:
    """What `numpy.asarray` makes of values, but for what is masked: `unmasked` says what becomes of it."""
    values = unmasked(values, name, keep_kind=keep_kind)
    try:
        return np.asarray(values)
    except ValueError as error:
        if hasattr(values, "__array__"):
            raise
        raise ValueError(
            f"{name} must have rows of one length; got a {type(values).__name__} whose parts differ ({error}). Use NaN "
            "or None for what is missing."
        ) from None


def refuse_no_table(X: Any) -> None:
    """TypeError for what holds no rows and columns that a door reads, with what to pass in its place."""
    if isinstance(X, np.ndarray | np.generic):
        if X.dtype.names is not None:  # before their shape, which is that of one column
            _refuse_masked_records(X, "X")
            refuse_other_kinds(X.dtype)
        check_two_dimensional(X)
    if isinstance(X, list | tuple) and len(X) and np.ndim(X[0]) == 0:
        _refuse_flat(X)
    if isinstance(X, np.ndarray | list | tuple) or sp.issparse(X) or as_frame(X) is not None:
        return
    remedy = _remedy(X)
    if remedy is not None:
        came = f"{X!r}"[:60] if X is None or isinstance(X, str | bytes) else f"a {type(X).__name__}"
        raise TypeError(
            f"X must be a table in memory: an array, frame, sparse matrix or Observed; got {came}. {remedy}"
        )


def _refuse_flat(X: Any) -> NoReturn:
    """The error for a list of cells, or of dicts, in place of one of rows."""
    if isinstance(X[0], Mapping):
        raise TypeError("X must be a table in memory; got a list of dicts. Use pandas.DataFrame(X).")
    raise ValueError(
        f"X must be two-dimensional (rows, columns); got a list of {len(X)} cells. Reshape your data: [X] for one row, "
        "[[cell] for cell in X] for one column."
    )


def _remedy(X: Any) -> str | None:
    """Advice for messages: what to pass instead of X. None where X may be a table."""
    if all(hasattr(X, name) for name in ("X", "obs", "var")):  # AnnData
        return "Pass its values: X.to_df(), or X.X with sparse_missing='nan' where what is not stored is zero."
    if nw.dependencies.is_pandas_series(X):
        return "Use pandas.DataFrame([X]) for one row, and X.to_frame() for one column."
    if nw.dependencies.is_into_series(X) or _is_arrow_column(X):
        one_row = "Pass [X.tolist()] for one row (a frame of one row keeps the names)"
        return f"{one_row}, and a frame of one column for one column."
    if isinstance(X, Mapping):
        return "Use pandas.DataFrame([X]) for one row, and pandas.DataFrame(X) for columns."
    if X is None or isinstance(X, str | bytes | os.PathLike):
        return "Read the file first: pandas.read_csv and pandas.read_parquet make frames of files."
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        return "Compute it first: X.collect() in polars, X.compute() in Dask."
    if hasattr(X, "__arrow_c_stream__"):
        return "Pass pyarrow.table(X)."
    if isinstance(X, Iterator | Set):
        return "Make a list or an array of it."
    is_array = isinstance(X, Number) or any(
        hasattr(X, name) for name in ("__array__", "__array_interface__", "__len__")
    )
    return None if is_array else "Make an array or a frame of it."


def _is_arrow_column(X: Any) -> bool:
    pa = nw.dependencies.get_pyarrow()
    return pa is not None and isinstance(X, pa.Array | pa.ChunkedArray | pa.Scalar)


def check_two_dimensional(X: Any) -> Any:
    """The array or sparse matrix as it came; ValueError where it has no rows and columns."""
    if X.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional (rows, columns); got shape {X.shape}. Reshape your data: X.reshape(1, -1) for "
            "one row, X.reshape(-1, 1) for one column."
        )
    return X


def check_dense(X: ArrayLike, dtype: DTypeLike | None = None) -> tuple[NDArray[Any], np.dtype[Any]]:
    """A two-dimensional float array as the core reads it, copied only where it must be, and the dtype of its
    entries.
    """
    refuse_no_table(X)
    dense = numbers_of(check_two_dimensional(as_array(X)))
    out_dtype = float_dtype(dtype, dense.dtype)
    if dense.dtype not in FLOATS:
        dense = dense.astype(out_dtype)
    refuse_wide(dense.shape[1])
    down, across = dense.strides
    readable = (across == dense.itemsize and down % across == 0) or (down == dense.itemsize and across % down == 0)
    return (dense if readable and dense.flags.aligned else np.require(dense, None, ["C", "A"])), out_dtype


def refuse_infinite(dense: NDArray[Any], dtype: np.dtype[Any]) -> None:
    """ValueError for the first cell that is infinite in this dtype."""
    with np.errstate(over="ignore"):
        infinite = np.isinf(dense.astype(dtype, copy=False))
    if infinite.any():
        row, column = (int(k) for k in np.argwhere(infinite)[0])
        raise ValueError(
            f"X must be finite where observed; got {dense[row, column]} in row {row}, column {column}"
            f"{'' if np.isinf(dense[row, column]) else f', which {dtype} does not hold'}. "
            "Replace infinities by a number, or by NaN if they mean missing."
        )


def refuse_sparse_format(X: Any) -> None:
    """ValueError where there are no rows and columns; TypeError for DIA and blocked BSR, which cannot say which zeros
    were observed.
    """
    check_two_dimensional(X)
    reason = None
    if X.format == "dia":
        reason = "the DIA format drops or invents stored zeros"
    elif X.format == "bsr" and X.blocksize != (1, 1):
        reason = f"the BSR format with blocks of {X.blocksize} stores zeros that were not observed"
    if reason is not None:
        raise TypeError(
            f"X must be a sparse matrix whose stored entries are the observed ones; got {X.format.upper()}: {reason}. "
            "Build a csr_array or coo_array from the entries themselves."
        )


def check_sparse(X: Any, sparse_missing: str, dtype: DTypeLike | None = None) -> Any:
    """A CSR array with sorted, unique indices and float data; explicit zeros are kept."""
    if not sp.issparse(X):
        raise TypeError(f"X must be a SciPy sparse matrix or array; got {type(X).__name__}. Use Observed.from_dense.")
    check_sparse_missing(sparse_missing)
    refuse_sparse_format(X)
    refuse_wide(X.shape[1])
    refuse_other_kinds(X.dtype)
    csr = sp.csr_array(check_stored(X))
    if csr.dtype not in FLOATS or dtype is not None:
        csr = csr.astype(float_dtype(dtype, csr.dtype), copy=False)
    return csr if csr.has_sorted_indices else csr.sorted_indices()


def check_stored(X: Any) -> Any:
    """The matrix in memory that nobody else writes to, its numbers in range and every cell stored once: SciPy, when
    it converts, checks neither.
    """
    X = check_positions(X, "X")
    if X.format in ("csr", "csc", "bsr"):
        lines, stored = np.repeat(np.arange(len(X.indptr) - 1), np.diff(X.indptr)), X.indices[: X.indptr[-1]]
        if not _ascends(lines, stored):
            check_no_duplicates(
                sp.coo_array((stored, (lines, stored) if X.format != "csc" else (stored, lines)), X.shape)
            )
    elif X.format == "coo":
        check_no_duplicates(X)
    return X


def check_positions(X: Any, name: str) -> Any:
    """A sparse matrix in memory that nobody else writes to, its offsets and numbers within its shape.

    SciPy writes out of bounds where they are not, so what is converted must be what was checked.
    """
    X = _own_sparse(X)
    if X.format == "coo":
        _check_coordinates(X, name)
    if X.format in ("csr", "csc", "bsr"):
        _check_offsets(X, name)
    return X  # the other formats hold no numbers, or Python's own


def _own_sparse(X: Any) -> Any:
    """The same matrix with arrays of our own; nothing is checked or converted."""
    names = {"coo": ("coords", "data")}.get(X.format, ("indptr", "indices", "data"))
    if not all(hasattr(X, name) for name in names):
        return X.copy()
    twin = copy(X)
    for name in names:
        arrays = getattr(X, name)
        setattr(twin, name, tuple(map(owned, arrays)) if isinstance(arrays, tuple) else owned(arrays))
    return twin


def _check_coordinates(X: Any, name: str) -> None:
    for axis, (numbers, size) in enumerate(zip(X.coords, X.shape, strict=True)):
        outside = np.flatnonzero((numbers < 0) | (numbers >= size))
        if outside.size or numbers.shape != X.data.shape:
            came = f"{numbers[outside[0]]} in entry {outside[0]}" if outside.size else f"{numbers.size} numbers"
            raise ValueError(
                f"{('row', 'col')[axis]} of {name} must be numbers 0 to {size - 1}, one for each of its {X.data.size} "
                f"values; got {came}. Drop that entry or pass a larger shape."
            )


def _check_offsets(X: Any, name: str) -> None:
    blocks = X.blocksize if X.format == "bsr" else (1, 1)
    sizes = [size // block for size, block in zip(X.shape, blocks, strict=True)]
    n_lines, n_numbers = sizes[::-1] if X.format == "csc" else sizes
    if X.indptr.shape != (n_lines + 1,) or X.indices.ndim != 1 or len(X.data) < len(X.indices):
        raise ValueError(
            f"{name} must have {n_lines + 1} offsets and a value for every index; got {X.indptr.shape} offsets, "
            f"{X.indices.shape} indices and {X.data.shape} values. Rebuild the matrix from its triplets."
        )
    # Neighbours are compared, not subtracted: the difference of two offsets of 32 bits may not fit in 32 bits.
    wrong = (X.indptr[1:] < X.indptr[:-1]) | (X.indptr[1:] > X.indices.size)
    if X.indptr[0] != 0 or wrong.any():
        line = int(wrong.argmax()) if wrong.size else 0
        raise ValueError(
            f"indptr of {name} must start at 0, never fall and stay within the {X.indices.size} entries; it breaks "
            f"that near {'column' if X.format == 'csc' else 'row'} {line}. Rebuild the matrix from its triplets."
        )
    stored = np.asarray(X.indices[: X.indptr[-1]])
    outside = np.flatnonzero((stored < 0) | (stored >= n_numbers))
    if outside.size:
        k = int(outside[0])
        line = int(np.searchsorted(X.indptr, k, side="right")) - 1
        inside, number = ("column", "row") if X.format == "csc" else ("row", "column")
        raise ValueError(
            f"indices of {name} must be {number}s 0 to {n_numbers - 1}; got {stored[k]} in {inside} {line}. "
            "Drop that entry or pass a wider shape."
        )


def _ascends(lines: NDArray[Any], numbers: NDArray[Any]) -> bool:
    """Whether (line, number) pairs, sorted by line, strictly ascend: then none comes twice."""
    return bool(((lines[1:] > lines[:-1]) | (numbers[1:] > numbers[:-1])).all())


def check_no_duplicates(coo: Any) -> None:
    """ValueError for a cell that is stored twice: conversion from COO would silently sum the two."""
    order = np.lexsort((coo.col, coo.row))
    row, col = coo.row[order], coo.col[order]
    twice = np.flatnonzero((row[1:] == row[:-1]) & (col[1:] == col[:-1]))
    if twice.size:
        refuse_duplicate(int(row[twice[0]]), int(col[twice[0]]))


def refuse_duplicate(row: int, col: int) -> NoReturn:
    """ValueError that names a cell given twice."""
    raise ValueError(
        f"every cell may come once; row {row}, column {col} comes more than once. "
        "Use Observed.from_triplets(..., duplicates='last' or 'mean') to say which value counts."
    )


def check_sparse_missing(sparse_missing: str) -> None:
    """ValueError for a `sparse_missing` that is not one of its two words."""
    if sparse_missing not in ("absent", "nan"):
        raise ValueError(
            "sparse_missing must be 'absent' (not stored = missing) or 'nan' (not stored = zero); got "
            f"{sparse_missing!r}."
        )


def check_duplicates_policy(duplicates: str) -> None:
    """ValueError for a `duplicates` that is not one of its three words."""
    if duplicates not in ("error", "last", "mean"):
        raise ValueError(f"duplicates must be 'error', 'last' or 'mean'; got {duplicates!r}.")


def check_triplets(
    row: ArrayLike, col: ArrayLike, value: ArrayLike, shape: tuple[int, int] | None, dtype: DTypeLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], tuple[int, int]]:
    """Triplets as arrays of one length that the core reads, numbers of rows and columns of one dtype, and the shape."""
    rows, cols = as_array(row, "row"), as_array(col, "col")
    same = rows.dtype == cols.dtype and rows.dtype in (np.dtype(np.int32), np.dtype(np.int64))
    kind: type = rows.dtype.type if same else np.int64
    rows, cols, values = as_integers(rows, kind, "row"), as_integers(cols, kind, "col"), as_array(value, "value")
    refuse_other_kinds(values.dtype, "value")
    values = _as_read(values, float_dtype(dtype, values.dtype))
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            f"row, col and value must be one-dimensional and of one length; got {rows.shape}, {cols.shape}, "
            f"{values.shape}."
        )
    if shape is None:
        shape = (int(rows.max(initial=-1)) + 1, int(cols.max(initial=-1)) + 1)
    refuse_wide(int(shape[1]))
    return rows, cols, values, (int(shape[0]), int(shape[1]))


def refuse_triplets(rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any], shape: tuple[int, int]) -> None:
    """ValueError for the first triplet outside the shape, else the first infinite one."""
    for name, numbers, size in (("row", rows, shape[0]), ("col", cols, shape[1])):
        outside = np.flatnonzero((numbers < 0) | (numbers >= size))
        if outside.size:
            k = int(outside[0])
            raise ValueError(
                f"{name} must hold numbers 0 to {size - 1}; got {numbers[k]} in triplet {k}. Pass a larger shape or "
                "drop it."
            )
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        k = int(infinite[0])
        raise ValueError(
            f"value must be finite; got {values[k]} in triplet {k} (row {rows[k]}, column {cols[k]}). Drop it."
        )


def check_ids(ids: NDArray[Any], name: str) -> NDArray[Any]:
    """The ids of a column, unchanged; ValueError for the first that is missing or infinite."""
    unsound = _are_no_names(ids)
    if unsound.any():
        line = int(np.argmax(unsound))
        came = "null" if is_missing(ids[line]) else str(ids[line])
        raise ValueError(f"column {name!r} must hold an id in every line; it is {came} in line {line}. Drop it.")
    return ids


def _are_no_names(ids: NDArray[Any]) -> NDArray[np.bool_]:
    """Which ids (n,) are missing or infinite."""
    if ids.dtype.kind == "f":
        return np.asarray(~np.isfinite(ids))
    if ids.dtype.kind in "mM":
        return np.asarray(np.isnat(ids))
    if ids.dtype.kind != "O":
        return np.zeros(len(ids), dtype=bool)
    return np.array([is_missing(value) or value in (math.inf, -math.inf) for value in ids.tolist()], dtype=bool)
