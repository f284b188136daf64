"""Cross-validation of learners on the same folds within a time limit, and what the scores allow to conclude."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lacunar._random import generator
from lacunar._threads import thread_count
from lacunar.comparison.cells import UserError, counted, cut, listed, pandas_module, visible
from lacunar.comparison.learners import Learner
from lacunar.comparison.model import TableModel
from lacunar.comparison.problem import Problem
from lacunar.comparison.schedule import NO_LIMITS, Job, Limits, Schedule
from lacunar.learner.folds import rows_of
from lacunar.uncertainty.shift import evenly

if TYPE_CHECKING:
    import pandas as pd

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Chances = NDArray[np.floating[Any]]  # (rows, classes)
SIGNIFICANCE = 0.05
_HURRIED = 0.8  # share of the seconds it was told to keep that a learner in a hurry uses
FEW_SPLITS = 5  # below which intervals say little
# Rows that are compared on under a time limit, fewer of tables with more columns than this, and the fewest.
_MOST_ROWS, _COLUMNS, _FEWEST_ROWS = 24_000, 100, 10_000


@dataclass(frozen=True)
class Metric:
    """A score: its name in the table, whether less is better, and what computes it from y, predictions, probabilities and classes."""

    name: str
    lower: bool
    of: Callable[[NDArray[Any], NDArray[Any], Chances | None, list[str]], float]

    @property
    def sign(self) -> int:
        """1 where less is better, -1 where more is."""
        return 1 if self.lower else -1


def _of_labels(function: Callable[..., float]) -> Callable[..., float]:
    return lambda y, predicted, proba, classes: float(function(y, predicted))


def _of_chances(function: Callable[..., float]) -> Callable[..., float]:
    return lambda y, predicted, proba, classes: np.nan if proba is None else function(y, proba, classes)


def _log_loss(y: NDArray[Any], proba: Chances, classes: list[str]) -> float:
    return float(metrics.log_loss(y, np.clip(proba, 1e-15, None), labels=classes))


def _brier(y: NDArray[Any], proba: Chances, classes: list[str]) -> float:
    return float(((proba - (y[:, None] == np.array(classes))) ** 2).sum(axis=1).mean())


def _auc(y: NDArray[Any], proba: Chances, classes: list[str]) -> float:
    """Mean over the classes of one against the rest; classes that the rows lack are left out."""
    flags = y[:, None] == np.array(classes)
    scored = [k for k in range(len(classes)) if flags[:, k].any() and not flags[:, k].all()]
    scored = scored[:1] if len(classes) == 2 else scored
    return float(np.mean([metrics.roc_auc_score(flags[:, k], proba[:, k]) for k in scored])) if scored else np.nan


def _balanced_error(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    return 1 - float(metrics.recall_score(y, predicted, labels=np.unique(y), average="macro"))


METRICS: dict[str, dict[str, Metric]] = {
    "classification": {
        "error": Metric("error rate", True, _of_labels(lambda y, p: np.mean(y != p))),
        "balanced-error": Metric("balanced error", True, _of_labels(_balanced_error)),
        "log-loss": Metric("log loss", True, _of_chances(_log_loss)),
        "brier": Metric("Brier score", True, _of_chances(_brier)),
        "auc": Metric("AUC", False, _of_chances(_auc)),
    },
    "regression": {
        "rmse": Metric("RMSE", True, _of_labels(metrics.root_mean_squared_error)),
        "mae": Metric("MAE", True, _of_labels(metrics.mean_absolute_error)),
        "r2": Metric("R²", False, _of_labels(metrics.r2_score)),
    },
}
_SECOND = {"classification": ("auc", "log-loss"), "regression": ("r2", "r2")}  # of two classes, of more


def chosen_metrics(task: str, wish: str | None, n_classes: int) -> tuple[Metric, Metric]:
    """The metric that decides, and one beside it."""
    known = METRICS[task]
    first = next(iter(known)) if wish is None else wish
    if first not in known:
        raise UserError(f"--metric {wish!r}: for {task} there are {', '.join(known)}.", 2)
    second = _SECOND[task][n_classes > 2]
    return known[first], known[next(iter(known)) if second == first else second]


@dataclass(frozen=True)
class Run:
    """One learner on one split: what it predicted for the test rows, or why it did not. Seconds are of the processor."""

    learner: int
    split: int
    predicted: NDArray[Any] | None = None
    proba: Chances | None = None  # of the test rows, where the learner gives probabilities
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    unconverged: int = 0
    error: str = ""
    wall_seconds: float = 0.0  # of all that, on a machine that may be busy
    late: bool = False  # stopped by the time limit
    shortened: str = ""  # what a learner with a time limit of its own says that it cost


@dataclass(frozen=True)
class Score:
    """A learner's line in the table. Seconds are means over splits; `mark` is "best", "tied", "open" (too few splits) or ""."""

    learner: Learner
    mean: float = np.nan
    difference: float = np.nan  # from the best, above 0 is worse
    half_width: float = np.nan  # of the interval of the difference
    second: float = np.nan
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    splits: int = 0
    unconverged: int = 0
    failure: str = ""
    cut: str = ""
    mark: str = ""


