"""The learners that are compared, their cross-validation on the same folds, and what the scores allow to conclude."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy import stats
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, RepeatedKFold, RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from lacunar.compare.problem import Problem
from lacunar.compare.tables import UserError

_NEAREST = 10  # columns that predict a missing entry in iterative imputation: keeps wide tables affordable
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Learner:
    """A competitor: its name, whether it is of this package, one line on what it does, and a function that makes one from a seed."""

    name: str
    ours: bool
    about: str
    make: Callable[[int], Any]
    baseline: bool = False


def _karma(task: str, search: bool) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from lacunar import karma

        kind = "Classifier" if task == "classification" else "Regressor"
        return getattr(karma, f"Karma{kind}CV")() if search else getattr(karma, f"Karma{kind}")(gamma=2)

    return make


def _pooled(task: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from lacunar import learner

        kind = "Classifier" if task == "classification" else "Regressor"
        return getattr(learner, f"Lacunar{kind}")(random_state=seed)

    return make


def _linear(task: str) -> Any:
    if task == "regression":
        return RidgeCV(alphas=np.logspace(-3, 4, 15))
    return GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3)


def _imputed(task: str, indicator: bool = False) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        fill = SimpleImputer(add_indicator=indicator, keep_empty_features=True)
        return make_pipeline(fill, StandardScaler(), _linear(task))

    return make


def _iterative(task: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        fill = IterativeImputer(random_state=seed, n_nearest_features=_NEAREST, keep_empty_features=True)
        return make_pipeline(StandardScaler(), fill, _linear(task))

    return make


_ALSO = {  # at the shell -> class without "Classifier" or "Regressor", its parameters, what it does
    "mc-1": (
        "MatrixCompletion",
        {"intercept": "column"},
        "labels and columns completed as one matrix of low rank, with a column of ones",
    ),
    "mc-b": (
        "MatrixCompletion",
        {"intercept": "bias"},
        "labels and columns completed as one matrix of low rank, with a bias",
    ),
    "geom": ("Geom", {}, "support vectors, every row's margin in its own columns; two classes only"),
}


def _baseline(task: str, name: str) -> Learner:
    if name == "geom" and task == "regression":
        raise UserError("--also geom: it tells two classes apart, and the task is regression. Leave it out.", 2)
    stem, options, about = _ALSO[name]
    kind = "Classifier" if task == "classification" else "Regressor"

    def make(seed: int) -> Any:
        from lacunar import baselines

        seeded = {} if name == "geom" else {"random_state": seed}
        return getattr(baselines, stem + kind)(**options, **seeded)

    return Learner(name, False, about, make)


def learners(task: str, also: Sequence[str] = ()) -> list[Learner]:
    """The competitors for "classification" or "regression", ours first; `also` names more: "mc-1", "mc-b", "geom".

    Examples
    --------
    >>> from lacunar.compare import learners
    >>> [learner.name for learner in learners("regression")][:2]
    ['lacunar', 'KARMA']
    """
    classes = task == "classification"
    model = "logistic regression" if classes else "ridge regression"
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    dummy = DummyClassifier if classes else DummyRegressor
    return [
        Learner(
            "lacunar",
            True,
            "kernels, a low-rank Gaussian, boosting, a forest and a linear model on the table as it is, pooled; nothing imputed",
            _pooled(task),
        ),
        Learner(
            "KARMA",
            True,
            "kernel, gamma and C chosen by exact leave-one-out; nothing imputed",
            _karma(task, search=True),
        ),
        Learner("KARMA gamma=2", True, "fixed kernel, C = 1; nothing imputed", _karma(task, search=False)),
        Learner("mean + linear", False, f"column means for what is missing, {model}", _imputed(task)),
        Learner(
            "mean + flags + linear",
            False,
            f"the same with a flag for each missing entry, {model}",
            _imputed(task, True),
        ),
        Learner(
            "iterative + linear",
            False,
            f"missing entries predicted from other columns in turn, {model}",
            _iterative(task),
        ),
        Learner(
            "gradient boosting",
            False,
            "HistGradientBoosting, missing entries sent down a branch",
            lambda seed: boosting(random_state=seed),
        ),
        *(_baseline(task, name) for name in dict.fromkeys(also)),
        Learner(
            "no columns",
            False,
            "the commonest class" if classes else "the mean of the target",
            lambda seed: dummy(),
            True,
        ),
    ]


def own_learner(task: str, name: str) -> Learner:
    """One of ours by its short name at the shell: "lacunar", "karma" or "karma-2"."""
    return learners(task)[{"lacunar": 0, "karma": 1, "karma-2": 2}[name]]


@dataclass(frozen=True)
class Run:
    """One learner on one split: its loss on every test row, or why there is none."""

    learner: int
    split: int
    losses: NDArray[np.float64] | None
    fit_seconds: float = 0.0
    predict_seconds: float = 0.0
    unconverged: int = 0
    error: str = ""


@dataclass(frozen=True)
class Score:
    """A learner's line in the table. Seconds are means over splits; `mark` is "best", "tied" or ""."""

    learner: Learner
    mean: float = np.nan
    error: float = np.nan
    r2: float = np.nan
    fit_seconds: float = np.nan
    predict_seconds: float = np.nan
    splits: int = 0
    unconverged: int = 0
    failure: str = ""
    mark: str = ""
    p_value: float = np.nan


