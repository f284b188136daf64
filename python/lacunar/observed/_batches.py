"""Batches of rows from what does not fit in memory: Parquet folders, Arrow record batches, memory-mapped tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar._arrow import as_table, naming, record_batches, values_of
from lacunar.observed._construct import frame_values
from lacunar.observed._format import Observed
from lacunar.observed._triplets import LINES, Triplets, rows_of_triplets

Batch = tuple[Observed, Any]


def read_batches(
    source: Any,
    *,
    size: int = 10_000,
    target: Any = None,
    triplets: Triplets | None = None,
    drop_unlabelled: bool = False,
    dtype: DTypeLike | None = None,
) -> Iterator[Batch]:
    """Walk the rows of a source that need not fit in memory, `size` at a time.

    Every source with the same rows gives the same batches, whatever the layout of its files.

    Parameters
    ----------
    source : path of a Parquet file or folder, Arrow record batches, or Observed
        Files of a folder come by name. Arrow: an iterable of record batches or tables, a RecordBatchReader, a dataset or one table. An
        `Observed` loaded with mmap=True is never in memory as a whole.
    size : int, default=10000
        Rows of a batch, at least 1; only the last is shorter.
    target : None, str or array-like of shape (n,), default=None
        Name of the column with the labels (wide rows), or the labels of all rows, such as a mapped ``.npy`` file. Null is NaN (None in
        text).
    triplets : Triplets, default=None
        The source holds a line an entry, in place of a line a row. Rows without entries in between are empty rows.
    drop_unlabelled : bool, default=False
        Leave out rows whose label is NaN or None, which most learners refuse (not `SLRMRegressor`).
    dtype : float64 or float32, optional
        Of the values; default: that of an `Observed`, else float64.

    Yields
    ------
    rows : Observed of shape (at most size, d)
    labels : ndarray of shape (at most size,), or None without `target`

    Raises
    ------
    ImportError
        Without pyarrow, for Parquet and Arrow.
    TypeError
        A source of another kind.
    ValueError
        size below 1; a target that is no column, or not one label a row; triplets that go back to an earlier row, or ten million
        rows ahead; a file that is no Parquet of numbers. Of a path the message names it.
    FileNotFoundError
        When there is no such file or folder.

    Notes
    -----
    Memory is a few times that of a batch: of `size` dense rows where rows are wide, of their entries elsewhere. Reading a Parquet row
    group holds up to 2 MiB a column on top: write wide tables with row groups of about a batch.

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
    if isinstance(target, str) and (triplets is not None or isinstance(source, Observed)):
        raise ValueError(
            f"target must name a column of wide rows, or hold the labels of all rows; got {target!r} and "
            f"{'triplets, whose lines are entries' if triplets is not None else 'an Observed'}. Pass an array."
        )
    if drop_unlabelled and target is None:
        raise ValueError("drop_unlabelled=True must come with a target; got None. Say where the labels are.")
    pieces = _pieces(source, size, target, triplets)
    if target is not None and not isinstance(target, str):
        pieces = _with_labels(pieces, np.asarray(target), None if triplets is None else triplets.n_rows)
    if drop_unlabelled:
        pieces = (labelled for labelled in map(_known, pieces) if labelled[0].shape[0])
    made = _of_size(pieces, size)
    if isinstance(source, str | os.PathLike):
        made = _named(source, made)
    return made if dtype is None else ((rows.astype(dtype), labels) for rows, labels in made)


def _named(path: str | os.PathLike[str], batches: Iterator[Batch]) -> Iterator[Batch]:
    with naming(path):
        yield from batches


def _pieces(source: Any, size: int, target: Any, triplets: Triplets | None) -> Iterator[Batch]:
    """Rows in pieces of any number, with the labels of a named column."""
    if isinstance(source, Observed):
        return ((rows, None) for rows in source.iter_batches(size))
    if triplets is None:
        return _of_wide_rows(record_batches(source, size), target if isinstance(target, str) else None)
    if target is not None:
        n_rows = len(np.asarray(target))
        if triplets.n_rows not in (None, n_rows):
            raise ValueError(f"target must have a label for every row; got {n_rows} and {triplets.n_rows} rows.")
        triplets = triplets._replace(n_rows=n_rows)
    lines = record_batches(source, LINES, [triplets.row, triplets.col, triplets.value])
    return ((rows, None) for rows in rows_of_triplets(lines, triplets, size))


def _of_wide_rows(batches: Iterable[Any], target: str | None) -> Iterator[Batch]:
    for table in map(as_table, batches):
        if not table.num_rows:
            continue
        labels = None
        if target is not None:
            if target not in table.column_names:
                raise ValueError(f"target must be a column; got {target!r} among {table.column_names[:20]}.")
            labels, table = values_of(table[target]), table.drop_columns([target])
        yield Observed.from_dense(frame_values(table)), labels


def _with_labels(pieces: Iterable[Batch], labels: NDArray[Any], n_rows: int | None) -> Iterator[Batch]:
    start = 0
    for rows, _ in pieces:
        stop = start + rows.shape[0]
        if stop > len(labels):
            raise ValueError(
                f"target must have a label for every row; got {len(labels)} labels and at least {stop} rows."
            )
        yield rows, labels[start:stop]
        start = stop
    if start < len(labels):
        raise ValueError(f"target must have a label for every row; got {len(labels)} labels and {start} rows.")


def _known(piece: Batch) -> Batch:
    """The rows of a piece whose label is known."""
    rows, labels = piece
    known = labels == labels
    if labels.dtype.kind == "O":
        known = np.array([label is not None and bool(label == label) for label in labels], dtype=bool)
    return (rows, labels) if known.all() else (rows[known], labels[known])


def _of_size(pieces: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same rows cut anew, so that no batch tells how a file was laid out."""
    held: list[Batch] = []
    missing = size
    for rows, labels in pieces:
        start, n = 0, rows.shape[0]
        while start < n:
            stop = min(start + missing, n)
            held.append((rows[start:stop], None if labels is None else labels[start:stop]))
            missing, start = missing - (stop - start), stop
            if not missing:
                yield _joined(held)
                held, missing = [], size
    if held:
        yield _joined(held)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    rows, labels = zip(*pieces, strict=True)
    return Observed.vstack(rows), None if labels[0] is None else np.concatenate(labels)
