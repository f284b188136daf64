"""`MatrixExponentiatedGradient`: the learner of Herbster, Pasteris and Tse, tuned."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._lock import within_row
from lacunar._log import warn_user
from lacunar._typing import Floats
from lacunar.completion.pair_classifier import PairClassifier
from lacunar.completion.pair_model import UNKNOWN, Batch, IdTable, OneTrial, PairModel, Pairs, Trials, Vertices
from lacunar.completion.side import SideInformation, SideState
from lacunar.papers.completion.engine import Engine, y_bar_of

GAMMA = 1 / 3
START_SLOPE = 1.0  # per gamma of score
PRIOR = (1.0, 4.0)  # precisions of slope and offset: as if a few observations had been seen
HALF_LIFE = 1000.0  # observations after which one counts half: what a score is worth grows with the stream
CLIP = 1.0  # in units of gamma: a score beyond the margin is no more certain, on every stream we measured


class OnlineLogistic:
    """P(y = 1) = 1 / (1 + exp(-(slope u + offset))) with u = y_bar / gamma, cut to [-1, 1].

    One Newton step an observation on the discounted log loss (the extended Kalman filter of a logistic model): O(1), no
    step size. Its `values` are slope, offset and the three entries of the curvature, all that has to be stored.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma
        self.values = [START_SLOPE, 0.0, PRIOR[0], 0.0, PRIOR[1]]

    def probabilities(self, y_bar: Floats) -> Floats:
        """P(y = 1) for scores (n,)."""
        slope, offset = self.values[:2]
        odds = slope * np.clip(y_bar / self.gamma, -CLIP, CLIP) + offset
        p: Floats = 0.5 * (1.0 + np.tanh(0.5 * odds))
        return p

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


def set_curves(values: Sequence[Sequence[float]], curves: Sequence[OnlineLogistic]) -> None:
    """Sets curves to the values in a state; ValueError where they are no curves."""
    table = np.array(values, dtype=np.float64) if len(values) else np.empty((0, 5))
    if table.shape != (len(curves), 5) or not np.isfinite(table).all():
        raise ValueError("curves must be five finite numbers for every threshold; they are not")
    for curve, numbers in zip(curves, table.tolist(), strict=True):
        curve.values = numbers


class Tuning(NamedTuple):
    """The numbers that set a learner: margin, scale of the first weights, steps.

    log_scale: of the first weights. anytime: number times the step for the trials so far, or else the number itself.
    strict: update below the margin only, not at it.
    """

    gamma: float
    log_scale: float
    anytime: bool = True
    number: float = 1.0
    conservative: bool = False
    strict: bool = False

    def steps(self, n_seen: int, sizes: NDArray[np.int64]) -> Floats:
        """Steps (n,) of the trials after the first `n_seen`, `sizes` (n,) the N of each; at most 1 at any time."""
        if not self.anytime:
            return np.full(len(sizes), self.number)
        N, t = np.maximum(sizes, 3), n_seen + 1 + np.arange(len(sizes))
        steps: Floats = np.minimum(1.0, self.number * np.sqrt(N * np.log(N) / (2.0 * t)))
        return steps


def neutral_scale(rows: SideState, cols: SideState) -> float:
    """Logarithm of the scale of W_1 with which the first y_bar is 0: less that of the mean of |x|^2 = (K_ii + K_jj) / 2
    over cells.
    """
    means = [float(np.mean(side.diagonal())) if side.size else 1.0 for side in (rows, cols)]
    return -math.log((means[0] + means[1]) / 2)


