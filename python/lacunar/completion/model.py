"""What a classifier keeps at work: engines for every threshold and expert, their hedge and their calibration."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._snapshot import going_back
from lacunar.completion.engine import Engine
from lacunar.completion.ids import UNKNOWN, IdTable, Vertices
from lacunar.completion.side import Floats, SideState, joined
from lacunar.completion.tuning import Tuning, tune
from lacunar.observed.rules import whole

START_SLOPE = 1.0  # per gamma of score
PRIOR = (1.0, 4.0)  # precisions of slope and offset: as if a few observations had been seen
HALF_LIFE = 1000.0  # observations after which one counts half: what a score is worth grows with the stream
CLIP = 1.0  # in units of gamma: a score beyond the margin is no more certain, on every stream we measured
Pairs = tuple[list[Hashable], list[Hashable]]
Places = dict[int, NDArray[np.int64]]  # by the identity of the table
Predicted = Callable[[Floats, int], Floats]  # signs (n, L) of scores (n, L), the first of which is of a given trial
_COUNTS = ("n_seen", "n_updates", "n_mistakes")
_RESERVE = 2**20  # bytes kept free for going back, beside eight times what a snapshot holds


class Hedge:
    """Exponential weights over E experts, the step set by the variance met so far (a second-order bound).

    An expert with score y_bar and margin gamma predicts +1 with probability (1 + u) / 2, u = y_bar / gamma cut to [-1, 1]: the
    randomised rule of Algorithm 1. Its loss is the probability of a mistake, (1 - y u) / 2; the mixture's u is the weighted mean.
    The mixture's expected mistakes exceed those of the best expert by O(sqrt(V log E) + log E), V the sum of the variances of the
    losses under the weights (Cesa-Bianchi, Mansour and Stoltz, "Improved second-order bounds for prediction with expert
    advice", 2007): nothing to tune. `losses` (E,) and `variance` are all that has to be stored.
    """

    def __init__(self, n_experts: int) -> None:
        self.losses = np.zeros(n_experts)
        self.variance = 0.0

    @property
    def weights(self) -> Floats:
        """Shares of the experts, (E,), summing to 1."""
        if len(self.losses) == 1:
            return np.ones(1)
        step = math.log(len(self.losses))
        step = 1.0 if self.variance <= step else math.sqrt(step / self.variance)
        made: Floats = np.exp(step * (self.losses.min() - self.losses))
        made /= made.sum()
        return made

    def learn(self, u: Floats, y: float) -> float:
        """The mixture of margins u (E,) in [-1, 1] before the label y = +-1 is taken into account. O(E)."""
        weights = self.weights
        mixture = float(weights @ u)
        losses = 0.5 * (1.0 - y * u)
        self.variance += float(weights @ (losses - 0.5 * (1.0 - y * mixture)) ** 2)
        self.losses = self.losses + losses
        return mixture

    def learn_block(self, u: Floats, y: Floats) -> Floats:
        """`learn` one after the other on margins (n, E): the mixtures (n,)."""
        return np.array([self.learn(each, label) for each, label in zip(u, y.tolist(), strict=True)])


def margins(scores: Floats, gammas: Floats) -> Floats:
    """u = y_bar / gamma cut to [-1, 1], experts along the last axis."""
    made: Floats = np.clip(scores / gammas, -1.0, 1.0)
    return made


class OnlineLogistic:
    """P(y = 1) = 1 / (1 + exp(-(slope u + offset))) with u = y_bar / gamma, cut to [-1, 1].

    One Newton step an observation on the discounted log loss (the extended Kalman filter of a logistic model): O(1), no step
    size. Its `values` are slope, offset and the three entries of the curvature, all that has to be stored.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.values = [START_SLOPE, 0.0, PRIOR[0], 0.0, PRIOR[1]]

    def probabilities(self, y_bar: Floats) -> Floats:
        """P(y = 1) for scores (n,)."""
        slope, offset = self.values[:2]
        odds = slope * np.clip(y_bar / self.gamma, -CLIP, CLIP) + offset
        made: Floats = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return made

    def learn(self, y_bar: float, y: float) -> float:
        """The probability before the step, after which (y_bar, y = +-1) is learned."""
        a, b, haa, hab, hbb = self.values
        u = min(max(y_bar / self.gamma, -CLIP), CLIP)
        p = _sigmoid(a * u + b)
        keep, w = 0.5 ** (1.0 / HALF_LIFE), max(p * (1.0 - p), 1e-3)
        # The prior is not discounted: the curvature cannot fade away while only one label comes.
        haa = PRIOR[0] + keep * (haa - PRIOR[0]) + w * u * u
        hab = keep * hab + w * u
        hbb = PRIOR[1] + keep * (hbb - PRIOR[1]) + w
        error = (1.0 if y > 0 else 0.0) - p
        det = haa * hbb - hab * hab
        a += error * (hbb * u - hab) / det
        b += error * (haa - hab * u) / det
        self.values = [max(a, 0.0), b, haa, hab, hbb]
        return p

    def learn_block(self, y_bar: Floats, y: Floats) -> Floats:
        """`learn` one after the other: probabilities (n,) before each step."""
        pairs = zip(y_bar.tolist(), y.tolist(), strict=True)
        return np.array([self.learn(score, label) for score, label in pairs])


def _sigmoid(x: float) -> float:
    if x < 0:
        e = math.exp(max(x, -700.0))
        return e / (1.0 + e)
    return 1.0 / (1.0 + math.exp(-min(x, 700.0)))


class Member:
    """An engine on two tables of ids, which it may share with other members."""

    def __init__(
        self, rows: IdTable, cols: IdTable, tuning: Tuning, sides: tuple[SideState, SideState] | None = None
    ) -> None:
        self.rows, self.cols, self.tuning = rows, cols, tuning
        self.engine = Engine(*(sides or (rows.side, cols.side)), tuning.log_scale)

    def score(self, i: int, j: int) -> float:
        """y_bar of one pair; 0 for a pair without a vertex."""
        if UNKNOWN in (i, j):
            return 0.0
        self.engine.grow()
        return float(self.engine.score(i, j))

    def sign(self, i: int, j: int) -> int:
        """Sign of `score`, 0 counting as +1."""
        if UNKNOWN in (i, j):
            return 1
        self.engine.grow()
        return self.engine.decide(i, j, 1.0, 0.0)[0]

    def scores(self, i: Vertices, j: Vertices) -> Floats:
        """y_bar of pairs (n,)."""
        self.engine.grow()
        made = np.zeros(len(i))
        known = (i != UNKNOWN) & (j != UNKNOWN)
        if known.any():
            made[known] = self.engine.scores(np.ascontiguousarray(i[known]), np.ascontiguousarray(j[known]))
        return made

    def steps(self, n_seen: int, i: Vertices, j: Vertices) -> Floats:
        """Step of each trial to come, (n,)."""
        return self.tuning.steps(n_seen, self.rows.counts(i) + self.cols.counts(j))

    def update(self, i: int, j: int, y: float, score: float, n_seen: int) -> bool:
        """One trial whose score is known already; whether it changed anything."""
        margin = y * score
        bound = 0.0 if self.tuning.conservative else self.tuning.gamma
        if margin > bound or (self.tuning.strict and margin == bound):
            return False
        step = self.steps(n_seen, np.array([i]), np.array([j]))[0]
        self.engine.grow()
        self.engine.learn(i, j, float(step * y))
        return True

    def run(
        self, i: Vertices, j: Vertices, y: Floats, n_seen: int, *, values: bool, ahead: bool = True, verbose: int = 0
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """A whole stream in order: scores (or signs) before each update, and whether there was one."""
        steps = self.steps(n_seen, i, j)
        self.engine.grow()
        tuning = self.tuning
        rule = {"conservative": tuning.conservative, "strict": tuning.strict}
        out, updated = self.engine.run(
            i, j, y, steps, tuning.gamma, **rule, values=values, ahead=ahead, verbose=verbose
        )
        return out, updated


class Trials(NamedTuple):
    """A stream before each update: scores and P(y = 1) of every task (n, L); updates and wrong predictions (n,)."""

    scores: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]
    wrong: NDArray[np.bool_]


class Model:
    """Tasks (thresholds) times experts, sharing ids and side information.

    Members do not depend on each other: hedge and calibration look at their scores only, so that a whole stream may run through
    one member after the other. Not even questions may come from two threads at once: new ids make tables and engines grow.
    """

    def __init__(self, experts: Sequence[Any], n_tasks: int) -> None:
        tables: dict[tuple[int, str], IdTable] = {}
        for each in experts:
            for name, described in (("rows", each.rows), ("cols", each.cols)):
                if (id(described), name) not in tables:
                    tables[id(described), name] = IdTable(joined(described), name)
        sides = [(tables[id(each.rows), "rows"], tables[id(each.cols), "cols"]) for each in experts]
        tunings = [tune(each, rows.side, cols.side) for each, (rows, cols) in zip(experts, sides, strict=True)]
        self._begin(list(tables.values()), n_tasks)
        self.members = [
            [Member(*tables, tuning) for tables, tuning in zip(sides, tunings, strict=True)] for _ in range(n_tasks)
        ]
        self.gammas = np.array([each.gamma for each in tunings])
        self.hedges = [Hedge(len(experts)) for _ in range(n_tasks)]
        self.curves = [OnlineLogistic(float(self.gammas[0])) for _ in range(n_tasks)]

    def _begin(self, tables: list[IdTable], n_tasks: int) -> None:
        """What every model has, whatever its experts."""
        self.tables, self.n_tasks = tables, n_tasks
        self.n_seen = self.n_updates = self.n_mistakes = 0
        self.asked: tuple[Any, int, Floats] | None = None  # pair, trial and experts' scores of the last question
        self.told: dict[Hashable, Sequence[float]] = {}  # signs (L,) of labels met one by one

    @property
    def weights(self) -> Floats:
        """Shares of the experts, (L, E)."""
        return np.array([hedge.weights for hedge in self.hedges])

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L), by the curves."""
        return np.stack([curve.probabilities(scores[:, k]) for k, curve in enumerate(self.curves)], axis=1)

    # -- ids --------------------------------------------------------------------------------------------------------

    def _vertices(self, pairs: Pairs, policy: str) -> Places:
        """Places by table: "learn", or what `unseen` says of predictions."""
        return {id(table): table.places(pairs[table.name == "cols"], policy) for table in self.tables}

    def _vertices_one(self, pair: tuple[Hashable, Hashable], policy: str) -> dict[int, int]:
        """`_vertices` of one pair."""
        return {id(table): table.place(pair[table.name == "cols"], policy) for table in self.tables}

    # -- scores -------------------------------------------------------------------------------------------------------

    def combine(self, scores: Floats, task: int) -> Floats:
        """y_bar of the mixture from the experts' (n, E); that of the only member as it is."""
        if scores.shape[1] == 1:
            return scores[:, 0]
        mixed: Floats = self.gammas[0] * (margins(scores, self.gammas) @ self.hedges[task].weights)
        return mixed

    def expert_scores(self, pairs: Pairs, policy: str) -> list[Floats]:
        """y_bar of every expert, (n, E), for every task."""
        at = self._vertices(pairs, policy)
        return [np.stack([m.scores(at[id(m.rows)], at[id(m.cols)]) for m in task], axis=1) for task in self.members]

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        return np.stack([self.combine(each, k) for k, each in enumerate(self.expert_scores(pairs, policy))], axis=1)

    def ranking(self, pairs: Pairs, policy: str) -> tuple[Floats, NDArray[np.intp]]:
        """Mean y_bar of the tasks, (n,), and its order, highest first; ties of a mixture at its margin by the scores behind it."""
        every = self.expert_scores(pairs, policy)
        score = np.mean([self.combine(each, k) for k, each in enumerate(every)], axis=0)
        behind = score
        if every[0].shape[1] > 1:
            behind = np.mean([each @ self.hedges[k].weights for k, each in enumerate(every)], axis=0)
        return score, np.lexsort((-behind, -score))

    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """Experts' scores of every task for one pair, (L, E)."""
        return self._scores_at(self._vertices_one(pair, policy))

    def sign_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats | None:
        """Signs of y_bar (L,) without their values, which cost three to five times as much; None for a mixture."""
        if len(self.gammas) > 1:
            return None
        at = self._vertices_one(pair, policy)
        return np.array([m.sign(at[id(m.rows)], at[id(m.cols)]) for (m,) in self.members], dtype=float)

    def _scores_at(self, at: dict[int, int]) -> Floats:
        return np.array([[m.score(at[id(m.rows)], at[id(m.cols)]) for m in task] for task in self.members])

    # -- learning -------------------------------------------------------------------------------------------------------

    def learn_one(
        self, pair: tuple[Hashable, Hashable], y: Sequence[float], calibrate: bool, predicted: Predicted
    ) -> bool:
        """One pair with labels y (L,): whether anything changed. Once it has its vertices and scores, nothing in here can fail."""
        at = self._vertices_one(pair, "learn")
        asked = self.asked is not None and self.asked[:2] == (pair, self.n_seen)
        scores = self.asked[2] if self.asked is not None and asked else self._scores_at(at)
        mixed = np.array([[self.combine(scores[k : k + 1], k)[0] for k in range(len(scores))]])
        wrong = bool((predicted(mixed, self.n_seen) != y).any())
        updated = False
        for k, task in enumerate(self.members):
            for e, member in enumerate(task):
                i, j = at[id(member.rows)], at[id(member.cols)]
                updated |= member.update(i, j, y[k], float(scores[k, e]), self.n_seen)
            self._follow(k, scores[k : k + 1], np.array(y[k : k + 1]), calibrate)
        self._count_one(at, updated, wrong)
        return updated

    def add(self, name: str, each: Hashable, value: Any) -> None:
        """A new id with its features or point, in every table of this side that wants one."""
        tables = [table for table in self.tables if table.name == name]
        if any(each in table.number for table in tables):
            raise ValueError(f"id must be new; {each!r} is known among the {name}. Use another id.")
        wanting = [table for table in tables if not table.alike]
        if not wanting:
            raise ValueError(f"the {name} take ids without more being said; got {each!r}. Just learn it.")
        for table in wanting:
            table.add(each, value)

    def learn(
        self, pairs: Pairs, y: Floats, calibrate: bool, predicted: Predicted, *, values: bool, verbose: int = 0
    ) -> Trials:
        """A stream with labels y (n, L), in order. After an exception no trial was learned; new ids are known, as if asked about."""
        at = self._vertices(pairs, "learn")
        values = values or calibrate or len(self.gammas) > 1  # else signs are enough, and cheaper
        with going_back(WithReserve(self)):
            scores, updated = self._run_members(at, y, values, verbose)
            return self._commit(at, scores, y, updated, calibrate, predicted)

    def _run_members(self, at: Places, y: Floats, values: bool, verbose: int) -> tuple[list[Floats], NDArray[np.bool_]]:
        """Scores (n, E) of every task, and where any member updated."""
        updated = np.zeros(len(y), dtype=bool)
        scores = []
        for k, task in enumerate(self.members):
            labels = np.ascontiguousarray(y[:, k])
            runs = [
                m.run(at[id(m.rows)], at[id(m.cols)], labels, self.n_seen, values=values, verbose=verbose) for m in task
            ]
            scores.append(np.stack([out for out, _ in runs], axis=1))
            for _, changed in runs:
                updated |= changed
        return scores, updated

    def _commit(
        self,
        at: Places,
        scores: list[Floats],
        y: Floats,
        updated: NDArray[np.bool_],
        calibrate: bool,
        predicted: Predicted,
    ) -> Trials:
        """Weights, curves and counts after the members have learned."""
        combined, probabilities = np.empty(y.shape), np.empty(y.shape) if calibrate else None
        for k, each in enumerate(scores):
            combined[:, k], p = self._follow(k, each, y[:, k], calibrate)
            if probabilities is not None and p is not None:
                probabilities[:, k] = p
        wrong = (predicted(combined, self.n_seen) != y).any(axis=1)
        self._count(at, len(y), int(updated.sum()), int(wrong.sum()))
        return Trials(combined, probabilities, updated, wrong)

    def _follow(self, k: int, scores: Floats, y: Floats, calibrate: bool) -> tuple[Floats, Floats | None]:
        """Hedge and calibration of one task over scores (n, E): the mixture and its probabilities before each label."""
        if scores.shape[1] == 1:
            mixed = scores[:, 0]
        else:
            mixed = self.gammas[0] * self.hedges[k].learn_block(margins(scores, self.gammas), y)
        return mixed, self.curves[k].learn_block(mixed, y) if calibrate else None

    def _count_one(self, at: dict[int, int], updated: bool, wrong: bool) -> None:
        for table in self.tables:
            table.fresh.discard(at[id(table)])
        self.n_seen += 1
        self.n_updates += updated
        self.n_mistakes += wrong

    def _count(self, at: Places, n: int, n_updates: int, n_mistakes: int) -> None:
        for table in self.tables:
            table.learned(at[id(table)].tolist())
        self.n_seen += n
        self.n_updates += n_updates
        self.n_mistakes += n_mistakes

    # -- snapshots ----------------------------------------------------------------------------------------------------

    def snapshot(self, *, ids: bool = False) -> dict[str, Any]:
        """What learning changes, as plain data: about the work of one trial. With `ids`, all that was learned."""
        return {
            **({"tables": [table.snapshot() for table in self.tables]} if ids else {}),
            "fresh": [np.array(sorted(table.fresh), np.int64) for table in self.tables],
            "engines": [[member.engine.snapshot() for member in task] for task in self.members],
            "curves": [list(curve.values) for curve in self.curves],
            **self._mixture(ids),
            **{name: getattr(self, name) for name in _COUNTS},
        }

    def _mixture(self, ids: bool) -> dict[str, Any]:
        """Of a snapshot, what weighs the experts."""
        return {"hedges": [{"losses": hedge.losses.copy(), "variance": hedge.variance} for hedge in self.hedges]}

    def restore(self, snapshot: Mapping[str, Any]) -> None:
        """Go back to a snapshot; one with ids is for a model that was just made. ValueError where it is not of these options."""
        self._check_sizes(snapshot)
        if "tables" in snapshot:
            self._restore_ids(snapshot)
        for table, fresh in zip(self.tables, snapshot["fresh"], strict=True):
            whole("fresh", distinct=True, high=table.side.size - 1).check(fresh, "fresh vertices", {})
            table.fresh = set(fresh.tolist())
        for task, engines in zip(self.members, snapshot["engines"], strict=True):
            for member, engine in zip(task, engines, strict=True):
                member.engine.restore(engine)
        for curve, values in zip(self.curves, snapshot["curves"], strict=True):
            curve.values = [float(v) for v in values]
        self._restore_mixture(snapshot)
        self.n_seen, self.n_updates, self.n_mistakes = (int(snapshot[name]) for name in _COUNTS)

    def _restore_ids(self, snapshot: Mapping[str, Any]) -> None:
        for table, kept in zip(self.tables, snapshot["tables"], strict=True):
            table.restore(kept)

    def _restore_mixture(self, snapshot: Mapping[str, Any]) -> None:
        for hedge, kept in zip(self.hedges, snapshot["hedges"], strict=True):
            losses, variance = np.array(kept["losses"], dtype=np.float64), float(kept["variance"])
            if losses.shape != self.gammas.shape or not np.isfinite([*losses, variance]).all():
                raise ValueError(f"weights must be finite, of {len(self.gammas)} experts; they are not")
            hedge.losses, hedge.variance = losses, variance

    def _check_sizes(self, snapshot: Mapping[str, Any]) -> None:
        experts = [len(task) for task in self.members]
        if [len(task) for task in snapshot["engines"]] != experts:
            raise ValueError(f"it is not of {len(experts)} thresholds and {experts[0]} experts")
        curves = np.array(snapshot["curves"], dtype=np.float64)
        if curves.shape != (len(experts), 5) or not np.isfinite(curves).all():
            raise ValueError("curves must be five finite numbers for every threshold; they are not")
        if min(int(snapshot[name]) for name in _COUNTS) < 0:
            raise ValueError("counts must not be negative; they are")


class WithReserve:
    """A model to go back to, and memory that is free for it: restoring builds engines anew, also where nothing else is left to allocate."""

    def __init__(self, model: Model) -> None:
        self._model, self._reserve = model, np.empty(0, np.uint8)

    def snapshot(self) -> dict[str, Any]:
        kept = self._model.snapshot()
        self._reserve = np.empty(_RESERVE + 8 * _n_bytes(kept), np.uint8)
        return kept

    def restore(self, kept: dict[str, Any]) -> None:
        self._reserve = np.empty(0, np.uint8)
        self._model.restore(kept)


def _n_bytes(kept: Any) -> int:
    """What the arrays of a snapshot hold."""
    if isinstance(kept, dict):
        return sum(map(_n_bytes, kept.values()))
    if isinstance(kept, list):
        return sum(map(_n_bytes, kept))
    return kept.nbytes if isinstance(kept, np.ndarray) else 0
