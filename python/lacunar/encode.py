"""Tables of numbers, categories and dates as numbers; what is missing stays missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from numbers import Integral, Number
from typing import Any, ClassVar, Literal, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from lacunar._log import warn_user
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.cells import (
    OpenReading,
    Reading,
    counted,
    cut,
    dates_of,
    float_cells,
    label_of,
    learn_readings,
    parse_cells,
    plain_cells,
    text_column,
    tidied,
    unit_remark,
    value_in,
)
from lacunar.observed.contract import check_two_dimensional
from lacunar.observed.door import as_array, refuse_empty, refuse_file
from lacunar.observed.names import columns_by_name
from lacunar.observed.numbers import as_frame, refuse_other_kinds
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
_HALFWAY = 0.5  # between the 0 and the 1 of two categories
_FEWEST_OF_TEXT = 40  # categories, from which fewer than two rows each say that they are identifiers or free text
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


@dataclass
class _OddCells:
    """Cells of one column that it cannot hold: how often each comes, and the first row that has one."""

    name: Any
    cells: Counter[str]
    first_row: int

    def __str__(self) -> str:
        common = [f"{cut(cell)!r} in {counted(n, 'cell')}" for cell, n in self.cells.most_common(_SHOWN)]
        more = " ..." if len(self.cells) > _SHOWN else ""
        return f"{', '.join(common)}{more} of column {cut(self.name)!r} (first in row {self.first_row})"


@dataclass
class Remarks:
    """What the encoder has to say of the rows of one call, which may come in batches: at the end one warning of each
    kind.
    """

    rows: NDArray[np.intp] | None = None  # of the table, of which the batch is made; None for all from the first
    words: dict[Any, _OddCells] = field(default_factory=dict)  # by column, cells that are no number or date
    levels: dict[Any, _OddCells] = field(default_factory=dict)  # categories that `fit` never saw
    meaning: str = ""  # of those levels
    units: list[str] = field(default_factory=list)  # sentences on columns that `fit` found with a unit in some cells

    def add(self, kind: dict[Any, _OddCells], name: Any, cells: Iterable[Any], odd: NDArray[np.bool_]) -> None:
        """Note the odd ones among the cells of a column, for `words` or `levels`."""
        rows = np.flatnonzero(odd)
        if rows.size:
            cells = np.asarray(cells, dtype=object)[rows]
            first = int(rows[0] if self.rows is None else self.rows[rows[0]])
            column = kind.setdefault(name, _OddCells(name, Counter(), first))
            column.cells.update(str(cell) for cell in cells)

    def sentences(self) -> list[str]:
        """One of words and one of categories, where there are such."""
        sentences = [*self.units]
        if self.words:
            sentences.append(
                f"text in columns of numbers or dates that is neither is taken as missing: {_listed(self.words)}. Correct the cells if "
                "they mean something."
            )
        if self.levels:
            sentences.append(f"categories that fit never saw: {_listed(self.levels)}. They are {self.meaning}.")
        return sentences

    def warn(self) -> None:
        """Give them as warnings at the line of the user."""
        for sentence in self.sentences():
            warn_user(sentence)


def _listed(columns: dict[Any, _OddCells]) -> str:
    parts = [str(column) for column in columns.values()]
    return f"{'; '.join(parts[:_SHOWN])}{' ...' if len(parts) > _SHOWN else ''}"


_MEANINGS = {"other": "taken as observed, and as none of those that fit saw", "missing": "taken as missing"}


@whole_answers
class TableEncoder(TransformerMixin, BaseEstimator):
    """Numbers, categories, yes/no answers and dates as columns of numbers; missing entries stay
    missing.

    `sklearn.preprocessing.OneHotEncoder` makes a category of what is missing; here all columns made
    of a missing entry are NaN, as the estimators of this package expect.

    Parameters
    ----------
    categories : {"onehot", "ordinal"}, default="onehot"
        "onehot": a column of 0 and 1 for every category. "ordinal": one column with the number of
        the category in sorted order, for learners that split categories themselves;
        `is_categorical_` says which columns those are.
    drop_binary : bool, default=True
        Whether a column with two categories becomes one column, 1 for the second, rather than two
        that say the same.
    max_categories : int, default=100
        A text column with more categories than this is taken for identifiers or free text.
    text : {"error", "drop"}, default="error"
        What happens to such a column: an error that names it, or it is left out. "drop" takes more
        than 40 categories of fewer than two rows each for text, too.
    handle_unknown : {"other", "missing", "error"}, default="other"
        What a category means that `fit` did not see. "other": an observed one that is none of those
        seen, which is 0 in the columns of all of them, halfway at 0.5 in the one column of two
        categories, and with "ordinal" the number that follows theirs. "missing": a missing entry.
        Both with a warning. "error": an error.
    decimal : {".", ","}, default=None
        The decimal mark of numbers in text that may be read either way, such as 1,234. None finds
        it out, and refuses such a column.
    dates : {"dmy", "mdy"}, default=None
        Whether 01/02/2026 is in February or in January. None finds it out, and refuses a column
        that leaves it open.

    Attributes
    ----------
    kinds_ : list of str
        What every column holds: "number", "category", "date", "datetime" (a date with a time of
        day), "empty" (nothing was observed in `fit`) or "dropped".
    categories_ : list of ndarray or None
        Sorted categories of every column as text, None for a column of another kind.
    readings_ : list of Reading or None
        How the text of every column says numbers, times or dates, which `transform` reads in the
        same way; None for a column without such text.
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
        Too many categories, infinite numbers, text that may be read in two ways, unknown categories
        with `handle_unknown="error"`, a frame without any column that `fit` saw, or with two of one
        name. The message names the column.
    TypeError
        A cell that holds a list, tuple, dict, set or array, or bytes that are no text in UTF-8; an
        `Observed` table or a file of rows.

    Warns
    -----
    UserWarning
        Numbers of which some have a unit, words in a column of numbers or dates, which are missing,
        and categories that `fit` never saw, each with column, cells and the first row; columns of a
        frame that are absent, and missing, or that `fit` never saw.

    See Also
    --------
    lacunar.KarmaClassifier : Learns from the result, missing entries included.
    sklearn.preprocessing.OneHotEncoder : Makes a category of what is missing.

    Notes
    -----
    Booleans are numbers 0 and 1, bytes are text in UTF-8, decimals and fractions are numbers. Text
    is read as in `lacunar compare`: numbers with a decimal comma, thousands, a unit or a sign of
    money, and dates in a usual form are found out, unless the type of the column is that of
    categories; up to five words among many numbers ("<5") are missing, with a warning, as are "NA",
    "n/a", "n.a.", "<NA>", "?", "null", "none" and "." everywhere. Numbers without a unit beside
    others with one are read as of the same unit, with a warning. A column of dates becomes the days
    since 1970, the month, the day of the month, the weekday (0 is Monday) and, when `fit` saw a
    time of day, the hour; times with an offset are taken to UTC. Periods are the dates on which
    they begin, durations numbers of days, times of day ("12:30", "1:05 PM") numbers of hours. Text
    of digits that begins with 0 and has at least three of them ("00123"), or that stands beside
    letters with a number ("A12"), is a code: its column holds categories. Categories are compared
    as text, whole numbers among them without a point, or else by value: 1, 1.0 and True are the
    same one where `fit` saw no more than one of them. Empty text is missing. What a column holds is
    settled by `fit`: of new rows a cell that it cannot hold is missing, and no other. A category
    that `fit` never saw is not missing, as "blue" says that neither "red" nor "green" was meant:
    kernels, which compare rows on the columns that both have, find such a row unlike all levels,
    and linear models take it for none of them. Columns of a frame go by name. A column of which
    `fit` saw nothing passes numbers on, and whatever else it holds later is missing. O(n d) and one
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
        "handle_unknown": [StrOptions({"other", "missing", "error"})],
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
        handle_unknown: Literal["other", "missing", "error"] = "other",
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

    @_fit_context(prefer_skip_nested_validation=True)
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
        remarks = Remarks()
        self._learn(X, remarks)
        self._refuse_text_alone()
        remarks.warn()
        return self

    @_fit_context(prefer_skip_nested_validation=True)
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
        remarks = Remarks()
        columns = self._learn(X, remarks)
        self._refuse_text_alone()
        table = self._encoded(columns, remarks)
        remarks.warn()
        return table

    def _learn(self, X: Any, remarks: Remarks) -> list[_Cells]:
        """Learn what every column holds; returns the columns that were read."""
        self.kinds_: list[str] = []
        self.categories_: list[NDArray[np.object_] | None] = []
        columns = self._columns(X, reset=True)
        self.readings_ = self._learned_readings(columns, remarks)
        for column, reading in zip(columns, self.readings_, strict=True):
            kind, known = self._learned(column, reading)
            self.kinds_.append(kind)
            self.categories_.append(known)
        for column, reading in zip(columns, self.readings_, strict=True):
            if reading is not None and reading.words:
                remarks.add(remarks.words, column.name, column.values, _among(column.values, reading.words))
        return columns

    def _refuse_text_alone(self) -> None:
        if all(kind == "dropped" for kind in self.kinds_):
            raise ValueError(
                f"X must have a column of numbers, dates or at most max_categories={self.max_categories} categories; got "
                f"{len(self.kinds_)} columns of free text. Make numbers of the text, or raise max_categories."
            )

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
        remarks = Remarks()
        table = self._transformed(X, remarks)
        remarks.warn()
        return table

    def _transformed(self, X: Any, remarks: Remarks) -> Floats:
        """`transform`, for callers whose rows come in batches: warnings are collected in `remarks`, which warns once."""
        check_is_fitted(self)
        return self._encoded(self._columns(X, reset=False), remarks)

    def _as_learned(self, X: Any, remarks: Remarks) -> dict[Any, _Column]:
        """Columns by name as `fit` has settled what they hold: numbers, dates, or text, "" where missing.

        Which categories are new is said when the columns are encoded.
        """
        cells = self._read_columns(self._columns(X, reset=False), remarks)
        columns = zip(cells, self.categories_, strict=True)
        return {
            column.name: column.values if known is None else self._levels(column, known, Remarks())[0]
            for column, known in columns
        }

    def _text_of(self, column: _Cells, j: int) -> NDArray[np.object_]:
        """Column j of categories or free text as text (m,), "" where missing; categories as `fit` knew them."""
        known = self.categories_[j]
        return as_labels(column.values) if known is None else self._levels(column, known, Remarks())[0]

    def _read_columns(self, cells: list[_Cells], remarks: Remarks) -> list[_Cells]:
        """Columns of numbers and dates as such."""
        columns = zip(cells, self.kinds_, self.readings_, strict=True)
        return [_read(c, reading or _USUAL[kind], remarks) if kind in _USUAL else c for c, kind, reading in columns]

    def _encoded(self, cells: list[_Cells], remarks: Remarks) -> Floats:
        """Columns of a table as numbers (m, outputs)."""
        parts = zip(self._read_columns(cells, remarks), self.kinds_, self.categories_, strict=True)
        return np.hstack([self._block(column, kind, known, remarks) for column, kind, known in parts])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the columns of `transform`: the column's, with the category or the part of the
        date behind an underscore.

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
        if as_frame(X) is not None:
            X = columns_by_name(self, X, reset=reset)
            validate_data(self, X, reset=reset, skip_check_array=True)
            frame = nw.from_native(X, eager_only=True)
            refuse_empty(frame.shape)
            categories = [dtype in _CATEGORICAL for dtype in frame.schema.values()]
            columns = columns_of_frame(frame, _cells_of)
            return [_Cells(*column, flag) for column, flag in zip(columns, categories, strict=True)]
        refuse_file(X)
        if sp.issparse(X) or isinstance(X, Observed):
            came = f"a sparse matrix ({type(X).__name__})" if sp.issparse(X) else "an Observed table"
            raise TypeError(
                f"X must be a frame or an array of cells; got {came} of shape {X.shape}, which holds numbers already. "
                "Pass it to the estimator as it is: nothing is left to encode, and a dense copy may not fit in memory."
            )
        # `column_of` says where an infinity is.
        array = _plain_array(X)
        table = validate_data(self, array, reset=reset, dtype=array.dtype, ensure_all_finite=False)
        return [_Cells(j, _cells_of(column, j)) for j, column in enumerate(table.T)]

    def _learned_readings(self, columns: list[_Cells], remarks: Remarks) -> list[Reading | None]:
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
        remarks.units += filter(None, (unit_remark(texts[j], reading) for j, reading in readings.items()))
        return [readings.get(j) for j in range(len(columns))]

    def _learned(self, column: _Cells, reading: Reading | None) -> tuple[str, NDArray[np.object_] | None]:
        """The kind of a column, and its categories."""
        if column.has_text and reading is None:
            return self._categories(as_labels(column.values), column.name)
        values = _read(column, reading, Remarks()).values if reading is not None else column.values
        if values.dtype.kind == "M":
            seen = values[~np.isnat(values)]
            return "datetime" if np.any(seen != seen.astype("datetime64[D]")) else "date", None
        return "empty" if np.isnan(values).all() else "number", None

    def _categories(self, labels: NDArray[np.object_], name: Any) -> tuple[str, NDArray[np.object_] | None]:
        known = np.array(sorted(set(labels) - {""}), dtype=object)
        if self.text == "drop" and len(known) > _FEWEST_OF_TEXT and np.count_nonzero(labels != "") < 2 * len(known):
            return "dropped", None
        if len(known) <= self.max_categories:
            return "category", known
        if self.text == "drop":
            return "dropped", None
        raise ValueError(
            f"a text column must have at most max_categories={self.max_categories} categories; got {len(known)} in column "
            f"{name!r}, {str(known[0])!r} among them. Drop it if it holds identifiers (text='drop' does so), make numbers of free text "
            "with sklearn.feature_extraction.text, parse dates with pandas.to_datetime, or raise max_categories."
        )

    def _block(self, column: _Cells, kind: str, known: NDArray[np.object_] | None, remarks: Remarks) -> Floats:
        """The columns (m, outputs) made of one column, that is read where it is one of numbers or dates."""
        values = column.values
        if kind == "dropped":
            return np.empty((len(values), 0))
        if kind == "empty":
            return (values if values.dtype == np.float64 else np.full(len(values), np.nan))[:, None]
        if kind == "number":
            return values[:, None]
        if kind in ("date", "datetime"):
            return _date_numbers(values, with_hour=kind == "datetime")
        assert known is not None
        levels = self._levels(column, known, remarks)[1]
        if self.categories == "ordinal":
            return np.where(levels < 0, np.nan, levels)[:, None]
        shown = np.arange(len(known) - len(self._shown(known)), len(known))
        flags = np.where(levels[:, None] < 0, np.nan, levels[:, None] == shown)
        if len(shown) < len(known):
            flags[levels == len(known)] = _HALFWAY
        return flags

    def _levels(
        self, column: _Cells, known: NDArray[np.object_], remarks: Remarks
    ) -> tuple[NDArray[np.object_], NDArray[np.intp]]:
        """Names of the categories of a column as `fit` knew them, and their numbers.

        The number is -1 where the cell is missing, and `len(known)` for a category that `fit` never saw.
        """
        labels, place_of = as_labels(column.values), _Places(known)
        levels_of = {label: place_of(label) for label in set(labels)}
        levels = np.array([levels_of[label] for label in labels], dtype=np.intp)
        unseen = np.flatnonzero(levels == len(known))
        if unseen.size and self.handle_unknown == "error":
            raise ValueError(
                f"categories must be those of fit; got {cut(labels[unseen[0]])!r} in row {unseen[0]}, column {column.name!r}. "
                "Use handle_unknown='other' to take new ones as none of them."
            )
        if unseen.size:
            remarks.meaning = _MEANINGS[self.handle_unknown]
            remarks.add(remarks.levels, column.name, labels, levels == len(known))
        if self.handle_unknown == "missing":
            levels[unseen] = -1
        seen = (levels >= 0) & (levels < len(known))
        labels[seen] = known[levels[seen]]
        return labels, levels

    def _check_loaded(self) -> None:
        """Refuse a model file whose kinds and categories do not belong together."""
        learned = (vars(self).get(name, ()) for name in ("kinds_", "categories_", "readings_"))
        for kind, known, reading in zip(*learned, strict=True):
            if (kind == "category") != (known is not None and len(known) > 0):
                raise ValueError("kinds_ and categories_ of the model file contradict each other. Fit again")
            if reading is None or kind == "empty":
                continue
            if kind not in _USUAL or (_USUAL[kind].kind == "date") != (reading.kind == "date"):
                raise ValueError("kinds_ and readings_ of the model file contradict each other. Fit again")

    def _trial_rows(self) -> list[NDArray[np.object_]]:
        """Tables (1, d) that this encoder reads: one with nothing observed, one with an entry of its kind in every
        column.
        """
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