class TunedEngine:
    """An engine on the ids of rows and columns, with its tuning."""

    def __init__(self, rows: IdTable, cols: IdTable, tuning: Tuning) -> None:
        self.rows, self.cols, self.tuning = rows, cols, tuning
        self.engine = Engine(rows.side, cols.side, tuning.log_scale)

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
        scores = np.zeros(len(i))
        known = (i != UNKNOWN) & (j != UNKNOWN)
        if known.any():
            scores[known] = self.engine.scores(np.ascontiguousarray(i[known]), np.ascontiguousarray(j[known]))
        return scores

    def steps(self, n_seen: int, i: Vertices, j: Vertices) -> Floats:
        """Step of each trial to come, (n,)."""
        return self.tuning.steps(n_seen, self.rows.counts(i) + self.cols.counts(j))

    def asks_update(self, y: float, score: float) -> bool:
        """Whether a trial with this score is to change anything."""
        margin = y * score
        bound = 0.0 if self.tuning.conservative else self.tuning.gamma
        return not (margin > bound or (self.tuning.strict and margin == bound))

    def run(self, *trials: Any, values: bool, first: int) -> None:
        """Trials in order, the first of them number `first` of a batch; see `Engine.run_into`."""
        tuning = self.tuning
        margin = 0.0 if tuning.conservative else tuning.gamma
        self.engine.run_into(*trials, margin=margin, strict=tuning.strict, values=values, first=first)


class GradientModel(PairModel):
    """An engine and a curve for every task (threshold), on one table of ids a side."""

    def __init__(self, options: Any, n_tasks: int) -> None:
        self._begin(options)
        tuning = options._tuning(self.rows.side, self.cols.side)
        self.calibrate = bool(options.calibrate)
        self.members = [TunedEngine(self.rows, self.cols, tuning) for _ in range(n_tasks)]
        self.curves = [OnlineLogistic(tuning.gamma) for _ in range(n_tasks)]
        self._last: tuple[Any, int, Floats] | None = None  # pair, trial and scores of the last question

    @property
    def gamma(self) -> float:
        """The margin."""
        return self.members[0].tuning.gamma

    # -- predictions --------------------------------------------------------------------------------------------------

    def scores(self, pairs: Pairs, policy: str) -> Floats:
        """y_bar of every task, (n, L)."""
        i, j = self._vertices(pairs, policy)
        return np.stack([member.scores(i, j) for member in self.members], axis=1)

    def score_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """y_bar of every task for one pair, (L,), kept for the `learn_one` that may follow."""
        scores = self._scores_at(*self._vertices_one(pair, policy))
        # Under "prior" the score of an unseen id is not that of the vertex it gets when it is learned.
        self._last = None if policy == "prior" else (pair, self.n_seen, scores)
        return scores

    def _scores_at(self, i: int, j: int) -> Floats:
        return np.array([member.score(i, j) for member in self.members])

    def signs_one(self, pair: tuple[Hashable, Hashable], policy: str) -> Floats:
        """Predicted signs (L,): without their values, which cost three to five times as much, where no `learn_one`
        wants them.
        """
        if self.calibrate:
            return super().signs_one(pair, policy)
        i, j = self._vertices_one(pair, policy)
        return np.array([member.sign(i, j) for member in self.members], dtype=float)

    def probabilities(self, scores: Floats) -> Floats:
        """P(y = 1) of scores (n, L): by the curves, or that of the randomised rule."""
        if not self.calibrate:
            p: Floats = np.clip((self.gamma + scores) / (2 * self.gamma), 0.0, 1.0)
            return p
        return np.stack([curve.probabilities(scores[:, k]) for k, curve in enumerate(self.curves)], axis=1)

    # -- learning -----------------------------------------------------------------------------------------------------

    def one(self, pair: tuple[Hashable, Hashable], y: Sequence[float]) -> OneGradientTrial:
        """One pair with labels y (L,)."""
        i, j = self._vertices_one(pair, "learn")
        fresh = self._last is not None and self._last[:2] == (pair, self.n_seen)
        scores = self._last[2] if self._last is not None and fresh else self._scores_at(i, j)
        return OneGradientTrial(self, i, j, y, scores)

    def batch(self, pairs: Pairs, y: Floats, *, values: bool) -> GradientBatch:
        """Pairs with labels y (n, L)."""
        batch = GradientBatch(self, self._vertices(pairs, "learn"), y, values=values)
        for member in self.members:
            member.engine.grow()
        return batch

    def n_learned(self, task: int) -> int:
        """Trials that the engine of a task has learned, among them all of a batch."""
        return self.members[task].engine.n_seen

    # -- state --------------------------------------------------------------------------------------------------------

    def _learned(self) -> dict[str, Any]:
        return {
            "engines": [member.engine.state() for member in self.members],
            "curves": [list(curve.values) for curve in self.curves],
        }

    def _take(self, state: Mapping[str, Any]) -> None:
        for member, engine in zip(self.members, state["engines"], strict=True):
            member.engine = Engine.from_state(engine, member.engine.rows, member.engine.cols)
        set_curves(state["curves"], self.curves)


