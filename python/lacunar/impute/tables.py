"""A table of any kind as columns of numbers, and back: the same kind of table with its missing cells filled."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar._log import warn_user
from lacunar._typing import Bools, Floats, Ints
from lacunar.encode import TableEncoder, objects
from lacunar.observed import Observed
from lacunar.observed.cells import cut, label_of, listed, plain_cells
from lacunar.observed.contract import as_array, refuse_no_table
from lacunar.observed.names import columns_by_name
from lacunar.observed.numbers import as_frame, is_missing
from lacunar.observed.sentinels import warn_of_sentinels

KINDS = ("number", "whole", "boolean", "levels", "ordered", "date", "text", "empty")
MOST_LEVELS = 50  # beyond which text names rows, or is free
_NUMBERS = ("number", "whole", "date")
_EXACT = 2**53  # whole numbers up to it are floats
_LARGEST = 1e150  # squares of larger numbers overflow
_MICROSECOND = timedelta(microseconds=1)
# The first and the last moment that Python's dates have.
_YEARS = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")


@dataclass(frozen=True)
class Column:
    """What `fit` found one column to hold: its name, its kind, and the levels of a column of them, in their order.

    Kinds: "number"; "whole" numbers; "boolean"; "levels" without and with an order ("ordered"); "date", microseconds since
    1970; "text" of too many levels, which is left as it is; "empty", where nothing was observed.
    """

    name: str
    kind: str
    levels: tuple[Any, ...] = ()  # cells as Python has them

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, rather than places among levels."""
        return self.kind in _NUMBERS

    @property
    def is_used(self) -> bool:
        """Whether it holds anything that a model can read."""
        return self.kind not in ("text", "empty")

    def _check_loaded(self) -> None:
        plain = all(type(level) in (str, bool, int, float) for level in self.levels)
        labels = [label_of(level) for level in self.levels] if plain else []
        has_levels = self.kind in ("boolean", "levels", "ordered")
        sound = isinstance(self.name, str) and self.kind in KINDS and isinstance(self.levels, tuple) and plain
        if not sound or len(set(labels)) != len(labels) or (len(labels) > 0) != has_levels:
            raise ValueError(f"a column of the model file has kind {str(self.kind)[:20]!r} and {len(labels)} levels")


class Values(NamedTuple):
    """One column of a table as numbers."""

    numbers: Floats  # (n,); places among levels; NaN where nothing is known
    missing: Bools  # (n,); False also where a level is unlike all that `fit` saw, whose number is NaN


class Table(NamedTuple):
    """A table as it came, and the cells of its columns in the order of `fit`."""

    native: Any  # a frame of the user's library, or an array
    cells: list[NDArray[Any]]  # (n,) each: numbers with NaN, dates with NaT, or objects with "" where missing
    levels: list[tuple[Any, ...] | None]  # of columns whose type orders them
    truths: list[bool]  # whether the type of the column is that of booleans
    n_rows: int

    def filled(self, cells: Mapping[int, tuple[NDArray[np.intp], Floats]], columns: list[Column]) -> Any:
        """A copy in which columns, by their places, have these values in these rows."""
        if isinstance(self.native, np.ndarray):
            return _filled_array(self.native, cells, columns)
        return _filled_frame(self.native, cells, columns)

    def columns(self, names: list[str]) -> list[Column]:
        """What the columns hold."""
        parts = zip(names, self.cells, self.levels, self.truths, strict=True)
        return [_column_of(*part) for part in parts]

    def values(self, columns: list[Column]) -> list[Values]:
        """The columns as numbers, as `fit` has settled what they hold; a warning names levels that it never saw."""
        unseen: dict[str, str] = {}
        read = [_values_of(column, cells, unseen) for column, cells in zip(columns, self.cells, strict=True)]
        if unseen:
            shown = listed(f"{cut(level)!r} of {cut(name)!r}" for name, level in unseen.items())
            warn_user(
                f"X has levels that fit never saw: {shown}. They stay, and count as missing where other columns are filled."
            )
        return read


