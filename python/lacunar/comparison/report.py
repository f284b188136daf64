"""A comparison as one HTML page that needs nothing beside it: light and dark, from a phone to a wide screen, readable aloud."""

from __future__ import annotations

import os
import platform
import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.metrics import precision_recall_fscore_support
from threadpoolctl import threadpool_limits

from lacunar import __version__
from lacunar._random import fixed_seed, generator
from lacunar.comparison.cells import counted, cut, pandas_module, visible
from lacunar.comparison.comparison import Comparison, Score
from lacunar.comparison.problem import Problem
from lacunar.comparison.rival import chances
from lacunar.comparison.words import cells, headings, measured, number, summary
from lacunar.learner.importance import permutation_importance
from lacunar.plotting import CoverageDisplay, ImportanceDisplay, MissingnessDisplay, ScoresDisplay
from lacunar.plotting.style import line_styles, quiet
from lacunar.uncertainty.hypertext import (
    facts_list,
    row_name,
    scrolling,
    section,
    shown,
    table_of,
    text_table,
    whole_page,
    write_whole,
)
from lacunar.uncertainty.mechanisms import MaskEvidence, mask_evidence, numbered, target_numbers
from lacunar.uncertainty.report import READ_AUC, READ_SHIFT
from lacunar.uncertainty.shift import evenly

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5  # learners in pictures with a line for each
_NAMED = 30  # columns up to which the picture of missing entries names them
# Colours that follow the page, light or dark.
_INKS = {"1f2933": "ink", "000000": "ink", "52606d": "quiet", "6b7785": "quiet", "d9dee4": "rule", "ffffff": "paper"}
_LETTERS, _KEY = 64, 7  # a line under a picture takes so many, and so many of them a key of the legend
_RATES = 15  # columns in the table of missing entries
_REPEATS, _ROWS = 3, 150
_SECONDS = 15.0  # of the processor, after which no more columns are looked at
_SCREENED_ROWS = 1000  # by which columns are put in the order in which they are looked at
_REPORT_ROWS, _REPORT_COLUMNS = 400, 12
_PREDICTING = 100  # columns up to which the target is predicted from all of them in about a second
_CLASSES = 30  # of the table class by class: the commonest


class Results(NamedTuple):
    """What the sections show: the learners that finished, best first, without constants unless only these finished."""

    comparison: Comparison
    scores: list[Score]

    @property
    def problem(self) -> Problem:
        """The problem that was compared on."""
        return self.comparison.problem

    @property
    def best(self) -> str:
        """Name of the best learner."""
        return self.comparison.learners[self.comparison.best].name

    def drawn(self) -> Iterator[tuple[Score, int]]:
        """Learners of pictures with a line for each, and their numbers."""
        for score in self.scores[:_SHOWN]:
            yield score, self.comparison.learners.index(score.learner)


