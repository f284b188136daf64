"""What a comparison says in words and numbers, at the shell and in the report."""

from __future__ import annotations

import numpy as np

from lacunar.comparison.cells import counted, cut
from lacunar.comparison.comparison import FEW_SPLITS, Comparison, Score


def number(comparison: Comparison, value: float) -> str:
    """A score in the table: three places where scores are shares, four digits where they have units."""
    if np.isnan(value):
        return ""
    units = comparison.problem.task == "regression" and comparison.metric.name != "R²"
    return f"{value:.4g}" if units else f"{value:.3f}"


def summary(comparison: Comparison, scores: list[Score]) -> str:
    """One sentence on who predicts best."""
    undecided = comparison.undecided()
    if undecided:
        return undecided
    good = [s for s in scores if s.ended]
    best, extreme = good[0], "lowest" if comparison.metric.lower else "highest"
    text = f"{best.learner.name} has the {extreme} {comparison.metric.name} on {cut(comparison.problem.target)}, {number(comparison, best.mean)}"
    if best.splits < FEW_SPLITS:
        return f"{text}, on {counted(best.splits, 'split')}: too few to tell the learners apart. Raise --folds or --repeats."
    tied = [s.learner.name for s in good if s.mark == "tied"]
    if not tied:
        return f"{text}, and every other learner is distinguishably worse." if len(good) > 1 else f"{text}."
    names = tied[0] if len(tied) == 1 else f"{', '.join(tied[:-1])} and {tied[-1]}"
    return f"{text}; {names} {'is' if len(tied) == 1 else 'are'} not distinguishable from it."


def measured(comparison: Comparison) -> str:
    """How the numbers came about."""
    stratified = "stratified " if comparison.stratified else ""
    n = len(comparison.problem.y)
    rows = "" if comparison.n_rows == n else f" on {comparison.n_rows:,} of {n:,} rows"
    how = f"{counted(comparison.repeats, 'repeat')} of {stratified}{comparison.folds}-fold cross-validation{rows}, the same folds for all; "
    if comparison.problem.groups is not None:
        how = f"{how}rows of one {cut(comparison.problem.groups)} share a fold; "
    if comparison.problem.time is not None:
        how = f"{comparison.folds} splits in the order of {cut(comparison.problem.time)}{rows}, each tested on rows after those learned from; "
    return (
        f"{how}"
        "imputation and parameters are learned on the training folds only, the list of categories on all rows. "
        "“Worse by” is the mean difference from the best over the same folds, ± half the 95 % interval with the corrected variance of "
        "Nadeau and Bengio (2003), not adjusted for the number of learners: an interval that reaches zero does not tell the two apart. "
        "Times are means per split, in seconds of one processor of this machine."
    )


def headings(comparison: Comparison) -> list[str]:
    """Names of the columns of the table of scores; the last holds marks."""
    return ["learner", comparison.metric.name, "worse by", comparison.second.name, "fit", "predict", ""]


def cells(comparison: Comparison, score: Score) -> list[str]:
    """The numbers of one learner as text, in the order of `headings`, without its name and mark."""
    form = ".4g" if comparison.second.name == "RMSE" else ".3f"
    second = "" if np.isnan(score.second) else f"{score.second:{form}}"
    worse = number(comparison, score.difference)
    if worse and not np.isnan(score.half_width):
        worse += f" ± {number(comparison, score.half_width)}"
    return [number(comparison, score.mean), worse, second, seconds(score.fit_seconds), seconds(score.predict_seconds)]


def seconds(value: float) -> str:
    """A time a person reads at a glance."""
    return "" if np.isnan(value) else f"{1000 * value:.0f} ms" if value < 0.9995 else f"{value:.1f} s"