class AnyTable:
    """What estimators that read tables of any kind tell scikit-learn and the reader of model files."""

    def _trial_rows(self) -> list[Any]:
        """Tables of one row that this imputer reads: one with nothing observed."""
        width = getattr(self, "n_features_in_", 0)
        return [np.full((1, width), None, dtype=object)] if "columns_" in vars(self) else []

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def no_rows(columns: list[Column]) -> list[Values]:
    """Values of columns of a table without rows."""
    return [Values(np.empty(0), np.empty(0, dtype=bool)) for _ in columns]


def names_of(estimator: Any) -> list[str]:
    """Names of the columns of `fit`, x0, x1, ... of those that had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else [str(name) for name in names]


def warn_of_columns(columns: list[Column], values: list[Values]) -> None:
    """Say which columns stay as they are, and which hold a number that may mean missing."""
    numeric = [
        (column.name, v.numbers)
        for column, v in zip(columns, values, strict=True)
        if column.kind in ("number", "whole")
    ]
    warn_of_sentinels((name for name, _ in numeric), (numbers for _, numbers in numeric))
    empty = [column.name for column in columns if column.kind == "empty"]
    if empty:
        warn_user(f"no entry is observed of {listed(empty)}: left missing. Drop such columns.")
    text = [column.name for column in columns if column.kind == "text"]
    if text:
        warn_user(
            f"text of more than {MOST_LEVELS} levels is taken for identifiers or free text: {listed(text)}. Such columns are left as they are; "
            "drop them, or make numbers, dates or fewer levels of them."
        )


# -- reading ------------------------------------------------------------------------------------------------------------------


def read_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """A frame, an array or lists of rows, with scikit-learn's checks of names and of the number of columns."""
    _refuse_sparse(X)
    frame = as_frame(X)
    named = columns_by_name(estimator, X if frame is None else frame, reset=reset)
    # The encoder's reading of containers, which asks its owner for the names of columns only.
    cells = [column.values for column in TableEncoder._columns(estimator, named, reset=reset)]
    native = _array_of(X) if frame is None else _same_or_named(frame, named)
    levels, truths = _types_of(native, len(cells))
    return Table(native, cells, levels, truths, len(cells[0]))


def _refuse_sparse(X: Any) -> None:
    if sp.issparse(X) or isinstance(X, Observed):
        raise TypeError(
            f"X must be a dense table, as every cell of it will be filled; got a {'sparse matrix' if sp.issparse(X) else 'table of observed entries'} "
            f"({type(X).__name__}) of shape {X.shape}. Sparse data is not supported here: pass a frame or an array with NaN, or complete "
            "it in low rank with lacunar.lowrank.LowRankImputer."
        )
    refuse_no_table(X)


def _array_of(X: Any) -> NDArray[Any]:
    """The array that comes back filled; a masked one keeps its mask until then."""
    return X if isinstance(X, np.ma.MaskedArray) else as_array(X)


def _same_or_named(frame: Any, named: Any) -> Any:
    """The user's frame with its own names where it has the columns of `fit` in their order, else the one by name."""
    came = frame.column_names if nw.dependencies.is_pyarrow_table(frame) else list(frame.columns)
    wanted = named.column_names if nw.dependencies.is_pyarrow_table(named) else list(named.columns)
    return frame if [str(name) for name in came] == [str(name) for name in wanted] else named


def _types_of(native: Any, d: int) -> tuple[list[tuple[Any, ...] | None], list[bool]]:
    """What the types of the columns say: levels in an order, and booleans."""
    if isinstance(native, np.ndarray):
        return [None] * d, [_are_truths(column) for column in native.T]
    table = nw.from_native(_plainly_named(native), eager_only=True)
    return (
        [_ordered_levels(table[:, j]) for j in range(d)],
        [
            dtype == nw.Boolean or (dtype == nw.Object and _are_truths(table[:, j].to_numpy()))
            for j, dtype in enumerate(table.schema.values())
        ],
    )


