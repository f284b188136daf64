"""Rows in a file that need not fit in memory: read block by block, one pass after another, by a thread that reads
ahead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from functools import wraps
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar._log import say
from lacunar.observed.blocks import BlockFile, Piece, Precision, ahead, whole, write_rows
from lacunar.observed.memory import mark_private
from lacunar.observed.table import Observed

Step = Callable[..., Any]
_AHEAD = 2  # blocks that are decoded before they are asked for
_SAID = 5.0  # seconds between two lines of progress


class ObservedFile:
    """Rows in a file, which need not fit in memory.

    Opening reads the footer of the file, whatever its size. Everything else is checked block by
    block in the first pass over the data; checksums are then not compared again in the same
    process. A thread of its own reads, checks and decodes the next two blocks while one is learned
    from.

    Iterating gives batches as `fit_batches` of every estimator takes them, a block each: rows, or
    (rows, labels), or (rows, labels, weights), whatever the file holds. `predict`, `predict_proba`,
    `decision_function`, `transform`, `impute` and `score` of the estimators that learn from it take
    the file itself, and hold a block and the array that they return; `score` takes labels and
    weights from the file.

    Parameters
    ----------
    path : path-like
        Of a file that `Observed.save` or `lacunar.observed.write_batches` wrote.

    Attributes
    ----------
    shape : tuple of (n, d)
    nnz : int
        Number of observed entries.
    dtype : dtype
        float64 or float32, of the values that come out.
    precision : {"lossless", "float16", "int8"}
        How values were written.
    error : float
        What that lost: root mean square of the differences, in units of the root mean square of the
        values.
    has_labels, has_weights : bool
        Whether labels and weights of rows are in the file.

    Raises
    ------
    FileNotFoundError
        When there is no such file.
    ValueError
        When it is no such file, or damaged: here where the footer says so, in a pass where a block
        does. The message names the file, the block and the row.

    See Also
    --------
    Observed.load : The whole table in memory.
    write_batches : Writes such a file.

    Notes
    -----
    Memory is that of four blocks, of a million entries each at most unless a single row has more:
    some 50 MB.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from lacunar.lowrank import POPCA
    >>> from lacunar.observed import Observed, ObservedFile
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Observed.from_dense(X).save(f"{folder}/rows.observed")
    ...     file = ObservedFile(f"{folder}/rows.observed")
    ...     file.shape, POPCA(2, solver="dense").fit(file).components_.shape
    ((100, 4), (2, 4))
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file = BlockFile(path)
        header = self._file.header
        self.shape, self.dtype, self.precision, self.error = header.shape, header.dtype, header.precision, header.error
        self.has_labels, self.has_weights = header.labels, header.weights
        self.nnz = int(self._file.table["entries"].sum())

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return (
            f"<ObservedFile {self._file.path!r}: {self.shape[0]} x {self.shape[1]}, {self.nnz} entries, {self.dtype}>"
        )

    def __iter__(self) -> Iterator[Any]:
        return self.batches()

    def batches(self, *, start: int = 0, verbose: int = 0) -> Iterator[Any]:
        """Walk the rows in the order of the file, a block at a time.

        Parameters
        ----------
        start : int, default=0
            First row, for a pass that was interrupted: `n_rows_seen_` or `n_samples_seen_` of a
            model that goes on with `partial_fit`. What comes before is not read.
        verbose : int, default=0
            From 1 on, entries a second and the time left are logged every five seconds.

        Returns
        -------
        batches : iterator of Observed, (Observed, labels) or (Observed, labels, weights)
            What the file holds.

        Raises
        ------
        ValueError
            A row that is not there; then, where a block is damaged.
        """
        if not 0 <= start <= self.shape[0]:
            raise ValueError(
                f"start must be a row from 0 to {self.shape[0]}; got {start}. Pass the number of rows seen."
            )
        pieces = _reporting(self._file, self._pieces(start), verbose) if verbose else self._pieces(start)
        return map(self._batch, pieces)

    def prepared(self, step: Step) -> Generator[Any, None, None]:
        """step((rows, labels)) of every block, computed ahead in the thread that reads; the thread
        ends with the iterator.

        Parameters
        ----------
        step : callable
            Of a pair (Observed, labels), labels None where there are none.

        Returns
        -------
        made : iterator
        """
        return ahead((step((self._rows(piece), piece.labels)) for piece in self._file.blocks()), _AHEAD)

    def _pieces(self, start: int = 0) -> Generator[Piece, None, None]:
        ends = np.cumsum(self._file.table["rows"].astype(np.int64))
        first = int(np.searchsorted(ends, start, side="right"))
        skipped = start - (int(ends[first - 1]) if first else 0)
        for piece in ahead(self._file.blocks(first), _AHEAD):
            yield piece.part(skipped, piece.n_rows) if skipped else piece
            skipped = 0

    def _batch(self, piece: Piece) -> Any:
        parts = (self._rows(piece), piece.labels, piece.weights)
        return parts[0] if not self.has_labels else parts if self.has_weights else parts[:2]

    def _rows(self, piece: Piece) -> Observed:
        arrays = mark_private(piece.indptr), mark_private(piece.indices), mark_private(piece.values)
        return Observed._trusted(*arrays, (piece.n_rows, self.shape[1]))

    def read(self) -> Observed:
        """All rows, in memory.

        Returns
        -------
        table : Observed
        """
        return Observed._trusted(*whole(self._file))

    def labels(self) -> NDArray[Any] | None:
        """Labels of all rows, shape (n,) or (n, targets), or None where the file has none. Entries
        are not read.

        Returns
        -------
        labels : ndarray or None
        """
        labels = self._file.more()[0]
        return np.concatenate(labels) if labels else None

    def weights(self) -> NDArray[np.float64] | None:
        """Weights of all rows, shape (n,), or None where the file has none. Entries are not read.

        Returns
        -------
        weights : ndarray or None
        """
        weights = self._file.more()[1]
        return np.concatenate(weights) if weights else None


