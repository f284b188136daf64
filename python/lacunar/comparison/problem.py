"""A table, what to predict in it, the arrays that learners see, and what an analyst would warn of."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from lacunar.comparison.cells import UserError, as_numbers, counted, cut, floats_of, listed, pandas_module, read_cells
from lacunar.comparison.leaks import leaks
from lacunar.comparison.reading import INDEX, Table, flat, how_of, of_arrays, read_table, refuse_twice, without_words
from lacunar.datasets import load_digit_quadrants
from lacunar.encode import TableEncoder
from lacunar.learner.folds import repeats, units_of
from lacunar.observed import Observed
from lacunar.observed.cells import Reading
from lacunar.observed.door import as_array, plain_target
from lacunar.observed.names import native_names
from lacunar.observed.numbers import as_frame as native_frame
from lacunar.observed.sentinels import number, sentinels_in
from lacunar.uncertainty.shift import evenly

if TYPE_CHECKING:
    import pandas as pd

TARGET_NAMES = ("target", "class", "y", "label", "outcome")
MAX_LEVELS = 20  # whole numbers with no more values than this are taken for classes
MAX_LABEL = 1000  # characters of a class
MAX_CATEGORIES = 100  # of a text column that all learners see; never more than one for every two rows
_ID = re.compile(r"(?i:(^|[_ .-])(id|ids|idx|index|key|no|nr|num|number|row|rownum|uuid|guid)$|^unnamed)|[a-z](Id|ID)$")
_FEW = 20  # rows below which different numbers say nothing
# Of text that is no identifier: cells looked at, a word, in how many cells or which share of them it stands, and the share with such a word.
_CELLS, _WORD, _SHARED_BY, _SHARES, _WORDY = 2000, re.compile(r"[^\W_]{2,}"), 3, (0.01, 0.9), 0.5


@dataclass(frozen=True)
class Problem:
    """What learners are compared on; `notes` are sentences about what was read and decided, of
    which some begin with "Warning:".
    """

    source: str
    target: str
    task: str  # "classification" or "regression"
    frame: pd.DataFrame  # the columns of the file that learners see
    X: NDArray[np.float64]  # the same as numbers, without text of many levels
    y: NDArray[Any]  # text labels or numbers
    encoder: TableEncoder
    notes: list[str]
    units: NDArray[np.intp]  # a number a row, the same for rows of a group, or else copies of a row, which share a fold
    labels: NDArray[Any] | None = (
        None  # what the target's column holds of each of `classes`: whole numbers, booleans, text
    )
    groups: str | None = None  # the column that names groups
    time: str | None = None  # the column by which rows are in order

    @property
    def missing_share(self) -> float:
        """Share of the file's entries that are missing."""
        return float(self.frame.isna().to_numpy().mean())

    @property
    def classes(self) -> list[str]:
        """Labels in sorted order; none for regression."""
        return sorted(set(self.y.tolist())) if self.task == "classification" else []


