"""Read numbers from any container: cells of objects or text, and columns of frames, become floats with NaN where
missing.

Every door reads through these functions, so that a table gives the same answers in every container. What is no number
is refused with its row and column, never guessed.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
from numpy.typing import NDArray

# Of a column, and which are not null: bits, the first.
Cells = tuple[NDArray[np.float64], tuple[NDArray[np.uint8], int] | None]

# What reads columns that are no numbers, for messages about them.
ENCODE = (
    "lacunar.encode.TableEncoder makes numbers of text, categories and dates, and leaves missing entries missing; "
    "lacunar.LacunarClassifier and LacunarRegressor read them as they are."
)

# What nothing reads, in a column whose cells hold several values each.
NESTED = "Make columns of it, or leave it out."

# What float() reads, and NumPy reads alike.
_READ = (type(None), bool, int, float, str, bytes, Decimal, Fraction, np.bool_, np.integer, np.floating)
# What NumPy makes numbers of without a word; its durations are a kind of its integers.
_REFUSED = (complex, np.complexfloating, np.datetime64, np.timedelta64, np.ndarray)
_SHOWN = 60  # characters of a cell in a message


class Place(NamedTuple):
    """Where cells are, for error messages: the argument, the column if it is one column, and what to do about text."""

    argument: str = "X"
    column: str | None = None
    remedy: str = ENCODE

    def of(self, at: tuple[int, ...]) -> str:
        """Row and column of a cell of an array."""
        column = self.column if len(at) < 2 else str(at[1])
        return (f"row {at[0]}" if at else "its only cell") + ("" if column is None else f", column {column}")


_OF_X = Place()


def is_missing(cell: object) -> bool:
    """None, NaN, NA, NaT or what NumPy masks."""
    return cell is None or cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def refuse_other_kinds(dtype: Any, name: str = "X") -> None:
    """An error for dates, durations, complex numbers and records, which NumPy would silently turn into numbers."""
    kind = getattr(dtype, "kind", None)
    if kind == "M":
        raise TypeError(f"{name} must be numeric or boolean; it is {dtype}. {ENCODE}")
    if kind == "m":
        raise TypeError(
            f"{name} must be numeric or boolean; it is {dtype}. Divide by np.timedelta64(1, 'D') for days, which makes "
            "NaN of NaT."
        )
    if kind == "c":
        raise ValueError(  # the kind of error and the words that scikit-learn's checks look for
            f"{name} must be real numbers; it is {dtype}. Complex data not supported: pass the real and the imaginary "
            "parts as columns of their own."
        )
    if kind == "V" and dtype.names is not None:
        raise TypeError(
            f"{name} must be an array of one dtype; got an array of records with fields {', '.join(dtype.names)}. "
            "Use a frame, pandas.DataFrame(array), or stack its fields as columns."
        )


def refuse_column(name: Any, dtype: Any) -> NoReturn:
    """A column of a frame whose type says that it holds no numbers."""
    remedy = NESTED if str(dtype).lower().startswith(("struct", "list", "array", "map")) else ENCODE
    raise TypeError(f"every column must be numeric or boolean; column {name!r} is {dtype}. {remedy}")


def numbers_of(values: NDArray[Any], place: Place = _OF_X) -> NDArray[Any]:
    """An array of any shape as one of numbers: numbers and booleans as they came, objects and text cell by cell in
    float64.
    """
    refuse_other_kinds(values.dtype, place.argument)
    return values if values.dtype.kind in "fiub" else _numbers_of_cells(np.asarray(values, dtype=object), place)


def _numbers_of_cells(cells: NDArray[np.object_], place: Place) -> NDArray[np.float64]:
    try:
        with np.errstate(over="ignore"):  # an infinity is refused where it stands
            return _plain(cells).astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        _refuse_first(cells, place)


def _plain(cells: NDArray[np.object_]) -> NDArray[np.object_]:
    """Cells as NumPy reads them, as float() would; None for cells marked as missing."""
    others = {kind for kind in set(map(type, cells.flat)) if issubclass(kind, _REFUSED) or not issubclass(kind, _READ)}
    if not others:
        return cells
    plain = [_plain_cell(cell) if type(cell) in others else cell for cell in cells.flat]
    return np.array([*plain, None], dtype=object)[:-1].reshape(cells.shape)


def _plain_cell(cell: Any) -> Any:
    if isinstance(cell, np.datetime64 | np.timedelta64):
        missing = bool(np.isnat(cell))
    else:
        missing = cell is np.ma.masked or type(cell).__name__ in ("NAType", "NaTType")
    if not missing and isinstance(cell, _REFUSED):
        raise TypeError(f"float() argument must be a string or a real number, not '{type(cell).__name__}'")
    return None if missing else cell


def _refuse_first(cells: NDArray[np.object_], place: Place) -> NoReturn:
    """The error for the first cell that is no number."""
    for at, cell in np.ndenumerate(cells):
        try:
            plain = _plain_cell(cell)
            float(np.nan if plain is None else plain)
        except OverflowError:
            raise ValueError(
                f"{place.argument} must hold numbers that float64 holds; got a larger one ({type(cell).__name__}) in "
                f"{place.of(at)}. Use other units, or NaN if it means missing."
            ) from None
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            remedy = NESTED if isinstance(cell, np.ndarray | list | tuple | dict) else place.remedy
            raise kind(
                f"{place.argument} must hold numbers; got {repr(cell)[:_SHOWN]} in {place.of(at)} "
                f"({str(error)[: _SHOWN * 2]}). {remedy}"
            ) from None
    raise RuntimeError(f"{place.argument} must not change while it is read; it did. Pass a copy.")


# -- frames -----------------------------------------------------------------------------------------------------------


def as_frame(X: Any) -> Any:
    """X as a frame of the user's own library, a record batch as a table; None where X is no frame in memory."""
    if is_record_batch(X):
        import pyarrow as pa

        return pa.Table.from_batches([X])
    if hasattr(X, "_compliant_frame") and hasattr(X, "to_native"):  # a frame of narwhals, in either of its interfaces
        X = X.to_native()
    return X if nw.dependencies.is_into_dataframe(X) else None


