"""Files to frames: pandas reads text, JSON and Excel, pyarrow Parquet and Arrow, SciPy ARFF, scikit-learn svmlight. What is in a file is told by its content."""

from __future__ import annotations

import io
import json
import lzma
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar.comparison.cells import MISSING, UserError, counted, cut, listed, pandas_module, read_cells
from lacunar.comparison.lines import (
    Row,
    filtered,
    fitting,
    has_row_names,
    likeliest_separator,
    misfits,
    remedy,
    rows_of,
    short_rows,
    with_corner,
)
from lacunar.comparison.packed import ENDINGS, plain_file, refuse_beyond
from lacunar.observed import Observed
from lacunar.observed.cells import Reading, is_code
from lacunar.observed.container import read_npz as arrays_of

if TYPE_CHECKING:
    import pandas as pd

_NA_VALUES = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN"})
MAX_DENSE = 10**8  # values of a sparse file held as a dense table
MAX_EMPTY = 10**4  # cells for each stored value, so that one column number does not ask for all the memory
INDEX = "Unnamed: 0"  # what pandas calls a first column without a name, which is the index that it wrote
_CODES = re.compile(r"(?<![\w.])0\d{2,}(?![\w.])", re.ASCII)  # cells of digits that begin with 0 are among these
_HEAD = 2**18  # characters of text that tell how it is written
_YEARS = range(1800, 2200)  # as a header of numbers may hold
_KNOWN = "Known are CSV and other text, JSON lines, Excel, Parquet, Arrow, ARFF, NPZ and svmlight."
_SAID_SEP = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)  # a first line that Excel understands
_SPELLED = {r"\t": "\t"}  # as shells pass it on


@dataclass(frozen=True)
class How:
    """Options for reading text; what is None is found out from the text."""

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: Any = ()  # words or numbers, "COLUMN=WORD" for one column, or a dict of columns
    header: bool | None = None
    dates: str | None = None  # "dmy" or "mdy"
    readings: Mapping[str, Reading | None] = field(default_factory=dict)  # of columns that a model has learned
    sheet: str | int | None = None  # name or number, from 1
    comment: str | None = None  # how lines begin that are left out
    skip_rows: int = 0
    ragged: str | None = None  # "skip" or "cut"
    verbatim: bool = False  # whether text is also kept as it is written

    def __post_init__(self) -> None:
        if self.ragged not in (None, "skip", "cut"):
            raise UserError(f"--ragged {self.ragged!r}: there are skip and cut.", 2)
        if not isinstance(self.skip_rows, int) or self.skip_rows < 0:
            raise UserError(f"--skip-rows {self.skip_rows!r}: it must be a number of lines from 0.", 2)
        if self.decimal not in (None, ".", ","):
            raise UserError(f"--decimal {self.decimal!r}: there are '.' and ','.", 2)
        if self.thousands is not None and (len(self.thousands) != 1 or self.thousands == (self.decimal or ".")):
            raise UserError(
                f"--thousands {self.thousands!r}: it must be one mark, and another than the decimal mark.", 2
            )
        if self.encoding is not None and not _is_encoding(self.encoding):
            raise UserError(
                f"--encoding {cut(self.encoding)!r}: there is no such encoding. Try utf-8, cp1252 or utf-16.", 2
            )


def _is_encoding(name: str) -> bool:
    try:
        "a".encode(name)
        return True
    except (LookupError, ValueError):
        return False


def how_of(options: Mapping[str, Any]) -> How:
    """The options of Python or of the shell. Raises TypeError for one that is not there."""
    inner = ("readings", "verbatim")
    known = [field.name for field in fields(How) if field.name not in inner]
    for name in options:
        if name not in known and name not in inner:
            close = get_close_matches(name, known, 1)
            hint = f"Did you mean {close[0]}?" if close else "Leave it out."
            raise TypeError(f"{name} is no option; a table is read by {', '.join(known)}. {hint}")
    return How(**options)