class OneGradientTrial(OneTrial):
    """One pair on its way through the engines; its scores are known."""

    _model: GradientModel

    def __init__(self, model: GradientModel, i: int, j: int, y: Sequence[float], scores: Floats) -> None:
        super().__init__(model, i, j, y)
        self._scores, self._wrong = scores, bool((model.signs(scores[None], model.n_seen) != y).any())
        self._tasks = [k for k, member in enumerate(model.members) if member.asks_update(y[k], scores[k])]
        self._begun = [(model.n_learned(k), curve.values) for k, curve in enumerate(model.curves)]
        self._step = float(model.members[0].steps(model.n_seen, np.array([i]), np.array([j]))[0])

    def run(self) -> None:
        """The first engine that is to change learns; see `OneTrial`."""
        if self._tasks:
            self._learn(self._tasks[0])

    def keep(self) -> None:
        """See `OneTrial`."""
        model = self._model
        if self._tasks and model.n_learned(self._tasks[0]) == self._begun[self._tasks[0]][0]:
            return
        for k in self._tasks:
            if model.n_learned(k) == self._begun[k][0]:
                self._learn(k)
        if model.calibrate:
            for k, curve in enumerate(model.curves):
                curve.values = self._begun[k][1]
                curve.learn(float(self._scores[k]), self._y[k])
        self._count(bool(self._tasks), self._wrong)

    def _learn(self, task: int) -> None:
        engine = self._model.members[task].engine
        engine.grow()
        within_row(engine.learn, *self._pair, self._step * self._y[task])


class GradientBatch(Batch):
    """Pairs on their way through the engines."""

    _model: GradientModel

    def __init__(self, model: GradientModel, vertices: tuple[Vertices, Vertices], y: Floats, *, values: bool) -> None:
        super().__init__(model, vertices, y)
        self._values = values or model.calibrate  # else signs are enough, and cheaper
        self._changed = np.zeros(self._answers.shape, dtype=np.uint8)
        self._probabilities = np.empty(y.shape)
        self._steps = model.members[0].steps(model.n_seen, *vertices)
        self._curves = {0: [curve.values for curve in model.curves]}  # after the trials counted

    def trials(self) -> Trials:
        """What was predicted."""
        p = self._probabilities if self._model.calibrate else None
        return Trials(np.ascontiguousarray(self._scores(slice(None))), p, self._updated, self._wrong)

    def _scores(self, part: slice) -> Floats:
        """y_bar of trials (n, L), or its signs."""
        answers = self._answers[:, part].T
        return np.asarray(y_bar_of(answers)) if self._values else answers

    def _learn(self, task: int, start: int, stop: int) -> None:
        part, member = slice(start, stop), self._model.members[task]
        arrays = self._i[part], self._j[part], self._labels[task, part], self._steps[part]
        member.run(*arrays, self._answers[task, part], self._changed[task, part], values=self._values, first=start)

    def _note(self, start: int, stop: int) -> None:
        part, model = slice(start, stop), self._model
        scores = self._scores(part)
        self._updated[part] = self._changed[:, part].any(axis=0)
        self._wrong[part] = (model.signs(scores, self._first.seen + start) != self._y[part]).any(axis=1)
        if model.calibrate:
            for k, curve in enumerate(model.curves):
                curve.values = self._curves[start][k]
                self._probabilities[part, k] = curve.learn_block(scores[:, k], self._labels[k, part])
            self._curves = {start: self._curves[start], stop: [curve.values for curve in model.curves]}


