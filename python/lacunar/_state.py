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

A method of a model, which replaces attributes and writes into no array, needs a decorator only: the model gets all that the method
changed in one assignment at its end, or nothing::

    @all_or_nothing
    def partial_fit(self, X, y): ...

A model that does not learn in steps then needs no lock: its class says by `whole_answers` that each answer is made of the attributes of one moment.

Where a call changes few entries of large arrays, name these entries in place of the engine: `Entries` copies nothing else::

    with going_back(self, Entries((self.engine_.table, touched_rows), (self.engine_.clock, ...))):

When going back fails itself, as without memory, the error says so by its attribute `state_lost`, and `lacunar._lock` lets nobody use the
model any more.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

_Parameters = ParamSpec("_Parameters")
_Returned = TypeVar("_Returned")
_Model = TypeVar("_Model")


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
        self._model = model

    def state(self) -> dict[str, Any]:
        return dict(vars(self._model))

    def take_back(self, state: dict[str, Any]) -> None:
        self._model.__dict__ = state


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


def _with_attributes(model: _Model, attributes: dict[str, Any]) -> _Model:
    """An object of the same class that has this dictionary of attributes."""
    other: _Model = object.__new__(type(model))
    other.__dict__ = attributes
    return other


def all_or_nothing(method: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """The method, all of whose changes its model gets in one assignment at its end; none where it raises.

    It works on an object of its own: other threads, and what it calls, see the model as it was until then.
    """

    @wraps(method)
    def whole(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        model: Any = args[0]
        changed = _with_attributes(model, dict(vars(model)))
        answer = method(changed, *args[1:], **kwargs)  # type: ignore[arg-type]
        model.__dict__ = vars(changed)
        return model if answer is changed else answer  # type: ignore[no-any-return]

    return whole


def of_a_moment(method: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """The method, on the attributes that its model has when it is called, whatever replaces them meanwhile."""

    @wraps(method)
    def answer(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        model: Any = args[0]
        return method(_with_attributes(model, vars(model)), *args[1:], **kwargs)  # type: ignore[arg-type]

    return answer


_NO_ANSWERS = ("_", "fit", "set_", "get_params", "get_metadata_routing")


def whole_answers(cls: type[_Model]) -> type[_Model]:
    """A class that learns in `fit` alone: each of its public methods and properties is one `of_a_moment`, also inherited ones."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith(_NO_ANSWERS):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(of_a_moment(member.fget), doc=member.__doc__))
        elif inspect.isfunction(member):
            setattr(cls, name, of_a_moment(member))
    cls._answers_whole = True  # type: ignore[attr-defined]
    return cls