def _plain_array(X: Any) -> NDArray[Any]:
    """An array of cells (n, d) in float64 where it holds numbers, booleans or durations (in days), else of objects."""
    array: NDArray[Any] = check_two_dimensional(as_array(X))
    refuse_empty(array.shape)
    kind = array.dtype.kind
    if kind in "cV":
        refuse_other_kinds(array.dtype)
    if kind == "M":  # objects of a finer unit than microseconds would be integers
        return array.astype("datetime64[us]").astype(object)
    if kind == "m":
        return np.asarray(array / _DAY)  # NaN where NaT
    return array.astype(object if kind in "OUST" else np.float64, copy=False)


_CATEGORICAL = (nw.Categorical, nw.Enum)
_WIDE = (nw.Int128, nw.UInt128)  # which NumPy does not have


def columns_of_frame(
    frame: Any, cells_of: Callable[[NDArray[Any], Any], _Column] | None = None
) -> list[tuple[Any, _Column]]:
    """Names and values, by `cells_of` or as `column_of` makes them; columns of numbers are taken together, as there may
    be thousands.
    """
    numeric = [
        k
        for k, dtype in enumerate(frame.schema.values())
        if (dtype.is_numeric() or dtype == nw.Boolean) and dtype not in _WIDE
    ]
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
        if series.dtype == nw.Date:
            series = series.cast(nw.Datetime("us"))
        dates: _Column = series.to_numpy().astype("datetime64[us]")
        return dates
    if series.dtype == nw.Duration:
        days: _Column = series.to_numpy() / _DAY  # NaN where NaT
        return days
    values = objects(series.to_list())
    if series.dtype in _CATEGORICAL and cells_of is not None:  # numbers that are names of categories are text, too
        values = objects(None if value is None else label_of(value) for value in plain_cells(values, name))
    return (cells_of or column_of)(values, name)


