"""What a comparison says in words, and the same as one HTML page that needs nothing beside it."""

from __future__ import annotations

import os
import platform
import re
from html import escape
from io import StringIO
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import scipy
import sklearn

from lacunar import __version__
from lacunar.compare.comparison import Comparison, Score
from lacunar.plotting import CoverageDisplay, MissingnessDisplay, ScoresDisplay

MARKS = {"best": "lowest", "tied": "not distinguishable from it", "": ""}
_SHOWN = 6  # learners in the picture of score against share observed


def visible(text: str) -> str:
    r"""Text that does nothing but show: what is not printable stands as its escape.

    Names of columns, labels and files are not to be trusted: a terminal executes control characters, marks of writing direction
    reverse the rest of a line, and line breaks make lines that look like ours. Text for HTML must be escaped as well.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str

    Examples
    --------
    >>> from lacunar.compare import visible
    >>> print(visible("age\x1b[2J\u202e"))
    age\x1b[2J\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def summary(comparison: Comparison, scores: list[Score]) -> str:
    """One sentence on who predicts best."""
    good = [s for s in scores if not s.failure]
    if not good:
        return "No learner finished, so there is nothing to compare."
    best = good[0]
    form = ".3f" if comparison.problem.task == "classification" else ".4g"
    tied = [s.learner.name for s in good[1:] if s.mark == "tied"]
    text = f"{best.learner.name} has the lowest {comparison.measure} on {comparison.problem.target}, {best.mean:{form}}"
    if best.splits < 2:
        return f"{text}, on a single split: too little to tell the learners apart."
    if not tied:
        return f"{text}, and every other learner is distinguishably worse."
    names = tied[0] if len(tied) == 1 else f"{', '.join(tied[:-1])} and {tied[-1]}"
    return f"{text}; {names} {'is' if len(tied) == 1 else 'are'} not distinguishable from it."


def caveats(comparison: Comparison, scores: list[Score]) -> list[str]:
    """What the reader must know before believing the table."""
    lines = []
    done = max((s.splits for s in scores), default=0)
    if comparison.interrupted:
        lines.append(
            f"Interrupted: scores are from the {done} of {len(comparison.splits)} splits that all learners finished."
        )
    for score in scores:
        if score.unconverged:
            lines.append(f"{score.learner.name} did not converge in {score.unconverged} fits.")
    if comparison.problem.task == "classification" and not comparison.stratified:
        lines.append("The rarest class has fewer rows than there are folds, so the folds are not stratified.")
    return lines


def measured(comparison: Comparison) -> str:
    """How the numbers came about."""
    stratified = "stratified " if comparison.stratified else ""
    return (
        f"{comparison.repeats} repeats of {stratified}{comparison.folds}-fold cross-validation, the same folds for all; "
        "columns, imputation and parameters are learned on the training folds only, the list of categories on all rows. "
        "± is the standard error over repeats (over folds if there is one repeat). "
        "Not distinguishable: two-sided p > 0.05 in a paired t test over the splits with the corrected variance of Nadeau "
        "and Bengio (2003), not adjusted for the number of learners. "
        "Times are means per split on this machine, with one thread."
    )


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


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write beside the place, then move: a killed run leaves what was there before."""
    place = Path(path)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8", errors="backslashreplace")  # half characters out of a forged file
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def shown(text: str) -> str:
    """Text inside HTML: it starts no element and turns no line around."""
    return escape(visible(text))


