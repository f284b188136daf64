"""Trains members one after another and pools them by their out-of-fold values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, nnls
from sklearn.base import BaseEstimator

from lacunar._log import say, warn_user
from lacunar._typing import Floats, Ints
from lacunar.karma.selection import TICK, USABLE
from lacunar.learner.folds import sums_by_group
from lacunar.learner.members import MEMBERS, Member
from lacunar.learner.views import TrainingSet, View
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import COUNT, Flag, Instance, Items, Optional, Rule, Word, floats, whole
from lacunar.uncertainty.shift import log_softmax

PILOT_ROWS = 500  # on which the seconds of a fit are measured
_FEWEST_LEARNED = 300  # rows that a member learns from
_FEWEST_ROWS = 4  # below which there is nothing to fold
_LEAST_WEIGHT = 0.02  # of a member of a large table, which is dropped below


_FEW_ROWS = 400.0  # below which weights stay near one another: ridge values break log loss at 60 rows
_FEW_ROWS_OF_NUMBERS = 1600.0  # the same of squared errors, where the weights' prior lets go of what is behind
_DOUBT = 2.0  # standard errors of the difference of two losses, behind by which a member still counts exp(-1/2)
_SUM_PRECISION = 50.0  # of the sum of the weights about 1: few rows of a weak signal may ask for far more
_INTERCEPT_PRECISION = 1.0  # as if a row spoke against an intercept
_FAR, _LIMITED = 6.0, 5  # standard deviations, beyond which a row says less of weights, and how often they are computed
_LARGEST_SLOPE, _SMALLEST_SLOPE = 50.0, 0.02


def shrinkage(n: float, few_rows: float = _FEW_ROWS) -> float:
    """How strongly pool weights are shrunk to the prior's, for so many independent rows."""
    return 1.0 + few_rows / max(n, 1.0)


def effective_number(losses: Floats, weight: Floats, groups: Ints | None) -> float:
    """Independent rows that tell as much of the members' losses (n, m) as n rows in groups: n over the design effect of their differences (Kish 1965).

    At least as many as there are groups.
    """
    n = len(losses)
    if groups is None or losses.shape[1] < 2:
        return float(n)
    differences = losses - losses.mean(axis=1, keepdims=True)
    differences = weight[:, None] * (differences - np.average(differences, axis=0, weights=weight))
    together, alone = float((sums_by_group(differences, groups) ** 2).sum()), float((differences**2).sum())
    return float(np.clip(n * alone / together if together > 0 else n, len(np.unique(groups)), n))


