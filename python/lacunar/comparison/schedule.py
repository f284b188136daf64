"""Cross-validation of learners on the same folds within a time limit: cheapest first, one repeat for all before a second."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import perf_counter, time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold, TimeSeriesSplit

from lacunar._random import generator
from lacunar._threads import thread_count
from lacunar.comparison.comparison import Comparison
from lacunar.comparison.learners import Learner
from lacunar.comparison.metrics import chosen_metrics
from lacunar.comparison.problem import Problem
from lacunar.comparison.rival import Rival, Run, Split, one_run
from lacunar.learner.folds import rows_of
from lacunar.uncertainty.shift import evenly

# Rows that are compared on under a time limit, fewer of tables with more columns than this, and the fewest.
_MOST_ROWS, _COLUMNS, _FEWEST_ROWS = 24_000, 100, 10_000
# Fits on few rows: shares of the training rows, and the fewest rows and entries that tell anything.
_PILOTS, _PILOT_ROWS, _PILOT_ENTRIES = (1 / 16, 1 / 4), 32, 500
_OWN_SHARE, _LEAST_OWN = 0.9, 0.1  # of its share of the time that a learner with a limit of its own is told; seconds
_SHORTER = 0.5  # of what its fits took, that such a learner can still be told to take
_MARGIN = 1.1  # fits differ: what is kept for others, in shares of their mean
_GRACE = 0.15  # of the time limit: what the others have when one fit has overrun it


def make_splits(
    problem: Problem, folds: int, repeats: int, seed: int, most: int | None = None
) -> tuple[list[Split], bool]:
    """The folds, of at most `most` rows, or splits in the order of time. Groups and copies of a row stay in one fold;
    folds are stratified where every class has a row for each.
    """
    rows = sampled_rows(problem, most, seed)
    if problem.time is not None:
        return [(rows[train], rows[test]) for train, test in TimeSeriesSplit(folds).split(rows)], False
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
    on_start: Callable[[int, int], None] | None = None,
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
        Seconds for all, and for one fit with its predictions. No fit is ended in its middle: what
        earlier fits took, or fits on few rows, decides whether the next one begins.
    max_rows : int, optional
        As for `compare`.
    started : float, optional
        When the clock of `time_limit` began, by `time.perf_counter`; now by default.
    on_start : callable, optional
        Called before each fit with the numbers of learner and split, where one process fits them.
    on_run : callable, optional
        Called after each run.
    keep_interrupted : bool, default=False
        Whether Ctrl-C ends the comparison with the runs that are finished, and `interrupted` set,
        rather than with KeyboardInterrupt.

    Returns
    -------
    comparison : Comparison
        A learner that fails once is left out of later splits, and so are, where time is short, the
        slowest.
    """
    repeats = repeats if problem.time is None else 1
    splits, stratified = make_splits(problem, folds, repeats, seed, _most_rows(problem, max_rows, time_limit))
    first, second = chosen_metrics(problem.task, metric, len(problem.classes))
    n_rows = sum(map(len, splits[-1]))
    rivals = [
        Rival(learner, cut=_too_many_rows(n_rows, learner) or _too_few_numbers(problem, learner))
        for learner in competitors
    ]
    comparison = Comparison(
        problem, rivals, splits, folds, repeats, stratified, seed, first, second, time_limit=time_limit
    )
    schedule = Schedule(
        comparison, n_jobs, time_limit, fit_limit, perf_counter() if started is None else started, on_start, on_run
    )
    try:
        schedule.run()
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        comparison.interrupted = True
    return comparison


def _most_rows(problem: Problem, wish: int | None, time_limit: float | None) -> int | None:
    """Rows to compare on, None for all. The default does not depend on how long the limit is, so that the limit named
    in a remark is enough.
    """
    if wish is None and time_limit is not None:
        return max(int(_MOST_ROWS * min(1.0, _COLUMNS / max(problem.X.shape[1], 1))), _FEWEST_ROWS)
    return wish or None


def _too_many_rows(n: int, learner: Learner) -> str:
    """Why a learner is not begun on so many rows; "" where it is."""
    if learner.most_rows is None or n <= learner.most_rows:
        return ""
    return f"left out above {learner.most_rows} rows, for it costs time by their square; there are {n}"


def _too_few_numbers(problem: Problem, learner: Learner) -> str:
    """Why a learner of numbers is not begun on a table of text alone; "" where it is."""
    if problem.X.shape[1] or learner.frames or learner.baseline:
        return ""
    return "left out, for the table holds text of many levels alone, which it does not read"


