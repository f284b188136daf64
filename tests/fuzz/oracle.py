"""What a reader may do with a hostile file: return something that can be used, or refuse it by name. Nothing else."""

from __future__ import annotations

import sys
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

SECONDS = 5.0  # of this process, not of the clock: the machine may be busy
ROOM = 16 * 2**20  # bytes that any reader may allocate, whatever the file
PER_BYTE = 200  # and for each byte of the file: a cell of text "1," becomes a str, a list item and a float
# Reading runs nothing, starts nothing and talks to nobody.
FORBIDDEN = (
    "pickle.find_class",
    "os.system",
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "socket.",
    "urllib.",
)


class Finding(Exception):
    """The reader broke its promise."""


@dataclass(frozen=True)
class Target:
    """One reader. `put` lays the bytes of an input out as a file or folder; `claim` is what an input says it needs in bytes."""

    name: str
    seeds: Callable[[], list[bytes]]
    mutate: Callable[[bytes, Random, Sequence[bytes]], bytes]
    read: Callable[[Path], Any]
    refusals: tuple[type[Exception], ...]
    use: Callable[[Any], None] = lambda value: None
    use_errors: tuple[type[Exception], ...] = ()
    file: str = "hostile"
    put: Callable[[bytes, Path], None] = lambda data, place: place.write_bytes(data) and None
    claim: Callable[[bytes], int] = lambda data: 0
    sources: tuple[str, ...] = field(default=())  # files of the package whose lines the coverage counts


_events: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _events is not None and event.startswith(FORBIDDEN):
        _events.append(f"{event} {arguments!r:.200}")


sys.addaudithook(_audit)


def judge(target: Target, data: bytes, folder: Path, *, slack: float = 1.0) -> str:
    """Reads one input; "read" or "refused", or raises Finding. `slack` multiplies the time, for slow builds."""
    global _events
    place = folder / target.file
    target.put(data, place)
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, began, _events = tracemalloc.get_traced_memory()[0], time.process_time(), []
    try:
        with warnings.catch_warnings(action="ignore"):
            outcome = _read_and_use(target, place, lambda: _within(target, data, before))
        if _events:
            raise Finding(f"reading led to {_events[0]}")
    finally:
        _events = None
    spent = time.process_time() - began
    if spent > SECONDS * slack:
        raise Finding(f"took {spent:.1f} s")
    return outcome


def _read_and_use(target: Target, place: Path, check_memory: Callable[[], None]) -> str:
    try:
        value = target.read(place)
    except target.refusals as error:
        check_memory()
        if place.stem not in str(error):
            raise Finding(f"the message does not name the file: {type(error).__name__}: {error}") from error
        _no_memory_error_behind(error)
        return "refused"
    except Exception as error:
        raise Finding(f"{type(error).__name__} leaks: {error}") from error
    check_memory()
    try:
        target.use(value)
    except target.use_errors as error:
        _no_memory_error_behind(error)
    except Exception as error:
        raise Finding(f"use of what was read: {type(error).__name__}: {error}") from error
    return "read"


def _within(target: Target, data: bytes, before: int) -> None:
    peak = tracemalloc.get_traced_memory()[1] - before
    allowed = ROOM + PER_BYTE * len(data) + target.claim(data)
    if peak > allowed:
        raise Finding(f"allocated {peak} bytes where a file of {len(data)} may make it {allowed}")


def _no_memory_error_behind(error: BaseException) -> None:
    """A refusal made of a MemoryError means that too much was asked for first."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, MemoryError):
            raise Finding(f"asked for memory it could not get: {seen}") from seen
        seen = seen.__context__


def signature(finding: Finding) -> str:
    """Where it comes from, so that one fault is kept once: the innermost lines of the package, and the type."""
    cause = finding.__cause__ or finding
    frames = [f for f in traceback.extract_tb(cause.__traceback__) if "lacunar" in f.filename]
    return " ".join([type(cause).__name__, *(f"{Path(f.filename).name}:{f.lineno}" for f in frames[-2:])])
