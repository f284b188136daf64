"""Cells of text to numbers, times and dates: how a column is written is learned once, and new rows are read in the same way.

Decimal commas, thousands, units and the order of day and month are found out or refused, never taken for identifiers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import islice
from numbers import Integral, Number
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.numbers import NESTED, is_missing
from lacunar.observed.rules import Items, Rule, Word, check_parts

MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "n.a.", "<na>", "nat", "null", "none", "?", "."})  # in any case
# Decimal mark, and what separates thousands.
_MARKS = [(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'")]
_BLANKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'", "\u2212": "-"})
_WORDS = 5  # different words that a column of numbers or dates may hold, and are missing then
_LEVELS = 10  # different numbers at least, for it
_MOSTLY = 0.8  # share of the cells that must be numbers or dates for it
_UNIT = re.compile(
    r"(?:(?P<sign>[-+])(?=[$€£¥]))?(?P<prefix>[$€£¥]?)\s*(?P<number>[-+]?(?:\d|[.,]\d)[\d.,' ]*(?:[eE][-+]?\d+)?)\s*(?P<unit>%|[€$£¥]|[A-Za-zµ°/]{1,8})?"
)
_NO_UNIT = ("", "")
_OWED = re.compile(r"(?P<prefix>[$€£¥]?)\((?P<number>[^()+-]*\d[^()+-]*)\)")  # negative, as bookkeepers write it
_FORMS = {
    "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y"),
    "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"),
    "ymd": ("%Y/%m/%d", "%Y.%m.%d", "%Y-%m-%d", "%Y-%m", "%m/%Y", "%Y-%b", "%b-%Y", "%b %Y", "%B %Y"),
}
_TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
_ORDERS = {order: [form + time for form in forms for time in _TIMES] for order, forms in _FORMS.items()}
_DATE = re.compile(
    r"\d{1,4}[./ -](\d{1,2}|[A-Za-z]{3,9})[./ ,-]+\d{1,4}.*|[A-Za-z]{3,9} \d{1,2},? \d{4}.*"
    r"|\d{4}-(\d{2}|[A-Za-z]{3})|\d{1,2}/\d{4}|[A-Za-z]{3,9}[ -]\d{4}"  # a month, which begins on its first day
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?")
# 12:30, 12:30:15 and 12:30 PM, and 48:15 of a duration.
_TIME = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:\.\d{1,6})?))?(?: ?([AaPp])\.?[Mm]\.?)?", re.ASCII)
# 00123, and A12 beside 17; two digits, as of a month, are a number.
_CODE = re.compile(r"0\d{2,}|[A-Za-z]+[-_/ ]?\d+", re.ASCII)
_TRUTH = {"true": "1", "false": "0"}  # as a column of truth values may come as text
_SHOWN = 40  # characters of a cell or name in a message
_PLAIN = frozenset({str, bool, int, float})
_DAY = np.timedelta64(1, "D")
_WHOLE = 2.0**64  # from here on a whole number has no integer type, and pandas 2 refuses its text

_Key = TypeVar("_Key", bound=Hashable)


# -- words of messages ------------------------------------------------------------------------------------------------------


def cut(text: object, most: int = _SHOWN) -> str:
    """Text short enough for a message."""
    shown = str(text)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def listed(names: Iterable[object], most: int = 10) -> str:
    """Names with commas, the first few of many."""
    cuts = [cut(name) for name in names]
    return ", ".join(cuts[:most]) + (f" and {len(cuts) - most} more" if len(cuts) > most else "")


def visible(text: str) -> str:
    r"""Text with every character that is not printable escaped.

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
    >>> from lacunar.observed.cells import visible
    >>> print(visible("age\x1b[2J\u202e"))
    age\x1b[2J\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def counted(n: int, what: str) -> str:
    """ "1 fit", "2 fits"."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


# -- one cell ---------------------------------------------------------------------------------------------------------------


def plain_cells(cells: Iterable[Any], name: Any) -> list[Any]:
    """Cells of one column as Python has them, so that equal values are equal whatever container they came in.

    Bytes are text in UTF-8; truth values, whole numbers, fractions and decimals of any library are those of Python; dates and
    times are dates, a period the date on which it begins; durations are numbers of days, times of day numbers of hours. None, NaN,
    NA and NaT are None. TypeError for a cell that holds several
    values, a complex number, or bytes that are no text.
    """
    return [
        cell if type(cell) in _PLAIN and cell == cell else _plain(cell, row, name) for row, cell in enumerate(cells)
    ]


def _plain(cell: Any, row: int, name: Any) -> Any:
    if cell is np.ma.masked:
        return None
    if isinstance(cell, list | tuple | dict | set | np.ndarray):
        raise TypeError(
            f"column {name!r} must hold numbers, text or dates; got {cut(repr(cell))} in row {row}. {NESTED}"
        )
    if isinstance(cell, bytes | bytearray):
        return _decoded(bytes(cell), row, name)
    if isinstance(cell, Decimal):
        return None if cell.is_nan() else float(cell)
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, np.timedelta64):
        cell = None if np.isnat(cell) else float(cell / _DAY)
    if is_missing(cell):
        return None
    if isinstance(cell, timedelta):
        return cell / timedelta(days=1)
    if isinstance(cell, time):
        return cell.hour + (60 * cell.minute + cell.second + cell.microsecond / 1e6) / 3600
    if type(cell).__name__ == "Period":  # of pandas
        return cell.start_time.to_pydatetime(warn=False)
    if isinstance(cell, np.bool_):
        return bool(cell)
    if isinstance(cell, complex | np.complexfloating):
        raise TypeError(
            f"column {name!r} must hold numbers, text or dates; got {cell!r} in row {row}. Complex data not supported: make columns "
            "of the real and the imaginary parts."
        )
    if isinstance(cell, Number):
        return int(cell) if isinstance(cell, Integral) else float(cell)  # type: ignore[arg-type]  # the numeric tower declares no conversion
    return cell


def _decoded(cell: bytes, row: int, name: Any) -> str:
    try:
        return cell.decode("utf-8")
    except UnicodeDecodeError:
        raise TypeError(
            f"column {name!r} must hold text, or bytes of text in UTF-8; got {cell[:_SHOWN]!r} in row {row}. Decode it first, as "
            "bytes.decode(encoding) does."
        ) from None


def tidied(cell: Any) -> Any:
    """Text without blanks around it, None where it says that it is missing; what is no text stays."""
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if text.lower() in MISSING else text


def label_of(cell: Any) -> str:
    """A cell as the name of a category: whole numbers have no point, what is missing is empty."""
    if is_missing(cell):
        return ""
    return str(int(cell) if isinstance(cell, float | np.floating) and cell.is_integer() else cell)


def value_in(label: str) -> str:
    """The number that a category's name stands for, as its name: "1" for "1.0" and for "True"; any other name itself."""
    if label in ("True", "False"):
        return _TRUTH[label.lower()]
    try:
        number = float(label)
    except ValueError:
        return label
    return label_of(number) if repr(number) == label else label


def is_code(text: str) -> bool:
    """Whether text names one of a series, as 00123 and A12 do: a column that holds such names has categories and no
    numbers.
    """
    return bool(_CODE.fullmatch(text))


# -- how a column is written ------------------------------------------------------------------------------------------------


def plain_date(value: date) -> date:
    """A date or a time without an offset: times with one are taken to UTC."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def _shape(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers written with these marks."""
    end = rf"(?:{re.escape(decimal)}\d+)?(?:[eE][-+]?\d+)?"
    plain = rf"\d*{re.escape(decimal)}\d+(?:[eE][-+]?\d+)?|\d+{re.escape(decimal)}?(?:[eE][-+]?\d+)?"
    if not thousands:
        return re.compile(rf"[-+]?(?:{plain})", re.ASCII)
    return re.compile(rf"[-+]?(?:[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+{end}|{plain})", re.ASCII)


_SHAPES = {marks: _shape(*marks) for marks in _MARKS}
_TEXTS = Word()
_READING_PARTS: dict[str, Rule] = {
    "kind": Word(("number", "time", "date")),
    "decimal": Word((".", ",")),
    "thousands": _TEXTS,
    "prefix": _TEXTS,
    "unit": _TEXTS,
    "order": Word(tuple(_FORMS)),
    "words": Items(_TEXTS),
}


@dataclass(frozen=True)
class Reading:
    """How the text of a column says numbers, times or dates.

    A number has a decimal mark, what separates thousands, and a sign of money before it or a unit behind it, which are left out; a
    time ("12:30", "1:05 PM") is a number of hours; a date has its day, month and year in an order. `words` are those of the column
    that say none, and are missing.
    """

    kind: Literal["number", "time", "date"] = "number"
    decimal: str = "."
    thousands: str = ""
    prefix: str = ""
    unit: str = ""
    order: str = "ymd"
    words: tuple[str, ...] = ()

    def number_text(self, cell: str) -> str | None:
        """The number of a cell as programs write it, None where there is none. A number may lack the unit, and has no
        other.
        """
        match = _number_match(cell)
        if match is None or _unit_of(match) not in ((self.prefix, self.unit), _NO_UNIT):
            return None
        text = _digits_of(match)
        if not _SHAPES[self.decimal, self.thousands].fullmatch(text):
            return None
        text = (text.replace(self.thousands, "") if self.thousands else text).replace(self.decimal, ".")
        return text if abs(float(text)) < _WHOLE else str(float(text))

    def parsed(self, cells: Iterable[str]) -> dict[str, Any]:
        """Parsed cells by their text: numbers and hours as programs write them, or dates without offset, in UTC.
        Unreadable cells are left out.

        Truth values are the numbers 1 and 0, as text as well.
        """
        if self.kind == "date":
            return dict(_dates(cells, self.order))
        if self.kind == "time":
            hours = ((cell, _hours_in(cell)) for cell in cells)
            return {cell: str(value) for cell, value in hours if value is not None}
        texts = ((cell, _TRUTH.get(cell.lower()) or self.number_text(cell)) for cell in cells)
        return {cell: text for cell, text in texts if text is not None}

    def written(self, value: Any, example: str) -> str:
        """A number, a time or a date as the column writes the one in `example`."""
        if self.kind == "date":
            return _date_like(value, example, self.order)
        if self.kind == "time":
            return _time_like(float(value), example)
        plain = _signed(example)
        match = _UNIT.fullmatch(plain)
        old = match["number"].strip().lstrip("+-") if match else plain
        amount = abs(Decimal(str(value)))
        places = max(len(old.partition(self.decimal)[2]), -int(amount.normalize().as_tuple().exponent), 0)
        marks = {ord(","): self.thousands, ord("."): self.decimal}
        number = f"{amount:{',' if self.thousands else ''}.{places}f}".translate(marks)
        return ("-" if value < 0 else "") + plain.lstrip("+-").replace(old, number, 1)

    def _check_loaded(self) -> None:
        """Refuse a record of a model file that is no reading."""
        check_parts(vars(self), _READING_PARTS, "a reading of text", {})
        if (self.decimal, self.thousands) not in _SHAPES:
            raise ValueError(
                f"a reading of text has decimal {self.decimal!r} with thousands {cut(self.thousands)!r}. Fit again"
            )


class OpenReading(ValueError):
    """Text of a column that can be read in two ways; `wish` names the option to set, "decimal" or "dates"."""

    def __init__(self, sentence: str, wish: str) -> None:
        super().__init__(sentence)
        self.wish = wish


class TextColumn(NamedTuple):
    """What a column with text holds: tidied cells of text by how often they come, and numbers beside them."""

    name: Any
    texts: Counter[str]
    n_numbers: int = 0  # cells that are numbers already
    n_different: int = 0  # different ones of them
    is_category: bool = False  # by its type: its text is no number

    @property
    def n_cells(self) -> int:
        return self.texts.total() + self.n_numbers


def text_column(name: Any, cells: Iterable[Any], is_category: bool = False) -> TextColumn:
    """Count the texts, dates included, and the numbers among tidied cells of a column. Other cells are missing."""
    cells = list(cells)
    numbers = [cell for cell in cells if isinstance(cell, Number)]
    texts = Counter(str(cell) for cell in cells if isinstance(cell, str | date) and cell)
    return TextColumn(name, texts, len(numbers), len(set(numbers)), is_category)


def parse_cells(cells: Sequence[Any] | NDArray[Any], reading: Reading) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Tidied cells of a column as numbers (float64) or dates (datetime64[us]), and which cells say something else.

    Those are missing.
    """
    parsed = reading.parsed({cell for cell in cells if isinstance(cell, str) and cell})
    read: NDArray[Any]
    if reading.kind != "date":
        number_of = {cell: float(text) for cell, text in parsed.items()}
        read = np.array(
            [_number(cell) if isinstance(cell, Number) else number_of.get(cell, np.nan) for cell in cells],
            dtype=np.float64,
        )
        lost = np.isnan(read)
    else:
        read = dates_of(cells, parsed)
        lost = np.isnat(read)
    return read, lost & np.array([cell is not None and cell != "" for cell in cells], dtype=bool)


def dates_of(cells: Iterable[Any], parsed: Mapping[str, Any]) -> NDArray[np.datetime64]:
    """A column of dates (n,), NaT where a cell neither is nor says one."""
    dates = [plain_date(cell) if isinstance(cell, date) else parsed.get(cell, "NaT") for cell in cells]
    return np.array(dates, dtype="datetime64[us]")


def float_cells(cells: Iterable[Any]) -> NDArray[np.float64]:
    """A column of numbers (n,), NaN where a cell is None, infinite where it is a whole number beyond what a float
    holds.
    """
    return np.array([np.nan if cell is None else _number(cell) for cell in cells], dtype=np.float64)


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf


def learn_readings(
    columns: Mapping[_Key, TextColumn], decimal: str | None = None, dates: str | None = None, *, numbers: bool = True
) -> dict[_Key, Reading]:
    """Learn how each column writes numbers, times or dates; where its decimal mark is ambiguous, that of the other columns is
    used.

    `decimal` and `dates` ("dmy", "mdy") say what cells leave open, else OpenReading; without `numbers` text of digits stays text.
    """
    readings = _number_readings(columns, decimal) if numbers else {}
    for key, column in columns.items():
        reading = None if key in readings else _time_reading(column) or _date_reading(column, dates)
        if reading is not None:
            readings[key] = reading
    return readings


def unit_remark(column: TextColumn, reading: Reading) -> str:
    """A sentence where some numbers of a column have a unit and others have none; else ""."""
    unit = reading.prefix + reading.unit
    if not unit:
        return ""
    bare = [cell for cell in column.texts if (match := _number_match(cell)) and _unit_of(match) == _NO_UNIT]
    n_bare = column.n_numbers + sum(column.texts[cell] for cell in bare)
    return (
        f"column {cut(column.name)!r} has numbers with {unit!r}, and {counted(n_bare, 'number')} without, read as of the "
        "same unit. Write the unit everywhere, or nowhere."
        if n_bare
        else ""
    )


# -- numbers ----------------------------------------------------------------------------------------------------------------


def _signed(cell: str) -> str:
    """A cell with plain blanks and signs: "-20" for "(20)"."""
    plain = cell.translate(_BLANKS)
    owed = _OWED.fullmatch(plain)
    return f"-{owed['prefix']}{owed['number'].strip()}" if owed else plain


def _number_match(cell: str) -> re.Match[str] | None:
    """The parts of a cell that looks like a number."""
    return _UNIT.fullmatch(_signed(cell))


def _unlike(shape: re.Pattern[str], digits: Mapping[str, str]) -> list[str]:
    """Cells whose number has another shape; one more than a column may have is the most that is looked for."""
    return list(islice((cell for cell, text in digits.items() if not shape.fullmatch(text)), _WORDS + 1))


def _unit_of(match: re.Match[str]) -> tuple[str, str]:
    """The sign of money before a number, and the unit behind it."""
    return match["prefix"], match["unit"] or ""


def _digits_of(match: re.Match[str]) -> str:
    return (match["sign"] or "") + match["number"].strip()


@dataclass
class _Numbers:
    """Cells of one column that look like numbers, and the marks that all of them allow."""

    column: TextColumn
    cells: dict[str, re.Match[str]] = field(init=False)
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        matches = {cell: _number_match(cell) for cell in self.column.texts}
        digits = {cell: _digits_of(match) for cell, match in matches.items() if match}
        misfits = {marks: _unlike(_SHAPES[marks], digits) for marks in _MARKS}
        fewest = min(misfits.values(), key=len)  # "1,5" among many with a point is a word
        self.marks = [marks for marks in _MARKS if misfits[marks] == fewest] if len(fewest) <= _WORDS else []
        odd = set(fewest) if self.marks else set()
        self.cells = {cell: match for cell, match in matches.items() if match and cell not in odd}
        self.words = [cell for cell in matches if cell not in self.cells]
        texts = [digits[cell] for cell in self.cells]
        self.decimals = {decimal for decimal, _ in self.marks}
        self.plain = all(re.fullmatch(r"[-+]?[0-9]+", text) for text in texts)

    @property
    def are_numbers(self) -> bool:
        """Whether the column says numbers: all of it, or most of many different ones."""
        if any(is_code(cell) for cell in self.column.texts):
            return False
        n_cells = self.column.n_numbers + sum(self.column.texts[cell] for cell in self.cells)
        many = len(self.cells) + self.column.n_different > _LEVELS  # "0", "1", "2", "3+" are categories
        mostly = 0 < n_cells >= _MOSTLY * self.column.n_cells and len(self.words) <= (_WORDS if many else 0)
        return bool(self.column.texts) and mostly and self._have_one_unit(n_cells) and bool(self.marks)

    def _have_one_unit(self, n_cells: int) -> bool:
        """Whether no two units are mixed, and numbers without one are the fewer, if any has one."""
        cells_of: Counter[tuple[str, str]] = Counter()
        for cell, match in self.cells.items():
            cells_of[_unit_of(match)] += self.column.texts[cell]
        with_unit = n_cells - cells_of.pop(_NO_UNIT, 0) - self.column.n_numbers
        return not cells_of or (len(cells_of) == 1 and 2 * with_unit >= n_cells)

    def reading(self, marks: tuple[str, str]) -> Reading:
        units = {_unit_of(match) for match in self.cells.values()} - {_NO_UNIT}
        return Reading("number", *marks, *next(iter(units), _NO_UNIT), words=tuple(self.words))


def _number_readings(columns: Mapping[_Key, TextColumn], decimal: str | None) -> dict[_Key, Reading]:
    candidates = {key: _Numbers(column) for key, column in columns.items() if not column.is_category}
    candidates = {key: numbers for key, numbers in candidates.items() if numbers.are_numbers}
    clear = {decimal} if decimal else {next(iter(c.decimals)) for c in candidates.values() if len(c.decimals) == 1}
    return {key: numbers.reading(_marks(numbers, clear)) for key, numbers in candidates.items()}


def _marks(numbers: _Numbers, clear: set[str]) -> tuple[str, str]:
    """The marks of a column, where columns that leave nothing open have the decimal marks `clear`."""
    marks = [m for m in numbers.marks if m[0] in clear] if len(clear) == 1 else numbers.marks
    if not numbers.plain and len({decimal for decimal, _ in marks}) > 1:
        example = next((cell for cell in numbers.cells if "," in cell), None)
        if example is not None:
            raise OpenReading(
                f"column {cut(numbers.column.name)!r} holds {cut(example)!r}, where the comma may be a decimal mark or separate thousands",
                "decimal",
            )
        marks = [m for m in marks if m[0] == "."]  # 1.234 is as programs write it
    return (marks or numbers.marks)[0]


# -- times of day, and durations with a colon --------------------------------------------------------------------------------


def _time_reading(column: TextColumn) -> Reading | None:
    """A column of times, all with seconds or all without; None where it holds something else, or its type is that of
    categories.
    """
    words = [cell for cell in column.texts if _hours_in(cell) is None]
    n_times = column.n_cells - column.n_numbers - sum(column.texts[cell] for cell in words)
    if column.is_category or not 0 < n_times >= _MOSTLY * column.n_cells or len(words) > _WORDS:
        return None
    if len({cell.count(":") for cell in column.texts.keys() - words}) > 1:  # 12:30 may be minutes beside 1:12:30
        return None
    return Reading("time", words=tuple(words))


def _hours_in(cell: str) -> float | None:
    """The hours that a cell says, None where it is no time."""
    match = _TIME.fullmatch(cell)
    if match is None:
        return None
    hours, minutes, seconds, half = match.groups()
    hour = int(hours)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half in "Pp")
    return hour + (60 * int(minutes) + float(seconds or 0)) / 3600


def _time_like(hours: float, example: str) -> str:
    """Hours as text in the form of another time."""
    match = _TIME.fullmatch(example)
    assert match is not None
    step = 1 if match[3] else 60
    seconds = step * round(max(hours, 0.0) * 3600 / step)
    seconds = min(seconds, 86_400 - step) if hours < 24 else seconds
    hour, half = seconds // 3600, match[4]
    behind = example[match.end(3) if match[3] else match.end(2) :]
    if half is not None:
        other = "AaPp"[2 * (hour % 24 >= 12) + half.islower()]
        hour, behind = hour % 12 or 12, behind.replace(half, other, 1)
    parts = [str(hour).zfill(len(match[1]))] + [f"{part:02d}" for part in (seconds % 3600 // 60, seconds % 60)]
    return ":".join(parts[: 3 if match[3] else 2]) + behind


# -- dates ------------------------------------------------------------------------------------------------------------------


def _date_reading(column: TextColumn, wish: str | None) -> Reading | None:
    """The order of a column of dates; None where it holds none."""
    cells = [cell for cell in column.texts if _DATE.fullmatch(cell)]
    if not cells or sum(column.texts[cell] for cell in cells) < _MOSTLY * column.n_cells:
        return None
    dates = {order: _dates_and_others(cells, order) for order in _FORMS}
    fewest = min(len(others) for _, others in dates.values())
    readable = {order: values for order, (values, others) in dates.items() if len(others) == fewest}
    order = wish if wish in readable else next(iter(readable))
    words = [cell for cell in column.texts if cell not in readable[order]]
    n_dates = sum(column.texts[cell] for cell in readable[order])
    if n_dates < _MOSTLY * column.n_cells or len(words) > _WORDS or (fewest and len(readable[order]) <= _LEVELS):
        return None
    if wish not in readable and {"dmy", "mdy"} <= readable.keys():
        _refuse_open_order(readable, column.name)
    return Reading("date", order=order, words=tuple(words))


def _refuse_open_order(readable: Mapping[str, Mapping[str, datetime]], name: Any) -> None:
    mdy = readable["mdy"]
    pairs = ((day, mdy.get(cell, day)) for cell, day in readable["dmy"].items())
    differ = next((pair for pair in pairs if pair[0] != pair[1]), None)
    if differ is not None:
        one, two = (day.strftime("%Y-%m-%d") for day in differ)
        raise OpenReading(f"a date of column {cut(name)!r} may be {one} or {two}", "dates")


def _dates_and_others(cells: list[str], order: str) -> tuple[dict[str, datetime], list[str]]:
    """The dates of cells in this order, and the cells that say none: the search ends where those are too many."""
    values: dict[str, datetime] = {}
    others: list[str] = []
    forms = list(_ORDERS[order])
    for cell in cells:
        value = _date_of(cell, order, forms)
        if value is not None:
            values[cell] = value
        else:
            others.append(cell)
            if len(others) > _WORDS:
                break
    return values, others


def _dates(cells: Iterable[str], order: str) -> Iterable[tuple[str, datetime]]:
    """Cells that say a date, and which."""
    forms = list(_ORDERS[order])
    dates = ((cell, _date_of(cell, order, forms)) for cell in cells)
    return ((cell, value) for cell, value in dates if value is not None)


def _date_of(cell: str, order: str, forms: list[str]) -> datetime | None:
    return (_iso_date(cell) if order == "ymd" else None) or _date_in(cell, forms)


def _date_in(cell: str, forms: list[str]) -> datetime | None:
    """The date of a cell by the first format that reads it; that format moves to the front, as it likely reads the next
    cell too.
    """
    for k, form in enumerate(forms):
        try:
            value = datetime.strptime(cell, form)
        except ValueError:
            continue
        forms.insert(0, forms.pop(k))
        return value
    return None


def _date_like(value: datetime, example: str, order: str) -> str:
    """A date as text in the form of another."""
    forms = list(_ORDERS[order])
    if _date_in(example, forms) is not None:
        return value.strftime(forms[0])
    seconds = "microseconds" if "." in example else "seconds" if example.count(":") > 1 else "minutes"
    text = value.replace(tzinfo=None).isoformat(example[10:11] or "T", seconds)
    zone = "Z" if example.endswith("Z") else "+00:00" if re.search(r"[+-]\d{2}:?\d{2}$", example[10:]) else ""
    return text + zone


def _iso_date(cell: str) -> datetime | None:
    if not _ISO.fullmatch(cell):
        return None
    try:
        value = plain_date(datetime.fromisoformat(cell))
    except (ValueError, OverflowError):  # a month 13, or the year 0 in UTC
        return None
    assert isinstance(value, datetime)
    return value
