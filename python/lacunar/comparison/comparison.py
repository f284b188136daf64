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
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from sklearn import metrics
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lacunar.comparison.cells import UserError, counted, cut, pandas_module, visible
from lacunar.comparison.learners import Learner
from lacunar.comparison.model import TableModel
from lacunar.comparison.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Chances = NDArray[np.floating[Any]]  # (rows, classes)
SIGNIFICANCE = 0.05
FEW_SPLITS = 5  # below which intervals say little
_FIT_SHARE = 1 / 6  # of the whole time limit that one fit may take


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
    told = [k for k in range(len(classes)) if flags[:, k].any() and not flags[:, k].all()]
    told = told[:1] if len(classes) == 2 else told
    return float(np.mean([metrics.roc_auc_score(flags[:, k], proba[:, k]) for k in told])) if told else np.nan


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
        What an analyst would look at before believing the table.
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
    stopped: bool = False  # by the time limit, before all splits were done

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
        given = [r.proba for r in runs if r.proba is not None]
        return y, predicted, np.concatenate(given).astype(np.float64) if len(given) == len(runs) else None

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
        """The best learner fitted to all rows."""
        return TableModel.of(self.learners[self.best], self.problem, self.seed)

    @property
    def warnings(self) -> list[str]:
        """What was read and decided that an analyst would look at, each with its remedy."""
        return [note.removeprefix("Warning: ") for note in self.problem.notes if note.startswith("Warning: ")]

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
        warned = "".join(f"<p><b>Look at:</b> {escape(visible(text))}</p>" for text in self.warnings)
        shown = self.table.map(lambda cell: visible(cell) if isinstance(cell, str) else cell)
        return f"{warned}{shown.to_html(index=False, na_rep='', float_format='%.4g', escape=True)}"

    def __repr__(self) -> str:
        return (
            f"Comparison of {len(self.learners)} learners on {self.problem.target}\n{self.table.to_string(index=False)}"
        )


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
    k: int, s: int, learner: Learner, problem: Problem, split: Split, seed: int, seconds: float | None = None
) -> Run:
    """Fit and predict one learner on one split; whatever it raises becomes part of the result."""
    train, test = split
    rows: Any = problem.frame.iloc if learner.frames else problem.X
    begun, start = perf_counter(), process_time()
    # One thread: times are comparable, do not depend on a busy machine's spinning threads, and processes do not compete.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            with _at_most(seconds):
                model = learner.make(seed).fit(rows[train], problem.y[train])
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
    return Run(k, s, predicted, proba, fitted - start, done - fitted, int(unconverged), "", perf_counter() - begun)


def _chances(model: Any, rows: Any, problem: Problem) -> Chances | None:
    """Probabilities of all classes of the problem, also of those that training did not see."""
    if not hasattr(model, "predict_proba"):
        return None
    given = np.asarray(model.predict_proba(rows))
    out = np.zeros((len(given), len(problem.classes)), dtype=np.float32)
    out[:, np.searchsorted(problem.classes, model.classes_)] = given
    return out