class MatrixExponentiatedGradient(PairClassifier):
    """Online completion of a binary matrix with side information by matrix exponentiated gradient
    alone.

    Rows and columns are ids of any hashable kind; each observation is a pair with a label.
    `lacunar.completion.OnlineMatrixClassifier`, a pool of other experts, errs less on most streams.

    Parameters
    ----------
    rows, cols : side information, default=None
        `Identity`, `Kernel`, `KernelFunction`, `Features`, `Graph` or `Mix`; a list of several;
        None is `Identity()`, which knows nothing and takes any id.
    gamma : float in (0, 1], default=1/3
        Margin: pairs right by more than gamma are not learned.
    step : {"anytime", "fixed"} or float in (0, 1], default="anytime"
        "anytime": min(1, step_scale sqrt(N log N / (2 t))) at trial t with N ids. "fixed": the same
        with `horizon` for t.
    step_scale : float, default=1.0
        What multiplies the steps of "anytime" and "fixed".
    d : "neutral" or float >= 1, default="neutral"
        Quasi-dimension, the scale of the first weights. "neutral": the first y_bar is 0.
    conservative : bool, default=False
        Learn at mistakes only (y y_bar <= 0): for labels without noise.
    horizon : int or (int, int, int), default=None
        Trials planned, for step="fixed"; or trials and the most rows and columns that may come,
        where the side information does not know them at the beginning and `d` is a number or the
        step fixed.
    thresholds : "auto", float or ascending floats, default=None
        Labels are ratings: one question "rating >= threshold" each, as in `OnlineMatrixClassifier`.
    calibrate : bool, default=True
        Fit P(y = 1) as a logistic curve in y_bar, online. False: streams run up to three times
        faster.
    unseen : {"grow", "raise", "prior"}, default="grow"
        Cold start: what predictions about ids without observations or side information do. "grow":
        use what the side information says of them, an error where it says nothing; "raise":
        ValueError; "prior": y_bar = 0.
    verbose : int, default=0
        1 says about once a second how many pairs of a stream are learned.

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (L + 1,)
        Negative and positive label. Before a negative label is seen: -1 and 1.
    n_seen_, n_updates_, n_mistakes_ : int
        Numbers of pairs seen, of those that changed the learner, and of those predicted wrongly
        before they were learned.

    Raises
    ------
    ValueError
        In `fit`, `partial_fit` and `learn_one`: labels of more than two kinds without `thresholds`,
        ids that the side information does not know, `horizon` missing where the step needs it.

    See Also
    --------
    lacunar.completion.OnlineMatrixClassifier : The pool of experts, for use.
    PrintedMEG : The algorithm to the letter, with its bound.

    Notes
    -----
    A trial costs O(k N^2) for N ids seen and some ten steps k of Lanczos, less where the side
    information is sparse. Mistakes of the printed algorithm exceed those of a matrix U by at most
    4 sqrt(2 D log(N) T) / gamma in expectation (Theorem 1 of [1]_, by the paper's tuning), D
    smaller the better the side information fits U. The defaults, found by experiment, have no such
    proof.

    References
    ----------
    .. [1] M. Herbster, S. Pasteris, L. Tse, "Online Matrix Completion with Side Information",
       NeurIPS 2020, Algorithms 1 and 2.

    Examples
    --------
    >>> from lacunar.papers.completion import MatrixExponentiatedGradient
    >>> model = MatrixExponentiatedGradient().fit(
    ...     [("ann", "Alien"), ("bob", "Alien"), ("ann", "Heat")], [1, 0, 1]
    ... )
    >>> model.predict([("ann", "Ran"), ("bob", "Alien")])
    array([1, 0])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rows": [SideInformation, list, None],
        "cols": [SideInformation, list, None],
        "gamma": [Interval(Real, 0, 1, closed="right")],
        "step": [StrOptions({"anytime", "fixed"}), Interval(Real, 0, 1, closed="right")],
        "step_scale": [Interval(Real, 0, None, closed="neither")],
        "d": [StrOptions({"neutral"}), Interval(Real, 1, None, closed="left")],
        "conservative": ["boolean"],
        "horizon": [Interval(Integral, 1, None, closed="left"), tuple, None],
        "thresholds": [StrOptions({"auto"}), Real, "array-like", None],
        "calibrate": ["boolean"],
        "unseen": [StrOptions({"grow", "raise", "prior"})],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        rows: SideInformation | list[SideInformation] | None = None,
        cols: SideInformation | list[SideInformation] | None = None,
        *,
        gamma: float = GAMMA,
        step: str | float = "anytime",
        step_scale: float = 1.0,
        d: str | float = "neutral",
        conservative: bool = False,
        horizon: int | tuple[int, int, int] | None = None,
        thresholds: str | ArrayLike | None = None,
        calibrate: bool = True,
        unseen: str = "grow",
        verbose: int = 0,
    ) -> None:
        self.rows = rows
        self.cols = cols
        self.gamma = gamma
        self.step = step
        self.step_scale = step_scale
        self.d = d
        self.conservative = conservative
        self.horizon = horizon
        self.thresholds = thresholds
        self.calibrate = calibrate
        self.unseen = unseen
        self.verbose = verbose

    def _model(self, n_tasks: int) -> GradientModel:
        return GradientModel(self, n_tasks)

    def _tuning(self, rows: SideState, cols: SideState) -> Tuning:
        """The `Tuning` that the parameters stand for, over the side information of rows and columns."""
        n_trials, *ids = self._plan()
        size = sum(ids) if ids else rows.size + cols.size
        if size == 0 and (self.step == "fixed" or self.d != "neutral"):
            option = f"step={self.step!r}" if self.step == "fixed" else f"d={self.d!r}"
            raise ValueError(
                f"horizon must be (trials, rows, columns) for {option} where ids are not known at the beginning; got "
                f"{self.horizon!r}. Pass the most rows and columns that may come, or use step='anytime' or a number "
                "and d='neutral'."
            )
        log_scale = neutral_scale(rows, cols) if self.d == "neutral" else math.log(float(self.d) / size)
        anytime = self.step == "anytime"
        number = self._fixed_step(size, n_trials) if self.step == "fixed" else self.step_scale if anytime else self.step
        return Tuning(float(self.gamma), log_scale, anytime, float(number), bool(self.conservative))

    def _plan(self) -> tuple[Any, ...]:
        """(trials,) or (trials, rows, columns) of `horizon`; ValueError where it is neither."""
        plan = self.horizon if isinstance(self.horizon, tuple) else (self.horizon,)
        if self.step == "fixed" and self.horizon is None:
            raise ValueError(
                "horizon must be the number of trials planned for step='fixed'; got None. Pass it, or step='anytime'."
            )
        counts = all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in plan)
        if isinstance(self.horizon, tuple) and not (len(plan) == 3 and counts):
            raise ValueError(
                "horizon must be a number of trials or (trials, rows, columns), whole numbers of at least 1; got "
                f"{self.horizon!r}."
            )
        return plan

    def _fixed_step(self, size: int, n_trials: int) -> float:
        """The step for the trials planned, cut to 1, where the proof has long stopped to hold."""
        quasi_dimension = float(size) if self.d == "neutral" else float(self.d)
        step = self.step_scale * math.sqrt(quasi_dimension * math.log(max(size, 3)) / (2.0 * n_trials))
        if step > 1:
            warn_user(
                f"the step for horizon={n_trials} would be {step:.3g}; cut to 1. Theorem 1 says nothing for so few "
                "trials: use step='anytime'.",
            )
        return min(step, 1.0)
