"""Arrays out of an .npz file that somebody else wrote: the one door for them."""

from __future__ import annotations

import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._npy import MAX_DIMENSIONS, read_header, refuse_impossible

_KINDS = "biufSU"
# Deflate cannot do better than 1032 to 1: who claims more lies, or packs one stream into several members.
_BEST_RATIO, _SMALL = 1032, 1024


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Every array of the file, its length compared with what the file holds before anything is allocated for it.

    Raises OSError where the file cannot be opened, and ValueError, which names the file, where it is no such file, is damaged, holds
    anything but numbers, truth values and text, or claims more than it holds.
    """
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as members:
                infos = members.infolist()
                _refuse_bombs(infos, os.fstat(stream.fileno()).st_size)
                return {info.filename.removesuffix(".npy"): _member(members, info) for info in infos}
        except MemoryError:
            raise
        except Exception as error:  # the parsers of zip and npy headers raise whatever a damaged byte leads them to
            raise ValueError(f"{os.fspath(path)!r} is no sound .npz file of numbers and text: {error}.") from None


def _refuse_bombs(infos: list[zipfile.ZipInfo], size: int) -> None:
    if sum(info.compress_size for info in infos) > size:
        raise ValueError("its members lie on one another")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{info.filename} is compressed in a way that NumPy does not write")
        if info.file_size > _BEST_RATIO * info.compress_size + _SMALL:
            raise ValueError(f"{info.filename} claims to hold more than its compressed bytes can")


def _member(members: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if not info.filename.endswith(".npy"):
        raise ValueError(f"{info.filename!r} is no array")
    with members.open(info) as stream:
        head = read_header(stream)
        if head.dtype.kind not in _KINDS or head.dtype.itemsize == 0 or len(head.shape) > MAX_DIMENSIONS:
            raise ValueError(f"{info.filename} is of dtype {head.dtype} and shape {head.shape}")
        if stream.tell() + head.n_bytes != info.file_size:
            raise ValueError(f"{info.filename} claims shape {head.shape} and holds {info.file_size} bytes")
        raw = stream.read()  # to the end, where the checksum is compared
    array = np.frombuffer(raw, head.dtype).reshape(head.shape, order="F" if head.fortran else "C")
    refuse_impossible(array)
    return array