@dataclass(frozen=True)
class Table:
    """A frame with its source; `target` is set where the format itself says which column to
    predict, `notes` say how it was read.
    """

    frame: pd.DataFrame
    source: str
    target: str | None = None
    notes: list[str] = field(default_factory=list)
    typed: bool = False  # whether the format says what is a number
    readings: dict[str, Reading] = field(default_factory=dict)  # how columns of text are written
    kind: str = "a frame"  # of file, as `_READERS` names it
    cells: pd.DataFrame | None = None  # as the file writes them, where that was asked for


def read_table(name: str, **how: Any) -> Table:
    """Read a file, or standard input as "-". Raises UserError where it cannot.

    `how` are the fields of `How`.
    """
    shown = "standard input" if name == "-" else name
    options = how_of(how)
    try:
        with plain_file(name) as path:
            kind = "a table"
            try:
                kind = _kind_of(path, _ending(name), shown)
                table = _READERS[kind](path, shown, options)
            except UserError:
                raise
            except Exception as error:  # parsers of damaged files raise whatever the bytes lead them to
                raise UserError(
                    f"{shown}: cannot be read as {kind} ({type(error).__name__}: {cut(str(error), 200)}). {_HINTS.get(kind, 'Check the file.')}"
                ) from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile) as error:
        raise UserError(f"{shown}: cannot be read ({cut(str(error), 200)}).") from None
    refuse_twice([str(column) for column in table.frame.columns], shown)
    if not len(table.frame):
        raise UserError(f"{shown}: the table has no rows.")
    frame, notes, readings = read_cells(
        without_words(table.frame.rename(columns=str), options.na_values, shown),
        shown,
        options.dates,
        options.decimal,
        numbers=not table.typed,
        known=options.readings,
    )
    notes += _totals(frame)
    cells = table.frame.rename(columns=str) if table.cells is None else table.cells
    return Table(frame, shown, table.target, [*table.notes, *notes], kind=kind, readings=readings, cells=cells)


_TOTALS = re.compile(r"(grand |sub)?(totals?|sum)|gesamt|summe", re.IGNORECASE)


def _totals(frame: pd.DataFrame) -> list[str]:
    """A warning of a last row that sums up the others; its text comes nowhere else in the column."""
    for name in frame.columns:
        last = frame[name].iloc[-1]
        if isinstance(last, str) and _TOTALS.fullmatch(last) and int((frame[name] == last).sum()) == 1:
            return [
                f"Warning: the last row has {last!r} in {cut(name)!r}: if it sums up the others, delete it from the file."
            ]
    return []


_HINTS = {
    "text": "Check the file, or say --sep, --decimal or --encoding.",
    "Excel": "Check the file, or say --sheet.",
    "JSON": "A table in JSON is a list of rows, [{...}, {...}], one row a line, or one object of columns.",
    "ARFF": "Here ARFF holds numbers, nominal values and dates, one row a line: write other tables as CSV.",
}


def _ending(name: str) -> str:
    """The ending that tells the kind, without that of the packer."""
    path = Path(name)
    return (Path(path.stem) if path.suffix.lower() in ENDINGS else path).suffix.lower()


# -- words for what is missing ------------------------------------------------------------------------------------------


def words_for(na_values: Any, names: Sequence[str], source: str) -> dict[str, list[str]]:
    """What means missing in every column: words for all, "COLUMN=WORD" for one, or a dict of columns."""
    if isinstance(na_values, Mapping):
        words: dict[str, list[str]] = {name: [] for name in names}
        for name, of_name in na_values.items():
            if str(name) not in words:
                raise UserError(
                    f"--na-values {cut(name)!r}: no such column in {source}; there are {listed(names, 12)}.", 2
                )
            words[str(name)] += _word_list(of_name)
        return words
    several = _word_list(na_values)
    for text in several:
        name, mark, word = text.rpartition("=")
        if mark and name not in names and (_number(word) is not None or get_close_matches(name, names, cutoff=0.8)):
            raise UserError(
                f"--na-values {cut(text)!r}: no column {cut(name)!r} in {source}; there are {listed(names, 12)}.", 2
            )
    pairs = [(name, word) for text in several for name, mark, word in [text.rpartition("=")] if mark and name in names]
    general = [text for text in several if text.rpartition("=")[0] not in names]
    return {name: [*general, *(word for column, word in pairs if column == name)] for name in names}