def write_report(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the page; it appears whole or not at all.

    Parameters
    ----------
    comparison : Comparison
    path : path-like

    Raises
    ------
    OSError
        When the place cannot be written.
    """
    write_whole(path, page(comparison))


def page(comparison: Comparison) -> str:
    """The HTML of the report."""
    scores = comparison.scores()
    problem = comparison.problem
    n, d = problem.frame.shape
    facts = [
        ("rows", f"{n:,}"),
        ("columns", f"{d:,}"),
        ("missing", f"{100 * problem.missing_share:.0f} %"),
        ("target", cut(problem.target)),
    ]
    if problem.task == "classification":
        facts.append(("classes", str(len(problem.classes))))
    warned = "".join(f"<li>{shown(text)}</li>" for text in comparison.warnings)
    read = [note for note in problem.notes if not note.startswith("Warning: ")]
    body = Template(Path(__file__).with_name("body.html").read_text(encoding="utf-8")).substitute(
        summary=shown(summary(comparison, scores)),
        warnings=f'<section class="warnings"><h2>Look at first</h2><ul>{warned}</ul></section>' if warned else "",
        caveats="".join(f'<p class="caveat">{shown(line)}</p>' for line in comparison.caveats),
        facts=facts_list(facts),
        scores=_scores(comparison, scores),
        sections="".join(_sections(comparison, scores)),
        next=shown(_next(comparison)),
        read="".join(f"<li>{shown(note)}</li>" for note in read),
        measured=shown(measured(comparison)),
        learners="".join(f"<li><b>{shown(x.name)}</b>: {shown(x.about)}</li>" for x in comparison.learners),
    )
    return whole_page("lacunar compare", Path(problem.source).name, body, _versions())


# -- tables -------------------------------------------------------------------------------------------------------------


def _scores(comparison: Comparison, scores: list[Score]) -> str:
    heading = [name or "remark" for name in headings(comparison)]
    return table_of(f"Scores of {len(scores)} learners, best first", heading, [_row(comparison, x) for x in scores])


def _row(comparison: Comparison, score: Score) -> str:
    name = row_name(score.learner.name)
    if score.failure:
        width = len(headings(comparison)) - 1
        return f'<tr class="failed">{name}<td colspan="{width}">failed: {shown(score.failure)}</td></tr>'
    numbers = "".join(f"<td>{shown(cell)}</td>" for cell in cells(comparison, score))
    kind = f"{score.mark} {'ours' if score.learner.ours else ''}".strip()
    return f'<tr class="{kind}">{name}{numbers}<td class="mark">{shown(comparison.mark_of(score))}</td></tr>'


# -- sections -----------------------------------------------------------------------------------------------------------


def _sections(comparison: Comparison, scores: list[Score]) -> list[str]:
    ended = [score for score in scores if score.ended]
    results = Results(comparison, [score for score in ended if not score.learner.baseline] or ended)
    last = _calibration if comparison.problem.classes else _residuals
    parts = (_differences, _classes, _rates, _missing, _by_missing, _columns, last) if ended else ()
    sections: list[str] = []
    try:
        for part in parts:
            sections.append(part(results) or "")
    except ImportError as error:
        sections.append(f"<section><p class='caveat'>{shown(f'No pictures: {error}')}</p></section>")
    return sections


def _figure(figure: Any, title: str, description: str) -> str:
    inside = scrolling(svg_of(figure, title, description), title)
    return f'<figure role="group" aria-label="{shown(title)}">{inside}</figure>'


def _differences(results: Results) -> str:
    comparison, scores = results
    widths = [0.0 if np.isnan(s.half_width) else s.half_width for s in scores]
    name = comparison.metric.name
    bars = ScoresDisplay(
        [s.learner.name for s in scores], [s.mean for s in scores], widths, [s.learner.ours for s in scores], name
    )
    figure = bars.plot(_axes(0.42 * len(scores) + 1.0)).figure_
    bars.ax_.axvline(scores[0].mean, color="#52606d", linewidth=0.8, linestyle="--")
    better = "lower" if comparison.metric.lower else "higher"
    bars.ax_.set_xlabel(f"{name} ({better} is better)\n± interval of the difference")
    text = (
        "The dashed line is the best. A bar that reaches it belongs to a learner that cannot be told from the best on these folds. "
        "lacunar and KARMA are green; the learner without columns is left out of the picture."
    )
    said = "; ".join(f"{s.learner.name} {number(comparison, s.mean)}" for s in scores)
    return section("Differences", text, _figure(figure, f"{name} by learner", said))


def _classes(results: Results) -> str | None:
    table = of_classes(results.comparison)
    if table is None:
        return None
    text = f"Predictions of {results.best} for rows it had not seen. Recall: the share of a class's rows that it finds. Precision: the share of its answers of a class that are right."
    return section("Class by class", text, text_table("Classes, the commonest first", *table))


def _rates(results: Results) -> str:
    frame = results.problem.frame
    share = frame.isna().mean()
    names = [cut(visible(str(name)), 16) for name in frame.columns]
    top, below = _axes(4.4, 2, height_ratios=[1, 3], sharex=True)
    display = MissingnessDisplay.from_table(frame, names if len(names) <= _NAMED else None, ax=below)
    if len(names) * max(map(len, names), default=0) > _LETTERS:  # side by side they would run into one another
        below.tick_params(axis="x", labelrotation=90)
    top.bar(np.arange(len(names)) + 0.5, 100 * share.to_numpy(), width=0.8, color="#9aa5b1")
    top.set_ylabel("% missing", color="#52606d")
    quiet(top)
    top.tick_params(labelbottom=False)
    most = share.sort_values(ascending=False, kind="stable")[:_RATES]
    rows = [[str(name), f"{part:.1%}", f"{int(frame[name].isna().sum()):,}"] for name, part in most.items() if part > 0]
    text = "Above, the share missing of every column of the file; below, its rows: dark is observed, light is missing, rows with the same pattern together."
    said = ", ".join(f"{cut(name)} {part}" for name, part, _ in rows) or "nothing is missing"
    parts = [_figure(display.figure_, "Missing entries by column and row", said)]
    if rows:
        parts.append(text_table("Columns with most missing entries", ["column", "missing", "rows"], rows))
    return section("What is missing", text, *parts)


def _missing(results: Results) -> str | None:
    table = of_missing(results.comparison)
    if table is None:
        return None
    stars = "* is p < 0.05, corrected for the number of columns shown."
    text = " ".join([READ_AUC, *([READ_SHIFT] if len(table[0]) > 3 else []), stars])
    if len(results.problem.y) > _REPORT_ROWS:
        text += f" Computed on {_REPORT_ROWS} rows spread over the table."
    return section(
        "What being missing says", text, text_table("How well gaps are predicted, and what they say", *table)
    )


def _by_missing(results: Results) -> str | None:
    gone = results.problem.frame.isna().sum(axis=1).to_numpy()
    if np.ptp(gone) == 0:
        return None
    d = results.problem.frame.shape[1]
    losses = {
        score.learner.name: results.comparison.rivals[k].row_losses(results.problem) for score, k in results.drawn()
    }
    measure = "error rate" if results.problem.task == "classification" else "RMSE"
    display = CoverageDisplay(
        1 - gone / d, losses, measure, strong=[s.learner.name for s in results.scores if s.learner.ours]
    )
    display.plot(_axes(3.8))
    places, groups = display.ax_.get_xticks(), display.groups()
    words = [f"{gone[rows].mean():.0f}\n{len(rows)} rows" for rows in groups]
    _labelled(display.ax_, places, words)
    display.ax_.set_xlabel("missing entries in the row")
    _legend_below(display.ax_)
    text = f"{measure[0].upper()}{measure[1:]} on rows that were not learned from, grouped by how many of their entries are missing."
    said = "; ".join(
        f"{word.split()[0]} missing: {np.nanmean(losses[results.scores[0].learner.name][rows]):.3g}"
        for word, rows in zip(words, groups, strict=True)
    )
    return section("Where the errors are", text, _figure(display.figure_, "Score by number of missing entries", said))


def _columns(results: Results) -> str | None:
    importances = importance(results.comparison)
    if not importances["column"]:
        return None
    importances["column"] = [cut(visible(name), 24) for name in importances["column"]]
    display = ImportanceDisplay(importances, n_shown=15)
    figure = display.plot(_axes(0.42 * len(display.shown()) + 1.4)).figure_
    figure.axes[0].set_xlabel("rise of the loss when the column's entries are shuffled")
    text = f"Bars show how much worse {results.best} gets on held-out rows when the values of a column are shuffled between rows, and when its missing entries are."
    if len(importances["column"]) < results.problem.frame.shape[1]:
        text += (
            f" There was time for {counted(len(importances['column']), 'column')} of {results.problem.frame.shape[1]:,}: "
            "those with the highest correlation with the target, one by one."
        )
    return section("Which columns matter", text, _figure(figure, "Importance of columns", ", ".join(display.shown())))


def _calibration(results: Results) -> str | None:
    from sklearn.calibration import calibration_curve

    ax = _axes(4.2)
    rows: list[list[str]] = []
    ax.plot([0, 1], [0, 1], color="#52606d", linewidth=0.8, linestyle="--")
    drawn = list(results.drawn())
    ours = [score.learner.name for score, _ in drawn if score.learner.ours]
    styles = line_styles([score.learner.name for score, _ in drawn], ours)
    for (score, k), style in zip(drawn, styles, strict=True):
        y, _, proba = results.comparison.rivals[k].held_out(results.problem)
        if proba is None:
            continue
        top = proba.argmax(axis=1)
        sure, right = proba.max(axis=1).clip(0, 1), (np.array(results.problem.classes)[top] == y).astype(int)
        accuracy, said = calibration_curve(right, sure, n_bins=8, strategy="quantile")
        ax.plot(said, accuracy, label=score.learner.name, marker="o", markersize=4, linewidth=2, **style)
        rows.append([score.learner.name, f"{sure.mean():.0%}", f"{right.mean():.0%}"])
    if not rows:
        return None
    ax.set_xlabel("probability that it gives its answer")
    ax.set_ylabel("share of such answers that are right")
    quiet(ax, grid="y")
    _legend_below(ax)
    text = "On the dashed line a learner is right as often as it says; below it is too sure of itself."
    described = "; ".join(f"{name}: mean probability {said}, accuracy {accuracy}" for name, said, accuracy in rows)
    table = text_table("Of the answers that it gives, on average", ["learner", "mean probability", "accuracy"], rows)
    return section("Calibration", text, _figure(ax.figure, "Calibration", described), table)


def _residuals(results: Results) -> str | None:
    from sklearn.metrics import PredictionErrorDisplay

    y, predicted, _ = results.comparison.rivals[results.comparison.best].held_out(results.problem)
    display = PredictionErrorDisplay.from_predictions(
        y, predicted, kind="residual_vs_predicted", subsample=1000, random_state=0, ax=_axes(3.8), scatter_kwargs={"alpha": 0.5, "s": 12, "color": "#0b7a75"}
    )  # fmt: skip
    display.ax_.set_xlabel("predicted")
    display.ax_.set_ylabel("observed - predicted")
    quiet(display.ax_, grid="y")
    text = f"Predictions of {results.best} for rows it had not seen. A slope or a fan shows what it does not capture."
    return section(
        "Residuals", text, _figure(display.figure_, "Residuals", f"standard deviation {np.std(y - predicted):.4g}")
    )


def _next(comparison: Comparison) -> str:
    """The command that makes a model of the best learner."""
    problem, finished = comparison.problem, [score for score in comparison.scores() if score.ended]
    learner = finished[0].learner.name if finished else "lacunar"
    table = problem.source if Path(problem.source).exists() else "TABLE"
    parts = ["lacunar", "fit", table, "--target", problem.target, "--learner", learner, "--output", "model.lacunar"]
    return shlex.join(parts)


# -- what the sections say ----------------------------------------------------------------------------------------------


@threadpool_limits.wrap(limits=1)  # threads of small predictions wait for one another longer than they work
def importance(comparison: Comparison) -> dict[str, Any]:
    """How much the loss of the best learner on held-out rows of the first split rises when a column's values, or its gaps, are permuted.

    Columns "column", "value", "value_sd", "missing", "missing_sd", as `ImportanceDisplay` draws them: log loss where the learner gives
    probabilities, otherwise the error rate; the squared error in units of the target's variance. O(columns) predictions.
    """
    train, test = comparison.splits[0]
    rows = test[:_ROWS]
    row_losses, y = _fitted_losses(comparison, train), comparison.problem.y[rows]
    frame = comparison.problem.frame.iloc[rows].reset_index(drop=True)
    before = row_losses(frame, y)

    def losses(tables: Iterable[_ChangeableFrame]) -> list[float]:
        """Mean losses of tables; only changed rows are predicted again."""
        changed = [(table.frame.loc[table.changed], np.flatnonzero(table.changed)) for table in tables]
        after = np.tile(before, (len(changed), 1))
        if any(len(places) for _, places in changed):
            stacked = pandas_module().concat([rows for rows, _ in changed], ignore_index=True)
            numbers = np.repeat(np.arange(len(changed)), [len(places) for _, places in changed])
            places = np.concatenate([places for _, places in changed])
            after[numbers, places] = row_losses(stacked, y[places])
        return list(after.mean(axis=1))

    names, rng = [str(name) for name in frame.columns], generator(comparison.seed)
    order = strongest_first(comparison.problem, train[:: -(-len(train) // _SCREENED_ROWS)])
    table = _ChangeableFrame(frame, np.zeros(len(frame), dtype=bool))
    return permutation_importance(names, table, losses, _REPEATS, rng, order=order, seconds=_SECONDS)


def strongest_first(problem: Problem, rows: NDArray[np.intp]) -> list[int]:
    """Numbers of the file's columns, strongest first, by the rank correlation of their values and gaps with the target
    on these rows.
    """
    X, y = problem.X[rows], problem.y[rows]
    targets = y[:, None] == np.array(problem.classes) if problem.classes else rankdata(y)[:, None]
    missing = np.isnan(X)
    inputs = np.hstack([np.where(missing, len(X) / 2, rankdata(X, axis=0, nan_policy="omit")), missing])
    with np.errstate(invalid="ignore", divide="ignore"):  # of columns that are constant
        together = np.nan_to_num(np.corrcoef(inputs.T, targets.T)[: inputs.shape[1], inputs.shape[1] :])
    strength = np.zeros(problem.frame.shape[1])
    np.maximum.at(strength, np.tile(problem.encoder.source_, 2), np.square(together).sum(axis=1))
    return [int(column) for column in np.argsort(-strength, kind="stable")]


class _ChangeableFrame:
    """A frame, and which of its rows differ from the original; a gap that is filled gets a value drawn from its column."""

    def __init__(self, frame: pd.DataFrame, changed: NDArray[np.bool_]) -> None:
        self.frame, self.changed = frame, changed

    def missing(self, column: int) -> NDArray[np.bool_]:
        return np.asarray(self.frame.iloc[:, column].isna())

    def _with_column(self, column: int, values: pd.Series[Any], changed: NDArray[np.bool_]) -> _ChangeableFrame:
        return _ChangeableFrame(self.frame.assign(**{str(self.frame.columns[column]): values}), changed)

    def with_values(self, column: int, rows: NDArray[np.intp], sources: NDArray[np.intp]) -> _ChangeableFrame:
        values, changed = self.frame.iloc[:, column].copy(), np.zeros(len(self.frame), dtype=bool)
        before, after = values.iloc[rows].to_numpy(), values.iloc[sources].to_numpy()
        values.iloc[rows], changed[rows] = after, before != after
        return self._with_column(column, values, changed)

    def with_mask(self, column: int, shown: NDArray[np.intp], hidden: NDArray[np.intp], rng: Any) -> _ChangeableFrame:
        values = self.frame.iloc[:, column].copy()
        values.iloc[shown] = values.iloc[rng.choice(np.flatnonzero(values.notna()), len(shown))].to_numpy()
        values = values.mask(np.isin(np.arange(len(values)), hidden))
        return self._with_column(column, values, np.asarray(values.isna()) != self.missing(column))


def _fitted_losses(
    comparison: Comparison, train: NDArray[np.intp]
) -> Callable[[pd.DataFrame, NDArray[Any]], NDArray[np.float64]]:
    """Losses of rows by the best learner, fitted to the training rows of the first split."""
    problem, learner = comparison.problem, comparison.learners[comparison.best]
    rows = problem.frame.iloc if learner.frames else problem.X
    model = next((run.model for run in comparison.rivals[comparison.best].done if run.split == 0), None)
    if model is None:
        with warnings.catch_warnings(action="ignore"):
            model = learner.make(comparison.seed).fit(rows[train], problem.y[train])

    def losses(frame: pd.DataFrame, y: NDArray[Any]) -> NDArray[np.float64]:
        with warnings.catch_warnings(action="ignore"):
            X = frame if learner.frames else np.asarray(problem.encoder.transform(frame))
            proba = chances(model, X, problem) if problem.classes else None
            predicted = np.ravel(model.predict(X)) if proba is None else None
        if proba is not None:
            right = proba[np.arange(len(y)), np.searchsorted(problem.classes, y)]
            return np.asarray(-np.log(np.clip(right, 1e-6, None)))
        if problem.classes:
            return np.asarray(predicted != y, dtype=np.float64)
        return np.asarray((predicted - y) ** 2 / (float(np.var(problem.y)) or 1.0))

    return losses


def of_missing(comparison: Comparison) -> tuple[list[str], list[list[str]]] | None:
    """Heading and rows of a table on how well gaps are predicted and what they say of the target; None where nothing is
    missing.
    """
    problem = comparison.problem
    share = problem.frame.isna().mean().to_numpy()
    columns = [int(j) for j in np.argsort(-share, kind="stable") if 0 < share[j] < 1][:_REPORT_COLUMNS]
    if not columns:
        return None
    evidence = _evidence(problem, columns)
    names = [str(problem.frame.columns[j]) for j in columns]
    cells = [
        names,
        [f"{part:.0%}" for part in share[columns]],
        _starred(evidence.auc, evidence.auc_p_value, columns, "{:.2f}"),
    ]
    heading = ["column", "missing", "AUC"]
    if evidence.target_shift is not None and evidence.target_p_value is not None:
        cells.append(_starred(evidence.target_shift, evidence.target_p_value, columns, "{:+.2f} sd"))
        heading.append(f"excess of {cut(problem.classes[1] if problem.classes else problem.target, 16)}")
    return heading, [list(row) for row in zip(*cells, strict=True)]


def _starred(values: Any, p_values: Any, columns: Sequence[int], form: str) -> list[str]:
    """Values of columns as text, with a star where p < 0.05."""
    stars = [" *" if p_values[j] < 0.05 else "" for j in columns]
    return [
        form.format(values[j]) + star if np.isfinite(values[j]) else "" for j, star in zip(columns, stars, strict=True)
    ]


def _evidence(problem: Problem, columns: Sequence[int]) -> MaskEvidence:
    """What `missingness_report` says of these columns, from all columns and from rows spread over the table."""
    rows, d = evenly(len(problem.y), _REPORT_ROWS), problem.frame.shape[1]
    with warnings.catch_warnings(action="ignore"):
        table = numbered(problem.frame.iloc[rows])
        width = d + len(table.indicators.source)
        # A number or one of two classes, from not too many columns.
        target = target_numbers(problem.y[rows]) if len(problem.classes) in (0, 2) and width <= _PREDICTING else None
        shown = np.isin(np.arange(d), columns)
        return mask_evidence(table.table, target, generator(fixed_seed(None)), shown, table.indicators)


def of_classes(comparison: Comparison) -> tuple[list[str], list[list[str]]] | None:
    """Heading and rows of a table: rows, recall and precision of every class."""
    if comparison.problem.task != "classification":
        return None
    y, predicted, _ = comparison.rivals[comparison.best].held_out(comparison.problem)
    by_rows = sorted(comparison.problem.classes, key=lambda label: -int(np.sum(comparison.problem.y == label)))
    classes = by_rows[:_CLASSES]
    precision, recall, _, _ = precision_recall_fscore_support(y, predicted, labels=classes, zero_division=np.nan)
    rows = [
        [label, f"{int(np.sum(comparison.problem.y == label)):,}", _share(recall[k]), _share(precision[k])]
        for k, label in enumerate(classes)
    ]  # fmt: skip
    return ["class", "rows", "recall", "precision"], rows


def _share(value: float) -> str:
    return "never predicted" if np.isnan(value) else f"{value:.0%}"


# -- pictures -----------------------------------------------------------------------------------------------------------


def _axes(height: float, *rows: int, **how: Any) -> Any:
    """Axes of a figure without a window, which needs no closing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[cli]'") from None
    return Figure(figsize=(5.4, height), layout="constrained").subplots(*rows, **how)


def _legend_below(ax: Any) -> None:
    """Move the legend below the axes: beside them it would take half of a narrow picture."""
    handles, labels = ax.get_legend_handles_labels()
    if ax.get_legend() is not None:
        ax.get_legend().remove()
    look = {"frameon": False, "fontsize": 9, "labelcolor": "#1f2933"}
    columns = max(1, min(len(labels), 3, _LETTERS // (_KEY + max(map(len, labels), default=0))))
    ax.figure.legend(handles, labels, loc="outside lower center", ncols=columns, **look)


def _labelled(ax: Any, places: Sequence[float], words: Sequence[str]) -> None:
    """Labels of places, but none that would run into the one before."""
    room = 0.12 * (max(places) - min(places) or 1.0)
    labelled: list[int] = []
    for k in np.argsort(places):
        if not labelled or places[k] - places[labelled[-1]] >= room:
            labelled.append(int(k))
    ax.set_xticks([places[k] for k in labelled], [words[k] for k in labelled])


def svg_of(figure: Any, title: str, description: str) -> str:
    """A figure as SVG to put inside HTML: a title and a description to read aloud, colours of the page, as wide as its
    place.
    """
    import matplotlib as mpl

    buffer = StringIO()
    with mpl.rc_context({"svg.hashsalt": f"lacunar {title}"}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a letter that the font lacks
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True, bbox_inches="tight")
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    for size in ("height", "width"):
        svg = re.sub(rf'(<svg[^>]*?) {size}="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\1f{crc32(title.encode())}-", svg)  # figures of one page share no ids
    colours = rf"(fill|stroke): #({'|'.join(_INKS)})"
    svg = re.sub(colours, lambda match: f"{match[1]}: var(--{_INKS[match[2]]})", svg)
    # Glyphs that name no colour are black, which a dark page swallows.
    svg = svg.replace("<svg ", '<svg style="fill: var(--ink)" ', 1)
    said = f"<title>{shown(title)}</title><desc>{shown(description)}</desc>"
    return re.sub(
        r"<svg([^>]*)>", lambda match: f'<svg role="img" aria-label="{shown(title)}"{match[1]}>{said}', svg, count=1
    )


def _versions() -> str:
    return (
        f"lacunar {__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}"
    )
