"""The contract of state: what is changed in place can be saved, copied and pickled in one way.

An object whose arrays are changed in place (an engine) has two methods::

    def state(self) -> dict[str, Any]: ...            # its arrays and plain values; the arrays may be the live ones
    @classmethod
    def from_state(cls, state) -> Self: ...           # an object on these arrays, which goes on bit for bit

Model files hold that dictionary, and a copy is `from_state(copied(engine.state()))`.

A method of a model, which replaces attributes and writes into no array, needs a decorator only: the model gets all that
the method changed in one assignment at its end, or nothing::

    @all_or_nothing
    def partial_fit(self, X, y): ...

A model that does not learn in steps then needs no lock: its class says by `whole_answers` that each answer is made of
the attributes of one moment.

What learns in place learns whole rows: see `WholeRows` in `lacunar._lock`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

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
        answer = method(changed, *args[1:], **kwargs)  # type: ignore[arg-type]  # the same type
        model.__dict__ = vars(changed)
        return model if answer is changed else answer

    return whole


def of_a_moment(method: Callable[_Parameters, _Returned]) -> Callable[_Parameters, _Returned]:
    """The method, on the attributes that its model has when it is called, whatever replaces them meanwhile."""

    @wraps(method)
    def answer(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Returned:
        model: Any = args[0]
        return method(_with_attributes(model, vars(model)), *args[1:], **kwargs)  # type: ignore[arg-type]  # the same type

    return answer


_NO_ANSWERS = ("_", "fit", "set_", "get_params", "get_metadata_routing")


def whole_answers(cls: type[_Model]) -> type[_Model]:
    """A class that learns in `fit` alone: each of its public methods and properties is one `of_a_moment`, also
    inherited ones.
    """
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith(_NO_ANSWERS):
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(of_a_moment(member.fget), doc=member.__doc__))
        elif inspect.isfunction(member):
            setattr(cls, name, of_a_moment(member))
    cls._answers_whole = True  # type: ignore[attr-defined]  # a mark on the class
    return cls
