"""Lines of text files: which of them are rows, cut into which cells, and what to say of those that do not fit."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from lacunar.comparison.cells import UserError, counted, cut

_SEPARATORS = (",", ";", "\t", "|", r"\s+")
_LINES = 50  # lines that tell what separates cells
_COMMENTS = ("#", "//", "%", "--", "!")  # how lines of comment begin in most files
_ABOVE = 30  # lines that may stand above a table


class Row(NamedTuple):
    """Cells, and the line of the file on which they end."""

    line: int
    cells: list[str]


def rows_of(lines: Iterable[str], sep: str) -> Iterator[Row]:
    """Rows of text, those of blank lines as well."""
    if sep == r"\s+":
        yield from (Row(k, line.split()) for k, line in enumerate(lines, 1))
    elif len(sep) == 1:
        reader = csv.reader(lines, delimiter=sep, skipinitialspace=True)
        yield from (Row(reader.line_num, [cell.strip() for cell in cells]) for cells in reader)
    else:
        yield from (
            Row(k, [cell.strip() for cell in re.split(sep, line.rstrip("\r\n"))]) for k, line in enumerate(lines, 1)
        )


def separator_of(head: str, *, whole: bool) -> str | None:
    """Of those that cut all first lines into as many cells, the one with most cells; without `whole` the last line may be cut."""
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
        if len(set(widths)) == 1 and widths[0] > 1:
            widths_of[sep] = widths[0]
    if r"\s+" in widths_of and len(widths_of) > 1:
        del widths_of[r"\s+"]  # blanks inside cells
    return max(widths_of, key=lambda sep: widths_of[sep]) if widths_of else None


def likeliest_separator(head: str, *, whole: bool) -> str:
    """The separator of the first lines; where they leave it open, the commonest mark in the first."""
    first = head.splitlines()[0] if head.strip() else ""
    return separator_of(head, whole=whole) or max(",;\t|", key=first.count)


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
    """Rows as CSV with as many cells as the first: others are left out ("skip"), or are cut and filled ("cut"), and counted."""
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


def no_table(source: str, head: str, first: Row, odd: Row, sep: str) -> UserError:
    """What to say of text whose rows differ in length, with the way on."""
    return UserError(
        f"{source}: line {odd.line} has {counted(len(odd.cells), 'cell')} ({cut(', '.join(odd.cells))!r}) and the first row, on line "
        f"{first.line}, has {len(first.cells)}. {remedy(head, first, odd, sep)}"
    )


def remedy(head: str, first: Row, odd: Row, sep: str) -> str:
    """The option that reads a file with such a row."""
    for row in (first, odd):
        begin = next((mark for mark in _COMMENTS if row.cells and row.cells[0].startswith(mark)), None)
        if begin is not None:
            return f"--comment {begin!r} leaves out lines that begin so."
    above = _lines_above(head, len(first.cells))
    return (f"If the table begins on line {above + 1}, say --skip-rows {above}. " if above else "") + (
        f"Cells were cut at {sep!r}; --sep says otherwise. --ragged skip leaves out such rows, --ragged cut keeps as many of their cells as "
        "the first row has."
    )


def _lines_above(head: str, width: int) -> int:
    """Lines above a table with more columns than the first line has, 0 where there is none."""
    lines = head.splitlines(keepends=True)
    for above in range(1, min(_ABOVE, len(lines) - 1)):
        below = "".join(lines[above:])
        if not lines[above].strip():
            continue
        sep = separator_of(below, whole=False)
        if sep is not None and len(next(rows_of(below.splitlines(keepends=True), sep)).cells) > width:
            return above
    return 0


def short_rows(lines: Iterable[str], first: Sequence[str], sep: str, head: str) -> list[str]:
    """A warning of rows with fewer cells than the first, whose other cells are then missing."""
    short = misfits(lines, sep, len(first))
    if not short:
        return []
    what = "1 row has" if len(short) == 1 else f"{len(short):,} rows have"
    return [
        f"Warning: {what} fewer cells than the {len(first)} of the first row, and the others were taken as missing; the first is on line "
        f"{short[0].line} ({cut(', '.join(short[0].cells))!r}). {remedy(head, Row(1, list(first)), short[0], sep)}"
    ]
