"""What `Observed` is read from besides its own file: svmlight text and Parquet triplets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FREE_ROWS, _EMPTY_PER_ENTRY = 10**6, 1000  # rows that may be empty without a word: 8 bytes each
_Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def svmlight_pieces(path: str | os.PathLike[str], batch_rows: int, zero_based: bool) -> Iterator[_Piece]:
    """Rows (from 0 in each piece), columns, values and labels of `batch_rows` lines at a time."""
    with open(path, "rb") as file:
        lines = ((number, line) for number, line in enumerate(file, start=1) if line.partition(b"#")[0].strip())
        while piece := list(islice(lines, batch_rows)):
            yield _svmlight_piece(path, piece, zero_based)


def _svmlight_piece(path: str | os.PathLike[str], lines: list[tuple[int, bytes]], zero_based: bool) -> _Piece:
    """Some lines with their numbers, read by scikit-learn; what it refuses is looked for line by line."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(BytesIO(b"".join(line for _, line in lines)), zero_based=zero_based)
        if np.isinf(X.data).any():
            raise ValueError("a value is infinite; leave missing cells out")
    except (ValueError, OverflowError) as error:
        for each in lines if len(lines) > 1 else ():
            _svmlight_piece(path, [each], zero_based)
        hint = " Pass zero_based=True if columns count from 0." if "Invalid index 0" in str(error) else ""
        raise ValueError(
            f"{os.fspath(path)!r}, line {lines[0][0]} must be 'label column:value ...': {str(error).rstrip('.')}.{hint}"
        ) from None
    rows = np.repeat(np.arange(len(y)), np.diff(X.indptr))
    return rows, X.indices.astype(np.int64), X.data, y


def parquet_triplets(
    path: str | os.PathLike[str], columns: tuple[str, str, str], batch_rows: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, columns and values of all lines with a value."""
    try:
        import pyarrow.dataset as dataset
    except ImportError:
        raise ImportError("reading Parquet needs pyarrow, which is not installed. Run: pip install pyarrow") from None
    found: list[list[NDArray[Any]]] = [[np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]]
    for batch in dataset.dataset(path, format="parquet").to_batches(columns=list(columns), batch_size=batch_rows):
        if batch.column(2).null_count:
            batch = batch.filter(batch.column(2).is_valid())
        found.append([batch.column(k).to_numpy(zero_copy_only=False) for k in range(3)])
    rows, cols, values = (np.concatenate(arrays) for arrays in zip(*(found[1:] or found), strict=True))
    return rows, cols, values


def refuse_mostly_empty(rows: NDArray[Any], name: str) -> None:
    """Memory is spent on every row up to the last: one number must not ask for all there is."""
    if rows.dtype.kind in "iu" and rows.size and rows.max() >= max(_FREE_ROWS, _EMPTY_PER_ENTRY * rows.size):
        raise ValueError(
            f"{name} reaches {rows.max()} in {rows.size} triplets; nearly all rows would be empty. Renumber the rows, or pass shape."
        )
