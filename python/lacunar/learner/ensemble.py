"""Members trained one after another, and pooled on their out-of-fold values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar._log import say
from lacunar.karma.race import TICK, USABLE
from lacunar.learner.members import EVERY_MEMBER, Lesson
from lacunar.learner.pool import LinearPool, LogPool, log_softmax
from lacunar.learner.views import View
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import COUNT, Instance, Items, Optional, Rule, Word, floats

_Floats = NDArray[np.float64]

# Of a time limit: shares of the members, in the order in which they begin; what one leaves goes to those after it.
_SHARES = {
    "logistic": 1.0,
    "linear": 1.0,
    "gaussian": 1.0,
    "table": 2.0,
    "forest": 2.0,
    "kernels": 5.0,
    "boosting": 6.0,
}
_PILOTS = (500, 2000)  # rows on which the seconds of a fit are measured
_PILOTS_SHARE = 0.03  # of the time left, which a pilot may take if there is to be another
_FEWEST_LEARNED = 300  # rows that a member learns from
_AGAIN = 1.3  # seconds left, in units of what a shortened member took, with which it is trained again
_FEWEST_ROWS = 4  # below which there is nothing to fold


class Ensemble(BaseEstimator):  # type: ignore[misc]
    """The members that were finished, their pool, and what each of them cost."""

    _held: ClassVar[dict[str, Rule]] = {
        "n_classes_": COUNT,
        "names_": Items(Word(tuple(EVERY_MEMBER)), length="finished"),
        "prior_": floats("k"),
        "scores_": floats("finished"),
        "seconds_": floats("finished", low=0),
        "members_": Items(Instance(BaseEstimator), length="finished"),
        "pool_": Optional(Instance(BaseEstimator)),
        "shortened_": Instance(dict),
    }

    def fit(self, lesson: Lesson, names: Sequence[str], verbose: int = 0) -> _Floats:
        """Train and pool; the pool's own out-of-fold values (n, k) come back: log probabilities, or standardised targets."""
        self.n_classes_ = lesson.n_classes
        self.prior_ = _prior(lesson)
        self.names_: list[str] = []
        self.members_: list[Any] = []
        self.shortened_: dict[str, str] = {}  # what the time limit cost, by member
        self.seconds_, self.scores_ = np.zeros(0), np.zeros(0)
        values: list[_Floats] = []
        if lesson.n >= _FEWEST_ROWS and lesson.n_classes != 1 and lesson.view.T.shape[1]:
            values = self._train(lesson, names, verbose)
        self.pool_ = self._pooled(values, lesson)
        return self._combine(values, lesson.n)

    def _train(self, lesson: Lesson, names: Sequence[str], verbose: int) -> list[_Floats]:
        """Out-of-fold values of the members that could be trained, in the time there is."""
        made: list[_Floats] = []
        seconds: list[float] = []
        if lesson.hurried:
            names = sorted((name for name in names if _usable(name, lesson)), key=_part)
        for k, name in enumerate(names):
            if not _usable(name, lesson):
                continue
            until = _until(names[k:], lesson)
            if made and until - perf_counter() < _least_seconds(lesson):
                self.shortened_[name] = "left out"
                say(verbose, "%s: left out, no time is left", name)
                continue
            started = perf_counter()
            left = _left(lesson, names[k:], seconds, self.names_)
            say(verbose, "%s: member %d of %d begins, %s", name, k + 1, len(names), left)
            try:
                member, values = _trained(name, replace(lesson, deadline=until, shortened=self.shortened_))
            except Exception as error:
                self.shortened_.pop(name, None)
                warnings.warn(
                    f"member {name!r} could not be fitted and is left out: {type(error).__name__}: {error}",
                    UserWarning,
                    stacklevel=5,
                )
                continue
            seconds.append(perf_counter() - started)
            made.append(values)
            self.names_.append(name)
            self.members_.append(member)
            say(verbose, "%s: %.1f s, score %.4g out of fold", name, seconds[-1], _score(values, lesson))
            if name in self.shortened_:
                say(verbose, "%s: shortened, %s", name, self.shortened_[name])
        if lesson.hurried:
            self._train_again(lesson, made, seconds, verbose)
        self.seconds_ = np.array(seconds)
        self.scores_ = np.array([_score(values, lesson) for values in made])
        return made

    def _train_again(self, lesson: Lesson, values: list[_Floats], seconds: list[float], verbose: int) -> None:
        """Train members that were shortened once more, with the time that others have left."""
        for k in reversed(range(len(self.names_))):
            name = self.names_[k]
            if name not in self.shortened_ or lesson.left() < _AGAIN * seconds[k]:
                continue
            say(verbose, "%s: once more, %.1f s are left", name, lesson.left())
            started, shortened = perf_counter(), dict[str, str]()
            try:
                member, out = _trained(name, replace(lesson, shortened=shortened))
            except Exception as error:
                say(verbose, "%s: stays as it was, %s", name, error)
                continue
            seconds[k] += perf_counter() - started
            if _score(out, lesson) >= _score(values[k], lesson):
                self.members_[k], values[k] = member, out
                self.shortened_.pop(name)
                self.shortened_.update(shortened)

    def _pooled(self, values: list[_Floats], lesson: Lesson) -> LogPool | LinearPool | None:
        if not values:
            return None
        if lesson.codes is not None:
            return LogPool().fit(values, lesson.codes, lesson.weight)
        return LinearPool().fit(values, lesson.Y, lesson.weight)

    def _combine(self, values: list[_Floats], m: int) -> _Floats:
        return np.tile(self.prior_, (m, 1)) if self.pool_ is None else self.pool_.combine(values)

    def predict(self, view: View, posterior: LowRankPosterior | None, n_jobs: int | None = None) -> _Floats:
        """Log probabilities (m, c), or standardised targets (m, q)."""
        return self._combine([each.predict(view, posterior, n_jobs) for each in self.members_], len(view.Z))

    def _check_loaded(self) -> None:
        """Members answer for the same classes as the ensemble, which are as many as its prior has."""
        of_members = {each.n_classes_ for each in self.members_}
        if of_members - {self.n_classes_} or self.n_classes_ not in (0, len(self.prior_)):
            raise ValueError(
                f"an ensemble of {self.n_classes_} classes has a prior of {len(self.prior_)}, and members of {sorted(of_members)}"
            )

    def weights(self) -> _Floats:
        """Of the members, (members,), or (q, members) for several targets."""
        if self.pool_ is None:
            return np.zeros(0)
        made = self.pool_.weights_
        return made[0] if isinstance(self.pool_, LinearPool) and len(made) == 1 else made


