"""Cells of text in frames of pandas, by the readings of `lacunar.observed.cells`; errors of the command, and text that is safe to show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.cells import MISSING as MISSING
from lacunar.observed.cells import (
    OpenReading,
    Reading,
    TextColumn,
    dates_of,
    is_code,
    label_of,
    learn_readings,
    plain_cells,
    text_column,
    tidied,
    unit_remark,
)
from lacunar.observed.cells import counted as counted
from lacunar.observed.cells import cut as cut
from lacunar.observed.cells import listed as listed
from lacunar.observed.cells import visible as visible

if TYPE_CHECKING:
    import pandas as pd


class UserError(ValueError):
    """An error that the user can correct; `code` is the exit code of the command."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


_WORDS = "classification|regression|dmy|mdy|skip|cut|balanced-error|log-loss|lacunar"
_OPTION = re.compile(
    rf"(?<![\w'\"-])--(no-)?([a-z]+(?:-[a-z]+)*)(?: ('[^']*'|\"[^\"]*\"|\d+|[.,](?= )|[A-Z]+\b|(?:{_WORDS})\b))?"
)


def as_keywords(text: str) -> str:
    """A message whose options of the shell are written as keywords of Python; one that names both is returned
    unchanged.
    """
    return text if "in Python" in text else _OPTION.sub(_as_keyword, text)


def _as_keyword(found: re.Match[str]) -> str:
    negated, name, value = found[1], found[2].replace("-", "_"), found[3]
    if negated:
        return f"{name}=False"
    if value is None:
        return f"`{name}`"
    return f"{name}={value}" if value[0] in "'\"" or value.isdigit() or value.isupper() else f"{name}={value!r}"


@contextmanager
def with_keywords() -> Iterator[None]:
    """UserErrors from within as a caller in Python reads them."""
    try:
        yield
    except UserError as error:
        raise UserError(as_keywords(str(error)), error.code) from None


def pandas_module() -> Any:
    """Import pandas. UserError says how to install it."""
    try:
        import pandas
    except ImportError:
        raise UserError("reading tables needs pandas: pip install 'lacunar[cli]'") from None
    return pandas


def read_cells(
    frame: pd.DataFrame,
    source: str,
    dates: str | None = None,
    decimal: str | None = None,
    *,
    numbers: bool = True,
    known: Mapping[str, Reading | None] | None = None,
) -> tuple[pd.DataFrame, list[str], dict[str, Reading]]:
    """Columns of text as what they hold (numbers, datetime64, text without blanks around it, None where missing), notes on that, and how they are read.

    `source` names the frame in messages; `dates` ("dmy", "mdy") and `decimal` say what cells leave open, else UserError; without
    `numbers` text of digits stays text. Columns of `known` are read as it says, whatever they look like; None leaves them text.
    """
    pd = pandas_module()
    known = known or {}
    texts = {k: _tidied(frame.iloc[:, k], source) for k, dtype in enumerate(frame.dtypes) if _is_text(dtype)}
    if not texts:
        return frame, [], {}
    names = dict(enumerate(frame.columns))
    columns = {
        k: text_column(names[k], text.dropna(), str(frame.dtypes.iloc[k]) == "category") for k, text in texts.items()
    }
    try:
        learned = learn_readings(
            {k: column for k, column in columns.items() if names[k] not in known}, decimal, dates, numbers=numbers
        )
    except OpenReading as error:
        raise UserError(f"{source}: {error}. {_REMEDIES[error.wish]}.") from None
    readings = {k: known.get(names[k], learned.get(k)) for k in texts}
    notes: list[str] = []
    read = {}
    for k, reading in readings.items():
        notes += _how_written(columns[k], learned[k]) if k in learned else []
        notes += _unread(columns[k]) if reading is None and names[k] not in known else []
        read[k] = _numbers(texts[k]) if reading is None else _read(texts[k], columns[k], reading, notes)
    out = pd.DataFrame({k: read[k] if k in read else frame.iloc[:, k] for k in names}, index=frame.index)
    out.columns = frame.columns
    return out, notes, {names[k]: reading for k, reading in readings.items() if reading is not None}


_REMEDIES = {
    "decimal": "Say --decimal , or --thousands , (in Python, convert the column)",
    "dates": "Say --dates dmy or --dates mdy, or write dates as 2026-03-31",
}


def floats_of(column: pd.Series[Any]) -> NDArray[np.float64]:
    """A column of numbers (n,), NaN where one is missing."""
    return np.asarray(column.to_numpy(np.float64, na_value=np.nan))


def as_numbers(column: pd.Series[Any]) -> NDArray[np.float64]:
    """Numbers (n,) as they are, other cells as the places of their texts in sorted order; NaN where one is missing."""
    if column.dtype.kind in "iufb":
        return floats_of(column)
    texts = column.astype(str).where(column.notna())
    places = pandas_module().factorize(texts, sort=True)[0].astype(np.float64)
    return np.where(places < 0, np.nan, places)


