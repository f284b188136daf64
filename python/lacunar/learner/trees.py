"""Members of trees: scikit-learn's boosting and forests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from lacunar._cuts import Cut, in_order
from lacunar._symmetric import SymmetricBoosting
from lacunar._threads import one_openmp_thread, thread_count
from lacunar._trees import Boosting, Forest, Trees, levels_of, on_grid
from lacunar._typing import Floats, Ints
from lacunar.karma.calibrate import all_classes
from lacunar.karma.selection import TICK, USABLE
from lacunar.learner.views import Reads, TrainingSet, View, drawn, over_levels, shares_of_levels
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import COUNT, Array, Flag, Instance, Items, Number, Rule, Word
from lacunar.uncertainty.shift import log_softmax

LEAST = 1e-4  # probability that a member may give a class
# Of a forest: of numbers and of classes, whose log loss out of bag says nothing of fewer; at most of few rows and of many.
_FIRST_TREES, _MOST_TREES = (25, 50), (100, 300)
# Of the loss out of bag, below which the last doubling of a forest is the last: a third of the trees judge a row, so that all of them are within 4 %
# of a forest without end, and the pool within far less.
_LEAST_GAIN = 0.1
_FOREST_LEAF = 2  # rows at least: leaves of one row take longer and are too sure of their class
_SMALLEST_TREES = 10  # of a forest cut short
_TREES_OUT_OF_BAG = 3  # of so many trees about one has a row out of its bag
_PATIENCE = 10  # iterations without a gain on the rows held out, after which a boosting stops
_STAGE = 20  # iterations of boosting between two looks at the loss out of fold
_FEWEST_WISHED, _ITERATIONS = 100, 300  # at most, of few and of many rows
_FURTHER = 1.4  # times the iterations that are best for one model, for the mean of the models of all folds
_SMALL_LEAVES, _USUAL_LEAVES = 6, 15
# Rows below which usual trees hardly get their leaves; below which small trees of classes choose among few columns, and all folds compare them with
# usual ones; rows and columns from which small trees are not tried.
_FEWEST_ROWS, _FEW_ROWS, _MANY_ROWS, _MANY_COLUMNS = 200, 1000, 5000, 100
_CLOSE = 1.05  # times the least loss on the first fold, up to which a size is grown on all folds of few rows
# Of boosting on large tables: leaves of a tree, rows of a leaf, iterations at most, and summed over many classes.
_LARGE_LEAVES, _LEAST_LEAF_SHARE, _LEAST_LEAF = 31, 1e-3, (20, 100)
_LARGE_TREES, _LARGE_TREES_OF_CLASSES = 700, 2100
_LARGE_PATIENCE = 50  # after 15 it would often stop too early, and 100 find no less loss
# Latent coordinates are columns of boosting where they lower the loss of a pilot to this share of it: .7 to .85 in tables of low
# rank, .99 to 1 where columns are independent.
_PILOT_OF_LATENT, _PILOT_LATENT_TREES, _WORTH_OF_LATENT = 40_000, 60, 0.95
_WORTH_OF_HALF = 0.97  # the same of a pilot of half the rows and trees, which tell less
_AS_GOOD = 1.005  # times the loss with the columns too, up to which they are read alone
_PILOT_LATENT_SHARE = 0.03  # of a time limit, for each pilot
# Under a time limit:
_PILOT_TREES, _WORTHWHILE_TREES = 3, 30  # of a forest; rows are left out for the sake of so many
_PILOT_ITERATIONS, _WORTHWHILE_ITERATIONS = 5, 15  # the same of boosting
_FEWEST_ITERATIONS = 5  # of boosting that are worth another stage
_MANY_CLASSES = 3  # beyond which boosting takes fewer trees, of one size


Shape: TypeAlias = int | Literal["symmetric"]  # leaves of a tree, or one whose nodes of a level share a split


def all_chances(chances: Floats, seen: Ints, n_classes: int) -> Floats:
    """Probabilities of all classes, from those of the classes that a fold has seen."""
    if len(seen) == n_classes:
        return chances
    of_all = np.full((len(chances), n_classes), LEAST)
    of_all[:, np.asarray(seen, dtype=np.intp)] = chances
    return of_all


def log_chances(chances: Floats) -> Floats:
    """Logarithms of probabilities, those of 0 taken as of a small number."""
    logs: Floats = np.log(np.maximum(chances, LEAST))
    return logs


class BoostingMember(BaseEstimator):
    """scikit-learn's histogram gradient boosting, or one of symmetric trees, with missing entries as they are: the mean of the models of the folds.

    Models of all folds grow side by side until their summed loss out of fold rises, and 1.4 times the iterations before that count. Small, usual and
    symmetric trees compete on the first fold, and of few rows on all folds; trees of a large table are of one size.
    """

    name = "boosting"
    cuts_test_all = True  # rows that are not learned from, too
    _schema: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "trees_": Items(Items(Instance(Trees)), alike=False),
        "classes_seen_": Items(Array("i", ("seen",), low=0, distinct=True), alike=False),
        "shares_": Items(Number(low=0, high=1)),
        "category_columns_": Array("i", ("categories",), low=0),
        "levels_seen_": Items(Items(Array("i", ("levels",), low=0, ascending=True), "categories", alike=False)),
        "n_iter_": Items(COUNT),
        "reads_": Word(get_args(Reads)),
    }

    def fit(self, training: TrainingSet) -> Floats:
        self.n_classes_, self.reads_ = training.n_classes, training.reads
        targets = [training.labels] if training.labels is not None else list(training.Y.T)
        grown = [self._best(training, y, last=len(targets) - k) for k, y in enumerate(targets)]
        self.n_iter_ = [of_target.n_iter for of_target in grown]
        self._store(grown, training)
        return np.hstack([of_target.values(training) for of_target in grown])

    def _best(self, training: TrainingSet, y: NDArray[Any], last: int) -> Grown:
        """Small, usual or symmetric trees, whichever do better on the first fold; where few rows cannot tell by one fold, on all of them."""
        cuts = [cut for cut in training.cuts if not training.n_classes or (len(cut[0]) and np.ptp(y[cut[0]]))]
        if not cuts:
            raise ValueError("every fold has rows of one class only")
        until = training.deadline if last == 1 else perf_counter() + training.left() / last
        shapes = _shapes(training)
        firsts = [FoldModel(training, y, *cuts[0], shape) for shape in shapes]
        for k, model in enumerate(firsts):
            model.grow_while_it_helps(until, len(cuts) + len(shapes) - 1 - k)
        most = (_CLOSE if training.n < _FEW_ROWS else 1.0) * min(model.losses.min() for model in firsts)
        candidates = [
            Grown([first, *(FoldModel(training, y, *cut, first.shape) for cut in cuts[1:])])
            for first in firsts
            if first.losses.min() <= most
        ]
        for k, candidate in enumerate(candidates):
            share = (until - perf_counter()) / (len(candidates) - k)
            candidate.grow(perf_counter() + share, training.n_jobs)
        grown = min(candidates, key=lambda candidate: candidate.losses.min())
        if grown.cut_short:
            training.shortened[self.name] = f"{grown.n_iter} of up to {grown.wished} iterations"
        if not training.all_in_cuts:
            grown.learn_all(training, y)
        return grown

    def pilot(self, training: TrainingSet, whole: TrainingSet) -> float:
        y = training.Y[:, 0] if training.labels is None else training.labels
        model = _model(whole, _LARGE_LEAVES if whole.large else _USUAL_LEAVES).set_params(
            max_iter=_PILOT_ITERATIONS, early_stopping=False
        )
        with one_openmp_thread():
            model.fit(np.hstack(training.view.read(training.reads)), y, sample_weight=training.weight)
        targets = 1 if training.n_classes else training.Y.shape[1]
        at_once = min(thread_count(training.n_jobs), len(training.cuts))
        return len(training.cuts) * targets * _WORTHWHILE_ITERATIONS / _PILOT_ITERATIONS / at_once

    def _store(self, grown: list[Grown], training: TrainingSet) -> None:
        """Models with the same classes and levels share their trees; a fold may lack some."""
        categorical = _categorical(training)
        known = [levels_of(model, categorical) for model in grown[0].models]
        keys = [(_classes_of(model), *map(bytes, levels)) for model, levels in zip(grown[0].models, known, strict=True)]
        groups = [[k for k, other in enumerate(keys) if other == key] for key in dict.fromkeys(keys)]
        self.shares_ = [len(group) / len(keys) for group in groups]
        self.classes_seen_ = [np.frombuffer(keys[group[0]][0], dtype=np.intp) for group in groups]
        self.category_columns_ = np.flatnonzero(categorical)
        self.levels_seen_ = [known[group[0]] for group in groups]
        self.trees_ = [
            [Trees.of_boosting([of_target.models[k] for k in group], categorical, of_target.n_iter) for group in groups]
            for of_target in grown
        ]

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        columns = np.hstack(view.read(self.reads_))
        out = np.zeros((len(columns), self.n_classes_ or len(self.trees_)))
        levels_of_all = [np.unique(np.concatenate(levels)) for levels in zip(*self.levels_seen_, strict=True)]
        for group, (share, seen) in enumerate(zip(self.shares_, self.levels_seen_, strict=True)):
            lacking = [np.setdiff1d(levels, own) for levels, own in zip(levels_of_all, seen, strict=True)]
            known, absent = (
                dict(zip(self.category_columns_.tolist(), levels, strict=True)) for levels in (seen, lacking)
            )
            predict = partial(self._of_group, group, n_jobs)
            out += share * _over_known(columns, known, absent, predict, logs=bool(self.n_classes_))
        return out

    def _of_group(self, group: int, n_jobs: int | None, columns: Floats) -> Floats:
        """What the trees of a group of models say of rows, one column a class or a target."""
        if self.n_classes_:
            raw = self.trees_[0][group].sums(columns, n_jobs)
            return _log_chances(raw, self.classes_seen_[group], self.n_classes_)
        return np.column_stack([of_target[group].sums(columns, n_jobs)[:, 0] for of_target in self.trees_])


class FoldModel:
    """A boosting that learns the training rows of a fold, and its losses on the rows held out, on one thread: sums do not depend on the machine."""

    def __init__(self, training: TrainingSet, y: NDArray[Any], train: Ints, test: Ints, shape: Shape) -> None:
        self.model, self.test, self.shape = _model(training, shape), test, shape
        self.wished, self.patience = _wished(training), _LARGE_PATIENCE if training.large else _PATIENCE
        known = test[np.isin(y[test], y[train])] if training.n_classes else test
        watched = known if len(known) else train  # rows held out whose classes were not learned tell nothing
        self._learned = _columns_of_rows(training, train), y[train], training.weights(train)
        self._watched = _columns_of_rows(training, watched), y[watched], training.weights(watched)
        self.an_iteration = 0.0  # seconds
        self._counts = float(len(known) if training.weight is None else training.weight[known].sum())

    @property
    def n_iter(self) -> int:
        return int(getattr(self.model, "n_iter_", 0))

    @property
    def losses(self) -> Floats:
        """After every iteration, summed over the rows held out."""
        return -self._counts * np.asarray(self.model.validation_score_)[1:]

    def values(self, training: TrainingSet, n_iter: int) -> Floats:
        """Predict the rows held out after so many iterations; a level that the model did not learn gets the average over the levels that it did."""
        rows, known = _columns_of_rows(training, self.test), self._levels(training)

        def predict(rows: Floats) -> Floats:
            with one_openmp_thread():
                return _values_after(self.model, n_iter, rows, training.n_classes)

        absent = {j: np.setdiff1d(rows[~np.isnan(rows[:, j]), j], levels) for j, levels in known.items()}
        return _over_known(rows, known, absent, predict, logs=bool(training.n_classes))

    def _levels(self, training: TrainingSet) -> dict[int, Floats]:
        """Of every column of categories of which something was learned the levels that were."""
        columns = {int(j): np.unique(self._learned[0][:, j]) for j in np.flatnonzero(_categorical(training))}
        return {j: levels[~np.isnan(levels)] for j, levels in columns.items() if not np.isnan(levels).all()}

    def grow(self, iterations: int, patience: int | None = None) -> None:
        """Grow to so many iterations; stop earlier where `patience` of them gained nothing on the rows held out."""
        if iterations <= self.n_iter:
            return
        (X, y, weight), (X_val, y_val, weight_val) = self._learned, self._watched
        started, before = perf_counter(), self.n_iter
        self.model.set_params(max_iter=iterations, n_iter_no_change=patience or iterations + 1)
        with one_openmp_thread():
            self.model.fit(X, y, sample_weight=weight, X_val=X_val, y_val=y_val, sample_weight_val=weight_val)
        self.an_iteration = max(perf_counter() - started, TICK) / max(self.n_iter - before, 1)

    def grow_while_it_helps(self, until: float, n_models: int) -> None:
        """Grow until `patience` iterations gain nothing; under a time limit a few are timed first, to share it among `n_models` models."""
        most = self.wished
        if not np.isinf(until):
            self.grow(_PILOT_ITERATIONS)
            seconds = USABLE * (until - perf_counter())
            most = int(np.clip(seconds / self.an_iteration / n_models, _PILOT_ITERATIONS, self.wished))
        self.grow(most, self.patience)


class Grown:
    """Boosting models of the folds of one target, grown side by side; the first has stopped where its own rows held out say so."""

    def __init__(self, folds: list[FoldModel]) -> None:
        self.folds, self.wished, self.models = folds, folds[0].wished, [fold.model for fold in folds]
        # The mean of several models gains by more iterations than each of them does.
        self._further = _FURTHER if len(folds) > 1 else 1.0
        # Before growing on, many rows are put into bins and led down all trees again: what was wished for at first has to do.
        self._enough = 1.0 if folds[0].patience == _LARGE_PATIENCE else self._further
        self.cut_short = False  # by the time limit

    def grow(self, until: float, n_jobs: int | None) -> None:
        """Grow all folds to the iterations wished for the first one, and on until the summed loss rises or time runs out."""
        done, patience = 0, self.folds[0].patience // 2
        stage = max(len(self.folds[0].losses), int(self._enough * (self.folds[0].losses.argmin() + 1)))
        at_once = min(thread_count(n_jobs), len(self.folds))
        while done < self.wished:
            stage = self._stage(stage, done, at_once, until)
            self.cut_short = stage == 0
            if self.cut_short:
                return
            done = min(done + stage, self.wished)
            Parallel(n_jobs=thread_count(n_jobs), prefer="threads")(delayed(fold.grow)(done) for fold in self.folds)
            if max(self._enough * self.best, self.best + patience) <= done:
                return
            stage = max(_STAGE, int(self._further * self.best) - done)

    def _stage(self, wished: int, done: int, at_once: int, until: float) -> int:
        """Iterations to grow next: so many, or as many as there is time for by what the last ones took."""
        if np.isinf(until):
            return wished
        if not done:
            return _PILOT_ITERATIONS
        growing = [fold.an_iteration for fold in self.folds if fold.n_iter < done + wished]
        seconds = max(sum(growing) / at_once, TICK)
        possible = int(USABLE * (until - perf_counter()) / seconds)
        return min(possible, wished) if possible >= _FEWEST_ITERATIONS else 0

    def learn_all(self, training: TrainingSet, y: NDArray[Any]) -> None:
        """One model of as many iterations that learns from all rows: the last ones are in no cut of a time series."""
        final = training.final
        model = _model(training, self.folds[0].shape).set_params(max_iter=self.n_iter, early_stopping=False)
        with one_openmp_thread():
            self.models = [model.fit(_columns_of_rows(training, final), y[final], training.weights(final))]

    @property
    def losses(self) -> Floats:
        """After every iteration that all models have, summed over the rows held out."""
        common = min(fold.n_iter for fold in self.folds)
        return np.asarray(np.sum([fold.losses[:common] for fold in self.folds], axis=0))

    @property
    def best(self) -> int:
        """The number of iterations with the least loss summed over all folds: one number for all of them."""
        return int(self.losses.argmin()) + 1

    @property
    def n_iter(self) -> int:
        """Iterations that count."""
        return min(int(self._further * self.best), len(self.losses))

    def values(self, training: TrainingSet) -> Floats:
        """Of the tested rows: (tested, c) log probabilities, or (tested, 1)."""
        tested = training.tested
        values = np.zeros((len(tested), max(training.n_classes, 1)))
        for fold in self.folds:
            values[np.searchsorted(tested, fold.test)] = fold.values(training, self.n_iter)
        return values


def _over_known(
    rows: Floats,
    known: Mapping[int, NDArray[Any]],
    lacking: Mapping[int, NDArray[Any]],
    predict: Callable[[Floats], Floats],
    *,
    logs: bool,
) -> Floats:
    """Predictions of rows; of those with a level that a model lacks in some column the mean over the levels that it knows."""
    absent = np.zeros(rows.shape, dtype=bool)
    for j, levels in lacking.items():
        absent[:, j] = np.isin(rows[:, j], levels) & (len(known[j]) > 0)

    def of_draws(places: Ints, columns: Ints) -> list[Floats]:
        shares = shares_of_levels(max(len(known[j]) for j in columns))
        drawn = np.tile(rows[places], (len(shares), 1))
        for j in columns:
            levels = known[j][(shares * len(known[j])).astype(np.intp)]
            drawn[:, j] = np.repeat(levels, len(places))
        return np.split(predict(drawn), len(shares))

    return over_levels(predict(rows), absent, of_draws, logs=logs)


def _classes_of(model: Boosting) -> bytes:
    """The classes that a model has seen, none of one for numbers."""
    return np.asarray(getattr(model, "classes_", ()), dtype=np.intp).tobytes()


def _log_chances(raw: Floats, seen: Ints, n_classes: int) -> Floats:
    """Log probabilities (m, c) of all classes from raw values of those that a model has seen."""
    logs = np.full((len(raw), n_classes), np.log(LEAST))
    logs[:, np.asarray(seen, dtype=np.intp)] = np.maximum(log_softmax(all_classes(raw)), np.log(LEAST))
    return logs


def _values_after(model: Boosting, n_iter: int, rows: Floats, n_classes: int) -> Floats:
    """What a model says of rows after so many iterations: (m, c) log probabilities, or (m, 1)."""
    stages = model.staged_decision_function(rows) if n_classes else model.staged_predict(rows)
    raw = next(islice(stages, n_iter - 1, None)).reshape(len(rows), -1)
    return _log_chances(raw, model.classes_, n_classes) if n_classes else raw


def _wished(training: TrainingSet) -> int:
    """The most iterations that boosting may take."""
    if training.large:
        return int(min(_LARGE_TREES, _LARGE_TREES_OF_CLASSES // max(training.n_classes, 1)))
    if training.n_classes > _MANY_CLASSES:
        return 60 if training.n < 1500 else 100
    return int(np.clip(2 * training.n, _FEWEST_WISHED, _ITERATIONS))


def seconds_of_boosting(training: TrainingSet) -> float:
    """What boosting of one target takes, roughly, where it takes all iterations: every leaf passes over its rows and the bins of all columns."""
    # A symmetric tree of some thousand entries takes as long as a leaf or two.
    sizes = [shape if isinstance(shape, int) else 2 for shape in _shapes(training)]
    outputs = training.n_classes if training.n_classes > 2 else 1
    leaves = sum(sizes) + max(sizes) * (min(len(training.cuts), 3) - 1)
    a_leaf = 5e-5 + 2e-6 * training.view.T.shape[1] + 5e-9 * training.n
    return float(_wished(training) * outputs * leaves * a_leaf)


def _categorical(training: TrainingSet) -> NDArray[np.bool_]:
    """Which of the columns that trees read are categories."""
    flags = [training.categorical] if training.reads != "latent" else []
    if training.reads != "columns":
        assert training.view.latent is not None
        flags.append(np.zeros(training.view.latent.shape[1], dtype=bool))
    return np.concatenate(flags)


def _columns_of_rows(training: TrainingSet, rows: Ints) -> Floats:
    """What trees read of some rows, in double precision and column by column as boosting takes it, so that it makes no copy."""
    parts = training.view.read(training.reads)
    columns = np.empty((len(rows), sum(part.shape[1] for part in parts)), order="F")
    for column, values in zip(columns.T, (column for part in parts for column in part.T), strict=True):
        column[:] = values[rows]
    return columns


def worth_reading(training: TrainingSet) -> Reads:
    """What trees do best to read of a large table: its columns, latent coordinates beside them, or these alone, by a few trees on some rows.

    Where these alone are as good they take far less time. Half of the rows and trees tell first where coordinates do not help.
    """
    train, _ = training.cuts[0]
    if training.labels is not None and not np.ptp(training.labels[train]):
        return "columns"
    for share, worth in ((0.5, _WORTH_OF_HALF), (1.0, _WORTH_OF_LATENT)):
        part, cut = _pilot_rows(training, int(share * _PILOT_OF_LATENT))
        trees = int(share * _PILOT_LATENT_TREES)
        loss = {reads: _pilot_loss(replace(part, reads=reads), cut, trees) for reads in ("columns", "both")}
        if loss["both"] >= worth * loss["columns"]:
            return "columns"
    return "latent" if _pilot_loss(replace(part, reads="latent"), cut, trees) <= _AS_GOOD * loss["both"] else "both"


def _pilot_rows(training: TrainingSet, most: int) -> tuple[TrainingSet, Cut]:
    """Of the first cut at most so many rows that it learns from, and those that it tests, with latent coordinates; and their places."""
    assert training.posterior is not None
    train, test = training.cuts[0]
    if len(train) > most:
        labels = None if training.labels is None else training.labels[train]
        train = train[drawn(labels, len(train), most / len(train), 1, training.seed)]
    some = np.union1d(train, test)
    part = training.take(some)
    part = replace(part, view=part.view.with_latent(training.posterior))
    return part, (np.searchsorted(some, train), np.searchsorted(some, test))


def _pilot_loss(training: TrainingSet, cut: Cut, n_trees: int) -> float:
    """The loss of a few trees on the rows of a cut that they did not learn from, summed over targets."""
    until = perf_counter() + _PILOT_LATENT_SHARE * training.left() if training.hurried else np.inf
    targets = [training.labels] if training.labels is not None else list(training.Y.T)
    pilots = [FoldModel(training, y, *cut, _LARGE_LEAVES) for y in targets]
    for pilot in pilots:
        pilot.wished = n_trees
        pilot.grow_while_it_helps(until, 1)
    return sum(float(pilot.losses.min()) for pilot in pilots)


def _model(training: TrainingSet, shape: Shape) -> Boosting:
    if shape == "symmetric":
        return SymmetricBoosting(_categorical(training), of_labels=training.n_classes > 0)
    make = HistGradientBoostingClassifier if training.n_classes else HistGradientBoostingRegressor
    # Few rows: those of one person or place stand together.
    leaf = int(np.clip(_LEAST_LEAF_SHARE * training.n, *_LEAST_LEAF)) if training.n >= _MANY_ROWS else 5
    categorical = _categorical(training)
    return make(
        learning_rate=0.1,
        max_leaf_nodes=shape,
        min_samples_leaf=leaf,
        l2_regularization=1.0,
        max_features=_share_of_columns(training, shape),
        max_bins=_bins(training),
        random_state=training.seed,
        categorical_features=categorical if categorical.any() else None,
        early_stopping=True,
        tol=0.0,
        warm_start=True,
    )


def _share_of_columns(training: TrainingSet, leaves: int) -> float:
    """The share of the columns that a split chooses from: a rule of several columns is found among most of them only, by usual trees."""
    if training.large:
        return 1.0
    return 0.3 if training.n_classes and training.n < _FEW_ROWS and leaves == _SMALL_LEAVES else 0.7


def _shapes(training: TrainingSet) -> list[Shape]:
    """Shapes of trees, of which rows held out choose; of many rows, columns or outputs one size alone, that suits as many rows."""
    if training.large:
        return [_LARGE_LEAVES]
    one_output = training.n_classes <= _MANY_CLASSES if training.n_classes else training.Y.shape[1] == 1
    fewest = _FEWEST_ROWS if training.n_classes else _FEW_ROWS  # small trees of numbers choose among most columns
    few_columns = training.view.T.shape[1] <= _MANY_COLUMNS
    usual = _SMALL_LEAVES if training.n < _FEW_ROWS else _USUAL_LEAVES
    if not (one_output and few_columns and training.n < _MANY_ROWS and training.learned is None):
        return [usual]
    return [_SMALL_LEAVES, _USUAL_LEAVES, "symmetric"] if training.n >= fewest else [usual, "symmetric"]


def _bins(training: TrainingSet) -> int:
    """Few for few rows, which more would overfit, and for many, where they take half the time; a category needs a bin a level."""
    levels = int(np.nanmax(training.view.T[:, training.categorical], initial=0)) + 1
    wished = int(np.clip(training.n / 3, 63, 255)) if training.n < _MANY_ROWS else 127
    return max(wished, min(levels, 255))


class ForestMember(BaseEstimator):
    """scikit-learn's extremely randomised trees on bootstrap samples, with missing entries as they are.

    Independent rows are judged out of bag. A bag holds rows of the same group, of the same day and copies of the row itself, so that other rows are judged
    by a forest for every cut.
    """

    name = "forest"
    cuts_test_all = True
    _schema: ClassVar[dict[str, Rule]] = {"n_classes_": COUNT, "trees_": Instance(Trees), "out_of_bag_": Flag()}

    def fit(self, training: TrainingSet) -> Floats:
        self.n_classes_ = training.n_classes
        target = _target(training)
        rows = training.view.T.astype(np.float32)
        model = self._grown(training, rows, target)
        self.trees_ = Trees.of_forest(model, rows.shape[1])
        self.out_of_bag_ = training.independent
        return self._out_of_bag(model, training) if self.out_of_bag_ else self._by_cut(training, rows, target)

    def _grown(self, training: TrainingSet, rows: NDArray[np.float32], target: NDArray[Any]) -> Forest:
        """A forest that is doubled until that gains little out of bag, or time runs out."""
        final, wished = training.final, int(np.clip(2 * training.n, *_MOST_TREES))
        rows, target, weight = rows[final], target[final], training.weights(final)
        started, loss, most = perf_counter(), np.inf, wished
        least = _FIRST_TREES[bool(training.n_classes)]
        first = wished if wished == _MOST_TREES[0] else least  # few rows take longer to judge than to learn
        trees = min(_SMALLEST_TREES, first) if training.hurried else first  # a few are timed first
        model = self._model(training, trees)
        while True:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of rows that no tree left out
                model.set_params(n_estimators=trees).fit(rows, target, sample_weight=weight)
            if training.hurried:
                a_tree = max(perf_counter() - started, TICK) / trees
                usable = USABLE * training.left() / _forests(training)
                most = int(np.clip(trees + usable / a_tree, trees, wished))
            if trees >= first:
                last, loss = loss, self._loss(self._left_out(model, training), training)
                if loss > (1 - _LEAST_GAIN) * last:
                    return model
            if trees == most:
                break
            trees = min(2 * trees if trees >= first else first, most)
        if trees < wished:
            training.shortened[self.name] = f"{trees} of up to {wished} trees"
        return model

    def _loss(self, values: Floats, training: TrainingSet) -> float:
        """The loss of values of the rows that the forest learns from."""
        final = training.final
        if training.labels is None:
            losses = ((values - training.Y[final]) ** 2).mean(axis=1)
        else:
            losses = -values[np.arange(len(final)), training.labels[final]]
        return float(np.average(losses, weights=training.weights(final)))

    def pilot(self, training: TrainingSet, whole: TrainingSet) -> float:
        target = _target(training)
        model = self._model(training, _PILOT_TREES).set_params(oob_score=False)
        model.fit(training.view.T.astype(np.float32), target, sample_weight=training.weight)
        return _forests(whole) * _WORTHWHILE_TREES / _PILOT_TREES

    def _model(self, training: TrainingSet, n_trees: int) -> Forest:
        make, features = (ExtraTreesClassifier, "sqrt") if training.n_classes else (ExtraTreesRegressor, 0.5)
        return make(
            n_estimators=n_trees,
            bootstrap=True,
            oob_score=True,
            warm_start=True,
            min_samples_leaf=_FOREST_LEAF,
            max_features=features,
            random_state=training.seed,
            n_jobs=training.n_jobs,
        )

    def _out_of_bag(self, model: Forest, training: TrainingSet) -> Floats:
        """Values of the tested rows: those that the forest has not learned from are predicted as new ones are."""
        tested, final = training.tested, training.final
        known = np.isin(tested, final)
        values = np.empty((len(tested), training.n_classes or training.Y.shape[1]))
        values[known] = self._left_out(model, training)[np.searchsorted(final, tested[known])]
        if not known.all():
            values[~known] = self.predict(training.view.take(tested[~known]), None, training.n_jobs)
        return values

    def _left_out(self, model: Forest, training: TrainingSet) -> Floats:
        if not training.n_classes:
            values = np.asarray(model.oob_prediction_, dtype=np.float64).reshape(len(training.final), -1)
            return np.where(np.isfinite(values), values, 0.0)
        chances = np.asarray(model.oob_decision_function_, dtype=np.float64)
        return log_chances(np.where(np.isfinite(chances), chances, 1.0 / training.n_classes))

    def _by_cut(self, training: TrainingSet, rows: NDArray[np.float32], target: NDArray[Any]) -> Floats:
        """Values of the tested rows by a smaller forest for every cut, of about as many trees as have a row out of bag."""
        n_trees = max(len(self.trees_.roots_) // _TREES_OUT_OF_BAG, 1)
        values = []
        for train, test in training.cuts:
            if not len(train):
                values.append(np.zeros((len(test), training.n_classes or training.Y.shape[1])))
                continue
            model = (
                self._model(training, n_trees)
                .set_params(oob_score=False)
                .fit(rows[train], target[train], sample_weight=training.weights(train))
            )
            predicted = Trees.of_forest(model, rows.shape[1]).sums(training.view.T[test], training.n_jobs)
            if training.n_classes:
                predicted = log_chances(all_chances(predicted, model.classes_, training.n_classes))
            values.append(predicted)
        return in_order(training.cuts, values)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        values = self.trees_.sums(view.T, n_jobs)
        return log_chances(values) if self.n_classes_ else values


def _target(training: TrainingSet) -> NDArray[Any]:
    """What a forest learns: labels (n,), or numbers (n, outputs) and (n,) of one output, or it warns."""
    if training.labels is not None:
        return training.labels
    numbers = on_grid(training.Y)
    return numbers[:, 0] if numbers.shape[1] == 1 else numbers


def _forests(training: TrainingSet) -> float:
    """Forests of the final one's size that are grown in all: the final one and, where rows are not independent, those
    of the cuts.
    """
    of_cuts = 0.0 if training.independent else sum(len(train) for train, _ in training.cuts) / training.n
    return 1.0 + of_cuts / _TREES_OUT_OF_BAG