def _word_list(words: Any) -> list[str]:
    several = [words] if isinstance(words, str) or not hasattr(words, "__iter__") else list(words)
    return [str(word).strip() for word in several]


def without_words(frame: pd.DataFrame, na_values: Any, source: str) -> pd.DataFrame:
    """The frame with words and numbers that mean missing as missing, whichever format or library it comes from."""
    words = words_for(na_values, list(frame.columns), source)
    columns = {name: frame[name].mask(_says(frame[name], words[name])) for name in words if words[name]}
    return frame.assign(**columns) if columns else frame


def _says(column: pd.Series[Any], words: list[str]) -> Any:
    """Which cells hold one of these words, or the number that a word is."""
    numbers = [number for word in words if (number := _number(word)) is not None]
    if column.dtype.kind in "iuf":
        return column.isin(numbers).fillna(False)
    if column.dtype.kind in "bmM":
        return column.isna() & False
    return column.map(
        lambda cell: (
            cell.strip() in words if isinstance(cell, str) else isinstance(cell, int | float) and cell in numbers
        )
    ).astype(bool)


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


_PANDAS = {  # endings of files that pandas reads, and this command does not
    ".dta": "read_stata", ".sas7bdat": "read_sas", ".xpt": "read_sas", ".sav": "read_spss", ".orc": "read_orc", ".h5": "read_hdf",
}  # fmt: skip
_OLD_EXCEL = b"\xd0\xcf\x11\xe0"
_MAGIC = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow"}


