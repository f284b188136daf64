"""Members trained one after another, and pooled on their out-of-fold values."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar._log import say
from lacunar.learner.members import EVERY_MEMBER, Lesson
from lacunar.learner.pool import LinearPool, LogPool, log_softmax
from lacunar.learner.views import View
from lacunar.lowrank.posterior import LowRankPosterior
from lacunar.observed.rules import COUNT, Instance, Items, Optional, Rule, Word, floats

_Floats = NDArray[np.float64]

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
    }

    def fit(self, lesson: Lesson, names: Sequence[str], verbose: int = 0) -> _Floats:
        """Train and pool; the pool's own out-of-fold values (n, k) come back: log probabilities, or standardised targets."""
        self.n_classes_ = lesson.n_classes
        self.prior_ = _prior(lesson)
        self.names_: list[str] = []
        self.members_: list[Any] = []
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
        for k, name in enumerate(names):
            if not _usable(name, lesson):
                continue
            if made and _expected_seconds(name, lesson) > lesson.left():
                say(verbose, "%s: left out, no time is left", name)
                continue
            started, member = perf_counter(), EVERY_MEMBER[name]()
            left = _left(lesson, names[k:], seconds, self.names_)
            say(verbose, "%s: member %d of %d begins, %s", name, k + 1, len(names), left)
            try:
                values = member.fit(lesson)
                if not np.isfinite(values).all():
                    raise FloatingPointError("its out-of-fold values are not finite")
            except Exception as error:
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
        self.seconds_ = np.array(seconds)
        self.scores_ = np.array([_score(values, lesson) for values in made])
        return made

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


def _expected_seconds(name: str, lesson: Lesson) -> float:
    """What a member takes at least, roughly; trees shorten themselves to what is left."""
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
