"""A table of any kind as columns of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar._log import warn_user
from lacunar._typing import Bools, Floats, Ints
from lacunar.encode import TableEncoder
from lacunar.impute.columns import Column, dictionary_of, first_of, plainly_named
from lacunar.impute.writing import filled_array, filled_frame
from lacunar.observed import Observed
from lacunar.observed.cells import cut, label_of, listed, plain_cells
from lacunar.observed.contract import as_array, refuse_no_table
from lacunar.observed.names import columns_by_name
from lacunar.observed.numbers import as_frame, is_missing, is_record_batch
from lacunar.observed.sentinels import warn_of_sentinels

MOST_LEVELS = 50  # beyond which text names rows, or is free
_LARGEST = 1e150  # squares of larger numbers overflow
# The first and the last moment that Python's dates have.
_YEARS = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")


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
    is_batch: bool  # whether it came as a record batch of Arrow, of which `native` is a table

    def filled(self, cells: Mapping[int, tuple[Ints, Floats]], columns: list[Column]) -> Any:
        """A copy in which columns, by their places, have these values in these rows."""
        if isinstance(self.native, np.ndarray):
            return filled_array(self.native, cells, columns)
        frame = filled_frame(self.native, cells, columns)
        return frame.combine_chunks().to_batches()[0] if self.is_batch else frame

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
    numeric = [(c.name, v.numbers) for c, v in zip(columns, values, strict=True) if c.kind in ("number", "whole")]
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
    return Table(native, cells, levels, truths, len(cells[0]), is_record_batch(X))


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
    table = nw.from_native(plainly_named(native), eager_only=True)
    columns = [table[:, j] for j in range(d)]
    is_boolean = [c.dtype == nw.Boolean or (c.dtype == nw.Object and _are_truths(c.to_numpy())) for c in columns]
    return [_ordered_levels(column) for column in columns], is_boolean


def _are_truths(cells: NDArray[Any]) -> bool:
    """Whether cells are booleans, by their type or, of objects, one by one."""
    if cells.dtype.kind != "O":
        return cells.dtype.kind == "b"
    kinds = {type(cell) for cell in cells.tolist() if not isinstance(cell, bool | np.bool_) and not is_missing(cell)}
    return not kinds and first_of(cells.tolist()) is not None


def _ordered_levels(series: Any) -> tuple[Any, ...] | None:
    """Levels of a type that orders them: pandas' ordered categories, Arrow's ordered dictionaries and polars' Enum."""
    native = series.to_native()
    dtype: Any = getattr(native, "dtype", None)
    if getattr(dtype, "ordered", False) or series.dtype == nw.Enum:
        levels = list(dtype.categories)
    elif getattr(getattr(native, "type", None), "ordered", False):
        levels = dictionary_of(native)
    else:
        return None
    return tuple(label_of(level) for level in plain_cells(levels, series.name))


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
