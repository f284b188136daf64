"""The `lacunar` command (extra `cli`): compare learners on a table, keep a model, predict with it."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lacunar import __version__, show_config

INTERRUPTED = 130


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    top = argparse.ArgumentParser(prog="lacunar", description="Learn from tables with missing entries.")
    top.add_argument("--version", action="version", version=f"lacunar {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    compare = commands.add_parser("compare", help="which learner predicts a column best, with a report")
    compare.add_argument(
        "table", nargs="?", help="CSV, TSV, Parquet, ARFF, NPZ or svmlight; default: an embedded table"
    )
    compare.add_argument("--report", metavar="OUT.html", help="write a page with the table and pictures")
    compare.add_argument("--folds", type=_at_least(2), default=5)
    compare.add_argument("--repeats", type=_at_least(1), default=3)
    compare.add_argument(
        "--n-jobs", type=int, default=1, help="processes, -1 for all (times then suffer from each other)"
    )
    compare.add_argument(
        "--also", action="append", choices=["mc-1", "mc-b", "geom"], help="a slower learner of lacunar.baselines"
    )
    fit = commands.add_parser("fit", help="fit a learner to a table and keep it in a file")
    fit.add_argument("table")
    fit.add_argument("--output", required=True, metavar="MODEL.lacunar")
    fit.add_argument(
        "--learner",
        choices=["lacunar", "karma", "karma-2"],
        default="lacunar",
        help="lacunar pools five kinds of learners, karma chooses its kernel, karma-2 is fixed",
    )
    predict = commands.add_parser("predict", help="predict the rows of a table with a model file")
    predict.add_argument("model")
    predict.add_argument("table")
    predict.add_argument("--output", metavar="OUT.csv", help="default: the terminal")
    for command in (compare, fit):
        command.add_argument(
            "--target", metavar="COLUMN", help="default: a column named target, class, y or label, or the last"
        )
        command.add_argument("--task", choices=["classification", "regression"], help="default: guessed, and said")
        command.add_argument("--seed", type=_at_least(0), default=0)
    for command in (compare, fit, predict):
        command.add_argument("--sep", help="what separates cells of text; default: the commonest of , ; and tab")
        command.add_argument("--decimal", default=".", help="the decimal mark in text")
        command.add_argument("--encoding", default="utf-8", help="of text")
        command.add_argument(
            "--na-values", action="append", default=[], metavar="WORD", help="one more word that means missing"
        )
        command.add_argument("--quiet", action="store_true", help="results and errors only")
    commands.add_parser("config", help="versions, compiler, threads: what a bug report needs")
    return top


def _at_least(low: int):  # type: ignore[no-untyped-def]
    def number(text: str) -> int:
        value = int(text)
        if value < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {value}")
        return value

    return number


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    code : int
        0 done, 1 could not, 130 interrupted. Wrong usage is 2 (argparse leaves by SystemExit).
    """
    wanted = parser().parse_args(argv)
    from lacunar.compare import UserError, visible

    try:
        return {"compare": _compare, "fit": _fit, "predict": _predict, "config": _config}[wanted.command](wanted)
    except UserError as error:
        print(f"lacunar: {visible(str(error))}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("lacunar: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in {"pandas", "pyarrow", "rich"}:
            raise
        print(f"lacunar: {package} is not installed: pip install 'lacunar[cli]'", file=sys.stderr)
        return 1
    except (OSError, MemoryError) as error:
        print(f"lacunar: {visible(str(error)) or 'not enough memory'}", file=sys.stderr)
        return 1


def _reading(wanted: argparse.Namespace) -> dict[str, Any]:
    """How text is read."""
    return {name: getattr(wanted, name) for name in ("sep", "decimal", "encoding", "na_values")}


def check_writable(path: str | None) -> None:
    """Refuses an output that cannot be written, before any work is done for it."""
    from lacunar.compare import UserError

    if path is None:
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written, there is no folder {folder}.")
    if Path(path).is_dir() or not os.access(folder, os.W_OK) or (Path(path).exists() and not os.access(path, os.W_OK)):
        raise UserError(f"{path}: cannot be written. Choose another place.")


def _say(wanted: argparse.Namespace, *lines: str) -> None:
    from lacunar.compare import visible

    if not wanted.quiet:
        for line in lines:
            print(visible(line), file=sys.stderr)


def _compare(wanted: argparse.Namespace) -> int:
    from lacunar import compare
    from lacunar.compare import UserError

    check_writable(wanted.report)
    if wanted.n_jobs == 0:
        raise UserError("--n-jobs must be a number of processes or -1 for all; got 0.", 2)
    problem = compare.load_problem(wanted.table, wanted.target, wanted.task, **_reading(wanted))
    n, d = problem.X.shape
    if n < 2 * wanted.folds:
        raise UserError(f"{problem.source}: {n} rows are too few for {wanted.folds} folds. Lower --folds.")
    _say(
        wanted, f"{problem.source}: {n} rows, {d} columns, {100 * problem.missing_share:.0f} % missing.", *problem.notes
    )
    comparison = compare.run(
        problem, wanted.folds, wanted.repeats, wanted.seed, wanted.n_jobs, wanted.quiet, wanted.also or ()
    )
    compare.print_table(comparison)
    if wanted.report is not None:
        compare.write_report(comparison, wanted.report)
        _say(wanted, f"Report: {wanted.report}")
    if comparison.interrupted:
        return INTERRUPTED
    return 0 if any(not score.failure for score in comparison.scores()) else 1


def _fit(wanted: argparse.Namespace) -> int:
    from lacunar.compare import TableModel, UserError, load_problem, own_learner
    from lacunar.persistence import save_model

    check_writable(wanted.output)
    problem = load_problem(wanted.table, wanted.target, wanted.task, **_reading(wanted))
    _say(wanted, *problem.notes)
    try:
        model = TableModel(own_learner(problem.task, wanted.learner).make(wanted.seed)).fit(problem)
    except ValueError as error:
        raise UserError(f"{problem.source}: cannot be fitted: {error}") from None
    save_model(model, wanted.output)
    _say(wanted, f"Model of {problem.target} from {len(problem.y)} rows: {wanted.output}")
    return 0


def _predict(wanted: argparse.Namespace) -> int:
    from lacunar.compare import TableModel, UserError, read_table, write_whole
    from lacunar.persistence import load_model

    check_writable(wanted.output)
    if not Path(wanted.model).exists():
        raise UserError(f"{wanted.model}: no such file.")
    try:
        model = load_model(wanted.model)
        if not isinstance(model, TableModel):
            raise ValueError(f"{wanted.model!r} holds a {type(model).__name__}, not a model that `lacunar fit` wrote")
        model.check()
    except ValueError as error:
        raise UserError(str(error)) from None
    predicted, notes = model.predict(read_table(wanted.table, **_reading(wanted)))
    _say(wanted, *notes)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([model.target_])
    writer.writerows([value] for value in predicted.tolist())
    if wanted.output is None:
        _to_stdout(text.getvalue())
    else:
        write_whole(wanted.output, text.getvalue())
    return 0


def _to_stdout(text: str) -> None:
    """A pipe gets every character; a terminal would obey some of them."""
    from lacunar.compare import visible

    if sys.stdout.isatty():
        text = "".join(f"{visible(line)}\n" for line in text.splitlines())
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _config(wanted: argparse.Namespace) -> int:
    show_config()
    return 0