def load_problem(
    data: Any = None,
    target: Any = None,
    task: str | None = None,
    *,
    drop: Iterable[str] = (),
    use: Iterable[str] = (),
    groups: str | None = None,
    time: str | None = None,
    **how: Any,
) -> Problem:
    """Read a table, choose target and task, drop rows without a target, leave out identifiers,
    encode.

    Parameters
    ----------
    data : path, frame, array of shape (n, d) or None
        None is the embedded table, "-" standard input.
    target : str or array-like of shape (n,), optional
        Column to predict, or its values.
    task : {"classification", "regression"}, optional
    drop, use : sequences of str
        Columns to leave out, and columns to keep although they look like identifiers.
    groups : str, optional
        Column that names groups of rows, which share a fold; learners do not see it.
    time : str, optional
        Column of numbers or dates by which rows are put in order.
    **how
        Goes to `read_table`.

    Returns
    -------
    problem : Problem

    Raises
    ------
    UserError
        When the file, the target or the task does not fit.
    """
    if task not in (None, "classification", "regression"):
        raise UserError(
            f"task must be 'classification' or 'regression'; got {task!r}. Leave it out to have it guessed.", 2
        )
    native = native_frame(data)  # of a batch of Arrow and of narwhals
    data = data if native is None else native
    table, target = _with_target(_table_of(data, how), target)
    names, notes = [str(name) for name in table.frame.columns], list(table.notes)
    if len(names) < 2:
        hint = "Is the separator another? Say --sep." if table.kind == "text" else "Bring a table with more columns."
        raise UserError(f"{table.source}: one column only; there is nothing to predict from. {hint}")
    name, why = choose_target(table, target)
    notes.append(f"Target: {cut(name)} ({why}).")
    left_out = named_columns(drop, names, table.source, "--drop")
    if name in left_out:
        raise UserError(
            f"--drop {cut(name)!r} is the target ({why}). Name another with --target, or do not drop it.", 2
        )
    used = named_columns(use, names, table.source, "--use")
    in_order, groups, time = _in_order(table, name, groups, time, names, notes)
    frame, y = in_order.drop(columns=list({name, *left_out} - {groups})), values_of(in_order[name])
    known = ~np.isnan(y) if y.dtype.kind == "f" else y != ""
    places = np.asarray(frame.index)[known]
    frame, y = _labelled(frame, y, known, name, table.source, notes)
    units = None if groups is None else _units_of_groups(frame.pop(groups), groups, table.source)
    _refuse_infinity(y, name, table.source)
    guessed, reason = guess_task(y)
    notes.append(f"Task: {task} (as asked)." if task else f"Task: {guessed} ({reason}; --task overrides).")
    task = task or guessed
    y = _target_values(y, task, name, why, table)
    labels = labels_of(_as_came(data, name, table), places, y) if task == "classification" else None
    frame, texts = _without_identifiers(frame, set(used), notes)
    if not frame.shape[1]:
        raise UserError(f"{table.source}: no column is left to predict {cut(name)!r} from. --use COLUMN keeps one.")
    encoder, X = _encoded(frame, texts, table)
    notes += _about(frame, encoder)
    if units is None:
        units = units_of(np.column_stack([as_numbers(frame[name]) for name in frame.columns]))
        notes += [f"Warning: {text}" for text in _repeated(units)]
    notes += [f"Warning: {text}" for text in _alarms(frame, y, name, task)]
    return Problem(table.source, name, task, frame, X, y, encoder, notes, units, labels, groups, time)


def _in_order(
    table: Table, target: str, groups: str | None, time: str | None, names: list[str], notes: list[str]
) -> tuple[pd.DataFrame, str | None, str | None]:
    """The rows, by time where a column says so, and the columns of groups and of time by their names in the table."""
    if groups is not None and time is not None:
        raise UserError(
            f"--groups {cut(str(groups))!r} and --time {cut(str(time))!r} ask for two kinds of folds. Leave one out.", 2
        )
    frame = table.frame.reset_index(drop=True)  # the index says where a row was
    if groups is None and time is None:
        return frame, None, None
    option, wish = ("--groups", groups) if time is None else ("--time", time)
    if not np.isscalar(wish) and str(wish) not in names:
        raise UserError(
            f"{option} must be the name of a column; got {_article(type(wish))}. Put the values into the table first, "
            f"data.assign(key=values) of a pandas frame, and name that column, {option.removeprefix('--')}='key'.",
            2,
        )
    column = _known(str(wish), names, table.source, option)
    if column == target:
        raise UserError(f"{option} {cut(column)!r} is the target. Name another column.", 2)
    if time is None:
        notes.append(f"Rows of one {cut(column)} share a fold, and learners do not see it (--groups).")
        return frame, column, None
    notes.append(f"Rows are in the order of {cut(column)}, and learners are tested on later rows (--time).")
    order = np.argsort(_times(table, column), kind="stable")
    return frame.iloc[order], None, column


