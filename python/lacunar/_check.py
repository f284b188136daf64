"""The door: public input is checked here once, and only here are errors about it phrased.

A message says the argument, what it should be, what came (and in which row and column) and the remedy.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from lacunar import _core

if TYPE_CHECKING:
    from lacunar.observed import Observed

SparseMissing = Literal["absent", "nan"]
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


# -- the format itself ------------------------------------------------------------------------------------------------

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
    indptr, indices = _integers(indptr, np.int64, "indptr"), _integers(indices, np.int32, "indices")
    values = np.ascontiguousarray(values, dtype=float_dtype(None, values.dtype))
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


def _integers(array: NDArray[Any], dtype: type, name: str) -> NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be integers; got dtype {array.dtype}. Convert them with astype.")
    if array.size and (array.max() > np.iinfo(dtype).max or array.min() < np.iinfo(dtype).min):
        raise ValueError(
            f"{name} must fit {np.dtype(dtype)}; got {array.min()} to {array.max()}. Renumber the columns."
        )
    return np.ascontiguousarray(array, dtype=dtype)


def refuse_wide(n_cols: int) -> None:
    """Column numbers are int32."""
    if n_cols > MAX_COLUMNS:
        raise ValueError(
            f"X must have at most {MAX_COLUMNS} columns, since column numbers are stored in 32 bits; got {n_cols}. "
            "Hash the columns, or renumber those that are ever observed."
        )


# -- constructors of Observed -----------------------------------------------------------------------------------------


def check_dense(X: ArrayLike, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """A two-dimensional float array without infinities; NaN is missing."""
    dense = np.asarray(X)
    if dense.dtype.kind not in "fiub":
        try:
            dense = dense.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"X must be an array of numbers; got dtype {dense.dtype} ({error}). Encode text columns first."
            ) from None
    dense = dense.astype(float_dtype(dtype, dense.dtype), copy=False)
    if dense.ndim != 2:
        raise ValueError(
            f"X must be two-dimensional (rows, columns); got shape {dense.shape}. Use X.reshape(1, -1) for a row."
        )
    infinite = np.isinf(dense)
    if infinite.any():
        row, column = (int(k) for k in np.argwhere(infinite)[0])
        raise ValueError(
            f"X must be finite where observed; got {dense[row, column]} in row {row}, column {column}. "
            "Replace infinities by a number, or by NaN if they mean missing."
        )
    refuse_wide(dense.shape[1])
    return dense


def refuse_sparse_format(X: Any) -> None:
    """DIA and blocked BSR cannot say which zeros were observed."""
    reason = None
    if X.format == "dia":
        reason = "the DIA format drops or invents stored zeros"
    elif X.format == "bsr" and X.blocksize != (1, 1):
        reason = f"the BSR format with blocks of {X.blocksize} stores zeros that nobody observed"
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
    if X.format in ("coo", "dok", "lil"):
        coo = X.tocoo()
        check_no_duplicates(coo)
    csr = sp.csr_array(X)
    if csr.dtype not in FLOATS or dtype is not None:
        csr = csr.astype(float_dtype(dtype, csr.dtype))
    if not csr.has_sorted_indices:
        csr = csr.copy() if csr is X or np.shares_memory(csr.indices, getattr(X, "indices", csr.data)) else csr
        csr.sort_indices()
    return csr


def check_no_duplicates(coo: Any) -> None:
    """COO sums duplicates silently when converted; here they are refused."""
    order = np.lexsort((coo.col, coo.row))
    row, col = coo.row[order], coo.col[order]
    twice = np.flatnonzero((row[1:] == row[:-1]) & (col[1:] == col[:-1]))
    if twice.size:
        refuse_duplicate(int(row[twice[0]]), int(col[twice[0]]))


def refuse_duplicate(row: int, col: int) -> NoReturn:
    """A cell that comes twice has no one value."""
    raise ValueError(
        f"every cell may come once; row {row}, column {col} comes more than once. "
        "Use Observed.from_triplets(..., duplicates='last' or 'mean') to say which value counts."
    )


def check_sparse_missing(sparse_missing: str) -> None:
    """The meaning of what a sparse matrix does not store is named, never guessed."""
    if sparse_missing not in ("absent", "nan"):
        raise ValueError(
            f"sparse_missing must be 'absent' (not stored = missing) or 'nan' (not stored = zero); got {sparse_missing!r}."
        )


def check_duplicates_policy(duplicates: str) -> None:
    """How repeated triplets are settled."""
    if duplicates not in ("error", "last", "mean"):
        raise ValueError(f"duplicates must be 'error', 'last' or 'mean'; got {duplicates!r}.")


def check_triplets(
    row: ArrayLike, col: ArrayLike, value: ArrayLike, shape: tuple[int, int] | None, dtype: DTypeLike | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any], tuple[int, int]]:
    """Triplets as arrays of one length, numbers inside the shape, NaN values dropped."""
    rows, cols = _integers(np.asarray(row), np.int64, "row"), _integers(np.asarray(col), np.int64, "col")
    values = np.asarray(value)
    values = values.astype(float_dtype(dtype, values.dtype), copy=False)
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError(
            f"row, col and value must be one-dimensional and of one length; got {rows.shape}, {cols.shape}, {values.shape}."
        )
    if shape is None:
        shape = (int(rows.max(initial=-1)) + 1, int(cols.max(initial=-1)) + 1)
    for name, numbers, size in (("row", rows, shape[0]), ("col", cols, shape[1])):
        outside = np.flatnonzero((numbers < 0) | (numbers >= size))
        if outside.size:
            k = int(outside[0])
            raise ValueError(
                f"{name} must hold numbers 0 to {size - 1}; got {numbers[k]} in triplet {k}. Pass a larger shape or drop it."
            )
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        k = int(infinite[0])
        raise ValueError(
            f"value must be finite; got {values[k]} in triplet {k} (row {rows[k]}, column {cols[k]}). Drop it."
        )
    seen = ~np.isnan(values)
    return rows[seen], cols[seen], values[seen], (int(shape[0]), int(shape[1]))


def check_frame_columns(frame: Any) -> None:
    """Columns of a narwhals frame must be numbers or booleans."""
    for name, dtype in frame.schema.items():
        if not (dtype.is_numeric() or str(dtype) == "Boolean"):
            raise TypeError(
                f"every column must be numeric or boolean; column {name!r} is {dtype}. Encode it (one-hot, ordinal) or drop it."
            )


# -- public functions and estimators ----------------------------------------------------------------------------------


def as_observed(
    X: Any, *, sparse_missing: SparseMissing = "absent", dtype: DTypeLike | None = None, warn_counts: bool = True
) -> Observed:
    """Any table the library reads as `Observed`: an Observed, array, frame or sparse matrix."""
    from lacunar.observed import Observed

    check_sparse_missing(sparse_missing)
    if isinstance(X, Observed):
        return X if dtype is None else X.astype(float_dtype(dtype, X.dtype))
    if sp.issparse(X):
        if warn_counts and sparse_missing == "absent":
            warn_if_counts(X)
        return Observed.from_scipy(X, sparse_missing=sparse_missing, dtype=dtype)
    if hasattr(X, "columns") or hasattr(X, "column_names"):
        return Observed.from_frame(X, dtype=dtype)
    return Observed.from_dense(X, dtype=dtype)


def warn_if_counts(X: Any) -> None:
    """Warn when a sparse matrix looks like counts or one-hot columns: there absent means zero, not missing."""
    data = X.tocoo().data if not hasattr(X, "data") or X.format in ("dok", "lil") else X.data
    if data.size == 0 or data.size > 0.5 * np.prod(X.shape, dtype=float):
        return
    ones = data == 1
    if 2 * np.count_nonzero(ones) > data.size and (data > 0).all() and (data == np.round(data)).all():
        warnings.warn(
            "X is sparse, stores no zero and looks like counts or one-hot columns, yet sparse_missing='absent' takes what "
            "is not stored as missing. Pass sparse_missing='nan' if it means zero.",
            UserWarning,
            stacklevel=4,
        )


def validate_X(estimator: Any, X: Any, *, reset: bool, sparse_missing: SparseMissing = "absent") -> Observed:
    """X of an estimator as `Observed`, with scikit-learn's checks of names and number of features."""
    from lacunar.observed import Observed

    check_sparse_missing(sparse_missing)
    if isinstance(X, Observed):
        _check_width(estimator, X, reset)
        return X
    if sp.issparse(X):
        refuse_sparse_format(X)
        if sparse_missing == "absent":
            warn_if_counts(X)
    table = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=list(FLOATS),
        ensure_all_finite=False,
        ensure_min_samples=1,
    )
    return (
        Observed.from_scipy(table, sparse_missing=sparse_missing) if sp.issparse(table) else Observed.from_dense(table)
    )


