"""What the person at the shell sees: a bar with the time left, and the table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from lacunar.compare.comparison import Comparison, Learner, Run, evaluate, learners
from lacunar.compare.problem import Problem
from lacunar.compare.report import caveats, seconds, summary, visible


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

    regression = comparison.problem.task == "regression"
    scores = comparison.scores()
    # Piped into a file the table keeps its width: a cut name is no result.
    console = Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else 120)
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("learner", no_wrap=True)
    heads = [comparison.measure, "± s.e.", *(["R²"] if regression else []), "fit", "predict"]
    for name in heads:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for s in scores:
        learner = Text(visible(s.learner.name))  # plain text: in a str rich would look for markup
        if s.failure:
            why = Text(f"failed: {visible(s.failure)}")
            table.add_row(learner, *["-"] * len(heads), why)
            continue
        error = "" if np.isnan(s.error) else f"{s.error:.2g}" if regression else f"{s.error:.3f}"
        numbers = [f"{s.mean:.4g}" if regression else f"{s.mean:.3f}", error, *([f"{s.r2:.3f}"] if regression else [])]
        mark = {"best": "* lowest", "tied": "= not distinguishable from it", "": ""}[s.mark]
        table.add_row(
            learner,
            *numbers,
            seconds(s.fit_seconds),
            seconds(s.predict_seconds),
            mark,
            style="bold" if s.mark == "best" else "",
        )
    console.print(table)
    console.print()
    for line in [summary(comparison, scores), *caveats(comparison, scores)]:
        console.print(visible(line), soft_wrap=True, markup=False)