class LogPool(BaseEstimator):
    """p proportional to exp(sum of w_m log p_m), where log p_m = log softmax(a_m s_m + b_m) of every member's values s_m.

    a_m and b_m are each member's own, by maximum a posteriori with the targets of Platt (1999); the weights w >= 0 minimise n log loss + lambda M |w - 1/M|^2.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "slopes_": floats("members", low=0),
        "intercepts_": floats("members", "c"),
        "weights_": floats("members", low=0),
    }

    def fit(
        self, values: list[Floats], labels: Ints, weight: Floats | None = None, groups: Ints | None = None
    ) -> LogPool:
        """From out-of-fold values (n, c) of every member, of rows in groups (n,) or independent ones."""
        weight = np.ones(len(labels)) if weight is None else weight
        fitted = [_calibration(member, labels, weight) for member in values]
        self.slopes_ = np.array([slope for slope, _ in fitted])
        self.intercepts_ = np.array([intercept for _, intercept in fitted])
        self.weights_ = _log_weights(self._logs(values), labels, weight, groups)
        return self

    def _logs(self, values: list[Floats]) -> Floats:
        """Calibrated log probabilities (members, n, c)."""
        pairs = zip(values, self.slopes_, self.intercepts_, strict=True)
        return np.array([log_softmax(slope * member + intercept) for member, slope, intercept in pairs])

    def combine(self, values: Sequence[Floats | None], m: int) -> Floats:
        """Log probabilities (m, c); values of members without weight are not looked at."""
        total = np.zeros((m, self.intercepts_.shape[1]))
        # Member by member: the same bits for any number of rows.
        for weight, slope, intercept, member in zip(self.weights_, self.slopes_, self.intercepts_, values, strict=True):
            if weight and member is not None:
                total = total + weight * log_softmax(slope * member + intercept)
        return log_softmax(total)


def _calibration(values: Floats, labels: Ints, weight: Floats) -> tuple[float, Floats]:
    """Slope and intercepts of one member."""
    n, c = values.shape
    scale = max(float(values.std()), 1e-12)
    # Platt's targets: few rows prove little.
    doubt = (1.0 / (np.bincount(labels, weights=weight, minlength=c) + 2.0))[labels][:, None]
    target = np.repeat(doubt / (c - 1), c, axis=1)
    target[np.arange(n), labels] = 1.0 - doubt[:, 0]

    def loss(free: Floats) -> tuple[float, Floats]:
        slope, intercept = np.exp(free[0]) / scale, free[1:]
        logs = log_softmax(slope * values + intercept)
        behind = weight[:, None] * (np.exp(logs) - target)
        value = -float(weight @ (target * logs).sum(axis=1)) + 0.5 * _INTERCEPT_PRECISION * float(intercept @ intercept)
        gradient = np.r_[slope * float((behind * values).sum()), behind.sum(axis=0) + _INTERCEPT_PRECISION * intercept]
        return value + 0.05 * free[0] ** 2, gradient + np.r_[0.1 * free[0], np.zeros(c)]

    bounds = [(np.log(_SMALLEST_SLOPE), np.log(_LARGEST_SLOPE))] + [(-20.0, 20.0)] * c
    solution = minimize(loss, np.zeros(c + 1), jac=True, bounds=bounds, method="L-BFGS-B").x
    return float(np.exp(solution[0]) / scale), solution[1:]


def _log_weights(logs: Floats, labels: Ints, weight: Floats, groups: Ints | None) -> Floats:
    """Weights (members,) of log probabilities (members, n, c)."""
    members, n, _ = logs.shape
    rows = np.arange(n)
    n_effective = effective_number(-logs[:, rows, labels].T, weight, groups)
    weight = weight * (n_effective / n)
    even, strength = np.full(members, 1.0 / members), shrinkage(n_effective) * members

    def loss(w: Floats) -> tuple[float, Floats]:
        mixed = log_softmax(np.tensordot(w, logs, axes=1))
        behind = np.exp(mixed)
        behind[rows, labels] -= 1.0
        behind *= weight[:, None]
        gradient = np.tensordot(logs, behind, axes=([1, 2], [0, 1])) + 2 * strength * (w - even)
        return -float(weight @ mixed[rows, labels]) + strength * float(((w - even) ** 2).sum()), gradient

    weights: Floats = minimize(loss, even, jac=True, bounds=[(0.0, None)] * members, method="L-BFGS-B").x
    return weights


class LinearPool(BaseEstimator):
    """Sums of the members' values, one row of weights >= 0 a target: least squares, shrunk to equal weights of the members that may be the best.

    Shrinkage is in units of the best member's squared error: the average's would spoil members that are exact.
    """

    _schema: ClassVar[dict[str, Rule]] = {"weights_": floats("targets", "members", low=0)}

    def fit(
        self, values: list[Floats], Y: Floats, weight: Floats | None = None, groups: Ints | None = None
    ) -> LinearPool:
        """From out-of-fold values (n, q) of every member; targets (n, q), of rows in groups (n,) or independent ones."""
        weight = np.ones(len(Y)) if weight is None else weight
        members = np.stack(values, axis=2)
        self.weights_ = np.array([_least_squares(members[:, j], Y[:, j], weight, groups) for j in range(Y.shape[1])])
        return self

    def combine(self, values: Sequence[Floats | None], m: int) -> Floats:
        """Predictions (m, q); values of members without weight are not looked at."""
        total = np.zeros((m, len(self.weights_)))
        for weight, member in zip(self.weights_.T, values, strict=True):
            if weight.any() and member is not None:
                total = total + weight * member
        return total


def _least_squares(members: Floats, y: Floats, weight: Floats, groups: Ints | None) -> Floats:
    """Weights (m,) >= 0 of the members' values (n, m) that minimise sum of squares / the best member's + the prior's two terms.

    The terms are s m |w - prior|^2 with s = 1 + 1600/n, and 50 (sum of w - 1)^2; of rows in groups n is the number of independent rows that tell as much.
    Rows whose target or residual is beyond six standard deviations count less, so that none decides alone.
    """
    m = members.shape[1]
    weight = _without_far(members - y[:, None], y, weight)
    losses = (members - y[:, None]) ** 2
    n = effective_number(losses, weight, groups)
    least = float(np.average(losses, axis=0, weights=weight).min())
    unit = np.sqrt(max(least, 1e-14 * max(float(np.average(y**2, weights=weight)), 1e-300)))
    roots = np.sqrt(weight * (n / len(y)))[:, None] / unit
    pull = np.sqrt(shrinkage(n, _FEW_ROWS_OF_NUMBERS) * m)
    sum_pull = np.sqrt(_SUM_PRECISION)
    design = np.vstack([members * roots, pull * np.eye(m), np.full((1, m), sum_pull)])
    weights: Floats = nnls(design, np.r_[y * roots[:, 0], pull * prior_weights(losses, weight, groups), sum_pull])[0]
    return weights


def _without_far(residuals: Floats, y: Floats, weight: Floats) -> Floats:
    """Weights of rows less where their target, or the residual of the member that is mostly best, of (n, members), is far out."""
    sizes = np.abs(residuals)
    best = sizes[:, int(np.average(sizes, axis=0, weights=weight).argmin())]
    less = weight * _huber_weights(best, weight) * _huber_weights(np.abs(y), weight)
    return np.asarray(less / less.mean())


def _huber_weights(sizes: Floats, weight: Floats) -> Floats:
    """Huber's weights (1964) of sizes (n,): the limit over a size, 1 at most. The limit is six standard deviations of the sizes cut off at it."""
    limit = np.inf
    for _ in range(_LIMITED):
        limit = _FAR * np.sqrt(np.average(np.minimum(sizes, limit) ** 2, weights=weight))
    return np.divide(limit, sizes, out=np.ones(len(sizes)), where=sizes > limit)