def _kind_of(path: Path, ending: str, source: str) -> str:
    """Tell the kind of a file by its content, and by its ending only where text may be several things."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head.startswith(_OLD_EXCEL):
        raise UserError(f"{source}: this is a file of Excel before 2007. Save it as .xlsx or as CSV.")
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    if head[:4] == b"PK\x03\x04" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            inside = members.namelist()
        if "header.json" in inside:
            raise UserError(
                f"{source}: this is a file of lacunar's own, such as a model, and no table. Name the table."
            )
        return "Excel" if "xl/workbook.xml" in inside else ".npz"
    binary = {".parquet": "Parquet", ".pq": "Parquet", ".npz": ".npz", ".xlsx": "Excel", ".arrow": "Arrow"}
    if ending in binary:
        return binary[ending]
    text = head.decode("utf-8-sig", "replace").lstrip()
    if re.match(r"<(!doctype|html|head|body|table)\b", text, re.IGNORECASE):
        raise UserError(f"{source}: this is a page of HTML, and no table. Download the file that the page links to.")
    if ending in _PANDAS:
        raise UserError(f"{source}: read it in Python by pandas.{_PANDAS[ending]} and pass the frame. {_KNOWN}")
    if ending == ".arff" or re.search(r"^\s*@relation\b", text, re.IGNORECASE | re.MULTILINE):
        return "ARFF"
    if ending in (".svm", ".svmlight", ".libsvm") or re.match(r"[-+.\deE]+( +\d+:[-+.\deE]+)+\s", text):
        return "svmlight"
    if ending in (".json", ".jsonl", ".ndjson") or re.match(r'\{\s*"|\[\s*\{', text):
        return "JSON"
    return "text"


# -- text ---------------------------------------------------------------------------------------------------------------


class _Text:
    """A text and how it is cut into rows: its encoding, its separator, its head and its first row."""

    def __init__(self, path: Path, source: str, how: How) -> None:
        self.source, self.how = source, how
        self.encoding, self.notes = _encoding(path, source, how.encoding)
        chosen = bool(how.comment or how.skip_rows)
        self.place = filtered(path, self.encoding, how.skip_rows, how.comment) if chosen else path
        self.head = self._head()
        if "\0" in self.head:
            raise UserError(
                f"{source}: this is not text. If it is text in UTF-16, say --encoding utf-16-le or utf-16-be. {_KNOWN}"
            )
        said = _SAID_SEP.match(self.head)
        if said:
            self.place = filtered(path, self.encoding, max(how.skip_rows, 1), how.comment)
            self.head = self._head()
        self.sep = (
            _SPELLED.get(how.sep or "", how.sep)
            or (said and said[1])
            or likeliest_separator(self.head.lstrip("\n"), whole=len(self.head) < _HEAD)
        )
        self.first = self._first_row()
        if how.header is not False and has_row_names(self.head, self.sep):
            with self.lines() as file:
                self.place = with_corner(file, self.sep)
            self.head = self._head()
            self.first = self._first_row()
        if how.ragged is not None:
            with self.lines() as file:
                self.place = fitting(file, self.sep, how.ragged, self.notes)
            self.sep = ","

    def _head(self) -> str:
        """The first lines, each of them whole: a header of many columns is longer than `_HEAD`."""
        with self.lines() as file:
            return file.read(_HEAD) + file.readline()

    def _first_row(self) -> Row:
        rows = rows_of(io.StringIO(self.head, newline=""), self.sep)
        first = next((row for row in rows if any(row.cells)), None)
        if first is None:
            raise UserError(f"{self.source}: the file is empty.")
        return first

    @contextmanager
    def lines(self) -> Iterator[io.StringIO | io.TextIOWrapper]:
        """The text from its beginning."""
        if isinstance(self.place, Path):
            with self.place.open(encoding=self.encoding, newline="") as file:
                yield file
        else:
            self.place.seek(0)
            yield self.place

    def ragged(self) -> UserError | None:
        """The error that names the first row that is longer or shorter than the one at the top; None where there is
        none.
        """
        with self.lines() as file:
            odd = misfits(file, self.sep, len(self.first.cells))
        if not odd:
            return None
        row, first = odd[0], self.first
        return UserError(
            f"{self.source}: line {row.line} has {counted(len(row.cells), 'cell')} ({cut(', '.join(row.cells))!r}) and the first row, on line "
            f"{first.line}, has {len(first.cells)}. {remedy(self.sep)}"
        )

    def short_rows(self) -> list[str]:
        """A warning of rows that end early."""
        with self.lines() as file:
            return short_rows(file, self.first.cells, self.sep)


def _read_text(path: Path, source: str, how: How) -> Table:
    text = _Text(path, source, how)
    errors = pandas_module().errors
    try:
        frame = _framed(text, how)
    except (errors.ParserError, errors.ParserWarning):
        ragged = text.ragged()
        if ragged is None:
            raise
        raise ragged from None
    if frame.attrs["header"]:
        text.notes += _nameless(text.first.cells)
    if how.ragged is None and bool(frame.iloc[:, -1].isna().any()):
        text.notes += text.short_rows()
    names, header = [*frame.columns], bool(frame.attrs["header"])
    cells = _Parser(text, how)(names, header, dtype=str) if how.verbatim else None
    return Table(frame, source, None, text.notes, cells=cells)


def _framed(text: _Text, how: How) -> pd.DataFrame:
    parse, cells = _Parser(text, how), text.first.cells
    twice = [name for name, times in Counter(filter(None, cells)).items() if times > 1]
    names = [f"c{i + 1}" for i in range(len(cells))] if twice else cells
    frame = parse(names, True) if how.header is not False else None
    if how.header is False or (how.header is None and frame is not None and _is_data(cells, frame)):
        if how.header is None:
            text.notes.append(
                f"Warning: the first row ({cut(', '.join(cells), 60)}) looks like data, so the columns are called c1, c2, ... and the row "
                "is kept. --header takes it for names."
            )
        frame = parse(cells, False)
    elif twice:
        raise UserError(
            f"{text.source}: the column name {cut(twice[0])!r} occurs more than once. Rename one of them, or say --no-header if the first "
            "row is data."
        )
    assert frame is not None
    frame = _with_codes(text, frame, parse)
    learned = any(
        reading and reading.kind == "number" and reading.decimal + reading.thousands != "."
        for reading in how.readings.values()
    )
    if how.decimal is None and how.thousands is None and (learned or _has_commas(frame)):
        frame = parse(
            [*frame.columns], bool(frame.attrs["header"]), dtype=str
        )  # numbers are then told from all columns
    return frame


def _nameless(names: Sequence[Any]) -> list[str]:
    """A warning of a first row that names fewer than half of the columns, as a title above the table does."""
    known = [name for name in names if name]
    if 2 * len(known) >= len(names):
        return []
    return [
        f"Warning: the first row names {len(known)} of {len(names)} columns ({listed(known)}). If the names stand below it, "
        "--skip-rows N leaves out the N lines above them."
    ]


def _with_codes(text: _Text, frame: pd.DataFrame, parse: _Parser) -> pd.DataFrame:
    """The frame with columns of codes, such as 00123, as text: as whole numbers they lose their zeros."""
    whole = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    with text.lines() as file:
        if not whole or not any(_CODES.search(line) for line in file):
            return frame
    as_text = parse([*frame.columns], bool(frame.attrs["header"]), dtype=dict.fromkeys(whole, str))
    codes = [name for name in whole if as_text[name].dropna().str.strip().map(is_code).any()]
    return frame.assign(**{name: as_text[name] for name in codes})


class _Parser:
    """pandas' reader of one text with its options."""

    def __init__(self, text: _Text, how: How) -> None:
        self.text, self.na_values, self.readings = text, how.na_values, how.readings
        self.options: dict[str, Any] = {
            "sep": text.sep, "encoding": text.encoding, "keep_default_na": False, "index_col": False, "skipinitialspace": True,
            "decimal": how.decimal or ".", "thousands": how.thousands,
        }  # fmt: skip
        if len(text.sep) > 1 and text.sep != r"\s+":  # such as :: of ratings
            self.options |= {"sep": re.escape(text.sep), "engine": "python"}
        else:
            self.options["low_memory"] = False

    def __call__(self, cells: Sequence[str], header: bool, **options: Any) -> pd.DataFrame:
        """A frame whose columns have these names, or c1, c2, ... without a header."""
        pd = pandas_module()
        names = [cell or (INDEX if i == 0 else f"c{i + 1}") if header else f"c{i + 1}" for i, cell in enumerate(cells)]
        refuse_twice(names, self.text.source)
        words = words_for(self.na_values, names, self.text.source)
        alike = len({tuple(of_name) for of_name in words.values()}) <= 1
        texts = {name: str for name in names if name in self.readings and self.readings[name] is None}
        options = {"dtype": texts} | options
        na_values = [*_NA_VALUES, *words[names[0]]] if alike else {name: [*_NA_VALUES, *words[name]] for name in names}
        with warnings.catch_warnings(), self.text.lines() as file:
            warnings.simplefilter("error", pd.errors.ParserWarning)  # cells beyond the header are not dropped unseen
            place = self.text.place if isinstance(self.text.place, Path) else file
            frame = pd.read_csv(
                place, names=names, header=0 if header else None, na_values=na_values, **(self.options | options)
            )
        frame.attrs["header"] = header
        return frame