def _are_truths(cells: NDArray[Any]) -> bool:
    """Whether cells are booleans, by their type or, of objects, one by one."""
    if cells.dtype.kind != "O":
        return cells.dtype.kind == "b"
    kinds = {type(cell) for cell in cells.tolist() if not isinstance(cell, bool | np.bool_) and not is_missing(cell)}
    return not kinds and _first_of(cells.tolist()) is not None


def _plainly_named(frame: Any) -> Any:
    """A frame that narwhals reads, whatever its columns are called."""
    return frame.set_axis(range(frame.shape[1]), axis=1) if nw.dependencies.is_pandas_dataframe(frame) else frame


def _ordered_levels(series: Any) -> tuple[Any, ...] | None:
    """Levels of a type that orders them: pandas' ordered categories, Arrow's ordered dictionaries and polars' Enum."""
    native = series.to_native()
    dtype: Any = getattr(native, "dtype", None)
    if getattr(dtype, "ordered", False) or series.dtype == nw.Enum:
        levels = list(dtype.categories)
    elif getattr(getattr(native, "type", None), "ordered", False):
        levels = _dictionary_of(native)
    else:
        return None
    return tuple(label_of(level) for level in plain_cells(levels, series.name))


def _dictionary_of(native: Any) -> list[Any]:
    """Levels of a column of Arrow's dictionaries."""
    levels = (level for chunk in native.chunks for level in chunk.dictionary.to_pylist())
    return list(dict.fromkeys(level for level in levels if level is not None))


def _column_of(name: str, cells: NDArray[Any], levels: tuple[Any, ...] | None, truth: bool) -> Column:
    if cells.dtype.kind == "M":
        _refuse_far(name, cells)
        return Column(name, "empty" if np.isnat(cells).all() else "date")
    if cells.dtype.kind == "f":
        known = cells[~np.isnan(cells)]
        if not known.size:
            return Column(name, "empty")
        if truth:
            return Column(name, "boolean", (False, True))
        _refuse_large(name, cells)
        return Column(name, "whole" if (known == np.rint(known)).all() else "number")
    return _column_of_text(name, cells, levels)


def _refuse_large(name: str, cells: Floats) -> None:
    large = np.flatnonzero(np.abs(cells) > _LARGEST)
    if large.size:
        raise ValueError(
            f"X must hold numbers of at most {_LARGEST:g} in modulus, whose squares stay finite; got {cells[large[0]]:g} in row "
            f"{large[0]}, column {cut(name)!r}. Use other units."
        )


def _refuse_far(name: str, cells: NDArray[Any]) -> None:
    far = np.flatnonzero((cells < _YEARS[0]) | (cells > _YEARS[1]))
    if far.size:
        raise ValueError(
            f"X must hold dates of the years 1 to 9999; got {cells[far[0]]} in row {far[0]}, column {cut(name)!r}. Make numbers of "
            "them, such as years."
        )


def _column_of_text(name: str, cells: NDArray[Any], levels: tuple[Any, ...] | None) -> Column:
    seen = {label_of(cell): cell for cell in cells if cell != ""}
    if not seen:
        return Column(name, "empty")
    if levels is not None:
        return Column(name, "ordered", tuple(level for level in levels if level in seen))
    if len(seen) > MOST_LEVELS:
        return Column(name, "text")
    if all(type(cell) is bool for cell in seen.values()):
        return Column(name, "boolean", (False, True))
    plain = (cell if type(cell) in (str, bool, int, float) else str(cell) for cell in seen.values())
    return Column(name, "levels", tuple(sorted(plain, key=lambda cell: label_of(cell))))