class _Late(BaseException):
    """A fit took too long; no learner catches this, though compiled ones may make a KeyboardInterrupt of it."""


@contextmanager
def _at_most(seconds: float | None) -> Iterator[None]:
    """Raises _Late after so many seconds, where the system has alarms and this is the main thread."""
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not main or not hasattr(signal, "setitimer"):
        yield
        return
    armed, rang = True, False

    def ring(*_: Any) -> None:
        nonlocal rang
        if armed:
            rang = True
            raise _Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    except BaseException:
        if rang:
            raise _Late from None
        raise
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class Comparison:
    """All runs of one comparison, finished or not; in a notebook it shows as its table.

    Attributes
    ----------
    table : DataFrame
        Learners, best first: score, difference from the best and half the width of its 95 % interval, a second score, seconds.
    best_model_ : TableModel
        The best learner fitted to all rows, on first use. Its `predict` takes frames.
    warnings : list of str
        What an analyst would look at in the data before believing the table.
    caveats : list of str
        What was shortened, left out or not reached, and why.
    """

    problem: Problem
    learners: list[Learner]
    splits: list[Split]
    folds: int
    repeats: int
    stratified: bool
    seed: int
    metric: Metric
    second: Metric
    runs: list[Run] = field(default_factory=list)
    interrupted: bool = False
    time_limit: float | None = None
    cuts: dict[int, str] = field(default_factory=dict)  # learners that were left out for the sake of time, and why
    own_limits: dict[int, float] = field(default_factory=dict)  # seconds a fit, told to learners
    stopped: bool = False  # by the time limit, before all splits were done
    enough: dict[int, int] = field(
        default_factory=dict
    )  # time limits that would keep learners of `cuts`, as far as can be told

    @property
    def n_rows(self) -> int:
        """Rows that learners are compared on: all, or of a large table a sample."""
        return sum(map(len, self.splits[0]))

    def undecided(self) -> str:
        """Why there is no best learner, in a sentence with the remedy; "" where there is one. A constant alone is none."""
        ended = [score.learner for score in self.scores() if not score.failure and not score.cut]
        if not ended:
            return "No learner finished, so there is nothing to compare."
        if not all(learner.baseline for learner in ended) or all(learner.baseline for learner in self.learners):
            return ""
        names = listed([learner.name for learner in ended])
        least = min(self.enough, key=lambda k: self.enough[k], default=None)
        remedy = (
            "Raise --time-limit, or look at the remarks in the table."
            if least is None
            else f"--time-limit {self.enough[least]} may let {self.learners[least].name} finish."
        )
        return f"Nothing finished but {names}, which predicts the same for every row, so there is nothing to compare. {remedy}"

    def split_scores(self, k: int, metric: Metric | None = None) -> dict[int, float]:
        """Score of learner k on every split it finished."""
        of, y, classes = (metric or self.metric).of, self.problem.y, self.problem.classes
        return {
            r.split: of(y[self.splits[r.split][1]], r.predicted, r.proba, classes)
            for r in self.runs
            if r.learner == k and r.predicted is not None
        }

    def row_losses(self, k: int) -> NDArray[np.float64]:
        """Mean loss of learner k on every row, over the repeats: wrong or not, or the squared error; NaN where never tested."""
        y = self.problem.y
        total, times = np.zeros(len(y)), np.zeros(len(y))
        for run in self.runs:
            if run.learner == k and run.predicted is not None:
                test = self.splits[run.split][1]
                wrong = (
                    run.predicted != y[test]
                    if self.problem.task == "classification"
                    else (run.predicted - y[test]) ** 2
                )
                total[test] += wrong
                times[test] += 1
        return np.where(times > 0, total / np.maximum(times, 1), np.nan)

    def held_out(self, k: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
        """Targets, predictions and probabilities of learner k on all test rows, one after another."""
        runs = [r for r in self.runs if r.learner == k and r.predicted is not None]
        y = np.concatenate([self.problem.y[self.splits[r.split][1]] for r in runs])
        predicted = np.concatenate([np.asarray(r.predicted) for r in runs])
        probabilities = [r.proba for r in runs if r.proba is not None]
        return (
            y,
            predicted,
            np.concatenate(probabilities).astype(np.float64) if len(probabilities) == len(runs) else None,
        )

    def scores(self) -> list[Score]:
        """Best first; then those that were cut, and failed learners last."""
        failed = {r.learner: r.error for r in self.runs if r.error}
        table = {k: self.split_scores(k) for k in range(len(self.learners)) if k not in failed}
        table = {k: done for k, done in table.items() if done}
        mute = {k for k, done in table.items() if np.isnan([*done.values()]).all()}
        table = {k: done for k, done in table.items() if k not in mute}
        whole = {k: done for k, done in table.items() if k not in self.cuts} or table
        common = sorted(set.intersection(*(set(done) for done in whole.values()))) if whole else []
        common = common or sorted(set().union(*whole.values()))
        values = {k: np.array([done[s] for s in common if s in done]) for k, done in whole.items()}
        order = sorted(values, key=lambda k: self.metric.sign * np.nanmean(values[k]))
        lines = [self._line(k, values[k], values[order[0]], k == order[0]) for k in order]
        late = [
            Score(self.learners[k], mean=float(np.mean([*table[k].values()])) if k in table else np.nan, splits=len(table.get(k, ())), cut=why)
            for k, why in self.cuts.items() if k not in whole
        ]  # fmt: skip
        late += [
            Score(self.learners[k], cut=f"gives no probabilities, which {self.metric.name} asks for")
            for k in sorted(mute)
        ]
        return [*lines, *late, *(Score(self.learners[k], failure=why) for k, why in sorted(failed.items()))]

    def _line(self, k: int, values: NDArray[np.float64], best: NDArray[np.float64], first: bool) -> Score:
        mine = [r for r in self.runs if r.learner == k]
        difference = half = np.nan
        mark = "best" if first else ""
        if not first and len(values) == len(best):
            worse = self.metric.sign * (values - best)
            difference, half = float(worse.mean()), half_width(worse, test_share=1 / self.folds)
            if not half < difference:  # also where the interval is not known
                mark = "tied" if len(values) >= FEW_SPLITS else "open"
        second = [v for v in self.split_scores(k, self.second).values() if np.isfinite(v)]
        return Score(
            self.learners[k], float(values.mean()), difference, half, float(np.mean(second)) if second else np.nan,
            float(np.mean([r.fit_seconds for r in mine])), float(np.mean([r.predict_seconds for r in mine])),
            len(values), sum(r.unconverged for r in mine), mark=mark,
        )  # fmt: skip

    def mark_of(self, score: Score) -> str:
        """Why a learner was cut, or how it compares with the best: the last column of the table at the shell and in the report."""
        best = "lowest" if self.metric.lower else "highest"
        best = "nothing to compare with" if self.undecided() else best
        marks = {"best": best, "tied": "not distinguishable", "open": "too few splits to tell"}
        return score.cut or marks.get(score.mark, "")

    @property
    def best(self) -> int:
        """Number of the best learner. Raises UserError where none finished."""
        first = next(iter(self.scores()), None)
        if first is None or first.failure or np.isnan(first.mean):
            raise UserError(
                "no learner finished, so there is no best one. Raise --time-limit, or look at the failures in the table."
            )
        return self.learners.index(first.learner)

    @cached_property
    def best_model_(self) -> TableModel:
        """The best learner fitted to all rows. Raises UserError where nothing but a constant finished."""
        why = self.undecided()
        if why:
            raise UserError(f"there is no best learner: {why[0].lower()}{why[1:]}")
        return TableModel.of(self.learners[self.best], self.problem, self.seed)

    @property
    def warnings(self) -> list[str]:
        """What was read and decided that an analyst would look at, each with its remedy."""
        return [note.removeprefix("Warning: ") for note in self.problem.notes if note.startswith("Warning: ")]

    @property
    def caveats(self) -> list[str]:
        """What was shortened, left out or not reached, and why: what a reader must know before believing the table."""
        scores = self.scores()
        lines = [*self._sampled(), *self._ended_early(scores), *self._left_out(), *self._hurried()]
        lines += [
            f"{s.learner.name} did not converge in {counted(s.unconverged, 'fit')}." for s in scores if s.unconverged
        ]
        if self.problem.task == "classification":
            if not self.stratified:
                lines.append("The rarest class has fewer rows than there are folds, so the folds are not stratified.")
            lines += self._never_predicted(scores)
        return lines

    def _sampled(self) -> list[str]:
        n = len(self.problem.y)
        if self.n_rows == n:
            return []
        return [
            f"Compared on {self.n_rows:,} of {n:,} rows, drawn at random. --max-rows takes more, and 0 all, which asks for a higher "
            "--time-limit. A model that is kept is fitted to all rows."
        ]

    def _ended_early(self, scores: list[Score]) -> list[str]:
        done, total = max((s.splits for s in scores if not s.cut), default=0), len(self.splits)
        if self.interrupted:
            return [f"Interrupted: scores are from the {done} of {total} splits that all learners finished."]
        if not self.stopped:
            return []
        return [
            f"Stopped after {done} of {total} splits by the time limit of {self.time_limit:g} s. --time-limit allows more, "
            "--folds and --repeats ask for less."
        ]

    def _left_out(self) -> list[str]:
        """Learners that were cut for the sake of time, and those of them that were ahead."""
        if not self.cuts:
            return []
        names = [self.learners[k].name for k in sorted(self.cuts)]
        lines = [f"Left out for what they cost themselves: {listed(names)}. The table says how much."]
        ahead = self._ahead()
        if ahead:
            best = self.learners[self.best].name
            lines.append(
                f"{listed(ahead)} did better than {best} on the same rows before time ran out. Raise --time-limit."
            )
        return lines

    def _ahead(self) -> list[str]:
        if self.undecided():
            return []
        best, names = self.split_scores(self.best), []
        for k in self.cuts:
            done = self.split_scores(k)
            common = [s for s in done if s in best]
            if common and self.metric.sign * sum(done[s] - best[s] for s in common) < 0:
                names.append(self.learners[k].name)
        return names

    def _hurried(self) -> list[str]:
        """Learners that would have used more time than they were told to take."""
        lines = []
        for k, own in self.own_limits.items():
            seconds = [run.wall_seconds for run in self.runs if run.learner == k]
            if seconds and max(seconds) >= _HURRIED * own:
                cost = next(
                    (f" by shortening {run.shortened}" for run in self.runs if run.learner == k and run.shortened), ""
                )
                lines.append(
                    f"{self.learners[k].name} was told to keep each fit within {own:.2g} s for the sake of the time limit, and used it up{cost}: "
                    "with a higher --time-limit it may do better."
                )
        return lines

    def _never_predicted(self, scores: list[Score]) -> list[str]:
        best = scores[0] if scores else None
        if best is None or best.failure or best.cut or best.learner.baseline:
            return []
        predicted = set(self.held_out(self.best)[1].tolist())
        never = [label for label in self.problem.classes if label not in predicted]
        if not never:
            return []
        return [
            f"{best.learner.name} never predicts {listed(map(repr, never))}. Compare with --metric balanced-error or --metric log-loss, which "
            "mind rare classes, or bring more rows of them."
        ]  # fmt: skip

    @property
    def table(self) -> pd.DataFrame:
        """The scores as a frame, best first."""
        return pandas_module().DataFrame(
            [
                {
                    "learner": s.learner.name, self.metric.name: s.mean, "worse by": s.difference, "±": s.half_width,
                    self.second.name: s.second, "fit seconds": s.fit_seconds, "predict seconds": s.predict_seconds, "splits": s.splits,
                    "remark": s.failure or self.mark_of(s),
                }
                for s in self.scores()
            ]
        )  # fmt: skip

    def _repr_html_(self) -> str:
        said = [("Look at:", text) for text in self.warnings] + [("Note:", text) for text in self.caveats]
        lines = "".join(f"<p><b>{head}</b> {escape(visible(text))}</p>" for head, text in said)
        shown = self.table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)
        with pandas_module().option_context("display.max_colwidth", None):  # or remarks are cut in the middle
            return f"{lines}{shown.to_html(index=False, na_rep='', float_format='%.4g', escape=True)}"

    def __repr__(self) -> str:
        head = f"Comparison of {len(self.learners)} learners on {self.problem.target}"
        return "\n".join([head, self.table.to_string(index=False), *map(visible, self.caveats)])


