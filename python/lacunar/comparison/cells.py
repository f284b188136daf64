"""Cells of text to numbers and dates: decimal commas, thousands, units and dates are found or refused, never taken for identifiers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "none", "?", "."})  # in any case
# Decimal mark, and what separates thousands.
_MARKS = [(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
_BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"})
_WORDS = 5  # different words that a column of numbers or dates may hold, and are missing then
_LEVELS = 10  # different numbers at least, for it
_MOSTLY = 0.8  # share of the cells that must be numbers or dates for it
_UNIT = re.compile(
    r"(?P<prefix>[$€£¥]?)\s*(?P<number>[-+]?\d[\d.,' ]*(?:[eE][-+]?\d+)?)\s*(?P<unit>%|[€$£¥]|(?<=\s)[A-Za-zµ°/]{1,8})?"
)
_DATES = {
    "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y"),
    "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    "ymd": ("%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d"),
}
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p")
_DATE = re.compile(r"\d{1,4}[./ -](\d{1,2}|[A-Za-z]{3,9})[./ ,-]+\d{1,4}.*|[A-Za-z]{3,9} \d{1,2},? \d{4}.*")
_SHOWN = 40  # characters of a cell or name in a message
_LONGEST = 400  # digits, beyond which pandas refuses a whole number that is infinite as a float


class UserError(ValueError):
    """An error that the user can correct; `code` is the exit code of the command."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


def pandas_module() -> Any:
    """The pandas package, or how to get it."""
    try:
        import pandas
    except ImportError:
        raise UserError("reading tables needs pandas: pip install 'lacunar[cli]'") from None
    return pandas


def visible(text: str) -> str:
    r"""Text that does nothing but show: what is not printable stands as its escape.

    Names of columns, labels and files are not to be trusted: a terminal executes control characters, marks of writing direction
    reverse the rest of a line, and line breaks make lines that look like ours. Text for HTML must be escaped as well.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str

    Examples
    --------
    >>> from lacunar.comparison import visible
    >>> print(visible("age\x1b[2J\u202e"))
    age\x1b[2J\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def cut(text: object, most: int = _SHOWN) -> str:
    """Text short enough for a message."""
    shown = str(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Names with commas, the first few of many."""
    cuts = [cut(name) for name in names]
    return ", ".join(cuts[:most]) + (f" and {len(cuts) - most} more" if len(cuts) > most else "")


def counted(n: int, what: str) -> str:
    """ "1 fit", "2 fits"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def read_cells(
    frame: pd.DataFrame, source: str, dates: str | None = None, decimal: str | None = None, *, numbers: bool = True
) -> tuple[pd.DataFrame, list[str]]:
    """Columns of text as what they hold (numbers, datetime64, text without blanks around it, None where missing), and notes on that.

    `source` names the frame in messages; `dates` ("dmy", "mdy") and `decimal` say what cells leave open, else UserError; without
    `numbers` text of digits stays text.
    """
    pd = pandas_module()
    notes: list[str] = []
    texts = {k: _tidy(frame.iloc[:, k]) for k, dtype in enumerate(frame.dtypes) if _is_text(dtype)}
    if not texts:
        return frame, notes
    columns = dict(enumerate(frame.columns))
    made = {k: texts.get(k, frame.iloc[:, k]) for k in columns}
    if numbers:
        open_ones = {k: text for k, text in texts.items() if str(frame.dtypes.iloc[k]) != "category"}
        made |= _numbers(open_ones, columns, source, decimal, notes)
    for k in texts:
        if made[k].dtype == object:
            made[k] = _dates(made[k], cut(columns[k]), source, dates, notes)
    out = pd.DataFrame(made, index=frame.index)
    out.columns = frame.columns
    return out, notes


def _is_text(dtype: Any) -> bool:
    known = ("bool", "boolean", "Int64", "Float64")
    return str(getattr(dtype, "kind", "O")) not in "iufbMmc" and str(dtype) not in known


def _tidy(column: pd.Series[Any]) -> pd.Series[Any]:
    """Text without blanks around it, None where it says that it is missing; what is no text stays."""
    pd = pandas_module()
    category = str(column.dtype) == "category"
    cells = [_tidy_cell(str(cell) if category and cell == cell else cell) for cell in column.astype(object)]
    made = pd.Series(cells, index=column.index, dtype=object)
    return made.where(made.notna(), None)


def _tidy_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if text.lower() in MISSING else text


# -- numbers ------------------------------------------------------------------------------------------------------------


def _shape(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers written with these marks."""
    end = rf"(?:{re.escape(decimal)}\d+)?(?:[eE][-+]?\d+)?"
    plain = rf"\d*{re.escape(decimal)}\d+(?:[eE][-+]?\d+)?|\d+{re.escape(decimal)}?(?:[eE][-+]?\d+)?"
    if not thousands:
        return re.compile(rf"[-+]?(?:{plain})", re.ASCII)
    return re.compile(rf"[-+]?(?:[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+{end}|{plain})", re.ASCII)


_SHAPES = {marks: _shape(*marks) for marks in _MARKS}


