"""Turns at a model: threads that read it go together, one that changes it goes alone, and nobody sees it half changed.

A method says by a decorator which of the two it does, from its first look at the model to its last::

    @changes
    @all_or_nothing
    def partial_fit(self, X, y): ...

    @reads
    def predict(self, X): ...

Threads come in the order in which they called. A thread that has a turn may call methods of either kind within one that changes, and methods that read within
one that reads. The turns of a model are no part of it: a copy, a clone, a pickle and a forked child have their own. A model that another thread is changing
while the process forks is half changed in the child, which says so.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

from lacunar import _core

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class _HalfChanged:
    """The turns, in a forked child, of a model that another thread of the parent was changing: that thread is not in the child."""

    def __enter__(self) -> None:
        raise RuntimeError(
            "a model must be at rest when its process forks; another thread was at work on this one, and the forked child has "
            "half of what it did. Load the model in the child, fork before threads begin, or start processes by 'spawn'."
        )

    def __exit__(self, *error: object) -> None: ...


_Turn: TypeAlias = _core.ModelTurn | _HalfChanged
# By the identity of the model, since models need not be hashable: turns to read and to change, and what drops the entry with the model.
_TURNS: dict[int, tuple[_Turn, _Turn, weakref.ref[Any]]] = {}


def _after_fork() -> None:
    """In the child: models at rest get turns of its own, since threads that had one are not there to end it."""
    for key, (_, change, dropped) in list(_TURNS.items()):
        if isinstance(change, _HalfChanged) or change.changed_elsewhere():
            _TURNS[key] = (_HalfChanged(), _HalfChanged(), dropped)
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


def reading(model: Any) -> _Turn:
    """A block in which no other thread changes the model."""
    return _turns(model)[0]


def changing(model: Any) -> _Turn:
    """A block in which no other thread reads or changes the model."""
    return _turns(model)[1]


def reads(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread changes its model."""

    @wraps(method)
    def in_turn(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with _turns(args[0])[0]:
            return method(*args, **kwargs)

    in_turn.turn = "reads"  # type: ignore[attr-defined]
    return in_turn


def changes(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread reads or changes its model."""

    @wraps(method)
    def in_turn(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        with _turns(args[0])[1]:
            return method(*args, **kwargs)

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
        return state | {name: _copied(state[name]) for name in self._written if name in state}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return value.copy() if isinstance(value, np.ndarray) else value
