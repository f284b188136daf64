"""Links between the pages, to files of the repository and to headings lead somewhere (Sphinx does not look at those of Markdown)."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if "_build" not in page.parts]
PAGES = [page for page in PAGES if page.is_file()]
if not (ROOT / "docs" / "index.md").is_file():
    pytest.skip("the pages are not beside the tests", allow_module_level=True)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page):
    """What MyST makes of headings."""
    heads = re.findall(r"^#{1,6} (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def target_of(page, link):
    """The file a link means: what scripts make when the site is built is there if the script is."""
    file = (page.parent / link).resolve() if link else page
    if file.parent == ROOT / "docs" / "gallery":
        return ROOT / "examples" / ("README.rst" if file.stem == "index" else f"{file.stem}.py")
    if file.parent == ROOT / "docs" / "gallery" / "images":
        return ROOT / "examples" / f"{file.stem.removeprefix('sphx_glr_')[:-4]}.py"
    if file.parent == ROOT / "docs" / "pictures":
        return file.with_suffix(".py")
    return file


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    broken = []
    for link, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        file = target_of(page, link)
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            broken.append(f"{link}#{anchor}" if anchor else link)
    assert not broken
