"""Batches of rows: read from what does not fit in memory, and learned from in one pass."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from lacunar._lock import lock_of
from lacunar._state import all_or_nothing
from lacunar.observed.blocks import is_block_file
from lacunar.observed.build import Lists, column_entries, list_entries
from lacunar.observed.files import as_table, known_lines, naming, record_batches, svmlight_pieces, values_of
from lacunar.observed.numbers import arrow_columns, as_frame
from lacunar.observed.stored import ObservedFile
from lacunar.observed.table import Observed

Batch = tuple[Observed, Any]


def read_batches(
    source: Any,
    *,
    size: int = 10_000,
    target: Any = None,
    triplets: Triplets | None = None,
    lists: Lists | None = None,
    drop_unlabelled: bool = False,
    dtype: DTypeLike | None = None,
) -> Iterator[Batch]:
    """Walk the rows of a source that need not fit in memory, `size` at a time.

    Every source with the same rows gives the same batches, whatever the layout of its files.

    Parameters
    ----------
    source : path of Parquet or of an `Observed` file, record batches, Observed, or ObservedFile
        Files of a folder come by name. Arrow: an iterable of record batches or tables, a
        RecordBatchReader, a dataset or one table.
    size : int, default=10000
        Rows of a batch, at least 1; only the last is shorter.
    target : None, str or array-like of shape (n,), default=None
        Name of the column with the labels (wide rows), or the labels of all rows, such as a mapped
        ``.npy`` file. Null is NaN (None in text). None takes those in an `Observed` file, if it has
        any.
    triplets : Triplets, default=None
        The source holds a line an entry, in place of a line a row. Rows without entries in between
        are empty rows.
    lists : Lists, default=None
        The source holds a line a row with two lists: the numbers of its observed columns, in any
        order, and their values.
    drop_unlabelled : bool, default=False
        Leave out rows whose label is NaN or None, which most learners refuse (not `SLRMRegressor`).
    dtype : float64 or float32, optional
        Of the values; default: that of an `Observed`, float32 where lists hold that, else float64.

    Yields
    ------
    rows : Observed of shape (at most size, d)
    labels : ndarray of shape (at most size,), or None where there are none
        Weights in an `Observed` file are left out: `ObservedFile.batches` yields them.

    Raises
    ------
    ImportError
        Without pyarrow, for Parquet and Arrow.
    TypeError
        A source of another kind.
    ValueError
        size below 1; a target that is no column, or not one label a row; triplets that go back to
        an earlier row, or ten million rows ahead; lists of unequal length, with a column twice or
        outside the table; a file that is no Parquet of numbers. Of a path the message names it, and
        the row group and column of what cannot be decoded.
    FileNotFoundError
        When there is no such file or folder.

    Notes
    -----
    Memory is a few times that of a batch: of `size` dense rows where rows are wide, of their
    entries elsewhere. Reading a Parquet row group holds up to 2 MiB a column on top: write wide
    tables with row groups of about a batch.

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
    if isinstance(source, str | os.PathLike) and is_block_file(source):
        source = ObservedFile(source)
    if isinstance(target, str) and (triplets is not None or isinstance(source, Observed | ObservedFile)):
        raise ValueError(
            f"target must name a column of wide rows, or hold the labels of all rows; got {target!r} and "
            f"{'triplets, whose lines are entries' if triplets is not None else 'an Observed'}. Pass an array."
        )
    if triplets is not None and lists is not None:
        raise ValueError("a source must hold triplets or lists; got both. Leave one out.")
    if drop_unlabelled and target is None and not getattr(source, "has_labels", False):
        raise ValueError("drop_unlabelled=True must come with a target; got None. Say where the labels are.")
    pieces = _pieces(source, size, target, triplets or lists, dtype)
    if target is not None and not isinstance(target, str):
        pieces = _with_labels(pieces, np.asarray(target))
    if drop_unlabelled:
        pieces = (labelled for labelled in map(_known, pieces) if labelled[0].shape[0])
    batches = _of_size(pieces, size)
    if isinstance(source, str | os.PathLike):
        batches = _named(source, batches)
    return batches if dtype is None else ((rows.astype(dtype), labels) for rows, labels in batches)


