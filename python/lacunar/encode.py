"""Tables of numbers, categories and dates as numbers; what is missing stays missing."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from datetime import date, datetime, timedelta
from numbers import Integral, Number
from typing import Any, ClassVar, Literal, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from lacunar._state import all_or_nothing
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.cells import (
    OpenReading,
    Reading,
    counted,
    cut,
    dates_of,
    learn_readings,
    plain_date,
    text_column,
    tidied,
)
from lacunar.observed.door import is_missing, refuse_file, unmasked
from lacunar.observed.names import columns_by_name
from lacunar.observed.rules import Array, Instance, Items, Optional, Rule, Word

__all__ = ["TableEncoder"]

_Column = NDArray[Any]  # numbers (float64), dates (datetime64[us]) or text (objects, as one long text would widen all)

# What a column of every kind may hold; of a category its first level. A loaded model is asked a row of these.
_EXAMPLES = {
    "number": 0.5,
    "category": None,
    "date": date(2026, 3, 31),
    "datetime": datetime(2026, 3, 31, 12, 30),
    "empty": 0.5,
    "dropped": "free text",
}
_DATE_PARTS = ("days", "month", "day", "weekday")
_DAY = np.timedelta64(1, "D")
_SHOWN = 5  # words of a column, and columns, in a warning
_USUAL = {
    "number": Reading(),
    "date": Reading("date"),
    "datetime": Reading("date"),
}  # of text in a column that had none in `fit`


class _Cells(NamedTuple):
    """One column of a table."""

    name: Any
    values: _Column  # text, with numbers among it as they are, "" where missing; or numbers, or dates
    is_category: bool = False  # by its type

    @property
    def has_text(self) -> bool:
        return bool(self.values.dtype == object)


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Numbers, categories, yes/no answers and dates as columns of numbers; missing entries stay missing.

    `sklearn.preprocessing.OneHotEncoder` makes a category of what is missing; here all columns made of a missing entry are NaN,
    as the estimators of this package expect.

    Parameters
    ----------
    categories : {"onehot", "ordinal"}, default="onehot"
        "onehot": a column of 0 and 1 for every category. "ordinal": one column with the number of the category in sorted order,
        for learners that split categories themselves; `is_categorical_` says which columns those are.
    drop_binary : bool, default=True
        Whether a column with two categories becomes one column, 1 for the second, rather than two that say the same.
    max_categories : int, default=100
        A text column with more categories than this is taken for identifiers or free text.
    text : {"error", "drop"}, default="error"
        What happens to such a column: an error that names it, or it is left out.
    handle_unknown : {"missing", "error"}, default="missing"
        What a category means that `fit` did not see: a missing entry, or an error.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in text that may be read either way, such as 1,234. None finds it out, and refuses such a column.
    dates : {"dmy", "mdy"}, default=None
        Whether 01/02/2026 is in February or in January. None finds it out, and refuses a column that leaves it open.

    Attributes
    ----------
    kinds_ : list of str
        What every column holds: "number", "category", "date", "datetime" (a date with a time of day), "empty" (nothing was
        observed in `fit`) or "dropped".
    categories_ : list of ndarray or None
        Sorted categories of every column as text, None for a column of another kind.
    readings_ : list of Reading or None
        How the text of every column says numbers or dates, which `transform` reads in the same way; None for a column without such text.
    is_categorical_ : ndarray of shape (outputs,), bool
        Which columns of `transform` hold numbers of categories: `categorical_features` of
        `sklearn.ensemble.HistGradientBoostingClassifier`.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        Too many categories, infinite numbers, text that may be read in two ways, unknown categories with
        `handle_unknown="error"`, a frame without any column that `fit` saw, or with two of one name. The message names the column.
    TypeError
        A cell that holds a list, tuple, dict, set or array; an `Observed` table or a file of rows.

    Warns
    -----
    UserWarning
        Words in a column of numbers or dates, which are missing; columns of a frame that are absent, and missing, or that `fit` never saw.

    See Also
    --------
    lacunar.KarmaClassifier : Learns from the result, missing entries included.
    sklearn.preprocessing.OneHotEncoder : Makes a category of what is missing.

    Notes
    -----
    Booleans are numbers 0 and 1. Text is read as in `lacunar compare`: numbers with a decimal comma, thousands, a unit or a sign of money, and dates
    in a usual form are found out, unless the type of the column is that of categories; up to five words among many numbers ("<5") are missing,
    with a warning, as are "NA", "n/a", "?", "null", "none" and "." everywhere. A column of dates becomes the days since 1970, the month, the day of the month, the weekday (0 is Monday) and,
    when `fit` saw a time of day, the hour; times with an offset are taken to UTC. Durations are numbers of days. Categories are compared as text, whole numbers among them
    without a point, and empty text is missing. Columns of a frame go by name. A column of which `fit` saw nothing passes numbers on, and whatever else it holds later is missing. O(n d) and one
    sort a column.

    Examples
    --------
    >>> import pandas as pd
    >>> from lacunar.encode import TableEncoder
    >>> X = pd.DataFrame({"age": [31, None, 58], "member": ["yes", None, "no"]})
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.get_feature_names_out()
    array(['age', 'member_yes'], dtype=object)
    >>> encoder.transform(X)
    array([[31.,  1.],
           [nan, nan],
           [58.,  0.]])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "categories": [StrOptions({"onehot", "ordinal"})],
        "drop_binary": ["boolean"],
        "max_categories": [Interval(Integral, 1, None, closed="left")],
        "text": [StrOptions({"error", "drop"})],
        "handle_unknown": [StrOptions({"missing", "error"})],
        "decimal": [StrOptions({".", ","}), None],
        "dates": [StrOptions({"dmy", "mdy"}), None],
    }

    _schema: ClassVar[dict[str, Rule]] = {
        "kinds_": Items(Word(tuple(_EXAMPLES)), length="d"),
        "categories_": Items(Optional(Array("U", ("levels",), ascending=True)), length="d", alike=False),
        "readings_": Items(Optional(Instance(Reading)), length="d"),
    }

    def __init__(
        self,
        *,
        categories: Literal["onehot", "ordinal"] = "onehot",
        drop_binary: bool = True,
        max_categories: int = 100,
        text: Literal["error", "drop"] = "error",
        handle_unknown: Literal["missing", "error"] = "missing",
        decimal: Literal[".", ","] | None = None,
        dates: Literal["dmy", "mdy"] | None = None,
    ) -> None:
        self.categories = categories
        self.drop_binary = drop_binary
        self.max_categories = max_categories
        self.text = text
        self.handle_unknown = handle_unknown
        self.decimal = decimal
        self.dates = dates

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn what every column holds, and its categories.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
            NaN, None and NA are missing.
        y : ignored

        Returns
        -------
        self : TableEncoder
        """
        self._learn(X)
        return self

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit_transform(self, X: Any, y: Any = None) -> Floats:
        """`fit`, and every column of X as numbers: the table is read once.

        Parameters
        ----------
        X : frame (pandas, polars, Arrow) or array-like, shape (n, d)
        y : ignored

        Returns
        -------
        table : ndarray of shape (n, outputs)
        """
        return self._encoded(self._learn(X))

    def _learn(self, X: Any) -> list[_Cells]:
        """Learn what every column holds; the columns that were read."""
        self.kinds_: list[str] = []
        self.categories_: list[NDArray[np.object_] | None] = []
        columns = self._columns(X, reset=True)
        self.readings_ = self._learned_readings(columns)
        for column, reading in zip(columns, self.readings_, strict=True):
            kind, known = self._learned(column, reading)
            self.kinds_.append(kind)
            self.categories_.append(known)
        if all(kind == "dropped" for kind in self.kinds_):
            raise ValueError(
                f"X must have a column of numbers, dates or at most max_categories={self.max_categories} categories; got "
                f"{len(self.kinds_)} columns of free text. Make numbers of the text, or raise max_categories."
            )
        readings = ((column, reading) for column, reading in zip(columns, self.readings_, strict=True) if reading)
        _warn_of_words((column, _counts(column, reading.words)) for column, reading in readings)
        return columns

    def transform(self, X: Any) -> Floats:
        """Every column as numbers.

        Parameters
        ----------
        X : frame or array of shape (m, d)

        Returns
        -------
        table : ndarray of shape (m, outputs)
            NaN where X has a missing entry.
        """
        check_is_fitted(self)
        return self._encoded(self._columns(X, reset=False))

    def _encoded(self, cells: list[_Cells]) -> Floats:
        """Columns that were read as numbers (m, outputs)."""
        columns = [
            _read(column, reading or _USUAL[kind]) if kind in _USUAL else (column, Counter())
            for column, kind, reading in zip(cells, self.kinds_, self.readings_, strict=True)
        ]
        _warn_of_words(columns)
        parts = zip(columns, self.kinds_, self.categories_, strict=True)
        return np.hstack([self._block(column.values, column.name, kind, known) for (column, _), kind, known in parts])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: the column's, with the category or the part of the date behind an underscore.

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
        outputs: list[str] = []
        for name, kind, known in zip(names, self.kinds_, self.categories_, strict=True):
            outputs += [f"{name}_{part}" if part else str(name) for part in self._parts(kind, known)]
        return np.array(outputs, dtype=object)

    @property
    def source_(self) -> NDArray[np.intp]:
        """Number of the column that each column of `transform` is made of, shape (n_outputs,)."""
        widths = [len(self._parts(kind, known)) for kind, known in zip(self.kinds_, self.categories_, strict=True)]
        return np.repeat(np.arange(len(widths)), widths)

    @property
    def is_categorical_(self) -> NDArray[np.bool_]:
        """Which columns of `transform` hold numbers of categories."""
        flags = np.array([self.categories == "ordinal" and kind == "category" for kind in self.kinds_], dtype=bool)
        return flags[self.source_]

    def _parts(self, kind: str, known: NDArray[np.object_] | None) -> list[str]:
        """What distinguishes the columns made of one column; "" for one that keeps its name."""
        if kind == "dropped":
            return []
        if kind in ("date", "datetime"):
            return [*_DATE_PARTS, *(["hour"] if kind == "datetime" else [])]
        if known is None or self.categories == "ordinal":
            return [""]
        return [str(category) for category in self._shown(known)]

    def _shown(self, known: NDArray[np.object_]) -> NDArray[np.object_]:
        return known[1:] if self.drop_binary and len(known) == 2 else known

    def _columns(self, X: Any, *, reset: bool) -> list[_Cells]:
        """Every column of a table, by name where both X and that of `fit` have names."""
        if nw.dependencies.is_into_dataframe(X):
            X = columns_by_name(self, X, reset=reset)
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = nw.from_native(X, eager_only=True)
            if 0 in frame.shape:
                raise ValueError(
                    f"X must have rows and columns; got a frame of shape {frame.shape}. Check how it was made."
                )
            categories = [dtype in _CATEGORICAL for dtype in frame.schema.values()]
            columns = columns_of_frame(frame, _cells_of)
            return [_Cells(*column, flag) for column, flag in zip(columns, categories, strict=True)]
        refuse_file(X)
        if isinstance(X, Observed):
            raise TypeError(
                "X must be a frame or an array of cells; got an Observed table, which holds numbers already. Pass it to the estimator as it is."
            )
        X = unmasked(X)
        kind = "f" if sp.issparse(X) else np.asarray(X).dtype.kind
        if kind == "M":  # objects of a finer unit than microseconds would be integers
            X = np.asarray(X).astype("datetime64[us]").astype(object)
        if kind == "m":
            X = np.asarray(X) / _DAY  # NaN where NaT
        numeric = kind not in "OUSTM"
        table = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64 if numeric else object,
            ensure_all_finite=False,  # `column_of` says where an infinity is
        )
        return [_Cells(j, _cells_of(column, j)) for j, column in enumerate(table.T)]

    def _learned_readings(self, columns: list[_Cells]) -> list[Reading | None]:
        """How the text of every column says numbers or dates."""
        texts = {
            j: text_column(column.name, column.values, column.is_category)
            for j, column in enumerate(columns)
            if column.has_text
        }
        try:
            readings = learn_readings(texts, self.decimal, self.dates)
        except OpenReading as error:
            remedies = {
                "decimal": "Convert it to numbers, or say TableEncoder(decimal=',') or decimal='.'",
                "dates": "Write dates as 2026-03-31, or say TableEncoder(dates='dmy') or dates='mdy'",
            }
            raise ValueError(f"X must hold text that reads in one way; {error}. {remedies[error.wish]}.") from None
        return [readings.get(j) for j in range(len(columns))]

    def _learned(self, column: _Cells, reading: Reading | None) -> tuple[str, NDArray[np.object_] | None]:
        """The kind of a column, and its categories."""
        if column.has_text and reading is None:
            return self._categories(as_labels(column.values), column.name)
        values = _read(column, reading)[0].values if reading is not None else column.values
        if values.dtype.kind == "M":
            seen = values[~np.isnat(values)]
            return "datetime" if np.any(seen != seen.astype("datetime64[D]")) else "date", None
        return "empty" if np.isnan(values).all() else "number", None

    def _categories(self, labels: NDArray[np.object_], name: Any) -> tuple[str, NDArray[np.object_] | None]:
        known = np.array(sorted(set(labels) - {""}), dtype=object)
        if len(known) <= self.max_categories:
            return "category", known
        if self.text == "drop":
            return "dropped", None
        raise ValueError(
            f"a text column must have at most max_categories={self.max_categories} categories; got {len(known)} in column "
            f"{name!r}, {str(known[0])!r} among them. Drop it if it holds identifiers (text='drop' does so), make numbers of free text "
            "with sklearn.feature_extraction.text, parse dates with pandas.to_datetime, or raise max_categories."
        )

    def _block(self, column: _Column, name: Any, kind: str, known: NDArray[np.object_] | None) -> Floats:
        """The columns (m, outputs) made of one column, that is read where it is one of numbers or dates."""
        if kind == "dropped":
            return np.empty((len(column), 0))
        if kind == "empty":
            return (column if column.dtype == np.float64 else np.full(len(column), np.nan))[:, None]
        if kind == "number":
            return column[:, None]
        if kind in ("date", "datetime"):
            return _date_numbers(column, with_hour=kind == "datetime")
        assert known is not None
        codes = self._level_numbers(as_labels(column), known, name)
        if self.categories == "ordinal":
            return np.where(codes < 0, np.nan, codes)[:, None]
        shown = np.arange(len(known) - len(self._shown(known)), len(known))
        return np.where(codes[:, None] < 0, np.nan, codes[:, None] == shown)

    def _level_numbers(self, labels: NDArray[np.object_], known: NDArray[np.object_], name: Any) -> NDArray[np.intp]:
        """Numbers of the categories; -1 where missing or unknown."""
        places = {category: k for k, category in enumerate(known)}
        codes = np.array([places.get(label, -1) for label in labels], dtype=np.intp)
        unknown = np.flatnonzero((codes < 0) & (labels != ""))
        if self.handle_unknown == "error" and unknown.size:
            raise ValueError(
                f"categories must be those of fit; got {str(labels[unknown[0]])!r} in row {unknown[0]}, column {name!r}. "
                "Use handle_unknown='missing' to take new ones as missing."
            )
        return codes

    def _check_loaded(self) -> None:
        """Refuse a model file whose kinds and categories do not belong together."""
        if "kinds_" in vars(self) and "readings_" not in vars(self):  # a file from before text was read
            self.readings_ = [None] * len(self.kinds_)
        for kind, known in zip(vars(self).get("kinds_", ()), vars(self).get("categories_", ()), strict=True):
            if (kind == "category") != (known is not None and len(known) > 0):
                raise ValueError("kinds_ and categories_ of the model file contradict each other. Fit again")
        for kind, reading in zip(vars(self).get("kinds_", ()), vars(self).get("readings_", ()), strict=True):
            if reading is not None and kind != "empty" and (kind not in _USUAL or _USUAL[kind].kind != reading.kind):
                raise ValueError("kinds_ and readings_ of the model file contradict each other. Fit again")

    def _trial_rows(self) -> list[NDArray[np.object_]]:
        """Tables (1, d) that this encoder reads: one with nothing observed, one with an entry of its kind in every column."""
        if "kinds_" not in vars(self):
            return []
        columns = zip(self.kinds_, self.categories_, strict=True)
        entries = [_EXAMPLES[kind] if known is None else known[0] for kind, known in columns]
        return [objects([None] * len(entries))[None], objects(entries)[None]]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


