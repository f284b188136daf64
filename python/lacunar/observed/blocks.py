"""The file of an `Observed`: independent blocks of rows, then a footer that says where each begins.

Layout, little-endian: the magic bytes; block after block, each made of the rows
(cpp/include/lacunar/blocks/blocks.hpp), of the labels and of the weights (``.npy``, where there are any); the footer,
which is a JSON header and the table of the blocks; a tail of 32 bytes with the footer's place, size and CRC-32. Opening
reads the footer alone. A block is checked when it is read, and its CRC-32 compared the first time that this process
reads it.
"""

from __future__ import annotations

import io
import json
import os
import queue
import sys
import threading
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacunar import _core
from lacunar.observed.container import open_plain, read_header, refuse_impossible, replace_file
from lacunar.observed.memory import mark_private

Precision = Literal["lossless", "float16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("lossless", "float16", "int8")
_MAGIC, _END = b"lacrows\x01", b"\x01sworcal"
_TAIL = np.dtype([("offset", "<u8"), ("size", "<u8"), ("crc32", "<u4"), ("zeros", "<u4"), ("end", "S8")])
_TABLE = np.dtype(
    [(name, "<u8") for name in ("offset", "size", "labels", "weights", "rows", "entries")]
    + [("crc32", "<u4"), ("more_crc32", "<u4")]
)
_KEYS = {"shape", "dtype", "precision", "error", "labels", "weights", "n_blocks"}
_MAX_HEADER = 2**16
_ENTRIES, _ROWS = 2**20, 2**18  # of a block, but at least a row
_T = TypeVar("_T")
_LABEL_KINDS = "biufU"
_PATIENCE = 0.05  # seconds between two looks of a thread whether it is still wanted
_REMEMBERED = 64  # files whose checked blocks are known
_checked: dict[tuple[int, ...], NDArray[np.bool_]] = {}


class Piece(NamedTuple):
    """Rows as the arrays of an `Observed`, and what may come with each row."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[Any]
    labels: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def part(self, start: int, stop: int) -> Piece:
        """Rows `start` to `stop`; views of the same arrays."""
        first, last = int(self.indptr[start]), int(self.indptr[stop])
        more = (None if values is None else values[start:stop] for values in (self.labels, self.weights))
        return Piece(self.indptr[start : stop + 1] - first, self.indices[first:last], self.values[first:last], *more)

    @classmethod
    def joined(cls, pieces: list[Piece]) -> Piece:
        """The rows of all pieces, one piece after the other."""
        if len(pieces) == 1:
            return pieces[0]
        shifts = np.cumsum([0] + [len(piece.indices) for piece in pieces])
        ends = [piece.indptr[1:] + shift for piece, shift in zip(pieces, shifts, strict=False)]
        more: list[Any] = [
            None if arrays[0] is None else np.concatenate(arrays)
            for arrays in zip(*(piece[1:] for piece in pieces), strict=True)
        ]
        return cls(np.concatenate([np.zeros(1, np.int64), *ends]), *more)


def write_rows(
    path: str | os.PathLike[str], pieces: Iterable[Piece], *, n_columns: int, dtype: np.dtype[Any], precision: Precision
) -> None:
    """Rows, in pieces of any number and all with labels (weights) or all without, as a file that takes the place of
    `path`.
    """
    _check_order()
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {PRECISIONS}; got {precision!r}. Leave it out to lose nothing.")
    writer = _Writer(n_columns, dtype, precision)
    replace_file(Path(path), lambda stream: writer.write(stream, pieces))


def cut(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The same rows in blocks; where blocks end depends on the rows alone, not on the pieces."""
    waiting: list[Piece] = []
    rows = entries = 0
    for piece in pieces:
        start = 0
        while start < piece.n_rows:
            room = piece.indptr[start] + _ENTRIES - entries
            stop = int(min(np.searchsorted(piece.indptr, room, side="right") - 1, start + _ROWS - rows))
            stop = max(stop, start if rows else start + 1)
            if stop > start:
                waiting.append(piece.part(start, stop))
                rows, entries = rows + stop - start, entries + int(piece.indptr[stop] - piece.indptr[start])
            if stop < piece.n_rows:
                yield Piece.joined(waiting)
                waiting, rows, entries = [], 0, 0
            start = stop
    if waiting:
        yield Piece.joined(waiting)


class _Writer:
    def __init__(self, n_columns: int, dtype: np.dtype[Any], precision: Precision) -> None:
        self.n_columns, self.dtype, self.precision = n_columns, dtype, precision
        self.size = self.lost = 0.0
        self.labels = self.weights = False
        self.table: list[tuple[int, ...]] = []

    def write(self, stream: BinaryIO, pieces: Iterable[Piece]) -> None:
        stream.write(_MAGIC)
        offset = len(_MAGIC)
        for piece in cut(pieces):
            offset += self._block(stream, offset, piece)
        footer = self._footer()
        stream.write(footer)
        stream.write(np.array([(offset, len(footer), zlib.crc32(footer), 0, _END)], _TAIL).tobytes())

    def _block(self, stream: BinaryIO, offset: int, piece: Piece) -> int:
        data, size, lost = _core.encode_block(
            np.ascontiguousarray(piece.indptr),
            np.ascontiguousarray(piece.indices),
            np.ascontiguousarray(piece.values),
            self.n_columns,
            PRECISIONS.index(self.precision),
        )
        self.size, self.lost = self.size + size, self.lost + lost
        labels, weights = (b"" if array is None else _as_npy(array) for array in (piece.labels, piece.weights))
        self.labels, self.weights = piece.labels is not None, piece.weights is not None
        sizes = (len(data) + len(labels) + len(weights), len(labels), len(weights))
        checks = (zlib.crc32(data.data), zlib.crc32(weights, zlib.crc32(labels)))
        self.table.append((offset, *sizes, piece.n_rows, len(piece.indices), *checks))
        for part in (data.data, labels, weights):
            stream.write(part)
        return sizes[0]

    def _footer(self) -> bytes:
        table = np.array(self.table, _TABLE)
        header = {
            "shape": [int(table["rows"].sum()), self.n_columns],
            "dtype": self.dtype.name,
            "precision": self.precision,
            "error": float(np.sqrt(self.lost / self.size)) if self.size > 0 else 0.0,
            "labels": self.labels,
            "weights": self.weights,
            "n_blocks": len(table),
        }
        text = json.dumps(header, allow_nan=False).encode()
        return len(text).to_bytes(8, "little") + text + table.tobytes()


def _as_npy(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _check_order() -> None:
    if sys.byteorder != "little":
        raise NotImplementedError("files of rows are read and written on little-endian machines only.")


class Header(NamedTuple):
    """Shape and dtype of all rows, and what else the footer says."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    precision: str
    error: float
    labels: bool
    weights: bool


class BlockFile:
    """A file of blocks of rows; making one reads the footer. Not for use by two threads at a time.

    Every pass opens the path anew, and refuses another file that has taken it. With a `stream` of the file, all is read
    from that.
    """

    def __init__(self, path: str | os.PathLike[str], stream: BinaryIO | None = None) -> None:
        _check_order()
        self.path, self._stream = os.fspath(path), stream
        with self._opened() as source:
            self.header, self.table, self.key = self._sound(self._footer, source)

    def _sound(self, read: Any, *arguments: Any) -> Any:
        """The result of read(*arguments); errors that damaged bytes cause become a ValueError that names the file."""
        try:
            return read(*arguments)
        except (MemoryError, OSError):
            raise
        except Exception as error:  # parsers of headers raise whatever a damaged byte leads them to
            raise ValueError(
                f"{self.path!r} is not a sound lacunar file: {error}. Write it again with save or write_batches."
            ) from None

    def _opened(self) -> AbstractContextManager[BinaryIO]:
        return open_plain(self.path, buffering=0) if self._stream is None else nullcontext(self._stream)

    def _footer(self, stream: BinaryIO) -> tuple[Header, NDArray[Any], tuple[int, ...]]:
        status = os.fstat(stream.fileno())
        stream.seek(0)
        head = stream.read(len(_MAGIC))
        if head[:7] == _MAGIC[:7] and head != _MAGIC and len(head) == len(_MAGIC):
            raise ValueError(f"it is of format version {head[7]} and this lacunar reads {_MAGIC[7]}")
        if head != _MAGIC or status.st_size < len(_MAGIC) + _TAIL.itemsize:
            raise ValueError("it does not begin like a file of rows, or is cut off")
        tail = np.frombuffer(_read(stream, status.st_size - _TAIL.itemsize, _TAIL.itemsize), _TAIL)[0]
        offset, size = int(tail["offset"]), int(tail["size"])
        if tail["end"] != _END or tail["zeros"] or offset + size + _TAIL.itemsize != status.st_size:
            raise ValueError("its last bytes do not say where its footer is: it may be cut off")
        footer = _read(stream, offset, size)
        key = _identity(stream)
        if zlib.crc32(footer) != tail["crc32"]:
            raise ValueError("its footer does not match its checksum")
        header, table = _parsed(footer, offset)
        return header, table, key

    @contextmanager
    def _reading(self) -> Iterator[BinaryIO]:
        """Open the file to read its blocks; an error where another file has replaced it since the footer was read."""
        with self._opened() as stream:
            self._check_unchanged(stream)
            yield stream

    def _check_unchanged(self, stream: BinaryIO) -> None:
        try:
            unchanged = _identity(stream) == self.key
        except ValueError:
            unchanged = False
        if not unchanged:
            raise ValueError(f"{self.path!r} was written anew since it was opened. Open it again.")

    def blocks(self, first: int = 0) -> Iterator[Piece]:
        """Blocks from number `first` on, in order, through one private buffer."""
        buffer = np.empty(int(self.table["size"].max(initial=0)), np.uint8)
        with self._reading() as stream:
            for number in range(first, len(self.table)):
                piece = self._sound(self._block, stream, number, buffer)
                self._check_unchanged(stream)
                yield piece

    def more(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Labels and weights of every block; rows are not read."""
        with self._reading() as stream:
            pairs = [self._sound(self._more, stream, number) for number in range(len(self.table))]
            self._check_unchanged(stream)
        labels, weights = zip(*pairs, strict=True) if pairs else ((), ())
        return [part for part in labels if part is not None], [part for part in weights if part is not None]

    def _more(self, stream: BinaryIO, number: int) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
        entry = self.table[number]
        skipped = int(entry["size"] - entry["labels"] - entry["weights"])
        data = _read(stream, int(entry["offset"]) + skipped, int(entry["size"]) - skipped)
        return self._with_rows(np.frombuffer(data, np.uint8), number)

    def _block(self, stream: BinaryIO, number: int, buffer: NDArray[np.uint8]) -> Piece:
        entry = self.table[number]
        size, n_more = int(entry["size"]), int(entry["labels"] + entry["weights"])
        view = buffer[:size]
        stream.seek(int(entry["offset"]))
        _fill(stream, view, number)
        data = view[: size - n_more]
        known = _known(self.key, len(self.table))
        if not known[number] and zlib.crc32(data.data) != entry["crc32"]:
            raise ValueError(f"block {number} does not match its checksum")
        known[number] = True
        n_entries = int(entry["entries"])
        rows = (
            np.empty(int(entry["rows"]) + 1, np.int64),
            np.empty(n_entries, np.int32),
            np.empty(n_entries, self.header.dtype),
        )
        try:
            _core.decode_block(data, self.header.shape[1], *rows)
        except ValueError as error:
            raise ValueError(f"block {number}: {error}") from None
        return Piece(*rows, *self._with_rows(view[size - n_more :], number))

    def _with_rows(
        self, data: NDArray[np.uint8], number: int
    ) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
        """Labels and weights of a block from their bytes."""
        entry = self.table[number]
        if zlib.crc32(data.data) != entry["more_crc32"]:
            raise ValueError(f"labels of block {number} do not match their checksum")
        split, rows = int(entry["labels"]), int(entry["rows"])
        labels = _from_npy(data[:split].tobytes(), rows, number) if self.header.labels else None
        weights = _from_npy(data[split:].tobytes(), rows, number) if self.header.weights else None
        if weights is not None and (weights.dtype != np.float64 or weights.ndim != 1):
            raise ValueError(f"weights of block {number} are {weights.dtype} of {weights.ndim} dimensions")
        return labels, weights


def _identity(stream: BinaryIO) -> tuple[int, ...]:
    """What identifies a version of the file: device, inode, size, time of change, checksum of the footer."""
    status = os.fstat(stream.fileno())
    tail = np.frombuffer(_read(stream, max(status.st_size - _TAIL.itemsize, 0), _TAIL.itemsize), _TAIL)[0]
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, int(tail["crc32"])


def read_rows(path: str | os.PathLike[str]) -> tuple[Any, ...]:
    """indptr, indices, values and shape of all rows of a file. It is opened once, as another file may replace it
    meanwhile.
    """
    with open_plain(path, buffering=0) as stream:
        return whole(BlockFile(path, stream))


def whole(file: BlockFile) -> tuple[Any, ...]:
    """indptr, indices, values and shape of all rows of an opened file."""
    (n_rows, n_columns), n = file.header.shape, int(file.table["entries"].sum())
    indptr, indices, values = np.zeros(n_rows + 1, np.int64), np.empty(n, np.int32), np.empty(n, file.header.dtype)
    row = offset = 0
    for piece in file.blocks():
        end = offset + len(piece.indices)
        indices[offset:end], values[offset:end] = piece.indices, piece.values
        indptr[row + 1 : row + 1 + piece.n_rows] = piece.indptr[1:] + offset
        offset, row = end, row + piece.n_rows
    return mark_private(indptr), mark_private(indices), mark_private(values), (n_rows, n_columns)


def ahead(items: Iterator[_T], depth: int) -> Generator[_T, None, None]:
    """The same items, which a thread reads ahead, up to `depth` of them; the thread ends with the iterator.

    A forked child has no such thread, and perhaps a lock that it held: the child gets an error in place of the next
    item.
    """
    process = os.getpid()
    drawn: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(depth)
    unwanted = threading.Event()

    def put(item: Any, error: BaseException | None) -> bool:
        while not unwanted.is_set():
            try:
                drawn.put((item, error), timeout=_PATIENCE)
            except queue.Full:
                continue
            return True
        return False

    def draw() -> None:
        try:
            if all(put(item, None) for item in items):
                put(None, StopIteration())
        except BaseException as error:  # raised where the items are asked for
            put(None, error)

    def end() -> None:
        if os.getpid() == process:
            unwanted.set()
            thread.join()

    thread = threading.Thread(target=draw, name="lacunar reads ahead", daemon=True)
    thread.start()
    try:
        while True:
            if os.getpid() != process:
                raise RuntimeError(
                    "a pass over a file must end in the process that began it; a forked child went on with its "
                    "parent's. Iterate over the ObservedFile anew in the child: batches(start=...) begins where the "
                    "parent was."
                )
            item, error = drawn.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item
    finally:
        end()


def is_block_file(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins with the mark of a block file."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as stream:
        return stream.read(7) == _MAGIC[:7]


def _known(key: tuple[int, ...], n_blocks: int) -> NDArray[np.bool_]:
    """A mask (n_blocks,) of blocks whose checksums this process has compared."""
    if key not in _checked:
        while len(_checked) >= _REMEMBERED:
            _checked.pop(next(iter(_checked)), None)
        _checked[key] = np.zeros(n_blocks, bool)
    return _checked[key]


def _read(stream: BinaryIO, offset: int, size: int) -> bytes:
    stream.seek(offset)
    data = stream.read(size)
    if len(data) != size:
        raise ValueError(f"it ends within the {size} bytes from {offset} on")
    return data


def _fill(stream: BinaryIO, view: NDArray[np.uint8], number: int) -> None:
    """Read bytes until the view is full, as one read may return fewer."""
    done, target = 0, view.data
    while done < len(view):
        came = stream.readinto(target[done:])  # type: ignore[attr-defined]  # files and BytesIO have it
        if not came:
            raise ValueError(f"it ends within block {number}")
        done += came


def _parsed(footer: bytes, end: int) -> tuple[Header, NDArray[Any]]:
    length = int.from_bytes(footer[:8], "little")
    if len(footer) < 8 or length > min(_MAX_HEADER, len(footer) - 8):
        raise ValueError("its header is longer than its footer")
    header = json.loads(footer[8 : 8 + length].decode("utf-8"))
    if not isinstance(header, dict) or set(header) != _KEYS:
        raise ValueError(f"its header has other keys than {sorted(_KEYS)}")
    shape = header["shape"]
    if not (isinstance(shape, list) and len(shape) == 2 and all(type(n) is int and 0 <= n < 2**62 for n in shape)):
        raise ValueError(f"its shape is {str(shape)[:80]}")
    sound = header["dtype"] in ("float32", "float64") and header["precision"] in PRECISIONS and shape[1] < 2**31
    flags = all(type(header[name]) is bool for name in ("labels", "weights"))
    if not sound or not flags or type(header["error"]) is not float or not np.isfinite(header["error"]):
        raise ValueError("its header is not understood")
    raw = footer[8 + length :]
    if type(header["n_blocks"]) is not int or len(raw) != header["n_blocks"] * _TABLE.itemsize:
        raise ValueError(
            f"its table of blocks has {len(raw)} bytes and its header says {str(header['n_blocks'])[:20]} blocks"
        )
    table = np.frombuffer(raw, _TABLE)
    _check_table(table, shape[0], end)
    more = (header[name] for name in ("precision", "error", "labels", "weights"))
    return Header((shape[0], shape[1]), np.dtype(header["dtype"]), *more), table


def _check_table(table: NDArray[Any], n_rows: int, end: int) -> None:
    """Blocks lie one after the other up to the footer, and none claims more rows or entries than it has bytes."""
    at, rows = len(_MAGIC), 0
    for number, entry in enumerate(table.tolist()):
        offset, size, labels, weights, n, entries, _, _ = entry
        if offset != at or labels + weights > size or max(n, entries) > size or n == 0:
            raise ValueError(
                f"block {number} of its table does not follow the one before, or claims more than it holds"
            )
        at, rows = at + size, rows + n
    if at != end or rows != n_rows:
        raise ValueError(f"its blocks hold {rows} rows up to byte {at}; it should be {n_rows} and {end}")


def _from_npy(data: bytes, n_rows: int, number: int) -> NDArray[Any]:
    """Labels or weights, one a row."""
    stream = io.BytesIO(data)
    head = read_header(stream)
    start = stream.tell()
    sound = head.dtype.kind in _LABEL_KINDS and head.dtype.itemsize and not head.fortran and len(head.shape) in (1, 2)
    if not sound or head.shape[0] != n_rows or start + head.n_bytes != len(data):
        raise ValueError(f"labels of block {number} are {head.dtype} of shape {head.shape} for {n_rows} rows")
    array = np.frombuffer(data, head.dtype, offset=start).reshape(head.shape)
    refuse_impossible(array)
    return array