def make_splits(problem: Problem, folds: int, repeats: int, seed: int) -> tuple[list[Split], bool]:
    """The folds, stratified by class where every class has at least one row for each fold."""
    counts = np.unique(problem.y, return_counts=True)[1]
    stratified = problem.task == "classification" and counts.min() >= folds
    kind = RepeatedStratifiedKFold if stratified else RepeatedKFold
    splitter = kind(n_splits=folds, n_repeats=repeats, random_state=seed)
    return list(splitter.split(problem.X, problem.y)), stratified


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
        Seconds for all, and for one fit with its predictions.
    on_start : callable, optional
        Called before each run with the numbers of learner and split, and the seconds left, where they can be told.
    on_run : callable, optional
        Called after each run.
    keep_interrupted : bool, default=False
        Whether Ctrl-C ends the comparison with the runs that are finished, and `interrupted` set, rather than with KeyboardInterrupt.

    Returns
    -------
    comparison : Comparison
        A learner that fails once is left out of later splits, and so are, where time is short, the slowest.
    """
    splits, stratified = make_splits(problem, folds, repeats, seed)
    first, second = chosen_metrics(problem.task, metric, len(problem.classes))
    comparison = Comparison(
        problem, competitors, splits, folds, repeats, stratified, seed, first, second, time_limit=time_limit
    )
    race = _Race(comparison, fit_limit, n_jobs, on_start)
    try:
        for run in race.runs():
            comparison.runs.append(run)
            if run.late:
                comparison.cuts[run.learner] = (
                    f"stopped after {run.wall_seconds:.0f} s of one fit; --fit-limit allows more"
                )
            if on_run is not None:
                on_run(run)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        comparison.interrupted = True
    return comparison


class _Race:
    """Split by split, so that an interrupted comparison is a fair one on fewer splits; who is too slow for the time leaves."""

    def __init__(self, comparison: Comparison, fit_limit: float | None, n_jobs: int, on_start: Any) -> None:
        self.of, self.n_jobs, self.on_start = comparison, n_jobs, on_start
        self.started, self.limit = perf_counter(), comparison.time_limit
        self.fit_limit = fit_limit if fit_limit is not None or self.limit is None else max(_FIT_SHARE * self.limit, 1.0)

    def runs(self) -> Iterator[Run]:
        for s in range(len(self.of.splits)):
            if s and not self._another(s):
                self.of.stopped = True
                return
            yield from self._parallel(s) if self.n_jobs != 1 else self._one_by_one(s)
            if s == 0:
                self._drop_slow()

    def _alive(self) -> list[int]:
        gone = {r.learner for r in self.of.runs if r.error} | self.of.cuts.keys()
        quick_first = sorted(range(len(self.of.learners)), key=lambda k: not self.of.learners[k].baseline)
        return [k for k in quick_first if k not in gone]

    def _one_by_one(self, s: int) -> Iterator[Run]:
        for k in self._alive():
            if self._left() <= 0:
                if s:
                    self.of.stopped = True
                    return
                self.of.cuts[k] = "not begun within the time limit; --time-limit allows more"
                continue
            if self.on_start is not None:
                self.on_start(k, s, self._forecast(k, s))
            yield one_run(*self._job(k, s))

    def _parallel(self, s: int) -> Iterator[Run]:
        jobs = (delayed(one_run)(*self._job(k, s)) for k in self._alive())
        yield from Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")(jobs)

    def _job(self, k: int, s: int) -> tuple[Any, ...]:
        of = self.of
        return k, s, of.learners[k], of.problem, of.splits[s], of.seed, self.fit_limit

    def _left(self) -> float:
        return np.inf if self.limit is None else self.limit - (perf_counter() - self.started)

    def _seconds(self, k: int) -> float:
        """Of one run of learner k."""
        took = [r.wall_seconds for r in self.of.runs if r.learner == k]
        return float(np.mean(took)) if took else 0.0

    def _a_split(self) -> float:
        """Seconds that a split takes, of which processes share the sum but none the longest."""
        each = [self._seconds(k) for k in self._alive()]
        return max(sum(each) / (self.n_jobs if self.n_jobs > 0 else 1), max(each, default=0.0))

    def _another(self, s: int) -> bool:
        return self._a_split() <= self._left() and bool(self._alive())

    def _forecast(self, k: int, s: int) -> float | None:
        """Seconds left: at most the limit, and from the second split on by what the first took."""
        if s == 0:
            return None if self.limit is None else self._left()
        alive = self._alive()
        now = sum(self._seconds(j) for j in alive[alive.index(k) :])
        return min(self._left(), now + self._a_split() * (len(self.of.splits) - s - 1))

    def _drop_slow(self) -> None:
        """Without the slowest, one repeat of all folds must fit into the time that is left; the two best of the first split stay."""
        splits, kept = min(self.of.folds, len(self.of.splits)) - 1, self._leaders()
        while self._a_split() * splits > self._left() and (others := set(self._alive()) - kept):
            slowest = max(others, key=self._seconds)
            needed = (perf_counter() - self.started) * (splits + 2)
            self.of.cuts[slowest] = (
                f"too slow for the time limit, {counted(round(self._seconds(slowest)), 'second')} a fit; --time-limit {needed:.0f} keeps it"
            )

    def _leaders(self) -> set[int]:
        """The two that were best on the first split."""
        scores = {k: self.of.metric.sign * found[0] for k in self._alive() if 0 in (found := self.of.split_scores(k))}
        return set(sorted((k for k in scores if np.isfinite(scores[k])), key=scores.__getitem__)[:2])