def page(comparison: Comparison) -> str:
    """The HTML of the report."""
    scores = comparison.scores()
    problem = comparison.problem
    n, d = problem.X.shape
    facts = [
        ("rows", f"{n:,}"),
        ("columns", f"{d:,}"),
        ("missing", f"{100 * problem.missing_share:.0f} %"),
        ("target", problem.target),
    ]
    if problem.task == "classification":
        facts.append(("classes", str(len(np.unique(problem.y)))))
    return PAGE.substitute(
        title=shown(f"lacunar compare: {Path(problem.source).name}"),
        source=shown(Path(problem.source).name),
        summary=shown(summary(comparison, scores)),
        caveats="".join(f'<p class="caveat">{shown(line)}</p>' for line in caveats(comparison, scores)),
        facts="".join(f"<div><dt>{shown(k)}</dt><dd>{shown(v)}</dd></div>" for k, v in facts),
        head="".join(f"<th>{shown(name)}</th>" for name in headings(comparison)),
        rows="".join(_row(comparison, score) for score in scores),
        pictures=_pictures(comparison, [s for s in scores if not s.failure]),
        read="".join(f"<li>{shown(note)}</li>" for note in problem.notes),
        measured=shown(measured(comparison)),
        learners="".join(f"<li><b>{shown(x.name)}</b>: {shown(x.about)}</li>" for x in comparison.learners),
        versions=shown(_versions()),
    )


def headings(comparison: Comparison) -> list[str]:
    """Names of the columns of the table of scores; the last holds marks."""
    r2 = ["R²"] if comparison.problem.task == "regression" else []
    return ["learner", comparison.measure, "± s.e.", *r2, "fit", "predict", ""]


def cells(comparison: Comparison, score: Score) -> list[str]:
    """The numbers of one learner as text, in the order of `headings`, without its name and mark."""
    regression = comparison.problem.task == "regression"
    mean = f"{score.mean:.4g}" if regression else f"{score.mean:.3f}"
    error = "" if np.isnan(score.error) else f"{score.error:.2g}" if regression else f"{score.error:.3f}"
    return [
        mean,
        error,
        *([f"{score.r2:.3f}"] if regression else []),
        seconds(score.fit_seconds),
        seconds(score.predict_seconds),
    ]


def _row(comparison: Comparison, score: Score) -> str:
    name = f'<td class="name">{shown(score.learner.name)}</td>'
    if score.failure:
        width = len(headings(comparison)) - 1
        return f'<tr class="failed">{name}<td colspan="{width}">failed: {shown(score.failure)}</td></tr>'
    numbers = "".join(f"<td>{cell}</td>" for cell in cells(comparison, score))
    kind = f"{score.mark} {'ours' if score.learner.ours else ''}".strip()
    return f'<tr class="{kind}">{name}{numbers}<td class="mark">{MARKS[score.mark]}</td></tr>'


def seconds(value: float) -> str:
    """A time a person reads at a glance."""
    return f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s"


def _pictures(comparison: Comparison, scores: list[Score]) -> str:
    try:
        drawn = _draw(comparison, scores)
    except ImportError as error:
        return f"<section><p class='caveat'>{shown(f'No pictures: {error}')}</p></section>"
    return "".join(
        f"<section><h2>{shown(title)}</h2><p>{shown(text)}</p><figure>{svg}</figure></section>"
        for title, text, svg in drawn
    )


def _draw(comparison: Comparison, scores: list[Score]) -> list[tuple[str, str, str]]:
    problem = comparison.problem
    drawn = []
    shown = [s for s in scores if not s.learner.baseline]  # it would stretch the axis
    if shown:
        means, errors, ours = zip(*((s.mean, s.error, s.learner.ours) for s in shown), strict=True)
        bars = ScoresDisplay([s.learner.name for s in shown], means, errors, ours, comparison.measure)
        text = "KARMA in green, other learners in grey. The line without columns is left out of the picture."
        drawn.append(("Scores", text, svg_of(bars.plot(_axes(0.42 * len(shown) + 0.7)).figure_)))
    entries = MissingnessDisplay.from_table(
        problem.X, [visible(name) for name in problem.encoder.get_feature_names_out()], ax=_axes(3.6)
    )
    text = "Dark is observed, light is missing. Rows with the same pattern lie together, the most complete at the top."
    drawn.append(("What is missing", text, svg_of(entries.figure_)))
    share = 1 - np.isnan(problem.X).mean(axis=1)
    if shown and np.ptp(share) > 0:
        place = {id(learner): k for k, learner in enumerate(comparison.learners)}
        losses = {s.learner.name: comparison.row_losses(place[id(s.learner)]) for s in shown[:_SHOWN]}
        lines = CoverageDisplay(
            share, losses, comparison.measure, strong=[s.learner.name for s in shown if s.learner.ours]
        )
        text = f"{comparison.measure[0].upper()}{comparison.measure[1:]} on test rows, grouped by how much of the row is observed."
        drawn.append(("Where the errors are", text, svg_of(lines.plot(_axes(3.6)).figure_)))
    return drawn


