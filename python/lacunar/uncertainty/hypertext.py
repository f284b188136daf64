"""Self-contained HTML pages, light and dark, for narrow and wide screens and for screen readers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

from lacunar.observed.cells import cut, visible
from lacunar.observed.container import replace_file


def shown(text: str) -> str:
    """Text inside HTML: it starts no element and turns no line around."""
    return escape(visible(text))


def whole_page(over: str, title: str, body: str, footer: str) -> str:
    """A page: a line over its title, the title (both text), what follows (HTML), and a last line (text)."""
    template = Template(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return template.substitute(over=shown(over), title=shown(title), body=body, footer=shown(footer))


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write text as `replace_file` does: a killed run leaves what was there before."""
    content = text.encode("utf-8", "backslashreplace")  # half characters out of a forged file
    replace_file(Path(path), lambda stream: stream.write(content))


def facts_list(facts: Sequence[tuple[str, str]]) -> str:
    """Names and values of text, side by side."""
    return f'<dl class="facts">{"".join(f"<div><dt>{shown(k)}</dt><dd>{shown(v)}</dd></div>" for k, v in facts)}</dl>'


def section(title: str, text: str, *parts: str) -> str:
    """A heading and a paragraph of text, and parts of HTML below them."""
    return f"<section><h2>{shown(title)}</h2><p>{shown(text)}</p>{''.join(parts)}</section>"


def text_table(caption: str, heading: Sequence[str], rows: Sequence[Sequence[str]], words: int = 0) -> str:
    """A table of text, of which the first cell of a row names it, and cell number `words` holds words, which may wrap."""
    tags = ['<td class="words">' if k == words else "<td>" for k in range(1, len(heading))]
    return table_of(caption, heading, [
        f'<tr>{row_name(cut(first))}{"".join(f"{tag}{shown(cell)}</td>" for tag, cell in zip(tags, others, strict=True))}</tr>'
        for first, *others in rows
    ])  # fmt: skip


def row_name(name: str) -> str:
    """The cell that names a row."""
    return f'<th scope="row" class="name">{shown(name)}</th>'


def table_of(caption: str, heading: Sequence[str], rows: Sequence[str]) -> str:
    """A table of rows that are HTML, which scrolls by itself where it is wider than the page."""
    head = "".join(f'<th scope="col">{shown(name)}</th>' for name in heading)
    table = f"<table><caption>{shown(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    return scrolling(table, caption)


def scrolling(inside: str, label: str) -> str:
    """A region that scrolls, by the keyboard as well."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{shown(label)}" style="overflow-x: auto">{inside}</div>'
