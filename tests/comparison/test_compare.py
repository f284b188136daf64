"""The comparison: one set of folds, honest errors, results kept after Ctrl-C, and a page that stands alone."""

import builtins
import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import count

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.tree import DecisionTreeClassifier

from lacunar.cli import main
from lacunar.comparison import Learner, compare, evaluate, learners, load_problem, print_table, report, write_report
from lacunar.comparison.comparison import half_width
from lacunar.comparison.report import importance, of_classes, of_missing, page, svg_of
from lacunar.plotting import CoverageDisplay, MissingnessDisplay
from lacunar.uncertainty import missingness_report
from lacunar.uncertainty.report import READ_AUC, READ_SHIFT


class Broken(DummyClassifier):
    def fit(self, X, y):
        raise ValueError("cannot <do> this")


class Stopper(DummyClassifier):
    """Ctrl-C in the third fit."""

    fits = 0

    def fit(self, X, y):
        Stopper.fits += 1
        if Stopper.fits == 3:
            raise KeyboardInterrupt
        return super().fit(X, y)


def learner(name, make, ours=False):
    return Learner(name, ours, f"about {name}", lambda seed: make())


@pytest.fixture
def problem(tmp_path):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "up", "down")
    X[generator.uniform(size=X.shape) < 0.3] = np.nan
    lines = [
        ",".join(["" if np.isnan(v) else repr(float(v)) for v in row] + [label])
        for row, label in zip(X, y, strict=True)
    ]
    (tmp_path / "t.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    return load_problem(str(tmp_path / "t.csv"))


TREE = learner("tree", lambda: DecisionTreeClassifier(random_state=0), ours=True)
COMMON = learner("common", DummyClassifier)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_scores_are_those_of_the_folds(problem, n_jobs):
    jobs = (
        [TREE, COMMON]
        if n_jobs == 1
        else [Learner("tree", True, "", make_tree), Learner("common", False, "", make_common)]
    )
    comparison = evaluate(problem, jobs, folds=3, repeats=2, seed=1, n_jobs=n_jobs)
    wrong = []
    for train, test in comparison.splits:
        model = DecisionTreeClassifier(random_state=0).fit(problem.X[train], problem.y[train])
        wrong.append(np.mean(model.predict(problem.X[test]) != problem.y[test]))
    best, other = comparison.scores()
    assert best.learner.name == "tree"
    assert best.mean == pytest.approx(np.mean(wrong), abs=1e-12)
    worse = np.array(list(comparison.split_scores(1).values())) - wrong
    assert other.difference == pytest.approx(worse.mean(), abs=1e-12)
    assert other.half_width == pytest.approx(half_width(worse, 1 / 3), abs=1e-12)
    assert (best.mark, other.mark) == ("best", "")
    assert other.difference > other.half_width
    assert np.nanmean(comparison.rivals[0].row_losses(comparison.problem)) == pytest.approx(np.mean(wrong), abs=1e-12)


def make_tree(seed):
    return DecisionTreeClassifier(random_state=0)


def make_common(seed):
    return DummyClassifier()


def test_equal_learners_are_tied(problem):
    scores = evaluate(problem, [COMMON, learner("twin", DummyClassifier)], folds=3, repeats=2).scores()
    assert [s.mark for s in scores] == ["best", "tied"]


def test_regression_has_r2(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n" + "\n".join(f"{i},{i + 0.5}" for i in range(40)))
    problem = load_problem(str(tmp_path / "t.csv"))
    assert problem.task == "regression"
    comparison = evaluate(problem, [learner("mean", DummyRegressor)], folds=4, repeats=1)
    score = comparison.scores()[0]
    assert (comparison.metric.name, comparison.second.name) == ("RMSE", "R²")
    assert -0.5 < score.second <= 0
    assert score.mean == pytest.approx(np.std(np.arange(40)), rel=0.15)


def test_intervals_of_differences_are_those_of_the_corrected_t_test():
    d = np.array([0.1, 0.2, 0.05, 0.3, 0.0, 0.1])
    spread = np.sqrt((1 / 6 + 1 / 4) * d.var(ddof=1))  # test share 1/5: n_test / n_train = 1/4
    assert half_width(d, 1 / 5) == pytest.approx(stats.t.ppf(0.975, 5) * spread, abs=1e-14)
    assert half_width(np.zeros(4), 0.2) == 0.0
    assert np.isnan(half_width(np.ones(1), 0.2))


def test_too_few_splits_are_said(problem):
    comparison = evaluate(problem, [COMMON, learner("twin", DummyClassifier)], folds=3, repeats=1)
    assert [s.mark for s in comparison.scores()] == ["best", "open"]


def test_failure_is_reported_not_fatal(problem):
    comparison = evaluate(problem, [learner("broken", Broken), TREE], folds=3, repeats=2)
    good, bad = comparison.scores()
    assert good.splits == 6
    assert bad.failure == "ValueError: cannot <do> this"
    assert sum(run.learner == 0 for run in comparison.runs) == 1


def test_an_interrupt_comes_through(problem, tmp_path, monkeypatch):
    """Nobody asked for half a comparison; the shell does, and leaves with 130."""
    Stopper.fits = 0
    with pytest.raises(KeyboardInterrupt):
        evaluate(problem, [TREE, learner("stopper", Stopper)], folds=3, repeats=2)
    Stopper.fits = 0
    monkeypatch.setattr("lacunar.comparison.terminal.learners", lambda *_, **__: [TREE, learner("stopper", Stopper)])
    with pytest.raises(KeyboardInterrupt):
        compare(str(tmp_path / "t.csv"), folds=3, repeats=2)


def test_interrupt_keeps_what_is_finished(problem, tmp_path):
    Stopper.fits = 0
    comparison = evaluate(problem, [TREE, learner("stopper", Stopper)], folds=3, repeats=2, keep_interrupted=True)
    assert comparison.interrupted
    assert [s.splits for s in comparison.scores()] == [2, 2]
    write_report(comparison, tmp_path / "r.html")
    assert "2 of 6 splits" in (tmp_path / "r.html").read_text(encoding="utf-8")


class Page(HTMLParser):
    """Collects open tags and everything a browser would fetch."""

    def __init__(self):
        super().__init__()
        self.open, self.fetched, self.tags = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.fetched += [v for k, v in attrs if k in {"src", "href", "xlink:href", "srcset", "action"}]
        if tag not in {"meta", "br", "img", "link"}:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.fetched += [v for k, v in attrs if k in {"src", "href", "xlink:href"}]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_report_stands_alone(problem, tmp_path):
    pytest.importorskip("matplotlib")
    comparison = evaluate(problem, [TREE, COMMON, learner("<b>&", Broken)], folds=3, repeats=2)
    write_report(comparison, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.fetched
    assert all(link.startswith(("#", "data:")) for link in page.fetched)
    assert not re.search(r"<script|<link|@import|url\((?!#)", text)
    assert text.count("<svg") == text.count("<title>") - 1 >= 4
    assert "&lt;b&gt;&amp;" in text
    assert "<do>" not in text
    assert list(tmp_path.glob(".*")) == []


def test_regions_of_the_report_take_the_keyboard_and_cells_name_their_rows(problem):
    """What scrolls is reached without a mouse; every table has a caption, and heads with a scope."""
    pytest.importorskip("matplotlib")
    text = page(evaluate(problem, [TREE, COMMON], folds=3, repeats=1))
    for tag in re.findall(r'<div class="scroll"[^>]*>|<pre[^>]*>', text):
        assert 'tabindex="0"' in tag
        assert 'role="region"' in tag
        assert re.search(r'aria-label="[^"]+"', tag)
    for name in ("id", "aria-label"):  # each once: figures have a label, and the region and the drawing inside it
        values = re.findall(rf'<(?!figure|svg)[^>]*\b{name}="([^"]+)"', text)
        assert len(values) == len(set(values)) > 4
    references = re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', text)
    assert {a or b for a, b in references} <= set(re.findall(r'\bid="([^"]+)"', text))
    tables = re.findall(r"<table>.*?</table>", text, re.DOTALL)
    assert len(tables) >= 2
    for table in tables:
        assert table.startswith("<table><caption>")
        assert all("scope=" in head for head in re.findall(r"<th\b[^>]*>", table))
        assert all(row.startswith('<th scope="row"') for row in re.findall(r"<tr[^>]*>(<t[hd].*?)</tr>", table)[1:])


def test_figures_of_the_report_are_whole_on_a_phone(problem):
    """No figure asks for more room than the page has, and none is cut where words are long."""
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(5.4, 2))
    figure.subplots().set_yticks([0], ["a word " * 40])
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', svg_of(figure, "t", "d"))[1])
    assert width > 5.4 * 72 + 100
    names = ["gradient boosting, one-hot", "mean and flags, logistic regression", "a third learner with a long name"]
    text = page(evaluate(problem, [replace(TREE, name=name) for name in names], folds=3, repeats=1))
    widths = [float(width) for width in re.findall(r'<svg[^>]*viewBox="0 0 ([\d.]+)', text)]
    assert len(widths) >= 4
    assert max(widths) < 1.15 * 5.4 * 72  # on 358 px of a phone letters of 9 points stay above 7 px
    assert not re.search(r"svg {[^}]*min-width", text)


def test_a_hostile_column_is_text(tmp_path):
    hostile, rows = "<script>alert(1)</script>", "".join(f"{k},{k % 3},{'ab'[k % 2]}\n" for k in range(30))
    (tmp_path / "t.csv").write_text(f"<img src=x>,b,{hostile}\n{rows}")
    problem = load_problem(str(tmp_path / "t.csv"), hostile)
    write_report(evaluate(problem, [COMMON], folds=3, repeats=1), tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text  # the target is named


def test_report_without_matplotlib(problem, tmp_path, monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    comparison = evaluate(problem, [TREE], folds=3, repeats=1)
    monkeypatch.setattr(builtins, "__import__", absent)
    write_report(comparison, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "pictures need matplotlib" in text
    assert "<svg" not in text


def test_the_report_lists_the_commonest_thirty_classes(tmp_path):
    place = tmp_path / "many.csv"
    rows = [[k % 7, f"class {c}"] for c in range(40) for k in range(3 + (c < 12))]
    with place.open("w", newline="") as file:
        csv.writer(file).writerows([["x", "kind"], *rows])
    problem = load_problem(str(place), "kind")
    found = evaluate(problem, [COMMON], folds=3, repeats=1)
    _, table = of_classes(found)
    assert len(table) == 30
    assert {each[0] for each in table} >= {f"class {c}" for c in range(12)}


def test_the_report_foresees_gaps_from_all_columns_as_missingness_report_does(tmp_path):
    """A complete column that explains a gap takes the star from what the gap says of the target."""
    rng = np.random.default_rng(0)
    age, income, other = rng.normal(size=(3, 300))
    ill = np.where(age + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    income[rng.random(300) < 1 / (1 + np.exp(-3 * age))] = np.nan
    other[rng.random(300) < 0.2] = np.nan
    frame = pd.DataFrame({"age": age, "income": income, "other": other})
    found = evaluate(load_problem(frame.assign(ill=ill), "ill"), [COMMON], folds=3, repeats=1)
    heading, rows = of_missing(found)
    whole = missingness_report(frame, ill)
    assert heading == ["column", "missing", "AUC", "excess of yes"]
    assert [row[0] for row in rows] == ["income", "other"]
    for j, row in enumerate(rows, 1):
        assert row[2].removesuffix(" *") == f"{whole.auc[j]:.2f}"
        assert row[3].removesuffix(" *") == f"{whole.target_shift[j]:+.2f} sd"
    assert rows[0][2].endswith("*")
    assert not rows[0][3].endswith("*")
    assert READ_AUC in page(found)
    assert READ_SHIFT in page(found)


def wide(d, n=120):
    """A table whose last column decides, and of which columns lack entries."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, -1] > 0, "up", "down")
    X[rng.random(X.shape) < 0.1] = np.nan
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(d)])
    return evaluate(load_problem(frame.assign(y=y), "y"), [TREE], folds=3, repeats=1)


def test_all_columns_are_ranked_where_there_is_time():
    found = wide(64)
    ranked = importance(found)
    assert ranked["column"] == list(found.problem.frame.columns)
    assert ranked["column"][int(np.argmax(ranked["value"]))] == "c63"


def test_importance_asks_the_model_of_the_first_split():
    """Of a learner of this package, whose fit may take seconds; of others it is fitted again."""
    problem, others = wide(6).problem, replace(TREE, ours=False)
    fitted_again = importance(evaluate(problem, [others], folds=3, repeats=1))
    comparison = evaluate(problem, [TREE], folds=3, repeats=1)
    comparison.rivals[0].learner = replace(TREE, make=None)
    for name, column in importance(comparison).items():
        np.testing.assert_array_equal(column, fitted_again[name])
    assert [run.model is not None for run in comparison.rivals[0].runs] == [True, False, False]


def test_rows_that_a_change_leaves_as_they_were_are_not_predicted_again(monkeypatch):
    fitted_losses, rows = report._fitted_losses, []

    def counted(*args):
        losses = fitted_losses(*args)
        return lambda frame, y: (rows.append(len(frame)), losses(frame, y))[1]

    monkeypatch.setattr(report, "_fitted_losses", counted)
    comparison = wide(6)
    ranked, of_changed = importance(comparison), sum(rows)
    rows.clear()
    every = property(lambda table: np.ones(len(table.frame), dtype=bool), lambda table, changed: None)
    monkeypatch.setattr(report._ChangeableFrame, "changed", every, raising=False)
    twin = importance(comparison)
    assert 2 * of_changed < 1.3 * sum(rows)
    for name, column in ranked.items():
        np.testing.assert_array_equal(column, twin[name])


def test_without_time_the_columns_that_go_most_with_the_target_are_looked_at(monkeypatch):
    pytest.importorskip("matplotlib")
    found = wide(64)
    monkeypatch.setattr("lacunar.learner.importance.process_time", count().__next__)  # a second a look
    ranked = importance(found)
    assert len(ranked["column"]) == 15
    assert "c63" in ranked["column"]
    assert "There was time for 15 columns of 64: those with the highest correlation with the target" in page(found)


def test_of_more_columns_than_a_report_has_time_for_the_target_is_left_out():
    heading, rows = of_missing(wide(101, 60))
    assert heading == ["column", "missing", "AUC"]
    assert len(rows) == 12


def test_pictures_show_what_they_say():
    X = np.array([[np.nan, 1.0], [1.0, 1.0], [np.nan, 2.0]])
    np.testing.assert_array_equal(MissingnessDisplay.from_table(X).image, [[1, 1], [0, 1], [0, 1]])
    share = np.repeat([0.2, 0.5, 1.0], [40, 40, 40])
    groups = CoverageDisplay(share, {}, "error rate").groups()
    assert [len(rows) for rows in groups] == [40, 40, 40]


HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "\"'><svg/onload=1>", "[bold red]x[/bold red][link=file:///etc/passwd]",
    "\x1b[2J\x1b]0;owned\x07", "\u202eevil\u2066", "$\\frac{1", "$x$", "${title}$", "](javascript:alert(1))", "a\nb\r\x85\u2028c", "--><!--", "]]>", "a\x9b31m",
]  # fmt: skip


@pytest.fixture(params=range(0, len(HOSTILE), 5))
def hostile(request, tmp_path):
    """A table whose name, columns, categories and labels come from somebody with bad intentions."""
    names = HOSTILE[request.param : request.param + 5]
    rows = [[str(k), *(f"{name}{k % 2}" for name in names)] for k in range(40)]
    place = tmp_path / "<b onclick=1>\x1b[31m\u202e.csv"
    with place.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["number", *names], *rows])
    return place, names


def test_a_hostile_table_is_shown_and_obeyed_nowhere(hostile, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    place, names = hostile
    broken = learner(names[-1], type("Loud", (Broken,), {"fit": lambda self, X, y: _raise(names[0])}))
    problem = load_problem(str(place), names[0])
    comparison = evaluate(problem, [COMMON, broken], folds=3, repeats=1)
    write_report(comparison, tmp_path / "r.html")
    print_table(comparison)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert all(link.startswith(("#", "data:")) for link in page.fetched)
    assert not re.search(r"<script|<img|<b onclick|<!--(?!.*-->)|onload=1>", text)
    for said in (text, *capsys.readouterr()):
        assert not {c for c in said if not c.isprintable()} - {"\n", "\xa0"}


def _raise(reason):
    raise ValueError(reason)


@pytest.mark.slow
def test_the_command_says_hostile_names_harmlessly(hostile, tmp_path, capsys):
    place, names = hostile
    for wanted in (["--target", names[0]], ["--target", "\x1b[2J"], []):
        assert main(["fit", str(place), *wanted, "--output", str(tmp_path / "m")]) in {0, 1, 2}
        said = "".join(capsys.readouterr())
        assert not {c for c in said if not c.isprintable()} - {"\n"}
    assert main(["predict", str(tmp_path / "m"), str(place), "--output", str(tmp_path / "p.csv")]) == 0
    with (tmp_path / "p.csv").open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == [names[-1].strip()]  # a file keeps every character


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_verbose_names_every_learner(n_jobs, monkeypatch, capsys):
    progress = pytest.importorskip("rich.progress")
    said = []
    monkeypatch.setattr(progress.Progress, "update", lambda bar, task, **fields: said.append(fields))
    names = ["KARMA gamma=2", "no columns"]
    compare(learner=names, folds=2, repeats=1, n_jobs=n_jobs, verbose=True)
    told = {fields["description"] for fields in said}
    assert {f"{name} done, fold {s} of 2" for name in names for s in (1, 2)} <= told
    assert max(fields.get("completed", 0) for fields in said) == 4
    assert "rows" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_support_vector_machine_and_a_forest_compete(task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no") if task == "classification" else 1e6 + 1e4 * X[:, 0]
    X[rng.random(X.shape) < 0.2] = np.nan
    for rival in (x for x in learners(task) if x.name in ("mean + SVM", "random forest")):
        model = rival.make(0).fit(X, y)
        assert model.score(X, y) > 0.6  # of the rows right, or R2: an SVM on a target in units of 1e6 has none


def test_a_learner_is_left_out_above_its_most_rows(problem):
    n = len(problem.y)
    few = replace(learner("few rows", DummyClassifier), most_rows=n - 1)
    enough = replace(learner("rows enough", DummyClassifier), most_rows=n)
    comparison = evaluate(problem, [few, enough, COMMON], folds=2, repeats=1)
    assert {run.learner for run in comparison.runs} == {1, 2}
    last = comparison.scores()[-1]
    assert last.learner.name == "few rows"
    assert f"left out above {n - 1} rows" in last.cut
    assert f"there are {n}" in last.cut
    assert any("few rows" in line for line in comparison.caveats)