def _check_width(estimator: Any, X: Observed, reset: bool) -> None:
    if X.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={X.shape}) while a minimum of 1 is required.")
    if reset:
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features "
            "as input."
        )


def validate_X_y(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    reset: bool = True,
    sparse_missing: SparseMissing = "absent",
    y_numeric: bool = False,
    multi_output: bool = False,
) -> tuple[Observed, NDArray[Any]]:
    """X as in `validate_X` and y of the same length without holes."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass one label for every row."
        )
    table = validate_X(estimator, X, reset=reset, sparse_missing=sparse_missing)
    target = check_target(y, y_numeric=y_numeric, multi_output=multi_output)
    check_consistent_length(table, target)
    return table, target


def check_target(y: Any, *, y_numeric: bool = False, multi_output: bool = False) -> NDArray[Any]:
    """Labels or numbers without NaN or infinity."""
    target: NDArray[Any]
    if multi_output:
        target = check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
    else:
        target = column_or_1d(y, warn=True)
    if y_numeric and target.dtype.kind not in "fiu":
        target = target.astype(np.float64)
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        row = int(np.argwhere(~np.isfinite(target))[0][0])
        raise ValueError(
            f"Input y contains NaN or infinity: y must be known and finite; got {target[row]} in row {row}. "
            "Drop the rows without a label."
        )
    if target.dtype.kind == "O":
        holes = [k for k, label in enumerate(target.ravel()) if label is None or label != label]
        if holes:
            raise ValueError(
                f"Input y contains NaN: y must be known; row {holes[0]} has {target.ravel()[holes[0]]!r}. Drop it."
            )
    return target
