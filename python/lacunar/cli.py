"""The `lacunar` command (extra `cli`): compare learners on a table, keep a model, predict with it, fill a table."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from lacunar import __version__, show_config

if TYPE_CHECKING:
    import pandas as pd

    from lacunar.comparison import Comparison, Learner, Problem, Table, TableModel

    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

INTERRUPTED = 130
_EXIT = "exit status: 0 done, 1 could not (the message says why), 2 wrong usage, 130 interrupted"


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    top = argparse.ArgumentParser(prog="lacunar", description="Learn from tables with missing entries.", epilog=_EXIT)
    top.add_argument("--version", action="version", version=f"lacunar {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = (_add_compare, _add_fit, _add_predict, _add_impute)
    compare, fit, predict, impute = (add_command(commands) for add_command in add)
    for command in (compare, fit):
        _learning_options(command)
    for command in (compare, fit, impute):
        command.add_argument("--seed", type=_at_least(0, 2**32 - 1), default=0)
    for command in (compare, fit, predict, impute):
        _reading_options(command)
        command.add_argument("--quiet", action="store_true", help="results and errors only")
    commands.add_parser("config", help="versions, compiler, threads: what a bug report needs")
    completion = commands.add_parser("completion", help="a script that lets a shell complete words")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])
    for command in commands.choices.values():
        command.epilog = _EXIT
    return top


def _add_compare(commands: _Commands) -> argparse.ArgumentParser:
    compare = commands.add_parser("compare", help="which learner predicts a column best, with a report")
    compare.add_argument("table", nargs="?", help=f"{_FILES}; default: an embedded table")
    compare.add_argument("--json", action="store_true", help="print the table as JSON, for programs")
    compare.add_argument("--report", metavar="OUT.html", help="write a page with the table and pictures")
    compare.add_argument("--keep", metavar="BEST.lacunar", help="keep the best learner, fitted to all rows, in a file")
    compare.add_argument("--folds", type=_at_least(2), default=5)
    compare.add_argument("--repeats", type=_at_least(1), default=3)
    compare.add_argument(
        "--metric", help="error (default), balanced-error, log-loss, brier or auc; rmse (default), mae or r2"
    )
    limit = "for all, reading included; 0 is none; default: 120. The table says what was cut"
    compare.add_argument("--time-limit", type=_seconds, default=120.0, metavar="SECONDS", help=limit)
    compare.add_argument(
        "--fit-limit", type=_seconds, metavar="SECONDS", help="for one fit; default: what --time-limit leaves"
    )
    rows = "compare on so many rows, drawn at random; 0 is all; default: 24000, or all without a time limit"
    compare.add_argument("--max-rows", type=_at_least(0), metavar="N", help=rows)
    compare.add_argument("--n-jobs", type=int, default=1, help="processes, -1 for all; fits then slow each other down")
    _repeatable(compare, "--learner", "NAME", "only this one, as the table prints it")
    return compare


def _add_fit(commands: _Commands) -> argparse.ArgumentParser:
    fit = commands.add_parser("fit", help="fit a learner to a table and keep it in a file")
    fit.add_argument("table", help=_FILES)
    fit.add_argument("--output", required=True, metavar="MODEL.lacunar")
    fit.add_argument(
        "--learner", default="lacunar", metavar="NAME", help="as `lacunar compare` prints it; default: lacunar"
    )
    fit.add_argument("--time-limit", type=_seconds, metavar="SECONDS", help="of the learner lacunar; default: none")
    fit.add_argument("--n-jobs", type=int, metavar="N", help="processors, -1 for all; default: 1")
    return fit


def _add_predict(commands: _Commands) -> argparse.ArgumentParser:
    predict = commands.add_parser("predict", help="predict the rows of a table with a model file")
    predict.add_argument("model")
    predict.add_argument("table", help=_FILES)
    predict.add_argument("--output", metavar="OUT.csv", help=f"{_WRITTEN}; default: CSV to the terminal")
    predict.add_argument("--proba", action="store_true", help="a column of probabilities for each class")
    interval = "columns with the ends of an interval; default level: 0.9"
    predict.add_argument("--interval", nargs="?", type=float, const=0.9, metavar="LEVEL", help=interval)
    _repeatable(predict, "--keep", "COLUMN", "copy this column of the table; several with commas")
    predict.add_argument("--append", action="store_true", help="copy all columns of the table")
    return predict


def _add_impute(commands: _Commands) -> argparse.ArgumentParser:
    impute = commands.add_parser("impute", help="fill the missing cells of a table")
    impute.add_argument("table", help=_FILES)
    impute.add_argument("--output", required=True, metavar="OUT.csv", help=_WRITTEN)
    draws = "write N tables one below another, with a column `draw`; default: one table with what is expected"
    impute.add_argument("--draws", type=_at_least(2), metavar="N", help=draws)
    sweeps = "with --draws: how often every column is drawn in turn; default: 10"
    impute.add_argument("--sweeps", type=_at_least(1), default=10, help=sweeps)
    method = "with --draws: matching (default), or normal draws of numbers"
    impute.add_argument("--method", choices=["pmm", "norm"], default="pmm", help=method)
    impute.add_argument("--n-jobs", type=int, default=1, help="processors, -1 for all")
    return impute


def _learning_options(command: argparse.ArgumentParser) -> None:
    """The target, the columns to learn from, and how rows are related."""
    groups = "the person, place or batch that a row belongs to: rows of one share a fold, and learners do not see it"
    command.add_argument("--groups", metavar="COLUMN", help=groups)
    time = "numbers or dates: learners are tested on later rows than they learn from"
    command.add_argument("--time", metavar="COLUMN", help=time)
    target = "default: a column named target, class, y, label or outcome, or the last"
    command.add_argument("--target", metavar="COLUMN", help=target)
    command.add_argument("--task", choices=["classification", "regression"], help="default: guessed, and said")
    _repeatable(command, "--drop", "COLUMN", "leave this column out; several with commas", "--id")
    _repeatable(command, "--use", "COLUMN", "keep this column although it looks like an identifier")


_FILES = "CSV or other text, JSON lines, Excel, Parquet, Arrow, ARFF, NPZ or svmlight, also as .gz, .bz2, .xz or .zip; - is standard input"
_WRITTEN = "its ending says what is written: .csv or .tsv, also as .gz, .bz2 or .xz, .parquet, .xlsx"


def _repeatable(command: argparse.ArgumentParser, name: str, metavar: str, text: str, *names: str) -> None:
    """An option that may come several times."""
    text = f"{text}; may be repeated"
    command.add_argument(name, *names, action="append", default=[], metavar=metavar, help=text)


def _reading_options(command: argparse.ArgumentParser) -> None:
    """How text is read."""
    command.add_argument("--sep", help="what separates cells of text; default: found out")
    command.add_argument("--decimal", help="the decimal mark in text; default: found out")
    command.add_argument("--thousands", help="what separates thousands in text; default: found out")
    command.add_argument("--encoding", help="of text; default: found out")
    _repeatable(
        command, "--na-values", "WORD", "one more word or number that means missing; COLUMN=WORD in this column only"
    )
    command.add_argument("--sheet", metavar="NAME", help="of an Excel file: its name or number; default: the first")
    command.add_argument("--comment", metavar="MARK", help="leave out lines of text that begin so, such as '#'")
    command.add_argument("--skip-rows", type=_at_least(0), default=0, metavar="N", help="lines above the table")
    ragged = "rows with more or fewer cells than the first: left out, or cut and filled up; default: longer ones are an error"
    command.add_argument("--ragged", choices=["skip", "cut"], help=ragged)
    command.add_argument("--dates", choices=["dmy", "mdy"], help="whether 01/02/2026 is in February or in January")
    header = "whether the first row holds the names; without, columns are c1, c2, ...; default: found out"
    command.add_argument("--header", action=argparse.BooleanOptionalAction, help=header)


def _at_least(low: int, high: float = float("inf")) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            most = "" if high == float("inf") else f" and at most {high}"
            raise argparse.ArgumentTypeError(f"must be at least {low}{most}, got {value}")
        return value

    return number


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be seconds from 0, got {text}")
    return value


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
    args = parser().parse_args(argv)
    with _leaving_at_once():
        from lacunar.comparison import UserError
        from lacunar.comparison.cells import visible

    try:
        commands = {"compare": _compare, "fit": _fit, "predict": _predict, "impute": _impute, "config": _config}
        commands["completion"] = _completion
        if getattr(args, "n_jobs", None) == 0:
            raise UserError("--n-jobs must be a number of processors or -1 for all; got 0.", 2)
        return commands[args.command](args)
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
        if package not in {"pandas", "pyarrow", "rich", "openpyxl"}:
            raise
        print(f"lacunar: {package} is not installed: pip install 'lacunar[cli]'", file=sys.stderr)
        return 1
    except (OSError, MemoryError) as error:
        print(f"lacunar: {visible(str(error)) or 'not enough memory'}", file=sys.stderr)
        return 1


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """Let Ctrl-C end the process while packages are imported, since compiled modules would turn it into other errors."""

    def leave(*_: Any) -> None:
        os.write(2, b"lacunar: interrupted\n")
        os._exit(INTERRUPTED)

    try:
        before = signal.signal(signal.SIGINT, leave)
    except ValueError:  # not the main thread, which alone gets signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reading(args: argparse.Namespace) -> dict[str, Any]:
    """How text is read."""
    names = (
        "sep", "decimal", "thousands", "encoding", "na_values", "dates", "header", "sheet", "comment", "skip_rows", "ragged"
    )  # fmt: skip
    return {name: getattr(args, name) for name in names}


def _problem(args: argparse.Namespace) -> Problem:
    from lacunar.comparison import load_problem
    from lacunar.comparison.terminal import about

    problem = load_problem(
        args.table,
        args.target,
        args.task,
        drop=args.drop,
        use=args.use,
        groups=args.groups,
        time=args.time,
        **_reading(args),
    )
    _say(args, *about(problem))
    return problem


def _say(args: argparse.Namespace, *lines: str) -> None:
    from lacunar.comparison.cells import visible

    if not args.quiet:
        for line in lines:
            print(visible(line), file=sys.stderr, flush=True)


@contextmanager
def _attempt(complaint: str, remedy: str = "") -> Iterator[list[str]]:
    """A block whose warnings are listed, each once, at its end; a ValueError in it becomes a UserError that begins
    with the complaint and ends with the remedy.
    """
    from lacunar.comparison import UserError

    messages: list[str] = []
    try:
        with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
            yield messages
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"{complaint}: {error}{remedy}") from None
    messages += dict.fromkeys(str(w.message) for w in caught if issubclass(w.category, UserWarning))


def _compare(args: argparse.Namespace) -> int:
    from lacunar.comparison import print_table
    from lacunar.comparison.terminal import run
    from lacunar.comparison.writing import REPORTS, Output, check_outputs

    started = perf_counter()
    check_outputs([Output("--report", args.report, REPORTS), Output("--keep", args.keep)], {"the table": args.table})
    problem = _problem(args)
    comparison = run(
        problem, folds=args.folds, repeats=args.repeats, seed=args.seed, n_jobs=args.n_jobs, metric=args.metric,
        time_limit=args.time_limit or None, fit_limit=args.fit_limit or None, max_rows=args.max_rows, only=args.learner, quiet=args.quiet,
        keep_interrupted=True, started=started,
    )  # fmt: skip
    if args.json:
        print(json.dumps(comparison.as_dict(), ensure_ascii=True, indent=1))
    else:
        print_table(comparison)
    sys.stdout.flush()
    if args.report is not None:
        _write_report(args, comparison)
    if comparison.interrupted:
        return INTERRUPTED
    if comparison.undecided():
        return 1
    if args.keep is not None:
        _keep(args, comparison.best_model_, args.keep, comparison.learners[comparison.best].name, len(problem.y))
    return 0


def _write_report(args: argparse.Namespace, comparison: Comparison) -> None:
    """Write the report; one of an interrupted comparison does not replace a report that is there."""
    from lacunar.comparison import write_report

    place = Path(args.report)
    if comparison.interrupted and not comparison.runs:
        return
    if comparison.interrupted and place.exists():
        place = place.with_name(f"{place.stem}.interrupted{place.suffix}")
    write_report(comparison, place)
    _say(args, f"Report: {place}")


def _keep(args: argparse.Namespace, model: TableModel, place: str, learner: str, rows: int) -> None:
    from lacunar.persistence import save_model

    save_model(model, place)
    _say(args, f"Model of {model.target_} ({learner}) from {rows} rows: {place}")
    if model.estimator is None:
        _say(
            args,
            "It is of another library: the file keeps the training rows, and the learner is fitted again when the file is used.",
        )
    _say(args, f"Next: lacunar predict {place} NEW_TABLE --output predicted.csv")


def _fit(args: argparse.Namespace) -> int:
    from lacunar.comparison import TableModel
    from lacunar.comparison.learners import learner_named
    from lacunar.comparison.writing import Output, check_outputs

    check_outputs([Output("--output", args.output)], {"the table": args.table})
    problem = _problem(args)
    learner = _with_settings(learner_named(problem.task, args.learner), args)
    remedy = "" if learner.ours else " Bring more rows, or take --learner lacunar."  # scikit-learn has named none
    with _attempt(f"{problem.source}: {learner.name} cannot be fitted", remedy) as warned:
        model = TableModel.of(learner, problem, args.seed)
    _say(args, *(f"Warning: {message}" for message in warned))
    _keep(args, model, args.output, learner.name, len(problem.y))
    return 0


def _with_settings(learner: Learner, args: argparse.Namespace) -> Learner:
    """The learner with the time limit and the processors that were asked for. Raises UserError where it has none."""
    from lacunar.comparison import UserError

    settings = {"time_limit": args.time_limit or None, "n_jobs": args.n_jobs}
    settings = {name: value for name, value in settings.items() if value is not None}
    known = learner.make(0).get_params() if learner.ours else {}
    for name in settings:
        if name not in known:
            option = f"--{name.replace('_', '-')}"
            raise UserError(
                f"{option}: {learner.name} has no such setting. Leave it out, or take --learner lacunar.", 2
            )
    return replace(learner, make=lambda seed: learner.make(seed).set_params(**settings)) if settings else learner


def _predict(args: argparse.Namespace) -> int:
    from lacunar.comparison import read_table
    from lacunar.comparison.writing import TABLES, Output, as_csv, check_outputs, write_frame

    check_outputs([Output("--output", args.output, TABLES)], {"the model": args.model, "the table": args.table})
    model = _model(args.model)
    copies = bool(args.keep or args.append)
    table = read_table(args.table, readings=model.readings_, verbatim=copies, **_reading(args))
    with _attempt(f"{table.source}: cannot be predicted") as warned:
        predictions = _predicted(args, model, table)
    _say(args, *table.notes, *warned)
    if args.output is None:
        _to_stdout(as_csv(predictions).decode("utf-8"))
    else:
        write_frame(predictions, args.output)
    return 0


def _impute(args: argparse.Namespace) -> int:
    from lacunar.comparison import read_table
    from lacunar.comparison.problem import sentinel_sentences
    from lacunar.comparison.writing import TABLES, Output, as_written, check_outputs, write_frame

    check_outputs([Output("--output", args.output, TABLES)], {"the table": args.table})
    table = read_table(args.table, verbatim=True, **_reading(args))
    frame = _with_whole_numbers(table.frame)
    with _attempt(f"{table.source}: cannot be filled") as warned:
        tables, report = _filled(args, frame, table.source)
    warned = [*sentinel_sentences(table.frame, {}), *warned]
    _say(args, *table.notes, *report, *(f"Warning: {message}" for message in warned))
    import pandas as pd

    tables = [as_written(filled, table, args.output) for filled in tables]
    if args.draws is not None:
        for k, filled in enumerate(tables):
            filled.insert(0, "draw", k + 1)
    write_frame(pd.concat(tables, ignore_index=True), args.output)
    return 0


def _with_whole_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of whole numbers with gaps, which were read as floats, as whole numbers with gaps."""
    seen = {name: frame[name].dropna() for name in frame if frame[name].dtype == "float64"}
    whole = [name for name, cells in seen.items() if len(cells) and ((cells % 1 == 0) & (cells.abs() < 2**53)).all()]
    return frame.astype(dict.fromkeys(whole, "Int64"))