def _times(table: Table, column: str) -> NDArray[np.float64]:
    """Numbers, or days of dates (n,), none missing."""
    encoder = TableEncoder(max_categories=len(table.frame))
    encoded = np.asarray(encoder.fit_transform(table.frame[[column]]), dtype=np.float64)
    if encoder.kinds_[0] not in ("number", "date", "datetime"):
        raise UserError(
            f"--time {cut(column)!r} must hold numbers or dates; it holds {'nothing' if encoder.kinds_[0] == 'empty' else 'text'}. "
            "Write dates as 2026-03-31, or name another column.",
            2,
        )
    missing = np.flatnonzero(np.isnan(encoded[:, 0]))
    if missing.size:
        raise UserError(f"--time {cut(column)!r} is missing in row {missing[0]}. Leave such rows out.", 2)
    return encoded[:, 0]


def _units_of_groups(column: pd.Series[Any], name: str, source: str) -> NDArray[np.intp]:
    """Numbers of the groups (n,)."""
    missing = np.flatnonzero(column.isna())
    if missing.size:
        raise UserError(f"--groups {cut(name)!r} is missing in row {missing[0]} of {source}. Leave such rows out.", 2)
    return np.asarray(pandas_module().factorize(column)[0], dtype=np.intp)


def _table_of(data: Any, how: dict[str, Any]) -> Table:
    pd, options = pandas_module(), how_of(how)
    if data is None:
        X, y, names = load_digit_quadrants()
        frame = pd.DataFrame(X, columns=names).assign(**{"class": y})
        return Table(frame, "handwritten digits (embedded; four cameras, half of them off)", "class")
    if isinstance(data, str | Path):
        return read_table(str(data), **how)
    if not _is_frame(data):
        data = _array_of(data)
        if data.dtype.kind in "biuf":
            table = of_arrays(data, None, [], "the table")
            return replace(table, frame=without_words(table.frame, options.na_values, table.source))
        names = data.dtype.names or [f"x{j + 1}" for j in range(data.shape[1])]
        data = pd.DataFrame(data, columns=list(names))
    frame, notes, readings = as_frame(data, "the table", options.dates, options.decimal, na_values=options.na_values)
    return Table(frame, "the table", None, notes, readings=readings)


def _is_frame(data: Any) -> bool:
    return hasattr(type(data), "columns") and not isinstance(data, Observed)  # of the type: a lazy frame would be asked


def _array_of(data: Any) -> NDArray[Any]:
    """Rows and columns of numbers or text (n, d), or records (n,). Raises UserError for what is no table."""
    sparse, what = sp.issparse(data) or isinstance(data, Observed), _article(type(data))
    if not sparse:
        array = data if isinstance(data, np.ndarray) and data.dtype.names else as_array(data)
        if array.ndim == 2 or array.dtype.names:
            return array
        what = f"an array of shape {array.shape}" if isinstance(data, np.ndarray | list) else what
    remedy = "Make a frame of it, pandas.DataFrame(data), with a row for each case."
    if sparse:
        remedy = "Pass lacunar.Observed.from_scipy(data).to_dense(), where what is not stored is NaN, or data.toarray(), where it is 0."
        remedy = "Pass data.to_dense(), where what is missing is NaN." if isinstance(data, Observed) else remedy
    raise UserError(f"data must be a frame, an array of shape (n, d) or the path of a file; got {what}. {remedy}")


def _article(kind: type) -> str:
    name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}".removeprefix("builtins.")
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def as_frame(
    data: Any,
    source: str,
    dates: str | None = None,
    decimal: str | None = None,
    known: Mapping[str, Reading | None] | None = None,
    na_values: Any = (),
) -> tuple[pd.DataFrame, list[str], dict[str, Reading]]:
    """A frame of pandas from one of any library, its cells read, notes on them, and how they are written. Raises
    UserError.
    """
    pd = pandas_module()
    if not isinstance(data, pd.DataFrame):
        data = _to_pandas(data, source)
    if not len(data):
        raise UserError(f"{source}: it has no rows.")
    refuse_twice([str(name) for name in data.columns], source)  # 1 and "1" are one name
    frame = flat(data.set_axis([str(name) for name in data.columns], axis=1).reset_index(drop=True), source)
    frame = without_words(frame, na_values, source)
    return read_cells(frame, source, dates, decimal, known=known)


