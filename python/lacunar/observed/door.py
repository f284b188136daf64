"""The door: tables, targets and weights are checked here once, and only here are errors about them phrased.

A message says the argument, what it should be, what came (and in which row and column) and the remedy. First X and y of
estimators, and magnitudes. What `Observed` checks of its own arrays is in `contract`, ids are in `ids`. Options that
one family has are checked there: of kernels in `lacunar.kernels`, prices of columns in `lowrank.gaussian`, shards in
`lowrank.parts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import date, time, timedelta
from typing import Any, Literal, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._set_output import ADAPTERS_MANAGER, _get_output_config
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from lacunar._lock import reads
from lacunar._log import warn_user
from lacunar.observed.build import frame_dtype
from lacunar.observed.contract import (
    FLOATS,
    check_sparse_missing,
    check_stored,
    check_two_dimensional,
    refuse_no_table,
    refuse_sparse_format,
)
from lacunar.observed.contract import SparseMissing as SparseMissing
from lacunar.observed.contract import as_array as as_array
from lacunar.observed.contract import float_dtype as float_dtype
from lacunar.observed.contract import refuse_masked as refuse_masked
from lacunar.observed.contract import unmasked as unmasked
from lacunar.observed.names import cells_by_name, columns_by_name
from lacunar.observed.numbers import Place, as_frame, frame_array, numbers_of, plain_arrow, refuse_other_kinds
from lacunar.observed.numbers import is_missing as is_missing
from lacunar.observed.stored import ObservedFile
from lacunar.observed.table import Observed

Unknown = Literal["none", "some", "all"]


def as_observed(
    X: Any,
    *,
    sparse_missing: SparseMissing = "absent",
    warn_counts: bool = True,
) -> Observed:
    """Any table the library reads as `Observed`: an Observed, array, frame or sparse matrix."""
    check_sparse_missing(sparse_missing)
    refuse_file(X)
    if isinstance(X, Observed):
        return X
    if sp.issparse(X):
        refuse_sparse_format(X)
        if warn_counts and sparse_missing == "absent":
            warn_if_counts(X)
        return Observed.from_scipy(X, sparse_missing=sparse_missing)
    return Observed.from_dense(X) if as_frame(X) is None else Observed.from_frame(X)


def refuse_file(X: Any) -> None:
    """TypeError for a file of rows where the whole table is needed, and for input that is no table."""
    refuse_no_table(X)
    if isinstance(X, ObservedFile):
        raise TypeError(
            f"X must be a table in memory here; got {X!r}. Take its batches one by one (`for rows in X.batches()`), or "
            "X.read()."
        )


def warn_if_counts(X: Any) -> None:
    """Warn when a sparse matrix looks like counts, one-hot columns or TF-IDF weights: there absent means zero, not
    missing.
    """
    X = X.tocsr()
    if X.nnz == 0 or X.nnz > 0.5 * np.prod(X.shape, dtype=float):
        return
    if _are_counts(X) or _are_weights(X):
        warn_user(
            "X is sparse, stores no zero and looks like counts, one-hot columns or TF-IDF weights, yet "
            "sparse_missing='absent' takes what is not stored as missing. Pass sparse_missing='nan' if it means zero.",
        )


def _are_counts(X: Any) -> bool:
    """Positive whole numbers, mostly ones, but for columns that nearly every row has: one continuous column beside
    one-hot ones.
    """
    whole_columns = np.bincount(X.indices, minlength=X.shape[1]) > 0.9 * X.shape[0]
    data = X.data[~whole_columns[X.indices]]
    mostly_ones = 2 * np.count_nonzero(data == 1) > data.size
    return bool(data.size and mostly_ones and (data > 0).all() and (data == np.round(data)).all())


def _are_weights(X: Any) -> bool:
    """Positive values whose rows have length 1, as TF-IDF and normalised counts have."""
    filled = np.diff(X.indptr) > 0
    if X.nnz < 2 * np.count_nonzero(filled) or not (X.data > 0).all():
        return False
    sums = (np.add.reduceat(np.abs(X.data.astype(float)) ** power, X.indptr[:-1][filled]) for power in (1, 2))
    return any(np.allclose(total, 1, rtol=0, atol=1e-5) for total in sums)


class ScoreMixin:
    """`score` of scikit-learn's mixins on labels of any library; a masked one counts as missing, which is an error."""

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of the predicted labels, or the coefficient of determination R^2 of predicted
        numbers.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.
        y : array-like of shape (m,) or (m, targets)
            Their labels.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows; None weighs them alike.

        Returns
        -------
        score : float
        """
        weight = None if sample_weight is None else read_weights(sample_weight)
        if weight is not None:
            check_sum_of_weights(weight)
        value: float = super().score(X, plain_target(y), weight)  # type: ignore[misc]  # of the mixin that follows this one
        return value


class FileScoreMixin(ScoreMixin):
    """`score` of scikit-learn's mixins on a file of rows, too, which holds its own labels and weights."""

    @reads
    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy of the predicted labels, or the coefficient of determination R^2 of predicted
        numbers.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix, Observed or ObservedFile, shape (m, d)
            Rows.
        y : array-like of shape (m,) or (m, targets)
            Their labels. None for a file takes the labels in it, and its weights if there are any.
        sample_weight : array-like of shape (m,), default=None
            Weights of the rows; None weighs them alike.

        Returns
        -------
        score : float
        """
        if y is None and isinstance(X, ObservedFile):
            if not X.has_labels:
                raise ValueError(
                    f"y must be the labels of the rows where a file has none; got None and {X!r}. Pass them."
                )
            y, sample_weight = X.labels(), X.weights() if sample_weight is None else sample_weight
        return super().score(X, y, sample_weight)


def in_container(estimator: Any, rows: NDArray[np.float64], X: Any) -> Any:
    """Completed rows as the frame that `set_output` asks for, with the names of the columns of `fit`; the array itself
    otherwise.
    """
    wish = _get_output_config("transform", estimator)["dense"]
    if wish == "default":
        return rows
    names = getattr(estimator, "feature_names_in_", np.array([f"x{j}" for j in range(rows.shape[1])], dtype=object))
    return ADAPTERS_MANAGER.adapters[wish].create_container(rows, X, columns=names)


def column_names(estimator: Any) -> list[str]:
    """Names of the columns of `fit`: x0, x1, ... where they had none."""
    return [
        str(name)
        for name in getattr(estimator, "feature_names_in_", (f"x{j}" for j in range(estimator.n_features_in_)))
    ]


def cells_of(estimator: Any, X: Any, sparse_missing: SparseMissing) -> NDArray[Any]:
    """The cells (m, d) of a table as an estimator reads them: numbers with NaN where missing, or objects."""
    columns = cells_by_name(estimator, X)
    if columns is not None:
        numbers = all(column.dtype.kind in "biuf" for column in columns)
        cells = np.empty((len(columns[0]), len(columns)), dtype=np.float64 if numbers else object)
        for j, column in enumerate(columns):
            cells[:, j] = column
        return cells
    if not (sp.issparse(X) or isinstance(X, Observed)):
        array = as_array(X)
        if array.dtype.kind not in "biuf":
            return np.asarray(unmasked(X), dtype=object)
    return as_observed(X, sparse_missing=sparse_missing, warn_counts=False).to_dense().astype(np.float64)


class TakesMissing(BaseEstimator):
    """An estimator whose X may be sparse, and may have missing entries."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def validate_X(estimator: Any, X: Any, *, reset: bool, sparse_missing: SparseMissing = "absent") -> Observed:
    """X of an estimator as `Observed`, with scikit-learn's checks of names and number of features."""
    table = read_X(estimator, X, reset=reset, sparse_missing=sparse_missing)
    return (
        table if isinstance(table, Observed) else Observed.from_dense(table, n_jobs=getattr(estimator, "n_jobs", None))
    )