def _filled(args: argparse.Namespace, frame: pd.DataFrame, source: str) -> tuple[list[pd.DataFrame], list[str]]:
    """The table to write, or several, and lines about it."""
    from lacunar.comparison import UserError
    from lacunar.impute import Imputer, MultipleImputer
    from lacunar.observed.sentinels import sentinels_known

    if args.draws is None:
        imputer = Imputer(random_state=args.seed, n_jobs=args.n_jobs)
        with sentinels_known():
            filled = imputer.fit_transform(frame)
        columns = zip(*(imputer.imputed_[head] for head in ("column", "hidden", "explained")), strict=True)
        n_filled = _filled_cells(frame, filled)
        lines = [
            f"{name}: {n_filled[name]} filled"
            + (f", {max(explained, 0):.0%} of what hidden entries vary by is explained" if hidden else "")
            for name, hidden, explained in columns
            if n_filled[name]
        ]
        advice = "One filled table is for a look or another tool: for coefficients and tests use --draws 20."
        return [filled], [*lines, advice if lines else "The table stays as it is."]
    if "draw" in frame:
        raise UserError(f"{source}: has a column `draw`, which --draws writes. Rename it.")
    imputer = MultipleImputer(
        args.draws, sweeps=args.sweeps, method=args.method, random_state=args.seed, n_jobs=args.n_jobs
    )
    with sentinels_known():
        tables = list(imputer.fit(frame).draws())
    lines = [f"{name}: {n} drawn {args.draws} times" for name, n in _filled_cells(frame, tables[0]).items() if n]
    return tables, lines or ["The table stays as it is."]