def half_width(differences: NDArray[np.float64], test_share: float) -> float:
    """Half the 95 % interval of a mean difference over J splits: t times the square root of (1/J + n_test/n_train) var.

    The corrected variance of Nadeau and Bengio (2003): splits share training rows, so that 1/J alone is too small.
    """
    count = len(differences)
    if count < 2:
        return np.nan
    spread = np.sqrt((1 / count + test_share / (1 - test_share)) * differences.var(ddof=1))
    return float(stats.t.ppf(1 - SIGNIFICANCE / 2, count - 1) * spread)


def one_run(
    k: int,
    s: int,
    learner: Learner,
    problem: Problem,
    split: Split,
    seed: int,
    limits: Limits = NO_LIMITS,
    until: float | None = None,
) -> Run:
    """Fit and predict one learner on one split; whatever it raises becomes part of the result.

    `until` is when all fits must have ended, in seconds of `time.time`, which processes share.
    """
    train, test = split
    rows: Any = problem.frame.iloc if learner.frames else problem.X
    begun, start = perf_counter(), process_time()
    bounds = [seconds for seconds in (limits.seconds, None if until is None else until - time()) if seconds is not None]
    if bounds and min(bounds) <= 0:
        return Run(k, s, late=True)
    # One thread: times are comparable, do not depend on a busy machine's spinning threads, and processes do not compete.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            with _at_most(min(bounds, default=None)):
                model = learner.make(seed)
                if limits.own is not None:
                    model.set_params(time_limit=limits.own)
                model = model.fit(rows[train], problem.y[train])
                fitted = process_time()
                predicted = np.ravel(model.predict(rows[test]))
                done = process_time()
                proba = _chances(model, rows[test], problem) if problem.task == "classification" else None
        except _Late:
            return Run(k, s, wall_seconds=perf_counter() - begun, late=True)
        except Exception as error:
            said = str(error).strip().splitlines()
            return Run(k, s, error=f"{type(error).__name__}: {cut(said[0], 200) if said else ''}")
    unconverged = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return Run(
        k, s, predicted, proba, fitted - start, done - fitted, int(unconverged), "", perf_counter() - begun,
        shortened=_shortened(model),
    )  # fmt: skip


