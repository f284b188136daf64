"""Answers with names: `ColumnTable`, a dict of columns, and `NamedArray`, an array of named columns. Both print as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np

from lacunar._typing import Floats

_MOST_ROWS, _WIDEST = 30, 32  # of what is printed
_FEW_ROWS, _PLACES = 10, ("first", "second", "third")  # of an array
_FIRST = len(_PLACES)


class ColumnTable(dict[str, Any]):
    """Columns of one length by name: a dict, so that `table["weight"]` is a column, which prints as a table."""

    def to_frame(self) -> Any:
        """The columns as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame
        """
        import pandas as pd

        return pd.DataFrame(dict(self))

    def __repr__(self) -> str:
        n = max((len(column) for column in self.values()), default=0)
        text = "\n".join(
            aligned([list(self), *zip(*(list(column[:_MOST_ROWS]) for column in self.values()), strict=True)])
        )
        return text if n <= _MOST_ROWS else f"{text}\n... {n - _MOST_ROWS} more rows"


def aligned(rows: Iterable[Iterable[Any]]) -> list[str]:
    """Lines of cells (any, as rows of one length), numbers to the right and words to the left."""
    cells = [[(_shown(cell), _is_number(cell)) for cell in row] for row in rows]
    widths = [max(len(text) for text, _ in column) for column in zip(*cells, strict=True)]
    to_right = [any(number for _, number in column) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for (text, _), width, right in zip(row, widths, to_right, strict=True)
        ).rstrip()
        for row in cells
    ]


def _is_number(cell: Any) -> bool:
    return isinstance(cell, (int, float, np.number))


def _shown(cell: Any) -> str:
    """A cell as text: numbers with four digits that count."""
    if isinstance(cell, (float, np.floating)):
        return f"{cell:.4g}"
    text = str(cell)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


class NamedArray(np.ndarray[Any, np.dtype[np.float64]]):
    """Numbers (m, d) whose columns have names: an array that prints as a table. What is computed from it is an array without names."""

    feature_names: list[str] | None = None

    def __new__(cls, values: Floats, names: Iterable[str]) -> Self:
        """The array itself, seen with names."""
        named = np.asarray(values).view(cls)
        named.feature_names = list(names)
        return named

    def __array_finalize__(self, source: Any) -> None:
        self.feature_names = None

    def to_frame(self) -> Any:
        """The numbers as a pandas frame.

        Returns
        -------
        frame : pandas.DataFrame of shape (m, d)
        """
        import pandas as pd

        return pd.DataFrame(np.asarray(self), columns=self.feature_names)

    def __repr__(self) -> str:
        if self.feature_names is None:
            return repr(np.asarray(self))
        m, d = self.shape
        rows = [
            [number, *(cell for j in order for cell in self._named(number, j))]
            for number, order in enumerate(np.argsort(-np.asarray(self[:_FEW_ROWS]), axis=1, kind="stable")[:, :_FIRST])
        ]
        header = ["row", *(cell for place in _PLACES[:d] for cell in (place, ""))]
        lines = [f"{m} row{'s' * (m != 1)} by {d} columns, the largest first", *aligned([header, *rows])]
        return "\n".join([*lines, *([f"... {m - _FEW_ROWS} more rows"] if m > _FEW_ROWS else [])])

    def _named(self, row: int, column: int) -> tuple[str, Any]:
        """A column and its number; nothing where that is 0."""
        assert self.feature_names is not None
        return (self.feature_names[column], self[row, column]) if self[row, column] else ("", "")
