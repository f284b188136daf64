"""Tables of any kind with values in their missing cells, of the types of the columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats, Ints
from lacunar.encode import objects
from lacunar.impute.columns import Column, dictionary_of, first_of, plainly_named
from lacunar.observed.cells import cut, label_of, listed, plain_cells

_EXACT = 2**53  # whole numbers up to it are floats
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000  # microseconds


def filled_array(array: NDArray[Any], cells: Mapping[int, tuple[Ints, Floats]], columns: list[Column]) -> NDArray[Any]:
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
        return np.rint(values * _DAY).astype("timedelta64[us]").astype(cells.dtype)
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


def filled_frame(frame: Any, cells: Mapping[int, tuple[Ints, Floats]], columns: list[Column]) -> Any:
    table = nw.from_native(plainly_named(frame), eager_only=True)
    names, new = table.columns, []
    native = frame.copy() if nw.dependencies.is_pandas_dataframe(frame) else None
    for j, (rows, values) in cells.items():
        if not len(rows):
            continue
        own = table[:, j]
        series = _able_to_hold(own, columns[j], is_empty=len(rows) == len(table))
        natives = _frame_cells(series, values, columns[j])
        if native is not None:  # in place, ten times as fast as column by column
            if series is not own:
                native.isetitem(j, series.to_native())
            _set_cells(native, j, series.to_native().dtype, rows, natives)
        else:
            new.append(_scattered(series, rows, natives).alias(names[j]))
    if native is not None:
        return native
    return (table.with_columns(*new) if new else table).to_native()


def _set_cells(frame: Any, j: int, dtype: Any, rows: Ints, natives: Any) -> None:
    """Write into one column of a frame of pandas; asking the frame for its types would take as long as writing."""
    if hasattr(dtype, "fill_value"):  # pandas' sparse columns take no cells in place
        dense = frame.iloc[:, j].sparse.to_dense()
        dense.iloc[rows] = natives
        frame.isetitem(j, dense.astype(dtype))
        return
    if dtype.kind == "M":  # pandas 2 would take moments for nanoseconds, which lack years far from ours
        import pandas as pd

        natives = pd.array(natives, dtype=dtype)
    frame.iloc[rows, j] = natives


def _scattered(series: Any, rows: Ints, natives: Any) -> Any:
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
    indices = pa.array([places[cell] for cell in natives], kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, pa.array(list(places), kind.value_type), ordered=kind.ordered)


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
        categories = dictionary_of(native)
    # The Categories of polars are no collection: iterating them has no end.
    return _by_label(list(categories) if isinstance(categories, Collection) else [], series.name)


def _by_label(cells: list[Any], name: Any) -> dict[str, Any]:
    """Cells as they came by what they say."""
    return dict(zip(map(label_of, plain_cells(cells, name)), cells, strict=True))


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
    example = first_of(cells)
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
            last = _DAY - 1
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
