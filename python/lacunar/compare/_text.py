"""What a comparison says in words: the same sentences at the shell and in the report."""

from __future__ import annotations

from lacunar.compare._evaluate import Comparison, Score


def visible(text: str) -> str:
    r"""Text that does nothing but show: what is not printable stands as its escape.

    Names of columns, labels and files come from strangers. A terminal obeys control characters, and marks of writing direction turn
    the rest of a line around; line breaks forge lines. To put it into HTML escape it besides.

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
