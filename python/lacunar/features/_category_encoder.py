"""Categories as columns of 0 and 1 that keep their holes."""

from __future__ import annotations

from numbers import Integral, Number
from typing import Any, ClassVar

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from lacunar._check import is_hole

_Floats = NDArray[np.float64]
_Column = NDArray[Any]


class CategoryEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """One column of 0 and 1 a category, with a hole in all of them where the category is missing.

    `sklearn.preprocessing.OneHotEncoder` makes a category of what is missing; here it stays missing, as the estimators of this
    package expect. Columns of numbers pass through as they are, so that a mixed frame needs no
    `sklearn.compose.ColumnTransformer`.

    Parameters
    ----------
    drop_binary : bool, default=True
        Columns with two categories become one column, 1 for the second, not two that say the same.
    max_categories : int, default=100
        Columns with more categories than this are refused: most likely they are identifiers or free text.
    handle_unknown : {"missing", "error"}, default="missing"
        What a category means that `fit` did not see: a hole, or an error.

    Attributes
    ----------
    categories_ : list of ndarray or None
        Sorted categories of every column as text, None for one of numbers.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Too many categories, infinite numbers, text in a column that had numbers in `fit`, unknown categories with
        `handle_unknown="error"`. The message names the column and the row.

    See Also
    --------
    lacunar.KarmaClassifier : Learns from the result, holes and all.
    sklearn.preprocessing.OneHotEncoder : Makes a category of what is missing.

    Notes
    -----
    A column is one of categories when its type says so (text, categorical, enum), or when one of objects holds anything but
    numbers; all others are numbers. Categories are compared as text, and empty text is missing. O(n d) and one sort a column.

    Examples
    --------
    >>> import pandas as pd
    >>> from lacunar.features import CategoryEncoder
    >>> X = pd.DataFrame({"age": [31, None, 58], "colour": ["red", None, "blue"]})
    >>> encoder = CategoryEncoder().fit(X)
    >>> encoder.get_feature_names_out()
    array(['age', 'colour_red'], dtype=object)
    >>> encoder.transform(X)
    array([[31.,  1.],
           [nan, nan],
           [58.,  0.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "drop_binary": ["boolean"],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "handle_unknown": [StrOptions({"missing", "error"})],
    }

    def __init__(self, *, drop_binary: bool = True, max_categories: int = 100, handle_unknown: Any = "missing") -> None:
        self.drop_binary = drop_binary
        self.max_categories = max_categories
        self.handle_unknown = handle_unknown

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> CategoryEncoder:
        """Learn the categories of every column.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
            NaN, None and NA are missing.
        y : ignored

        Returns
        -------
        self : CategoryEncoder
        """
        self.categories_: list[NDArray[np.str_] | None] = [
            None if column.dtype == np.float64 else self._categories(column, name)
            for name, column in self._columns(X, reset=True)
        ]
        return self

    def transform(self, X: Any) -> _Floats:
        """Numbers and categories as columns.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        table : ndarray of shape (m, outputs)
            NaN where X has a hole.
        """
        check_is_fitted(self)
        blocks = [
            _as_numbers(column, name)[:, None] if categories is None else self._indicators(column, categories, name)
            for (name, column), categories in zip(self._columns(X, reset=False), self.categories_, strict=True)
        ]
        return np.hstack(blocks)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: the column's, and an underscore and the category behind it.

        Parameters
        ----------
        input_features : sequence of d str, default=None
            Names of columns for an X that had none; x0, x1 ... otherwise.

        Returns
        -------
        names : ndarray of shape (outputs,)
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        made = []
        for name, categories in zip(names, self.categories_, strict=True):
            made += [name] if categories is None else [f"{name}_{category}" for category in self._shown(categories)]
        return np.array(made, dtype=object)

    def _shown(self, categories: NDArray[np.str_]) -> NDArray[np.str_]:
        return categories[1:] if self.drop_binary and len(categories) == 2 else categories

    def _columns(self, X: Any, *, reset: bool) -> list[tuple[Any, _Column]]:
        """Names, and numbers (float64) or labels (text, "" where missing)."""
        if nw.dependencies.is_into_dataframe(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = nw.from_native(X, eager_only=True)
            if 0 in frame.shape:
                raise ValueError(
                    f"X must have rows and columns; got a frame of shape {frame.shape}. Check how it was made."
                )
            return [(name, _frame_column(frame.get_column(name), name)) for name in frame.columns]
        numeric = sp.issparse(X) or np.asarray(X).dtype.kind not in "OUST"
        kind: Any = np.float64 if numeric else object
        table = validate_data(self, X, reset=reset, dtype=kind, ensure_all_finite="allow-nan" if numeric else False)
        return [(j, _column(column, j)) for j, column in enumerate(table.T)]

    def _categories(self, labels: NDArray[np.str_], name: Any) -> NDArray[np.str_]:
        known = np.unique(labels[labels != ""])
        if len(known) > self.max_categories:
            raise ValueError(
                f"a column must have at most max_categories={self.max_categories} categories; got {len(known)} in column {name!r}, "
                f"{str(known[0])!r} among them. Drop it if it holds identifiers, or raise max_categories."
            )
        return known

    def _indicators(self, column: _Column, categories: NDArray[np.str_], name: Any) -> _Floats:
        labels = _as_labels(column)
        block: _Floats = (labels[:, None] == self._shown(categories)[None, :]).astype(np.float64)
        known = np.isin(labels, categories)
        block[~known] = np.nan
        unknown = np.flatnonzero(~known & (labels != ""))
        if self.handle_unknown == "error" and unknown.size:
            raise ValueError(
                f"categories must be those of fit; got {str(labels[unknown[0]])!r} in row {unknown[0]}, column {name!r}. "
                "Use handle_unknown='missing' to make holes of new ones."
            )
        return block

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _frame_column(series: Any, name: Any) -> _Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return _column(series.cast(nw.Float64).to_numpy(), name)
    return _column(np.array([*series.to_list(), None], dtype=object)[:-1], name)  # never two-dimensional


def _column(values: NDArray[Any], name: Any) -> _Column:
    """Numbers as float64 with NaN; anything else as text, "" where missing."""
    if values.dtype.kind == "O" and not all(isinstance(v, Number) for v in values if not is_hole(v)):
        return np.array(["" if is_hole(v) else str(v) for v in values])
    if values.dtype.kind in "UST":
        text: _Column = values.astype(str)
        return text
    numbers: _Floats = np.array(
        [np.nan if values.dtype.kind == "O" and is_hole(v) else v for v in values], dtype=np.float64
    )
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        raise ValueError(
            f"X must be finite where observed; got {numbers[infinite[0]]} in row {infinite[0]}, column {name!r}. "
            "Replace infinities by a number, or by NaN if they mean missing."
        )
    return numbers


def _as_numbers(column: _Column, name: Any) -> _Floats:
    """A column that had numbers in `fit`."""
    if column.dtype == np.float64:
        return column
    for row, text in enumerate(column):
        try:
            float(text or "nan")
        except ValueError:
            raise ValueError(
                f"column {name!r} had numbers in fit; got {str(text)!r} in row {row}. Convert it to numbers, NaN where unknown."
            ) from None
    return np.array([float(text or "nan") for text in column])


def _as_labels(column: _Column) -> NDArray[np.str_]:
    """A column that had categories in `fit`, which one batch may have without any text."""
    if column.dtype != np.float64:
        return column
    return np.array(["" if np.isnan(v) else str(int(v)) if v == int(v) else str(v) for v in column])
