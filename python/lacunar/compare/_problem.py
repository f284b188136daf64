"""A table, what to predict in it, and the arrays that learners see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar.compare._encode import TableEncoder, as_text, choose_target, guess_task
from lacunar.compare._tables import Table, UserError, missing, read_table
from lacunar.datasets import load_breast_panels

MAX_LABEL = 1000  # characters of a class


@dataclass(frozen=True)
class Problem:
    """What `compare` and `fit` work on; `notes` are sentences about what was read and decided."""

    source: str
    target: str
    task: str  # "classification" or "regression"
    X: NDArray[np.float64]
    y: NDArray[Any]  # text labels or numbers
    encoder: TableEncoder
    notes: list[str]

    @property
    def holes(self) -> float:
        """Share of entries that are missing."""
        return float(np.isnan(self.X).mean())


def default_table() -> Table:
    """The embedded table, when no file is named."""
    X, y, names = load_breast_panels()
    columns: list[NDArray[Any]] = [*X.T, y]
    return Table([*names, "class"], columns, "breast cancer (embedded; three panels, half of them hidden)", "class")


def load_problem(path: str | None, target: str | None = None, task: str | None = None) -> Problem:
    """Read a table, choose target and task, drop rows without a target, encode.

    Raises
    ------
    UserError
        With a message for the person at the shell.
    """
    table = default_table() if path is None else read_table(path)
    if len(table.names) < 2:
        raise UserError(f"{table.source}: one column only; there is nothing to predict from.")
    name, why = choose_target(table, target)
    notes = [f"Target: {name} ({why})."]
    y = table.column(name)
    known = ~missing(y)
    if not known.any():
        raise UserError(f"{table.source}: the target {name!r} is missing in every row. Choose another with --target.")
    if not known.all():
        notes.append(f"{int((~known).sum())} rows without a target were left out.")
        table, y = table.rows(known), y[known]
    guessed, reason = guess_task(y)
    notes.append(f"Task: {task} (as asked)." if task else f"Task: {guessed} ({reason}; --task overrides).")
    task = task or guessed
    y = _target_values(y, task, name, table.source)
    encoder = TableEncoder().fit(table.without(name))
    X, _ = encoder.transform(table)
    notes += _about(X, encoder)
    return Problem(table.source, name, task, X, y, encoder, notes)


def _target_values(y: NDArray[Any], task: str, name: str, source: str) -> NDArray[Any]:
    if task == "classification":
        labels = as_text(y)
        if len(set(labels)) == 1:
            raise UserError(
                f"{source}: the target {name!r} has one class only, {labels[0]!r}; there is nothing to learn."
            )
        if (longest := max(map(len, labels))) > MAX_LABEL:
            raise UserError(
                f"{source}: the target {name!r} holds a text of {longest} characters, which is no class. Choose another."
            )
        return np.array(labels)
    if y.dtype.kind != "f":
        raise UserError(
            f"{source}: the target {name!r} is text; regression needs numbers. Use --task classification.", 2
        )
    return y


def _about(X: NDArray[np.float64], encoder: TableEncoder) -> list[str]:
    notes = []
    if encoder.left_out_:
        notes.append(f"Left out as identifiers (too many different texts): {', '.join(encoder.left_out_)}.")
    text = sum(c is not None for c in encoder.categories_)
    if text:
        notes.append(
            f"{text} text columns became one column per category; a missing category is a hole in all of them."
        )
    seen = ~np.isnan(X)
    empty = int((~seen.any(axis=0)).sum())
    filled = np.where(seen, X, -np.inf).max(axis=0), np.where(seen, X, np.inf).min(axis=0)
    constant = int((filled[0] == filled[1]).sum())
    for count, what in ((empty, "never observed"), (constant, "constant where observed")):
        if count:
            notes.append(f"{count} columns are {what}; they are kept.")
    rows = int((~seen.any(axis=1)).sum())
    if rows:
        notes.append(f"{rows} rows have nothing observed; they are kept.")
    return notes