def _named(path: str | os.PathLike[str], batches: Iterator[Batch]) -> Iterator[Batch]:
    with naming(path):
        yield from batches


def _pieces(
    source: Any, size: int, target: Any, layout: Triplets | Lists | None, dtype: DTypeLike | None
) -> Iterator[Batch]:
    """Rows in pieces of any number, with the labels of a named column."""
    if isinstance(source, Observed):
        return ((rows, None) for rows in source.iter_batches(size))
    if isinstance(source, ObservedFile):
        return (batch[:2] if isinstance(batch, tuple) else (batch, None) for batch in source)
    named = target if isinstance(target, str) else None
    if layout is None:
        return _of_wide_rows(record_batches(source, size), named, dtype)
    if isinstance(layout, Lists):
        columns = [layout.indices, layout.values, *([] if named is None else [named])]
        return _of_lists(record_batches(source, size, columns), layout, named, dtype)
    triplets = layout
    if target is not None:
        n_rows = len(np.asarray(target))
        if triplets.n_rows not in (None, n_rows):
            raise ValueError(f"target must have a label for every row; got {n_rows} and {triplets.n_rows} rows.")
        triplets = triplets._replace(n_rows=n_rows)
    lines = record_batches(source, LINES, [triplets.row, triplets.col, triplets.value])
    return ((rows, None) for rows in rows_of_triplets(lines, triplets, size))


def _of_wide_rows(batches: Iterable[Any], target: str | None, dtype: DTypeLike | None) -> Iterator[Batch]:
    for table in map(as_table, batches):
        if not table.num_rows:
            continue
        labels = None
        if target is not None:
            if target not in table.column_names:
                raise ValueError(f"target must be a column; got {target!r} among {table.column_names[:20]}.")
            labels, table = values_of(table[target]), table.drop_columns([target])
        yield Observed._trusted(*column_entries(*arrow_columns(table), dtype)), labels


def _of_lists(batches: Iterable[Any], lists: Lists, target: str | None, dtype: DTypeLike | None) -> Iterator[Batch]:
    first = 0
    for batch in batches:
        if batch.num_rows:
            entries = list_entries(batch, lists, first, dtype)
            yield Observed._trusted(*entries), None if target is None else values_of(batch.column(target))
            first += batch.num_rows


def _with_labels(pieces: Iterable[Batch], labels: NDArray[Any]) -> Iterator[Batch]:
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
    """The same rows in batches of `size`, wherever a file or a piece ends."""
    waiting: list[Batch] = []
    missing = size
    for rows, labels in pieces:
        start, n = 0, rows.shape[0]
        while start < n:
            stop = min(start + missing, n)
            waiting.append((rows[start:stop], None if labels is None else labels[start:stop]))
            missing, start = missing - (stop - start), stop
            if not missing:
                yield _joined(waiting)
                waiting, missing = [], size
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Batch]) -> Batch:
    if len(pieces) == 1:
        return pieces[0]
    rows, labels = zip(*pieces, strict=True)
    return Observed.vstack(rows), None if labels[0] is None else np.concatenate(labels)


LINES = 65_536  # read at a time: 1.5 MiB of numbers
MAX_GAP = 10**7  # rows without entries in a row: one number must not ask for batches without end