def _shortened(model: Any) -> str:
    """Members that a time limit of the model's own has shortened or left out, by its `report_`."""
    report = getattr(model, "report_", {})
    if "shortened" not in report:
        return ""
    members = [
        name if text != "left out" else f"{name} (left out)"
        for name, text in zip(report["member"], report["shortened"], strict=True)
        if text
    ]
    return listed(list(dict.fromkeys(members)))


def _chances(model: Any, rows: Any, problem: Problem) -> Chances | None:
    """Probabilities of all classes of the problem, also of those that training did not see."""
    if not hasattr(model, "predict_proba"):
        return None
    proba = np.asarray(model.predict_proba(rows))
    out = np.zeros((len(proba), len(problem.classes)), dtype=np.float32)
    out[:, np.searchsorted(problem.classes, model.classes_)] = proba
    return out


def make_splits(
    problem: Problem, folds: int, repeats: int, seed: int, most: int | None = None
) -> tuple[list[Split], bool]:
    """The folds, of at most so many rows: copies of a row in one, stratified by class where every class has at least one row for each fold."""
    rows = sampled_rows(problem, most, seed)
    units = np.unique(problem.units[rows], return_inverse=True)[1]
    y = problem.y[rows][np.unique(units, return_index=True)[1]]  # of the first of every copies
    stratified = problem.task == "classification" and np.unique(y, return_counts=True)[1].min() >= folds
    kind = RepeatedStratifiedKFold if stratified else RepeatedKFold
    splits = kind(n_splits=folds, n_repeats=repeats, random_state=seed).split(np.zeros((len(y), 1)), y)
    return [(rows[rows_of(train, units)], rows[rows_of(test, units)]) for train, test in splits], bool(stratified)