def _encoding(path: Path, source: str, wish: str | None) -> tuple[str, list[str]]:
    if wish is not None:
        return ("utf-8-sig" if wish.lower() in ("utf-8", "utf8") else wish), []
    with path.open("rb") as file:
        head = file.read(4)
    if head in (b"\xff\xfe\0\0", b"\0\0\xfe\xff"):
        return "utf-32", []
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16", []
    if _decodes(path, "utf-8-sig"):
        return "utf-8-sig", []
    if _decodes(path, "cp1252"):
        return "cp1252", ["The text is not UTF-8 and was read as Windows-1252. --encoding says otherwise."]
    raise UserError(
        f"{source}: cannot be read as text, neither as UTF-8 nor as Windows-1252. If it is text, say --encoding. {_KNOWN}"
    )


def _decodes(path: Path, encoding: str) -> bool:
    try:
        with path.open(encoding=encoding, newline="") as text:
            while text.read(2**20):
                pass
    except UnicodeDecodeError:
        return False
    return True


def _is_data(cells: Sequence[str], frame: pd.DataFrame) -> bool:
    """Whether the first row holds data: numbers over numbers, or texts that occur again below; years over numbers are
    names.
    """
    numbers = [_is_number(cell) for cell in cells]
    if all(numbers) and any(cell.lower() not in MISSING for cell in cells):
        return not all(cell.isdecimal() and cell.isascii() and int(cell) in _YEARS for cell in cells)
    alike = 0
    for cell, is_number, name in zip(cells, numbers, frame.columns, strict=True):
        column = frame[name]
        if column.dtype.kind in "iuf":
            if not is_number:  # a word over numbers is their name
                return False
            alike += is_number and bool(cell) and not (cell.isdecimal() and cell.isascii() and int(cell) in _YEARS)
        else:
            alike += bool(cell) and bool((column.astype(str).str.strip() == cell).any())
    return 2 * alike >= len(cells) and alike > 0