def _to_pandas(data: Any, source: str) -> pd.DataFrame:
    try:
        if native_frame(data) is not None:
            refuse_twice([str(name) for name in native_names(data)], source)
        frame = nw.from_native(data, eager_only=True)
        wide = [name for name, dtype in frame.schema.items() if dtype in (nw.Int128, nw.UInt128)]  # pandas has none
        return frame.with_columns(*[nw.col(name).cast(nw.Float64) for name in wide]).to_pandas()
    except TypeError:
        remedy = (
            "Collect it first: data.collect()."
            if hasattr(data, "collect")
            else "Make a frame of pandas or polars of it."
        )
        raise UserError(
            f"{source} must be a frame whose rows are there; got {_article(type(data))}. {remedy}"
        ) from None


def _with_target(table: Table, target: Any) -> tuple[Table, str | None]:
    """The table, with the values of a target where `target` are these, and the name of the target where it is known."""
    if target is None or isinstance(target, str):
        return table, target
    if isinstance(target, int | float | np.number):  # the name of a column, as all names are
        return table, str(target)
    name = str(getattr(target, "name", None) or "target")
    try:
        values = np.asarray(plain_target(target))
    except ValueError:  # rows of different lengths
        values = np.empty((0, 0))
    if values.shape != (len(table.frame),):
        raise UserError(
            f"target must be a column's name or {len(table.frame)} values; got shape {values.shape}. Give one value a row."
        )
    if values.dtype == object:
        values = pandas_module().Series(values.tolist())  # numbers with None are numbers
    while name in table.frame:
        name += "_"
    return replace(table, frame=table.frame.assign(**{name: values}), target=name), name


# -- the target ---------------------------------------------------------------------------------------------------------


def choose_target(table: Table, wish: str | None) -> tuple[str, str]:
    """Name of the column to predict and why."""
    names = [str(name) for name in table.frame.columns]
    if wish is not None:
        return _known(wish, names, table.source, "--target"), "as asked"
    if table.target is not None:
        return table.target, "the file's own target"
    named = [name for name in names if name.lower() in TARGET_NAMES]
    return (named[0], "by its name") if len(named) == 1 else (names[-1], "the last column")


def named_columns(wishes: Iterable[str], names: list[str], source: str, option: str) -> list[str]:
    """Columns asked for one by one or with commas between them. Raises UserError for one that is not there."""
    wishes = [wishes] if isinstance(wishes, str) else wishes
    parts = [part for wish in wishes for part in ([wish] if wish in names else wish.split(","))]
    return [_known(part.strip(), names, source, option) for part in parts if part.strip()]


def _known(wish: str, names: list[str], source: str, option: str) -> str:
    if wish not in names:
        close = get_close_matches(wish, names, 3, 0.5)
        hint = f"did you mean {' or '.join(map(repr, map(cut, close)))}?" if close else f"there are {listed(names, 12)}"
        raise UserError(f"{option} {cut(wish)!r}: no such column in {source}; {hint}", 2)
    return wish


def values_of(column: pd.Series[Any]) -> NDArray[Any]:
    """Values (n,): numbers (float64, NaN where missing), or text (objects, "" where missing)."""
    if column.dtype.kind in "iuf":
        return floats_of(column)
    return np.array(["" if lost else str(cell) for cell, lost in zip(column, column.isna(), strict=True)], object)


def _labelled(
    frame: pd.DataFrame, y: NDArray[Any], known: NDArray[np.bool_], name: str, source: str, notes: list[str]
) -> tuple[pd.DataFrame, NDArray[Any]]:
    if not known.any():
        said = [note for note in notes if note.startswith("Warning")]  # such as rows that end early
        raise UserError(
            " ".join(
                [f"{source}: the target {cut(name)!r} is missing in every row. Choose another with --target.", *said]
            )
        )
    if known.all():
        return frame.reset_index(drop=True), y
    notes.append(
        f"{counted(int((~known).sum()), 'row')} without a target {'was' if (~known).sum() == 1 else 'were'} left out."
    )
    return frame[known].reset_index(drop=True), y[known]


