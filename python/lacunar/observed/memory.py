"""Which arrays are private: the compiled core trusts checked numbers only where no other code can write to their
memory.
"""

from __future__ import annotations

import mmap
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


class Memory:
    """Owner of a private array: the base of all of its views, by which `is_private` recognises them."""

    __slots__ = ("__array_struct__", "_array")

    def __init__(self, array: NDArray[Any]) -> None:
        self._array, self.__array_struct__ = array, array.__array_struct__


def mark_private(array: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Mark a newly computed array as private. Only code that allocated the array may call it, never for a caller's
    array.
    """
    return array if array.dtype.hasobject else np.asarray(Memory(array))


def owned(array: NDArray[Any], dtype: DTypeLike | None = None) -> NDArray[Any]:
    """The array in this dtype, contiguous, aligned and in private memory.

    Itself where it is all that, else a copy. To be called before the numbers are checked: what is checked is then what
    is used.
    """
    ready = np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "ENSUREARRAY"])
    if not np.may_share_memory(ready, array):
        return mark_private(ready)
    return ready if is_private(ready) else mark_private(ready.copy())


def is_private(array: NDArray[Any]) -> bool:
    """Whether only this package can write to the array's memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    if isinstance(owner, tuple) and owner:  # of NumPy's making: what was asked for its memory, and what it showed
        owner = owner[0]
    return isinstance(owner, Memory) or is_frozen(array)


def is_frozen(array: NDArray[Any]) -> bool:
    """Whether nothing can write to the array's memory, because bytes or a read-only mapped file own it.

    A read-only array that owns its memory may have writable views, and its flag can be set back. A read-only view of
    memory says nothing of those who have another, so a buffer of any other kind is not believed.
    """
    owner: Any = array
    while isinstance(owner, np.ndarray | memoryview):
        if owner.flags.writeable if isinstance(owner, np.ndarray) else not owner.readonly:
            return False
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return isinstance(owner, bytes) or (isinstance(owner, mmap.mmap) and memoryview(owner).readonly)