def prior_weights(losses: Floats, weight: Floats, groups: Ints | None = None) -> Floats:
    """Weights (m,) that least squares are shrunk to, from the members' losses (n, m): alike where the losses do not tell members apart.

    A member whose mean loss is z standard errors behind the least one counts exp(-(z / 2)^2 / 2); of rows in groups the errors are those of sums over groups.
    """
    means = np.average(losses, axis=0, weights=weight)
    behind = losses - losses[:, [int(means.argmin())]]
    gaps = means - means.min()
    errors = np.sqrt((sums_by_group(weight[:, None] * (behind - gaps), groups) ** 2).sum(axis=0)) / weight.sum()
    z = np.divide(gaps, errors, out=np.where(gaps > 0, np.inf, 0.0), where=errors > 0)
    counts = np.exp(-0.5 * (z / _DOUBT) ** 2)
    shares: Floats = counts / counts.sum()
    return shares


class Ensemble(BaseEstimator):
    """The members that finished, their pool, and the cost of each."""

    _schema: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "names_": Items(Word(tuple(MEMBERS)), length="finished"),
        "prior_": floats("k"),
        "scores_": floats("finished"),
        "seconds_": floats("finished", low=0),
        "members_": Items(Instance(BaseEstimator), length="finished"),
        "pool_": Optional(Instance(BaseEstimator)),
        "rows_": whole("finished", low=0),
        "tested_": COUNT,
        "n_cuts_": COUNT,
        "dropped_": Instance(dict),
        "latent_": Flag(),
        "shortened_": Instance(dict),
    }

    def fit(self, training: TrainingSet, names: Sequence[str], verbose: int = 0) -> Floats:
        """Train and pool; the pool's values (tested rows, k) come back: log probabilities, or standardised targets."""
        self.n_classes_ = training.n_classes
        self.latent_ = training.view.latent is not None  # whether members read latent coordinates
        # Of members of too little weight, by name: score, seconds, rows, folds, and how they complete rows.
        self.dropped_: dict[str, list[Any]] = {}
        self.prior_ = _prior(training)
        self.names_: list[str] = []
        self.members_: list[Member] = []
        self.shortened_: dict[str, str] = {}  # what the time limit cost, by member
        self.seconds_, self.scores_, self.rows_ = np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.intp)
        values: list[Floats] = []
        judged = training.judged
        self.tested_, self.n_cuts_ = judged.n, len(training.cuts)
        if training.n >= _FEWEST_ROWS and training.n_classes != 1 and training.view.T.shape[1]:
            values = self._train(training, judged, names, verbose)
        self.pool_ = self._pooled(values, judged)
        while training.large and self._drop(values, verbose):
            self.pool_ = self._pooled(values, judged)
        return self._combine(values, judged.n)

    def _train(self, training: TrainingSet, judged: TrainingSet, names: Sequence[str], verbose: int) -> list[Floats]:
        """Values of the tested rows by the members that could be trained, in the time there is."""
        values: list[Floats] = []
        seconds: list[float] = []
        rows: list[int] = []
        names = [name for name in names if MEMBERS[name].takes_part(training)]
        if training.hurried:
            names = sorted(names, key=lambda name: MEMBERS[name].share)
            training = replace(training, a_row=_seconds_a_row(names, training))
        for k, name in enumerate(names):
            until = _until(names[k:], training)
            if values and until - perf_counter() < _least_seconds(training):
                self.shortened_[name] = "left out"
                say(verbose, "%s: left out, no time is left", name)
                continue
            started = perf_counter()
            time_left = _left(training, names[k:], seconds, self.names_)
            say(verbose, "%s: member %d of %d begins, %s", name, k + 1, len(names), time_left)
            try:
                trained = _trained(name, replace(training, deadline=until, shortened=self.shortened_))
            except Exception as error:
                self.shortened_.pop(name, None)
                warn_user(
                    f"member {name!r} could not be fitted and is left out: {type(error).__name__}: {error}",
                )
                continue
            seconds.append(perf_counter() - started)
            values.append(trained.values)
            rows.append(trained.n_rows)
            self.names_.append(name)
            self.members_.append(trained.member)
            say(verbose, "%s: %.1f s, score %.4g out of fold", name, seconds[-1], _score(trained.values, judged))
            if name in self.shortened_:
                say(verbose, "%s: shortened, %s", name, self.shortened_[name])
        order = np.argsort([list(MEMBERS).index(name) for name in self.names_])  # whatever the order of training
        values, self.members_ = [values[k] for k in order], [self.members_[k] for k in order]
        self.names_ = [self.names_[k] for k in order]
        self.seconds_, self.rows_ = np.array(seconds)[order], np.array(rows, dtype=np.intp)[order]
        self.scores_ = np.array([_score(out_of_fold, judged) for out_of_fold in values])
        return values

    def _drop(self, values: list[Floats], verbose: int) -> bool:
        """Drop the members of too little weight, and their values."""
        weights = np.atleast_2d(self.weights()).max(axis=0, initial=0.0)
        dropped = np.flatnonzero(weights < _LEAST_WEIGHT)
        dropped = dropped[dropped != weights.argmax()] if dropped.size else dropped
        for k in dropped[::-1]:
            name = self.names_.pop(k)
            say(verbose, "%s: dropped, its weight is %.3g", name, weights[k])
            costs = [self.scores_[k].item(), self.seconds_[k].item(), self.rows_[k].item()]
            self.dropped_[name] = [*costs, *self.folds_and_completed(self.members_[k])]
            del self.members_[k], values[k]
        for of_members in ("scores_", "seconds_", "rows_"):
            setattr(self, of_members, np.delete(getattr(self, of_members), dropped))
        return bool(dropped.size)

    def folds_and_completed(self, member: Member) -> tuple[int, str]:
        """The folds that judge a member, 0 where it is judged out of bag, and what stands for a missing entry in it."""
        return 0 if getattr(member, "out_of_bag_", False) else self.n_cuts_, getattr(member, "completed", "")

    def _pooled(self, values: list[Floats], judged: TrainingSet) -> LogPool | LinearPool | None:
        if not values:
            return None
        if judged.labels is not None:
            return LogPool().fit(values, judged.labels, judged.weight, judged.groups)
        return LinearPool().fit(values, judged.Y, judged.weight, judged.groups)

    def _combine(self, values: Sequence[Floats | None], m: int) -> Floats:
        return np.tile(self.prior_, (m, 1)) if self.pool_ is None else self.pool_.combine(values, m)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> Floats:
        """Log probabilities (m, c), or standardised targets (m, q). Members without weight are not called."""
        if self.latent_ and view.latent is None:
            assert posterior is not None
            view = view.with_latent(posterior, most=None)  # the kernels' completion takes all of them
        counts: NDArray[np.bool_] = np.any(np.atleast_2d(self.weights()), axis=0)
        values = [
            member.predict(view, posterior, n_jobs) if counted else None
            for member, counted in zip(self.members_, counts, strict=True)
        ]
        return self._combine(values, len(view.Z))

    def _check_loaded(self) -> None:
        """Members answer for the same classes as the ensemble, which are as many as its prior has."""
        wrong = [name for name in self.names_ if not MEMBERS[name].of_task(self.n_classes_)]
        if wrong:
            raise ValueError(
                f"an ensemble of {self.n_classes_} classes has a member {wrong[0]!r}, which is of the other task"
            )
        of_members = {member.n_classes_ for member in self.members_}
        if of_members - {self.n_classes_} or self.n_classes_ not in (0, len(self.prior_)):
            raise ValueError(
                f"an ensemble of {self.n_classes_} classes has a prior of {len(self.prior_)}, and members of {sorted(of_members)}"
            )

    def weights(self) -> Floats:
        """Of the members, (members,), or (q, members) for several targets."""
        if self.pool_ is None:
            return np.zeros(0)
        weights = self.pool_.weights_
        return weights[0] if isinstance(self.pool_, LinearPool) and len(weights) == 1 else weights


