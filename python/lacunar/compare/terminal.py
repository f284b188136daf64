"""What the command shows in a terminal: a bar with the time left, and the table of scores."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from lacunar.compare.comparison import Comparison, Learner, Run, evaluate, learners
from lacunar.compare.problem import Problem
from lacunar.compare.report import MARKS, caveats, cells, headings, summary, visible


@contextmanager
def progress(competitors: list[Learner], n_splits: int, quiet: bool) -> Iterator[Callable[[Run], None]]:
    """A bar on stderr while the learners run; yields what to call after each run."""
    if quiet:  # not a disabled bar: until rich 14 that prints an empty line
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = [
        TextColumn("{task.description:<22}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    ]
    total = len(competitors) * n_splits
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("comparing", total=total)
        done = set[tuple[int, int]]()

        def step(run: Run) -> None:
            done.add((run.learner, run.split))
            if run.error:  # its later splits will not come
                done.update((run.learner, s) for s in range(n_splits))
            bar.update(task, completed=len(done), description=visible(competitors[run.learner].name))

        yield step


def run(
    problem: Problem, folds: int, repeats: int, seed: int, n_jobs: int, quiet: bool, also: Sequence[str] = ()
) -> Comparison:
    """All learners of the task, and those named by `also`, under a bar on stderr."""
    competitors = learners(problem.task, also)
    with progress(competitors, folds * repeats, quiet) as step:
        return evaluate(problem, competitors, folds=folds, repeats=repeats, seed=seed, n_jobs=n_jobs, on_run=step)


def print_table(comparison: Comparison) -> None:
    """The table on stdout, and what to know about it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    scores = comparison.scores()
    # Piped into a file the table keeps its width: a cut name is no result.
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120)
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
        mark = {"best": "* ", "tied": "= ", "": ""}[score.mark] + MARKS[score.mark]
        table.add_row(learner, *cells(comparison, score), mark, style="bold" if score.mark == "best" else "")
    console.print(table)
    console.print()
    for line in [summary(comparison, scores), *caveats(comparison, scores)]:
        console.print(visible(line), soft_wrap=True, markup=False)