class Triplets(NamedTuple):
    """Names of the columns that hold row number, column number and value, and the size of the
    table.

    Lines must come by ascending row; a row may hold its columns in any order. Lines without a value
    are missing.

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
        """The entries of all parts, one part after the other."""
        return parts[0] if len(parts) == 1 else cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def split(self, row: int) -> tuple[Entries, Entries]:
        """Entries of rows before `row`, and the others."""
        at = int(np.searchsorted(self.row, row))
        return Entries(*(column[:at] for column in self)), Entries(*(column[at:] for column in self))

    def table(self, first: int, n_rows: int, n_columns: int) -> Observed:
        """Entries of `n_rows` rows, numbered from `first` on, as a table."""
        try:
            return Observed.from_triplets(self.row - first, self.col, self.value, shape=(n_rows, n_columns))
        except ValueError:
            Observed.from_triplets(*self, shape=(first + n_rows, n_columns))  # refused by the row's number in the file
            raise


def rows_of_triplets(batches: Iterable[Any], names: Triplets, size: int) -> Iterator[Observed]:
    """Tables of `size` whole rows: the last row of what was read may go on in the next record batch."""
    waiting, first, reached = [Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))], 0, -1
    for batch in batches:
        more = Entries(*known_lines(batch, names.row, names.col))
        if not len(more.row):
            continue
        _check_ascending(more.row, max(reached, 0), names)
        waiting.append(more)
        reached = int(more.row[-1])
        if reached - first >= size:
            pending = Entries.joined(waiting)
            while reached - first >= size:
                part, pending = pending.split(first + size)
                yield part.table(first, size, names.n_columns)
                first += size
            waiting = [pending]
    end, pending = reached + 1 if names.n_rows is None else names.n_rows, Entries.joined(waiting)
    for start in range(first, end, size):
        part, pending = pending.split(start + size)
        yield part.table(start, min(size, end - start), names.n_columns)


def _check_ascending(row: NDArray[Any], reached: int, names: Triplets) -> None:
    steps = np.diff(row.astype(np.int64, copy=False), prepend=reached)
    if steps.min() < 0:
        raise ValueError(
            f"triplets must come by ascending row; row {row[np.argmax(steps < 0)]} comes after a later one. Sort the "
            f"file by {names.row!r}, or read it whole with Observed.from_parquet."
        )
    if steps.max() > MAX_GAP:
        raise ValueError(
            f"triplets must come row after row; row {row[np.argmax(steps > MAX_GAP)]} comes more than {MAX_GAP} rows "
            "after the one before. Renumber the rows."
        )
    if names.n_rows is not None and row[-1] >= names.n_rows:
        raise ValueError(
            f"{names.row!r} must hold numbers 0 to {names.n_rows - 1}; got {row[-1]}. Pass the labels of all rows, or "
            "a larger n_rows."
        )


def read_svmlight(
    path: str | os.PathLike[str], *, n_features: int, size: int = 10_000, zero_based: bool = False
) -> Iterator[tuple[Observed, NDArray[np.float64]]]:
    """Walk the rows of an svmlight / libsvm text file that need not fit in memory, `size` at a
    time.

    Parameters
    ----------
    path : path-like
        Lines ``label column:value column:value ... # comment``; a written zero is observed.
    n_features : int
        Number of columns.
    size : int, default=10000
        Rows of a batch, at least 1; only the last is shorter.
    zero_based : bool, default=False
        Whether columns count from 0.

    Yields
    ------
    table : Observed, shape (at most size, n_features)
    y : ndarray of float64, shape (at most size,)

    Raises
    ------
    ValueError
        size below 1; a line that is not of that form or whose columns do not ascend, which the
        message names; a column beyond `n_features`.

    Examples
    --------
    >>> import tempfile
    >>> from lacunar.observed import read_svmlight
    >>> with tempfile.NamedTemporaryFile("w", suffix=".svm") as file:
    ...     text = file.write("1 1:0.5 3:2\\n-1 2:0\\n")
    ...     file.flush()
    ...     [(table.nnz, y.tolist()) for table, y in read_svmlight(file.name, n_features=3, size=1)]
    [(2, [1.0]), (1, [-1.0])]
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 row; got {size}.")
    return _svmlight_tables(path, n_features, size, zero_based)