def _values_of(column: Column, cells: NDArray[Any], unseen: dict[str, str]) -> Values:
    if column.kind in ("text", "empty"):
        missing = _missing_in(cells)
        return Values(np.full(len(cells), np.nan), missing)
    if column.is_number:
        return _number_values(column, cells)
    distinct, which = _distinct(_as_objects(column, cells))
    labels = [label_of(cell) for cell in distinct]
    places = {label_of(level): float(k) for k, level in enumerate(column.levels)}
    numbers = np.array([places.get(label, np.nan) for label in labels])[which]
    missing = np.array([label == "" for label in labels], dtype=bool)[which]
    odd = np.flatnonzero(np.isnan(numbers) & ~missing)
    if odd.size and column.kind == "boolean":
        _refuse_kind(column, cells, int(odd[0]))
    if odd.size:
        unseen[column.name] = labels[which[odd[0]]]
    return Values(numbers, missing)


def _distinct(cells: list[Any]) -> tuple[list[Any], Ints]:
    """Cells that differ by type or by value, and which of them each cell is."""
    keys = list(zip(map(type, cells), cells, strict=True))
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    return [cell for _, cell in places], np.array([places[key] for key in keys], dtype=np.intp)


def _as_objects(column: Column, cells: NDArray[Any]) -> list[Any]:
    """Cells of a column of levels; numbers 0 and 1 for booleans."""
    if column.kind == "boolean" and cells.dtype.kind == "f":
        return [None if cell != cell else bool(cell) if cell in (0, 1) else cell for cell in cells.tolist()]
    if cells.dtype.kind == "M":
        return [None if cell is None else str(cell) for cell in cells.tolist()]
    plain: list[Any] = cells.tolist()
    return plain


def _number_values(column: Column, cells: NDArray[Any]) -> Values:
    missing = _missing_in(cells)
    if cells.dtype.kind == "M" and column.kind == "date":
        _refuse_far(column.name, cells)
        return Values(np.where(missing, np.nan, cells.astype(np.int64)), missing)
    if cells.dtype.kind == "f" and column.kind != "date":
        numbers = cells.astype(np.float64)
        _refuse_large(column.name, numbers)
        return Values(numbers, missing)
    if not missing.all():
        _refuse_kind(column, cells, int(np.flatnonzero(~missing)[0]))
    return Values(np.full(len(cells), np.nan), missing)


def _refuse_kind(column: Column, cells: NDArray[Any], row: int) -> NoReturn:
    wish = {"date": "dates", "boolean": "booleans"}.get(column.kind, "numbers")
    raise ValueError(
        f"column {cut(column.name)!r} must hold {wish}, as in fit; got {cut(cells[row])!r} in row {row}. Convert it, or fit again."
    )


def _missing_in(cells: NDArray[Any]) -> Bools:
    if cells.dtype.kind == "O":
        return np.array([cell is None or cell == "" for cell in cells], dtype=bool)
    missing: Bools = np.isnat(cells) if cells.dtype.kind == "M" else np.isnan(cells)
    return missing


# -- writing ------------------------------------------------------------------------------------------------------------------


def _filled_array(
    array: NDArray[Any], cells: Mapping[int, tuple[NDArray[np.intp], Floats]], columns: list[Column]
) -> NDArray[Any]:
    filled = array.copy()
    if isinstance(filled, np.ma.MaskedArray):
        filled.soften_mask()  # a hard mask keeps filled cells masked
    for j, (rows, values) in cells.items():
        if not len(rows):
            continue
        natives = _array_cells(array[:, j], values, columns[j])
        if filled.dtype.kind in "SU" and natives.dtype.itemsize > filled.dtype.itemsize:
            filled = filled.astype(natives.dtype)
        filled[rows, j] = natives
    return filled