def objects(values: Iterable[Any]) -> NDArray[np.object_]:
    """A list as an array of objects (n,), which is one-dimensional also for a list of lists."""
    return np.array([*values, None], dtype=object)[:-1]


def column_of(values: NDArray[Any], name: Any) -> _Column:
    """Numbers, and durations in days, as float64 with NaN, dates as datetime64[us] with NaT; anything else as text, ""
    where missing.
    """
    if values.dtype.kind in "SUTO":
        cells = plain_cells(values.tolist(), name)
        read = _of_one_kind(cells, name)
        return objects(label_of(cell) for cell in cells) if read is None else read
    return _finite(values.astype(np.float64), name)


def _of_one_kind(cells: list[Any], name: Any) -> _Column | None:
    """Plain cells that are all numbers, or all dates, as such; else None."""
    seen = [cell for cell in cells if cell is not None]
    if seen and all(isinstance(cell, date) for cell in seen):
        return dates_of(cells, {})
    if all(isinstance(cell, Number) for cell in seen):
        return _finite(float_cells(cells), name)
    return None


def _finite(numbers: Floats, name: Any) -> Floats:
    infinite = np.flatnonzero(np.isinf(numbers))
    if infinite.size:
        raise ValueError(
            f"X must be finite where observed; got {numbers[infinite[0]]} in row {infinite[0]}, column {name!r}. "
            "Replace infinities by a number, or by NaN if they mean missing."
        )
    return numbers