def over_files(method: Step) -> Step:
    """Let a method of an estimator that answers rows take an `ObservedFile` too, block by block; the results are joined
    by row.
    """

    @wraps(method)
    def answer(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(X, ObservedFile):
            return _collected(X, lambda rows: method(self, rows, *arguments, **options))
        return method(self, X, *arguments, **options)

    return answer


def _collected(file: ObservedFile, step: Step) -> Any:
    """The results of step(rows) for all blocks, joined by row. A result is an array with one entry a row, a tuple of
    such, or a sparse matrix.
    """
    n = len(file)
    joined: list[NDArray[Any]] = []
    sparse: list[Any] = []
    if n == 0:
        return step(file.read())
    with closing(_answers(file, step)) as answers:
        for rows, answer in answers:
            if sp.issparse(answer):
                sparse.append(answer)
                continue
            arrays = [np.asarray(array) for array in (answer if isinstance(answer, tuple) else (answer,))]
            joined = joined or [np.empty((n, *array.shape[1:]), array.dtype) for array in arrays]
            for target, array in zip(joined, arrays, strict=True):
                target[rows] = array
    if sparse:
        return sp.vstack(sparse, format="csr")
    return tuple(joined) if isinstance(answer, tuple) else joined[0]


def _answers(file: ObservedFile, step: Step) -> Generator[tuple[slice, Any], None, None]:
    """step(rows) for every block, and which rows of the file these are."""
    start = 0
    with closing(file._pieces()) as pieces:
        for piece in pieces:
            try:
                answer = step(file._rows(piece))
            except Exception as error:  # it is raised again, and says where its rows are
                error.add_note(f"Rows of this message count from row {start} of {file!r}.")
                raise
            yield slice(start, start + piece.n_rows), answer
            start += piece.n_rows


def _reporting(file: BlockFile, pieces: Iterator[Piece], verbose: int) -> Iterator[Piece]:
    """The same pieces, with reports of the speed and of the time left."""
    total, done, begun = int(file.table["entries"].sum()), 0, time.perf_counter()
    said = begun
    for piece in pieces:
        yield piece
        done, now = done + len(piece.indices), time.perf_counter()
        if now - said >= _SAID and done:
            said, speed = now, done / (now - begun)
            seconds_left = (total - done) / speed
            say(
                verbose,
                "%s: %d of %d entries, %.1f million a second, %.0f s left",
                file.path,
                done,
                total,
                speed / 1e6,
                seconds_left,
            )


def write_batches(
    path: str | os.PathLike[str], batches: Iterable[Any], *, precision: Precision = "lossless"
) -> ObservedFile:
    """Write rows, with labels and weights if there are any, to a file that `ObservedFile` reads;
    one block is in memory at a time.

    Parameters
    ----------
    path : path-like
        Where; what was there is replaced in one step at the end, so that a killed run leaves the
        old file.
    batches : iterable of Observed, (Observed, labels) or (Observed, labels, weights)
        As `read_batches` yields them, all of one width and one dtype. Labels are numbers, truth
        values or text, of shape (m,) or (m, targets); NaN where unknown.
    precision : {"lossless", "float16", "int8"}, default="lossless"
        Of the values in the file. "lossless" takes as few bytes as hold every value of a block
        exactly: 1 where all are whole numbers up to 127, 2 where float16 holds them, 4 in float32,
        8 in float64. "float16" takes 2, with a relative error of 2e-4 or so; blocks with a value
        beyond 65504 stay exact. "int8" takes 1: 127 steps up to the largest value of the column in
        its block, an error of 1 % or so; where columns are many beside the entries of a block, it
        is "float16".

    Returns
    -------
    file : ObservedFile
        The file, opened. Its `error` says what the precision lost.

    Raises
    ------
    TypeError
        A batch that is no `Observed`; labels that are neither numbers nor text.
    ValueError
        No batch at all; a batch of another width or dtype than the first; labels or weights in some
        batches only, or not one a row; weights that are negative or not finite.

    Notes
    -----
    O(nnz) time. Columns take 1 byte an entry where rows observe more than one column in 250 or so,
    2 where they observe fewer, and an eighth of a byte a cell where nearly all cells are observed.
    The file depends on the rows, not on how batches were cut.

    Examples
    --------
    >>> import tempfile
    >>> from lacunar.observed import Observed, read_batches, write_batches
    >>> table = Observed.from_dense([[1.0, float("nan")], [2.0, 3.0], [float("nan"), 4.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = write_batches(
    ...         f"{folder}/rows.observed", read_batches(table, size=2, target=["a", "b", "c"])
    ...     )
    ...     file.read() == table, file.labels().tolist()
    (True, ['a', 'b', 'c'])
    """
    numbered = enumerate(batches)
    first = next(numbered, None)
    if first is None:
        raise ValueError("batches must hold at least one batch; it was empty. Pass a fresh iterator.")
    head = _checked_batch(first[1], 0, None)

    def pieces() -> Iterator[Piece]:
        yield Piece(head[0].indptr, head[0].indices, head[0].values, *head[1:])
        for number, batch in numbered:
            rows, labels, weights = _checked_batch(batch, number, head)
            yield Piece(rows.indptr, rows.indices, rows.values, labels, weights)

    write_rows(path, pieces(), n_columns=head[0].shape[1], dtype=head[0].dtype, precision=precision)
    return ObservedFile(path)


_Batch = tuple[Observed, NDArray[Any] | None, NDArray[np.float64] | None]


def _checked_batch(batch: Any, number: int, first: _Batch | None) -> _Batch:
    rows, *more = batch if isinstance(batch, tuple) else (batch,)
    if not isinstance(rows, Observed):
        raise TypeError(
            f"batches must hold Observed, or (Observed, labels); got {type(rows).__name__} in batch {number}. Use "
            "Observed.from_dense, from_frame or from_scipy."
        )
    if first is not None and (rows.shape[1], rows.dtype) != (first[0].shape[1], first[0].dtype):
        raise ValueError(
            f"batches must agree in columns and dtype; got {rows.shape[1]} columns of {rows.dtype} in batch {number} "
            f"after {first[0].shape[1]} of {first[0].dtype}. Use read_batches(..., dtype=)."
        )
    labels, weights = [*more, None, None][:2]
    checked = (rows, _checked_labels(labels, rows, number), _checked_weights(weights, labels, rows, number))
    for name, mine, theirs in zip(("labels", "weights"), checked[1:], first[1:] if first else checked[1:], strict=True):
        if (mine is None) != (theirs is None):
            raise ValueError(
                f"{name} must come with every batch or with none; batch {number if mine is None else 0} has none. Pass "
                "them all."
            )
    return checked


def _checked_labels(labels: Any, rows: Observed, number: int) -> NDArray[Any] | None:
    if labels is None:
        return None
    array = np.asarray(labels)
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array.ravel()):
        array = array.astype(str)
    if array.dtype.kind not in "biufU":
        raise TypeError(
            f"labels must be numbers, truth values or text; got dtype {array.dtype} in batch {number}. Leave "
            "unlabelled rows out (drop_unlabelled=True), or use NaN."
        )
    if array.ndim not in (1, 2) or len(array) != rows.shape[0]:
        raise ValueError(
            f"labels must be one a row; got shape {array.shape} for {rows.shape[0]} rows in batch {number}. Cut both "
            "alike."
        )
    return array


def _checked_weights(weights: Any, labels: Any, rows: Observed, number: int) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    array = np.asarray(weights, dtype=np.float64)
    if labels is None or array.shape != (rows.shape[0],) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"weights must be finite numbers of at least 0, one a row that has a label; got shape {array.shape} for "
            f"{rows.shape[0]} rows in batch {number}. Pass (rows, labels, weights)."
        )
    return array
