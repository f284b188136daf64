"""Readers of svmlight text, Parquet and Arrow objects, which hold a few lines in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice, product
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.numbers import as_frame, plain_arrow

_BUFFER = 65_536  # bytes read at a time of every column
_FREE_ROWS, _EMPTY_PER_ENTRY = 10**6, 1000  # rows that may be empty without a word: 8 bytes each
_Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of a damaged or unsuitable file into a ValueError that names the file."""
    try:
        yield
    except (FileNotFoundError, ImportError, MemoryError):
        raise
    except Exception as error:  # readers raise whatever damaged bytes lead them to
        reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ValueError(f"{os.fspath(path)!r} cannot be read: {reason}") from None


def record_batches(source: Any, lines: int, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Record batches of at most `lines` lines, in order; of a folder, file after file by name.

    source: path of a Parquet file or folder, Arrow table, record batch, reader, dataset, or an iterable of tables or batches.
    columns: names to read, in this order; None is all.
    """
    try:
        import pyarrow as pa
        import pyarrow.dataset as dataset
    except ImportError:
        raise ImportError(
            "reading Parquet and Arrow needs pyarrow, which is not installed: pip install pyarrow"
        ) from None
    if isinstance(source, str | os.PathLike):
        yield from _of_files(_parquet(source), lines, columns)
        return
    if isinstance(source, dataset.Dataset):
        _check_names(columns or (), source.schema.names)
        source = source.to_batches(columns=None if columns is None else list(columns), batch_size=lines)
    pieces = [source] if isinstance(source, pa.Table | pa.RecordBatch) else source
    if not isinstance(pieces, Iterable) or as_frame(pieces) is not None:
        _refuse(source)
    for piece in pieces:
        if not isinstance(piece, pa.Table | pa.RecordBatch):
            _refuse(piece)
        table = as_table(piece)
        if columns is not None:
            _check_names(columns, table.column_names)
            table = table.select(list(columns))
        yield from table.to_batches(max_chunksize=lines)


def _parquet(path: str | os.PathLike[str]) -> Any:
    """The dataset of a Parquet file or folder."""
    import pyarrow.dataset as dataset

    try:
        return dataset.dataset(path, format="parquet")
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file or folder: {os.fspath(path)!r}.") from None
    except ValueError as error:
        if "magic bytes" not in str(error) or os.path.isdir(path):  # of a folder Arrow names the file
            raise
        raise ValueError(
            "it is no Parquet file, or is cut off. Pieces of a CSV file are pandas.read_csv(path, chunksize=...)."
        ) from None


def _of_files(files: Any, lines: int, columns: Sequence[str] | None) -> Iterator[Any]:
    """A file at a time, through small buffers: a scan of the folder holds whole row groups, and reads others ahead."""
    import pyarrow.parquet as parquet

    names = list(files.schema.names if columns is None else columns)
    for path in files.files:
        with files.filesystem.open_input_file(path) as stream:
            file = parquet.ParquetFile(stream, pre_buffer=False, buffer_size=_BUFFER)
            _check_names(names, file.schema_arrow.names)
            read = 0
            batches = file.iter_batches(batch_size=lines, columns=names, use_threads=False)
            while batch := _next_of(batches, file, names, read):
                read += batch.num_rows
                yield batch.select(names)


def _next_of(batches: Iterator[Any], file: Any, names: Sequence[str], read: int) -> Any:
    """The next record batch, None at the end; what cannot be decoded is looked for by row group and column."""
    try:
        return next(batches, None)
    except (OSError, ValueError):
        group, end = 0, 0
        while group + 1 < file.num_row_groups and (end := end + file.metadata.row_group(group).num_rows) <= read:
            group += 1
        for at, name in product(range(group, file.num_row_groups), names):
            _check_decodes(file, at, name)
        raise


def _check_decodes(file: Any, group: int, name: str) -> None:
    """ValueError where a column of a row group cannot be decoded."""
    try:
        file.read_row_group(group, columns=[name], use_threads=False)
    except (OSError, ValueError) as reason:
        raise ValueError(f"row group {group}, column {name!r}: {reason}") from None


def as_table(piece: Any) -> Any:
    """A record batch as a table of one; nothing is copied."""
    import pyarrow as pa

    return pa.Table.from_batches([piece]) if isinstance(piece, pa.RecordBatch) else piece


def values_of(column: Any) -> NDArray[Any]:
    """A column as an array: categories as their values, nulls as NaN among numbers and as None elsewhere."""
    values: NDArray[Any] = plain_arrow(column).to_numpy(zero_copy_only=False)
    return values


def lists_of(column: Any, name: str) -> tuple[NDArray[np.int64], Any]:
    """How many elements each list of a column has, null as none, and all elements one after the other (Arrow)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(column.type) for is_kind in kinds):
        raise TypeError(f"column {name!r} must hold lists; it holds {column.type}. Name the columns of lists.")
    counts = pc.list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    flat = plain_arrow(column.flatten())
    kind = flat.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and len(flat):
        raise TypeError(f"column {name!r} must hold lists of numbers; it holds {column.type}. Convert them.")
    return counts.astype(np.int64, copy=False), flat


def _check_names(names: Sequence[str], other_names: Sequence[str]) -> None:
    missing = [name for name in names if name not in other_names]
    if missing:
        raise ValueError(
            f"the source must have a column {missing[0]!r}; got {list(other_names)[:20]}. Say what its columns are called."
        )


def _refuse(source: Any) -> NoReturn:
    raise TypeError(
        "source must be a path of Parquet files, Arrow tables, record batches, a reader or a dataset, or an Observed; got "
        f"{type(source).__name__}. Arrays and frames in memory go to fit_batches as they are, (X, y) by (X, y)."
    )


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
        for line in lines if len(lines) > 1 else ():
            _svmlight_piece(path, [line], zero_based)
        hint = " Pass zero_based=True if columns count from 0." if "Invalid index 0" in str(error) else ""
        raise ValueError(
            f"{os.fspath(path)!r}, line {lines[0][0]} must be 'label column:value ...': {str(error).rstrip('.')}.{hint}"
        ) from None
    rows = np.repeat(np.arange(len(y)), np.diff(X.indptr))
    return rows, X.indices.astype(np.int64), X.data, y


def known_lines(batch: Any, row: str, col: str) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows, columns and values of the lines of a record batch that have a value; they must have a row and a column,
    whose names are for messages.
    """
    if batch.column(2).null_count:
        batch = batch.filter(batch.column(2).is_valid())
    for number, name in enumerate((row, col)):
        if batch.column(number).null_count:
            raise ValueError(f"column {name!r} must hold a number in every line with a value; got a null. Drop it.")
    return values_of(batch.column(0)), values_of(batch.column(1)), values_of(batch.column(2))


def refuse_mostly_empty(rows: NDArray[Any], name: str) -> None:
    """ValueError for row numbers far beyond the number of entries: every row takes memory, and one wrong number would
    take all of it.
    """
    if rows.dtype.kind in "iu" and rows.size and rows.max() >= max(_FREE_ROWS, _EMPTY_PER_ENTRY * rows.size):
        raise ValueError(
            f"{name} reaches {rows.max()} in {rows.size} triplets; nearly all rows would be empty. Renumber the rows, or pass shape."
        )
