"""Every Python block of the README and of the pages in docs/ runs, page by page, and prints what the page says it prints.

A block ```output after a block ```python holds what that prints, down to white space; "..." stands for anything. An HTML comment
that opens with "python" is run as well: it holds what a reader has and a test has not, such as a table to learn from.
"""

import contextlib
import doctest
import io
import re
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "_build" not in page.parts]
BLOCK = re.compile(r"^```(python|output)\n(.*?)^```$|^<!-- python\n(.*?)^-->$", re.M | re.S)
PAGES = [page for page in PAGES if page.is_file() and BLOCK.search(page.read_text(encoding="utf-8"))]
if not PAGES:
    pytest.skip("the pages are not beside the tests", allow_module_level=True)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text, names, printed = page.read_text(encoding="utf-8"), {"__name__": "__page__"}, ""
    same = doctest.OutputChecker().check_output
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found[1] == "output":
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert same(found[2], printed, flags), f"{page.name}:{line} says\n{found[2]}and it prints\n{printed}"
            continue
        with contextlib.redirect_stdout(io.StringIO()) as out, warnings.catch_warnings(action="ignore"):
            exec(compile("\n" * line + (found[2] or found[3]), str(page), "exec"), names)
        printed = out.getvalue()
