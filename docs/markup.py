"""What conf.py does to the HTML of every page, so that it is read by keyboard and aloud; and the list of pages for language models."""

import re
from itertools import count

_TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
# What lacunar.css and the theme let scroll sideways, and what it is called there.
_SCROLLING = re.compile(r'<div class="(?:pst-scrollable-table-container|output_subarea output_html [^"]*)"')
# A thumbnail of the gallery, over which lies a link whose words are hidden.
_THUMBNAIL = re.compile(r'(src="[^"]*_thumb[^"]*" />\s*<p><a [^>]*)(><span class="doc">([^<]*)</span>)')


def within_reach(body):
    """A page's HTML, where regions that scroll take the keyboard under a name of their own, links of thumbnails have words, and cells
    that head a row or a column say so.
    """
    numbers = count(1)
    body = _SCROLLING.sub(
        lambda match: f'{match[0]} tabindex="0" role="region" aria-label="Table {next(numbers)}"', body
    )
    body = _THUMBNAIL.sub(r'\1 aria-label="\3"\2', body)
    body = body.replace(
        'role="doc-biblioentry"', 'role="listitem"'
    )  # what a list must hold; docutils' role is deprecated
    body = re.sub(r'<math(?=[^>]* display="block")', '<math tabindex="0"', body)
    return _TABLE.sub(lambda match: _with_heads(match[0]), body)


def _with_heads(table):
    if 'class="autosummary' in table:  # names on the left, and no row of heads
        table = re.sub(r"(<tr[^>]*>)\s*<td>(.*?)</td>", r'\1<th scope="row">\2</th>', table, flags=re.DOTALL)
    head, end, rows = table.rpartition("</thead>")
    head = re.sub(r"<th[^>]*>(?:<p></p>)?</th>", "<td></td>", head)  # the corner above names of rows heads nothing
    return _scoped(head, "col") + end + _scoped(rows, "row")


def _scoped(cells, scope):
    return re.sub(r"<th(?=[\s>])(?![^>]*\bscope=)", f'<th scope="{scope}"', cells)


def llms_txt(title, about, root, children, titles):
    """The pages as llmstxt.org asks for them: a section for every page below the root, and in it links to what is below that.

    `children` has the names of pages below a page, `titles` the title of each.
    """
    lines = [f"# {title}", "", f"> {about}"]
    for top in children.get(root, []):
        lines += ["", f"## {titles[top]}", ""]
        lines += [f"- [{titles[page]}]({page}.html)" for page in _below(top, children, set())]
    return "\n".join([*lines, ""])


def _below(page, children, met):
    """The page and those below it, each once."""
    if page in met:
        return
    met.add(page)
    yield page
    for child in children.get(page, []):
        yield from _below(child, children, met)
