"""Files to tables of named columns: numbers with NaN, or text with "" where missing."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._npz import read_npz as arrays_of

MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "?", "."})
MAX_DENSE = 10**8  # values of a sparse file held as a dense table
MAX_HOLES = 10**4  # cells for each that is stored, so that one column number does not ask for all the memory


class UserError(Exception):
    """What the person at the shell can put right; `code` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Table:
    """Columns by name, all of one length; `target` is set where the format itself says which column to predict."""

    names: list[str]
    columns: list[
        NDArray[Any]
    ]  # float64 with NaN, or strings (objects: one long text must not widen all cells) with ""
    source: str
    target: str | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0]) if self.columns else 0

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the column of a name stands."""
        return {name: k for k, name in enumerate(self.names)}

    def column(self, name: str) -> NDArray[Any]:
        """Values of the column of this name, (n,)."""
        return self.columns[self.places[name]]

    def rows(self, keep: NDArray[Any]) -> Table:
        """The rows that `keep` selects: a mask or row numbers."""
        return Table(self.names, [column[keep] for column in self.columns], self.source, self.target)

    def without(self, name: str) -> Table:
        """All columns but the one of this name."""
        kept = [(n, c) for n, c in zip(self.names, self.columns, strict=True) if n != name]
        return Table([n for n, _ in kept], [c for _, c in kept], self.source)


def missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a column has a hole."""
    holes: NDArray[np.bool_] = np.isnan(column) if column.dtype.kind == "f" else column == ""
    return holes


def column_of_text(cells: Iterable[Any], name: str, source: str) -> NDArray[Any]:
    """Numbers when all that is there reads as numbers, text otherwise."""
    text = ["" if (c is None or (s := str(c).strip()).lower() in MISSING) else s for c in cells]
    try:
        if any("_" in s for s in text):  # float("1_0") is 10, but nobody writes numbers so
            raise ValueError
        numbers = np.array([float(s) if s else np.nan for s in text], dtype=float)
    except ValueError:
        return np.array(text, dtype=object)
    return finite(numbers, name, source)


def finite(numbers: NDArray[Any], name: str, source: str) -> NDArray[Any]:
    if np.isinf(numbers).any():
        row = int(np.flatnonzero(np.isinf(numbers))[0])
        raise UserError(
            f"{source}: column {name!r} has an infinite number in data row {row + 1}. Leave it empty if it is not known."
        )
    return numbers


