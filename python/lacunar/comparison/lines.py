"""Lines of text as rows of cells: what separates them, and rows with more or fewer cells than the first."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lacunar.comparison.cells import counted, cut

_SEPARATORS = (",", ";", "\t", "|", r"\s+")
_LINES = 50  # lines that tell what separates cells


class Row(NamedTuple):
    """Cells, and the line of the file on which they end."""

    line: int
    cells: list[str]


def rows_of(lines: Iterable[str], sep: str) -> Iterator[Row]:
    """Rows of text, those of blank lines as well."""
    if sep == r"\s+":
        yield from (Row(k, _between_blanks(line)) for k, line in enumerate(lines, 1))
    elif len(sep) == 1:
        reader = csv.reader(lines, delimiter=sep, skipinitialspace=True)
        yield from (Row(reader.line_num, [cell.strip() for cell in cells]) for cells in reader)
    else:
        yield from (
            Row(k, [cell.strip() for cell in line.rstrip("\r\n").split(sep)]) for k, line in enumerate(lines, 1)
        )


def _between_blanks(line: str) -> list[str]:
    """Cells between blanks and tabs, which within quotes are part of a cell."""
    if '"' not in line:
        return line.split()
    return next(csv.reader([line.strip().replace("\t", " ")], delimiter=" ", skipinitialspace=True))


def has_row_names(head: str, sep: str) -> bool:
    """Whether the first row, in quotes, has a cell less than every other: R writes no name above the names of rows."""
    rows = [row.cells for row in islice(rows_of(io.StringIO(head, newline=""), sep), _LINES) if any(row.cells)]
    others = rows[1:]
    return (
        head.lstrip().startswith('"')
        and len(others) > 1
        and {len(cells) for cells in others} == {len(rows[0]) + 1}
        and len({cells[0] for cells in others}) == len(others)
        and any(cells[-1] for cells in others)  # a mark at the end of every line separates nothing
    )


def with_corner(lines: Iterable[str], sep: str) -> io.StringIO:
    """The text with an empty name before the first name."""
    text, before = io.StringIO(newline=""), '""' + (" " if sep == r"\s+" else sep)
    for line in lines:
        text.write(before + line if line.strip() else line)
        before = "" if line.strip() else before
    text.seek(0)
    return text


def likeliest_separator(head: str, *, whole: bool) -> str:
    """Of those that cut all first lines into as many cells, the one with most cells; without `whole` the last line may be cut.

    Where there is none, the commonest mark in the first line.
    """
    widths_of = {}
    for sep in _SEPARATORS:
        try:
            widths = [
                len(row.cells) for row in islice(rows_of(io.StringIO(head, newline=""), sep), _LINES) if any(row.cells)
            ]
        except csv.Error:
            continue
        if not whole:
            widths = widths[:-1] or widths
        if has_row_names(head, sep):
            widths = widths[1:]
        if len(set(widths)) == 1 and widths[0] > 1:
            widths_of[sep] = widths[0]
    if r"\s+" in widths_of and len(widths_of) > 1:
        del widths_of[r"\s+"]  # blanks inside cells
    if widths_of:
        return max(widths_of, key=lambda sep: widths_of[sep])
    return max(",;\t|", key=(head.splitlines()[0] if head.strip() else "").count)


def filtered(path: Path, encoding: str, skip_rows: int, comment: str | None) -> io.StringIO:
    """The text with blank lines in place of those to leave out, so that lines keep their numbers."""
    text = io.StringIO(newline="")
    with path.open(encoding=encoding, newline="") as file:
        for k, line in enumerate(file):
            left_out = k < skip_rows or (comment and line.lstrip().startswith(comment))
            text.write("\n" if left_out else line)
    text.seek(0)
    return text


def fitting(lines: Iterable[str], sep: str, ragged: str, notes: list[str]) -> io.StringIO:
    """Rows as CSV with as many cells as the first: others are left out ("skip"), or are cut and filled ("cut"), and
    counted.
    """
    text, odd, width = io.StringIO(newline=""), [], 0
    writer = csv.writer(text)
    for row in rows_of(lines, sep):
        if not any(row.cells):
            continue
        width = width or len(row.cells)
        if len(row.cells) != width:
            odd.append(row.line)
            if ragged == "skip":
                continue
        writer.writerow([*row.cells, *[""] * width][:width])
    if odd:
        done = "left out" if ragged == "skip" else "cut or filled up"
        were = "was" if len(odd) == 1 else "were"
        notes.append(
            f"Warning: {counted(len(odd), 'row')} without the {width} cells of the first {were} {done}; the first is on line {odd[0]}."
        )
    text.seek(0)
    return text


def misfits(lines: Iterable[str], sep: str, width: int) -> list[Row]:
    """Rows with another number of cells than `width`; none where the text cannot be cut into rows."""
    try:
        return [row for row in rows_of(lines, sep) if any(row.cells) and len(row.cells) != width]
    except csv.Error:
        return []


def remedy(sep: str) -> str:
    """The options that read a file with rows of several lengths."""
    return (
        f"Cells were cut at {sep!r}; --sep says otherwise. --skip-rows N leaves out lines above the table, --comment '#' lines that begin so, "
        "--ragged skip such rows; --ragged cut keeps as many of their cells as the first row has."
    )


def short_rows(lines: Iterable[str], first: Sequence[str], sep: str) -> list[str]:
    """A warning of rows with fewer cells than the first, whose other cells are then missing."""
    short = misfits(lines, sep, len(first))
    if not short:
        return []
    what = "1 row has" if len(short) == 1 else f"{len(short):,} rows have"
    return [
        f"Warning: {what} fewer cells than the {len(first)} of the first row, and the others were taken as missing; the first is on line "
        f"{short[0].line} ({cut(', '.join(short[0].cells))!r}). {remedy(sep)}"
    ]
