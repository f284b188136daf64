"""The members of the learner: ways to predict from what was observed, each with out-of-fold values for the pool.

A member's `fit(lesson)` returns values (n, k) of every row by what was learned without its fold, and `predict(view, posterior)` those of other
rows: one column a class in units of log probabilities up to `Calibration`, or one a target.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from lacunar._products import row_product
from lacunar._random import generator
from lacunar._threads import one_openmp_thread, thread_count
from lacunar.karma import KarmaClassifier, KarmaRegressor
from lacunar.karma.calibrate import all_classes
from lacunar.karma.race import TICK, USABLE, KernelRace
from lacunar.learner.pool import log_softmax
from lacunar.learner.trees import Trees
from lacunar.learner.views import View
from lacunar.lowrank.posterior import LowRankPosterior, PosteriorRidge, fold_ridge
from lacunar.observed import Observed
from lacunar.observed.rules import COUNT, Array, Instance, Items, Number, Rule, floats

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intp]

LEAST = 1e-4  # probability that a member may give a class
_SMALLEST_TREES = 10  # of a forest cut short
_STAGE = 40  # iterations of boosting between two looks at the loss out of fold
_SMALL_LEAVES = 6
_PILOT_FOLDS = 2  # on which usual and small trees compete
_MANY_ROWS, _MANY_COLUMNS = 5000, 100  # beyond which small trees are not tried
_MOST_FOR_NEWTON = 200  # coefficients of logistic regression, whose Hessian is factorised
# Under a time limit:
_PILOT_TREES, _WORTHWHILE_TREES = 3, 30  # of a forest; rows are left out for the sake of so many
_PILOT_ITERATIONS, _WORTHWHILE_ITERATIONS = 3, 40  # the same of boosting
_FEWEST_ITERATIONS = 5  # of boosting that are worth another stage
_PILOT_REST = 2000  # rows beyond the sample
_MANY_CLASSES = 3  # beyond which boosting takes longer steps


class Rest(NamedTuple):
    """Rows of a large table beyond those of the lesson."""

    rows: Observed
    codes: _Ints | None
    Y: _Floats
    weight: _Floats | None


@dataclass
class Lesson:
    """What members learn from: rows with known targets, twice viewed, and how they are folded."""

    view: View
    as_came: View  # the same rows before columns that training always saw were completed
    categorical: NDArray[np.bool_]  # columns of T
    codes: _Ints | None  # (n,) numbers of classes, None for regression
    Y: _Floats  # (n, q) standardised targets, or 2 onehot - 1 of the classes (one column for two)
    n_classes: int  # 0 for regression
    folds: list[_Ints]  # a partition of the rows
    weight: _Floats | None  # (n,), mean 1
    posterior: LowRankPosterior | None
    seed: int
    n_jobs: int | None = None
    deadline: float = np.inf  # by perf_counter
    rest: Callable[[int | None], Rest] | None = None  # of a table too large for folds, so many rows of it or all
    n_rest: int = 0
    shortened: dict[str, str] = field(default_factory=dict)  # what the time limit cost a member, by name
    learned: _Ints | None = None  # rows that folds learn from, None for all; they test all
    share_after: float = 1.0  # of the rows, that what is computed after the members learns from

    @property
    def n(self) -> int:
        return len(self.Y)

    def weights(self, rows: Any) -> _Floats | None:
        return None if self.weight is None else self.weight[rows]

    def left(self) -> float:
        """Seconds."""
        return self.deadline - perf_counter()

    def note(self, name: str) -> Callable[[str], None]:
        """To be called with what the time limit cost a member."""
        return lambda text: self.shortened.__setitem__(name, text)

    @property
    def hurried(self) -> bool:
        """Whether there is a time limit."""
        return bool(np.isfinite(self.deadline))

    def thinned(self, share: float) -> tuple[Lesson, _Ints]:
        """The same of a share of the rows, as large of every class and one more than there are folds of each at least, and which rows those are."""
        if share >= 1.0:
            return self, np.arange(self.n)
        rows = self._drawn(share)
        place = np.full(self.n, -1)
        place[rows] = np.arange(len(rows))
        folds = [place[fold][place[fold] >= 0] for fold in self.folds]
        lesson = replace(
            self,
            view=self.view.take(rows),
            as_came=self.as_came.take(rows),
            codes=None if self.codes is None else self.codes[rows],
            Y=self.Y[rows],
            folds=[fold for fold in folds if len(fold)],
            weight=None if self.weight is None else self.weight[rows] / self.weight[rows].mean(),
        )
        return lesson, rows

    def _drawn(self, share: float) -> _Ints:
        order = generator(self.seed).permutation(self.n)
        if self.codes is None:
            return np.sort(order[: max(int(share * self.n), len(self.folds) + 1)])
        order = order[np.argsort(self.codes[order], kind="stable")]
        sizes = np.bincount(self.codes, minlength=self.n_classes)
        place = np.arange(self.n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        enough = np.maximum(np.ceil(share * sizes), np.minimum(sizes, len(self.folds) + 1))
        return np.sort(order[place < np.repeat(enough, sizes)])

    def cuts(self) -> Iterator[tuple[_Ints, _Ints]]:
        """Training and test rows of every fold."""
        every = np.arange(self.n) if self.learned is None else self.learned
        for fold in self.folds:
            yield np.setdiff1d(every, fold, assume_unique=True), fold


def _scores(values: _Floats, n_classes: int) -> _Floats:
    """One column a class from least-squares values, of which two classes have one."""
    return np.column_stack([-values, values]) if n_classes == 2 else values


def log_chances(chances: _Floats) -> _Floats:
    made: _Floats = np.log(np.maximum(chances, LEAST))
    return made


class KernelMember(BaseEstimator):  # type: ignore[misc]
    """Kernel ridge machines over missing entries: the average of the best of a race (`lacunar.karma.race`)."""

    name = "kernels"
    _held: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "race_": Instance(KernelRace)}

    def fit(self, lesson: Lesson) -> _Floats:
        self.n_classes_ = lesson.n_classes
        self.race_ = KernelRace(random_state=lesson.seed, n_jobs=lesson.n_jobs)
        complete = None if lesson.posterior is None else lesson.posterior.complete
        made = self.race_.fit(
            lesson.view.Z, lesson.Y, lesson.folds, lesson.weight, complete, lesson.deadline, lesson.note(self.name)
        )
        return _scores(made, lesson.n_classes)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        complete = None if posterior is None else posterior.complete
        return _scores(self.race_.predict(view.Z, complete=complete), self.n_classes_)


class GaussianMember(BaseEstimator):  # type: ignore[misc]
    """Ridge regression on what a low-rank Gaussian says of a row, and on which entries are missing."""

    name = "gaussian"
    _held: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "ridge_": Instance(PosteriorRidge)}

    def fit(self, lesson: Lesson) -> _Floats:
        assert lesson.posterior is not None
        self.n_classes_, self.ridge_ = lesson.n_classes, PosteriorRidge()
        made = self.ridge_.fit(
            lesson.view.Z,
            lesson.Y,
            lesson.folds,
            lesson.posterior,
            lesson.weight,
            lesson.deadline,
            lesson.note(self.name),
        )
        return _scores(made, lesson.n_classes)

    def pilot(self, lesson: Lesson, whole: Lesson) -> float:
        assert lesson.posterior is not None
        ridge = PosteriorRidge(self_masking=False)
        ridge.fit(lesson.view.Z, lesson.Y, lesson.folds, lesson.posterior, weight=lesson.weight)
        return 1.0

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        assert posterior is not None
        return _scores(self.ridge_.predict(view.Z, posterior), self.n_classes_)


class BoostingMember(BaseEstimator):  # type: ignore[misc]
    """scikit-learn's histogram gradient boosting with missing entries as they are: the mean of the models of the folds.

    Models of all folds grow side by side until their summed out-of-fold loss rises, and keep the trees before that; smaller trees are tried
    beside the usual ones.
    """

    name = "boosting"
    folds_test_all = True  # rows that are not learned from, too
    _held: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "trees_": Items(Items(Instance(Trees)), alike=False),
        "classes_seen_": Items(Array("i", ("seen",), low=0, distinct=True), alike=False),
        "shares_": Items(Number(low=0, high=1)),
        "n_iter_": Items(COUNT),
    }

    def fit(self, lesson: Lesson) -> _Floats:
        self.n_classes_ = lesson.n_classes
        targets = [lesson.codes] if lesson.codes is not None else list(lesson.Y.T)
        grown = [self._best(lesson, y, last=len(targets) - k) for k, y in enumerate(targets)]
        self.n_iter_ = [each.n_iter for each in grown]
        self._keep([each.models for each in grown], lesson)
        return grown[0].values if lesson.n_classes else np.column_stack([each.values for each in grown])

    def _best(self, lesson: Lesson, y: NDArray[Any], last: int) -> Grown:
        """Usual or small trees, whichever do better on two folds, grown on all; small ones are tried only where they cost little."""
        until = lesson.deadline if last == 1 or np.isinf(lesson.deadline) else perf_counter() + lesson.left() / last
        cuts = [(train, test) for train, test in lesson.cuts() if not lesson.n_classes or np.ptp(y[train])]
        if not cuts:
            raise ValueError("every fold has rows of one class only")
        candidates = [_Folds(lesson, y, _leaves(lesson))]
        if _small_trees_are_cheap(lesson):
            candidates.append(_Folds(lesson, y, _SMALL_LEAVES))
            for candidate in candidates:
                candidate.grow(
                    cuts[:_PILOT_FOLDS], until if np.isinf(until) else perf_counter() + lesson.left() / last / 5
                )
        best = min(candidates, key=lambda each: each.loss)
        best.grow(cuts, until)
        grown = best.finish()
        if best.cut_short:
            lesson.shortened[self.name] = f"{grown.n_iter} of up to {best.wished} iterations"
        return grown

    def pilot(self, lesson: Lesson, whole: Lesson) -> float:
        y = lesson.Y[:, 0] if lesson.codes is None else lesson.codes
        model = _model(whole, _leaves(whole)).set_params(max_iter=_PILOT_ITERATIONS)
        with one_openmp_thread():
            model.fit(lesson.view.T, y, sample_weight=lesson.weight)
        targets = 1 if lesson.n_classes else lesson.Y.shape[1]
        at_once = min(thread_count(lesson.n_jobs), len(lesson.folds))
        return len(lesson.folds) * targets * _WORTHWHILE_ITERATIONS / _PILOT_ITERATIONS / at_once

    def _keep(self, models: list[list[Any]], lesson: Lesson) -> None:
        """Models with the same classes share their trees; a fold may lack a class."""
        self.trees_: list[list[Trees]] = []
        self.classes_seen_: list[_Ints] = []
        self.shares_: list[float] = []
        for each in models:
            if not lesson.n_classes:
                self.trees_.append([Trees.of_boosting(each, lesson.categorical)])
                continue
            groups: dict[tuple[int, ...], list[Any]] = {}
            for model in each:
                groups.setdefault(tuple(int(c) for c in model.classes_), []).append(model)
            self.shares_ = [len(group) / len(each) for group in groups.values()]
            self.trees_.append([Trees.of_boosting(group, lesson.categorical) for group in groups.values()])
            self.classes_seen_ = [np.array(seen, dtype=np.intp) for seen in groups]

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        if not self.n_classes_:
            return np.column_stack([trees.sums(view.T, n_jobs)[:, 0] for (trees,) in self.trees_])
        out = np.zeros((len(view.T), self.n_classes_))
        for trees, seen, share in zip(self.trees_[0], self.classes_seen_, self.shares_, strict=True):
            each = np.full(out.shape, np.log(LEAST))
            each[:, seen] = np.maximum(log_softmax(all_classes(trees.sums(view.T, n_jobs))), np.log(LEAST))
            out += share * each
        return out


class Grown(NamedTuple):
    """Boosting models of all folds with the same number of iterations."""

    n_iter: int
    models: list[Any]
    values: _Floats  # out of fold: (n, c) log probabilities, or (n,)


class _Folds:
    """Boosting models of some folds that grow side by side, a stage of iterations at a time."""

    def __init__(self, lesson: Lesson, y: NDArray[Any], leaves: int) -> None:
        self._lesson, self._y, self._leaves = lesson, y, leaves
        self._growing: list[_Growing] = []
        self._losses = np.zeros(0)
        self.cut_short = False  # by the time limit

    @property
    def loss(self) -> float:
        """The least summed out-of-fold loss."""
        return float(self._losses.min(initial=np.inf))

    def grow(self, cuts: list[tuple[_Ints, _Ints]], until: float) -> None:
        """Until more iterations lose out of fold or time runs out; folds that have models keep them."""
        for train, test in cuts[len(self._growing) :]:
            self._growing.append(_Growing(_model(self._lesson, self._leaves), self._lesson, self._y, train, test))
        started, done = perf_counter(), 0
        self.cut_short = False
        while done < self.wished:
            stage = self._stage(done, perf_counter() - started, until)
            self.cut_short = stage == 0
            if self.cut_short:
                return
            done = min(done + stage, self.wished)
            Parallel(n_jobs=thread_count(self._lesson.n_jobs), prefer="threads")(
                delayed(each.grow)(done) for each in self._growing
            )
            self._losses = np.sum([each.losses[:done] for each in self._growing], axis=0)
            if int(self._losses.argmin()) + 1 + _STAGE // 2 < done:
                return

    def _stage(self, done: int, seconds: float, until: float) -> int:
        """Iterations to grow next: as many as there is time for, by what those before took."""
        if np.isinf(until):
            return _STAGE
        if not done:
            return _PILOT_ITERATIONS
        possible = int((until - perf_counter()) * done / max(seconds, TICK))
        return min(possible, _STAGE) if possible >= _FEWEST_ITERATIONS else 0

    @property
    def wished(self) -> int:
        """Iterations at most."""
        n, classes = self._lesson.n, self._lesson.n_classes
        if classes > _MANY_CLASSES:
            return 60 if n < 1500 else 100
        if self._leaves == _SMALL_LEAVES:
            return 200
        return 120 if n < 1500 else (200 if n < 5000 or self._lesson.rest is not None else 300)

    def finish(self) -> Grown:
        """Every model cut to the iterations that were best."""
        best = int(self._losses.argmin()) + 1
        values = np.zeros((self._lesson.n, max(self._lesson.n_classes, 1)))
        for each in self._growing:
            values[each.test] = each.values_after(best)
            del each.model._predictors[best:]
        return Grown(best, [each.model for each in self._growing], values if self._lesson.n_classes else values[:, 0])


class _Growing:
    """A boosting model of one fold, and the values that it gives the rows of the fold after every iteration."""

    def __init__(self, model: Any, lesson: Lesson, y: NDArray[Any], train: _Ints, test: _Ints) -> None:
        self.model, self.test = model, test
        self._lesson, self._y, self._train = lesson, y, train
        self._values: list[_Floats] = []  # (iterations, rows, k) of every stage
        self.losses = np.zeros(0)  # summed over the rows, after every iteration

    def grow(self, iterations: int) -> None:
        """Grow to so many iterations, on one thread: sums do not depend on the machine."""
        lesson, known = self._lesson, len(self.losses)
        if iterations <= known:
            return
        self.model.set_params(max_iter=iterations)
        with one_openmp_thread():
            self.model.fit(lesson.view.T[self._train], self._y[self._train], sample_weight=lesson.weights(self._train))
        steps = Trees.steps(self.model, lesson.categorical, known).sums(lesson.view.T[self.test])
        start = np.ravel(self.model._baseline_prediction)
        by_step = steps.reshape(len(self.test), -1, len(start)).transpose(1, 0, 2)
        by_step[0] += self._values[-1][-1] if self._values else start
        self._values.append(np.cumsum(by_step, axis=0))
        self.losses = np.concatenate([self.losses, self._losses_of(self._values[-1])])

    def _losses_of(self, raw: _Floats) -> _Floats:
        y, weight = self._y[self.test], self._lesson.weights(self.test)
        if not self._lesson.n_classes:
            each = (raw[:, :, 0] - y) ** 2
        else:
            each = -self._log_chances(raw)[:, np.arange(len(y)), y]
        return np.asarray(each.sum(axis=1) if weight is None else each @ weight)

    def _log_chances(self, raw: _Floats) -> _Floats:
        """(iterations, rows, c) log probabilities."""
        made = np.full((*raw.shape[:2], self._lesson.n_classes), np.log(LEAST))
        made[:, :, np.asarray(self.model.classes_, dtype=np.intp)] = log_softmax(all_classes(raw))
        return np.maximum(made, np.log(LEAST))

    def values_after(self, iterations: int) -> _Floats:
        """(rows, c) log probabilities, or (rows, 1)."""
        raw = np.concatenate(self._values)[iterations - 1 : iterations]
        return np.asarray(self._log_chances(raw)[0] if self._lesson.n_classes else raw[0])


def _model(lesson: Lesson, leaves: int) -> Any:
    make = HistGradientBoostingClassifier if lesson.n_classes else HistGradientBoostingRegressor
    return make(
        learning_rate=0.06 if lesson.n_classes <= _MANY_CLASSES else 0.1,
        max_leaf_nodes=leaves,
        min_samples_leaf=5 if lesson.n < _MANY_ROWS else 20,  # few: rows of one person or place stand together
        l2_regularization=1.0,
        max_features=0.7,
        max_bins=_bins(lesson),
        random_state=lesson.seed,
        categorical_features=lesson.categorical if lesson.categorical.any() else None,
        early_stopping=False,
        warm_start=True,
    )


def _leaves(lesson: Lesson) -> int:
    return 15 if lesson.n < 2000 else 31


def _small_trees_are_cheap(lesson: Lesson) -> bool:
    one_output = lesson.n_classes <= _MANY_CLASSES if lesson.n_classes else lesson.Y.shape[1] == 1
    return one_output and lesson.learned is None and lesson.n < _MANY_ROWS and lesson.view.T.shape[1] <= _MANY_COLUMNS


def _bins(lesson: Lesson) -> int:
    """Few for few rows, which more would overfit, and for many, where they take half the time; a category needs a bin a level."""
    levels = int(np.nanmax(lesson.view.T[:, lesson.categorical], initial=0)) + 1
    wished = int(np.clip(lesson.n / 3, 63, 255)) if lesson.n < _MANY_ROWS else 127
    return max(wished, min(levels, 255))


def _all_chances(chances: _Floats, seen: NDArray[Any], lesson: Lesson) -> _Floats:
    """Chances of all classes from those that a fold has seen."""
    if len(seen) == lesson.n_classes:
        return chances
    made = np.full((len(chances), lesson.n_classes), LEAST)
    made[:, np.asarray(seen, dtype=np.intp)] = chances
    return made


class ForestMember(BaseEstimator):  # type: ignore[misc]
    """scikit-learn's extremely randomised trees on bootstrap samples, with missing entries as they are, judged out of bag."""

    name = "forest"
    _held: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "trees_": Instance(Trees)}

    def fit(self, lesson: Lesson) -> _Floats:
        self.n_classes_ = lesson.n_classes
        target = lesson.codes if lesson.codes is not None else lesson.Y
        rows = lesson.view.T.astype(np.float32)
        model = self._grown(lesson, rows, target)
        self.trees_ = Trees.of_forest(model, rows.shape[1])
        return self._out_of_bag(model, lesson)

    def _grown(self, lesson: Lesson, rows: NDArray[np.float32], target: NDArray[Any]) -> Any:
        wished = 300 if lesson.n < 3000 else 150
        target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
        started, pilot = perf_counter(), wished if np.isinf(lesson.deadline) else _SMALLEST_TREES
        model = self._model(lesson, pilot)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of rows that no tree left out
            model.fit(rows, target, sample_weight=lesson.weight)
            a_tree = max(perf_counter() - started, TICK) / pilot
            more = wished if pilot == wished else int(np.clip(USABLE * lesson.left() / a_tree, pilot, wished))
            if more > pilot:
                model.set_params(n_estimators=more, warm_start=True).fit(rows, target, sample_weight=lesson.weight)
        if more < wished:
            lesson.shortened[self.name] = f"{more} of {wished} trees"
        return model

    def pilot(self, lesson: Lesson, whole: Lesson) -> float:
        target = lesson.codes if lesson.codes is not None else lesson.Y
        model = self._model(lesson, _PILOT_TREES).set_params(oob_score=False)
        model.fit(lesson.view.T.astype(np.float32), target, sample_weight=lesson.weight)
        return _WORTHWHILE_TREES / _PILOT_TREES

    def _model(self, lesson: Lesson, n_trees: int) -> Any:
        make, leaf, features = (ExtraTreesClassifier, 1, "sqrt") if lesson.n_classes else (ExtraTreesRegressor, 2, 0.5)
        return make(
            n_estimators=n_trees,
            bootstrap=True,
            oob_score=True,
            min_samples_leaf=leaf,
            max_features=features,
            random_state=lesson.seed,
            n_jobs=lesson.n_jobs,
        )

    def _out_of_bag(self, model: Any, lesson: Lesson) -> _Floats:
        if not lesson.n_classes:
            made = np.asarray(model.oob_prediction_, dtype=np.float64).reshape(lesson.n, -1)
            return np.where(np.isfinite(made), made, 0.0)
        chances = np.asarray(model.oob_decision_function_, dtype=np.float64)
        return log_chances(np.where(np.isfinite(chances), chances, 1.0 / lesson.n_classes))

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        made = self.trees_.sums(view.T, n_jobs)
        return log_chances(made) if self.n_classes_ else made


