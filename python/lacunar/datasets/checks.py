"""Checks of the arguments of generators and mechanisms, with one wording of errors."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_rate(name: str, value: Any, *, low: float = 0.0, high: float = 1.0, closed: str = "both") -> float:
    """A number in the interval; `closed` is "both", "left", "right" or "neither"."""
    brackets = ("[" if closed in {"both", "left"} else "(") + f"{low:g}, {high:g}"
    brackets += "]" if closed in {"both", "right"} else ")"
    number = check_number(name, value, f"a number in {brackets}")
    above = number >= low if closed in {"both", "left"} else number > low
    below = number <= high if closed in {"both", "right"} else number < high
    if not (above and below):
        raise ValueError(f"{name} must lie in {brackets}; got {value!r}.")
    return number


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """An integer between `least` and `most`, both allowed."""
    wish = f"an integer of at least {least}" + (f" and at most {most}" if most is not None else "")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {wish}; got {value!r}.")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {wish}; got {value!r}.")
    return int(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}.")
    return str(value)


def check_number(name: str, value: Any, wish: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be {wish}; got {value!r}.")
    return float(value)