def _prior(training: TrainingSet) -> Floats:
    """What is predicted without any member: log shares of the classes, or the mean of standardised targets."""
    if training.labels is None:
        return np.average(training.Y, axis=0, weights=training.weight)
    shares = np.bincount(training.labels, weights=training.weight, minlength=training.n_classes)
    return log_softmax(np.log(np.maximum(shares, 1e-12)))


class Trained(NamedTuple):
    """A member, its values of the tested rows, and the number of rows that it learned from."""

    member: Member
    values: Floats
    n_rows: int


def _trained(name: str, training: TrainingSet) -> Trained:
    """A member trained within the time left."""
    by_itself = not training.large or MEMBERS[name].most_rows is None
    trained = (_trained_in_folds if by_itself else _trained_by_cuts)(name, training)
    if not np.isfinite(trained.values).all():
        raise FloatingPointError("its out-of-fold values are not finite")
    return trained


def _trained_in_folds(name: str, training: TrainingSet) -> Trained:
    """A member that gives values out of fold itself; where time is short it learns from a share of the rows and predicts the others."""
    member = MEMBERS[name].make()
    thinned, rows = _in_time(member, training)
    learned = training
    if thinned is training:
        values = member.fit(training)
    elif getattr(member, "cuts_test_all", False):
        learned = training.learning_from(rows)
        values = member.fit(learned)
    else:
        learned = thinned
        values = _fitted_to_few(member, thinned, rows, training)
    if thinned is not training:
        _note_rows(name, len(rows), training)
    return Trained(member, values, len(learned.final))


