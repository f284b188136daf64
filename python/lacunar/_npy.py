"""Arrays in .npy form out of untrusted files: headers compared with what the file holds, values with what their type allows."""

from __future__ import annotations

import math
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAX_DIMENSIONS = 32  # of NumPy 1


class NpyHeader(NamedTuple):
    """What the head of a .npy file says."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool

    @property
    def n_bytes(self) -> int:
        """Bytes that the values take; a Python integer, which no claim makes wrap around."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> NpyHeader:
    """The head of a .npy file, the stream left where the values begin. Raises whatever a damaged byte leads to."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of .npy version {version}, and 1.0 and 2.0 are read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return NpyHeader(dtype, tuple(shape), bool(fortran))


def refuse_impossible(array: NDArray[Any]) -> None:
    """Bytes that are no truth value or no character break whoever reads them: the compiler trusts a bool to be 0 or 1."""
    if array.dtype.kind == "b" and array.size and np.ascontiguousarray(array).view(np.uint8).max() > 1:
        raise ValueError("an array of truth values holds something else")
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if codes.max() > 0x10FFFF:
            raise ValueError("an array of text holds a number that is no character")