def sampled_rows(problem: Problem, most: int | None, seed: int) -> NDArray[np.intp]:
    """Rows that are compared on, in their order: all, or so many, with the classes in their shares."""
    n = len(problem.y)
    if most is None or n <= most:
        return np.arange(n)
    order = generator(seed).permutation(n)
    if problem.task == "classification":
        order = order[np.argsort(problem.y[order], kind="stable")]
    return np.sort(order[evenly(n, most)])


def evaluate(
    problem: Problem,
    competitors: list[Learner],
    *,
    folds: int = 5,
    repeats: int = 3,
    seed: int = 0,
    n_jobs: int = 1,
    metric: str | None = None,
    time_limit: float | None = None,
    fit_limit: float | None = None,
    max_rows: int | None = None,
    started: float | None = None,
    on_start: Callable[[int, int, float | None], None] | None = None,
    on_run: Callable[[Run], None] | None = None,
    keep_interrupted: bool = False,
) -> Comparison:
    """Cross-validate all learners on the same folds.

    Parameters
    ----------
    problem : Problem
    competitors : list of Learner
    folds, repeats : int, default=5, 3
    seed : int, default=0
        Of the folds and the learners.
    n_jobs : int, default=1
        Processes. The scores do not depend on it, without a time limit; the times do.
    metric : str, optional
        As for `compare`; the error rate or the root mean squared error by default.
    time_limit, fit_limit : float, optional
        Seconds for all, and for one fit with its predictions. A fit is ended by an alarm of the system, which the main thread of Linux and
        macOS has, and between two steps of Python: elsewhere, and inside one long call of compiled code, it runs to its end.
    max_rows : int, optional
        As for `compare`.
    started : float, optional
        When the clock of `time_limit` began, by `time.perf_counter`; now by default.
    on_start : callable, optional
        Called before each run with the numbers of learner and split, and the seconds left, where they can be told.
    on_run : callable, optional
        Called after each run.
    keep_interrupted : bool, default=False
        Whether Ctrl-C ends the comparison with the runs that are finished, and `interrupted` set, rather than with KeyboardInterrupt.

    Returns
    -------
    comparison : Comparison
        A learner that fails once is left out of later splits, and so are, where time is short, the dearest (see `Schedule`).
    """
    splits, stratified = make_splits(problem, folds, repeats, seed, _most_rows(problem, max_rows, time_limit))
    first, second = chosen_metrics(problem.task, metric, len(problem.classes))
    clock = perf_counter() if started is None else started
    schedule = Schedule(
        _cheap_first(competitors), folds, len(splits), limit=time_limit, fit_limit=fit_limit, started=clock, processes=thread_count(n_jobs),
        own={k: learner.seconds for k, learner in enumerate(competitors) if learner.seconds is not None},
        cuts=_too_many_rows(sum(map(len, splits[0])), competitors),
    )  # fmt: skip
    comparison = Comparison(
        problem, competitors, splits, folds, repeats, stratified, seed, first, second, time_limit=time_limit,
        cuts=schedule.cuts, own_limits=schedule.own_limits, enough=schedule.enough,
    )  # fmt: skip
    try:
        for job, run in _runs(comparison, schedule, n_jobs, on_start):
            schedule.record(job, run.wall_seconds, late=run.late, failed=bool(run.error))
            if not run.late:
                comparison.runs.append(run)
                if on_run is not None:
                    on_run(run)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        comparison.interrupted = True
    comparison.stopped = schedule.stopped
    return comparison