def _is_number(cell: str) -> bool:
    return _number(cell.replace(",", ".")) is not None or cell.lower() in MISSING


def _has_commas(frame: pd.DataFrame) -> bool:
    """Whether a column of text may hold numbers that are written otherwise than in programs."""
    texts = (frame[name].dropna() for name in frame.columns if frame[name].dtype.kind not in "iufb")
    return any(
        len(text) and bool(text.astype(str).str.fullmatch(r"\s*[-+]?\d[\d.,'\s]*").mean() > 0.5) for text in texts
    )


def refuse_twice(names: Sequence[str], source: str) -> None:
    """UserError where two columns have one name."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UserError(f"{source}: the column name {cut(twice[0])!r} occurs more than once. Rename one of them.")


# -- other formats ------------------------------------------------------------------------------------------------------


def _read_json(path: Path, source: str, how: How) -> Table:
    pd = pandas_module()
    encoding, notes = _encoding(path, source, how.encoding)
    with path.open(encoding=encoding) as file:
        first = file.read(4096).lstrip()[:1]
    columns = _columns_of_json(path, encoding) if first == "{" else None
    if columns is not None:
        return Table(flat(pd.DataFrame(columns).reset_index(drop=True), source), source, notes=notes)
    try:
        frame = pd.read_json(path, lines=first == "{", orient="records", encoding=encoding, dtype=False)
    except (ValueError, AttributeError, TypeError):  # the latter two of a line that is a number, by release of pandas
        if first == "{":
            _refuse_broken_line(path, encoding, source)
        raise
    return Table(flat(frame, source), source, notes=notes)


def _columns_of_json(path: Path, encoding: str) -> dict[str, Any] | None:
    """The columns of a file that is one object of them, as pandas writes it: lists, or cells by the name of their row."""
    with path.open(encoding=encoding) as file:
        try:
            columns = json.load(file)
        except ValueError:  # rows, one a line
            return None
    cells = [*columns.values()]
    for kind in (dict, list):
        if cells and all(isinstance(of_column, kind) for of_column in cells):
            return dict(columns)
    return None


def _refuse_broken_line(path: Path, encoding: str, source: str) -> None:
    """UserError for the first line that is no object of JSON, where there is one."""
    with path.open(encoding=encoding) as file:
        for number, line in enumerate(file, 1):
            if line.strip() and not _is_object(line):
                raise UserError(
                    f"{source}: line {number} ({cut(line.strip(), 60)!r}) is no JSON object. A file that begins with '{{' "
                    "holds one row a line: mend the line, or put the rows into a list, [{...}, {...}]."
                ) from None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _read_excel(path: Path, source: str, how: How) -> Table:
    pd = pandas_module()
    try:
        import openpyxl  # noqa: F401  # pandas would import it, with an error of its own
    except ImportError:
        raise UserError(f"{source}: reading Excel needs openpyxl: pip install 'lacunar[cli]'") from None
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheet, sheets = _sheet(book.sheet_names, how.sheet, source), book.sheet_names
        cells = pd.read_excel(
            book,
            sheet_name=sheet,
            keep_default_na=False,  # a column may be called "na"
            header=None,
            skiprows=how.skip_rows,
            dtype=object,  # or text of digits would become numbers, and codes lose their zeros
        )
    notes: list[str] = []
    frame = _with_first_names(cells, notes, header=how.header is not False).infer_objects()
    others = f"There are {listed(map(repr, sheets))}: --sheet reads another." if len(sheets) > 1 else ""
    if not len(frame) or frame.shape[1] < 2:
        what = (
            "is empty"
            if frame.empty and not frame.shape[1]
            else f"has {frame.shape[1]} columns and {len(frame)} rows below its first"
        )
        raise UserError(f"{source}: the sheet {cut(sheet)!r} {what}, which is no table. {others or 'Check the file.'}")
    return Table(frame, source, notes=[*([f"The sheet {cut(sheet)!r} was read. {others}"] if others else []), *notes])


def _with_first_names(cells: pd.DataFrame, notes: list[str], *, header: bool) -> pd.DataFrame:
    """Cells of a sheet below the first row that is not empty, which has the names; without a header all, as c1, c2, ..."""
    missing = cells.isin(_NA_VALUES) | cells.isna()
    frame, missing = (table[(~missing).any(axis=1).cummax()] for table in (cells, missing))
    names = [""] * frame.shape[1]
    if header and len(frame):
        names = ["" if pandas_module().isna(cell) else str(cell).strip() for cell in frame.iloc[0]]
        frame, missing = frame[1:], missing[1:]
        notes += _nameless(names)
    frame = frame.mask(missing)
    first = INDEX if header else "c1"
    frame.columns = [name or (f"c{i + 1}" if i else first) for i, name in enumerate(names)]
    return frame.reset_index(drop=True)


def _sheet(sheets: list[str], wish: str | int | None, source: str) -> str:
    """The sheet of this name or number, from 1; the first by default."""
    if wish is None or str(wish) in sheets:
        return sheets[0] if wish is None else str(wish)
    if not str(wish).isdecimal() or not 1 <= int(wish) <= len(sheets):
        raise UserError(f"--sheet {cut(wish)!r}: no such sheet in {source}; there are {listed(map(repr, sheets))}.", 2)
    return sheets[int(wish) - 1]


def _read_parquet(path: Path, source: str, how: How) -> Table:
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("reading Parquet needs pyarrow: pip install 'lacunar[cli]'") from None
    with pq.ParquetFile(path) as file:
        return _of_arrow(file.schema_arrow, file.iter_batches(), path, source)


def _read_arrow(path: Path, source: str, how: How) -> Table:
    """A file or a stream of Arrow's own, also called Feather."""
    try:
        import pyarrow.ipc as ipc
    except ImportError:
        raise UserError("reading Arrow needs pyarrow: pip install 'lacunar[cli]'") from None
    with path.open("rb") as file:
        if file.read(6) == b"ARROW1":
            reader = ipc.open_file(file)
            return _of_arrow(reader.schema, map(reader.get_batch, range(reader.num_record_batches)), path, source)
        file.seek(0)
        stream = ipc.open_stream(file)
        return _of_arrow(stream.schema, stream, path, source)