def _axes(height: float) -> Any:
    """Axes of a figure without a window, which needs no closing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[cli]'") from None
    return Figure(figsize=(8.2, height), layout="constrained").subplots()


def svg_of(figure: Any) -> str:
    """A figure as SVG to put inside HTML: no prolog, no metadata, as wide as its place."""
    import matplotlib as mpl

    buffer = StringIO()
    with mpl.rc_context({"svg.hashsalt": "lacunar"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return re.sub(
        r'(<svg[^>]*?) width="[^"]*"', r"\1", re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", svg, count=1), count=1
    )


def _versions() -> str:
    return (
        f"lacunar {__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}"
    )


PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { --ink: #1f2933; --quiet: #6b7785; --rule: #e3e7ec; --ours: #0b7a75; --paper: #fdfcfa; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.6 system-ui, -apple-system, "Segoe UI",
  "DejaVu Sans", sans-serif; font-variant-numeric: tabular-nums; }
main { max-width: 54rem; margin: 0 auto; padding: 4rem 1.5rem 5rem; }
.over { color: var(--ours); font-size: .8rem; letter-spacing: .12em; text-transform: uppercase; margin: 0; }
h1 { font: 500 2rem/1.25 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: .3rem 0 1.2rem; overflow-wrap: anywhere; }
.summary { font: 1.25rem/1.55 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: 0 0 1rem; }
.caveat { border-left: 3px solid #c8553d; padding-left: .8rem; color: #7a3324; margin: .4rem 0; }
dl.facts { display: flex; flex-wrap: wrap; gap: .5rem 2.6rem; margin: 1.8rem 0 2.4rem; }
dl.facts dt { color: var(--quiet); font-size: .8rem; } dl.facts dd { margin: 0; font-size: 1.35rem; }
h2 { font: 500 1.3rem/1.3 Georgia, "Iowan Old Style", "DejaVu Serif", serif; margin: 3.2rem 0 .3rem; }
section p { color: var(--quiet); margin: 0 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th { text-align: right; font-weight: 500; color: var(--quiet); font-size: .82rem; border-bottom: 1.5px solid var(--ink);
  padding: .4rem .6rem; }
td { text-align: right; padding: .5rem .6rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
th:first-child, td.name { text-align: left; padding-left: 0; }
td.mark { text-align: left; color: var(--quiet); font-size: .85rem; }
tr.ours td.name { color: var(--ours); font-weight: 600; } tr.best td { font-weight: 600; }
tr.best td.mark { color: var(--ink); } tr.failed td { color: #7a3324; white-space: normal; text-align: left; }
figure { margin: 0; } figure svg { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
ul { padding-left: 1.1rem; margin: .4rem 0; } footer { margin-top: 3.5rem; padding-top: 1rem;
  border-top: 1px solid var(--rule); color: var(--quiet); font-size: .85rem; }
@media print { main { padding: 0; } section { break-inside: avoid; } }
</style>
</head>
<body>
<main>
<p class="over">lacunar compare</p>
<h1>$source</h1>
<p class="summary">$summary</p>
$caveats
<dl class="facts">$facts</dl>
<div class="scroll"><table><thead><tr>$head</tr></thead><tbody>$rows</tbody></table></div>
$pictures
<section><h2>What was read</h2><ul>$read</ul></section>
<section><h2>How it was measured</h2><p style="color:inherit">$measured</p><ul>$learners</ul></section>
<footer>$versions</footer>
</main>
</body>
</html>
""")