_CATEGORICAL = (nw.Categorical, nw.Enum)


def columns_of_frame(
    frame: Any, cells_of: Callable[[NDArray[Any], Any], _Column] | None = None
) -> list[tuple[Any, _Column]]:
    """Names and values, by `cells_of` or as `column_of` makes them; columns of numbers are taken together, as there may be thousands."""
    numeric = [k for k, dtype in enumerate(frame.schema.values()) if dtype.is_numeric() or dtype == nw.Boolean]
    # By number: a frame may name its columns by numbers.
    block = frame[:, numeric].to_numpy() if numeric else np.empty((0, 0))
    places = {k: j for j, k in enumerate(numeric)} if block.dtype.kind in "biuf" else {}
    return [
        (name, column_of(block[:, places[k]], name) if k in places else _column_of_series(frame[:, k], name, cells_of))
        for k, name in enumerate(frame.columns)
    ]


def _column_of_series(series: Any, name: Any, cells_of: Callable[[NDArray[Any], Any], _Column] | None) -> _Column:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        return column_of(series.cast(nw.Float64).to_numpy(), name)
    if series.dtype in (nw.Date, nw.Datetime):
        if getattr(series.dtype, "time_zone", None) is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        dates: _Column = series.cast(nw.Datetime("us")).to_numpy().astype("datetime64[us]")
        return dates
    if series.dtype == nw.Duration:
        days: _Column = series.to_numpy() / _DAY  # NaN where NaT
        return days
    values = objects(series.to_list())
    if series.dtype in _CATEGORICAL and cells_of is not None:  # numbers that are names of categories are text, too
        values = objects(value if is_missing(value) else str(value) for value in values)
    return (cells_of or column_of)(values, name)


def objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """A list as an array of objects (n,), which is one-dimensional also for a list of lists."""
    return np.array([*values, None], dtype=object)[:-1]


def column_of(values: NDArray[Any], name: Any) -> _Column:
    """Numbers, and durations in days, as float64 with NaN, dates as datetime64[us] with NaT; anything else as text, "" where missing."""
    if values.dtype.kind in "UST":
        return values.astype(str).astype(object)
    if values.dtype.kind == "O":
        _refuse_containers(values, name)
        seen = [v for v in values if not is_missing(v)]
        if seen and all(isinstance(v, date) for v in seen):
            return np.array(["NaT" if is_missing(v) else plain_date(v) for v in values], dtype="datetime64[us]")
        if seen and all(isinstance(v, timedelta) for v in seen):
            return np.array([np.nan if is_missing(v) else v / timedelta(days=1) for v in values], dtype=np.float64)
        if not all(isinstance(v, Number) for v in seen):
            return np.array(["" if is_missing(v) else str(_whole(v)) for v in values], dtype=object)
        values = np.array([np.nan if is_missing(v) else v for v in values], dtype=np.float64)
    numbers: Floats = values.astype(np.float64)
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        raise ValueError(
            f"X must be finite where observed; got {numbers[infinite[0]]} in row {infinite[0]}, column {name!r}. "
            "Replace infinities by a number, or by NaN if they mean missing."
        )
    return numbers


