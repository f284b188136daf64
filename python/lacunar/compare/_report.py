"""A comparison as one HTML page that needs nothing beside it."""

from __future__ import annotations

import os
import re
from html import escape
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from lacunar import __version__
from lacunar.compare._evaluate import Comparison, Score
from lacunar.compare._style import PAGE
from lacunar.compare._text import caveats, measured, summary, visible
from lacunar.plotting import CoverageDisplay, MissingnessDisplay, ScoresDisplay

_SHOWN = 6  # learners in the picture of score against share observed


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
        ("missing", f"{100 * problem.holes:.0f} %"),
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
        head=_head(comparison),
        rows="".join(_row(comparison, score) for score in scores),
        pictures=_pictures(comparison, [s for s in scores if not s.failure]),
        read="".join(f"<li>{shown(note)}</li>" for note in problem.notes),
        measured=shown(measured(comparison)),
        learners="".join(f"<li><b>{shown(x.name)}</b>: {shown(x.about)}</li>" for x in comparison.learners),
        versions=shown(_versions()),
    )


def _head(comparison: Comparison) -> str:
    names = ["learner", comparison.measure, "± s.e."]
    names += ["R²"] if comparison.problem.task == "regression" else []
    return "".join(f"<th>{shown(name)}</th>" for name in [*names, "fit", "predict", ""])


def _row(comparison: Comparison, score: Score) -> str:
    name = f'<td class="name">{shown(score.learner.name)}</td>'
    regression = comparison.problem.task == "regression"
    if score.failure:
        return f'<tr class="failed">{name}<td colspan="{5 + regression}">failed: {shown(score.failure)}</td></tr>'
    cells = [f"{score.mean:.4g}" if regression else f"{score.mean:.3f}"]
    cells += ["" if np.isnan(score.error) else f"{score.error:.2g}" if regression else f"{score.error:.3f}"]
    cells += [f"{score.r2:.3f}"] if regression else []
    cells += [seconds(score.fit_seconds), seconds(score.predict_seconds)]
    mark = {"best": "lowest", "tied": "not distinguishable from it", "": ""}[score.mark]
    kind = f"{score.mark} {'ours' if score.learner.ours else ''}".strip()
    return f'<tr class="{kind}">{name}{"".join(f"<td>{c}</td>" for c in cells)}<td class="mark">{mark}</td></tr>'


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
        text = "KARMA in green, what people use today in grey. The line without columns is left out of the picture."
        drawn.append(("Scores", text, svg_of(bars.plot(_axes(0.42 * len(shown) + 0.7)).figure_)))
    holes = MissingnessDisplay.from_array(
        problem.X, [visible(name) for name in problem.encoder.output_names_], ax=_axes(3.6)
    )
    text = "Dark is observed, light is missing. Rows with the same pattern lie together, the most complete at the top."
    drawn.append(("What is missing", text, svg_of(holes.figure_)))
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
    """Axes of a figure that no window shows and nobody has to close."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("pictures need matplotlib, which is not installed: pip install 'lacunar[plot]'") from None
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
    import platform

    import scipy
    import sklearn

    return (
        f"lacunar {__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"Python {platform.python_version()}"
    )
