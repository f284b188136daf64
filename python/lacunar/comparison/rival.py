"""A learner in a comparison, and its fits: what they predicted, what they cost, and why it was left out."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from time import perf_counter, process_time, time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import TimeSeriesSplit
from threadpoolctl import threadpool_limits

from lacunar.comparison.cells import cut, listed
from lacunar.comparison.learners import Learner
from lacunar.comparison.metrics import Chances, Metric
from lacunar.comparison.problem import Problem
from lacunar.learner.base import LacunarBase

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
_OWN_SPLITS = 5  # in the order of time, of a learner that splits its training rows
_POWERS = (0.0, 2.0)  # of the number of rows, by which what a fit costs may grow


@dataclass(frozen=True)
class Run:
    """One learner on one split: what it predicted for the test rows, or why it did not. Seconds are of the processor."""

    learner: int
    split: int
    test: NDArray[np.intp]
    predicted: NDArray[Any] | None = None
    proba: Chances | None = None  # of the test rows, where the learner gives probabilities
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    unconverged: int = 0
    error: str = ""
    wall_seconds: float = 0.0  # of all that, on a machine that may be busy
    shortened: str = ""  # what a learner with a time limit of its own says that it cost
    model: Any = None  # on the first split, where the learner is of this package: the report asks it for importance


@dataclass(eq=False)
class Rival:
    """A learner with its runs. `cut` says why it was left out, `enough` which time limit would keep it, `time_limit`
    the seconds that one fit of it may take.
    """

    learner: Learner
    runs: list[Run] = field(default_factory=list)
    cut: str = ""
    enough: int | None = None
    time_limit: float | None = None
    pilots: list[tuple[int, float]] = field(default_factory=list)  # rows and seconds of fits on few rows

    @property
    def done(self) -> list[Run]:
        """Runs with predictions."""
        return [run for run in self.runs if run.predicted is not None]

    @property
    def failure(self) -> str:
        """What the learner raised; "" where nothing."""
        return next((run.error for run in self.runs if run.error), "")

    @property
    def goes_on(self) -> bool:
        """Whether it is to be fitted again."""
        return not self.cut and not self.failure

    def cost(self, rows: int) -> float:
        """Seconds of a fit to so many rows with its predictions: the mean of its runs, before them judged by pilots,
        before those 0.
        """
        if self.done:
            return sum(run.wall_seconds for run in self.done) / len(self.done)
        if not self.pilots:
            return 0.0
        (n_first, seconds_first), (n_last, seconds_last) = self.pilots[0], self.pilots[-1]
        power = math.log(seconds_last / seconds_first) / math.log(n_last / n_first) if n_last > n_first else 0.0
        return seconds_last * math.pow(rows / n_last, np.clip(power, *_POWERS))

    def scores(self, metric: Metric, problem: Problem) -> dict[int, float]:
        """Score on every split that was finished."""
        classes = problem.classes
        return {
            run.split: metric.of(problem.y[run.test], run.predicted, run.proba, classes)
            for run in self.runs
            if run.predicted is not None
        }

    def row_losses(self, problem: Problem) -> NDArray[np.float64]:
        """Mean loss on every row, over the repeats: wrong or not, or the squared error; NaN where never tested."""
        total, times = np.zeros(len(problem.y)), np.zeros(len(problem.y))
        for run in self.done:
            y, predicted = problem.y[run.test], np.asarray(run.predicted)
            total[run.test] += predicted != y if problem.task == "classification" else (predicted - y) ** 2
            times[run.test] += 1
        return np.where(times > 0, total / np.maximum(times, 1), np.nan)

    def held_out(self, problem: Problem) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64] | None]:
        """Targets, predictions and probabilities, None where there are none, on all test rows, one split after another."""
        y = np.concatenate([problem.y[run.test] for run in self.done])
        predicted = np.concatenate([np.asarray(run.predicted) for run in self.done])
        proba = [run.proba for run in self.done if run.proba is not None]
        return y, predicted, np.concatenate(proba).astype(np.float64) if len(proba) == len(self.done) else None

    def time_limit_reached(self) -> list[str]:
        """A sentence where the time limit that the learner was told to keep has shortened it."""
        shortened = next((run.shortened for run in self.runs if run.shortened), "")
        if self.time_limit is None or not shortened:
            return []
        return [
            f"{self.learner.name} was told to keep each fit within {self.time_limit:.2g} s for the sake of the time limit, and shortened {shortened}: "
            "with a higher --time-limit it may do better."
        ]


def one_run(
    k: int, s: int, learner: Learner, problem: Problem, split: Split, seed: int, time_limit: float | None, until: float
) -> Run | None:
    """Fit and predict learner k on split s; whatever it raises becomes part of the result. None, and no fit, after `until`.

    `until` is in seconds of `time.time`, which processes share; `time_limit` is set, in seconds, on a learner that has such a parameter.
    """
    if time() > until:
        return None
    train, test = split
    rows: Any = problem.frame.iloc if learner.frames else problem.X
    # One thread: times are comparable, do not depend on a busy machine's spinning threads, and processes do not compete.
    with warnings.catch_warnings(record=True, action="always") as caught, threadpool_limits(1):
        try:
            model = learner.make(seed)
            begun, start = perf_counter(), process_time()
            if time_limit is not None:
                model.set_params(time_limit=time_limit)
            model = fitted_by_folds(model, rows[train], problem.y[train], problem, train)
            fitted = process_time()
            predicted = np.ravel(model.predict(rows[test]))
            done = process_time()
            proba = chances(model, rows[test], problem) if problem.task == "classification" else None
            proba = None if proba is None else proba.astype(np.float32)
        except Exception as error:  # learners of the user raise what they like
            said = str(error).strip().splitlines()
            return Run(k, s, test, error=f"{type(error).__name__}: {cut(said[0], 200) if said else ''}")
    unconverged = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    return Run(
        k, s, test, predicted, proba, fitted - start, done - fitted, int(unconverged), "", perf_counter() - begun, _shortened(model),
        model if s == 0 and learner.ours else None,
    )  # fmt: skip


def fitted_by_folds(model: Any, X: Any, y: Any, problem: Problem, rows: Any = slice(None)) -> Any:
    """The fitted model. One with folds of its own gets the groups of the rows, or folds in the order of time."""
    if problem.time is not None and isinstance(model, LacunarBase):
        model.set_params(cv=TimeSeriesSplit(_OWN_SPLITS))
    grouping = {"groups": problem.units[rows]} if problem.groups is not None and isinstance(model, LacunarBase) else {}
    return model.fit(X, y, **grouping)


def _shortened(model: Any) -> str:
    """Members that a time limit of the model's own has shortened or left out, by its `report_`."""
    report = getattr(model, "report_", {})
    members = zip(report["member"], report["shortened"], strict=True) if "shortened" in report else ()
    names = [name if text != "left out" else f"{name} (left out)" for name, text in members if text]
    return listed(dict.fromkeys(names))


def chances(model: Any, rows: Any, problem: Problem) -> NDArray[np.float64] | None:
    """Probabilities of all classes of the problem, also of those that training did not see."""
    if not hasattr(model, "predict_proba"):
        return None
    proba = np.asarray(model.predict_proba(rows))
    out = np.zeros((len(proba), len(problem.classes)))
    out[:, np.searchsorted(problem.classes, model.classes_)] = proba
    return out
