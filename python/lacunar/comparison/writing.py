"""What the command writes: which names it may write to, and tables in the format that the ending of the name says."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lacunar.comparison.cells import UserError, cut
from lacunar.observed.container import replace_file

if TYPE_CHECKING:
    import pandas as pd

    from lacunar.comparison.reading import Table

REPORTS = (".html", ".htm")
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, mtime=0),  # the same table gives the same bytes
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


class Output(NamedTuple):
    """A file that a command is asked to write: the option that names it, the path, and the endings that it may have;
    none is any but a table's.
    """

    option: str
    path: str | None
    endings: Sequence[str] = ()


# -- where --------------------------------------------------------------------------------------------------------------


def check_outputs(outputs: Sequence[Output], inputs: Mapping[str, str | None]) -> None:
    """Refuse, before any work is done, outputs that cannot be written, or that would write over what is read or over each other.

    `inputs` are the paths of the files that are read, by what they are ("the table"); "-" is standard input.
    """
    named = [output for output in outputs if output.path is not None]
    for k, output in enumerate(named):
        for what, path in inputs.items():
            if path is not None and _same_file(str(output.path), path):
                raise UserError(
                    f"{output.option} {output.path}: that is {what}, which is read and would be lost. Name another file.",
                    2,
                )
        for other in named[:k]:
            if _same_file(str(output.path), str(other.path)):
                raise UserError(
                    f"{output.option} {output.path}: that is the file of {other.option} too, and one of the two would be lost. "
                    "Name two files.", 2,
                )  # fmt: skip
        _check_place(str(output.path))
        _check_ending(output)


def _check_place(path: str) -> None:
    place, folder = Path(path), Path(path).absolute().parent
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written, there is no folder {folder}.")
    if place.is_dir():
        raise UserError(f"{path}: cannot be written, it is a folder. Name a file in it.")
    # A file is replaced as a whole, beside which a new one is made: of a link the file behind it.
    beside = Path(os.path.realpath(path)).parent
    if not os.access(beside, os.W_OK) or (place.exists() and not os.access(place, os.W_OK)):
        raise UserError(f"{path}: cannot be written, it is not allowed. Choose another place.")


def _check_ending(output: Output) -> None:
    path = str(output.path)
    if _written_to(path):
        return
    ending = _ending(path)
    if output.endings and ending not in output.endings:
        came = f"{ending!r} is not among them" if ending else "this one has none"
        raise UserError(
            f"{output.option} {path}: the ending of the name says what is written. There are {', '.join(output.endings)}; {came}.",
            2,
        )
    if not output.endings and ending in (*TABLES, *REPORTS):
        raise UserError(
            f"{output.option} {path}: a model is written, and {ending!r} is the ending of another kind of file. Name it MODEL.lacunar.",
            2,
        )
    if ending in _PACKAGES and output.endings:
        import_module(_PACKAGES[ending])  # absent ones are named before any work is done


def _written_to(path: str) -> bool:
    """Whether it is a pipe or a device, which has no ending and cannot be replaced."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _ending(path: str) -> str:
    """The ending in lower case, with that of the packer."""
    place = Path(path.lower())
    return "".join(place.suffixes[-2:]) if place.suffix in _PACKERS else place.suffix


def _same_file(output: str, path: str) -> bool:
    """Whether both are one file, through links of any kind; of a file that is not there yet, whether both are one
    place.
    """
    try:
        there = os.fstat(sys.stdin.fileno()) if path == "-" else os.stat(path)
        return os.path.isfile(output) and os.path.samestat(os.stat(output), there)
    except (OSError, ValueError):  # not there, or a standard input without a file
        return os.path.normcase(os.path.realpath(output)) == os.path.normcase(os.path.realpath(path))


# -- cells ---------------------------------------------------------------------------------------------------------------


def as_written(filled: pd.DataFrame, table: Table, path: str) -> pd.DataFrame:
    """A filled copy of a table whose cells of text are as in its file: observed ones the same, others in the way of their column.

    Of a text file that is written to another kind of file, `path`, all columns keep the types that were read.
    """
    is_text = table.kind == "text"
    if is_text and _ending(path) in _BINARY:
        return filled
    names = filled.columns if is_text else [name for name in filled if name in table.readings]
    return filled.assign(**{str(name): _as_in_file(filled[name], table, str(name)) for name in names})


def _as_in_file(filled: pd.Series[Any], table: Table, name: str) -> pd.Series[Any]:
    assert table.cells is not None
    cells, read, reading = table.cells[name].astype(object), table.frame[name], table.readings.get(name)
    seen = read.notna()
    texts = dict(zip(read[seen], cells[seen], strict=True))
    example = next(iter(texts.values()), "")
    for row in (filled.notna() & ~seen).to_numpy().nonzero()[0]:
        value = filled.iloc[row]
        if value not in texts:
            texts[value] = str(value) if reading is None else reading.written(value, example)
        cells.iloc[row] = texts[value]
    return cells


# -- tables -------------------------------------------------------------------------------------------------------------


def as_csv(frame: pd.DataFrame, sep: str = ",") -> bytes:
    """Text with one row a line."""
    text = frame.to_csv(index=False, lineterminator="\n", sep=sep)
    return bytes(text.encode("utf-8", "backslashreplace"))  # half characters out of a forged file


def _as_parquet(frame: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    frame.to_parquet(stream, index=False, engine="pyarrow")
    return stream.getvalue()


def _as_excel(frame: pd.DataFrame) -> bytes:
    import pandas as pd

    stream = io.BytesIO()
    with pd.ExcelWriter(stream, engine="openpyxl") as book:
        frame.to_excel(book, index=False)
        for row in next(iter(book.sheets.values())).iter_rows():
            for cell in row:
                if cell.data_type == "f":  # text that begins with "=" is no formula
                    cell.data_type = "s"
    return stream.getvalue()


_TEXT: dict[str, Callable[[pd.DataFrame], bytes]] = {".csv": as_csv, ".tsv": lambda frame: as_csv(frame, "\t")}
_BINARY: dict[str, Callable[[pd.DataFrame], bytes]] = {".parquet": _as_parquet, ".xlsx": _as_excel}
_PACKAGES = {".parquet": "pyarrow", ".xlsx": "openpyxl"}
TABLES = (*_TEXT, *(text + packer for text in _TEXT for packer in _PACKERS), *_BINARY)


def write_frame(frame: pd.DataFrame, path: str) -> None:
    """Write a table in the format of the ending, one of `TABLES`; to a pipe or a device CSV. A killed run leaves what
    was there before.
    """
    ending = ".csv" if _written_to(path) else _ending(path)
    try:
        content = _content(frame, ending)
    except MemoryError:
        raise
    except Exception as error:  # writers raise whatever cells lead them to
        raise UserError(
            f"{path}: this table cannot be written as {ending} ({type(error).__name__}: {cut(str(error), 200)}). Write .csv."
        ) from None
    replace_file(Path(path), lambda stream: stream.write(content))


def _content(frame: pd.DataFrame, ending: str) -> bytes:
    if ending in _BINARY:
        return _BINARY[ending](frame)
    text = next(text for text in _TEXT if ending.startswith(text))
    pack = _PACKERS.get(ending.removeprefix(text), bytes)
    return pack(_TEXT[text](frame))
