"""Turns at a model: threads that read it go together, one that changes it goes alone, and nobody sees it half changed.

A method says by a decorator which of the two it does, from its first look at the model to its last::

    @changes
    @all_or_nothing
    def partial_fit(self, X, y): ...

    @reads
    def predict(self, X): ...

Threads come in the order in which they called. A thread that has a turn may call methods of either kind within one that changes, and methods that read within
one that reads. The turns of a model are no part of it: a copy, a clone, a pickle and a forked child have their own. A model that is half changed for good says
so from then on: in the child of a fork while another thread was changing it, and where a failed call could not go back (`lacunar._state`).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar, ParamSpec, TypeAlias, TypeVar, cast

from lacunar import _core
from lacunar._state import copied, of_a_moment

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


_FORKED = (
    "a model must be at rest when its process forks; another thread was at work on this one, and the forked child has "
    "half of what it did. Load the model in the child, fork before threads begin, or start processes by 'spawn'."
)
_LOST = (
    "a model must be whole to be used; a call on this one failed, and there was no memory to go back to what was before. "
    "Load the model again, or fit a new one."
)


class _HalfChanged:
    """The turns of a model that is half changed for good, which say why."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __enter__(self) -> None:
        raise RuntimeError(self._reason)

    def __exit__(self, *error: object) -> None: ...


_Turn: TypeAlias = _core.ModelTurn | _HalfChanged
# By the identity of the model, since models need not be hashable: turns to read and to change, and what drops the entry with the model.
_TURNS: dict[int, tuple[_Turn, _Turn, weakref.ref[Any]]] = {}


def _after_fork() -> None:
    """In the child: models at rest get turns of its own, since threads that had one are not there to end it."""
    for key, (_, change, dropped) in list(_TURNS.items()):
        if isinstance(change, _HalfChanged):
            continue
        if change.changed_elsewhere():
            _TURNS[key] = (_HalfChanged(_FORKED), _HalfChanged(_FORKED), dropped)
        else:
            del _TURNS[key]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _turns(model: Any) -> tuple[_Turn, _Turn, weakref.ref[Any]]:
    try:
        return _TURNS[id(model)]
    except KeyError:
        key = id(model)
        # Without a frame of Python, which could fail where nobody hears of it; the dead reference is pop's default.
        dropped = weakref.ref(model, partial(_TURNS.pop, key))
        return _TURNS.setdefault(key, (*_core.model_turns(), dropped))  # of several threads that come here one is first


def _lose(model: Any) -> None:
    """Let nobody use a model any more."""
    _TURNS[id(model)] = (_HalfChanged(_LOST), _HalfChanged(_LOST), _turns(model)[2])


def reading(model: Any) -> _Turn:
    """A block in which no other thread changes the model."""
    return _turns(model)[0]


def changing(model: Any) -> _Turn:
    """A block in which no other thread reads or changes the model."""
    return _turns(model)[1]


def reads(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread changes its model. One that answers whole (`lacunar._state`) needs no turn."""
    whole = of_a_moment(method)

    @wraps(method)
    def in_turn(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        if hasattr(args[0], "_answers_whole"):
            return whole(*args, **kwargs)
        with _turns(args[0])[0]:
            return method(*args, **kwargs)

    in_turn.turn = "reads"  # type: ignore[attr-defined]
    return in_turn


def changes(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread reads or changes its model."""

    @wraps(method)
    def in_turn(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with _turns(args[0])[1]:
            try:
                return method(*args, **kwargs)
            except BaseException as error:
                if hasattr(error, "state_lost"):
                    _lose(args[0])
                raise

    in_turn.turn = "changes"  # type: ignore[attr-defined]
    return in_turn


class WholeCopies:
    """Pickles, copies and model files of a model are of a moment between two calls, while another thread learns.

    Learning writes into the arrays of the attributes `_written`, which are therefore copied.
    """

    _written: ClassVar[tuple[str, ...]] = ()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        state = cast(dict[str, Any], super().__getstate__())
        return state | {name: copied(state[name]) for name in self._written if name in state}
