"""The order of the fits when time is short: cheapest first, one repeat for all before a second, and cuts for a learner's own cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from time import perf_counter
from types import MappingProxyType
from typing import NamedTuple

_GROWTH = 2.0  # of the slice of the first fold, so that costs are told apart up to this factor
_OWN_SHARE = 0.9  # of its share of the time that a learner with a time limit of its own is given, for it may overrun
_LEAST_OWN = 0.1  # seconds
_HURRIED = 0.5  # of what its fits took, that such a learner can still be told to take
_MARGIN, _SPARE = 1.1, 0.02  # fits differ: what is reserved for a fit, in shares of its mean, and for all, of the limit


class Job(NamedTuple):
    """A fit that may be run next."""

    learner: int
    split: int


class Limits(NamedTuple):
    """Seconds after which a fit is ended, and those that a learner with a `time_limit` of its own is told; None is no limit."""

    seconds: float | None
    own: float | None


NO_LIMITS = Limits(None, None)


class Schedule:
    """Which fits are run, in which order, and which learners are left out because of what they cost themselves.

    What a fit costs is not known before the first fold. Every learner gets the same slice of time for it; who needs more waits until all
    others are through, and is begun again with twice the slice. So a cheap learner never waits for a dear one, and costs the less of
    the time the cheaper it is. The other folds of the first repeat are reserved for the cheapest learner, then for the next, and who
    does not fit into what is left is cut. More repeats, split by split, are for all that are left, or for none.

    Parameters
    ----------
    order : sequence of int
        Numbers of the learners, those first that are thought to be cheap.
    folds, n_splits : int
        Splits of the first repeat, and of all.
    limit, fit_limit : float or None
        Seconds for all and for one fit.
    own : mapping of int to float
        Learners whose fits can be told how long they may take, and the most that is useful. Their turn is last.
    processes : int
        Fits side by side.
    started : float
        When the clock began, by `perf_counter`.
    cuts : mapping of int to str, default={}
        Learners that are left out from the beginning, and why.

    Attributes
    ----------
    cuts : dict of int to str
        All learners left out, and why.
    enough : dict of int to int
        The `limit` in seconds that would keep, or may keep, those of them for which one can be told.
    own_limits : dict of int to float
        What learners with a time limit of their own were told, at least.
    stopped : bool
        Whether time ended before all repeats were done.
    """

    def __init__(
        self,
        order: Sequence[int],
        folds: int,
        n_splits: int,
        *,
        limit: float | None,
        fit_limit: float | None,
        own: Mapping[int, float],
        processes: int,
        started: float,
        cuts: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self.folds, self.n_splits = min(folds, n_splits), n_splits
        self.limit, self.fit_limit = limit, fit_limit
        self.own = own if limit is not None else {}
        self.processes, self.started = processes, started
        self.cuts = dict(cuts)
        self.enough: dict[int, int] = {}
        self.own_limits: dict[int, float] = {}
        self.stopped = False
        self._order = sorted((k for k in order if k not in self.cuts), key=lambda k: k in self.own)
        self._failed: set[int] = set()
        self._seconds: dict[int, list[float]] = {}  # of the fits that were finished, by learner
        self._tried: dict[int, float] = {}  # the longest time after which a first fit was ended, by learner
        self._slice = math.inf

    # -- the clock ------------------------------------------------------------------------------------------------------

    def elapsed(self) -> float:
        """Seconds since the clock began."""
        return perf_counter() - self.started

    def seconds_left(self) -> float:
        """Until the time limit; infinite without one."""
        return math.inf if self.limit is None else self.limit - self.elapsed()

    def cost(self, k: int) -> float:
        """Mean seconds of a fit of learner k with its predictions; 0 before the first."""
        seconds = self._seconds.get(k, [])
        return sum(seconds) / len(seconds) if seconds else 0.0

    def by_cost(self) -> list[int]:
        """Learners that go on, cheapest first."""
        return sorted((k for k in self._order if k in self._seconds and self._goes_on(k)), key=self.cost)

    def _goes_on(self, k: int) -> bool:
        return k not in self.cuts and k not in self._failed

    def span(self, learners: Sequence[int], *, hurried: bool = False) -> float:
        """Seconds of one split of these learners: processes share the sum, and none is shorter than the longest fit."""
        costs = [self.cost(k) * (_HURRIED if hurried and k in self.own else 1.0) for k in learners]
        return max(sum(costs) / self.processes, max(costs, default=0.0))

    # -- the order ------------------------------------------------------------------------------------------------------

    def batches(self) -> Iterator[list[Job]]:
        """Fits that may be run side by side, one after another; `record` must be called for all of them before the next batch."""
        yield from self._first_split()
        for split in range(1, self.n_splits):
            if not self._has_room_for(split):
                return
            yield [Job(k, split) for k in self.by_cost()]

    def _first_split(self) -> Iterator[list[Job]]:
        waiting = [k for k in self._order if k not in self.own]
        self._slice = self.seconds_left() * self.processes / max(len(self._order) * self.folds, 1)
        while waiting:
            yield [Job(k, 0) for k in waiting]
            waiting = [k for k in waiting if self._goes_on(k) and k not in self._seconds]
            share = self._free() / (self.folds * (2 if self.own else 1))  # half is for those whose turn is last
            if share <= self._slice:
                self._cut_untold(waiting)
                break
            self._slice = share if len(waiting) == 1 else min(_GROWTH * self._slice, share)
        self._slice = math.inf
        last = [k for k in self._order if k in self.own]
        if last:
            yield [Job(k, 0) for k in last]
            self._cut_untold([k for k in last if self._goes_on(k) and k not in self._seconds])

    def _free(self) -> float:
        """Seconds that are left when all learners whose cost is known have the first repeat."""
        return self.seconds_left() - self._reserved(self.by_cost(), self.folds - 1)

    def _reserved(self, learners: Sequence[int], splits: int) -> float:
        """Seconds that nobody else may use."""
        return _MARGIN * splits * self.span(learners) + _SPARE * (self.limit or 0.0) if splits > 0 else 0.0

    def _cut_untold(self, waiting: Sequence[int]) -> None:
        """Learners whose first fit did not come to its end, and whose folds cannot."""
        free = max(self._free(), 0.0)
        for k in waiting:
            if not self._tried.get(k):
                self.cuts[k] = "not begun before the time limit was over; --time-limit allows more"
                continue
            self.enough[k] = math.ceil(
                self.elapsed() + self.seconds_left() - free + _GROWTH * self.folds * self._tried[k]
            )
            self.cuts[k] = (
                f"a fit takes more than {_time(self._tried[k])}: its {self.folds} folds do not fit into the {_time(free)} left after the "
                f"cheaper learners; --time-limit {self.enough[k]} may keep it"
            )

    def _has_room_for(self, split: int) -> bool:
        """Whether a split is begun; in the first repeat the dearest learner leaves until all its folds fit into the time."""
        learners = self.by_cost()
        splits, hurried = self.folds - split, split < self.folds
        while len(learners) > 1 and splits * self.span(learners, hurried=hurried) > self.seconds_left():
            self._cut_dearest(learners, splits)
            learners = self.by_cost()
        self.stopped = self.stopped or self.span(learners, hurried=hurried) > self.seconds_left()
        return bool(learners) and not self.stopped

    def _cut_dearest(self, learners: Sequence[int], splits: int) -> None:
        *cheaper, k = learners
        seconds = max(self.seconds_left() - splits * self.span(cheaper), 0.0)
        self.enough[k] = math.ceil(1.1 * (self.elapsed() + splits * self.span(learners)))
        self.cuts[k] = (
            f"{_time(self.cost(k))} a fit: the other {splits} of {self.folds} folds need {_time(splits * self.cost(k))}, and "
            f"{_time(seconds)} are left after the cheaper learners; --time-limit {self.enough[k]} keeps it"
        )

    # -- one fit --------------------------------------------------------------------------------------------------------

    def limits(self, job: Job) -> Limits:
        """How long a fit that begins now may take: never so long that a cheaper learner loses folds of the first repeat."""
        k, split = job
        if self.limit is None:
            return Limits(self.fit_limit, None)
        seconds = min(self._slice, self.seconds_left()) if split == 0 else self._beside_cheaper(k, split)
        seconds = seconds if self.fit_limit is None else min(seconds, self.fit_limit)
        if k not in self.own:
            return Limits(seconds, None)
        share = (self._free() if split == 0 else seconds) / max(self.folds - split, 1) / len(self.own)
        own = max(min(self.own_limits.get(k, self.own[k]), _OWN_SHARE * min(share, seconds)), _LEAST_OWN)
        self.own_limits[k] = own
        return Limits(seconds, own)

    def _beside_cheaper(self, k: int, split: int) -> float:
        learners = self.by_cost()
        cheaper = learners[: learners.index(k)] if k in learners else learners
        return self.seconds_left() - (self._reserved(cheaper, self.folds - split - 1) if cheaper else 0.0)

    def record(self, job: Job, seconds: float, *, late: bool = False, failed: bool = False) -> None:
        """What became of a fit: how long it took, whether it was ended, whether it raised."""
        k, split = job
        if failed:
            self._failed.add(k)
        elif not late:
            self._seconds.setdefault(k, []).append(seconds)
        elif self.fit_limit is not None and seconds >= self.fit_limit:
            self.cuts[k] = f"ended after {_time(seconds)} of one fit; --fit-limit allows more"
        elif split == 0:
            self._tried[k] = max(seconds, self._tried.get(k, 0.0))
        elif split < self.folds:
            self.enough[k] = math.ceil(1.5 * (self.limit or 0.0))
            self.cuts[k] = (
                f"fold {split + 1} of {self.folds} was ended after {_time(seconds)}, {_time(self.cost(k))} a fit before: no more was left "
                f"after the cheaper learners; --time-limit {self.enough[k]} allows more"
            )
        else:
            self.stopped = True

    def forecast(self, job: Job) -> float | None:
        """Seconds until the comparison ends: at most the limit, and from the second split on by what fits took."""
        if job.split == 0:
            return None if self.limit is None else self.seconds_left()
        learners = self.by_cost()
        pending = learners[learners.index(job.learner) :] if job.learner in learners else []
        after = self.n_splits - job.split - 1
        return min(self.seconds_left(), self.span(pending) + after * self.span(learners))


def _time(seconds: float) -> str:
    """Seconds with two digits that count."""
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
