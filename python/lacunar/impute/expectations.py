"""Expected values of missing entries by a Gaussian of all columns and by a forest for each, weighed by how well both gave back hidden ones."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from lacunar._random import generator
from lacunar._typing import Bools, Floats, Ints
from lacunar.impute.chained import Plan, Target
from lacunar.lowrank.gaussian import LARGEST_FULL, Gaussian, conditionals, fit_gaussian
from lacunar.lowrank.posterior import LowRankPosterior

_SHRINKAGE = 0.4  # rows' worth of independent columns
_STEPS = 60
_TOLERANCE = 1e-3
_HIDDEN = 0.1  # share of the observed entries of a column
_FEWEST = 5  # hidden entries that choose a weight
_MOST = 1000
_CAUTION = 10  # hidden entries' worth of equal weights
_TREES = 25
_MOST_ROWS = 5000  # that a forest learns from
_LEAF = 3


@dataclass(frozen=True)
class Joint:
    """The Gaussian of the standardised design: of full rank, or of low rank for many columns."""

    gaussian: Gaussian | None
    posterior: LowRankPosterior | None

    def expected(self, Z: Floats) -> Floats:
        """The rows (n, p), NaN where missing, with what is missing expected from what each row shows."""
        if self.posterior is not None:
            return self.posterior.complete(Z)
        assert self.gaussian is not None
        completed = Z.copy()
        for group in conditionals(Z, self.gaussian):
            completed[group.rows[:, None], group.columns[group.own]] = group.mean
        return completed


def fit_joint(Z: Floats, seed: int) -> Joint:
    """The Gaussian of standardised rows (n, p) with missing entries."""
    p = Z.shape[1]
    if p > LARGEST_FULL:
        return Joint(None, LowRankPosterior(random_state=seed).fit(Z))
    start = Gaussian(np.zeros(p), np.eye(p))
    return Joint(fit_gaussian(Z, start, _SHRINKAGE, _STEPS, _TOLERANCE)[0], None)


@dataclass(frozen=True)
class Units:
    """Means and standard deviations of the columns of the design, (p,)."""

    mean: Floats
    scale: Floats

    def of(self, X: Floats) -> Floats:
        """Columns in these units."""
        return (X - self.mean) / self.scale  # type: ignore[no-any-return]

    def back(self, Z: Floats, columns: slice) -> Floats:
        """Some columns of standardised rows as those of the design."""
        return Z[:, columns] * self.scale[columns] + self.mean[columns]  # type: ignore[no-any-return]


def units_of(X: Floats) -> Units:
    """Units of a design (n, p) with NaN where missing; every column has two different entries."""
    deviation = np.nanstd(X, axis=0)
    return Units(np.nanmean(X, axis=0), np.where(deviation > 0, deviation, 1.0))


def columns_of(target: Target) -> slice:
    """Its columns of the design, without the column of ones."""
    return slice(target.own.start - 1, target.own.stop - 1)


def answer(target: Target, values: Floats) -> Floats:
    """What is expected of a column (n, width): its number in standard units, or the probability of each level."""
    if target.is_number:
        return target.design(values)
    return (values[:, None] == np.arange(target.levels)).astype(np.float64)  # type: ignore[no-any-return]


def by_joint(target: Target, units: Units, completed: Floats) -> Floats:
    """The answer of the Gaussian, of completed standardised rows."""
    values = units.back(completed, columns_of(target))
    if target.is_number:
        return values
    shares = np.clip(np.column_stack([1 - values.sum(axis=1), values]), 1e-3, None)
    return shares / shares.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


class Forest:
    """A forest that gives one column from all others of completed standardised rows."""

    def __init__(
        self, target: Target, completed: Floats, rows: Ints, values: Floats, seed: int, n_jobs: int | None
    ) -> None:
        """`rows` of the table show the column, and these are their values."""
        drawn = np.sort(generator(seed).permutation(len(rows))[:_MOST_ROWS])
        rows, values = rows[drawn], values[drawn]
        self._target = target
        kind: Any = ExtraTreesRegressor if target.is_number else ExtraTreesClassifier
        self._trees = kind(
            _TREES,
            min_samples_leaf=_LEAF,
            random_state=seed,
            n_jobs=n_jobs,
            max_features=1.0,
        )
        labels = target.design(values)[:, 0] if target.is_number else values.astype(np.intp)
        with warnings.catch_warnings():  # text with nearly as many levels as rows is no regression
            warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
            self._trees.fit(self._others(completed[rows]), labels)

    def _others(self, completed: Floats) -> Floats:
        own = columns_of(self._target)
        return np.delete(completed, np.arange(own.start, own.stop), axis=1).astype(np.float32)  # type: ignore[return-value]

    def answer(self, completed: Floats) -> Floats:
        """What is expected of the column, (n, width)."""
        others = self._others(completed)
        if self._target.is_number:
            return self._trees.predict(others)[:, None]  # type: ignore[no-any-return]
        shares = np.zeros((len(others), self._target.levels))
        shares[:, self._trees.classes_] = self._trees.predict_proba(others)
        return shares


@dataclass(frozen=True)
class Recovery:
    """How well hidden entries of one column came back."""

    hidden: int
    weight: float  # of the forest
    explained: float  # 1 less the squared error over that of the column's mean, or shares of levels; NaN without hidden entries
    error: float  # root mean squared, in units of the column; of levels the share that is wrong


def hide(plan: Plan, observed: Bools, rng: np.random.Generator) -> dict[int, Ints]:
    """Rows whose entry of a column with missing entries is hidden, by the place of the column; `observed` is (n, d)."""
    hidden = {}
    for target in plan.order:
        rows = np.flatnonzero(observed[:, target.place])
        n = min(int(_HIDDEN * len(rows)), _MOST)
        if n >= _FEWEST:
            hidden[target.place] = np.sort(rng.permutation(rows)[:n])
    return hidden


def weigh(target: Target, truth: Floats, joint: Floats, forest: Floats | None) -> Recovery:
    """The weight of the forest by least squares on hidden entries, and the errors of both together."""
    wanted = answer(target, truth)
    weight = 0.0
    if forest is not None:
        apart = forest - joint
        size = float(np.sum(apart**2))
        caution = _CAUTION / len(truth) * size
        weight = float(np.clip((np.sum(apart * (wanted - joint)) + caution / 2) / max(size + caution, 1e-300), 0, 1))
        joint = joint + weight * apart
    usual = answer(target, target.values).mean(axis=0)
    squares, base = np.sum((wanted - joint) ** 2), np.sum((wanted - usual) ** 2)
    explained = 1 - squares / base if base > 0 else np.nan
    if target.is_number:
        error = float(np.sqrt(squares / len(truth))) * target.scale
    else:
        error = float(np.mean(joint.argmax(axis=1) != truth))
    return Recovery(len(truth), weight, float(explained), error)