@dataclass
class Comparison:
    """All runs of one comparison; `scores` reads them, finished or not."""

    problem: Problem
    learners: list[Learner]
    splits: list[Split]
    folds: int
    repeats: int
    stratified: bool
    runs: list[Run] = field(default_factory=list)
    interrupted: bool = False

    @property
    def measure(self) -> str:
        """Name of the score: "error rate" or "RMSE"."""
        return "error rate" if self.problem.task == "classification" else "RMSE"

    def split_scores(self, k: int) -> dict[int, float]:
        """Score of learner k on every split it finished."""
        done = {r.split: float(np.mean(r.losses)) for r in self.runs if r.learner == k and r.losses is not None}
        return done if self.problem.task == "classification" else {s: float(np.sqrt(v)) for s, v in done.items()}

    def row_losses(self, k: int) -> NDArray[np.float64]:
        """Mean loss of learner k on every row, over the repeats; NaN where never tested."""
        total, times = np.zeros(len(self.problem.y)), np.zeros(len(self.problem.y))
        for run in self.runs:
            if run.learner == k and run.losses is not None:
                total[self.splits[run.split][1]] += run.losses
                times[self.splits[run.split][1]] += 1
        return np.where(times > 0, total / np.maximum(times, 1), np.nan)

    def scores(self) -> list[Score]:
        """Best first; failed learners last."""
        failed = {r.learner: r.error for r in self.runs if r.error}
        table = {k: self.split_scores(k) for k in range(len(self.learners)) if k not in failed}
        table = {k: done for k, done in table.items() if done}
        common = sorted(set.intersection(*(set(done) for done in table.values()))) if table else []
        values = {k: np.array([done[s] for s in (common or sorted(done))]) for k, done in table.items()}
        lines = {k: self._line(k, v, common or sorted(table[k])) for k, v in values.items()}
        order = sorted(lines, key=lambda k: lines[k].mean)
        marked = [self._marked(lines[k], values[k], values[order[0]], k == order[0]) for k in order]
        return [*marked, *(Score(self.learners[k], failure=why) for k, why in sorted(failed.items()))]

    def _line(self, k: int, values: NDArray[np.float64], splits: list[int]) -> Score:
        mine = [r for r in self.runs if r.learner == k]
        y = self.problem.y
        r2 = np.nan
        if self.problem.task == "regression":
            spread = [np.var(y[self.splits[s][1]]) for s in splits]
            r2 = 1 - float(np.sum(values**2)) / max(float(np.sum(spread)), np.finfo(float).tiny)
        return Score(
            self.learners[k], float(values.mean()), standard_error(values, splits, self.folds), r2,
            float(np.mean([r.fit_seconds for r in mine])), float(np.mean([r.predict_seconds for r in mine])),
            len(values), sum(r.unconverged for r in mine),
        )  # fmt: skip

    def _marked(self, line: Score, values: NDArray[np.float64], best: NDArray[np.float64], first: bool) -> Score:
        if first:
            return Score(**{**vars(line), "mark": "best", "p_value": 1.0})
        p = 1.0
        if len(values) == len(best) and len(values) > 1:
            p = paired_p_value(values - best, test_share=1 / self.folds)
        return Score(**{**vars(line), "mark": "tied" if p > SIGNIFICANCE else "", "p_value": p})


