"""`Observed` from files and to files: its own archive of three arrays, svmlight text, Parquet triplets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.arrow import naming
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.contract import check_duplicates_policy

if TYPE_CHECKING:
    from lacunar.observed.build import Duplicates
    from lacunar.observed.table import Observed

_FREE_ROWS, _EMPTY_PER_ENTRY = 10**6, 1000  # rows that may be empty without a word: 8 bytes each
_Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]


def from_svmlight(
    cls: type[Observed],
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    batch_rows: int = 10_000,
) -> tuple[Observed, NDArray[np.float64]]:
    """Observed entries and labels of an svmlight / libsvm text file; a written zero is observed.

    Parameters
    ----------
    path : path-like
        Lines ``label column:value column:value ... # comment``.
    n_features : int, optional
        Number of columns; default: as many as the file names.
    zero_based : bool, default=False
        Whether columns count from 0.
    batch_rows : int, default=10000
        Lines parsed at a time.

    Returns
    -------
    table : Observed, shape (n, d)
    y : ndarray of float64, shape (n,)

    Raises
    ------
    ValueError
        For a line that is not of that form, whose columns do not ascend, or a column beyond `n_features`; the message names file and
        line.
    """
    n_rows, parts = 0, [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))]
    for row, col, value, y in _svmlight_pieces(path, batch_rows, zero_based):
        parts.append((row + n_rows, col, value, y))
        n_rows += len(y)
    rows, columns, values, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    width = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
    with naming(path):
        return cls.from_triplets(rows, columns, values, shape=(n_rows, width)), labels


def _svmlight_pieces(path: str | os.PathLike[str], batch_rows: int, zero_based: bool) -> Iterator[_Piece]:
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


def read_svmlight(
    path: str | os.PathLike[str], *, n_features: int, size: int = 10_000, zero_based: bool = False
) -> Iterator[tuple[Observed, NDArray[np.float64]]]:
    """Walk the rows of an svmlight / libsvm text file that need not fit in memory, `size` at a time.

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
        size below 1; a line that is not of that form or whose columns do not ascend, which the message names; a column beyond
        `n_features`.

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
    from lacunar.observed.table import Observed

    for row, col, value, y in _svmlight_pieces(path, size, zero_based):
        with naming(path):
            table = Observed.from_triplets(row, col, value, shape=(len(y), n_features))
        yield table, y


def from_parquet(
    cls: type[Observed],
    path: str | os.PathLike[str],
    *,
    row: str = "row",
    col: str = "col",
    value: str = "value",
    shape: tuple[int, int] | None = None,
    duplicates: Duplicates = "error",
    batch_rows: int = 1_000_000,
) -> Observed:
    """Observed entries of a Parquet file (or folder of files) of triplets.

    Parameters
    ----------
    path : path-like
    row, col, value : str
        Names of its columns; row and col hold numbers from 0. Lines with a null value are missing.
    shape : tuple of (n, d), optional
    duplicates : {"error", "last", "mean"}, default="error"
    batch_rows : int, default=1000000
        Triplets read at a time.

    Raises
    ------
    ImportError
        Without pyarrow.
    FileNotFoundError
        When there is no such file or folder.
    ValueError
        When it is no Parquet file of such triplets, a cell comes twice, or row numbers leave nearly all rows empty while no
        `shape` says that this is meant; the message names the file.
    """
    try:
        import pyarrow.dataset as dataset
    except ImportError:
        raise ImportError("reading Parquet needs pyarrow, which is not installed. Run: pip install pyarrow") from None
    check_duplicates_policy(duplicates)
    found: list[list[NDArray[Any]]] = []
    with naming(path):
        batches = dataset.dataset(path, format="parquet").to_batches(columns=[row, col, value], batch_size=batch_rows)
        for batch in batches:
            known = batch.filter(batch.column(2).is_valid())
            found.append([known.column(k).to_numpy(zero_copy_only=False) for k in range(3)])
        empty: list[NDArray[Any]] = [np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)]
        rows, cols, values = (np.concatenate(arrays) for arrays in zip(*(found or [empty]), strict=True))
        if shape is None:
            _refuse_desert(rows, row)
        return cls.from_triplets(rows, cols, values, shape=shape, duplicates=duplicates)


def _refuse_desert(rows: NDArray[Any], name: str) -> None:
    """Memory is spent on every row up to the last: one number must not ask for all there is."""
    if rows.dtype.kind in "iu" and rows.size and rows.max() >= max(_FREE_ROWS, _EMPTY_PER_ENTRY * rows.size):
        raise ValueError(
            f"{name} reaches {rows.max()} in {rows.size} triplets; nearly all rows would be empty. Renumber the rows, or pass shape."
        )


KIND = "observed"


def save(table: Observed, path: str | os.PathLike[str], *, as_folder: bool) -> None:
    """Write the three arrays and the shape."""
    arrays: dict[str, NDArray[Any]] = {"indptr": table.indptr, "indices": table.indices, "values": table.values}
    write_archive(path, kind=KIND, header={"shape": list(table.shape)}, arrays=arrays, as_folder=as_folder)


def load(cls: type[Observed], path: str | os.PathLike[str], *, mmap: bool = True) -> Observed:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path-like
        A file or a folder.
    mmap : bool, default=True
        Map the arrays instead of reading them: a table larger than memory can be walked with `iter_batches`. The
        contract is checked entry by entry either way (one sequential pass); checksums only when not mapped.

    Raises
    ------
    ValueError
        When the file is not such a file, is damaged, of an unknown version, or breaks the contract of the format.
    """
    header, arrays = read_archive(path, kind=KIND, mmap=mmap)
    shape = header.get("shape")
    sizes_known = isinstance(shape, list) and len(shape) == 2 and all(type(size) is int and size >= 0 for size in shape)
    if shape is None or not sizes_known or set(arrays) != {"indptr", "indices", "values"}:
        raise ValueError(
            f"{os.fspath(path)!r} must hold indptr, indices, values and a shape; got {sorted(arrays)[:5]}, {str(shape)[:80]}."
        )
    try:
        return cls(arrays["indptr"], arrays["indices"], arrays["values"], (shape[0], shape[1]))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{os.fspath(path)!r} breaks the contract of the format: {error}") from None