def _prior(lesson: Lesson) -> _Floats:
    """What is predicted without any member: log shares of the classes, or the mean of standardised targets."""
    if lesson.codes is None:
        return np.average(lesson.Y, axis=0, weights=lesson.weight)
    shares = np.bincount(lesson.codes, weights=lesson.weight, minlength=lesson.n_classes)
    return log_softmax(np.log(np.maximum(shares, 1e-12)))


def _usable(name: str, lesson: Lesson) -> bool:
    if name == "table":
        return lesson.rest is not None
    return name != "gaussian" or lesson.posterior is not None


def _trained(name: str, lesson: Lesson) -> tuple[Any, _Floats]:
    """A member and its values out of fold; where time is short it learns from a share of the rows and predicts the others."""
    member = EVERY_MEMBER[name]()
    thinned, rows = lesson.thinned(_share(member, lesson) if lesson.hurried else 1.0)
    if thinned is lesson:
        values = member.fit(lesson)
    elif getattr(member, "folds_test_all", False):
        values = member.fit(replace(lesson, learned=rows))
    else:
        values = np.empty((lesson.n, lesson.n_classes or lesson.Y.shape[1]))
        values[rows] = member.fit(thinned)
        others = np.setdiff1d(np.arange(lesson.n), rows, assume_unique=True)
        view = lesson.view.take(others)
        values[others] = member.predict(view, lesson.posterior, lesson.n_jobs)
    if thinned is not lesson:
        part = f"{len(rows) / lesson.n:.0%} of the rows"
        lesson.shortened[name] = f"{lesson.shortened[name]} on {part}" if name in lesson.shortened else part
    if not np.isfinite(values).all():
        raise FloatingPointError("its out-of-fold values are not finite")
    return member, values