def _refuse_containers(values: NDArray[np.object_], name: Any) -> None:
    for row, value in enumerate(values):
        if isinstance(value, list | tuple | dict | set | np.ndarray):
            raise TypeError(
                f"column {name!r} must hold numbers, text or dates; got {value!r} in row {row}. Make columns of it, or leave it out."
            )


def _whole(value: Any) -> Any:
    """Whole numbers without a point: 2.0 among text is the category 2."""
    return int(value) if isinstance(value, float | np.floating) and value.is_integer() else value


def _cells_of(values: NDArray[Any], name: Any) -> _Column:
    """As `column_of`; but text stands without blanks around it, words that mean missing are missing, and numbers among text stay numbers."""
    if values.dtype.kind in "UST":
        values = values.astype(str).astype(object)
    if values.dtype.kind != "O":
        return column_of(values, name)
    _refuse_containers(values, name)
    cells = objects(tidied(value) for value in values)
    if not any(isinstance(cell, str) for cell in cells):
        return column_of(cells, name)
    known = ("" if is_missing(cell) else cell for cell in cells)
    return objects(cell if isinstance(cell, str | Number) else str(cell) for cell in known)


def _counts(column: _Cells, words: Collection[str]) -> Counter[str]:
    return Counter(cell for cell in column.values if cell in words)


