"""Expected values of missing entries by a Gaussian of all columns and by a forest for each, weighed by how well both give back hidden ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import nnls
from sklearn import config_context
from sklearn.tree import ExtraTreeRegressor
from sklearn.utils import check_random_state

from lacunar._log import say
from lacunar._random import generator
from lacunar._threads import thread_count
from lacunar._typing import Floats, Ints
from lacunar.impute.chained import Target
from lacunar.lowrank.gaussian import LARGEST_FULL, Gaussian, conditionals, fit_gaussian
from lacunar.lowrank.posterior import LowRankPosterior

_SHRINKAGE = 0.4  # rows' worth of independent columns in the Gaussian
_STEPS = 15  # few: EM that stops early shrinks what little data says little of
_TOLERANCE = 1e-3
_ROUNDS = 2
# Of the observed entries of a column, each of which is hidden in turn: at least, and at most of few rows, whose Gaussian costs little.
_PARTS = (5, 10)
_ROWS_IN_PARTS = 3000  # of all parts together
_FEWEST = 5  # observed entries of a column that has a forest
MOST_ROWS = 5000  # that a forest learns from
_CAUTION = 100  # entries' worth of the weights of all columns in those of one
_FIRST_CAUTION = 100  # entries' worth of equal weights in those of all columns
_TREES = 25  # of one task
_MOST_TASKS = (2, 4)  # by round
_CELLS_OF_TREES = 400_000  # of all trees together, within that
_SHARE, _LEAF = (0.63, 0.8), (2, 1)  # of the rows from which a tree learns, and entries in a leaf: of many, and of few
_FEW = 80  # entries


# Of the standardised design: of full rank, or of low rank for many columns.
Joint: TypeAlias = Gaussian | LowRankPosterior


def fit_joint(Z: Floats, seed: int, start: Joint | None = None) -> Joint:
    """The Gaussian of standardised rows (n, p) with missing entries, by EM from `start` where it is of full rank."""
    p = Z.shape[1]
    if p > LARGEST_FULL:
        return LowRankPosterior(random_state=seed).fit(Z)
    gaussian = start if isinstance(start, Gaussian) else Gaussian(np.zeros(p), np.eye(p))
    return fit_gaussian(Z, gaussian, _SHRINKAGE, _STEPS, _TOLERANCE)[0]


def complete_rows(Z: Floats, joint: Joint) -> Floats:
    """The rows (n, p), NaN where missing, with what is missing expected from what each row shows."""
    if isinstance(joint, LowRankPosterior):
        return joint.complete(Z)
    completed = Z.copy()
    for group in conditionals(Z, joint):
        completed[group.rows[:, None], group.columns[group.own]] = group.mean
    return completed


@dataclass(frozen=True)
class Units:
    """Means and standard deviations of the columns of the design, (p,)."""

    mean: Floats
    scale: Floats

    def of(self, X: Floats) -> Floats:
        """Columns in these units."""
        return np.asarray((X - self.mean) / self.scale)

    def back(self, Z: Floats) -> Floats:
        """Standardised rows as those of the design."""
        return np.asarray(Z * self.scale + self.mean)


def units_of(X: Floats) -> Units:
    """Units of a design (n, p) with NaN where missing; every column has two different entries."""
    deviation = np.nanstd(X, axis=0)
    return Units(np.nanmean(X, axis=0), np.where(deviation > 0, deviation, 1.0))


def columns_of(target: Target) -> slice:
    """Its columns of the design, without the column of ones."""
    return slice(target.own.start - 1, target.own.stop - 1)


def answer(target: Target, X: Floats) -> Floats:
    """A column (n, width) of a completed design (n, p): its number in standard units, or the share of each level."""
    own = X[:, columns_of(target)]
    return own if target.is_number else np.column_stack([1 - own.sum(axis=1), own])


def as_shares(target: Target, answer: Floats, least: float = 0.0) -> Floats:
    """The same, shares of levels at least so large, with the sum 1."""
    if target.is_number:
        return answer
    shares = np.clip(answer, least, None)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def by_joint(target: Target, units: Units, completed: Floats) -> Floats:
    """The answer of the Gaussian, of completed standardised rows."""
    return as_shares(target, answer(target, units.back(completed)), 1e-3)


# -- entries that are hidden in turn ------------------------------------------------------------------------------------------


@dataclass
class Hidden:
    """Rows of a table whose observed entries were hidden in turn, and what they were completed with meanwhile."""

    rows: Ints  # (m,) of the table
    parts: dict[int, Ints]  # (m,) by place of a column: with which part of all entries each is hidden, or -1
    completed: Floats  # (parts, m, p), standardised, with each part hidden

    def without(self, place: int) -> tuple[Ints, Floats]:
        """Positions (k,) of hidden entries of a column, and their rows (k, p), completed without them."""
        known = np.flatnonzero(self.parts[place] >= 0)
        return known, self.completed[self.parts[place][known], known]


def hide_in_turn(targets: Sequence[Target], Z: Floats, joint: Joint, seed: int) -> Hidden:
    """Hide the observed entries of all columns with missing ones, a part of them at a time, from a Gaussian learned anew, from `joint` on.

    `Z` (n, p) is the standardised table, of whose rows so many are drawn that every such column has MOST_ROWS entries in them, if it can.
    """
    rng = generator(seed)
    n_parts = int(np.clip(_ROWS_IN_PARTS // len(Z), *_PARTS)) if isinstance(joint, Gaussian) else _PARTS[0]
    order, taken, parts = rng.permutation(len(Z)), np.zeros(len(Z), dtype=bool), {}
    for target in targets:
        known = order[~np.isnan(Z[order, columns_of(target).start])]
        if _FEWEST <= len(known) < len(Z):
            parts[target.place] = np.full(len(Z), -1)
            parts[target.place][known[:MOST_ROWS]] = rng.permutation(len(known[:MOST_ROWS])) % n_parts
            taken[known[:MOST_ROWS]] = True
    rows = np.flatnonzero(taken)
    completed = [_without_part(targets, Z, joint, seed, parts, k, rows) for k in range(n_parts if parts else 0)]
    return Hidden(rows, {place: part[rows] for place, part in parts.items()}, np.array(completed))


def _without_part(
    targets: Sequence[Target], Z: Floats, joint: Joint, seed: int, parts: Mapping[int, Ints], k: int, rows: Ints
) -> Floats:
    without = Z.copy()
    for target in targets:
        if target.place in parts:
            without[parts[target.place] == k, columns_of(target)] = np.nan
    return complete_rows(without[rows], fit_joint(without, seed, joint))


# -- forests --------------------------------------------------------------------------------------------------------------------


class Forest:
    """Extremely randomised trees that give one column from all others of completed standardised rows, each tree from a part of the rows."""

    def __init__(
        self, target: Target, completed: Floats, truth: Floats, most_tasks: int, seed: int, n_jobs: int | None
    ) -> None:
        """`truth` (n, width) is the column in the completed rows (n, p)."""
        self._own, n = columns_of(target), len(truth)
        others = self._others(completed)
        n_tasks = int(np.clip(_CELLS_OF_TREES // (n * completed.shape[1] * _TREES), 1, most_tasks))
        tasks = [delayed(_grown)(others, truth, int(s)) for s in generator(seed).integers(2**31 - 1, size=n_tasks)]
        grown = Parallel(n_jobs=thread_count(n_jobs), prefer="threads")(tasks)
        self._trees = [tree for trees, _, _ in grown for tree in trees]
        total, count = sum(part for _, part, _ in grown), sum(part for _, _, part in grown)
        # By trees that did not learn from the row.
        self.unseen = np.where(count > 0, total / np.maximum(count, 1), truth.mean(axis=0))

    def _others(self, completed: Floats) -> Any:
        return np.delete(completed, np.arange(self._own.start, self._own.stop), axis=1).astype(np.float32)

    def answer(self, completed: Floats) -> Floats:
        """What is expected of the column, (n, width)."""
        others = self._others(completed)
        return np.asarray(np.mean([_predicted(tree, others) for tree in self._trees], axis=0))


def _grown(others: Any, truth: Floats, seed: int) -> tuple[list[Any], Floats, Floats]:
    """Trees, the sum (n, width) of what they predict for rows from which they did not learn, and how many did so (n, 1)."""
    state, n = check_random_state(seed), len(truth)
    total, count, trees, few = np.zeros_like(truth), np.zeros((n, 1)), [], n < _FEW
    for _ in range(_TREES):
        order = state.permutation(n)
        rows, unseen = np.split(order, [max(int(_SHARE[few] * n), 1)])
        tree = ExtraTreeRegressor(min_samples_leaf=_LEAF[few], max_features=1.0, random_state=state)
        with config_context(skip_parameter_validation=True):
            trees.append(tree.fit(others[rows], truth[rows], check_input=False))
        total[unseen] += _predicted(tree, others[unseen])
        count[unseen] += 1
    return trees, total, count


def _predicted(tree: Any, others: Any) -> Floats:
    return np.asarray(tree.predict(others, check_input=False).reshape(len(others), tree.n_outputs_))


# -- weights --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recovery:
    """How well hidden entries of one column came back."""

    hidden: int
    weights: Floats  # of the Gaussian and of the forest, (2,)
    explained: float  # 1 less the squared error over that of the column's mean, or shares of levels; NaN without hidden entries
    error: float  # root mean squared, in units of the column; of levels the share that is wrong


@dataclass(frozen=True)
class Trial:
    """Hidden entries of one column and what gave them back, (m, width) each: of levels their shares."""

    target: Target
    truth: Floats
    usual: Floats  # (width,)
    joint: Floats
    forest: Floats

    def off(self) -> tuple[Floats, Floats]:
        """What both models say (m width, 2), and the truth, less what is usual."""
        both = np.column_stack([(part - self.usual).ravel() for part in (self.joint, self.forest)])
        return both, (self.truth - self.usual).ravel()


def mix(target: Target, usual: Floats, joint: Floats, forest: Floats, weights: Floats) -> Floats:
    """Both models together: what weights leave of 1 goes to what is usual."""
    return as_shares(target, usual + weights[0] * (joint - usual) + weights[1] * (forest - usual))


def weigh(trials: Mapping[int, Trial]) -> tuple[Floats, dict[int, Recovery]]:
    """Weights (2,) of all columns together, and those of each, drawn toward them, with the errors left: by least squares, none negative."""
    equal = np.full(2, 0.5)
    if not trials:
        return equal, {}
    parts = []
    for trial in trials.values():
        both, truth = trial.off()
        size = max(float(np.sqrt(truth @ truth / len(trial.truth))), 1e-300)
        parts.append((both / size, truth / size))
    weights = nnls(*map(np.concatenate, zip(*parts, strict=True)))[0]
    common = _toward(weights, sum(len(trial.truth) for trial in trials.values()), equal, _FIRST_CAUTION)
    return common, {place: _recovery(trial, common) for place, trial in trials.items()}


def _toward(weights: Floats, n: int, prior: Floats, caution: float) -> Floats:
    return np.asarray((n * weights + caution * prior) / (n + caution))


def _recovery(trial: Trial, common: Floats) -> Recovery:
    n = len(trial.truth)
    weights = _toward(nnls(*trial.off())[0], n, common, _CAUTION)
    mixed = mix(trial.target, trial.usual, trial.joint, trial.forest, weights)
    squares, base = np.sum((trial.truth - mixed) ** 2), np.sum((trial.truth - trial.usual) ** 2)
    explained = 1 - squares / base if base > 0 else np.nan
    if trial.target.is_number:
        error = float(np.sqrt(squares / n)) * trial.target.scale
    else:
        error = float(np.mean(mixed.argmax(axis=1) != trial.truth.argmax(axis=1)))
    return Recovery(n, weights, float(explained), error)


# -- both models, in rounds -----------------------------------------------------------------------------------------------------


class Mixture:
    """The Gaussian and a forest for every column, in rounds: forests of the second learn from rows that the first has completed."""

    def __init__(
        self, targets: Sequence[Target], X: Floats, joint: Joint, seed: int, n_jobs: int | None, verbose: int
    ) -> None:
        """`X` (n, p) is the design of the training table, NaN where entries are missing."""
        self._X, self._joint, self._seed, self._n_jobs = X, joint, seed, n_jobs
        self._units = units_of(X)
        self._forests: list[dict[int, Forest]] = [{} for _ in range(_ROUNDS)]
        self._recoveries: list[dict[int, Recovery]] = []
        hidden = hide_in_turn(targets, self._units.of(X), joint, seed)
        first, able = hidden.completed, [target for target in targets if target.place in hidden.parts]
        for k in range(_ROUNDS):
            trials = {target.place: self._try(k, target, hidden, first) for target in able}
            self.common, self.recoveries = weigh(trials)
            self._recoveries.append(self.recoveries)
            if able and k < _ROUNDS - 1:
                hidden = replace(hidden, completed=self._completed_again(k, hidden, first, trials))
            say(verbose, "forests of round %d of %d, for %d columns", k + 1, _ROUNDS, len(able))

    def expected(self, targets: Sequence[Target], X: Floats) -> dict[int, Floats]:
        """Answers (missing, width) by place of the column, of the rows of a design (n, p) that lack it."""
        first = completed = complete_rows(self._units.of(X), self._joint)
        missing = {t.place: (t, np.flatnonzero(np.isnan(X[:, columns_of(t).start]))) for t in targets}
        for k in range(_ROUNDS):
            parts = {p: (t, rows) for p, (t, rows) in missing.items() if len(rows)}
            answers = {p: self._answer(k, t, first[rows], completed[rows]) for p, (t, rows) in parts.items()}
            completed = first.copy()
            for place, (target, rows) in parts.items():
                completed[rows, columns_of(target)] = self._standardised(target, answers[place])
        return answers

    def _try(self, k: int, target: Target, hidden: Hidden, first: Floats) -> Trial:
        """What the Gaussian, by rows that it completed `first`, and a new forest say of hidden entries."""
        known, completed = hidden.without(target.place)
        usual, truth = self._usual(target), answer(target, self._X[hidden.rows[known]])
        joint = by_joint(target, self._units, first[hidden.parts[target.place][known], known])
        forest = usual + 0 * joint
        if self._has_others(target):
            self._forests[k][target.place] = self._grow(k, target, completed, truth)
            forest = self._forests[k][target.place].unseen
        return Trial(target, truth, usual, joint, forest)

    def _completed_again(self, k: int, hidden: Hidden, first: Floats, trials: Mapping[int, Trial]) -> Floats:
        """The rows whose entries are hidden in turn, completed by both models of a round."""
        again = first.copy()
        for place, trial in trials.items():
            target, own, part = trial.target, columns_of(trial.target), hidden.parts[place]
            gone = np.isnan(self._X[hidden.rows, own.start])
            rows, completed = (table[:, gone].reshape(-1, table.shape[2]) for table in (first, hidden.completed))
            answers = self._standardised(target, self._answer(k, target, rows, completed))
            again[:, gone, own] = answers.reshape(len(first), int(gone.sum()), answers.shape[1])
            known = np.flatnonzero(part >= 0)
            mixed = mix(target, trial.usual, trial.joint, trial.forest, self._recoveries[k][place].weights)
            again[part[known], known, own] = self._standardised(target, mixed)
        return again

    def _answer(self, k: int, target: Target, first: Floats, completed: Floats) -> Floats:
        """What both models of a round say of a column of rows (n, p), completed by the Gaussian and by the round before."""
        joint, usual, forest = by_joint(target, self._units, first), self._usual(target), self._forest(k, target)
        recovery = self._recoveries[k].get(target.place)
        if forest is None and recovery is None:
            return joint
        weights = self.common if recovery is None else recovery.weights
        return mix(target, usual, joint, usual if forest is None else forest.answer(completed), weights)

    def _forest(self, k: int, target: Target) -> Forest | None:
        """The forest of one column; of one that the training table shows whole only in the last round, grown when it is first asked."""
        forests = self._forests[k]
        if target.place not in forests and k == _ROUNDS - 1 and self._has_others(target):
            known = np.flatnonzero(~np.isnan(self._X[:, columns_of(target).start]))
            rows = np.sort(generator(self._seed).permutation(known)[:MOST_ROWS])
            completed = complete_rows(self._units.of(self._X[rows]), self._joint)
            forests[target.place] = self._grow(k, target, completed, answer(target, self._X[rows]))
        return forests.get(target.place)

    def _grow(self, k: int, target: Target, completed: Floats, truth: Floats) -> Forest:
        return Forest(target, completed, truth, _MOST_TASKS[k], self._seed + k, self._n_jobs)

    def _has_others(self, target: Target) -> bool:
        return bool(self._X.shape[1] > target.own.stop - target.own.start)

    def _usual(self, target: Target) -> Floats:
        return np.asarray(answer(target, self._units.mean[None])[0])

    def _standardised(self, target: Target, answers: Floats) -> Floats:
        """Answers as columns of the standardised design."""
        own = columns_of(target)
        values = answers if target.is_number else answers[:, 1:]
        return np.asarray((values - self._units.mean[own]) / self._units.scale[own])