def _share(member: Any, lesson: Lesson) -> float:
    """Share of the rows with which a member's least fit keeps the deadline, by its pilots on few rows; members without pilots shorten themselves."""
    if not hasattr(member, "pilot") or lesson.n <= _PILOTS[0]:
        return 1.0
    sizes, seconds = [0.0], [0.0]
    for size in _PILOTS:
        thinned, rows = lesson.thinned(size / lesson.n)
        started = perf_counter()
        fits = member.pilot(thinned, lesson)
        sizes.append(len(rows))
        seconds.append(max(perf_counter() - started, TICK))
        if size >= lesson.n or seconds[-1] > _PILOTS_SHARE * lesson.left():
            break
    a_row = max(seconds[-1] - seconds[-2], 0.05 * seconds[-1]) / max(sizes[-1] - sizes[-2], 1)
    without_rows = max(seconds[-1] - a_row * sizes[-1], 0.0)
    fewest = max(without_rows / a_row, _FEWEST_LEARNED)  # fewer rows than that hardly save time
    enough = (USABLE * lesson.left() / fits - without_rows) / a_row
    return float(np.clip(enough, min(fewest, lesson.n), lesson.n) / lesson.n)


def _least_seconds(lesson: Lesson) -> float:
    """With less, a member does not begin: whatever the rows that it learns from, it reads the table."""
    return 0.02 + 2e-8 * lesson.view.T.size


def _part(name: str) -> float:
    return _SHARES.get(name, 1.0)


def _until(names: Sequence[str], lesson: Lesson) -> float:
    """Until when the first of the names may take, of the time that is left for all of them."""
    if not lesson.hurried:
        return lesson.deadline
    shares = [_part(name) for name in names]
    return perf_counter() + lesson.left() * shares[0] / sum(shares)


def _expected_seconds(name: str, lesson: Lesson) -> float:
    """What a member takes, roughly."""
    n, p = (float(size) for size in lesson.view.Z.shape)
    if name == "kernels":
        return 0.2 + 1e-3 * min(n, 3000) + 3e-4 * n
    if name == "gaussian":
        return 0.05 + 2e-6 * n * min(p, 200)
    if name in ("logistic", "linear"):
        return 0.05 + 1e-6 * n * p
    if name == "table":
        return 1.0
    return (0.3 + 3e-5 * n * p) * (max(lesson.n_classes, 3) / 3 if name == "boosting" else 0.5)


def _score(values: _Floats, lesson: Lesson) -> float:
    """Of out-of-fold values: the share of rows that are right, or R2 averaged over targets."""
    if lesson.codes is not None:
        return float(np.average(values.argmax(axis=1) == lesson.codes, weights=lesson.weight))
    errors = np.average((values - lesson.Y) ** 2, axis=0, weights=lesson.weight)
    return float(np.mean(1.0 - errors))  # targets have variance 1


def _left(lesson: Lesson, names: Sequence[str], seconds: Sequence[float], finished: Sequence[str]) -> str:
    """Time that is left by the limit, or that the remaining members may take, judged by those that are finished."""
    if np.isfinite(lesson.deadline):
        return f"{max(lesson.left(), 0.0):.0f} s left"
    known = sum(_expected_seconds(name, lesson) for name in finished)
    slower = max(sum(seconds) / known, 0.2) if finished else 1.0
    return (
        f"about {slower * sum(_expected_seconds(name, lesson) for name in names if _usable(name, lesson)):.0f} s left"
    )