def _array_cells(cells: NDArray[Any], values: Floats, column: Column) -> NDArray[Any]:
    """Values as an array of the kind of these cells."""
    kind = cells.dtype.kind
    if kind == "O":
        return objects(_plain_values(values, column, cells.tolist()))
    if kind == "M":
        return values.astype("datetime64[us]").astype(cells.dtype)
    if kind == "m":
        return np.rint(values * 86_400e6).astype("timedelta64[us]").astype(cells.dtype)
    if kind in "SUT":
        return np.array([str(column.levels[int(place)]) for place in values]).astype(kind)
    values = _in_numbers(values, column)
    if kind in "iu":
        return np.array(_whole(values, np.iinfo(cells.dtype).bits, kind == "i"), dtype=cells.dtype)
    return values.astype(cells.dtype)


def _in_numbers(values: Floats, column: Column) -> Floats:
    """Values for a type of numbers: levels that are numbers, rather than their places."""
    if column.is_number or column.kind == "boolean":
        return values
    levels = [_like(level, 0.0) for level in column.levels]
    if any(isinstance(level, str) for level in levels):
        raise ValueError(
            f"column {cut(column.name)!r} must hold levels, as in fit, {listed(column.levels)}; got a column of numbers. Convert it, or fit again."
        )
    return np.array(levels, dtype=np.float64)[values.astype(np.intp)]


def _like(level: Any, example: Any) -> Any:
    """A level; the number that its text says where `example`, a cell of the same column, is a number."""
    if not isinstance(level, str) or not isinstance(example, Real):
        return level
    try:
        number = float(level)
    except ValueError:
        return level
    return int(number) if isinstance(example, Integral) and number.is_integer() else number


def _filled_frame(frame: Any, cells: Mapping[int, tuple[NDArray[np.intp], Floats]], columns: list[Column]) -> Any:
    table = nw.from_native(_plainly_named(frame), eager_only=True)
    is_pandas, names, new = nw.dependencies.is_pandas_dataframe(frame), table.columns, []
    native = frame.copy() if is_pandas else None
    for j, (rows, values) in cells.items():
        if not len(rows):
            continue
        series = _able_to_hold(table[:, j], columns[j], is_empty=len(rows) == len(table))
        natives = _frame_cells(series, values, columns[j])
        if is_pandas:  # in place, ten times as fast as column by column
            _set_cells(native, j, series, rows, natives)
        else:
            new.append(_scattered(series, rows, natives).alias(names[j]))
    return native if is_pandas else (table.with_columns(*new) if new else table).to_native()


def _set_cells(frame: Any, j: int, series: Any, rows: NDArray[np.intp], natives: Any) -> None:
    if series.to_native().dtype != frame.dtypes.iloc[j]:
        frame.isetitem(j, series.to_native())
    if hasattr(frame.dtypes.iloc[j], "fill_value"):  # pandas' sparse columns take no cells in place
        dense = frame.iloc[:, j].sparse.to_dense()
        dense.iloc[rows] = natives
        frame.isetitem(j, dense.astype(frame.dtypes.iloc[j]))
        return
    if frame.dtypes.iloc[j].kind == "M":  # pandas 2 would take moments for nanoseconds, which lack years far from ours
        import pandas as pd

        natives = pd.array(natives, dtype=frame.dtypes.iloc[j])
    frame.iloc[rows, j] = natives


def _scattered(series: Any, rows: NDArray[np.intp], natives: Any) -> Any:
    """The series with cells filled, of the same type."""
    native = series.to_native()
    if not nw.dependencies.is_pyarrow_chunked_array(native):
        return series.scatter(rows, _in_units(natives, series))
    import pyarrow as pa  # releases of Arrow differ in the types whose cells they replace; all of them take rows of any type

    places = np.arange(len(native))
    places[rows] = len(native) + np.arange(len(rows))
    cells = pa.chunked_array([*native.chunks, _arrow_cells(natives, native.type)], native.type)
    try:
        filled = cells.unify_dictionaries().combine_chunks().take(places)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # of views of text, and levels that are null
        listed_cells = cells.to_pylist()
        filled = _arrow_cells([listed_cells[place] for place in places], native.type)
    return nw.from_native(pa.chunked_array([filled]), series_only=True)


