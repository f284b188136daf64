"""Batches of rows from what does not fit in memory: Parquet folders, Arrow record batches, memory-mapped tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.observed._construct import frame_values
from lacunar.observed._format import Observed

Batch = tuple[Observed, Any]


class Triplets(NamedTuple):
    """Names of the columns that hold row number, column number and value, and the width of the table.

    Lines must come by ascending row; a row may hold its columns in any order.
    """

    n_columns: int
    row: str = "row"
    col: str = "col"
    value: str = "value"


def read_batches(
    source: Any, *, size: int = 10_000, target: Any = None, triplets: Triplets | None = None
) -> Iterator[Batch]:
    """Walk the rows of a source that need not fit in memory, `size` at a time.

    Parameters
    ----------
    source : path of a Parquet file or folder, Arrow record batches, or Observed
        Arrow: an iterable of record batches or tables, a RecordBatchReader or one table. An `Observed` loaded with mmap=True is
        never in memory as a whole.
    size : int, default=10000
        Rows of a batch, at least 1; the last may be shorter.
    target : None, str or array-like of shape (n,), default=None
        Name of the column with the labels (wide rows), or the labels of an `Observed`.
    triplets : Triplets, default=None
        The source holds a line an entry, in place of a line a row. Rows without entries in between are empty rows.

    Yields
    ------
    rows : Observed of shape (at most size, d)
    labels : ndarray of shape (at most size,), or None without `target`

    Raises
    ------
    ImportError
        Without pyarrow, for Parquet and Arrow.
    ValueError
        size below 1; a target that is no column; triplets that go back to an earlier row.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.observed import Observed, read_batches
    >>> table = Observed.from_dense(np.eye(5))
    >>> [rows.shape for rows, labels in read_batches(table, size=2)]
    [(2, 5), (2, 5), (1, 5)]
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 row; got {size}.")
    if isinstance(source, Observed):
        yield from _of_table(source, size, target)
    elif triplets is not None:
        if target is not None:
            raise ValueError(
                f"target must be None with triplets, whose lines are entries; got {target!r}. Pass labels yourself."
            )
        yield from ((rows, None) for rows in _of_triplets(_arrow(source, size, list(triplets[1:])), triplets, size))
    else:
        yield from _of_wide_rows(_arrow(source, size, None), target)


def _of_table(table: Observed, size: int, target: Any) -> Iterator[Batch]:
    labels = None if target is None else np.asarray(target)
    if labels is not None and len(labels) != table.shape[0]:
        raise ValueError(f"target must have a label for every row; got {len(labels)} and {table.shape[0]} rows.")
    for start, rows in zip(range(0, table.shape[0], size), table.iter_batches(size), strict=True):
        yield rows, None if labels is None else labels[start : start + size]


def _arrow(source: Any, size: int, columns: list[str] | None) -> Iterator[Any]:
    """Record batches of at most `size` lines."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError:
        raise ImportError(
            "reading Parquet and Arrow needs pyarrow, which is not installed: pip install pyarrow"
        ) from None
    if isinstance(source, str | os.PathLike):
        yield from dataset.dataset(source, format="parquet").to_batches(columns=columns, batch_size=size)
        return
    pieces: Iterable[Any] = [source] if isinstance(source, pa.Table | pa.RecordBatch) else source
    for piece in pieces:
        table = pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece
        yield from (table if columns is None else table.select(columns)).to_batches(max_chunksize=size)


def _of_wide_rows(batches: Iterable[Any], target: str | None) -> Iterator[Batch]:
    import pyarrow as pa

    for batch in batches:
        if not batch.num_rows:
            continue
        table = pa.Table.from_batches([batch])
        labels = None
        if target is not None:
            if target not in table.column_names:
                raise ValueError(f"target must be a column; got {target!r} among {table.column_names[:20]}.")
            labels, table = table[target].to_numpy(), table.drop_columns([target])
        yield Observed.from_dense(frame_values(table)), labels


def _of_triplets(batches: Iterable[Any], names: Triplets, size: int) -> Iterator[Observed]:
    """Whole rows only: the last row of what was read may go on in the next record batch."""
    held, first, reached = _Entries.none(), 0, 0
    for batch in batches:
        known = batch.filter(batch.column(2).is_valid())
        more = _Entries(*(np.asarray(known.column(k).to_numpy(zero_copy_only=False)) for k in range(3)))
        if not len(more.row):
            continue
        back = np.flatnonzero(np.diff(np.concatenate([[reached], more.row])) < 0)
        if len(back):
            raise ValueError(
                f"triplets must come by ascending row; row {more.row[back[0]]} comes after a later one. Sort the file by "
                f"{names.row!r}, or read it whole with Observed.from_parquet."
            )
        held, reached = held.followed_by(more), int(more.row[-1])
        while reached - first >= size:
            part, held = held.split(first + size)
            yield part.table(first, size, names.n_columns)
            first += size
    if len(held.row):
        yield held.table(first, reached + 1 - first, names.n_columns)


class _Entries(NamedTuple):
    row: NDArray[Any]
    col: NDArray[Any]
    value: NDArray[Any]

    @classmethod
    def none(cls) -> _Entries:
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def followed_by(self, more: _Entries) -> _Entries:
        return _Entries(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))

    def split(self, row: int) -> tuple[_Entries, _Entries]:
        """Entries of rows before `row`, and the others."""
        at = int(np.searchsorted(self.row, row))
        return _Entries(*(each[:at] for each in self)), _Entries(*(each[at:] for each in self))

    def table(self, first: int, n_rows: int, n_columns: int) -> Observed:
        return Observed.from_triplets(self.row - first, self.col, self.value, shape=(n_rows, n_columns))
