"""What docs/conf.py makes of the HTML of a page: tables with heads, regions that take the keyboard; and llms.txt."""

import importlib.util
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "markup.py"
if not SOURCE.exists():
    pytest.skip("the docs are not beside the tests", allow_module_level=True)
_SPEC = importlib.util.spec_from_file_location("markup", SOURCE)
markup = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(markup)

DOCUTILS = """<div class="pst-scrollable-table-container"><table class="table"><thead>
<tr class="row-odd"><th class="head"><p>table</p></th><th class="head"><p>AUC</p></th></tr>
</thead><tbody><tr class="row-even"><th class="stub"><p>wine</p></th><td><p>.9</p></td></tr></tbody></table></div>"""
SUMMARY = """<div class="pst-scrollable-table-container"><table class="autosummary longtable table"><tbody>
<tr class="row-odd"><td><p>POPCA</p></td>
<td><p>Components.</p></td></tr></tbody></table></div>"""
PANDAS = """<div class="output_subarea output_html rendered_html output_result"><table border="1" class="dataframe"><thead>
<tr><th></th><th>ward</th></tr></thead><tbody><tr><th>0</th><td>A</td></tr></tbody></table></div>"""


def scopes(html):
    return re.findall(r'<th scope="(\w+)"', markup.within_reach(html))


def test_cells_that_head_rows_and_columns_say_so():
    assert scopes(DOCUTILS) == ["col", "col", "row"]
    assert scopes(SUMMARY) == ["row"]
    assert scopes(PANDAS) == ["col", "row"]  # and the corner heads nothing
    assert scopes(DOCUTILS.replace("<p>table</p>", "<p></p>", 1)) == ["col", "row"]
    done = markup.within_reach(DOCUTILS + SUMMARY + PANDAS)
    assert done.count("<thead>") == 2
    assert not re.search(r"<th(?=[\s>])(?! scope=)", done)
    assert done.count("<th ") == done.count("</th>")


def test_what_scrolls_takes_the_keyboard_under_its_own_name():
    done = markup.within_reach(DOCUTILS + SUMMARY + PANDAS + '<math xmlns="m" display="block"></math><math xmlns="m">')
    regions = re.findall(r'<div class="[^"]*" tabindex="0" role="region" aria-label="([^"]+)"', done)
    assert regions == ["Table 1", "Table 2", "Table 3"]
    assert re.findall(r'<math(?: tabindex="0")?', done) == ['<math tabindex="0"', "<math"]


def test_links_of_thumbnails_have_words():
    thumbnail = """<div class="sphx-glr-thumbcontainer"><img alt="" src="../_images/sphx_glr_a_thumb.png" />
<p><a class="reference internal" href="a.html"><span class="doc">Blocks &quot;off&quot;</span></a></p></div>"""
    assert '<a class="reference internal" href="a.html" aria-label="Blocks &quot;off&quot;">' in markup.within_reach(
        thumbnail
    )


def test_a_list_of_references_holds_items():
    references = (
        '<div role="list" class="citation-list"><div class="citation" id="r1" role="doc-biblioentry"></div></div>'
    )
    assert re.findall(r'role="([^"]*)"', markup.within_reach(references)) == ["list", "listitem"]


def test_other_markup_stays():
    page = "<h1>Titles</h1><p>a &lt;th&gt; in text</p><pre>x</pre>"
    assert markup.within_reach(page) == page


def test_llms_txt_lists_each_page_once():
    children = {"index": ["guide", "api"], "guide": ["guide/a", "guide/b"], "guide/b": ["guide/a", "guide"]}
    titles = {"guide": "Guide", "guide/a": "A", "guide/b": "B", "api": "Reference"}
    text = markup.llms_txt("lacunar", "Learning.", "index", children, titles)
    assert text.splitlines() == [
        *("# lacunar", "", "> Learning."),
        *("", "## Guide", "", "- [Guide](guide.html)", "- [A](guide/a.html)", "- [B](guide/b.html)"),
        *("", "## Reference", "", "- [Reference](api.html)"),
    ]


def test_the_picture_of_learners_shows_its_answers_on_a_phone():
    """Words of 12 px in a picture as wide as a phone's text, and no style that makes it scroll."""
    svg = SOURCE.with_name("_static").joinpath("which.svg").read_text(encoding="utf-8")
    assert float(re.search(r'viewBox="0 0 ([\d.]+)', svg)[1]) <= 400
    for word in re.findall(r"<text[^>]*>([^<]*)</text>", svg):
        assert word in re.search(r'aria-label="([^"]*)"', svg)[1]
    css = SOURCE.with_name("_static").joinpath("lacunar.css").read_text(encoding="utf-8")
    assert not re.search(r"which\.svg[^}]*(min-width|overflow)", css)