def _arrow_cells(natives: Any, kind: Any) -> Any:
    """Values as an array of an Arrow type, which is built by hand for dictionaries: not every release converts to them."""
    import pyarrow as pa

    if not pa.types.is_dictionary(kind):
        return pa.array(natives, kind)
    places = {level: place for place, level in enumerate(dict.fromkeys(natives))}
    codes, levels = (
        pa.array([places[cell] for cell in natives], kind.index_type),
        pa.array(list(places), kind.value_type),
    )
    return pa.DictionaryArray.from_arrays(codes, levels, ordered=kind.ordered)


def _in_units(natives: Any, series: Any) -> Any:
    """Moments, durations and whole numbers as a series of the same type: polars would take microseconds for units of a column of
    others, and the type of each whole number.
    """
    if not (series.dtype.is_temporal() or series.dtype.is_integer()):
        return natives
    return nw.new_series(series.name, natives, series.dtype, native_namespace=nw.get_native_namespace(series))


def _able_to_hold(series: Any, column: Column, *, is_empty: bool) -> Any:
    """The series; one of categories with the levels that it lacks; one without any value whose type cannot hold those of the column, in
    a type that can.
    """
    dtype = series.dtype
    if dtype in (nw.Categorical, nw.Enum) and not column.is_number:
        return _with_levels(series, column)
    if dtype == nw.Object or not is_empty:
        return series
    wanted: Any
    if column.is_number:
        able, wanted = dtype.is_numeric() or dtype.is_temporal(), nw.Float64()
        if column.kind == "date":
            able, wanted = dtype in (nw.Date, nw.Datetime), nw.Datetime("us")
    elif column.kind == "boolean":
        able, wanted = dtype == nw.Boolean, nw.Boolean()
    else:
        able, wanted = dtype in (nw.String, nw.Categorical, nw.Enum), nw.String()
    if able:
        return series
    return nw.new_series(series.name, [None] * len(series), wanted, native_namespace=nw.get_native_namespace(series))


def _with_levels(series: Any, column: Column) -> Any:
    """A series of categories that lacks no level of the column: those of `fit` first where they have an order."""
    native, own = series.to_native(), _natives_of(series)
    if not own or all(label_of(level) in own for level in column.levels):
        return series
    example = next(iter(own.values()))
    levels = [own.get(label_of(level), _like(level, example)) for level in column.levels]
    levels = list(dict.fromkeys([*levels, *own.values()] if column.kind == "ordered" else [*own.values(), *levels]))
    if hasattr(native, "cat") and hasattr(native.cat, "set_categories"):
        wider = native.cat.set_categories(levels)
    else:
        wider = native.cast(nw.get_native_namespace(series).Enum(levels))
    return nw.from_native(wider, series_only=True)


