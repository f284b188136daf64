"""`Observed` archives larger than memory, written batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._archive_grow import GrowingArchive
from lacunar.observed._format import Observed
from lacunar.observed._store import KIND


def write_batches(
    path: str | os.PathLike[str], batches: Iterable[Any], *, as_folder: bool = False
) -> NDArray[Any] | None:
    """Write rows to a file that `Observed.load` maps, holding one batch of them at a time.

    Parameters
    ----------
    path : path-like
        Where; what was there is replaced in one step at the end, so that a killed run leaves the old file.
    batches : iterable of Observed or (Observed, labels)
        As `read_batches` yields them, all of one width and one dtype.
    as_folder : bool, default=False
        A folder of ``.npy`` files instead of one file, which saves writing everything twice.

    Returns
    -------
    labels : ndarray of shape (n,), or None
        The labels one after the other, if batches had any.

    Raises
    ------
    TypeError
        A batch that is no `Observed`.
    ValueError
        No batch at all; a batch of another width or dtype than the first; labels in some batches only.

    Notes
    -----
    O(nnz) time; memory of a batch and of the labels; up to twice the size of the file on disk while writing, the size of it
    for a folder.

    Examples
    --------
    >>> import tempfile
    >>> from lacunar.observed import Observed, read_batches, write_batches
    >>> table = Observed.from_dense([[1.0, float("nan")], [2.0, 3.0], [float("nan"), 4.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     labels = write_batches(f"{folder}/rows.observed", read_batches(table, size=2, target=["a", "b", "c"]))
    ...     same = Observed.load(f"{folder}/rows.observed", mmap=False) == table
    >>> same, labels.tolist()
    (True, ['a', 'b', 'c'])
    """
    first: Observed | None = None
    n_rows = nnz = 0
    labels: list[Any] = []
    with GrowingArchive(path, kind=KIND, as_folder=as_folder) as archive:
        for number, batch in enumerate(batches):
            rows, part = batch if isinstance(batch, tuple) else (batch, None)
            if first is None:
                first = _checked(rows, rows, number)[:0]
                archive.append("indptr", np.zeros(1, np.int64))
            _checked(rows, first, number)
            archive.append("indptr", rows.indptr[1:] + nnz)
            archive.append("indices", rows.indices)
            archive.append("values", rows.values)
            n_rows, nnz = n_rows + rows.shape[0], nnz + rows.nnz
            labels.append(part)
        if first is None:
            raise ValueError("batches must hold at least one batch; it was empty. Pass a fresh iterator.")
        made = _joined_labels(labels)
        archive.finish({"shape": [n_rows, first.shape[1]]})
    return made


def _checked(rows: Any, first: Any, number: int) -> Observed:
    if not isinstance(rows, Observed):
        raise TypeError(
            f"batches must hold Observed, or (Observed, labels); got {type(rows).__name__} in batch {number}. Use "
            "Observed.from_dense, from_frame or from_scipy."
        )
    if (rows.shape[1], rows.dtype) != (first.shape[1], first.dtype):
        raise ValueError(
            f"batches must agree in columns and dtype; got {rows.shape[1]} columns of {rows.dtype} in batch {number} after "
            f"{first.shape[1]} of {first.dtype}. Use read_batches(..., dtype=)."
        )
    return rows


def _joined_labels(labels: list[Any]) -> NDArray[Any] | None:
    if all(each is None for each in labels):
        return None
    holes = [number for number, each in enumerate(labels) if each is None]
    if holes:
        raise ValueError(f"labels must come with every batch or with none; batch {holes[0]} has none. Pass them all.")
    return np.concatenate([np.asarray(each) for each in labels])