def _svmlight_tables(
    path: str | os.PathLike[str], n_features: int, size: int, zero_based: bool
) -> Iterator[tuple[Observed, NDArray[np.float64]]]:
    for row, col, value, y in svmlight_pieces(path, size, zero_based):
        with naming(path):
            table = Observed.from_triplets(row, col, value, shape=(len(y), n_features))
        yield table, y


def one_pass(model: Any, batches: Iterable[Any], learn: Callable[[Any, Any], Any]) -> None:
    """Start afresh and learn batch after batch, each by `learn(model, batch)`.

    An error in the first batch leaves the model as it was; a later one what `learn` leaves; its note says which batch it was. Other
    threads have the model between two batches, and while the next one is fetched.
    """
    _refuse_one_table(batches)
    number = 0
    for number, batch in enumerate(batches, 1):
        with lock_of(model):
            try:
                _begin(model, batch, learn) if number == 1 else learn(model, batch)
            except Exception as error:
                error.add_note(f"Batch {number} raised this; the first is 1.")
                raise
    if not number:
        raise ValueError("batches must hold at least one batch; it was empty. Pass a fresh iterator.")


def _refuse_one_table(batches: Any) -> None:
    """TypeError for a path or a table, over which a loop would find letters, columns or rows."""
    if isinstance(batches, str | bytes | os.PathLike):
        came = f"the path {os.fspath(batches)!r}"
        remedy = "read_batches(path) reads Parquet so, and pandas.read_csv(path, chunksize=...) CSV"
    elif _is_table(batches):
        came, remedy = f"a {type(batches).__name__}", "Pass [(X, y)] for one batch, [X] without labels"
    elif isinstance(batches, tuple) and len(batches) == 2 and _is_table(batches[0]) and np.ndim(batches[1]) == 1:
        came, remedy = "one batch (X, y)", "Pass [(X, y)]"
    else:
        return
    raise TypeError(f"batches must be an iterable of batches; got {came}. {remedy}.")


def _is_table(value: Any) -> bool:
    is_array = isinstance(value, np.ndarray) and value.ndim == 2
    return is_array or isinstance(value, Observed) or sp.issparse(value) or as_frame(value) is not None


@all_or_nothing
def _begin(model: Any, batch: Any, learn: Callable[[Any, Any], Any]) -> None:
    for name in list(vars(model)):
        if (name.endswith("_") and not name.startswith("_")) or name == "_engine":  # what was learned, not how to
            delattr(model, name)
    learn(model, batch)


def rows_of(batch: Any) -> Any:
    """The rows X of a batch that is X, (X, y) or (X, None)."""
    return batch[0] if isinstance(batch, tuple) else batch


def labelled(batch: Any, least: int = 2, most: int = 2) -> Any:
    """The batch, after a check that it is (X, y) or, where `most` is 3, (X, y, sample_weight); ValueError otherwise."""
    if not isinstance(batch, tuple | list) or not least <= len(batch) <= most:
        came = f"{len(batch)} pieces" if isinstance(batch, tuple | list) else type(batch).__name__
        wish = "(X, y)" if most == 2 else "(X, y) or (X, y, sample_weight)"
        raise ValueError(
            f"batches must hold tuples {wish}; got {came}. Name the labels in read_batches(..., target=), or zip them."
        )
    return batch


class RowBatches:
    """`fit_batches` of estimators that learn from rows alone."""

    partial_fit: Any

    def fit_batches(self, batches: Iterable[Any]) -> Self:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of X or (X, y)
            Rows X, y ignored: what `lacunar.observed.read_batches` yields, or any generator.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator.

        Raises
        ------
        ValueError
            No batch at all, or what `partial_fit` refuses: the model is then as `partial_fit`
            leaves it, or as before the call if it was the first.
        """
        one_pass(self, batches, lambda model, batch: model.partial_fit(rows_of(batch)))
        return self
