"""The contract of state: what is changed in place can be saved, copied, pickled and taken back in one way.

An object whose arrays are changed in place (an engine) has two methods::

    def state(self) -> dict[str, Any]: ...            # its arrays and plain values; the arrays may be the live ones
    @classmethod
    def from_state(cls, state) -> Self: ...           # an object on these arrays, which goes on bit for bit

Model files hold that dictionary, a copy is `from_state(copied(engine.state()))`, and a block that fails goes back to it::

    with going_back(self, self.engine_) as point:
        self.engine_.learn(rows)
        point.keep()  # what was done so far stays, whatever follows
        self._more(rows)

A model, which replaces its attributes and writes into no array, has neither method: its attributes are put back. A method of such a model
needs the decorator only::

    @all_or_nothing
    def partial_fit(self, X, y): ...

Where a call changes few entries of large arrays, name these entries in place of the engine: `Entries` copies nothing else::

    with going_back(self, Entries((self.engine_.table, touched_rows), (self.engine_.clock, ...))):

When going back fails itself, as without memory, the error says so by its attribute `state_lost`, and `lacunar._turns` lets nobody use the
model any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")


def copied(state: Any) -> Any:
    """The state with copies of its arrays."""
    if isinstance(state, dict):
        return {name: copied(value) for name, value in state.items()}
    if isinstance(state, list | tuple) and not hasattr(state, "_fields"):
        return type(state)(map(copied, state))
    return state.copy() if isinstance(state, np.ndarray) else state


class _Part(Protocol):
    """What a save point holds for each of its objects."""

    def state(self) -> Any: ...
    def take_back(self, state: Any) -> None: ...


class _Attributes:
    """The attributes of a model, which what follows replaces and does not write into."""

    def __init__(self, model: Any) -> None:
        self._attributes: dict[str, Any] = vars(model)

    def state(self) -> dict[str, Any]:
        return dict(self._attributes)

    def take_back(self, state: dict[str, Any]) -> None:
        self._attributes.clear()
        self._attributes.update(state)


class _Engine:
    """An object with `state` and `from_state`, all of whose arrays may be written into."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def state(self) -> Any:
        return copied(self._engine.state())

    def take_back(self, state: Any) -> None:
        self._engine.__dict__ = vars(type(self._engine).from_state(state))


class Entries:
    """Entries of arrays, each named by the array and an index into it, to go back to in place: for objects that are too large to copy."""

    def __init__(self, *places: tuple[NDArray[Any], Any]) -> None:
        self._places = places

    def state(self) -> list[NDArray[Any]]:
        """Copies of the entries."""
        return [np.array(array[index]) for array, index in self._places]

    def take_back(self, state: list[NDArray[Any]]) -> None:
        """Write these values into the entries."""
        for (array, index), values in zip(self._places, state, strict=True):
            array[index] = values


def _part(part: Any) -> _Part:
    if hasattr(part, "get_params"):  # also a model with `state` and `from_state` for its users
        return _Attributes(part)
    if hasattr(part, "take_back"):
        return part  # type: ignore[no-any-return]
    return _Engine(part) if hasattr(part, "from_state") else _Attributes(part)


class SavePoint:
    """What models, engines and entries were, to go back to by `undo`.

    `keep` moves the point, `release` gives it up. `keeps_interrupted` may be set where an interrupt leaves everything whole.
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = [_part(part) for part in parts]
        self.keeps_interrupted = False
        self.keep()

    def keep(self) -> None:
        """What has been done so far stays."""
        self._states = [part.state() for part in self._parts]

    def release(self) -> None:
        """Nothing is undone any more: what follows takes care of itself."""
        self._parts, self._states = [], []

    def undo(self, error: BaseException) -> None:
        """Go back, unless this is an interrupt that leaves everything whole."""
        if isinstance(error, KeyboardInterrupt) and self.keeps_interrupted:
            return
        try:
            for part, state in zip(self._parts, self._states, strict=True):
                part.take_back(state)
        except BaseException:  # no memory to go back, or a second interrupt: `error` is raised, and says it
            error.state_lost = True  # type: ignore[attr-defined]


@contextmanager
def going_back(*parts: Any) -> Iterator[SavePoint]:
    """A block from whose exceptions models, engines (`state`, `from_state`) and `Entries` come back as they were."""
    point = SavePoint(*parts)
    try:
        yield point
    except BaseException as error:
        point.undo(error)
        raise


def all_or_nothing(method: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """The method, from whose exceptions the attributes of its model come back as they were."""

    @wraps(method)
    def whole(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        point = SavePoint(_Attributes(args[0]))
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            point.undo(error)
            raise

    return whole
