"""All or nothing: after an exception a model is what it was before."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class SavePoint:
    """The attributes of a model, to be put back by `undo`; what happens meanwhile replaces them and writes into none.

    `keep` moves the point. `keeps_interrupted` may be set where an interrupt leaves a model that is whole. Used with `try`, not
    with `with`, since leaving a `with` is a call, which may fail in its turn when all is done.
    """

    def __init__(self, model: Any) -> None:
        self._attributes, self.keeps_interrupted = vars(model), False
        self.keep()

    def keep(self) -> None:
        """What has been done so far stays."""
        self._before = dict(self._attributes)

    def undo(self, error: BaseException) -> None:
        """Go back, unless this is an interrupt that keeps the model."""
        if not (isinstance(error, KeyboardInterrupt) and self.keeps_interrupted):
            self._attributes.clear()
            self._attributes.update(self._before)


def all_or_nothing(method: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The method, from whose exceptions its model comes back as it was."""

    @wraps(method)
    def whole(*args: _Given.args, **kwargs: _Given.kwargs) -> _Made:
        point = SavePoint(args[0])
        try:
            return method(*args, **kwargs)
        except BaseException as error:
            point.undo(error)
            raise

    return whole