def _read(column: _Cells, reading: Reading) -> tuple[_Cells, Counter[Any]]:
    """A column of numbers or dates, missing where a cell says none; and those cells which are no words of the reading, by how often they come."""
    kind, values = reading.kind, column.values
    if kind == "number" and values.dtype == np.float64:
        return column, Counter()
    if kind == "date" and values.dtype.kind == "M":
        return column, Counter()
    cells = values if column.has_text else as_labels(values)
    parsed = reading.parsed({cell for cell in cells if isinstance(cell, str) and cell})
    if kind == "number":
        by_cell = {cell: float(text) for cell, text in parsed.items()}
        numbers = [by_cell.get(cell, np.nan) if isinstance(cell, str) else float(cell) for cell in cells]
        read: _Column = column_of(np.array(numbers), column.name)
    else:
        read = dates_of(cells, parsed)
    silent = {"", *reading.words, *parsed}
    unread = Counter(str(cell) for cell in cells if cell not in silent and (kind == "date" or isinstance(cell, str)))
    return column._replace(values=read), unread


def _warn_of_words(columns: Iterable[tuple[_Cells, Counter[Any]]]) -> None:
    """One warning of all cells that say no number or date."""
    parts = [f"{_shown_words(words)} of column {cut(column.name)!r}" for column, words in columns if words]
    if parts:
        warnings.warn(
            f"text in columns of numbers or dates is taken as missing where it says none: {'; '.join(parts[:_SHOWN])}"
            f"{' ...' if len(parts) > _SHOWN else ''}. Correct the cells if they say "
            "something.",
            UserWarning,
            stacklevel=4,
        )


