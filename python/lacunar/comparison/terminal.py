"""`compare` from Python and from the shell: a line on which learner runs, and the table of scores."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from time import perf_counter
from typing import Any

from sklearn.utils._param_validation import Interval, validate_params

from lacunar._random import fixed_seed
from lacunar.comparison.cells import UserError, as_keywords, counted, cut, visible, with_keywords
from lacunar.comparison.comparison import Comparison
from lacunar.comparison.learners import Learner, learner_named, learners, of_the_user
from lacunar.comparison.problem import Problem, load_problem
from lacunar.comparison.rival import Run
from lacunar.comparison.schedule import evaluate
from lacunar.comparison.words import cells, headings, summary
from lacunar.learner.folds import repeats as repeats_in

TIME_LIMIT = 120.0  # seconds
_NUMBERS = {
    "folds": [Interval(Integral, 2, None, closed="left")],
    "repeats": [Interval(Integral, 1, None, closed="left")],
    "time_limit": [Interval(Real, 0, None, closed="left"), None],
    "fit_limit": [Interval(Real, 0, None, closed="left"), None],
    "max_rows": [Interval(Integral, 0, None, closed="left"), None],
    "random_state": [Interval(Integral, 0, 2**32 - 1, closed="both"), None],
}
_Start = Callable[[int, int], None]
_Done = Callable[[Run], None]


@validate_params(_NUMBERS, prefer_skip_nested_validation=False)
def compare(
    data: Any = None,
    target: Any = None,
    *,
    task: str | None = None,
    drop: str | Iterable[str] = (),
    use: str | Iterable[str] = (),
    learner: str | Iterable[str] = (),
    learners: Any = (),
    metric: str | None = None,
    groups: str | None = None,
    time: str | None = None,
    folds: int = 5,
    repeats: int = 3,
    time_limit: float | None = TIME_LIMIT,
    fit_limit: float | None = None,
    max_rows: int | None = None,
    random_state: int | None = 0,
    n_jobs: int = 1,
    verbose: bool = False,
    **how: Any,
) -> Comparison:
    """Which learner predicts a column of a table with missing entries best: the same folds for all,
    differences with intervals.

    Parameters
    ----------
    data : frame (pandas, polars, Arrow), array of shape (n, d), path or None, default=None
        Rows with numbers, text, categories, booleans and dates, or a file that `lacunar compare`
        reads. None is an embedded table.
    target : str or array-like of shape (n,), default=None
        Name of the column to predict, or its values. None is a column named target, class, y, label
        or outcome, or the last one.
    task : {"classification", "regression"}, default=None
        None is guessed from the target.
    drop, use : str or sequence of str, default=()
        Columns to leave out, and columns to keep although they look like identifiers.
    learner : str or sequence of str, default=()
        Names of the learners that compete, as the table prints them; all by default.
    learners : sequence of estimators or dict {name: estimator}, default=()
        Estimators of your own that compete beside them. Each is cloned for every fold and gets the
        columns as numbers, NaN where missing.
    metric : str, default=None
        What decides: "error", "balanced-error", "log-loss", "brier" or "auc" of classes, "rmse",
        "mae" or "r2" of numbers; None is "error" for classes and "rmse" for numbers.
    groups : str, default=None
        Name of the column that says to which person, place or batch a row belongs. Rows of a group
        share a fold, and learners do not see the column.
    time : str, default=None
        Name of a column of numbers or dates. Rows are put in its order, and every learner is tested
        on later rows than it learns from, in `folds` splits; there are no repeats.
    folds, repeats : int, default=5, 3
        Of the cross-validation.
    time_limit, fit_limit : float or None, default=120, None
        Seconds for all, reading included, and for one fit. Cheap learners come first, and all have
        one repeat before any has a second; `caveats` and the table say what was cut, always for
        what it costs itself. None or 0 for `time_limit` cuts nothing. No fit is ended in its
        middle: what earlier fits took, or fits on few rows, decides whether the next one begins.
    max_rows : int or None, default=None
        Rows to compare on, drawn at random where there are more; 0 is all. None is all without a
        time limit, and 24,000 under one, of tables with more than 100 columns fewer, but 10,000 at
        least. `best_model_` learns from all rows.
    random_state : int or None, default=0
        Seed of folds, learners and rows that are drawn; None is 0.
    n_jobs : int, default=1
        Processes, -1 for all.
    verbose : bool, default=False
        Whether to show what was read and which learner runs on stderr.
    **how
        How it is read: sep, decimal, thousands, encoding, na_values, header, dates, sheet, comment,
        skip_rows, ragged, as at the shell. `na_values` means missing in frames and arrays too:
        words or numbers for all columns, or a dict {column: words}.

    Returns
    -------
    comparison : Comparison
        `table` is a frame, `best_model_` the best learner fitted to all rows, whose predictions
        have the type of the target, `warnings` what to look at first, `caveats` what was shortened
        or left out and why; a notebook shows it.

    Raises
    ------
    ValueError
        The file, the target or the task does not fit; the message has the remedy.

    See Also
    --------
    lacunar.LacunarClassifier : The answer where nothing is to be compared.

    Notes
    -----
    Differences are of the same folds, with the corrected variance of Nadeau and Bengio (2003).

    Examples
    --------
    >>> import pandas as pd
    >>> import lacunar
    >>> age = [23, 51, None, 64, 35, 58, 44, None, 29, 61] * 4
    >>> df = pd.DataFrame({"age": age, "outcome": [(a or 40) > 45 for a in age]})
    >>> result = lacunar.compare(
    ...     df, target="outcome", learner=["KARMA gamma=2", "no columns"], folds=4, repeats=2
    ... )
    >>> result.table["learner"].tolist()
    ['KARMA gamma=2', 'no columns']
    >>> result.best_model_.predict(pd.DataFrame({"age": [20, 70]})).tolist()
    [False, True]
    """
    started = perf_counter()
    only = names_of(learner, "learner")
    with with_keywords():
        problem = load_problem(data, target, task, drop=drop, use=use, groups=groups, time=time, **how)
        if verbose:
            for line in about(problem):
                print(visible(as_keywords(line)), file=sys.stderr)
        comparison = run(
            problem, folds=folds, repeats=repeats, seed=fixed_seed(random_state), n_jobs=n_jobs, metric=metric,
            time_limit=time_limit or None, fit_limit=fit_limit or None, max_rows=max_rows, only=only, own=learners, quiet=not verbose, started=started,
        )  # fmt: skip
    comparison.in_python = True
    return comparison


def names_of(names: Any, argument: str) -> tuple[str, ...]:
    """One name, or several. Raises TypeError."""
    several = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, Iterable) else None
    if several is None or not all(isinstance(name, str) for name in several):
        raise TypeError(f"{argument} must be a name or a sequence of names; got {cut(repr(names))}. Write ['KARMA'].")
    return several


def about(problem: Problem) -> list[str]:
    """Lines on what was read."""
    n, d = problem.frame.shape
    return [
        f"{problem.source}: {n} rows, {counted(d, 'column')}, {100 * problem.missing_share:.0f} % missing.",
        *problem.notes,
    ]


def run(
    problem: Problem,
    *,
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    only: Sequence[str] = (),
    own: Any = (),
    time_limit: float | None = TIME_LIMIT,
    quiet: bool = True,
    **more: Any,
) -> Comparison:
    """The learners asked for, or all of the task, under a line on stderr that names which one runs."""
    n, max_rows = len(problem.y), more.get("max_rows")
    different = n - repeats_in(problem.units)
    if different < 2 * folds:
        what = f"{n} rows" if different == n else f"{n} rows, {different} of them different,"
        units = "rows" if problem.groups is None else "groups"
        what = what if problem.groups is None else f"{different} groups"
        raise UserError(
            f"{problem.source}: {what} are too few for {folds} folds of at least two each. "
            f"Lower --folds, or bring more {units}."
        )
    if max_rows and max_rows < 2 * folds:
        raise UserError(f"--max-rows must be at least {2 * folds} for {folds} folds, or 0 for all; got {max_rows}.", 2)
    seconds = None if time_limit is None else time_limit / (2 * folds)  # a fit of the one learner keeps within it
    competitors = learners(problem.task, seconds=seconds)
    users = of_the_user(own, [learner.name for learner in competitors])
    if only:
        names = {learner_named(problem.task, name).name for name in only}
        competitors = [learner for learner in competitors if learner.name in names]
        missing = names - {learner.name for learner in competitors}
        competitors += [learner_named(problem.task, name) for name in sorted(missing)]
    competitors += users
    repeats = repeats if problem.time is None else 1
    with progress(competitors, folds * repeats, quiet) as (start, done):
        return evaluate(
            problem, competitors, folds=folds, repeats=repeats, seed=seed, time_limit=time_limit, on_start=start, on_run=done, **more
        )  # fmt: skip


@contextmanager
def progress(competitors: list[Learner], n_splits: int, quiet: bool) -> Iterator[tuple[_Start | None, _Done | None]]:
    """A line on stderr while the learners run; yields what to call before and after each run."""
    if quiet:  # not a disabled bar: until rich 14 that prints an empty line
        yield None, None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(bar_width=24), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    finished: Counter[int] = Counter()  # runs of every split
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=len(competitors) * n_splits)

        def start(k: int, s: int) -> None:
            bar.update(task, description=f"{visible(competitors[k].name)}, fold {s + 1} of {n_splits}")

        def done(run: Run) -> None:
            finished[run.split] += 1
            bar.update(
                task, completed=run.split * len(competitors) + finished[run.split],
                description=f"{visible(competitors[run.learner].name)} done, fold {run.split + 1} of {n_splits}",
            )  # fmt: skip

        yield start, done


def print_table(comparison: Comparison) -> None:
    """The table on stdout, and what to know about it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    scores = comparison.scores()
    # Piped into a file the table keeps its width: a cut name is no result.
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 132)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    first, *numbers, last = headings(comparison)
    table.add_column(first, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column(last)
    for score in scores:
        learner = Text(visible(score.learner.name))  # plain text: in a str rich would look for markup
        if score.failure:
            table.add_row(learner, *["-"] * len(numbers), Text(f"failed: {visible(score.failure)}"))
            continue
        sign = {"best": "* ", "tied": "= ", "open": "? "}.get(score.mark, "")
        style = "bold" if score.mark == "best" else ""
        table.add_row(learner, *cells(comparison, score), Text(sign + comparison.mark_of(score)), style=style)
    console.print(table)
    console.print()
    for line in [summary(comparison, scores), *comparison.caveats]:
        console.print(visible(line), soft_wrap=True, markup=False)
