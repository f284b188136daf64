"""Whole rows from lines of (row, column, value) that come by ascending row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.observed._format import Observed

LINES = 65_536  # read at a time: 1.5 MiB of numbers
MAX_GAP = 10**7  # rows without entries in a row: one number must not ask for batches without end


class Triplets(NamedTuple):
    """Names of the columns that hold row number, column number and value, and the size of the table.

    Lines must come by ascending row; a row may hold its columns in any order. Lines without a value are missing.

    Attributes
    ----------
    n_columns : int
    row, col, value : str
    n_rows : int, default=None
        Default: up to the last row that has an entry.
    """

    n_columns: int
    row: str = "row"
    col: str = "col"
    value: str = "value"
    n_rows: int | None = None


class Entries(NamedTuple):
    """Triplets of numbers from 0, as three arrays of one length."""

    row: NDArray[Any]
    col: NDArray[Any]
    value: NDArray[Any]

    @classmethod
    def joined(cls, parts: list[Entries]) -> Entries:
        """One after the other."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def split(self, row: int) -> tuple[Entries, Entries]:
        """Entries of rows before `row`, and the others."""
        at = int(np.searchsorted(self.row, row))
        return Entries(*(each[:at] for each in self)), Entries(*(each[at:] for each in self))

    def table(self, first: int, n_rows: int, n_columns: int) -> Observed:
        """Rows from `first` on."""
        try:
            return Observed.from_triplets(self.row - first, self.col, self.value, shape=(n_rows, n_columns))
        except ValueError:
            Observed.from_triplets(*self, shape=(first + n_rows, n_columns))  # refused by the row's number in the file
            raise


def rows_of_triplets(batches: Iterable[Any], names: Triplets, size: int) -> Iterator[Observed]:
    """Tables of `size` whole rows: the last row of what was read may go on in the next record batch."""
    held, first, reached = [Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))], 0, -1
    for batch in batches:
        more = known_entries(batch, names)
        if not len(more.row):
            continue
        _check_ascending(more.row, max(reached, 0), names)
        held.append(more)
        reached = int(more.row[-1])
        if reached - first >= size:
            rest = Entries.joined(held)
            while reached - first >= size:
                part, rest = rest.split(first + size)
                yield part.table(first, size, names.n_columns)
                first += size
            held = [rest]
    end, rest = reached + 1 if names.n_rows is None else names.n_rows, Entries.joined(held)
    for start in range(first, end, size):
        part, rest = rest.split(start + size)
        yield part.table(start, min(size, end - start), names.n_columns)


def known_entries(batch: Any, names: Triplets) -> Entries:
    """The lines of a record batch that have a value; they must have a row and a column."""
    known = batch.filter(batch.column(2).is_valid())
    for number, name in enumerate((names.row, names.col)):
        if known.column(number).null_count:
            raise ValueError(f"column {name!r} must hold a number in every line with a value; got a null. Drop it.")
    return Entries(*(np.asarray(known.column(k).to_numpy(zero_copy_only=False)) for k in range(3)))


def _check_ascending(row: NDArray[Any], reached: int, names: Triplets) -> None:
    back = np.flatnonzero(np.diff(np.concatenate([[reached], row])) < 0)
    if len(back):
        raise ValueError(
            f"triplets must come by ascending row; row {row[back[0]]} comes after a later one. Sort the file by "
            f"{names.row!r}, or read it whole with Observed.from_parquet."
        )
    ahead = np.flatnonzero(np.diff(np.concatenate([[reached], row])) > MAX_GAP)
    if len(ahead):
        raise ValueError(
            f"triplets must come row after row; row {row[ahead[0]]} comes more than {MAX_GAP} rows after the one before. Renumber the "
            "rows."
        )
    if names.n_rows is not None and row[-1] >= names.n_rows:
        raise ValueError(
            f"{names.row!r} must hold numbers 0 to {names.n_rows - 1}; got {row[-1]}. Pass the labels of all rows, or a larger "
            "n_rows."
        )
