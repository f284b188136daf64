"""Progress of long fits: the logger "lacunar". Without any logging set up, `verbose` writes lines to stderr."""

from __future__ import annotations

import logging
import sys
from typing import Any

logger = logging.getLogger("lacunar")


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