def _trained_by_cuts(name: str, training: TrainingSet) -> Trained:
    """A member of a large table that learns from at most so many rows as it can use: once, where no cut tests as many, else once a cut and from all rows in the end."""
    kind, tested = MEMBERS[name], training.tested
    assert kind.most_rows is not None
    most = kind.most_rows(training)

    def learn(rows: Ints) -> tuple[Member, int]:
        member, sample = kind.make(), training.sample(rows, most)
        thinned = _in_time(member, sample)[0]
        getattr(member, "learn", member.fit)(thinned)
        if thinned is not sample:
            _note_rows(name, thinned.n, sample)
        return member, thinned.n

    def values_of(member: Member, rows: Ints) -> Floats:
        return member.predict(training.view.take(rows).in_double(), training.posterior, training.n_jobs)

    untested = np.setdiff1d(np.arange(training.n), tested, assume_unique=True)
    if training.independent and len(untested) >= most:
        member, n_rows = learn(untested)
        return Trained(member, values_of(member, tested), n_rows)
    values = np.empty((len(tested), training.n_classes or training.Y.shape[1]))
    for train, test in training.cuts:
        values[np.searchsorted(tested, test)] = values_of(learn(train)[0], test)
    member, n_rows = learn(np.arange(training.n))
    return Trained(member, values, n_rows)