def guess_task(target: NDArray[Any]) -> tuple[str, str]:
    """ "classification" or "regression", and why."""
    if target.dtype.kind != "f":
        return "classification", "the target is text"
    values = np.unique(target)
    if len(values) <= min(MAX_LEVELS, max(2, len(target) // 5)) and np.all(values == np.round(values)):
        return "classification", f"the target has {counted(len(values), 'whole value')}"
    return "regression", f"the target has {counted(len(values), 'numeric value')}"


def _refuse_infinity(y: NDArray[Any], name: str, source: str) -> None:
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise UserError(
            f"{source}: the target {cut(name)!r} holds an infinite number. Leave it empty if it is not known."
        )


def as_text(column: NDArray[Any]) -> list[str]:
    """Text of a column; 1.0 reads "1", a missing entry ""."""
    if column.dtype.kind != "f":
        return [str(cell) for cell in column.tolist()]
    values, place = np.unique(column, return_inverse=True)
    texts = ["" if np.isnan(v) else str(int(v)) if v == int(v) else repr(float(v)) for v in values.tolist()]
    return [texts[k] for k in place.tolist()]


def _target_values(y: NDArray[Any], task: str, name: str, why: str, table: Table) -> NDArray[Any]:
    source = table.source
    if table.frame[name].dtype.kind == "M":
        raise UserError(
            f"{source}: the target {cut(name)!r} is a date. Predict a number of days instead, or choose another with --target.",
            2,
        )
    if task == "classification":
        return _classes(as_text(y), name, why, table)
    if y.dtype.kind != "f":
        raise UserError(
            f"{source}: the target {cut(name)!r} is text, such as {cut(y[0])!r}; regression needs numbers. Use --task classification.",
            2,
        )
    return y


def _classes(labels: list[str], name: str, why: str, table: Table) -> NDArray[Any]:
    n, different = len(labels), sorted(set(labels))
    start, k = f"{table.source}: the target {cut(name)!r}", len(set(labels))
    if k == 1:
        raise UserError(f"{start} has one class only, {cut(labels[0])!r}; there is nothing to learn.")
    if why == "the last column" and k > max(MAX_LEVELS, 2) and table.frame[name].dtype.kind not in "iuf":
        raise UserError(
            f"{start} would be the last column, but it holds {k} different texts, such as {cut(different[0])!r}. Say which column to "
            f"predict with --target; there are {listed(table.frame.columns, 12)}.", 2,
        )  # fmt: skip
    if k > max(n // 2, 10) or max(map(len, labels)) > MAX_LABEL:
        numbers = table.frame[name].dtype.kind in "iuf"
        remedy = (
            "Use --task regression."
            if numbers
            else "Choose another column with --target, or make few classes of the text."
        )
        raise UserError(
            f"{start} holds {k} different values in {counted(n, 'row')}, such as {cut(different[0])!r}: that is "
            f"{'a number' if numbers else 'free text'} and no class, of which several rows must tell. {remedy}", 2,
        )  # fmt: skip
    return np.array(labels)


def _as_came(data: Any, name: str, table: Table) -> Any:
    """The target's column: of a frame as the caller holds it, else as it was read."""
    if not _is_frame(data):
        return table.frame[name]
    frame = data if hasattr(data, "iloc") else nw.from_native(data, eager_only=True)
    names = [str(column) for column in frame.columns]
    if name not in names:  # the values came beside the frame
        return table.frame[name]
    place = names.index(name)
    return data.iloc[:, place] if frame is data else frame[:, place].to_native()


def labels_of(column: Any, places: NDArray[np.intp], y: NDArray[Any]) -> NDArray[Any]:
    """What the target's column holds of each of the sorted classes in `y`, in its type; text where types are mixed.

    `y` are the texts of the rows at `places` of the column (n,), those whose target is known.
    """
    classes, rows = np.unique(y, return_index=True)
    try:
        labels = np.array(plain_target(column)[places][rows].tolist())
    except TypeError:  # text beside others
        return classes
    if labels.dtype.kind not in "biuf":
        return np.char.strip(labels) if labels.dtype.kind == "U" else classes
    dtype = column.dtype if isinstance(getattr(column, "dtype", None), np.dtype) else None
    if dtype is not None and dtype.kind == "f" and len(places) < len(column) and np.all(labels == np.round(labels)):
        return labels.astype(np.int64)  # whole numbers, which are floating-point ones only where some are missing
    return labels.astype(dtype) if dtype is not None and dtype.kind in "biuf" else labels


def _alarms(frame: pd.DataFrame, y: NDArray[Any], target: str, task: str) -> list[str]:
    """Sentences on rare classes, on numbers that may mean missing, and on columns that give the target away."""
    numbers = {target: y} if task == "regression" else {}
    return [*_rare(y, task), *sentinel_sentences(frame, numbers), *leaks(frame, y, target, task)]


def _repeated(units: NDArray[np.intp]) -> list[str]:
    """A sentence on rows that are copies of others."""
    copies = repeats(units)
    if not copies:
        return []
    head = "1 row repeats another" if copies == 1 else f"{copies} rows repeat others"
    return [
        f"{head} in every column but the target. Copies of a row stay in one fold, for whoever has learned a row knows its copies; drop them "
        "if they are there by mistake."
    ]


def _rare(y: NDArray[Any], task: str) -> list[str]:
    if task != "classification":
        return []
    labels, counts = np.unique(y, return_counts=True)
    rare = labels[counts < 3].tolist()
    if not rare:
        return []
    return [
        f"fewer than 3 rows are of class {listed(map(repr, rare))}: too few to learn and to test. Leave the rows out, or join classes."
    ]


def sentinel_sentences(frame: pd.DataFrame, more: Mapping[str, NDArray[Any]]) -> list[str]:
    """Sentences on numbers that may mean missing in the columns of a frame and `more`, with the option that says so."""
    numeric = {str(name): values_of(frame[name]) for name in frame.columns if frame[name].dtype.kind in "iuf"}
    columns = numeric | dict(more)
    return [
        f"{cut(name)} holds {sentinel}. If that means missing, --na-values {shlex.quote(f'{name}={number(sentinel.value)}')} says so, in Python "
        f"na_values={{{name!r}: {number(sentinel.value)}}}."
        for name, sentinel in sentinels_in(columns.keys(), columns.values())
    ]


# -- columns ------------------------------------------------------------------------------------------------------------


def _without_identifiers(frame: pd.DataFrame, use: set[str], notes: list[str]) -> tuple[pd.DataFrame, list[str]]:
    """The columns that may say something of new rows, and those of them whose text is for learners that read it; every
    one left out has its line.
    """
    most = min(MAX_CATEGORIES, max(len(frame) // 2, 2))
    gone, texts = [], []
    for name in frame.columns:
        why = None if name in use else _identifies(str(name), frame[name], most)
        if why is not None:
            gone.append(name)
            notes.append(f"Warning: {cut(name)} was left out: {why}. --use {cut(name)!r} keeps it.")
        elif name not in use and _has_many_levels(frame[name], most):
            texts.append(name)
        elif name not in use and _counts_rows(frame[name]):
            notes.append(
                f"Warning: {cut(name)} numbers the rows, which says nothing of new ones. --drop {cut(name)!r} leaves it out."
            )
    if texts:
        notes.append(
            f"{counted(len(texts), 'column')} of text or of more than {most} levels {'is' if len(texts) == 1 else 'are'} shown to learners that read "
            f"text ('lacunar') and to no other: {listed(texts)}. --drop leaves one out, --use makes categories of it for all."
        )
    return frame.drop(columns=gone), texts


def _identifies(name: str, column: pd.Series[Any], most: int) -> str | None:
    if column.dtype.kind in "iuf":
        if name == INDEX and _counts_rows(column):
            return "it numbers the rows, as pandas writes its index"
        if _ID.search(name) and len(column) >= _FEW and _all_different(column):
            return "its numbers are all different and its name is that of identifiers"
        return None
    seen = column.dropna()
    if not _has_many_levels(column, most) or _has_words(seen):
        return None
    different = seen.nunique()
    if different <= len(seen) // 2 and not _ID.search(name):
        return None
    return f"it is text with {different} different values, such as {cut(seen.iloc[0])!r}, that have no words in common: identifiers"


def _has_many_levels(column: pd.Series[Any], most: int) -> bool:
    """Whether a column holds text of more than so many different values, and no dates."""
    if column.dtype.kind in "iufbMm":
        return False
    seen = column.dropna()
    return seen.nunique() > most and not _iso(seen)


def _has_words(seen: pd.Series[Any]) -> bool:
    """Whether most cells hold a word that other cells hold too, though not nearly all: identifiers are without."""
    cells = [set(_WORD.findall(str(cell).lower())) for cell in seen.iloc[evenly(len(seen), _CELLS)]]
    fewest, most = max(_SHARED_BY, _SHARES[0] * len(cells)), _SHARES[1] * len(cells)
    counts = Counter(word for cell in cells for word in cell)
    shared = {word for word, count in counts.items() if fewest <= count <= most}
    return sum(not shared.isdisjoint(cell) for cell in cells) >= _WORDY * len(cells)


def _encoded(frame: pd.DataFrame, texts: Iterable[str], table: Table) -> tuple[TableEncoder, NDArray[np.float64]]:
    """An encoder fitted to the frame, which makes no numbers of `texts`, and the frame in numbers (n, d)."""
    encoder = TableEncoder(max_categories=max(len(frame), 1))
    try:
        _leave_out_of_numbers(encoder.fit(frame), texts)
        X = np.asarray(encoder.transform(frame))  # also where `set_config` asks for frames
    except ValueError as error:
        raise UserError(f"{table.source}: {error}") from None
    # The cells were read before the encoder saw them: new rows are to be read in that way.
    encoder.readings_ = [table.readings.get(name) for name in frame.columns]
    return encoder, X


def _leave_out_of_numbers(encoder: TableEncoder, texts: Iterable[str]) -> None:
    """Columns that a fitted encoder makes no numbers of."""
    for j in np.flatnonzero(np.isin(encoder.feature_names_in_, [*texts])):
        encoder.kinds_[j], encoder.categories_[j] = "dropped", None


def _iso(seen: pd.Series[Any]) -> bool:
    return bool(seen.astype(str).str.fullmatch(r"\d{4}-\d{2}-\d{2}([T ].*)?").all())


def _all_different(column: pd.Series[Any]) -> bool:
    values = floats_of(column)
    return bool(np.all(values == np.round(values)) and len(np.unique(values)) == len(values))


def _counts_rows(column: pd.Series[Any]) -> bool:
    """Whether a column of numbers is 0, 1, 2 ... or 1, 2, 3 ..."""
    if column.dtype.kind not in "iuf" or len(column) < _FEW:
        return False
    values = floats_of(column)
    return bool(values[0] in (0, 1) and np.all(np.diff(values) == 1))


def _about(frame: pd.DataFrame, encoder: TableEncoder) -> list[str]:
    notes = []
    kinds = dict(zip(encoder.feature_names_in_, encoder.kinds_, strict=True))
    texts = [name for name, kind in kinds.items() if kind == "category"]
    if texts:
        one = len(texts) == 1
        notes.append(
            f"{counted(len(texts), 'column')} of text {'was' if one else 'were'} read as categories: {listed(texts)}."
        )
    dates = [name for name, kind in kinds.items() if kind in ("date", "datetime")]
    if dates:
        notes.append(f"Dates became days, months and weekdays: {listed(dates)}.")
    empty = [name for name, kind in kinds.items() if kind == "empty"]
    constant = [name for name in frame.columns if name not in empty and frame[name].nunique(dropna=True) == 1]
    for names, what in ((empty, "never observed"), (constant, "constant where observed")):
        if names:
            notes.append(
                f"{counted(len(names), 'column')} {'is' if len(names) == 1 else 'are'} {what}: {listed(names)}."
            )
    rows = int(frame.isna().all(axis=1).sum())
    if rows:
        notes.append(
            f"{counted(rows, 'row')} {'has' if rows == 1 else 'have'} nothing observed and {'is' if rows == 1 else 'are'} kept."
        )
    return notes
