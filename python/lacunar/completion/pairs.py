"""Pairs and labels from tables and from sources that do not fit in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._random import generator
from lacunar.encode import objects
from lacunar.observed import Observed, ObservedFile, read_batches
from lacunar.observed.door import SparseMissing, as_observed
from lacunar.observed.files import record_batches, values_of

Column = NDArray[Any]
PairBatch = tuple[tuple[Column, Column], Column]


def read_pair_batches(
    source: Any,
    *,
    size: int = 10_000,
    row: str = "row",
    col: str = "col",
    label: str = "label",
    time: str | None = None,
) -> Iterator[PairBatch]:
    """Walk the pairs of a source that need not fit in memory, `size` at a time and in its order.

    Parameters
    ----------
    source : path of a Parquet file or folder, Arrow record batches, Observed, or ObservedFile
        Files of a folder come by name. Of an `Observed` or its file, entries come row by row, their
        values are the labels, and the names below are not used.
    size : int, default=10000
        Pairs of a batch, at least 1; only the last is shorter.
    row, col, label : str
        Names of the columns with the ids and the labels. Lines whose label is null or NaN are left
        out.
    time : str, default=None
        Name of a column that must not fall from one line to the next: the order in which pairs
        came.

    Yields
    ------
    pairs : tuple of (rows, cols), ndarrays of shape (at most size,)
    labels : ndarray of shape (at most size,)
        Together a batch for `OnlineMatrixClassifier.fit_batches`.

    Raises
    ------
    ImportError
        Without pyarrow, for Parquet and Arrow.
    TypeError
        A source of another kind.
    ValueError
        size below 1, a column that is not there, a time that goes back.

    Examples
    --------
    >>> from lacunar.observed import Observed, ObservedFile, read_batches
    >>> from lacunar.completion import OnlineMatrixClassifier, read_pair_batches
    >>> likes = Observed.from_dense([[1.0, float("nan"), -1.0], [float("nan"), 1.0, -1.0]])
    >>> [
    ...     (rows.tolist(), cols.tolist())
    ...     for (rows, cols), labels in read_pair_batches(likes, size=3)
    ... ]
    [([0, 0, 1], [0, 2, 1]), ([1], [2])]
    >>> OnlineMatrixClassifier().fit_batches(read_pair_batches(likes, size=3)).n_seen_
    4
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 pair; got {size}.")
    if isinstance(source, Observed | ObservedFile):
        return _of_size(_of_tables(source), size)
    names = [row, col, label, *([] if time is None else [time])]
    return _of_size(_of_lines(record_batches(source, size, names), time), size)


def _of_tables(source: Observed | ObservedFile) -> Iterator[list[Column]]:
    """Columns of rows, columns and values, a block at a time."""
    first = 0
    for rows, _ in read_batches(source):
        yield [first + rows.row_numbers, rows.indices, rows.values]
        first += rows.shape[0]


def _of_lines(batches: Iterable[Any], time: str | None) -> Iterator[list[Column]]:
    """Columns of rows, columns and labels, a record batch at a time."""
    reached: Any = None
    for batch in batches:
        if time is not None and batch.num_rows:
            reached = _checked_time(values_of(batch.column(3)), reached, time)
        known = batch.filter(batch.column(2).is_valid())
        columns = [values_of(known.column(k)) for k in range(3)]
        if columns[2].dtype.kind == "f":
            columns = [column[~np.isnan(columns[2])] for column in columns]
        yield columns


def _checked_time(times: Column, reached: Any, name: str) -> Any:
    if (times.dtype.kind == "O" and any(moment is None for moment in times)) or (times != times).any():
        raise ValueError(f"column {name!r} must hold a time in every line; got a null. Drop those lines.")
    chain = times if reached is None else np.append(np.asarray([reached], dtype=times.dtype), times)
    back = np.flatnonzero(chain[1:] < chain[:-1])
    if back.size:
        raise ValueError(
            f"pairs must come by ascending {name!r}; got {chain[back[0] + 1]} after {chain[back[0]]}. Sort the source "
            "by it (files of a folder come by name), or leave time out to take pairs as they come."
        )
    return times[-1]


def _of_size(pieces: Iterable[list[Column]], size: int) -> Iterator[PairBatch]:
    """The same pairs cut anew, so that no batch tells how a file was laid out."""
    pieces_so_far: list[list[Column]] = []
    count = 0
    for piece in pieces:
        pieces_so_far.append(piece)
        count += len(piece[0])
        if count >= size:
            columns = [np.concatenate(column) for column in zip(*pieces_so_far, strict=True)]
            for start in range(0, count - size + 1, size):
                yield _batch([column[start : start + size] for column in columns])
            pieces_so_far = [[column[count - count % size :] for column in columns]]
            count %= size
    if count:
        yield _batch([np.concatenate(column) for column in zip(*pieces_so_far, strict=True)])


def _batch(columns: list[Column]) -> PairBatch:
    rows, cols, labels = columns
    return (rows, cols), labels


def table_pairs(
    table: Any, *, sparse_missing: SparseMissing = "absent", shuffle: bool = True, random_state: Any = None
) -> tuple[tuple[NDArray[Any], NDArray[Any]], NDArray[Any]]:
    """What is observed of a table, as the pairs and values that `OnlineMatrixClassifier` takes.

    Parameters
    ----------
    table : array-like with NaN, frame, sparse matrix or Observed, shape (m, n)
        Ratings or labels: numbers or booleans.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse table does not store: missing, or zero.
    shuffle : bool, default=True
        Pairs in random order. Row after row, a stream would learn one row at a time, and know
        nothing of the next.
    random_state : int, RandomState or None, default=None
        Of that order.

    Returns
    -------
    pairs : (rows, cols), two ndarrays of shape (nnz,)
        Numbers of rows and columns; for a frame its column names, and for a pandas frame its index.
    values : ndarray of shape (nnz,)

    Raises
    ------
    TypeError, ValueError
        As `lacunar.Observed.from_dense`, `from_frame` and `from_scipy`.

    Notes
    -----
    O(nnz) beside the table.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from lacunar.completion import OnlineMatrixClassifier, table_pairs
    >>> likes = pd.DataFrame(
    ...     {
    ...         "Alien": [1, 0, 1, 0],
    ...         "Heat": [1, None, 1, 0],
    ...         "Ran": [None, 0, 1, 0],
    ...         "Tron": [1, 0, None, None],
    ...     },
    ...     index=["ann", "bob", "cid", "dan"],
    ... )
    >>> pairs, y = table_pairs(likes, random_state=0)
    >>> model = OnlineMatrixClassifier().fit(pairs, y)
    >>> model.predict([("ann", "Ran"), ("bob", "Heat")])
    array([1., 0.])
    """
    seen = as_observed(table, sparse_missing=sparse_missing, warn_counts=False)
    rows, cols, values = seen.row_numbers, seen.indices, seen.values
    if shuffle:
        order = generator(random_state).permutation(len(values))
        rows, cols, values = rows[order], cols[order], values[order]
    # Of a pandas or polars frame, or an Arrow table. `columns` of an Observed are its entries by column.
    plain = isinstance(table, Observed)
    column_names = None if plain else getattr(table, "column_names", getattr(table, "columns", None))
    return (_names(getattr(table, "index", None), rows), _names(column_names, cols)), values


def _names(names: Any, numbers: NDArray[Any]) -> NDArray[Any]:
    if names is None or callable(names):  # `index` of a list is a method
        return numbers.astype(np.int64)
    chosen: NDArray[Any] = objects(names)[numbers]
    return chosen
