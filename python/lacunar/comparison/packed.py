"""Packed files and standard input as plain files, which may not be larger than a sound file unpacks to."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from lacunar.comparison.cells import UserError, listed

ENDINGS = (".gz", ".bz2", ".xz", ".zip")
LEAST, TIMES = 2**28, 50  # bytes that any file may unpack to, and how many times its own size a large one may
_CHUNK = 2**20
_PACKED: dict[bytes, Callable[[Path], Any]] = {
    b"\x1f\x8b": gzip.GzipFile,
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}
_ZIP = b"PK\x03\x04"
_OF_MACOS = "__MACOSX/"  # a folder that macOS packs with every file


def most_bytes(size: int) -> int:
    """Largest number of bytes that a file of `size` bytes may unpack to."""
    return max(LEAST, TIMES * size)


def refuse_beyond(unpacked: int, size: int, source: str) -> None:
    """UserError where a file of `size` bytes unpacks to more than it may."""
    if unpacked > most_bytes(size):
        raise UserError(
            f"{source}: the file has {size:,} bytes and unpacks to more than {most_bytes(size):,}; here a file may unpack to {LEAST:,} bytes, or "
            f"to {TIMES} times its size. "
            "If it is sound, unpack it first and name the plain file, or read it in Python and pass a frame."
        )


@contextmanager
def plain_file(name: str) -> Iterator[Path]:
    """The file itself, or a temporary one of what standard input or a packed file (.gz, .bz2, .xz, a .zip of one file)
    holds.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, shown = Path(name), name
        if name == "-":
            path, shown = Path(folder) / "input", "standard input"
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
        elif not path.exists():
            raise UserError(f"{name}: no such file.")
        elif not path.is_file():
            raise UserError(f"{name}: not a file with a table. Name one file, or - for standard input.")
        yield _unpacked(path, Path(folder) / "table", shown)


def _unpacked(path: Path, place: Path, source: str) -> Path:
    with path.open("rb") as file:
        head = file.read(8)
    unpack = next((unpack for magic, unpack in _PACKED.items() if head.startswith(magic)), None)
    if unpack is not None:
        with unpack(path) as packed:
            return _copied(packed, place, path.stat().st_size, source)
    if not head.startswith(_ZIP) or not zipfile.is_zipfile(path):
        return path
    with zipfile.ZipFile(path) as members:
        infos = [info for info in members.infolist() if not info.is_dir() and not info.filename.startswith(_OF_MACOS)]
        refuse_beyond(sum(info.file_size for info in infos), path.stat().st_size, source)
        known = ("xl/workbook.xml", "header.json")
        if any(info.filename in known or info.filename.endswith(".npy") for info in infos) or not infos:
            return path
        if any(info.filename == "content.xml" for info in infos):
            raise UserError(f"{source}: this is a table of OpenDocument. Save it as .xlsx or as CSV.")
        if len(infos) > 1:
            raise UserError(
                f"{source}: the archive holds several files, {listed(sorted(info.filename for info in infos))}. Unpack it and name one."
            )
        with members.open(infos[0]) as packed:
            return _copied(packed, place, path.stat().st_size, source)


def _copied(packed: IO[Any], place: Path, size: int, source: str) -> Path:
    """A plain copy, given up as soon as it is larger than it may be."""
    written = 0
    with place.open("wb") as file:
        while chunk := packed.read(_CHUNK):
            written += len(chunk)
            refuse_beyond(written, size, source)
            file.write(chunk)
    return place