def _is_text(dtype: Any) -> bool:
    known = ("bool", "boolean", "Int64", "Float64")
    return str(getattr(dtype, "kind", "O")) not in "iufbMm" and str(dtype) not in known


def _tidied(column: pd.Series[Any], source: str) -> pd.Series[Any]:
    """Plain cells, text without blanks around it, None where one is missing or says so. Raises UserError."""
    try:
        cells = plain_cells(column.astype(object), column.name)
    except TypeError as error:
        raise UserError(f"{source}: {error}") from None
    if str(column.dtype) == "category":
        cells = [None if cell is None else label_of(cell) for cell in cells]
    return pandas_module().Series([tidied(cell) for cell in cells], index=column.index, dtype=object)


def _numbers(cells: pd.Series[Any]) -> pd.Series[Any]:
    """Tidied cells as a column of numbers where they are no truth values and nothing else; as they are otherwise."""
    seen = cells[cells.notna()]
    numbers = all(isinstance(cell, Number) for cell in seen) and not all(isinstance(cell, bool) for cell in seen)
    return pandas_module().to_numeric(cells) if numbers else cells


def _read(text: pd.Series[Any], column: TextColumn, reading: Reading, notes: list[str]) -> pd.Series[Any]:
    """A column of numbers or dates; the notes say what is missing since it is neither."""
    pd = pandas_module()
    parsed, name = reading.parsed(column.texts), cut(column.name)
    if reading.kind != "date":
        read = pd.to_numeric(text.map(lambda cell: cell if isinstance(cell, Number) else _exact(parsed.get(cell))))
    else:
        read = pd.Series(dates_of(text, parsed), index=text.index)
    lost = (read.isna() & text.notna()).to_numpy()
    if lost.any():
        words = dict.fromkeys(text[lost].map(str))
        notes.append(
            f"Warning: {name}: {listed(map(repr, words))} in {counted(int(lost.sum()), 'cell')} is no {reading.kind} and was "
            f"taken as missing, first in row {lost.argmax()}. Correct the cells if they mean something."
        )
    return read


def _exact(number: str | None) -> str | float | None:
    """A number with decimals by Python, which rounds correctly, as not every pandas does."""
    return number if number is None or number.lstrip("+-").isdigit() else float(number)


_LIKE_NUMBERS = (
    re.compile(  # a currency or a mark, digits, and a mark, a unit, a month with its year, a week or a quarter
        r"[-+(]?\s*([^\W\d]{3}|\W)?\s*\d[\d.,' /:-]*(\W{0,3}|[kM]|\s[^\W\d]{1,9}\.?( \d{4})?|-?[WQ]\d{1,2})"
    )
)
_FEW, _LONGEST = 10, 40  # different cells that are categories, and characters of a cell that may be a number or a date
# Shapes of names, with a 9 for every run of digits: versions, addresses and phone numbers; ranges, scores and seasons; items.
_NAMES = re.compile(r"\+?9([-.: ])9(?:\1[9])+|9[-/:]9|#9")


def _unread(column: TextColumn) -> list[str]:
    """A warning of a column whose cells look like numbers or dates, but not all of them in one way of writing."""
    alike = [cell for cell in column.texts if len(cell) <= _LONGEST and _LIKE_NUMBERS.fullmatch(cell)]
    shapes = {re.sub(r"\d+", "9", cell) for cell in alike}
    if (
        column.is_category
        or len(alike) <= _FEW
        or 2 * len(alike) < len(column.texts)
        or any(map(is_code, column.texts))
        or (len(shapes) == 1 and _NAMES.fullmatch(shapes.pop()) is not None)
    ):
        return []
    return [
        f"Warning: {cut(column.name)}: cells such as {cut(alike[0])!r} and {cut(alike[-1])!r} look like numbers or dates, but no one way of writing "
        "reads all of them: they are taken for text. Write them alike."
    ]


def _how_written(column: TextColumn, reading: Reading) -> list[str]:
    """Sentences on marks and units of numbers, where cells have them."""
    name, cells = cut(column.name), [cell for cell in column.texts if reading.number_text(cell) is not None]
    if reading.kind == "time":
        return [f"{name}: times were read as hours."]
    if reading.kind == "date" or not cells:
        return []
    pairs = (
        ("decimal mark", reading.decimal if reading.decimal != "." else ""),
        ("thousands separated by", reading.thousands),
    )
    marks = [f"{what} {mark!r}" for what, mark in pairs if mark and any(mark in cell for cell in cells)]
    notes = [f"{name}: read as numbers with {' and '.join(marks)}."] if marks else []
    unit, remark = reading.prefix + reading.unit, unit_remark(column, reading)
    notes += [f"{name}: {unit!r} was left out of its numbers."] if unit else []
    return [*notes, f"Warning: {remark}"] if remark else notes
