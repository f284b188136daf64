"""`Observed`: rows of (column, value) pairs, the format that every learner reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from lacunar import _core
from lacunar.observed.blocks import Piece, Precision, read_rows, write_rows
from lacunar.observed.build import (
    Duplicates,
    Lists,
    dense_entries,
    frame_entries,
    list_entries,
    long_frame_triplets,
    sparse_entries,
    triplet_entries,
)
from lacunar.observed.contract import (
    MAX_COLUMNS,
    SparseMissing,
    check_duplicates_policy,
    check_entries,
    check_sparse,
    float_dtype,
)
from lacunar.observed.files import known_lines, naming, record_batches, refuse_mostly_empty, svmlight_pieces
from lacunar.observed.memory import is_private, mark_private, owned


class Columns(NamedTuple):
    """The same entries by column: entry ``p`` of column ``j`` is row ``rows[p]``,
    ``values[positions[p]]``.
    """

    indptr: NDArray[np.int64]
    rows: NDArray[np.int64]
    positions: NDArray[np.int64]


class Observed:
    """Observed entries of a table, row by row; what is not stored is missing and a stored zero is
    observed.

    Immutable: the arrays are read-only and every method returns a new object. Build it with one of
    the ``from_*`` constructors, which check their input; estimators accept it wherever they accept
    ``X``.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Row ``i`` owns entries ``indptr[i]`` to ``indptr[i + 1]``.
    indices : ndarray of int32, shape (nnz,)
        Columns, ascending and unique inside a row.
    values : ndarray of float64 or float32, shape (nnz,)
        Finite values.
    shape : tuple of (n, d)

    Raises
    ------
    ValueError
        When the arrays break that contract; the message names the row and the column.

    Notes
    -----
    Memory is ``8 (n + 1) + 12 nnz`` bytes in float64 and ``8 (n + 1) + 8 nnz`` in float32.
    Construction checks every entry once, O(n + nnz).

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import Observed
    >>> table = Observed.from_dense([[1.0, np.nan], [0.0, 2.0]])
    >>> table
    <Observed 2 x 2, 3 entries (75.00% of the cells), float64>
    >>> table[1].to_dense()
    array([[0., 2.]])
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    shape: tuple[int, int]

    def __init__(self, indptr: NDArray[Any], indices: NDArray[Any], values: ArrayLike, shape: tuple[int, int]) -> None:
        indptr, indices, values = check_entries(indptr, indices, values, shape)
        self._adopt(indptr, indices, values, (int(shape[0]), int(shape[1])))

    def _adopt(
        self, indptr: NDArray[np.int64], indices: NDArray[np.int32], values: NDArray[Any], shape: tuple[int, int]
    ) -> None:
        # Kernels trust the arrays from here on: those that somebody else could write to are copied.
        arrays = [array if is_private(array) else owned(array) for array in (indptr, indices, values)]
        views = [array.view() for array in arrays]
        for array in (*arrays, *views):
            array.flags.writeable = False
        self.__dict__.update(indptr=views[0], indices=views[1], values=views[2], shape=shape)

    @classmethod
    def _trusted(
        cls, indptr: NDArray[np.int64], indices: NDArray[np.int32], values: NDArray[Any], shape: tuple[int, int]
    ) -> Observed:
        """Wrap arrays without checking them: the caller guarantees the contract and has marked private the ones that it
        allocated.
        """
        table = cls.__new__(cls)
        table._adopt(indptr, indices, values, shape)
        return table

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Observed is immutable: cannot set {name!r}. Build a new one, for example with_values().")

    # -- constructors ---------------------------------------------------------------------------------------------

    @classmethod
    def from_dense(cls, X: ArrayLike, *, dtype: DTypeLike | None = None, n_jobs: int | None = None) -> Observed:
        """Observed entries of an array: everything that is not NaN.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Numbers; NaN, None, NA and NaT in an object array and what a masked array masks are
            missing, infinity is an error. Dates, durations and complex numbers are refused. A frame
            is read as `from_frame` reads it.
        dtype : float64 or float32, optional
            Default: float32 stays float32, everything else becomes float64.
        n_jobs : int, optional
            Threads; None is 1, -1 all processors. The result does not depend on it.

        Notes
        -----
        Two passes over the cells, O(n d); rows or columns that lie cell by cell are read where they
        are.

        Examples
        --------
        >>> Observed.from_dense([[1.0, float("nan")], [0.0, 2.0]]).nnz
        3
        """
        return cls._trusted(*dense_entries(X, dtype, n_jobs))

    @classmethod
    def from_scipy(
        cls, X: Any, *, sparse_missing: SparseMissing = "absent", dtype: DTypeLike | None = None
    ) -> Observed:
        """Observed entries of a SciPy sparse matrix or array.

        Parameters
        ----------
        X : sparse matrix or array of shape (n, d)
            Any format but DIA and blocked BSR, which lose or invent stored entries; int32 or int64
            indices.
        sparse_missing : {"absent", "nan"}, default="absent"
            "absent": what is not stored is missing and a stored zero is observed. "nan": what is
            not stored is an observed zero (the result is as large as the dense table). A stored NaN
            is missing in both.
        dtype : float64 or float32, optional

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> stars = sp.csr_array([[1.5, 0.0]])
        >>> Observed.from_scipy(stars).nnz, Observed.from_scipy(stars, sparse_missing="nan").nnz
        (1, 2)
        """
        csr = check_sparse(X, sparse_missing, dtype)
        if sparse_missing == "nan":
            return cls.from_dense(csr.toarray())
        return cls(*sparse_entries(csr))

    @classmethod
    def from_triplets(
        cls,
        row: ArrayLike,
        col: ArrayLike,
        value: ArrayLike,
        *,
        shape: tuple[int, int] | None = None,
        duplicates: Duplicates = "error",
        dtype: DTypeLike | None = None,
        n_jobs: int | None = None,
    ) -> Observed:
        """Observed entries from (row, column, value) triplets in any order.

        Parameters
        ----------
        row, col : array-like of int, shape (m,)
        value : array-like of shape (m,)
            Finite numbers; NaN triplets are missing and dropped.
        shape : tuple of (n, d), optional
            Default: one more than the largest row and column.
        duplicates : {"error", "last", "mean"}, default="error"
            What to do when a cell comes more than once. A mean of finite numbers is finite.
        dtype : float64 or float32, optional
        n_jobs : int, optional
            Threads; None is 1, -1 all processors. The result does not depend on it.

        Notes
        -----
        O(m + n): triplets that come by row and column are checked and copied, others sorted by
        counting, in 12 or 16 bytes a triplet more. A mean is summed in float64 in the order of the
        triplets.

        Examples
        --------
        >>> table = Observed.from_triplets([0, 1, 0], [1, 0, 1], [3.0, 1.0, 5.0], duplicates="mean")
        >>> table.to_dense()
        array([[nan,  4.],
               [ 1., nan]])
        """
        return cls._trusted(*triplet_entries(row, col, value, shape, duplicates, dtype, n_jobs))

    @classmethod
    def from_frame(cls, df: Any, *, dtype: DTypeLike | None = None, n_jobs: int | None = None) -> Observed:
        """Observed entries of a pandas, polars or Arrow table: everything that is neither null nor
        NaN.

        Parameters
        ----------
        df : data frame of n rows and d columns of numbers or booleans
            However they are stored: nullable, sparse (zeros are zeros), as a dictionary or
            category, as decimals, objects or text.
        dtype : float64 or float32, optional
            Default: float64.
        n_jobs : int, optional
            Threads; None is 1, -1 all processors. The result does not depend on it.

        Raises
        ------
        TypeError
            For what is no frame in memory; for a column of dates, durations, lists or other
            objects. The message names it.
        ValueError
            For text that is no number; the message names row and column.

        Examples
        --------
        >>> import pandas as pd
        >>> Observed.from_frame(pd.DataFrame({"a": [1, None], "b": [True, False]})).nnz
        3
        """
        return cls._trusted(*frame_entries(df, dtype, n_jobs))

    @classmethod
    def from_long_frame(
        cls, df: Any, *, row: str, col: str, value: str, duplicates: Duplicates = "error"
    ) -> tuple[Observed, NDArray[Any], NDArray[Any]]:
        """Observed entries of a long frame: one line a cell, with ids of any kind for rows and
        columns.

        Parameters
        ----------
        df : data frame
        row, col, value : str
            Names of its columns.
        duplicates : {"error", "last", "mean"}, default="error"

        Returns
        -------
        table : Observed
        row_ids, col_ids : ndarray
            Sorted ids; row ``i`` of the table is ``row_ids[i]``.

        Raises
        ------
        TypeError
            For what is no frame in memory, and for ids of several kinds, which have no order.
        ValueError
            For an id that is missing (null, NaN, NaT) or infinite; the message names the line.

        Examples
        --------
        >>> import pandas as pd
        >>> votes = pd.DataFrame({"user": ["ann", "bob"], "film": ["x", "y"], "stars": [4, 5]})
        >>> names = {"row": "user", "col": "film", "value": "stars"}
        >>> table, users, films = Observed.from_long_frame(votes, **names)
        >>> users.tolist()
        ['ann', 'bob']
        """
        row_ids, rows, col_ids, cols, values = long_frame_triplets(df, row, col, value)
        shape = (row_ids.size, col_ids.size)
        return cls.from_triplets(rows, cols, values, shape=shape, duplicates=duplicates), row_ids, col_ids

    @classmethod
    def from_svmlight(
        cls,
        path: str | os.PathLike[str],
        *,
        n_features: int | None = None,
        zero_based: bool = False,
        batch_rows: int = 10_000,
    ) -> tuple[Observed, NDArray[np.float64]]:
        """Observed entries and labels of an svmlight / libsvm text file; a written zero is
        observed.

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
            For a line that is not of that form, whose columns do not ascend, or a column beyond
            `n_features`; the message names file and line.
        """
        n_rows, parts = 0, [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))]
        for row, col, value, y in svmlight_pieces(path, batch_rows, zero_based):
            parts.append((row + n_rows, col, value, y))
            n_rows += len(y)
        rows, columns, values, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        width = n_features if n_features is not None else int(columns.max(initial=-1)) + 1
        with naming(path):
            return cls.from_triplets(rows, columns, values, shape=(n_rows, width)), labels

    @classmethod
    def from_parquet(
        cls,
        path: str | os.PathLike[str],
        *,
        row: str = "row",
        col: str = "col",
        value: str = "value",
        shape: tuple[int, int] | None = None,
        duplicates: Duplicates = "error",
        batch_rows: int = 1_000_000,
        lists: tuple[str, str] | None = None,
    ) -> Observed:
        """Observed entries of a Parquet file (or folder of files) of triplets, or of rows that are
        two lists.

        Parameters
        ----------
        path : path-like
        row, col, value : str
            Names of its columns; row and col hold numbers from 0. Lines with a null value are
            missing.
        shape : tuple of (n, d), optional
        duplicates : {"error", "last", "mean"}, default="error"
        batch_rows : int, default=1000000
            Triplets, or rows of lists, read at a time.
        lists : tuple of (indices, values), optional
            Names of two columns that hold a list a row: numbers of columns from 0, in any order,
            each once, and values. A null among the values is missing. In place of row, col and
            value.

        Raises
        ------
        ImportError
            Without pyarrow.
        FileNotFoundError
            When there is no such file or folder.
        ValueError
            When it is no Parquet file of such triplets, a cell comes twice, or row numbers leave
            nearly all rows empty while no `shape` says that this is meant; the message names the
            file.
        """
        check_duplicates_policy(duplicates)
        with naming(path):
            if lists is not None:
                return cls._from_lists(path, lists, shape, batch_rows)
            lines = [known_lines(batch, row, col) for batch in record_batches(path, batch_rows, (row, col, value))]
            nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
            rows, cols, values = (np.concatenate(arrays) for arrays in zip(*(lines or [nothing]), strict=True))
            if shape is None:
                refuse_mostly_empty(rows, row)
            return cls.from_triplets(rows, cols, values, shape=shape, duplicates=duplicates)

    @classmethod
    def _from_lists(
        cls, path: str | os.PathLike[str], names: tuple[str, str], shape: tuple[int, int] | None, size: int
    ) -> Observed:
        """Rows that are a list of columns and one of values."""
        width, first, parts = MAX_COLUMNS if shape is None else shape[1], 0, []
        for batch in record_batches(path, size, names):
            parts.append(cls._trusted(*list_entries(batch, Lists(width, *names), first, None)))
            first += batch.num_rows
        whole = cls.vstack(parts) if parts else cls.from_dense(np.empty((0, 0)))
        if shape is None:
            width = int(whole.indices.max(initial=-1)) + 1
        elif first != shape[0]:
            raise ValueError(
                f"shape must have as many rows as the file; got {shape[0]}, and the file has {first}. Leave it out."
            )
        return cls._trusted(whole.indptr, whole.indices, whole.values, (first, width))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Observed:
        """Read what `save` or `lacunar.observed.write_batches` wrote, all of it;
        `lacunar.observed.ObservedFile` reads it in parts.

        Parameters
        ----------
        path : path-like

        Raises
        ------
        FileNotFoundError
            When there is no such file.
        ValueError
            When the file is not such a file, is damaged, of an unknown version, or breaks the
            contract of the format; the message names file, block and row.
        """
        return cls._trusted(*read_rows(path))

    # -- size and content -----------------------------------------------------------------------------------------

    @property
    def nnz(self) -> int:
        """Number of observed entries."""
        return int(self.values.shape[0])

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def row_counts(self) -> NDArray[np.int64]:
        """Observed entries of each row, shape (n,)."""
        return np.diff(self.indptr)

    @property
    def row_numbers(self) -> NDArray[np.int64]:
        """Row of each observed entry, shape (nnz,)."""
        return np.repeat(np.arange(self.shape[0]), self.row_counts)

    @cached_property
    def _columns(self) -> Columns:
        arrays = _core.column_view(self.indptr, self.indices, self.shape[1])
        for array in arrays:
            array.flags.writeable = False
        return Columns(*arrays)

    @property
    def columns(self) -> Columns:
        """The entries by column, computed on first use in O(nnz + d) and kept."""
        return self._columns

    def __repr__(self) -> str:
        share = self.nnz / max(self.shape[0] * self.shape[1], 1)
        return (
            f"<Observed {self.shape[0]} x {self.shape[1]}, {self.nnz} entries ({share:.2%} of the cells), {self.dtype}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Observed):
            return NotImplemented
        return (
            self.shape == other.shape
            and self.dtype == other.dtype
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.indices, other.indices)
            and np.array_equal(self.values, other.values)
        )

    __hash__ = None  # type: ignore[assignment]  # equal by content, so not hashable, like an array

    def __reduce__(self) -> tuple[Any, ...]:
        return Observed, (np.asarray(self.indptr), np.asarray(self.indices), np.asarray(self.values), self.shape)

    # -- rows -----------------------------------------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Observed:
        """Select rows by a number, a slice, an array of numbers or a boolean mask; always an `Observed`."""
        if isinstance(key, tuple):
            if len(key) != 2 or not (key[1] is Ellipsis or key[1] == slice(None)):
                raise IndexError(
                    "Observed selects rows only: got a column selection. Use to_scipy() to select columns."
                )
            key = key[0]
        n = self.shape[0]
        if isinstance(key, slice) and key.step in (None, 1):
            start, stop, _ = key.indices(n)
            return self._row_range(start, max(start, stop))
        rows = np.atleast_1d(np.arange(n)[key])
        lengths = self.row_counts[rows]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        # Position p of the selection comes from the start of its row plus its place in the row.
        take = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], lengths)
        arrays = mark_private(indptr), mark_private(self.indices[take]), mark_private(self.values[take])
        return Observed._trusted(*arrays, (rows.size, self.shape[1]))

    def _row_range(self, start: int, stop: int) -> Observed:
        indptr = np.asarray(self.indptr[start : stop + 1])
        first, last = (int(indptr[0]), int(indptr[-1])) if indptr.size else (0, 0)
        indices, values = np.asarray(self.indices[first:last]), np.asarray(self.values[first:last])
        return Observed._trusted(mark_private(indptr - first), indices, values, (stop - start, self.shape[1]))

    def iter_batches(self, size: int) -> Iterator[Observed]:
        """Walk the rows in order, `size` at a time.

        Parameters
        ----------
        size : int
            Rows of a batch, at least 1; the last batch may be shorter.

        Yields
        ------
        Observed
            Shape (at most size, d).
        """
        if size < 1:
            raise ValueError(f"size must be at least 1 row; got {size}.")
        for start in range(0, self.shape[0], size):
            yield self._row_range(start, min(start + size, self.shape[0]))

    @staticmethod
    def vstack(tables: Iterable[Observed]) -> Observed:
        """Stack tables of the same number of columns, in order. O(total nnz).

        Parameters
        ----------
        tables : iterable of Observed

        Returns
        -------
        table : Observed
        """
        parts: Sequence[Observed] = list(tables)
        if not parts:
            raise ValueError("tables must hold at least one Observed to stack; got none.")
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            raise ValueError(f"tables must agree in their number of columns; got {sorted(widths)}.")
        shifts = np.cumsum([0] + [part.nnz for part in parts])
        ends = [part.indptr[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
        return Observed._trusted(
            mark_private(np.concatenate([np.zeros(1, np.int64), *ends])),
            mark_private(np.concatenate([part.indices for part in parts])),
            mark_private(np.concatenate([part.values for part in parts])),
            (sum(part.shape[0] for part in parts), widths.pop()),
        )

    # -- conversions ----------------------------------------------------------------------------------------------

    def with_values(self, values: ArrayLike) -> Observed:
        """The same pattern of observed cells with other values, shape (nnz,); they are checked to
        be finite.

        Parameters
        ----------
        values : array-like of shape (nnz,)

        Returns
        -------
        table : Observed
        """
        return Observed(self.indptr, self.indices, values, self.shape)

    def astype(self, dtype: DTypeLike) -> Observed:
        """The same entries in float32 or float64.

        Parameters
        ----------
        dtype : dtype

        Returns
        -------
        table : Observed
        """
        out_dtype = float_dtype(dtype, self.dtype)
        if out_dtype == self.dtype:
            return self
        with np.errstate(over="ignore"):
            values = self.values.astype(out_dtype)
        if out_dtype == np.float32 and not np.isfinite(values).all():
            check_entries(self.indptr, self.indices, values, self.shape)  # names the first
        return Observed._trusted(self.indptr, self.indices, mark_private(values), self.shape)

    def to_scipy(self) -> sp.csr_array:
        """A `scipy.sparse.csr_array` whose stored entries, zeros included, are the observed ones.

        Returns
        -------
        matrix : csr_array of shape (n, d)
        """
        return sp.csr_array((self.values, self.indices, self.indptr), shape=self.shape)

    def to_dense(self) -> NDArray[Any]:
        """An array of shape (n, d) with NaN where nothing was observed.

        Returns
        -------
        array : ndarray of shape (n, d)
        """
        dense = np.full(self.shape, np.nan, dtype=self.dtype)
        dense[self.row_numbers, self.indices] = self.values
        return dense

    def save(self, path: str | os.PathLike[str], *, precision: Precision = "lossless") -> None:
        """Write to a file that `load` and `lacunar.observed.ObservedFile` read;
        `lacunar.observed.write_batches` writes labels, too.

        Parameters
        ----------
        path : path-like
            Where; written under another name and then renamed, so that a killed run leaves nothing
            half-written.
        precision : {"lossless", "float16", "int8"}, default="lossless"
            As in `write_batches`.
        """
        piece = Piece(self.indptr, self.indices, self.values)
        write_rows(path, [piece], n_columns=self.shape[1], dtype=self.dtype, precision=precision)
