"""Files to tables: pandas reads text and Parquet (through pyarrow), SciPy ARFF, scikit-learn svmlight."""

from __future__ import annotations

import csv
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lacunar import Observed
from lacunar.observed.container import read_npz as arrays_of

if TYPE_CHECKING:
    import pandas as pd

MISSING = frozenset({"", "na", "nan", "n/a", "#n/a", "null", "?", "."})  # in any case
_NA_VALUES = sorted({form for word in MISSING for form in (word, word.upper(), word.capitalize())} | {"NaN"})
MAX_DENSE = 10**8  # values of a sparse file held as a dense table
MAX_EMPTY = 10**4  # cells for each stored value, so that one column number does not ask for all the memory


class UserError(Exception):
    """An error that the user of the command can correct; `code` is the exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class Table:
    """A frame with its source; `target` is set where the format itself says which column to predict."""

    frame: pd.DataFrame
    source: str
    target: str | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def column(self, name: str) -> NDArray[Any]:
        """Values (n,) of a column: numbers (float64, NaN where missing), or text (objects, "" where missing)."""
        column = self.frame[name]
        if column.dtype.kind in "iuf":
            numbers: NDArray[Any] = column.to_numpy(np.float64)
            return numbers
        return np.array(["" if lost else str(cell) for cell, lost in zip(column, column.isna(), strict=True)], object)


def pandas_module() -> Any:
    """The pandas package, or how to get it."""
    try:
        import pandas
    except ImportError:
        raise UserError("reading tables needs pandas: pip install 'lacunar[cli]'") from None
    return pandas


def read_text(
    path: Path, *, sep: str | None = None, decimal: str = ".", encoding: str = "utf-8", na_values: Sequence[str] = ()
) -> Table:
    """CSV and TSV; a separator that is not given is the commonest of comma, semicolon and tab in the first line."""
    header, sep = _header(path, sep, encoding)
    if not header:
        raise UserError(f"{path}: the file is empty.")
    data_already = all(_is_number(cell, decimal) for cell in header)
    names = [f"c{i + 1}" if data_already else cell or f"c{i + 1}" for i, cell in enumerate(header)]
    _refuse_twice(names, path)
    pd = pandas_module()
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # cells beyond the header are not dropped unseen
        frame = pd.read_csv(
            path, sep=sep, decimal=decimal, encoding=encoding, na_values=[*_NA_VALUES, *na_values], keep_default_na=False,
            names=names, header=None if data_already else 0, index_col=False, skipinitialspace=True, low_memory=False,
        )  # fmt: skip
    return Table(frame, str(path))


def _header(path: Path, sep: str | None, encoding: str) -> tuple[list[str], str]:
    """Cells of the first line, and the separator."""
    with path.open(encoding="utf-8-sig" if encoding == "utf-8" else encoding, newline="") as file:
        first = file.readline()
        if "\0" in first:
            raise UserError(
                f"{path}: this is not text. Formats are told by the ending of the name: {', '.join(READERS)}."
            )
        if sep is None:
            sep = "\t" if path.suffix.lower() == ".tsv" else max(",;\t", key=first.count)
        file.seek(0)
        cells = next((row for row in csv.reader(file, delimiter=sep, skipinitialspace=True) if row), [])
    return [cell.strip() for cell in cells], sep


def _is_number(cell: str, decimal: str) -> bool:
    try:
        float(cell.replace(decimal, "."))
    except ValueError:
        return cell.lower() in MISSING
    return True


def _refuse_twice(names: Sequence[str], path: Path) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise UserError(f"{path}: the column name {twice[0]!r} occurs more than once. Rename one of them.")


def read_parquet(path: Path) -> Table:
    """Parquet through pyarrow."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("reading Parquet needs pyarrow: pip install 'lacunar[cli]'") from None
    pandas_module()
    found = pq.read_table(path)
    _refuse_twice(found.column_names, path)
    nested = [field.name for field in found.schema if pa.types.is_nested(field.type)]
    if nested:
        raise UserError(
            f"{path}: the column {nested[0]!r} holds lists or records. Leave it out, or make columns of it."
        )
    decimal = [k for k, field in enumerate(found.schema) if pa.types.is_decimal(field.type)]
    for k in decimal:
        found = found.set_column(k, found.schema.field(k).name, found.column(k).cast(pa.float64()))
    return Table(found.to_pandas(), str(path))