def is_record_batch(X: Any) -> bool:
    """Whether X is a record batch of Arrow, which is no frame by itself."""
    pa = nw.dependencies.get_pyarrow()
    return pa is not None and isinstance(X, pa.RecordBatch)


def frame_array(frame: Any) -> NDArray[Any] | None:
    """A pandas frame of float64, or of float32, as the array that it is; None for another frame."""
    if not nw.dependencies.is_pandas_dataframe(frame):
        return None
    kinds = set(frame.dtypes)
    return frame.to_numpy() if kinds in ({np.dtype(np.float64)}, {np.dtype(np.float32)}) else None


def frame_columns(frame: Any) -> tuple[list[Cells], int]:
    """The columns of a frame, and the number of its rows."""
    if nw.dependencies.is_pyarrow_table(frame):
        return arrow_columns(frame)
    table = nw.from_native(frame, eager_only=True)
    return [_cells_of(table[:, k], name) for k, name in enumerate(table.columns)], len(table)


def _cells_of(series: Any, name: Any) -> Cells:
    """A column of a frame of narwhals; one that pandas keeps in Arrow's memory is read as Arrow's are."""
    native = series.to_native()
    if not hasattr(getattr(native, "dtype", None), "pyarrow_dtype"):
        return column_numbers(series, name), None
    import pyarrow as pa

    return _arrow_cells(pa.array(native), name)


def column_numbers(series: Any, name: Any) -> NDArray[np.float64]:
    """A column of a frame of narwhals in float64, contiguous."""
    dtype = series.dtype
    if dtype.is_temporal():
        refuse_column(name, dtype)
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
    else:  # categories stand for values, sparse columns for dense ones
        values = _stored_numbers(series.to_numpy(), name, dtype)
    return np.require(values, np.float64, ["C", "A"])


def _stored_numbers(values: NDArray[Any], name: Any, dtype: Any) -> NDArray[Any]:
    """Numbers (n,) of a column whose type is the library's own, such as categories; TypeError where it holds none."""
    if values.ndim != 1 or values.dtype.kind in "cmMV":
        refuse_column(name, dtype if values.dtype.kind == "O" or values.ndim != 1 else values.dtype)
    return numbers_of(values, Place(column=repr(name)))


def arrow_columns(table: Any) -> tuple[list[Cells], int]:
    """The columns of an Arrow table, and the number of its rows."""
    return [_arrow_cells(table.column(k), name) for k, name in enumerate(table.column_names)], table.num_rows


def _arrow_cells(column: Any, name: Any) -> Cells:
    """Numbers in float64, where they are if they are so already, and the bits that say which of them are not null."""
    import pyarrow as pa

    came, column = column.type, plain_arrow(column)
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        refuse_column(name, came)
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
        values = _stored_numbers(column.to_numpy(zero_copy_only=False), name, came)
        return np.require(values, np.float64, ["C", "A"]), None
    column = column.cast(pa.float64(), safe=False)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    bits, numbers = column.buffers()
    if not len(column):
        return np.empty(0), None
    cells = np.frombuffer(numbers, np.float64, len(column), 8 * column.offset)
    valid = (np.frombuffer(bits, np.uint8), column.offset) if column.null_count else None
    return np.require(cells, None, ["A"]), valid


def plain_arrow(column: Any) -> Any:
    """An Arrow column whose values are written one by one: not as a dictionary, nor as runs."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        return plain_arrow(column.cast(column.type.value_type))
    if pa.types.is_run_end_encoded(column.type):
        import pyarrow.compute as pc

        return plain_arrow(pc.run_end_decode(column))
    return column


def without_nulls(cells: NDArray[np.float64], valid: tuple[NDArray[np.uint8], int] | None) -> NDArray[np.float64]:
    """Cells (n,), with NaN where the bits of `valid` say null."""
    if valid is None:
        return cells
    bits, first = valid
    known = np.unpackbits(bits, bitorder="little")[first : first + len(cells)]
    return np.where(known, cells, np.nan)