def read_X(
    estimator: Any, X: Any, *, reset: bool, sparse_missing: SparseMissing = "absent"
) -> Observed | NDArray[np.float64] | NDArray[np.float32]:
    """What `validate_X` makes entries of: an array where X is dense, with the same checks."""
    check_sparse_missing(sparse_missing)
    refuse_file(X)
    if isinstance(X, Observed):
        _check_width(estimator, X, reset)
        return X
    X = columns_by_name(estimator, X, reset=reset)
    frame = as_frame(X)
    if frame is not None:
        return _read_frame(estimator, frame, reset)
    if sp.issparse(X):
        refuse_sparse_format(X)
        refuse_other_kinds(X.dtype)
        X = check_stored(X)
        if sparse_missing == "absent":
            warn_if_counts(X)
    else:
        X = numbers_of(check_two_dimensional(as_array(X)))
    table = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=list(FLOATS),
        ensure_all_finite=False,
        ensure_min_samples=1,
    )
    rows: Observed | NDArray[np.float64] | NDArray[np.float32] = (
        Observed.from_scipy(table, sparse_missing=sparse_missing) if sp.issparse(table) else table
    )
    return rows


def _read_frame(estimator: Any, frame: Any, reset: bool) -> Observed | NDArray[Any]:
    """The entries of a frame, or the array that it is; its names and its number of columns are checked."""
    validate_data(estimator, frame, reset=reset, skip_check_array=True)
    refuse_empty(frame.shape)
    array = frame_array(frame)
    if array is not None:
        return array
    return Observed.from_frame(frame, dtype=frame_dtype(frame), n_jobs=getattr(estimator, "n_jobs", None))


