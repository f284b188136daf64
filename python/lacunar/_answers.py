"""`ColumnTable`: an answer of a few columns by name, which is a dict and prints as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

_MOST_ROWS, _WIDEST = 30, 32  # of what is printed


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
