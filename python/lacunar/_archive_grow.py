"""Archives whose arrays grow piece by piece, so that they need not fit in memory; the layout is that of `_archive`."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lacunar._archive import aligned_member, check_folder, header_text, replace_file, replace_folder

_HEAD = 128  # bytes of the .npy header of a one-dimensional array, whatever its length
_CHUNK = 2**22


class GrowingArchive:
    """One-dimensional arrays on disk, beside `path` until `finish` puts all of them there in one step.

    Left without `finish`, or by an error, it leaves nothing behind; killed, a folder ``path....part`` and the old file.
    """

    def __init__(self, path: str | os.PathLike[str], *, kind: str, as_folder: bool) -> None:
        self._target, self._kind, self._as_folder = Path(path), kind, as_folder
        if as_folder:
            check_folder(self._target)
        self._folder = Path(tempfile.mkdtemp(dir=self._target.parent, prefix=self._target.name, suffix=".part"))
        self._arrays: dict[str, _Growing] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for array in self._arrays.values():
            array.stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def append(self, name: str, piece: NDArray[Any]) -> None:
        """Add to the end of an array; its first piece settles the dtype."""
        if name not in self._arrays:
            self._arrays[name] = _Growing(self._folder / f"{name}.npy", piece.dtype)
        self._arrays[name].append(piece)

    def finish(self, header: Mapping[str, Any]) -> None:
        """Put the archive at its path, in the place of what was there. A file costs one more copy on disk than a folder."""
        listing = {name: array.finish() for name, array in self._arrays.items()}
        text = header_text(self._kind, listing, header)
        if self._as_folder:
            replace_folder(self._folder, self._target, text)
        else:
            replace_file(self._target, lambda stream: self._write_members(stream, text))

    def _write_members(self, stream: BinaryIO, text: str) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as members:
            members.writestr("header.json", text)
            for name in self._arrays:
                part = self._folder / f"{name}.npy"
                with (
                    open(part, "rb") as source,
                    members.open(aligned_member(name, stream.tell()), "w", force_zip64=True) as member,
                ):
                    shutil.copyfileobj(source, member, _CHUNK)
                part.unlink()  # no more than one array is there twice


class _Growing:
    """One array in a ``.npy`` file, whose header is written last."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.dtype, self.length, self.checksum = dtype, 0, 0
        self.stream = open(path, "wb")  # noqa: SIM115 - closed by `finish`, or by the archive
        self.stream.write(bytes(_HEAD))

    def append(self, piece: NDArray[Any]) -> None:
        raw = np.ascontiguousarray(piece, dtype=self.dtype).view(np.uint8).data
        self.stream.write(raw)
        self.checksum = zlib.crc32(raw, self.checksum)
        self.length += len(piece)

    def finish(self) -> dict[str, Any]:
        """The entry of the archive's header."""
        self.stream.seek(0)
        self.stream.write(_npy_header(self.dtype, self.length))
        self.stream.close()
        return {"dtype": self.dtype.str, "shape": [self.length], "crc32": self.checksum}


def _npy_header(dtype: DTypeLike, length: int) -> bytes:
    made = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": (length,)}
    np.lib.format.write_array_header_1_0(made, described)
    assert made.tell() == _HEAD
    return made.getvalue()