class LogisticMember(BaseEstimator):  # type: ignore[misc]
    """Logistic regression on numbers with 0 for the mean where missing, and on which entries are missing."""

    name = "logistic"
    _held: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "flagged_": Array("b", ("p",)),
        "coef_": floats("k", "inputs"),
        "intercept_": floats("k"),
    }
    _FIRST = 0.1  # where there may be time for one only
    _PENALTIES = (0.01, 0.1, 1.0)
    _WEAKER = (10.0, 100.0, 1e3, 1e4)  # tried as long as they help: numbers that add up need them

    def fit(self, lesson: Lesson) -> _Floats:
        assert lesson.codes is not None
        self.n_classes_ = lesson.n_classes
        self.flagged_ = _flagged(lesson.view)
        rows = _values_and_flags(lesson.view, self.flagged_)
        best, out = self._best(rows, lesson)
        model = _logistic(best, rows, lesson.codes, lesson.weight)
        self.coef_, self.intercept_ = model.coef_, model.intercept_
        return out

    def _best(self, rows: _Floats, lesson: Lesson) -> tuple[float, _Floats]:
        """The penalty of least loss out of fold, and the values out of fold."""
        if lesson.hurried:
            return self._best_in_time(rows, lesson)
        tried = [(C, self._out_of_fold(rows, lesson, C)) for C in self._PENALTIES]
        losses = [_log_loss(out, lesson) for _, out in tried]
        for C in self._WEAKER:
            if losses[-1] > min(losses):
                break
            tried.append((C, self._out_of_fold(rows, lesson, C)))
            losses.append(_log_loss(tried[-1][1], lesson))
        return tried[int(np.argmin(losses))]

    def _best_in_time(self, rows: _Floats, lesson: Lesson) -> tuple[float, _Floats]:
        """The same among the penalties for which there is time."""
        penalties = [self._FIRST, *(C for C in (*self._PENALTIES, *self._WEAKER) if C != self._FIRST)]
        values: dict[float, _Floats] = {}
        losses: dict[float, float] = {}
        longest = 0.0
        for C in penalties:
            if C in self._WEAKER and losses[max(losses)] > min(losses.values()):
                break
            started = perf_counter()
            if longest and lesson.left() < (1 + 1 / len(lesson.folds)) * longest:
                lesson.shortened[self.name] = f"{len(losses)} of up to {len(penalties)} penalties"
                break
            values[C] = self._out_of_fold(rows, lesson, C)
            losses[C], longest = _log_loss(values[C], lesson), max(longest, perf_counter() - started)
        best = min(losses, key=lambda C: (losses[C], C))
        return best, values[best]

    def pilot(self, lesson: Lesson, whole: Lesson) -> float:
        assert lesson.codes is not None
        rows = _values_and_flags(lesson.view, _flagged(lesson.view))
        _logistic(self._FIRST, rows, lesson.codes, lesson.weight)
        return 2.0 * (len(lesson.folds) + 1)

    def _out_of_fold(self, rows: _Floats, lesson: Lesson, C: float) -> _Floats:
        assert lesson.codes is not None
        out = np.zeros((lesson.n, lesson.n_classes))
        for train, test in lesson.cuts():
            if not np.ptp(lesson.codes[train]):  # a class of one row, which this fold holds out
                out[test] = np.log(1 / lesson.n_classes)
                continue
            model = _logistic(C, rows[train], lesson.codes[train], lesson.weights(train))
            out[test] = log_chances(_all_chances(model.predict_proba(rows[test]), model.classes_, lesson))
        return out

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        raw = row_product(_values_and_flags(view, self.flagged_), self.coef_.T, n_jobs) + self.intercept_
        return log_chances(np.exp(log_softmax(all_classes(raw))))


