"""One lock a model that learns in steps: one thread at a time asks it or teaches it, and nobody sees it half changed.

A method says by a decorator which of the two it does::

    @changes
    def partial_fit(self, X, y): ...

    @reads
    def predict(self, X): ...

A thread that has the lock may call methods of either kind. The lock is no part of its model: a copy, a clone and a
pickle have none, and a forked child has its own. A model that is half changed for good says so from then on: in the
child of a fork while another thread was changing it, and where a call could not leave whole rows (`WholeRows`).
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

from lacunar._state import copied, of_a_moment

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_FORKED = (
    "a model must be at rest when its process forks; another thread was at work on this one, and the forked child has "
    "half of what it did. Load the model in the child, fork before threads begin, or start processes by 'spawn'."
)
_LOST = (
    "a model must be whole to be used; a call on this one failed within a row, because memory ran out or its weights "
    "overflowed. Load the model again, or fit a new one."
)


class _Guard:
    """The lock of one model, and what is known of the call that has it."""

    def __init__(self, dropped: weakref.ref[Any]) -> None:
        self.lock = threading.RLock()
        self.changing = 0  # calls, one within another, that change the model
        self.keep: Callable[[], object] | None = None  # of the rows that are being learned, or of one that was in part
        self.broken: str | None = None  # why nobody may use the model any more
        self.dropped = dropped  # drops the guard with its model

    def check(self) -> None:
        """Refuse a model that is half changed for good."""
        if self.broken is not None:
            raise RuntimeError(self.broken)

    def settle(self) -> None:
        """Have the attributes say which rows were learned."""
        if (keep := self.keep) is None:
            return
        try:
            keep()
        except KeyboardInterrupt:
            keep()
            self.keep = None
            raise
        self.keep = None

    def after(self, error: BaseException) -> None:
        """Note that a call ended in an error, which may have come before `settle`, or in it."""
        try:
            if not hasattr(error, "within_row"):
                self.settle()
        finally:
            if self.keep is not None:
                self.broken = _LOST


_GUARDS: dict[int, _Guard] = {}  # by the identity of the model, since models need not be hashable


def _after_fork() -> None:
    """In the child, which has none of the threads that held locks but its own."""
    for guard in list(_GUARDS.values()):
        if guard.lock.acquire(blocking=False):
            guard.lock.release()
        else:
            guard.lock, guard.broken = threading.RLock(), _FORKED if guard.changing else guard.broken


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _guard(model: Any) -> _Guard:
    key = id(model)
    try:
        return _GUARDS[key]
    except KeyError:
        # Without a frame of Python, which could fail where nobody hears of it; the dead reference is pop's default.
        guard = _Guard(weakref.ref(model, partial(_GUARDS.pop, key)))
        return _GUARDS.setdefault(key, guard)  # of several threads that come here one is first


def lock_of(model: Any) -> Any:
    """The lock (an RLock) of a model, for a block of several calls that nobody else comes between."""
    return _guard(model).lock


def reads(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread changes its model. One that answers whole (`lacunar._state`) needs no
    lock.
    """
    whole = of_a_moment(method)

    @wraps(method)
    def locked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        if hasattr(args[0], "_answers_whole"):
            return whole(*args, **kwargs)
        guard = _guard(args[0])
        with guard.lock:
            guard.check()
            return method(*args, **kwargs)

    locked.locks = "reads"  # type: ignore[attr-defined]  # a mark on the function
    return locked


def changes(method: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
    """The method, during which no other thread reads or changes its model."""

    @wraps(method)
    def locked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        guard = _guard(args[0])
        with guard.lock:
            guard.check()
            guard.changing += 1
            try:
                return method(*args, **kwargs)
            except BaseException as error:  # interrupts too: the guard notes what was left undone
                guard.after(error)
                raise
            finally:
                guard.changing -= 1

    locked.locks = "changes"  # type: ignore[attr-defined]  # a mark on the function
    return locked


class WholeRows:
    """A block, in a method that `changes`, that learns rows of a batch in place, each of them whole or not at all.

    However it ends, `keep` then makes the attributes say which rows were learned; it may be called twice, as an
    interrupt within it waits until it is done. Where it fails, or an error says by `within_row` where it came, nobody
    may use the model any more.
    """

    def __init__(self, model: Any, keep: Callable[[], object]) -> None:
        self._guard, self._keep = _guard(model), keep

    def __enter__(self) -> None:
        self._guard.keep = self._keep

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not hasattr(error, "within_row"):
            self._guard.settle()


def within_row(learn: Callable[..., _Answer], *args: Any) -> _Answer:
    """A call of the core that learns rows in place: where memory ends in it, it was within a row."""
    try:
        return learn(*args)
    except MemoryError as error:
        error.within_row = True  # type: ignore[attr-defined]  # a mark on the error
        raise


class WholeCopies:
    """Pickles, copies and model files of a model are of a moment between two calls, while another thread learns.

    Learning writes into the arrays of the attributes `_written`, which are therefore copied.
    """

    _written: ClassVar[tuple[str, ...]] = ()

    @reads
    def __getstate__(self) -> dict[str, Any]:
        state = cast(dict[str, Any], super().__getstate__())
        return state | {name: copied(state[name]) for name in self._written if name in state}