def table_of_rows(rows: list[list[str]], names: list[str], source: str) -> Table:
    if not rows:
        raise UserError(f"{source}: there are names of columns but no rows.")
    refuse_twice(names, source)
    columns = [column_of_text(cells, name, source) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
    return Table(names, columns, source)


def refuse_twice(names: list[str], source: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UserError(f"{source}: the column name {twice[0]!r} occurs more than once. Rename one of them.")


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        for line in file:
            if "\0" in line:
                raise UserError(
                    f"{path}: this is not text. Formats are told by the ending of the name: {', '.join(READERS)}."
                )
            yield line


def _same_length(found: Iterable[tuple[int, list[str]]], width: int, source: str) -> list[list[str]]:
    rows = []
    for line, row in found:
        if len(row) != width:
            raise UserError(f"{source}: line {line} has {len(row)} cells where {width} are expected.")
        rows.append(row)
    return rows


def read_text(path: Path) -> Table:
    """CSV and TSV; the separator is the commonest of comma, semicolon and tab in the first line."""
    lines = _lines(path)
    first = next(lines, "")
    separator = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
    reader = csv.reader(_chain(first, lines), delimiter=separator)
    numbered = ((reader.line_num, row) for row in reader if row)
    _, header = next(numbered, (0, []))
    names = [name.strip() for name in header]
    if not names:
        raise UserError(f"{path}: the file is empty.")
    if column_of_text(names, "", str(path)).dtype.kind == "f":  # numbers only: the first line is data already
        body = _same_length(numbered, len(names), str(path))
        return table_of_rows([header, *body], [f"c{i + 1}" for i in range(len(names))], str(path))
    names = [name or f"c{i + 1}" for i, name in enumerate(names)]
    return table_of_rows(_same_length(numbered, len(names), str(path)), names, str(path))


def _chain(first: str, rest: Iterable[str]) -> Iterator[str]:
    yield first
    yield from rest


def read_arff(path: Path) -> Table:
    """Dense ARFF; quotes of either kind, ``?`` missing."""
    names: list[str] = []
    lines = enumerate(_lines(path), 1)
    for _, line in lines:
        words = line.strip()
        if words.lower().startswith("@attribute"):
            rest = words[len("@attribute") :].strip()
            quote = rest[0] if rest[:1] in {"'", '"'} else None
            names.append(rest[1 : rest.index(quote, 1)] if quote else rest.split()[0])
        elif words.lower().startswith("@data"):
            break
    if not names:
        raise UserError(f"{path}: no @attribute before @data; this is no ARFF file.")
    rows = []
    for number, line in lines:
        words = line.strip()
        if not words or words.startswith("%"):
            continue
        if words.startswith("{"):
            raise UserError(f"{path}: line {number} is sparse ARFF, which is not read. Save it dense or as svmlight.")
        single = words.count("'") > words.count('"')
        rows.append((number, next(csv.reader([words], quotechar="'" if single else '"', skipinitialspace=True))))
    return table_of_rows(_same_length(rows, len(names), str(path)), names, str(path))


def read_parquet(path: Path) -> Table:
    """Parquet through pyarrow; booleans and dates become numbers."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("reading Parquet needs pyarrow: pip install pyarrow") from None
    found = pq.read_table(path)
    refuse_twice(found.column_names, str(path))
    columns = []
    for name, column in zip(found.column_names, found.columns, strict=True):
        if pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
            numbers = np.array([np.nan if v is None else float(v) for v in column.to_pylist()])
            columns.append(finite(numbers, name, str(path)))
        elif pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
            days = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64()).to_pylist()
            columns.append(np.array([np.nan if v is None else v / 86400 for v in days]))
        else:
            columns.append(column_of_text(column.to_pylist(), name, str(path)))
    return Table([str(n) for n in found.column_names], columns, str(path))


def _with_target(X: NDArray[Any], y: NDArray[Any] | None, names: list[str], path: Path) -> Table:
    if X.ndim != 2 or not len(X) or (y is not None and y.shape != (len(X),)):
        raise UserError(f"{path}: X must be (n, d) and y (n,); got {X.shape} and {None if y is None else y.shape}.")
    if len(names) != X.shape[1] or len({*names, "y"}) <= len(names):
        names = [f"x{j + 1}" for j in range(X.shape[1])]
    columns = [finite(X[:, j].astype(float), name, str(path)) for j, name in enumerate(names)]
    if y is None:
        return Table(names, columns, str(path))
    target = (
        column_of_text(y.tolist(), "y", str(path)) if y.dtype.kind in "USO" else finite(y.astype(float), "y", str(path))
    )
    return Table([*names, "y"], [*columns, target], str(path), "y")


def _dense(matrix: Any, path: Path) -> NDArray[np.float64]:
    """What is not stored is missing."""
    from lacunar import Observed

    cells = matrix.shape[0] * matrix.shape[1]
    if cells > MAX_DENSE or cells > MAX_HOLES * max(matrix.nnz, 100):
        raise UserError(
            f"{path}: {matrix.shape[0]} x {matrix.shape[1]} with {matrix.nnz} stored is too large and too empty here. Use "
            "lacunar.Observed from Python."
        )
    return Observed.from_scipy(matrix).to_dense()  # which looks at every index: SciPy's own converters trust them


def read_npz(path: Path) -> Table:
    """Arrays X (n, d) and y (n,); or CSR as indptr, indices, values and shape, where what is not stored is missing."""
    from scipy.sparse import csr_array

    arrays = arrays_of(path)
    if "X" in arrays:
        X = arrays["X"]
    elif {"indptr", "indices", "values", "shape"} <= arrays.keys():
        parts = (arrays["values"].astype(float), arrays["indices"], arrays["indptr"])
        X = _dense(csr_array(parts, shape=tuple(int(v) for v in arrays["shape"])), path)
    else:
        raise UserError(f"{path}: no array X in it; there are {', '.join(sorted(arrays)) or 'none'}.")
    names = arrays.get("feature_names", np.array([]))
    return _with_target(
        X, arrays.get("y"), [n.decode() if isinstance(n, bytes) else str(n) for n in names.tolist()], path
    )


def read_svmlight(path: Path) -> Table:
    """svmlight; what is not stored is missing."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path))
    return _with_target(_dense(X, path), y, [], path)


READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_text, ".tsv": read_text, ".txt": read_text, ".parquet": read_parquet, ".pq": read_parquet, ".arff": read_arff,
    ".npz": read_npz, ".svmlight": read_svmlight, ".svm": read_svmlight, ".libsvm": read_svmlight,
}  # fmt: skip


def read_table(name: str) -> Table:
    """Read a file by the ending of its name. Raises UserError with a message for the person at the shell."""
    path = Path(name)
    if not path.exists():
        raise UserError(f"{name}: no such file.")
    reader = READERS.get(path.suffix.lower())
    if path.is_dir() or reader is None:
        raise UserError(f"{name}: not a kind of table known here. Endings read: {', '.join(READERS)}.")
    try:
        table = reader(path)
    except UserError:
        raise
    except Exception as error:  # parsers of damaged files raise whatever the bytes lead them to
        raise UserError(
            f"{name}: cannot be read as {path.suffix} ({type(error).__name__}: {str(error)[:200]})."
        ) from None
    if not table.n_rows:
        raise UserError(f"{name}: the table has no rows.")
    return table