class LinearMember(BaseEstimator):  # type: ignore[misc]
    """Ridge regression on numbers with 0 for the mean where missing, and on which entries are missing."""

    name = "linear"
    _held: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "flagged_": Array("b", ("p",)),
        "coef_": floats("inputs", "q"),
        "intercept_": floats("q"),
    }
    _PENALTIES = tuple(np.logspace(-4, 5, 19))  # a weak signal in few rows asks for thousands

    def fit(self, lesson: Lesson) -> _Floats:
        self.n_classes_, self.flagged_ = lesson.n_classes, _flagged(lesson.view)
        rows = _values_and_flags(lesson.view, self.flagged_)
        ridge = fold_ridge(rows, lesson.Y, lesson.folds, lesson.weight, self._PENALTIES)
        self.coef_, self.intercept_ = ridge.coef, ridge.intercept
        return ridge.oof

    def pilot(self, lesson: Lesson, whole: Lesson) -> float:
        LinearMember().fit(lesson)
        return 1.0

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        return row_product(_values_and_flags(view, self.flagged_), self.coef_, n_jobs) + self.intercept_


class TableMember(BaseEstimator):  # type: ignore[misc]
    """KARMA of pairs of columns, learned in one pass over all rows of a large table that the other members do not learn from."""

    name = "table"
    _held: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "model_": Instance(BaseEstimator)}

    def fit(self, lesson: Lesson) -> _Floats:
        assert lesson.rest is not None
        self.n_classes_ = lesson.n_classes
        self.model_ = self._learned(lesson, self._most(lesson) if lesson.hurried else None)
        return self.predict(lesson.view, None, lesson.n_jobs)

    def _learned(self, lesson: Lesson, most: int | None) -> Any:
        assert lesson.rest is not None
        rest, make = lesson.rest(most), KarmaClassifier if lesson.n_classes else KarmaRegressor
        target = rest.codes if rest.codes is not None else rest.Y
        target = target[:, 0] if target.ndim == 2 and target.shape[1] == 1 else target
        return make(random_state=lesson.seed, n_jobs=lesson.n_jobs).fit(rest.rows, target, sample_weight=rest.weight)

    def _most(self, lesson: Lesson) -> int | None:
        """Rows for which there is time, by a pilot on few."""
        if lesson.n_rest <= _PILOT_REST:
            return None
        started = perf_counter()
        self._learned(lesson, _PILOT_REST)
        most = max(int(USABLE * lesson.left() * _PILOT_REST / max(perf_counter() - started, TICK)), _PILOT_REST)
        if most >= lesson.n_rest:
            return None
        lesson.shortened[self.name] = f"{most / lesson.n_rest:.0%} of the further rows"
        return most

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        rows = Observed.from_dense(view.Z, dtype=np.float32)
        if not self.n_classes_:
            return np.asarray(self.model_.predict(rows), dtype=np.float64).reshape(len(view.Z), -1)
        values = np.asarray(self.model_.decision_function(rows), dtype=np.float64)
        return _scores(values.reshape(len(view.Z), -1), self.n_classes_)


