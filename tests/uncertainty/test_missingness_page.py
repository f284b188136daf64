"""The report of missing entries as a page, and what single columns foresee of gaps."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.metrics import roc_auc_score

from lacunar.uncertainty import missingness_report
from lacunar.uncertainty.foresight import foresights, indicators_of


class Page(HTMLParser):
    """Open tags, tags in all, text, and what a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.fetched, self.words = [], set(), [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.fetched += [value for name, value in attrs if name in {"src", "href", "srcset", "action"}]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def world(n=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[X[:, 0] > 0.5, 1] = np.nan  # where the first is high
    X[np.isnan(X[:, 1]), 2] = np.nan  # together
    X[rng.random(n) < 0.1, 2] = np.nan  # mostly
    X[rng.random(n) < 0.3, 3] = np.nan  # by nothing
    return X


def test_a_page_stands_alone_and_says_what_the_report_says():
    report = missingness_report(world())
    text = report.to_html()
    page = Page(text)
    assert not page.fetched
    assert "script" not in page.tags
    assert not re.search(r"@import|url\(", text)
    assert {"html", "title", "dl", "table", "caption", "th"} <= page.tags
    words = " ".join(page.words)
    for said in ("200 rows, 4 columns", "x1, x2", "x0 high (1.00)", "x2 missing (0.9", f"p = {report.p_value:.2g}"):
        assert said in words
    assert "target" not in words
    assert "What gaps say of the target" in missingness_report(world(), world()[:, 0]).to_html()
    assert report._repr_html_() in text
    assert "<style" not in report._repr_html_()  # a notebook has its own


def test_regions_take_the_keyboard_and_heads_have_a_scope():
    text = missingness_report(world(), world()[:, 0]).to_html()
    regions, tables = re.findall(r'<div class="scroll"[^>]*>', text), re.findall(r"<table>.*?</table>", text, re.S)
    assert len(set(regions)) == len(regions) == len(tables) == 4
    assert all(re.search(r'role="region" tabindex="0" aria-label="[^"]+"', region) for region in regions)
    for table in tables:
        assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", table))
        assert all(row.startswith('<th scope="row"') for row in re.findall(r"<tr>(<t.*?)</tr>", table)[1:])


HOSTILE = ["<script>alert(1)</script>", "</table><img src=x onerror=alert(1)>", 'a" onclick="b', "\x1b[2J\u202e\n&amp;"]


def test_hostile_names_and_levels_are_text():
    pd = pytest.importorskip("pandas")
    X = world()
    frame = pd.DataFrame(X, columns=HOSTILE)
    frame["kind"] = np.where(np.isnan(X[:, 1]), "<b>x</b>", "<!--")
    text = missingness_report(frame).to_html()
    page = Page(text)
    assert not page.tags & {"script", "img", "b"}
    assert "onclick" not in re.sub(r"&quot; onclick=&quot;", "", text)
    assert not {c for c in text if not c.isprintable()} - {"\n"}
    assert "kind is <b>x</b> (1.00)" in " ".join(page.words)
    assert "\\x1b[2J\\u202e\\n&amp;" in " ".join(page.words)


def test_big_tables_are_cut_with_a_count():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 80))
    X[rng.random(X.shape) < 0.05] = np.nan
    words = " ".join(Page(missingness_report(X).to_html()).words)
    assert "50 of 80 columns, most missing first" in words
    assert re.search(r"20 of \d+ patterns, commonest first", words)
    assert len(words) < 30_000
    X[:, :20] = np.nan
    assert "x0, x1, x2, x3, x4, x5 and 14 more" in missingness_report(X[:, :21]).to_html()


@pytest.mark.parametrize("X", [np.full((5, 3), np.nan), np.ones((5, 3)), np.ones((1, 1)), [[1.0, np.nan]]])
def test_any_table_has_a_page(X):
    report = missingness_report(X)
    Page(report.to_html())
    assert report.pattern_rows.sum() == len(X)


def test_a_page_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    report, place = missingness_report(world()), tmp_path / "gaps.html"
    report.save(place)
    assert place.read_text(encoding="utf-8") == report.to_html()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        missingness_report(world()[:50]).save(place)
    assert place.read_text(encoding="utf-8") == report.to_html()
    assert [path.name for path in tmp_path.iterdir()] == ["gaps.html"]


def test_single_columns_foresee_as_rank_tests_say():
    """AUC and p of ties, gaps and levels, against scikit-learn and SciPy one pair at a time."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    age, kind = rng.integers(0, 9, 300).astype(float), rng.choice(["u", "v", "w"], 300)
    gone = rng.random(300) < np.where(kind == "v", 0.8, 0.02 + 0.09 * age)
    age[rng.random(300) < 0.2] = np.nan
    frame = pd.DataFrame({"income": np.where(gone, np.nan, 1.0), "age": age, "kind": kind})
    found = {(f.by, f.sign): f for f in missingness_report(frame).foresight if f.column == 0}
    assert found[2, "is v"].auc == pytest.approx(roc_auc_score(gone, kind == "v"))
    seen = ~np.isnan(age)
    other = found[1, "high"]
    assert other.auc == pytest.approx(roc_auc_score(gone[seen], age[seen]))
    for look, there, p_value in (
        (age, seen, other.p_value),
        (kind == "v", np.ones(300, bool), found[2, "is v"].p_value),
    ):
        groups = look[there & gone], look[there & ~gone]
        alone = mannwhitneyu(*groups, use_continuity=False, method="asymptotic").pvalue
        assert alone <= p_value < 30 * alone  # Holm's factor


def test_columns_that_lack_the_same_rows_do_not_foresee_one_another():
    X = world()
    X[:, 3] = np.where(np.isnan(X[:, 1]), np.nan, 0.0)
    assert {(f.column, f.by) for f in missingness_report(X).foresight} == {
        (1, 0),
        (1, 2),
        (2, 0),
        (2, 1),
        (3, 0),
        (3, 2),
    }


def test_nothing_foresees_what_is_missing_at_random():
    rng = np.random.default_rng(0)
    said = 0
    for _ in range(40):
        X = rng.normal(size=(100, 4))
        X[rng.random(X.shape) < 0.3] = np.nan
        levels = [None] * 4
        said += bool(foresights(X, levels, indicators_of(X, levels)))
    assert said <= 7  # of 40 at a level of .05


def test_categories_are_no_places_in_the_alphabet():
    """The middle level decides: no line through the places of three levels shows that."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    kind = rng.choice(["u", "v", "w"], 300)
    income, y = rng.normal(size=300), np.where(kind == "v", 2.0, 0.0) + 0.3 * rng.normal(size=300)
    income[(kind == "v") & (rng.random(300) < 0.9)] = np.nan
    report = missingness_report(pd.DataFrame({"income": income, "kind": kind}), y)
    assert report.auc[0] > 0.9
    assert abs(report.target_shift[0]) < 0.25  # what the kind explains is not put down to the gap
