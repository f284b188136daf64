"""X and y of public functions and estimators."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from lacunar._check._entries import FLOATS, float_dtype
from lacunar._check._ranges import check_magnitude
from lacunar._check._tables import SparseMissing, check_sparse_missing, check_stored, refuse_sparse_format

if TYPE_CHECKING:
    from lacunar.observed import Observed


def as_observed(
    X: Any,
    *,
    sparse_missing: SparseMissing = "absent",
    dtype: DTypeLike | None = None,
    warn_counts: bool = True,
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
        check_stored(X)
        if sparse_missing == "absent":
            warn_if_counts(X)
    try:
        table = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=list(FLOATS),
            ensure_all_finite=False,
            ensure_min_samples=1,
        )
    except ValueError as error:
        text = _first_text(X) if "convert string" in str(error) else None
        if text is None:
            raise
        raise ValueError(
            f"X must hold numbers; {error}: {text}. Encode such columns: lacunar.encode.TableEncoder leaves "
            "missing entries missing."
        ) from None
    return (
        Observed.from_scipy(table, sparse_missing=sparse_missing) if sp.issparse(table) else Observed.from_dense(table)
    )


def _first_text(X: Any) -> str | None:
    """Where the first value is that is no number, column by column."""
    names = getattr(X, "columns", None)
    table = np.asarray(X, dtype=object)
    if table.ndim != 2:
        return None
    for j, column in enumerate(table.T):
        for row, value in enumerate(column):
            try:
                float(value) if isinstance(value, str) else None
            except ValueError:
                return f"{value!r} in row {row}, column {j if names is None else repr(names[j])}"
    return None


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
            "Drop the rows without a label, or let lacunar.regression.SLRMRegressor learn from them too."
        )
    if y_numeric:
        check_magnitude(target, "y")
    if target.dtype.kind == "O":
        holes = [k for k, label in enumerate(target.ravel()) if label is None or label != label]
        if holes:
            raise ValueError(
                f"Input y contains NaN: y must be known; row {holes[0]} has {target.ravel()[holes[0]]!r}. Drop it."
            )
    return target


def check_partial_labels(y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels of which some may be unknown (NaN, None or NA), and which are known; without a known one, an error."""
    target: NDArray[Any] = column_or_1d(y, warn=True)
    known = np.ones(len(target), dtype=bool)
    if target.dtype.kind == "f":
        known = ~np.isnan(target)
        infinite = np.flatnonzero(np.isinf(target))
        if infinite.size:
            row = int(infinite[0])
            raise ValueError(
                f"Input y contains infinity: labels must be finite, or NaN where unknown; got {target[row]} in row {row}. "
                "Use NaN for unknown labels."
            )
    elif target.dtype.kind == "O":
        known = np.array([not is_hole(label) for label in target], dtype=bool)
        known_labels = np.array(target[known].tolist())
        if known_labels.dtype.kind == "U" and not all(isinstance(label, str) for label in target[known]):
            raise TypeError(
                "y must hold labels of one kind; got strings and others. Convert all of them to strings, and leave None "
                "where unknown."
            )
        target = np.zeros(len(target), dtype=known_labels.dtype)
        target[known] = known_labels
    if not known.any():
        raise ValueError(
            f"Input y contains NaN in every row: at least one label must be known; got {len(known)} unknown ones. "
            "Give the labels of some rows."
        )
    return target, known


def is_hole(label: object) -> bool:
    """None, NaN, NA or NaT."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def check_partial_targets(y: Any) -> NDArray[np.float64]:
    """Numbers (n,) or (n, targets) of which some may be NaN; every column has one that is known."""
    target: NDArray[np.float64] = check_array(
        y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y"
    )
    if target.ndim > 2:
        raise ValueError(f"y must have shape (n,) or (n, targets); got {target.shape}. Flatten it.")
    unknown = np.flatnonzero(np.isnan(target.reshape(len(target), -1)).all(axis=0))
    if unknown.size:
        where = f"every row of target {int(unknown[0])}" if target.ndim == 2 else "every row"
        raise ValueError(
            f"Input y contains NaN in {where}: at least one value must be known; got {len(target)} unknown ones. "
            "Give the targets of some rows, or drop that target."
        )
    check_magnitude(target, "y")
    return target