@dataclass
class Schedule:
    """The fits of a comparison, split by split. Before each split, the slowest learners are stopped until the folds of the others fit into the time left.

    Learners with a time limit of their own divide the time that the others leave. In the first split they run last, when the cost of the others is known;
    in later ones they run first, so that the others are fitted beside them where there are processes.
    """

    comparison: Comparison
    n_jobs: int
    limit: float | None
    fit_limit: float | None
    started: float
    on_start: Callable[[int, int], None] | None = None
    on_run: Callable[[Run], None] | None = None

    def __post_init__(self) -> None:
        self.end = math.inf if self.limit is None else self.started + self.limit
        self.processes = thread_count(self.n_jobs)
        self.rows = len(self.comparison.splits[0][0])
        self.overrun = False

    def run(self) -> None:
        """Fit until all is done or time is over."""
        self._pilots()
        for split in range(len(self.comparison.splits)):
            if not self._has_time_for(split):
                break
            self._fit_split(split)
        self._stop_unbegun([rival for rival in self._active() if not rival.runs])
        done, total = [len(rival.runs) for rival in self._active()], len(self.comparison.splits)
        self.comparison.stopped = min(done, default=total) < total

    # -- fits -----------------------------------------------------------------------------------------------------------

    def _pilots(self) -> None:
        """Fit to few rows where time may be short, which tells before the first fold what a learner costs."""
        train, test = self.comparison.splits[0]
        order = generator(self.comparison.seed).permutation(train)
        for share in _PILOTS if self.limit is not None or self.fit_limit is not None else ():
            rows = int(share * self.rows)
            if rows < _PILOT_ROWS or rows * self.comparison.problem.X.shape[1] < _PILOT_ENTRIES:
                continue
            rivals = [rival for rival in self._active() if not self._has_own_limit(rival)]
            for rival, run in self._fits(rivals, 0, (order[:rows], test[: max(int(share * len(test)), 1)])):
                if not run.error:
                    rival.pilots.append((rows, max(run.wall_seconds, 1e-6)))
                    self._check_fit(rival, rival.cost(self.rows), "about ")
            self._stop_slowest(self.comparison.folds)

    def _fit_split(self, split: int) -> None:
        """Fit one split. In the first, learners with a limit of their own run last: slow learners are stopped before,
        and the time left is known.
        """
        if split:
            self._fit_some(sorted(self._active(), key=self._has_own_limit, reverse=True), split)
            return
        self._fit_some([rival for rival in self._active() if not self._has_own_limit(rival)], split)
        self._stop_slowest(self.comparison.folds - 1)
        self._fit_some([rival for rival in self._active() if self._has_own_limit(rival)], split)

    def _fit_some(self, rivals: list[Rival], split: int) -> None:
        for rival, run in self._fits(rivals, split, self.comparison.splits[split]):
            rival.runs.append(run)
            self._check_fit(rival, run.wall_seconds)
            if self.on_run is not None:
                self.on_run(run)

    def _fits(self, rivals: list[Rival], split: int, rows: Split) -> Iterator[tuple[Rival, Run]]:
        """Fits of one split that were begun in time, one by one or in as many processes as there are."""
        jobs = (self._job(rival, split, rows) for rival in rivals if rival.goes_on)
        runs = (
            (one_run(*job) for job in jobs)
            if self.n_jobs == 1
            else Parallel(n_jobs=self.n_jobs, return_as="generator_unordered")([delayed(one_run)(*job) for job in jobs])
        )
        for run in runs:
            if run is not None:
                yield self.comparison.rivals[run.learner], run

    def _job(self, rival: Rival, split: int, rows: Split) -> tuple[Any, ...]:
        """Arguments of `one_run`."""
        k = self.comparison.rivals.index(rival)
        if self._has_own_limit(rival):
            folds_left = max(self.comparison.folds - split, 1)
            rival.time_limit = self._own_time_limit(rival, folds_left, folds_left if split else folds_left - 1)
        if self.on_start is not None and self.n_jobs == 1:
            self.on_start(k, split)
        comparison, until = self.comparison, time() + self._seconds_left()
        return k, split, rival.learner, comparison.problem, rows, comparison.seed, rival.time_limit, until

    def _own_time_limit(self, rival: Rival, folds_left: int, folds_of_others: int) -> float:
        """The time limit of a learner's next fit, in seconds: its share of the time that the others leave, at most the limit of its last fit.

        In steps of a factor of two, so that a few seconds more or less do not change what it learns.
        """
        others = [x for x in self._active() if not self._has_own_limit(x)]
        free = self._seconds_left() - _MARGIN * folds_of_others * self._split_seconds(others)
        share = free / folds_left / sum(map(self._has_own_limit, self._active()))
        share = share if self.fit_limit is None else min(share, self.fit_limit)
        most = rival.time_limit or rival.learner.seconds or _OWN_SHARE * share
        halvings = math.ceil(math.log2(max(most / max(_OWN_SHARE * share, _LEAST_OWN), 1.0)))
        return max(math.ldexp(most, -halvings), _LEAST_OWN)

    def _check_fit(self, rival: Rival, seconds: float, about: str = "") -> None:
        """Stop a learner whose fit takes longer than `fit_limit`. Once, where a fit has overrun the time limit, allow
        the others some more time.
        """
        if self.fit_limit is not None and seconds > self.fit_limit:
            rival.cut = f"{about}{_time(seconds)} for one fit; --fit-limit allows more"
        if self.limit is not None and not self.overrun and self._seconds_left() < 0:
            self._stop_unbegun([x for x in self.comparison.rivals if self._awaits_first_fit(x)])
            self.overrun, self.end = True, perf_counter() + _GRACE * self.limit

    def _stop_unbegun(self, rivals: list[Rival]) -> None:
        for rival in rivals:
            rival.cut = "not begun before the time limit was over; --time-limit allows more"

    # -- costs ----------------------------------------------------------------------------------------------------------

    def _seconds_left(self) -> float:
        return self.end - perf_counter()

    def _active(self) -> list[Rival]:
        """Learners that are still fitted, cheapest first (as expected, before any fit), and those with a limit of their
        own last.
        """
        active = [rival for rival in self.comparison.rivals if rival.goes_on]
        return sorted(
            active,
            key=lambda x: (
                self._has_own_limit(x),
                x.cost(self.rows),
                not x.learner.baseline,
                x.learner.slow,
                x.learner.ours,
            ),
        )

    def _has_own_limit(self, rival: Rival) -> bool:
        """Whether the learner has a time limit of its own, which the schedule sets."""
        return self.limit is not None and rival.learner.seconds is not None

    def _expected_seconds(self, rival: Rival) -> float:
        """Expected seconds of a fit. A learner with a limit of its own can take half of its last time; before its first
        fit, such learners share half of the time left.
        """
        if not self._has_own_limit(rival):
            return rival.cost(self.rows)
        waiting = sum(self._awaits_first_fit(x) for x in self.comparison.rivals)
        half = max(self._seconds_left(), 0.0) / (2 * self.comparison.folds * max(waiting, 1))
        return (
            min(rival.learner.seconds or 0.0, half)
            if self._awaits_first_fit(rival)
            else _SHORTER * rival.cost(self.rows)
        )

    def _awaits_first_fit(self, rival: Rival) -> bool:
        """Whether a learner with a limit of its own has not had its first fit."""
        return self._has_own_limit(rival) and rival.goes_on and not rival.runs

    def _split_seconds(self, rivals: list[Rival]) -> float:
        """Expected seconds of one split of these learners: their sum divided among processes, at least the longest fit."""
        seconds = [self._expected_seconds(rival) for rival in rivals]
        return max(sum(seconds) / self.processes, max(seconds, default=0.0))

    # -- who is stopped -------------------------------------------------------------------------------------------------

    def _has_time_for(self, split: int) -> bool:
        """Whether there is time for a split, once the slowest learners are stopped in the first repeat."""
        self._stop_slowest(self.comparison.folds - split)
        active = self._active()
        return bool(active) and self._split_seconds(active) <= self._seconds_left()

    def _stop_slowest(self, folds_left: int) -> None:
        """Stop the slowest learners until the folds of the others fit into the time left; none where even the cheapest
        does not fit.
        """
        if folds_left <= 0:
            return
        active = sorted(
            self._active(), key=lambda rival: (not self._awaits_first_fit(rival), self._expected_seconds(rival))
        )
        seconds_left, spans = (
            self._seconds_left(),
            [folds_left * self._split_seconds(active[:n]) for n in range(len(active) + 1)],
        )
        fitting = [n for n in range(1, len(spans)) if spans[n] <= seconds_left]
        for n in range(max(fitting, default=len(active)), len(active)):
            self._stop(active[n], folds_left, max(seconds_left - spans[n], 0.0), spans[n + 1])

    def _stop(self, rival: Rival, folds_left: int, free: float, needed: float) -> None:
        """Stop a learner, and say what its folds need, how much time is free, and with which limit they fit beside the
        cheaper learners.
        """
        folds, cost = self.comparison.folds, self._expected_seconds(rival)
        # A learner with a limit of its own takes half of the time.
        halves = 2 if any(map(self._has_own_limit, self._active())) else 1
        rival.enough = math.ceil(_MARGIN * halves * (perf_counter() - self.started + needed))
        others = f"the other {folds_left} of {folds}" if rival.runs else f"its {folds_left}"
        begin, keeps = ("", "keeps") if rival.runs else ("about ", "may keep")
        rival.cut = (
            f"{begin}{_time(cost)} a fit: {others} folds need {_time(folds_left * cost)}, and {_time(free)} are left after the "
            f"cheaper learners; --time-limit {rival.enough} {keeps} it"
        )


def _time(seconds: float) -> str:
    """Seconds with two digits that count."""
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