def _filled_cells(frame: pd.DataFrame, filled: pd.DataFrame) -> pd.Series[int]:
    """How many cells of each column are filled: text and columns without any value stay as they are."""
    return frame.isna().sum() - filled.isna().sum()


def _may_be_model(path: str) -> bool:
    """Whether the file is an archive of ours; books of Excel are archives, too."""
    with suppress(OSError, BadZipFile), ZipFile(path) as members:
        return "header.json" in members.namelist()
    return False


def _model(path: str) -> TableModel:
    from lacunar.comparison import TableModel, UserError
    from lacunar.persistence import load_model

    if not Path(path).exists():
        raise UserError(f"{path}: no such file.")
    if not _may_be_model(path):
        raise UserError(f"{path}: this is no model file. The model comes first: lacunar predict MODEL TABLE.")
    try:
        model = load_model(path)
        if not isinstance(model, TableModel) or not hasattr(model, "target_"):
            raise ValueError(f"{path!r} holds a {type(model).__name__}, not a model that `lacunar fit` wrote")
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # which `lacunar fit` has shown
            model.fitted()  # a learner of another library is fitted again here
    except UserError:
        raise
    except ValueError as error:
        raise UserError(str(error)) from None
    return model


def _predicted(args: argparse.Namespace, model: TableModel, table: Table) -> pd.DataFrame:
    """The columns of the output: columns copied from the table, the prediction, and probabilities or ends of
    intervals.
    """
    import pandas as pd

    from lacunar.comparison import UserError
    from lacunar.comparison.problem import named_columns as named
    from lacunar.comparison.writing import as_written

    if args.interval is not None and not 0 < args.interval < 1:
        raise UserError(f"--interval must be a level between 0 and 1; got {args.interval:g}.", 2)
    frame = table.frame
    copied_names = dict.fromkeys(named(args.keep, list(frame.columns), table.source, "--keep"))
    copied = frame if args.append else frame[[*copied_names]]
    copied = as_written(copied, table, args.output or "") if len(copied.columns) else copied
    name = model.target_ if model.target_ not in copied else f"{model.target_}_predicted"
    columns = {name: model.predict(frame)}
    if args.proba:
        chances = model.predict_proba(frame)
        columns |= {f"{name}={label}": chances[:, k] for k, label in enumerate(model.classes_)}
    if args.interval is not None:
        ends = model.predict_interval(frame, args.interval)
        columns |= {f"{name}_low": ends[:, 0], f"{name}_high": ends[:, 1]}
    return pd.concat([copied.reset_index(drop=True), pd.DataFrame(columns)], axis=1)


def _to_stdout(text: str) -> None:
    """Write text to stdout: as it is to a pipe, with control characters escaped to a terminal, which would execute
    them.
    """
    from lacunar.comparison.cells import visible

    if sys.stdout.isatty():
        text = "".join(f"{visible(line)}\n" for line in text.splitlines())
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _completion(args: argparse.Namespace) -> int:
    from lacunar.comparison.shells import script

    sys.stdout.write(script(parser(), args.shell))
    return 0


def _config(args: argparse.Namespace) -> int:
    show_config()
    return 0