class _Column:
    """Cells of one column that look like numbers, and the marks that all of them allow."""

    def __init__(self, column: pd.Series[Any]) -> None:
        seen = [cell for cell in column.dropna().unique().tolist() if isinstance(cell, str)]
        self.found = {cell: m for cell in seen if (m := _UNIT.fullmatch(cell.translate(_BLANKS)))}
        self.words = [cell for cell in seen if cell not in self.found]
        texts = [m["number"].strip() for m in self.found.values()]
        self.marks = [marks for marks in _MARKS if all(_SHAPES[marks].fullmatch(text) for text in texts)]
        self.units = {(m["prefix"], m["unit"] or "") for m in self.found.values()}
        share = float(column.isin(list(self.found)).sum()) / max(int(column.notna().sum()), 1)
        few = len(self.words) <= (_WORDS if len(texts) > _LEVELS else 0)  # "0", "1", "2", "3+" are categories
        self.is_number = bool(texts) and few and share >= _MOSTLY and len(self.units) == 1
        self.decimals = {decimal for decimal, _ in self.marks}
        self.plain = all(re.fullmatch(r"[-+]?[0-9]+", text) for text in texts)


def _numbers(
    texts: dict[int, Any], names: dict[int, str], source: str, decimal: str | None, notes: list[str]
) -> dict[int, Any]:
    """Columns of text that hold numbers, as numbers; a column that leaves its decimal mark open follows those that do not."""
    found = {k: made for k, column in texts.items() if (made := _Column(column)).is_number and made.marks}
    clear = {decimal} if decimal else {next(iter(c.decimals)) for c in found.values() if len(c.decimals) == 1}
    out = {}
    for k, column in found.items():
        name = cut(names[k])
        marks = [m for m in column.marks if m[0] in clear] if len(clear) == 1 else column.marks
        decimals = {m[0] for m in marks}
        if not column.plain and len(decimals) > 1:
            example = next((cell for cell in column.found if "," in cell), None)
            if example is None:  # 1.234 is as programs write it
                marks = [m for m in marks if m[0] == "."]
            else:
                raise UserError(
                    f"{source}: column {name!r} holds {cut(example)!r}, where the comma may be a decimal mark or separate thousands. "
                    "Say --decimal , or --thousands , (in Python, convert the column)."
                )
        out[k] = _as_numbers(texts[k], column, (marks or column.marks)[0], name, notes)
    return out


def _as_numbers(
    column: pd.Series[Any], found: _Column, marks: tuple[str, str], name: str, notes: list[str]
) -> pd.Series[Any]:
    pd = pandas_module()
    decimal, thousands = marks
    plain = {cell: m["number"].strip() for cell, m in found.found.items()}
    read = {
        cell: (text.replace(thousands, "") if thousands else text).replace(decimal, ".") for cell, text in plain.items()
    }
    read = {cell: text if len(text) < _LONGEST else str(float(text)) for cell, text in read.items()}
    made = pd.to_numeric(column.map(lambda cell: read.get(cell, None if isinstance(cell, str) else cell)))
    pairs = (("decimal mark", decimal if decimal != "." else ""), ("thousands separated by", thousands))
    written = [f"{what} {mark!r}" for what, mark in pairs if mark and any(mark in text for text in plain.values())]
    if written:
        notes.append(f"{name}: read as numbers with {' and '.join(written)}.")
    prefix, unit = next(iter(found.units))
    if prefix or unit:
        notes.append(f"{name}: {(prefix + unit)!r} was left out of its numbers.")
    _say_words(name, "number", found.words, column, notes)
    return made


def _say_words(name: str, kind: str, words: list[str], column: pd.Series[Any], notes: list[str]) -> None:
    if words:
        cells = int(column.isin(words).sum())
        notes.append(
            f"Warning: {name}: {listed(map(repr, words))} in {counted(cells, 'cell')} is no {kind} and was taken as missing. Correct the "
            "cells if they say something."
        )


# -- dates --------------------------------------------------------------------------------------------------------------


def _dates(column: pd.Series[Any], name: str, source: str, wish: str | None, notes: list[str]) -> pd.Series[Any]:
    """A column of dates in a usual form as dates; ISO dates stay text, which the encoder reads."""
    seen = [cell for cell in column.dropna().unique().tolist() if isinstance(cell, str)]
    dated = [cell for cell in seen if _DATE.fullmatch(cell)]
    words = [cell for cell in seen if not _DATE.fullmatch(cell)]
    if not dated or len(words) > _WORDS or column.isin(dated).sum() < _MOSTLY * column.notna().sum():
        return column
    found = {order: read for order, forms in _DATES.items() if (read := _read_dates(dated, forms)) is not None}
    order = _order(found, wish, name, source)
    if order is None:
        return column
    _say_words(name, "date", words, column, notes)
    read = dict(zip(dated, found[order], strict=True))
    pd = pandas_module()
    return pd.to_datetime(column.map(lambda cell: read.get(cell, pd.NaT)))


def _read_dates(cells: list[str], forms: tuple[str, ...]) -> Any:
    pd = pandas_module()
    for form in forms:
        if not re.search(form[2], cells[0]):
            continue
        for time in _TIMES:
            read = pd.to_datetime(pd.Series(cells), format=form + time, errors="coerce")
            if read.notna().all():
                return read
    return None


def _order(found: dict[str, Any], wish: str | None, name: str, source: str) -> str | None:
    """Which of day, month and year comes first."""
    if wish in found:
        return wish
    if {"dmy", "mdy"} <= found.keys():
        differ = (found["dmy"] != found["mdy"]).to_numpy().nonzero()[0]
        if len(differ):
            one, two = (found[k][differ[0]].strftime("%Y-%m-%d") for k in ("dmy", "mdy"))
            raise UserError(
                f"{source}: a date of column {name!r} may be {one} or {two}. Say --dates dmy or --dates mdy, or write dates as 2026-03-31."
            )
    return next(iter(found), None)
