"""Progress of long fits: the logger "lacunar". Without any logging set up, `verbose` writes lines to stderr."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from typing import Any

logger = logging.getLogger("lacunar")
_PAUSE = 1.0  # seconds between two lines of progress


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