def _frame_cells(series: Any, values: Floats, column: Column) -> Any:
    """Values as the type of a narwhals series takes them."""
    dtype = series.dtype
    values = _in_numbers(values, column) if dtype.is_numeric() else values
    if dtype.is_float():
        return values.astype({"Float16": np.float16, "Float32": np.float32}.get(type(dtype).__name__, np.float64))
    if dtype.is_integer():
        return _whole(values, int(re.sub(r"\D", "", str(dtype))), dtype.is_signed_integer())
    if dtype.is_decimal():
        return _decimals(values, series.to_list())
    if dtype == nw.Duration:
        return [duration // _unit(dtype) * _unit(dtype) for duration in _durations(values, column)]
    if dtype == nw.Date:
        return [moment.date() for moment in _moments(values)]
    if dtype == nw.Datetime:
        aware = getattr(dtype, "time_zone", None) is not None
        moments = _moments(values, _unit(dtype))
        return [moment.replace(tzinfo=UTC) if aware else moment for moment in moments]
    if dtype in (nw.Categorical, nw.Enum):
        natives = _natives_of(series)
        levels = [natives.get(label_of(level), level) for level in column.levels]
        return [levels[int(place)] for place in values]
    return _plain_values(values, column, series.to_list())


def _whole(values: Floats, bits: int, signed: bool) -> Any:
    """Whole numbers within what a type of so many bits holds."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if np.abs(values).max(initial=0.0) < _EXACT:
        return np.clip(np.rint(values).astype(np.int64), max(low, -_EXACT), min(high, _EXACT))
    return [min(max(int(value), low), high) for value in np.rint(values)]


def _natives_of(series: Any) -> dict[str, Any]:
    """Levels of a column of categories as its type has them, by their labels."""
    native = series.to_native()
    categories = getattr(getattr(native, "dtype", None), "categories", None)
    if nw.dependencies.is_pyarrow_chunked_array(native):
        categories = _dictionary_of(native)
    # The Categories of polars are no collection: iterating them has no end.
    return _by_label(list(categories) if isinstance(categories, Collection) else [], series.name)


def _by_label(cells: list[Any], name: Any) -> dict[str, Any]:
    """Cells as they came by what they say."""
    return dict(zip(map(label_of, plain_cells(cells, name)), cells, strict=True))


def _first_of(cells: list[Any]) -> Any:
    return next((cell for cell in cells if not is_missing(cell)), None)


def _unit(dtype: Any) -> timedelta:
    """What moments and durations of a type are counted in, a microsecond at least."""
    return {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1)}.get(dtype.time_unit, _MICROSECOND)


def _durations(values: Floats, column: Column) -> list[timedelta]:
    far = np.abs(values) > timedelta.max.days
    if far.any():
        raise ValueError(
            f"X must hold durations of at most {timedelta.max.days} days, as Python does; got {values[far][0]:g} days for column "
            f"{cut(column.name)!r}. Make numbers of them, such as years."
        )
    return [timedelta(days=float(value)) for value in values]


def _moments(values: Floats, unit: timedelta = _MICROSECOND) -> list[datetime]:
    return [datetime(1970, 1, 1) + int(value) * _MICROSECOND // unit * unit for value in values]


def _plain_values(values: Floats, column: Column, cells: list[Any]) -> list[Any]:
    """Values as Python has them, of the type of the cells of the column."""
    example = _first_of(cells)
    if column.kind == "date":
        moments = _moments(values)
        if hasattr(example, "freq"):  # a period of pandas
            return [type(example)(moment, freq=example.freq) for moment in moments]
        plain = isinstance(example, date) and not isinstance(example, datetime)
        return [moment.date() if plain else _in_zone(moment, example) for moment in moments]
    if column.is_number:
        if isinstance(example, Decimal):
            return _decimals(values, cells)
        if isinstance(example, bool):
            return [bool(value) for value in np.rint(values)]
        whole = column.kind == "whole" and not isinstance(example, float)
        numbers = [int(value) if whole else float(value) for value in values]
        if isinstance(example, time):
            last = 86_400_000_000 - 1  # microseconds of a day
            return [_moments(np.array([np.clip(np.rint(n * 3600e6), 0, last)]))[0].time() for n in numbers]
        return _durations(values, column) if isinstance(example, timedelta) else numbers
    natives = {} if example is None or type(example) in (str, bool) else _by_label(cells, column.name)
    levels = [natives.get(label_of(level), _like(level, example)) for level in column.levels]
    return [levels[int(place)] for place in values]


def _decimals(values: Floats, cells: list[Any]) -> list[Decimal]:
    """Values with as many decimals as the cells of their column have at most; of a column without cells as they are."""
    exponents = [int(cell.as_tuple().exponent) for cell in cells if isinstance(cell, Decimal) and cell.is_finite()]
    return [Decimal(f"{value:.{max(0, -min(exponents))}f}" if exponents else str(float(value))) for value in values]


def _in_zone(moment: datetime, example: Any) -> datetime:
    zone = getattr(example, "tzinfo", None)
    return moment if zone is None else moment.replace(tzinfo=UTC).astimezone(zone)
