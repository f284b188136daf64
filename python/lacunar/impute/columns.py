"""What a column holds, and what tells it of a user's frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw

from lacunar.observed.cells import label_of
from lacunar.observed.numbers import is_missing

KINDS = ("number", "whole", "boolean", "levels", "ordered", "date", "text", "empty")
_NUMBERS = ("number", "whole", "date")


@dataclass(frozen=True)
class Column:
    """What `fit` found one column to hold: its name, its kind, and the levels of a column of them, in their order.

    Kinds: "number"; "whole" numbers; "boolean"; "levels" without and with an order ("ordered"); "date", microseconds since
    1970; "text" of too many levels, which is left as it is; "empty", where nothing was observed.
    """

    name: str
    kind: str
    levels: tuple[Any, ...] = ()  # cells as Python has them

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, rather than places among levels."""
        return self.kind in _NUMBERS

    @property
    def is_used(self) -> bool:
        """Whether it holds anything that a model can read."""
        return self.kind not in ("text", "empty")

    def _check_loaded(self) -> None:
        plain = all(type(level) in (str, bool, int, float) for level in self.levels)
        labels = [label_of(level) for level in self.levels] if plain else []
        has_levels = self.kind in ("boolean", "levels", "ordered")
        sound = isinstance(self.name, str) and self.kind in KINDS and isinstance(self.levels, tuple) and plain
        if not sound or len(set(labels)) != len(labels) or (len(labels) > 0) != has_levels:
            raise ValueError(f"a column of the model file has kind {str(self.kind)[:20]!r} and {len(labels)} levels")


def plainly_named(frame: Any) -> Any:
    """A frame that narwhals reads, whatever its columns are called."""
    return frame.set_axis(range(frame.shape[1]), axis=1) if nw.dependencies.is_pandas_dataframe(frame) else frame


def dictionary_of(native: Any) -> list[Any]:
    """Levels of a column of Arrow's dictionaries."""
    levels = (level for chunk in native.chunks for level in chunk.dictionary.to_pylist())
    return list(dict.fromkeys(level for level in levels if level is not None))


def first_of(cells: list[Any]) -> Any:
    """The first cell that is not missing, or None."""
    return next((cell for cell in cells if not is_missing(cell)), None)