def _in_time(member: Member, training: TrainingSet) -> tuple[TrainingSet, Ints]:
    """The training set with the share of its rows for which there is time, and which those are."""
    return training.thinned(_share(member, training) if training.hurried else 1.0)


def _note_rows(name: str, n_rows: int, training: TrainingSet) -> None:
    """Say from which share of the rows a member learned."""
    part = f"{n_rows / training.n:.0%} of the rows"
    training.shortened[name] = f"{training.shortened[name]} on {part}" if name in training.shortened else part


def _fitted_to_few(member: Member, thinned: TrainingSet, rows: Ints, training: TrainingSet) -> Floats:
    """Values of all tested rows: those of rows that it does not learn from by the final model."""
    tested = training.tested
    values = np.empty((len(tested), training.n_classes or training.Y.shape[1]))
    values[np.isin(tested, rows)] = member.fit(thinned)
    others = np.setdiff1d(tested, rows, assume_unique=True)
    values[np.isin(tested, others)] = member.predict(training.view.take(others), training.posterior, training.n_jobs)
    return values


def _share(member: Member, training: TrainingSet) -> float:
    """Share of the rows with which a member's least fit keeps the deadline, by the pilot; members without one shorten themselves."""
    if member.name not in training.a_row or training.n <= PILOT_ROWS:
        return 1.0
    if not (
        training.independent or getattr(member, "cuts_test_all", False)
    ):  # the final model has seen the others' groups
        return 1.0
    enough = USABLE * training.left() / training.a_row[member.name] - MEMBERS[member.name].rows_before
    return float(np.clip(enough, min(_FEWEST_LEARNED, training.n), training.n) / training.n)


def _seconds_a_row(names: Sequence[str], training: TrainingSet) -> dict[str, float]:
    """The pilot: seconds that the least fit of a member takes for each of its rows, and of `rows_before` before the first, by fits to 500 rows."""
    pilot, rows = training.thinned(min(PILOT_ROWS / training.n, 1.0))
    seconds = {}
    for name in names:
        member, started = MEMBERS[name].make(), perf_counter()
        if hasattr(member, "pilot") and training.left() > 0:
            with suppress(Exception):  # said of the member itself
                fits = member.pilot(pilot, training)
                seconds[name] = fits * max(perf_counter() - started, TICK) / (len(rows) + MEMBERS[name].rows_before)
    return seconds


def _least_seconds(training: TrainingSet) -> float:
    """With less, a member does not begin: whatever the rows that it learns from, it reads the table."""
    return 0.02 + 2e-8 * training.view.T.size


def _until(names: Sequence[str], training: TrainingSet) -> float:
    """Until when the first of the names may take, of the time that is left for all of them."""
    if not training.hurried:
        return training.deadline
    shares = [MEMBERS[name].share for name in names]
    return perf_counter() + training.left() * shares[0] / sum(shares)


def _score(values: Floats, judged: TrainingSet) -> float:
    """Score of values of the tested rows: accuracy, or R^2 averaged over targets."""
    if judged.labels is not None:
        return float(np.average(values.argmax(axis=1) == judged.labels, weights=judged.weight))
    errors = np.average((values - judged.Y) ** 2, axis=0, weights=judged.weight)
    return float(np.mean(1.0 - errors))  # targets have variance 1


def _left(training: TrainingSet, names: Sequence[str], seconds: Sequence[float], finished: Sequence[str]) -> str:
    """Time that is left by the limit, or that the remaining members may take, judged by those that are finished."""
    if np.isfinite(training.deadline):
        return f"{max(training.left(), 0.0):.0f} s left"
    expected = {name: MEMBERS[name].seconds(training) for name in (*finished, *names)}
    slower = max(sum(seconds) / sum(expected[name] for name in finished), 0.2) if finished else 1.0
    return f"about {slower * sum(expected[name] for name in names):.0f} s left"
