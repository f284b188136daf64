"""Files to frames: pandas reads text, JSON, Excel and Parquet, SciPy ARFF, scikit-learn svmlight. What is in a file is told by its content."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar.comparison.cells import MISSING, UserError, cut, pandas_module, read_cells
from lacunar.observed import Observed
from lacunar.observed.cells import Reading
from lacunar.observed.container import read_npz as arrays_of
from lacunar.observed.container import replace_file

if TYPE_CHECKING:
    import pandas as pd

_NA_VALUES = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN"})
MAX_DENSE = 10**8  # values of a sparse file held as a dense table
MAX_EMPTY = 10**4  # cells for each stored value, so that one column number does not ask for all the memory
INDEX = "Unnamed: 0"  # what pandas calls a first column without a name, which is the index that it wrote
_SEPARATORS = (",", ";", "\t", "|", r"\s+")
_LINES = 50  # lines that tell what separates cells
_YEARS = range(1800, 2200)  # as a header of numbers may hold


@dataclass(frozen=True)
class How:
    """How text is read; None is found out."""

    sep: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    encoding: str | None = None
    na_values: Sequence[str] = ()
    header: bool | None = None
    dates: str | None = None  # "dmy" or "mdy"
    readings: Mapping[str, Reading | None] = field(default_factory=dict)  # of columns that a model has learned


@dataclass(frozen=True)
class Table:
    """A frame with its source; `target` is set where the format itself says which column to predict, `notes` say how it was read."""

    frame: pd.DataFrame
    source: str
    target: str | None = None
    notes: list[str] = field(default_factory=list)
    typed: bool = False  # whether the format says what is a number
    readings: dict[str, Reading] = field(default_factory=dict)  # how columns of text are written


def read_table(name: str, **how: Any) -> Table:
    """Read a file, or standard input as "-". Raises UserError where it cannot.

    `how` are the fields of `How`.
    """
    shown = "standard input" if name == "-" else name
    wanted = How(**how)
    try:
        with _plain_file(name) as path:
            kind = "a table"
            try:
                kind = _kind_of(path, Path(name.removesuffix(".gz")).suffix.lower())
                table = _READERS[kind](path, shown, wanted)
            except UserError:
                raise
            except Exception as error:  # parsers of damaged files raise whatever the bytes lead them to
                raise UserError(
                    f"{shown}: cannot be read as {kind} ({type(error).__name__}: {cut(str(error), 200)}). Check the file, or "
                    "say --sep, --decimal or --encoding."
                ) from None
    except (OSError, EOFError) as error:
        raise UserError(f"{shown}: cannot be read ({cut(str(error), 200)}).") from None
    _refuse_twice([str(column) for column in table.frame.columns], shown)
    if not len(table.frame):
        raise UserError(f"{shown}: the table has no rows.")
    frame, notes, readings = read_cells(
        table.frame.rename(columns=str),
        shown,
        wanted.dates,
        wanted.decimal,
        numbers=not table.typed,
        known=wanted.readings,
    )
    return Table(frame, shown, table.target, [*table.notes, *notes], readings=readings)


@contextmanager
def _plain_file(name: str) -> Iterator[Path]:
    """The file itself, or a temporary one of what standard input or a .gz file holds."""
    path = Path(name)
    if name != "-":
        if not path.exists():
            raise UserError(f"{name}: no such file.")
        if not path.is_file():
            raise UserError(f"{name}: not a file with a table. Name one file, or - for standard input.")
        with path.open("rb") as file:
            if file.read(2) != b"\x1f\x8b":
                yield path
                return
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "table"
        with nullcontext(sys.stdin.buffer) if name == "-" else gzip.open(path) as source, plain.open("wb") as file:
            shutil.copyfileobj(source, file)
        yield plain


def _kind_of(path: Path, ending: str) -> str:
    """What the content says; the ending only where text may be several things."""
    with path.open("rb") as file:
        head = file.read(4096)
    if head[:4] == b"PAR1":
        return "Parquet"
    if head[:4] == b"PK\x03\x04" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as members:
            return "Excel" if "xl/workbook.xml" in members.namelist() else ".npz"
    binary = {".parquet": "Parquet", ".pq": "Parquet", ".npz": ".npz", ".xlsx": "Excel"}
    if ending in binary:
        return binary[ending]
    text = head.decode("utf-8-sig", "replace").lstrip()
    if ending == ".arff" or re.search(r"^\s*@relation\b", text, re.IGNORECASE | re.MULTILINE):
        return "ARFF"
    if ending in (".svm", ".svmlight", ".libsvm") or re.match(r"[-+.\deE]+( +\d+:[-+.\deE]+)+\s", text):
        return "svmlight"
    if ending in (".json", ".jsonl", ".ndjson") or re.match(r'\{\s*"|\[\s*\{', text):
        return "JSON"
    return "text"


# -- text ---------------------------------------------------------------------------------------------------------------


def _read_text(path: Path, source: str, how: How) -> Table:
    encoding, notes = _encoding(path, source, how.encoding)
    with path.open(encoding=encoding, newline="") as file:
        head = file.read(2**18) + file.readline()  # whole lines: a header of many columns is longer
    if "\0" in head:
        raise UserError(
            f"{source}: this is not text. Known are CSV and other text, JSON lines, Excel, Parquet, ARFF, NPZ and svmlight."
        )
    sep = how.sep or _separator(head)
    cells = next((row for row in _rows(head, sep) if any(row)), [])
    if not cells:
        raise UserError(f"{source}: the file is empty.")
    options: dict[str, Any] = {
        "sep": sep, "encoding": encoding, "na_values": [*_NA_VALUES, *how.na_values], "keep_default_na": False, "index_col": False,
        "skipinitialspace": True, "low_memory": False, "decimal": how.decimal or ".", "thousands": how.thousands,
    }  # fmt: skip
    frame = _parsed(path, cells, True, options, source) if how.header is not False else None
    if how.header is False or (how.header is None and frame is not None and _is_data(cells, frame)):
        if how.header is None:
            notes.append(
                f"Warning: the first row ({cut(', '.join(cells), 60)}) looks like data, so the columns are called c1, c2, ... and the row "
                "is kept. --header takes it for names."
            )
        frame = _parsed(path, cells, False, options, source)
    assert frame is not None
    learned = any(
        reading and reading.kind == "number" and reading.decimal + reading.thousands != "."
        for reading in how.readings.values()
    )
    if (
        how.decimal is None and how.thousands is None and (learned or _has_commas(frame))
    ):  # numbers are then told from all columns
        frame = _parsed(path, [*frame.columns], bool(frame.attrs["header"]), options | {"dtype": str}, source)
    return Table(frame, source, None, notes)


def _parsed(path: Path, cells: Sequence[str], header: bool, options: dict[str, Any], source: str) -> pd.DataFrame:
    pd = pandas_module()
    names = [cell or (INDEX if i == 0 else f"c{i + 1}") if header else f"c{i + 1}" for i, cell in enumerate(cells)]
    _refuse_twice(names, source)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # cells beyond the header are not dropped unseen
        frame = pd.read_csv(path, names=names, header=0 if header else None, **options)
    frame.attrs["header"] = header
    return frame  # type: ignore[no-any-return]


def _encoding(path: Path, source: str, wish: str | None) -> tuple[str, list[str]]:
    if wish is not None:
        return ("utf-8-sig" if wish.lower() in ("utf-8", "utf8") else wish), []
    with path.open("rb") as file:
        if file.read(2) in (b"\xff\xfe", b"\xfe\xff"):
            return "utf-16", []
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            with path.open(encoding=encoding, newline="") as text:
                while text.read(2**20):
                    pass
        except UnicodeDecodeError:
            continue
        if encoding == "cp1252":
            return encoding, ["The text is not UTF-8 and was read as Windows-1252. --encoding says otherwise."]
        return encoding, []
    raise UserError(f"{source}: cannot be read as text, neither as UTF-8 nor as Windows-1252. Say --encoding.")


def _rows(head: str, sep: str) -> Iterator[list[str]]:
    lines = io.StringIO(head, newline="")
    if sep == r"\s+":
        yield from (line.split() for line in lines)
    elif len(sep) == 1:
        yield from ([cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sep, skipinitialspace=True))
    else:
        yield from ([cell.strip() for cell in re.split(sep, line.rstrip("\r\n"))] for line in lines)


def _separator(head: str) -> str:
    """Of those that cut all first lines into as many cells, the one with most cells; else the commonest in the first line."""
    found = {}
    for sep in _SEPARATORS:
        try:
            widths = [len(row) for row in islice(_rows(head, sep), _LINES) if any(row)]
        except csv.Error:
            continue
        if len(head) >= 2**18:
            widths = widths[:-1] or widths  # the last line may be cut
        if len(set(widths)) == 1 and widths[0] > 1:
            found[sep] = widths[0]
    if r"\s+" in found and len(found) > 1:
        del found[r"\s+"]  # blanks inside cells
    if found:
        return max(found, key=lambda sep: found[sep])
    first = head.splitlines()[0] if head.strip() else ""
    return max(",;\t|", key=first.count)


def _is_data(cells: Sequence[str], frame: pd.DataFrame) -> bool:
    """Whether the first row holds data: numbers over numbers, or texts that occur again below; years over numbers are names."""
    numbers = [_is_number(cell) for cell in cells]
    if all(numbers) and any(cell.lower() not in MISSING for cell in cells):
        return not all(cell.isdecimal() and cell.isascii() and int(cell) in _YEARS for cell in cells)
    alike = 0
    for cell, is_number, name in zip(cells, numbers, frame.columns, strict=True):
        column = frame[name]
        if column.dtype.kind in "iuf":
            alike += is_number and bool(cell) and not (cell.isdecimal() and cell.isascii() and int(cell) in _YEARS)
        else:
            alike += bool(cell) and bool((column.astype(str).str.strip() == cell).any())
    return 2 * alike >= len(cells) and alike > 0


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return cell.lower() in MISSING
    return True


def _has_commas(frame: pd.DataFrame) -> bool:
    """Whether a column of text may hold numbers that are written otherwise than in programs."""
    texts = (frame[name].dropna() for name in frame.columns if frame[name].dtype.kind not in "iufb")
    return any(
        len(text) and bool(text.astype(str).str.fullmatch(r"\s*[-+]?\d[\d.,'\s]*").mean() > 0.5) for text in texts
    )


def _refuse_twice(names: Sequence[str], source: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UserError(f"{source}: the column name {cut(twice[0])!r} occurs more than once. Rename one of them.")


# -- other formats ------------------------------------------------------------------------------------------------------


def _read_json(path: Path, source: str, how: How) -> Table:
    pd = pandas_module()
    encoding = how.encoding or "utf-8"
    with path.open(encoding=encoding) as file:
        first = file.read(4096).lstrip()[:1]
    frame = pd.read_json(path, lines=first == "{", orient="records", encoding=encoding)
    return Table(_flat(frame, source), source)


def _read_excel(path: Path, source: str, how: How) -> Table:
    pd = pandas_module()
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise UserError(f"{source}: reading Excel needs openpyxl: pip install 'lacunar[cli]'") from None
    frame = pd.read_excel(
        path, na_values=[*_NA_VALUES, *how.na_values], header=None if how.header is False else 0, engine="openpyxl"
    )
    if how.header is False:
        frame.columns = [f"c{i + 1}" for i in range(frame.shape[1])]
    return Table(frame, source)


def _read_parquet(path: Path, source: str, how: How) -> Table:
    pd = pandas_module()
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("reading Parquet needs pyarrow: pip install 'lacunar[cli]'") from None
    found = pq.read_table(path)
    _refuse_twice(found.column_names, source)
    nested = [field.name for field in found.schema if pa.types.is_nested(field.type)]
    if nested:
        raise _nested(nested[0], source)
    for k, column in enumerate(found.schema):
        if pa.types.is_decimal(column.type):
            found = found.set_column(k, column.name, found.column(k).cast(pa.float64()))
    frame = found.to_pandas()
    return Table(frame if isinstance(frame.index, pd.RangeIndex) else frame.reset_index(), source)


def _flat(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    for name in frame.columns:
        if frame[name].map(lambda cell: isinstance(cell, list | dict)).any():
            raise _nested(str(name), source)
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
    return of_arrays(_dense(X, source), y, [], source)


def _dense(matrix: Any, source: str) -> NDArray[np.float64]:
    """What is not stored is missing."""
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
    "text": _read_text, "JSON": _read_json, "Excel": _read_excel, "Parquet": _read_parquet, "ARFF": _read_arff, ".npz": _read_npz,
    "svmlight": _read_svmlight,
}  # fmt: skip


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text as `replace_file` does: a killed run leaves what was there before."""
    content = text.encode("utf-8", "backslashreplace")  # half characters out of a forged file
    replace_file(Path(path), lambda stream: stream.write(content))
