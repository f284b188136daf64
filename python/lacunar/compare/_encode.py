"""Tables to arrays: what to predict, which kind of task it is, and numbers for categories with their holes kept."""

from __future__ import annotations

from difflib import get_close_matches

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar.compare._tables import Table, UserError, column_of_text

TARGET_NAMES = ("target", "class", "y", "label")
MAX_LEVELS = 20  # whole numbers with no more values than this are taken for classes


def choose_target(table: Table, wish: str | None) -> tuple[str, str]:
    """Name of the column to predict and why."""
    if wish is not None:
        if wish not in table.names:
            close = get_close_matches(wish, table.names, 3, 0.5)
            hint = (
                f"did you mean {' or '.join(map(repr, close))}?"
                if close
                else f"there are {', '.join(table.names[:12])}"
            )
            raise UserError(f"--target {wish!r}: no such column in {table.source}; {hint}", 2)
        return wish, "as asked"
    if table.target is not None:
        return table.target, "the file's own target"
    named = [name for name in table.names if name.lower() in TARGET_NAMES]
    return (named[0], "by its name") if len(named) == 1 else (table.names[-1], "the last column")


def guess_task(target: NDArray[np.generic]) -> tuple[str, str]:
    """ "classification" or "regression", and why."""
    if target.dtype.kind != "f":
        return "classification", "the target is text"
    values = np.unique(target)
    if len(values) <= min(MAX_LEVELS, max(2, len(target) // 5)) and np.all(values == np.round(values)):
        return "classification", f"the target has {len(values)} whole values"
    return "regression", f"the target has {len(values)} numeric values"


def as_text(column: NDArray[np.generic]) -> list[str]:
    """Text of a column; 1.0 reads "1", a hole ""."""
    if column.dtype.kind != "f":
        return [str(cell) for cell in column.tolist()]
    return ["" if np.isnan(v) else str(int(v)) if v == int(v) else repr(float(v)) for v in column.tolist()]


class TableEncoder(BaseEstimator):  # type: ignore[misc]
    """Numbers stay, categories become one column each; a missing category is a hole in all of its columns.

    Parameters
    ----------
    max_categories : int, default=100
        A text column with more different values than this, or with more than half as many values as rows, is an
        identifier: it is left out.

    Attributes
    ----------
    names_ : list of str
        Columns used.
    categories_ : list of ndarray or None
        Sorted categories of every text column, None for a numeric one.
    left_out_ : list of str
    output_names_ : list of str
        Names of the columns of the array.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.compare import Table, TableEncoder
    >>> table = Table(["colour"], [np.array(["red", "", "blue", "red", "blue"])], "here")
    >>> TableEncoder().fit(table).transform(table)[0].tolist()
    [[0.0, 1.0], [nan, nan], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """

    def __init__(self, max_categories: int = 100) -> None:
        self.max_categories = max_categories

    def fit(self, table: Table) -> TableEncoder:
        """Learn the categories of a table. O(n d)."""
        self.names_: list[str] = []
        self.categories_: list[NDArray[np.str_] | None] = []
        self.left_out_: list[str] = []
        for name, column in zip(table.names, table.columns, strict=True):
            categories = None
            if column.dtype.kind != "f":
                categories = np.array(sorted(set(column.tolist()) - {""}), dtype=object)
                if len(categories) > min(self.max_categories, max(table.n_rows // 2, 2)):
                    self.left_out_.append(name)
                    continue
            self.names_.append(name)
            self.categories_.append(categories)
        self.output_names_ = [
            name if category is None else f"{name}={category}"
            for name, categories in zip(self.names_, self.categories_, strict=True)
            for category in ([None] if categories is None else categories.tolist())
        ]
        if not self.output_names_:
            raise UserError(f"{table.source}: no column is left to predict from.")
        return self

    def transform(self, table: Table) -> tuple[NDArray[np.float64], list[str]]:
        """Array (n, outputs) with NaN for holes, and notes on what did not fit. O(n d)."""
        if not table.places.keys() & set(self.names_):
            raise UserError(
                f"{table.source}: none of the model's columns is there; it wants {', '.join(self.names_[:12])}."
            )
        blocks, notes = [], []
        absent = {name: None for name in self.names_ if name not in table.places}
        if absent:
            notes.append(f"not in the table, taken as missing: {', '.join(absent)}")
        for name, categories in zip(self.names_, self.categories_, strict=True):
            if name in absent:
                width = 1 if categories is None else len(categories)
                blocks.append(np.full((table.n_rows, width), np.nan))
            elif categories is None:
                blocks.append(_numbers(table.column(name), name, notes)[:, None])
            else:
                blocks.append(_one_hot(as_text(table.column(name)), categories, name, notes))
        return np.hstack(blocks), notes


def _numbers(column: NDArray[np.generic], name: str, notes: list[str]) -> NDArray[np.float64]:
    if column.dtype.kind == "f":
        return np.asarray(column, dtype=float)
    bad = []
    numbers = np.full(len(column), np.nan)
    for i, cell in enumerate(column.tolist()):
        value = column_of_text([cell], name, "the table")
        if value.dtype.kind == "f":
            numbers[i] = value[0]
        else:
            bad.append(cell)
    notes.append(f"{name}: {len(bad)} cells are no numbers (first {bad[0]!r}), taken as missing")
    return numbers


def _one_hot(text: list[str], categories: NDArray[np.str_], name: str, notes: list[str]) -> NDArray[np.float64]:
    place = {category: k for k, category in enumerate(categories.tolist())}
    codes = np.array([place.get(cell, -1) for cell in text], dtype=np.intp)
    block: NDArray[np.float64] = (codes[:, None] == np.arange(len(place))).astype(float)
    block[codes < 0] = np.nan
    unknown = sorted({cell for cell in text if cell and cell not in place})
    if unknown:
        notes.append(f"{name}: unseen categories taken as missing: {', '.join(unknown[:5])}")
    return block
