"""A table, what to predict in it, the arrays that learners see, and a model that finds its columns by name."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar.compare.tables import Table, UserError, pandas_module, read_table
from lacunar.datasets import load_digit_quadrants
from lacunar.encode import TableEncoder

if TYPE_CHECKING:
    import pandas as pd

TARGET_NAMES = ("target", "class", "y", "label")
MAX_LEVELS = 20  # whole numbers with no more values than this are taken for classes
MAX_LABEL = 1000  # characters of a class
MAX_CATEGORIES = 100  # of a text column; never more than one for every two rows


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
    def missing_share(self) -> float:
        """Share of entries that are missing."""
        return float(np.isnan(self.X).mean())


def default_table() -> Table:
    """The embedded table, when no file is named."""
    X, y, names = load_digit_quadrants()
    frame = pandas_module().DataFrame(X, columns=names).assign(**{"class": y})
    return Table(frame, "handwritten digits (embedded; four cameras, half of them off)", "class")


def choose_target(table: Table, wish: str | None) -> tuple[str, str]:
    """Name of the column to predict and why."""
    names = table.names
    if wish is not None:
        if wish not in names:
            close = get_close_matches(wish, names, 3, 0.5)
            hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"there are {', '.join(names[:12])}"
            raise UserError(f"--target {wish!r}: no such column in {table.source}; {hint}", 2)
        return wish, "as asked"
    if table.target is not None:
        return table.target, "the file's own target"
    named = [name for name in names if name.lower() in TARGET_NAMES]
    return (named[0], "by its name") if len(named) == 1 else (names[-1], "the last column")


def guess_task(target: NDArray[Any]) -> tuple[str, str]:
    """ "classification" or "regression", and why."""
    if target.dtype.kind != "f":
        return "classification", "the target is text"
    values = np.unique(target)
    if len(values) <= min(MAX_LEVELS, max(2, len(target) // 5)) and np.all(values == np.round(values)):
        return "classification", f"the target has {len(values)} whole values"
    return "regression", f"the target has {len(values)} numeric values"


def as_text(column: NDArray[Any]) -> list[str]:
    """Text of a column; 1.0 reads "1", a missing entry ""."""
    if column.dtype.kind != "f":
        return [str(cell) for cell in column.tolist()]
    return ["" if np.isnan(v) else str(int(v)) if v == int(v) else repr(float(v)) for v in column.tolist()]


def load_problem(path: str | None, target: str | None = None, task: str | None = None, **options: Any) -> Problem:
    """Read a table, choose target and task, drop rows without a target, encode.

    `options` go to `read_table`.

    Raises
    ------
    UserError
        When the file, the target or the task does not fit.
    """
    table = default_table() if path is None else read_table(path, **options)
    if len(table.names) < 2:
        raise UserError(f"{table.source}: one column only; there is nothing to predict from.")
    name, why = choose_target(table, target)
    notes = [f"Target: {name} ({why})."]
    y, frame = table.column(name), table.frame.drop(columns=[name])
    known = ~np.isnan(y) if y.dtype.kind == "f" else y != ""
    if not known.any():
        raise UserError(f"{table.source}: the target {name!r} is missing in every row. Choose another with --target.")
    if not known.all():
        notes.append(f"{int((~known).sum())} rows without a target were left out.")
        frame, y = frame[known], y[known]
    _refuse_infinity(y, name, table.source)
    guessed, reason = guess_task(y)
    notes.append(f"Task: {task} (as asked)." if task else f"Task: {guessed} ({reason}; --task overrides).")
    task = task or guessed
    y = _target_values(y, task, name, table.source)
    encoder = TableEncoder(max_categories=min(MAX_CATEGORIES, max(len(y) // 2, 2)), text="drop")
    try:
        X = encoder.fit(frame).transform(frame)
    except ValueError as error:
        raise UserError(f"{table.source}: {error}") from None
    notes += _about(X, encoder)
    return Problem(table.source, name, task, X, y, encoder, notes)


def _refuse_infinity(y: NDArray[Any], name: str, source: str) -> None:
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise UserError(f"{source}: the target {name!r} holds an infinite number. Leave it empty if it is not known.")


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
    names = dict(zip(encoder.feature_names_in_, encoder.kinds_, strict=True))
    dropped = [name for name, kind in names.items() if kind == "dropped"]
    if dropped:
        notes.append(f"Left out as identifiers (too many different texts): {', '.join(dropped)}.")
    text = sum(kind == "category" for kind in names.values())
    if text:
        notes.append(f"{text} text columns became columns of 0 and 1; a missing category is missing in all of them.")
    dates = [name for name, kind in names.items() if kind in ("date", "datetime")]
    if dates:
        notes.append(f"Dates became days, months and weekdays: {', '.join(dates)}.")
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


class TableModel(BaseEstimator):  # type: ignore[misc]
    """Predict a column of a table from its other columns, found by name.

    Parameters
    ----------
    estimator : estimator of lacunar, default=None
        Fitted in place of a copy: the model owns it.

    Attributes
    ----------
    encoder_ : TableEncoder
    target_ : str
        Name of the column predicted.
    task_ : str
        "classification" or "regression".

    Examples
    --------
    >>> from lacunar.compare import TableModel, load_problem
    >>> from lacunar.karma import KarmaClassifier
    >>> model = TableModel(KarmaClassifier()).fit(load_problem(None))
    >>> model.target_
    'class'
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, problem: Problem) -> TableModel:
        """Fit to a problem that was read from a table."""
        self.encoder_, self.target_, self.task_ = problem.encoder, problem.target, problem.task
        self.estimator.fit(problem.X, problem.y)
        return self

    def predict(self, table: Table) -> tuple[NDArray[Any], list[str]]:
        """Predictions (m,) and notes on columns that did not fit."""
        frame, notes = fitted_columns(table, self.encoder_)
        try:
            X = self.encoder_.transform(frame)
        except ValueError as error:
            raise UserError(f"{table.source}: {error}") from None
        return np.asarray(self.estimator.predict(X)), notes

    def _check_loaded(self) -> None:
        """Refuse a model file whose estimator was fitted to other columns than the encoder makes."""
        if "encoder_" not in vars(self):
            return
        if not isinstance(self.encoder_, TableEncoder) or not isinstance(self.target_, str):
            raise ValueError("the model file's encoder_ is no TableEncoder or its target_ no name")
        columns = len(self.encoder_.get_feature_names_out())
        if getattr(self.estimator, "n_features_in_", None) != columns:
            raise ValueError(f"the estimator must be of the {columns} columns of encoder_; it is not")

    def check(self) -> None:
        """Try one row with nothing observed: parts of a file that do not fit together show here. Raises ValueError."""
        try:
            nothing = pandas_module().DataFrame({self.encoder_.feature_names_in_[0]: [np.nan]})
            self.predict(Table(nothing, "the model"))
            assert isinstance(self.target_, str)
        except Exception as error:
            raise ValueError(f"the parts of the model do not fit together ({type(error).__name__}: {error})") from None


