"""One way to go back after a failure: what an exception leaves is what was there before.

A method of an estimator that replaces attributes and writes into no array needs the decorator only::

    @all_or_nothing
    def partial_fit(self, X, y): ...

Arrays that are changed in place belong to an object with a pair of methods: ``snapshot()`` returns what is needed to go back (a copy, as
small as what is to come allows) and ``restore(kept)`` goes back to it. Such objects are named beside the estimator::

    with going_back(self, self.engine_, Cells(self.tables_, drawn)) as point:
        self.engine_.learn(rows)
        point.keep()  # what was done so far stays, whatever follows
        self._more(rows)

An object without the pair is a model, whose attributes are put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class _Attributes:
    """The attributes of a model, which what follows replaces and does not write into."""

    def __init__(self, model: Any) -> None:
        self._attributes: dict[str, Any] = vars(model)

    def snapshot(self) -> dict[str, Any]:
        return dict(self._attributes)

    def restore(self, kept: dict[str, Any]) -> None:
        self._attributes.clear()
        self._attributes.update(kept)


class SavePoint:
    """What models and objects with snapshot() and restore() were, to go back to by `undo`.

    `keep` moves the point, `release` gives it up. `keeps_interrupted` may be set where an interrupt leaves everything whole.
    """

    def __init__(self, *parts: Any) -> None:
        self._parts = [part if hasattr(part, "restore") else _Attributes(part) for part in parts]
        self.keeps_interrupted = False
        self.keep()

    def keep(self) -> None:
        """What has been done so far stays."""
        self._kept = [part.snapshot() for part in self._parts]

    def release(self) -> None:
        """Nothing is undone any more: what follows takes care of itself."""
        self._parts, self._kept = [], []

    def undo(self, error: BaseException) -> None:
        """Go back, unless this is an interrupt that leaves everything whole."""
        if not (isinstance(error, KeyboardInterrupt) and self.keeps_interrupted):
            for part, kept in zip(self._parts, self._kept, strict=True):
                part.restore(kept)


@contextmanager
def going_back(*parts: Any) -> Iterator[SavePoint]:
    """A block from whose exceptions models and objects with snapshot() and restore() come back as they were."""
    point = SavePoint(*parts)
    try:
        yield point
    except BaseException as error:
        point.undo(error)
        raise


def all_or_nothing(method: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The method, from whose exceptions its model comes back as it was."""

    @wraps(method)
    def whole(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        point = SavePoint(_Attributes(args[0]))  # also of a model with a pair of its own for its users
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            point.undo(error)
            raise

    return whole