def _cells_of(values: NDArray[Any], name: Any) -> _Column:
    """As `column_of`; but text loses blanks around it, words that mean missing are missing; numbers and dates stay
    such.
    """
    if values.dtype.kind not in "SUTO":
        return column_of(values, name)
    cells = [tidied(cell) for cell in plain_cells(values.tolist(), name)]
    read = _of_one_kind(cells, name)
    if read is not None:
        return read
    known = ("" if cell is None else cell for cell in cells)
    return objects(cell if isinstance(cell, str | Number | date) else str(cell) for cell in known)


def _read(column: _Cells, reading: Reading, remarks: Remarks) -> _Cells:
    """A column of numbers or dates, missing where a cell says none; cells that are no words of the reading either are
    noted.
    """
    kind, values = reading.kind, column.values
    if kind != "date" and values.dtype == np.float64:
        return column
    if kind == "date" and values.dtype.kind == "M":
        return column
    cells = values if column.has_text else as_labels(values)
    read, lost = parse_cells(cells, reading)
    remarks.add(remarks.words, column.name, cells, lost & ~_among(cells, reading.words))
    return column._replace(values=read if kind == "date" else _finite(read, column.name))


def _among(cells: Iterable[Any], words: tuple[str, ...]) -> NDArray[np.bool_]:
    return np.array([cell in words for cell in cells], dtype=bool)


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
    return objects(label_of(cell) for cell in column.tolist())


class _Places:
    """Numbers of categories by their names, or by the value of a name that only one of them has."""

    def __init__(self, known: NDArray[np.object_]) -> None:
        values = [value_in(category) for category in known]
        self._by_name = {category: k for k, category in enumerate(known)} | {"": -1}
        self._by_value = {value: k for k, value in enumerate(values) if values.count(value) == 1}
        self._unseen = len(known)

    def __call__(self, label: str) -> int:
        """-1 for what is missing, the number of categories for one that is not among them."""
        place = self._by_name.get(label)
        return self._by_value.get(value_in(label), self._unseen) if place is None else place