def _most_rows(problem: Problem, wish: int | None, time_limit: float | None) -> int | None:
    """Rows to compare on, None for all. By default as many as most learners can do with, whatever the limit: one that a remark names is then enough."""
    if wish is None and time_limit is not None:
        return max(int(_MOST_ROWS * min(1.0, _COLUMNS / problem.X.shape[1])), _FEWEST_ROWS)
    return wish or None


def _too_many_rows(n: int, competitors: list[Learner]) -> dict[int, str]:
    """Learners that are not begun on so many rows, and why."""
    return {
        k: f"left out above {learner.most_rows} rows, for it costs time by their square; there are {n}"
        for k, learner in enumerate(competitors)
        if learner.most_rows is not None and n > learner.most_rows
    }


def _cheap_first(competitors: list[Learner]) -> list[int]:
    """Numbers of the learners: those without columns, then others' and then ours, as far as costs are known beforehand."""
    return sorted(range(len(competitors)), key=lambda k: (not competitors[k].baseline, competitors[k].ours))


def _runs(
    comparison: Comparison, schedule: Schedule, n_jobs: int, on_start: Callable[[int, int, float | None], None] | None
) -> Iterator[tuple[Job, Run]]:
    """What the schedule asks for, fit by fit, or in as many processes as there are."""
    until = None if schedule.limit is None else time() + schedule.seconds_left()

    def arguments(job: Job) -> tuple[Any, ...]:
        learner, split = comparison.learners[job.learner], comparison.splits[job.split]
        return *job, learner, comparison.problem, split, comparison.seed, schedule.limits(job), until

    for batch in schedule.batches():
        if n_jobs != 1:
            jobs = (delayed(one_run)(*arguments(job)) for job in batch)
            for run in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(jobs):
                yield Job(run.learner, run.split), run
            continue
        for job in batch:
            if schedule.stopped:
                return
            if on_start is not None:
                on_start(*job, schedule.forecast(job))
            yield job, one_run(*arguments(job))