def refuse_empty(shape: tuple[int, ...]) -> None:
    """ValueError for a table without rows or columns, in the words that scikit-learn's checks look for."""
    for size, what in zip(shape, ("sample(s)", "feature(s)"), strict=False):
        if size == 0:
            raise ValueError(
                f"Found array with 0 {what} (shape={shape}) while a minimum of 1 is required. Check how it was made."
            )


def _check_width(estimator: Any, X: Observed, reset: bool) -> None:
    refuse_empty(X.shape[:1])
    if reset:
        estimator.n_features_in_ = X.shape[1]
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} "
            "features as input."
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
    """X as in `validate_X` and y of the same length without missing values."""
    require_y(estimator, y, "Pass one label for every row.")
    table = validate_X(estimator, X, reset=reset, sparse_missing=sparse_missing)
    target = read_target(y, y_numeric=y_numeric, multi_output=multi_output).values
    check_consistent_length(table, target)
    return table, target


def require_y(estimator: Any, y: Any, remedy: str) -> None:
    """Refuses None, in the words that scikit-learn's checks look for."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None. {remedy}")


def plain_target(y: Any) -> Any:
    """Labels or numbers of any library as NumPy holds them: booleans stay booleans, whole numbers whole numbers, text
    text.

    A missing label is NaN among floating-point numbers and None otherwise, in an array of objects. A frame of one
    column becomes an array (n, 1), one of several columns an array (n, columns). What is no list, series, frame or
    masked array comes back as it is.
    """
    if isinstance(y, Mapping | Set | str | bytes | Iterator):
        raise TypeError(
            f"y must hold a label for every row; got a {type(y).__name__}. Pass a list, an array or a series."
        )
    y = _as_series(unmasked(y, "y", keep_kind=True))
    frame = as_frame(y)
    if frame is not None:
        table = nw.from_native(frame, eager_only=True)
        y = np.column_stack([_labels_of(table[:, k]) for k in range(table.shape[1])])
    if isinstance(y, list | tuple):
        y = _of_list(y)
    if nw.dependencies.is_into_series(y):
        y = _labels_of(nw.from_native(y, series_only=True))
    if getattr(getattr(y, "dtype", None), "kind", None) == "T":  # NumPy's StringDType, which scikit-learn does not read
        y = y.astype(object)
    if getattr(getattr(y, "dtype", None), "kind", None) in ("M", "m"):
        _refuse_times(y.dtype)
    return _typed(_whole_labels(y))


def _refuse_times(kind: Any) -> NoReturn:
    raise TypeError(
        f"y must hold labels or numbers; it holds dates or durations ({kind}). Use text, y.astype(str), for "
        "classes, and numbers, such as days since a date, for regression."
    )


def _typed(y: Any) -> Any:
    """Labels as they came; objects all of which are numbers or booleans as an array of their type."""
    if getattr(getattr(y, "dtype", None), "kind", None) != "O" or not y.size:
        return y
    numeric = all(
        isinstance(label, bool | int | float | np.bool_ | np.number) and not is_missing(label) for label in y.flat
    )
    return np.array(y.tolist()) if numeric else y


def _of_list(labels: Any) -> NDArray[Any]:
    """A list of labels as an array; of objects where one that is missing, or no text, would become text."""
    array = as_array(labels, "y", keep_kind=True)
    if array.dtype.kind not in "US":
        return array
    cells = np.array(labels, dtype=object)
    return (
        array if all(isinstance(cell, str | bytes) and cell[-1:] not in ("\0", b"\0") for cell in cells.flat) else cells
    )


def _whole_labels(y: Any) -> Any:
    """Labels as they came; an error for those that an array of text would merge: text with other kinds, and text that
    ends in NUL.
    """
    if getattr(getattr(y, "dtype", None), "kind", None) != "O":
        return y
    for at, label in np.ndenumerate(y):
        if isinstance(label, date | time | timedelta) or type(label).__name__ == "Period":
            _refuse_times(type(label).__name__)
        if isinstance(label, str | bytes) and label[-1:] in ("\0", b"\0"):
            raise ValueError(
                f"y must hold labels that do not end in the character NUL, which arrays of text drop; got {label!r} in "
                f"row {at[0]}. Strip it, or use other labels."
            )
    if len({isinstance(label, str | bytes) for label in y.flat if not is_missing(label)}) > 1:
        raise TypeError(
            "y must hold labels of one kind; got strings and others. Convert all of them to strings, and leave None "
            "where unknown."
        )
    return y


def _as_series(y: Any) -> Any:
    """Arrays of Arrow and of pandas as a series, which narwhals reads; anything else as it is."""
    pa, pd = nw.dependencies.get_pyarrow(), nw.dependencies.get_pandas()
    if pa is not None and isinstance(y, pa.Array | pa.ChunkedArray):
        return plain_arrow(pa.chunked_array([y]) if isinstance(y, pa.Array) else y)
    if pd is not None and isinstance(y, pd.api.extensions.ExtensionArray | pd.Index):
        return pd.Series(y)
    return y


def _labels_of(series: Any) -> NDArray[Any]:
    """Labels of a narwhals series, (n,)."""
    missing = series.is_null().to_numpy()
    is_wide = series.dtype in (nw.Int128, nw.UInt128)  # NumPy has no such numbers
    if is_wide and not missing.any():
        return np.array(series.to_list())
    if not missing.any() or series.dtype.is_float() or series.dtype.is_temporal():
        values: NDArray[Any] = series.to_numpy()
        return _of_list(series.to_list()) if values.dtype.kind == "U" else values
    labels = np.empty(len(series), dtype=object)
    labels[~missing] = series.drop_nulls().to_list()
    return labels


def read_weights(sample_weight: Any) -> NDArray[np.float64]:
    """Weights of rows, or one number, in float64; ValueError for the first that is masked, no number or not finite."""
    cells = as_array(refuse_masked(sample_weight, "sample_weight"), "sample_weight")
    weight = numbers_of(cells, Place("sample_weight", remedy="Pass a number for every row.")).astype(np.float64)
    unfit = np.argwhere(~np.isfinite(weight))
    if unfit.size:
        raise ValueError(
            f"sample_weight must be finite; got {weight[tuple(unfit[0])]} in row {unfit[0][0]}. Give the row weight 0, or leave it "
            "out."
        )
    return weight


class PartialTarget(NamedTuple):
    """Labels or numbers (n,) or (n, targets) as `read_target` gives them, and which of them are known."""

    values: NDArray[Any]
    known: NDArray[np.bool_]


def read_target(
    y: Any,
    *,
    y_numeric: bool = False,
    multi_output: bool = False,
    unknown: Unknown = "none",
    allow_tiny: bool = False,
    item: str = "row",
) -> PartialTarget:
    """Labels, or with `y_numeric` numbers: (n,), or with `multi_output` (n, targets) too; infinity is refused.

    What is NaN, None or NA is unknown. `unknown` says how many may be: "none", "some" but not all of a target, or
    "all". Labels that are unknown come back as any value, numbers as NaN. `allow_tiny` allows numbers whose squares
    vanish, for an estimator that scales them; `item` says in messages what a label belongs to.
    """
    values = _array_of(plain_target(y), multi_output)
    if y_numeric:
        values = _target_numbers(values)
    known = ~_missing(values)
    _refuse_unfit(values, known, unknown, item)
    if unknown == "some":
        _refuse_all_unknown(known)
    if y_numeric:
        check_magnitude(values, "y", allow_tiny=allow_tiny)
    return PartialTarget(values if y_numeric or unknown == "none" else _labels_where(known, values), known)


def _array_of(y: Any, multi_output: bool) -> NDArray[Any]:
    """y as an array of one dimension, or of one or two."""
    plain = type(y) is np.ndarray and y.dtype.kind in "fiubU" and y.size > 0
    if plain and (y.ndim in (1, 2) if multi_output else y.ndim == 1 and y.flags.c_contiguous):
        return y  # type: ignore[no-any-return]  # labels of a file come block by block, pass after pass
    array: NDArray[Any] = (
        check_array(y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y")
        if multi_output
        else column_or_1d(_one_target(y), warn=True)
    )
    return array


def _one_target(y: Any) -> Any:
    """Labels as they came; ValueError where they have several columns."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape  # sklearn's checks pass what NumPy may only convert
    if len(shape) == 2 and shape[1] > 1:
        raise ValueError(
            f"y should be a 1d array, one target a row; got shape {shape}. Fit one model for each column; "
            "lacunar.LacunarRegressor takes several targets of numbers, with gaps in each."
        )
    return y