def read_arff(path: Path) -> Table:
    """Dense ARFF; ``?`` is missing."""
    from scipy.io import arff

    pd = pandas_module()
    with path.open(encoding="utf-8-sig") as lines:
        rows, meta = arff.loadarff(lines)
    names = meta.names()
    if not names:
        raise UserError(f"{path}: no @attribute before @data; this is no ARFF file.")
    columns = {
        name: [cell.decode() for cell in rows[name]] if rows[name].dtype.kind == "S" else rows[name] for name in names
    }
    return Table(pd.DataFrame(columns), str(path))


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
    names = arrays.get("feature_names", np.array([])).tolist()
    return _of_arrays(X, arrays.get("y"), [n.decode() if isinstance(n, bytes) else str(n) for n in names], path)


def read_svmlight(path: Path) -> Table:
    """svmlight; what is not stored is missing."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path))
    return _of_arrays(_dense(X, path), y, [], path)


def _dense(matrix: Any, path: Path) -> NDArray[np.float64]:
    """What is not stored is missing."""
    cells = matrix.shape[0] * matrix.shape[1]
    if cells > MAX_DENSE or cells > MAX_EMPTY * max(matrix.nnz, 100):
        raise UserError(
            f"{path}: {matrix.shape[0]} x {matrix.shape[1]} with {matrix.nnz} stored is too large and too empty here. Use "
            "lacunar.Observed from Python."
        )
    return Observed.from_scipy(matrix).to_dense()  # which looks at every index: SciPy's own converters trust them


def _of_arrays(X: NDArray[Any], y: NDArray[Any] | None, names: list[str], path: Path) -> Table:
    if X.ndim != 2 or not len(X) or (y is not None and y.shape != (len(X),)):
        raise UserError(f"{path}: X must be (n, d) and y (n,); got {X.shape} and {None if y is None else y.shape}.")
    if len(names) != X.shape[1] or len({*names, "y"}) <= len(names):
        names = [f"x{j + 1}" for j in range(X.shape[1])]
    frame = pandas_module().DataFrame(X.astype(float), columns=names)
    if y is None:
        return Table(frame, str(path))
    frame["y"] = np.char.decode(y) if y.dtype.kind == "S" else y
    return Table(frame, str(path), "y")


def _tidy(frame: pd.DataFrame) -> pd.DataFrame:
    """Text without blanks around it, missing where it says so; the other columns as they are."""
    tidied = {}
    for name in frame.select_dtypes(include=["object", "string", "category"]).columns:
        tidied[name] = [_tidy_cell(cell) for cell in frame[name]]
    if not tidied:
        return frame
    pd = pandas_module()
    return pd.DataFrame(
        {str(name): pd.Series(tidied[name], dtype=object) if name in tidied else frame[name] for name in frame}
    )


def _tidy_cell(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    return None if text.lower() in MISSING else text


READERS: dict[str, Callable[..., Table]] = {
    ".csv": read_text, ".tsv": read_text, ".txt": read_text, ".parquet": read_parquet, ".pq": read_parquet, ".arff": read_arff,
    ".npz": read_npz, ".svmlight": read_svmlight, ".svm": read_svmlight, ".libsvm": read_svmlight,
}  # fmt: skip


def read_table(name: str, **options: Any) -> Table:
    """Read a file by the ending of its name. Raises UserError where it cannot.

    `options` are sep, decimal, encoding and na_values of `pandas.read_csv`, for CSV and TSV.
    """
    path = Path(name)
    if not path.exists():
        raise UserError(f"{name}: no such file.")
    reader = READERS.get(path.suffix.lower())
    if path.is_dir() or reader is None:
        raise UserError(f"{name}: not a kind of table known here. Endings read: {', '.join(READERS)}.")
    try:
        table = reader(path, **(options if reader is read_text else {}))
        table = Table(_tidy(table.frame), table.source, table.target)
    except UserError:
        raise
    except Exception as error:  # parsers of damaged files raise whatever the bytes lead them to
        raise UserError(
            f"{name}: cannot be read as {path.suffix} ({type(error).__name__}: {str(error)[:200]})."
        ) from None
    if not len(table.frame):
        raise UserError(f"{name}: the table has no rows.")
    return table