def standard_error(values: NDArray[np.float64], splits: list[int], folds: int) -> float:
    """Standard error over repeats; over folds while only one repeat is there."""
    repeats = np.array(splits) // folds
    means = np.array([values[repeats == r].mean() for r in np.unique(repeats)])
    sample = means if len(means) > 1 else values
    return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else np.nan


def paired_p_value(differences: NDArray[np.float64], test_share: float) -> float:
    """Two-sided t test with the corrected variance of Nadeau and Bengio (2003): (1/J + n_test/n_train) var."""
    count, variance = len(differences), float(differences.var(ddof=1))
    if variance == 0:
        return 1.0 if differences.mean() == 0 else 0.0
    spread = np.sqrt((1 / count + test_share / (1 - test_share)) * variance)
    return float(2 * stats.t.sf(abs(differences.mean()) / spread, count - 1))


def one_run(k: int, s: int, learner: Learner, problem: Problem, split: Split, seed: int) -> Run:
    """Fit and predict one learner on one split; whatever it raises becomes part of the result."""
    train, test = split
    X, y = problem.X, problem.y
    # One thread: times are comparable, do not depend on a busy machine's spinning threads, and processes do not compete.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        try:
            start = perf_counter()
            model = learner.make(seed).fit(X[train], y[train])
            fitted = perf_counter()
            predicted = model.predict(X[test])
            done = perf_counter()
        except Exception as error:
            return Run(
                k,
                s,
                None,
                error=f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}",
            )
    unconverged = sum(issubclass(w.category, ConvergenceWarning) for w in caught)
    losses = (predicted != y[test]).astype(float) if problem.task == "classification" else (predicted - y[test]) ** 2
    return Run(k, s, losses, fitted - start, done - fitted, int(unconverged > 0))


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
    on_run: Callable[[Run], None] | None = None,
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
        Processes. The scores do not depend on it; the times do.
    on_run : callable, optional
        Called after each run.

    Returns
    -------
    comparison : Comparison
        After Ctrl-C with the runs that were finished and `interrupted` set. A learner that fails once is left out of
        later splits.
    """
    splits, stratified = make_splits(problem, folds, repeats, seed)
    comparison = Comparison(problem, competitors, splits, folds, repeats, stratified)
    try:
        for run in _runs(comparison, seed, n_jobs):
            comparison.runs.append(run)
            if on_run is not None:
                on_run(run)
    except KeyboardInterrupt:
        comparison.interrupted = True
    return comparison


def _runs(comparison: Comparison, seed: int, n_jobs: int) -> Iterator[Run]:
    """Split by split, so that an interrupted comparison is a fair one on fewer splits."""
    problem, failed = comparison.problem, {r.learner for r in comparison.runs if r.error}

    def jobs() -> Iterator[tuple[Any, ...]]:
        for s, split in enumerate(comparison.splits):
            for k, learner in enumerate(comparison.learners):
                if k not in failed:
                    yield k, s, learner, problem, split, seed

    if n_jobs == 1:
        for job in jobs():
            run = one_run(*job)
            if run.error:
                failed.add(run.learner)
            yield run
        return
    parallel = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for run in parallel(delayed(one_run)(*job) for job in jobs()):
        if run.error:
            failed.add(run.learner)
        yield run