def _target_numbers(target: NDArray[Any]) -> NDArray[np.float64]:
    """Targets of a regressor as numbers."""
    remedy = "Text says classes: use a classifier, such as lacunar.LacunarClassifier."
    return numbers_of(target, Place("y", remedy=remedy)).astype(np.float64, copy=False)


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which labels or numbers are NaN, None or NA, in the shape of the values."""
    missing: NDArray[np.bool_] = np.zeros(values.shape, dtype=bool)
    if values.dtype.kind == "f":
        missing = np.isnan(values)
    elif values.dtype.kind == "O":
        missing[...] = np.reshape([is_missing(label) for label in values.flat], values.shape)
    return missing


def _refuse_unfit(values: NDArray[Any], known: NDArray[np.bool_], unknown: Unknown, item: str) -> None:
    """ValueError for the first label that is infinite, or unknown where all must be known."""
    unfit = np.isinf(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    what, wish, remedy = "infinity", "finite, or NaN where unknown", "Use NaN for unknown labels."
    if unknown == "none":
        unfit, what, wish = unfit | ~known, "NaN or infinity", "known and finite"
        remedy = (
            "Drop what has no label, or take a learner that such rows teach too: LacunarClassifier, or of one or several "
            "targets LacunarRegressor and lacunar.lowrank.SLRMRegressor."
        )
    if unfit.any():
        at = int(np.argwhere(unfit)[0][0])
        raise ValueError(f"Input y contains {what}: y must be {wish}; got {values[at]} in {item} {at}. {remedy}")


def _refuse_all_unknown(known: NDArray[np.bool_]) -> None:
    """ValueError where a target (n,), or a column of targets (n, targets), has no row that is known."""
    refuse_empty(known.shape[:1])
    nowhere = np.flatnonzero(~np.atleast_1d(known.any(axis=0)))
    if nowhere.size:
        where = f"every row of target {int(nowhere[0])}" if known.ndim == 2 else "every row"
        raise ValueError(
            f"Input y contains NaN in {where}: at least one value must be known; got {len(known)} unknown ones. "
            "Give y in some rows, or drop that target."
        )


def refuse_uncounted(known: NDArray[np.bool_], weight: NDArray[np.float64] | None, name: str = "sample_weight") -> None:
    """ValueError where a target, known in some rows (n,) or (n, targets), is known in none of a weight (n,) above 0."""
    counted = known if weight is None else known[weight > 0]
    nowhere = np.flatnonzero(~np.atleast_1d(counted.any(axis=0)))
    if nowhere.size:
        which = f"target {int(nowhere[0])} of y" if known.ndim == 2 and known.shape[1] > 1 else "y"
        raise ValueError(
            f"{name} must be above 0 in some row whose target is known; got 0 in every row in which {which} is. "
            "Raise the weight of such rows, or give y in rows that have one."
        )


def _labels_where(known: NDArray[np.bool_], labels: NDArray[Any]) -> NDArray[Any]:
    """Labels in the type of the known ones, zero where unknown; arrays that hold no objects are returned unchanged."""
    if labels.dtype.kind != "O":
        return labels
    known_labels = np.array(labels[known].tolist())
    typed = np.zeros(labels.shape, dtype=known_labels.dtype)
    typed[known] = known_labels
    return typed


def flat_target(y: NDArray[Any]) -> NDArray[Any]:
    """Targets (n, 1) as (n,), with the warning of scikit-learn; others as they are."""
    return column_or_1d(y, warn=True) if y.shape[1:] == (1,) else y


def warn_if_unlabelled(known: NDArray[np.bool_]) -> None:
    """Warn once that rows have no label, `known` says which do, of each target where it is a table; a missing label may
    be meant, or an accident of reading.
    """
    lacking = np.count_nonzero(~known.reshape(len(known), -1).all(axis=1))
    if lacking and known.ndim == 2 and known.shape[1] > 1:
        warn_user(
            f"{lacking} of {len(known)} rows lack a label of some target (NaN, None or NA in y): each target is learned "
            "from the rows that have it, columns and the low-rank model from all. Drop rows only if this is not meant."
        )
    elif lacking:
        warn_user(
            f"{lacking} of {len(known)} rows lack a label (NaN, None or NA in y): columns and the "
            "low-rank model learn from them, the predictors of y from the rows that have one. Drop them from X and y "
            "if this is not meant.",
        )


def check_numbers(values: Any, name: str, *, ensure_2d: bool = True) -> NDArray[np.float64]:
    """Finite numbers in float64, none missing: codes, a basis, weights. ValueError otherwise."""
    values = numbers_of(as_array(values, name), Place(name))
    numbers: NDArray[np.float64] = check_array(values, dtype=np.float64, ensure_2d=ensure_2d, input_name=name)
    return numbers


def read_answers(values: Any, name: str) -> NDArray[np.float64]:
    """Measured numbers of any shape, NaN where they were refused."""
    cells = numbers_of(
        as_array(values, name), Place(name, remedy="Answer with numbers, NaN for what was not measured.")
    )
    return cells.astype(np.float64)


def check_classes(labels: NDArray[Any], known: NDArray[np.bool_] | None = None) -> None:
    """ValueError for labels (n,), of which those in `known` (n,) count, that are numbers with fractions, or no classes."""
    known = np.ones(len(labels), dtype=bool) if known is None else known
    of_floats = labels.dtype.kind == "f"
    fractions = np.flatnonzero(known & (labels != np.floor(labels))) if of_floats else np.zeros(0, dtype=np.intp)
    if fractions.size:  # begins with the words that scikit-learn's checks look for
        raise ValueError(
            f"Unknown label type: y must hold classes; got {labels[fractions[0]]:g} in row {fractions[0]}. Take a "
            "regressor for numbers, or cut them into classes."
        )
    check_classification_targets(labels[known])


def read_labels(y: Any, n: int) -> NDArray[Any]:
    """Labels (n,) of n pairs, all of them known."""
    labels = read_target(y, item="position").values
    if len(labels) != n:
        raise ValueError(
            f"y must hold one label for each of {n} pairs; got shape {labels.shape}. Pass as many labels as pairs."
        )
    return labels


LARGEST = 1e150  # sums of squares of so large numbers stay finite
SMALLEST = 1e-150  # squares of so small numbers keep their digits


def check_magnitude(values: NDArray[Any], name: str, *, allow_tiny: bool = False) -> None:
    """Targets (n,) or (n, targets) of moderate size, and none so tiny that squares vanish unless `allow_tiny`; NaN and
    0 are let through.
    """
    if not allow_tiny:
        refuse_tiny(values, name)
    large = np.abs(values) > LARGEST
    if large.any():
        at = np.argwhere(large)[0]
        raise ValueError(
            f"{name} must be at most {LARGEST:g} in modulus, so that squares stay finite; got {values[tuple(at)]:g} in "
            f"row {int(at[0])}. Use other units."
        )


def check_sum_of_weights(weight: NDArray[np.float64]) -> None:
    """Weights (n,) of rows whose sum, and products with squares, stay finite."""
    with np.errstate(over="ignore"):
        total = float(np.sum(weight))
    if not total <= LARGEST:
        row = int(np.argmax(weight))  # a NaN before all others
        raise ValueError(
            f"sample_weight must be finite with a sum of at most {LARGEST:g}; it sums to {total:g}, with "
            f"{weight[row]:g} in row {row}. Divide the weights by their mean."
        )


def refuse_tiny(values: NDArray[Any], name: str) -> None:
    """ValueError for values, not all 0 or NaN, whose squares all vanish."""
    largest = float(np.abs(values).max(initial=0.0, where=~np.isnan(values)))
    if 0 < largest < SMALLEST:
        raise ValueError(
            f"{name} must reach {SMALLEST:g} in modulus, so that squares do not vanish; its largest is {largest:g}. "
            "Use other units."
        )


_LEAST_ROOT = 1e-90  # noise, and products of squares, are kept above the square of this


def check_squares(n: NDArray[Any], sums: NDArray[np.float64], squares: Any) -> None:
    """Numbers or weights (d,), sums (d,) and sums of squares of entries that are not standardised: all 0, or squares
    that do not vanish.
    """
    if np.any(sums) and np.sqrt(np.sum(squares) / np.sum(n)) < _LEAST_ROOT:
        raise ValueError(
            f"X must hold values whose root mean square is at least {_LEAST_ROOT:g}, so that their squares do not "
            "vanish; it is below that. Use other units, or scale the columns (sklearn.preprocessing.StandardScaler "
            "keeps NaN)."
        )


def check_sums(sums: NDArray[np.float64], what: str) -> None:
    """Sums of products of entries that did not overflow."""
    if not np.isfinite(sums).all():
        raise ValueError(
            f"X must hold values whose {what} float64 can hold; they overflow. Scale the columns "
            f"(sklearn.preprocessing.StandardScaler keeps NaN), or leave out values beyond {LARGEST:g}."
        )
