"""What users are told on the way: warnings at their own lines, and progress of long fits, by the logger "lacunar".

Without any logging set up, `verbose` writes lines to stderr.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

logger = logging.getLogger("lacunar")
_PAUSE = 1.0  # seconds between two lines of progress
_INSIDE = ("lacunar", "sklearn", "joblib")  # packages whose lines tell a user nothing
_warned: WeakKeyDictionary[Any, set[tuple[str, int]]] = WeakKeyDictionary()


def warn_user(message: str, category: type[Warning] = UserWarning, *, once_of: Any = None) -> None:
    """`warnings.warn` at the line of the user's that led here, whatever decorators and libraries lie between.

    With `once_of`, an object, a line that calls another library is warned once about it, whatever the message: a search of that
    library calls a model many times.
    """
    frame: FrameType = sys._getframe(1)
    entered = "lacunar"
    while frame.f_back is not None and (package := frame.f_globals.get("__name__", "").partition(".")[0]) in _INSIDE:
        frame, entered = frame.f_back, package
    place = frame.f_code.co_filename, frame.f_lineno
    if once_of is not None and entered != "lacunar":
        lines = _warned.setdefault(once_of, set())
        if place in lines:
            return
        lines.add(place)
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(message, category, *place, frame.f_globals.get("__name__"), registry)


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what `sys.stderr` is at the time of the message: notebooks and tests replace it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr


def say(verbose: int, message: str, *args: object) -> None:
    """A line of progress where `verbose` asks for one, at level INFO, formatted as in `logging`: ``say(1, "pass %d", 3)``."""
    if not verbose:
        return
    if not logger.hasHandlers():
        logger.addHandler(_Stderr())
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.INFO)
    logger.info(message, *args)


def in_slices(n: int, size: int, verbose: int, what: str) -> Iterator[slice]:
    """Slices of `size` of n pieces of work, between which Python sees Ctrl-C; about once a second says how many are done."""
    begun = said = time.perf_counter()
    for first in range(0, n, size):
        yield slice(first, first + size)
        done, now = min(first + size, n), time.perf_counter()
        if now - said >= _PAUSE:
            said, seconds_left = now, (now - begun) * (n - done) / done
            say(verbose, "%d of %d %s, %.0f s left", done, n, what, seconds_left)