def _flagged(view: View) -> NDArray[np.bool_]:
    """Columns of Z whose missing entries are an input of their own: those that are sometimes missing, and not nearly always."""
    share = np.isnan(view.Z).mean(axis=0)
    return np.asarray((share > 0.01) & (share < 0.99))


def _values_and_flags(view: View, flagged: NDArray[np.bool_]) -> _Floats:
    """Inputs (n, p + flagged) of the linear members: Z with 0, the mean, where missing, and which entries of some columns are missing."""
    missing = np.isnan(view.Z)
    return np.hstack([np.where(missing, 0.0, view.Z), missing[:, flagged]])


def _logistic(C: float, rows: _Floats, codes: _Ints, weight: _Floats | None) -> Any:
    small = rows.shape[1] * len(np.unique(codes)) <= _MOST_FOR_NEWTON
    with warnings.catch_warnings():
        for kind in (ConvergenceWarning, LinAlgWarning):
            warnings.simplefilter("ignore", kind)  # not converged, or nearly singular: the pool judges it
        model = LogisticRegression(C=C, max_iter=100, tol=1e-3, solver="newton-cholesky" if small else "lbfgs")
        return model.fit(rows, codes, sample_weight=weight)


def _log_loss(logs: _Floats, lesson: Lesson) -> float:
    assert lesson.codes is not None
    return -float(np.average(logs[np.arange(lesson.n), lesson.codes], weights=lesson.weight))


Members = dict[str, Callable[[], Any]]
_OF_BOTH: Members = {
    "gaussian": GaussianMember,
    "kernels": KernelMember,
    "boosting": BoostingMember,
    "forest": ForestMember,
}
REGRESSION: Members = {"linear": LinearMember, **_OF_BOTH}
"""What `members` of the regressor may name, in the order in which they are worth their time."""
CLASSIFICATION: Members = {"logistic": LogisticMember, **_OF_BOTH}
"""The same of the classifier."""
EVERY_MEMBER: Members = {**REGRESSION, **CLASSIFICATION, TableMember.name: TableMember}
"""With the member that `members="auto"` trains on the rows beyond the sample of a large table; nobody names it."""
