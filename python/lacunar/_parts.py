"""Rows in parts, which may lie on several machines: all that fits want of them are sums over the parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from lacunar.observed import Observed

Step = Callable[..., Any]


class Parts(Protocol):
    """Steps are functions of a module, called with a part and what was given; they change neither."""

    def map(self, step: Step, *given: Any) -> Parts:
        """The parts that step(part, *given) makes, which stay where they are."""

    def each(self, step: Step, *given: Any) -> list[Any]:
        """What step(part, *given) makes of every part, in order, brought here: little."""

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        """Sums over the parts of the arrays and numbers that step(part, *given) makes a tuple of."""


class Whole:
    """One part, here."""

    def __init__(self, part: Any) -> None:
        self.part = part

    def map(self, step: Step, *given: Any) -> Whole:
        return Whole(step(self.part, *given))

    def each(self, step: Step, *given: Any) -> list[Any]:
        return [step(self.part, *given)]

    def total(self, step: Step, *given: Any) -> tuple[Any, ...]:
        made: tuple[Any, ...] = step(self.part, *given)
        return made


def in_parts(rows: Observed | Parts) -> Parts:
    """Rows that are here as one part."""
    return Whole(rows) if isinstance(rows, Observed) else rows
