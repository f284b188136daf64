"""`SideState`: side information begun, as the engine reads it; what its implementations share."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Kind = Literal["dense", "factor", "operator"]

DENSE_LIMIT = 4000  # ids: 128 MB of float64. Beyond, nothing that is no "dense" kind is written out.


class SideState(Protocol):
    """What is known about the rows (or columns) of a matrix: a kernel K over ids, diagonal at most 1.

    kind: "dense" keeps K; "factor" is Phi Phi^T + own I + const 11^T; "operator" multiplies without holding K.
    ids: names of the first vertices, in order, when the descriptor knows names; None when ids are numbers 0..size-1, or,
    for growing kinds, whatever takes the next free vertex.
    """

    kind: Kind
    ids: list[Hashable] | None
    grows: bool

    @property
    def size(self) -> int:
        """Vertices known so far."""
        ...

    def diagonal(self) -> Floats:
        """K_ii, shape (size,)."""
        ...

    def columns(self, index: Any) -> Floats:
        """K[:, index], shape (size, k), C-contiguous."""
        ...

    def apply(self, V: Floats) -> Floats:
        """K @ V, of V's shape (size, k) or (size,)."""
        ...

    def dense(self) -> Floats:
        """K, shape (size, size); other kinds than "dense" up to `DENSE_LIMIT` ids."""
        ...

    def factor(self) -> tuple[Floats, float, float]:
        """(Phi (size, d), own, const) of kind "factor"."""
        ...

    def grow(self, value: Any) -> int:
        """Takes one more vertex, whole or not at all, and returns its number."""
        ...

    def digest(self) -> str:
        """A short name of the side information as it was begun: growing does not change it."""
        ...

    def state(self) -> dict[str, Any]:
        """Arrays, numbers, strings and lists from which `restore` makes this state again."""
        ...


class BaseState:
    """Refusals and defaults in common."""

    kind: Kind
    ids: list[Hashable] | None = None
    grows = False
    is_pd_laplacian = False  # whether K is the inverse of a PDLaplacian up to a factor: the first case of Theorem 3
    _digest = ""

    @property
    def size(self) -> int:
        """Vertices known so far."""
        raise NotImplementedError

    def columns(self, index: Any) -> Floats:
        """K[:, index]."""
        raise NotImplementedError

    def dense(self) -> Floats:
        """K from its columns."""
        if self.size > DENSE_LIMIT:
            raise ValueError(
                f"K may be written out for at most {DENSE_LIMIT} ids; there are {self.size}. Use apply() or columns()."
            )
        return self.columns(np.arange(self.size))

    def factor(self) -> tuple[Floats, float, float]:
        """No low rank here."""
        raise TypeError(f"only side information of kind 'factor' has a factor; this is {self.kind!r}. Use apply().")

    def grow(self, value: Any) -> int:
        """No more ids than were given."""
        raise ValueError(
            f"this side information knows {self.size} ids and takes no more; got {shown(value)}. Use side information that "
            "grows (Identity(), KernelFunction, Features with the new row's features)."
        )

    def digest(self) -> str:
        """The name given at the beginning."""
        return self._digest


class RowStore:
    """Rows (n, d) that grow by one, doubling their memory."""

    def __init__(self, rows: Floats) -> None:
        self._buffer, self.size = np.ascontiguousarray(rows, dtype=np.float64), len(rows)

    @property
    def rows(self) -> Floats:
        """The rows so far, a view (n, d)."""
        return self._buffer[: self.size]

    def append(self, row: Floats) -> None:
        """One more row (d,)."""
        if self.size == len(self._buffer):
            wider = np.empty((max(8, 2 * self.size), self._buffer.shape[1]))
            wider[: self.size] = self.rows
            self._buffer = wider
        self._buffer[self.size] = row
        self.size += 1


def digest_of(**parts: Any) -> str:
    """A hash of named parts: arrays by dtype, shape and bytes, anything else by its repr."""
    seal = hashlib.blake2b(digest_size=12)
    for name in sorted(parts):
        part = parts[name]
        seal.update(f"|{name}=".encode())
        if isinstance(part, np.ndarray) and part.dtype.kind != "O":
            seal.update(f"{part.dtype.str}{part.shape}".encode())
            seal.update(np.ascontiguousarray(part).tobytes())
        else:
            seal.update(repr(part.tolist() if isinstance(part, np.ndarray) else part).encode())
    return seal.hexdigest()


def plain_ids(ids: Sequence[Hashable] | None) -> list[Hashable] | None:
    """Ids as Python's own objects: numpy's scalars are what their item() is."""
    return None if ids is None else [i.item() if isinstance(i, np.generic) else i for i in ids]


def shown(value: object) -> str:
    """A value in a message, short."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def refuse_state(what: str) -> NoReturn:
    """A saved state that does not belong here."""
    raise ValueError(f"the saved state must be of this side information; {what}. Pass the side information it was of.")


def field(state: Mapping[str, Any], name: str) -> Any:
    """One entry of a saved state."""
    if name not in state:
        refuse_state(f"it has no {name!r}")
    return state[name]