def _shown_words(words: Counter[Any]) -> str:
    common = [f"{cut(word)!r} in {counted(n, 'cell')}" for word, n in words.most_common(_SHOWN)]
    return f"{', '.join(common)}{' ...' if len(words) > _SHOWN else ''}"


def _date_numbers(dates: NDArray[np.datetime64], *, with_hour: bool) -> Floats:
    """Days since 1970, month, day of the month, weekday and, with it, hour: (m, 4) or (m, 5)."""
    day, month = dates.astype("datetime64[D]"), dates.astype("datetime64[M]")
    parts = [
        (dates - np.datetime64(0, "us")) / _DAY,
        month.astype(np.int64) % 12 + 1,
        (day - month) / _DAY + 1,
        (day.astype(np.int64) + 3) % 7,  # 1970 began on a Thursday
    ]
    if with_hour:
        parts.append((dates - day) / np.timedelta64(1, "h"))
    return np.where(np.isnat(dates)[:, None], np.nan, np.column_stack(parts))


def as_labels(column: _Column) -> NDArray[np.object_]:
    """A column as text, "" where missing; a batch of a column of categories may hold numbers only."""
    if column.dtype.kind == "M":
        return np.where(np.isnat(column), "", column.astype(str)).astype(object)
    if column.dtype != np.float64:
        return objects(str(_whole(cell)) for cell in column)
    return np.array(["" if np.isnan(v) else str(_whole(v)) for v in column.tolist()], dtype=object)