def _of_arrow(schema: Any, batches: Iterable[Any], path: Path, source: str) -> Table:
    import pyarrow as pa

    pd = pandas_module()
    refuse_twice(schema.names, source)
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if nested:
        raise _nested(nested[0], source)
    arrow = pa.Table.from_batches(_bounded(batches, path.stat().st_size, source), schema)
    for k, column in enumerate(arrow.schema):
        if pa.types.is_decimal(column.type):
            arrow = arrow.set_column(k, column.name, arrow.column(k).cast(pa.float64()))
    frame = arrow.to_pandas()
    return Table(frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index(), source)


def _bounded(batches: Iterable[Any], size: int, source: str) -> Iterator[Any]:
    """Batches of rows, given up as soon as they hold more than a file of this size may."""
    unpacked = 0
    for batch in batches:
        unpacked += batch.nbytes
        refuse_beyond(unpacked, size, source)
        yield batch


def flat(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """The frame as it came. UserError where a cell holds several values."""
    for k, dtype in enumerate(frame.dtypes):
        if (
            str(dtype) == "object"
            and frame.iloc[:, k].map(lambda cell: isinstance(cell, list | dict | set | np.ndarray)).any()
        ):
            raise _nested(str(frame.columns[k]), source)
    return frame


def _nested(name: str, source: str) -> UserError:
    return UserError(f"{source}: the column {cut(name)!r} holds lists or records. Leave it out, or make columns of it.")


def _read_arff(path: Path, source: str, how: How) -> Table:
    """Dense ARFF; ``?`` is missing."""
    from scipy.io import arff

    with path.open(encoding="utf-8-sig") as lines:
        rows, meta = arff.loadarff(lines)
    names = meta.names()
    if not names:
        raise UserError(f"{source}: no @attribute before @data; this is no ARFF file.")
    columns = {name: [c.decode() for c in rows[name]] if rows[name].dtype.kind == "S" else rows[name] for name in names}
    return Table(pandas_module().DataFrame(columns), source, typed=True)


def _read_npz(path: Path, source: str, how: How) -> Table:
    """Arrays X (n, d) and y (n,); or CSR as indptr, indices, values and shape, where what is not stored is missing."""
    from scipy.sparse import csr_array

    arrays = arrays_of(path)
    if "X" in arrays:
        X = arrays["X"]
    elif {"indptr", "indices", "values", "shape"} <= arrays.keys():
        parts = (arrays["values"].astype(float), arrays["indices"], arrays["indptr"])
        X = _dense(csr_array(parts, shape=tuple(int(v) for v in arrays["shape"])), source)
    else:
        raise UserError(f"{source}: no array X in it; there are {cut(', '.join(sorted(arrays)) or 'none', 200)}.")
    names = arrays.get("feature_names", np.array([])).tolist()
    return of_arrays(X, arrays.get("y"), [n.decode() if isinstance(n, bytes) else str(n) for n in names], source)


def _read_svmlight(path: Path, source: str, how: How) -> Table:
    """svmlight; what is not stored is missing."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path))
    table = of_arrays(_dense(X, source), y, [], source)
    return replace(table, notes=["Entries that the file does not hold are missing, not zero."])


def _dense(matrix: Any, source: str) -> NDArray[np.float64]:
    """A sparse matrix written out, NaN where nothing is stored. UserError for one that is too large and too empty."""
    cells = matrix.shape[0] * matrix.shape[1]
    if cells > MAX_DENSE or cells > MAX_EMPTY * max(matrix.nnz, 100):
        raise UserError(
            f"{source}: {matrix.shape[0]} x {matrix.shape[1]} with {matrix.nnz} stored is too large and too empty here. Use "
            "lacunar.Observed from Python."
        )
    return Observed.from_scipy(matrix).to_dense()  # which looks at every index: SciPy's own converters trust them


def of_arrays(X: NDArray[Any], y: NDArray[Any] | None, names: list[str], source: str) -> Table:
    """A table of numbers (n, d), with y (n,) as its last column."""
    if X.ndim != 2 or not len(X) or (y is not None and y.shape != (len(X),)):
        raise UserError(f"{source}: X must be (n, d) and y (n,); got {X.shape} and {None if y is None else y.shape}.")
    if len(names) != X.shape[1] or len({*names, "y"}) <= len(names):
        names = [f"x{j + 1}" for j in range(X.shape[1])]
    frame = pandas_module().DataFrame(X.astype(float), columns=names)
    if y is None:
        return Table(frame, source)
    frame["y"] = np.char.decode(y) if y.dtype.kind == "S" else y
    return Table(frame, source, "y")


_READERS: dict[str, Callable[[Path, str, How], Table]] = {
    "text": _read_text, "JSON": _read_json, "Excel": _read_excel, "Parquet": _read_parquet, "Arrow": _read_arrow, "ARFF": _read_arff, ".npz": _read_npz,
    "svmlight": _read_svmlight,
}  # fmt: skip