def fitted_columns(table: Table, encoder: TableEncoder) -> tuple[pd.DataFrame, list[str]]:
    """The columns that the encoder was fitted to, in its order, and notes on what is taken as missing."""
    pd = pandas_module()
    wanted = dict(zip(encoder.feature_names_in_, encoder.kinds_, strict=True))
    present = [name for name in wanted if name in table.frame]
    if not present:
        raise UserError(f"{table.source}: none of the model's columns is there; it wants {', '.join([*wanted][:12])}.")
    notes = []
    absent = [name for name, kind in wanted.items() if name not in table.frame and kind != "dropped"]
    if absent:
        notes.append(f"not in the table, taken as missing: {', '.join(absent)}")
    columns = {}
    for (name, kind), known in zip(wanted.items(), encoder.categories_, strict=True):
        if name not in table.frame or kind == "dropped":
            columns[name] = np.full(len(table.frame), np.nan)
        elif known is not None:
            columns[name] = np.array(as_text(table.column(name)), dtype=object)
            new = sorted(set(columns[name]) - {"", *known})
            if new:
                notes.append(f"{name}: unseen categories taken as missing: {', '.join(new[:5])}")
        else:
            columns[name] = _readable(table.frame[name], kind, notes)
    return pd.DataFrame(columns, columns=[*wanted]), notes


def _readable(column: pd.Series[Any], kind: str, notes: list[str]) -> Any:
    """A column of numbers or dates, where what is neither is missing."""
    if kind == "empty" or column.dtype.kind in "iufbM":
        return column.to_numpy()
    pd = pandas_module()
    if kind == "number":
        read = pd.to_numeric(column.astype(object).where(column.notna(), None), errors="coerce")
    else:
        read = pd.to_datetime(column.astype(object), errors="coerce", format="ISO8601")
    bad = column[read.isna() & column.notna()]
    if len(bad):
        word = "number" if kind == "number" else "date"
        what = f"1 cell is not a {word}" if len(bad) == 1 else f"{len(bad)} cells are not {word}s"
        notes.append(f"{column.name}: {what} (first {bad.iloc[0]!r}), taken as missing")
    return read.to_numpy()
