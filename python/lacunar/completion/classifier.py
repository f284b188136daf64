"""`OnlineMatrixClassifier`: a binary matrix, predicted and learned entry by entry."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar._stream import StreamScore
from lacunar._turns import changes
from lacunar.completion.labels import (
    MOST_LEVELS,
    Coding,
    class_probabilities,
    comparator_mistakes,
    mean_log_loss,
    rating_levels,
    read_thresholds,
    read_y,
)
from lacunar.completion.model import Model, Pairs, Trials
from lacunar.completion.pool import PoolModel
from lacunar.completion.side import SideInformation
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.door import read_id, read_ids, read_labels, read_pairs, refuse_masked, require_y

Floats = NDArray[np.float64]
LEARNED = ("_engine", "state_", "classes_", "settled_", "seed_")
AUTO_SCALES = (0.5, 2.0)  # times step_scale; see docs/measured/completion.md
_BLOCK = 4096
_PLAIN = (bool, int, float, str)  # labels whose signs are kept


# Questions are alone at the model, too: one about a new id makes tables and engines grow.
class OnlineMatrixClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Online completion of a binary matrix with side information, by a pool of experts or by matrix exponentiated gradient.

    Rows and columns are ids of any hashable kind (users and films, voters and bills, vertices and vertices); each observation is a
    pair with a label. Every pair is predicted, then learned; pairs may come again and contradict what came before.

    Parameters
    ----------
    rows, cols : side information, default=None
        `Identity`, `Kernel`, `KernelFunction`, `Features`, `Graph` or `Mix`; a list of several; None is `Identity()`, which knows nothing and takes any id.
    gamma : float in (0, 1] or "theory", default=1/3
        Margin: pairs right by more than gamma are not learned. "theory": 1/sqrt(min(k, l)) of `blocks`.
    step : {"anytime", "fixed", "theory"} or float in (0, 1], any positive one as printed, default="anytime"
        "anytime": min(1, step_scale sqrt(N log N / (2 t))) at trial t with N ids. "fixed": the same with `horizon` for t.
        "theory": sqrt(D log N / (2 horizon)) of Theorem 1, or gamma when conservative.
    step_scale : float, default=1.0
    d : {"neutral", "theory"} or float >= 1, default="neutral"
        Quasi-dimension D, the scale of the first weights. "neutral": the first y_bar is 0. "theory": the bound of Theorem 3 for `blocks`.
    conservative : bool, default=False
        Learn at mistakes only (y y_bar <= 0): for labels without noise.
    horizon : int or (int, int, int), default=None
        Trials planned, needed by "fixed" and "theory" steps; or trials and, as Algorithm 2 wants them, the most rows m and columns n that
        may come: the N = m + n of `d` and of these steps, which otherwise are the ids that the side information knows at the beginning.
    blocks : int, (int, int) or (row_classes, col_classes), default=None
        Blocks k x l of the matrix, or the class of every row and column; needed by "theory" (d="theory": the classes).
    thresholds : "auto", float or ascending floats, default=None
        Labels are ratings: one question "rating >= threshold" each. Classes are then 0..L, the number of thresholds reached; with
        "auto" the ratings themselves, those of the first batch (or `classes`), each but the lowest a threshold.
    experts : {"pool", "auto"}, list of OnlineMatrixClassifier or None, default="pool"
        "pool": cheap experts (majorities, biases, low rank, features, neighbours), mixed and hedged in log loss; matrix exponentiated
        gradient takes part, with the options above, where both sides are one graph or a side is a kernel. None: that learner
        alone. "auto" and lists: a hedge of several of them; "auto": the side information and none at all, two step scales each.
    calibrate : bool, default=True
        Fit P(y = 1) as a logistic curve in y_bar, online. False: streams run up to three times faster. A pool needs no curve.
    unseen : {"grow", "raise", "prior"}, default="grow"
        Cold start: what predictions about ids without observations or side information do. "grow": use what the side
        information says of them, an error where it says nothing; "raise": ValueError; "prior": y_bar = 0, or the pool's prior.
    options : {"paper"}, default=None
        "paper" is Algorithm 1 (2 where ids come) as printed: `step` a number or "theory", uncapped; `d` a number or "theory"; sign(y_bar - Y)
        with Y uniform in (-gamma, gamma), which is right less often than sign(y_bar), or 0 when conservative. Exact ties: updates at y y_bar < gamma as printed, but at y y_bar <= 0 when conservative:
        the proof of (6) needs one at every mistake, and sign(0) counts as +1. docs/papers.md lists what else differs.
    verbose : int, default=0
        1 says about once a second how many pairs of a stream are learned.
    random_state : int, RandomState or None, default=None
        For the draws Y of options="paper".

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (L + 1,)
        Negative and positive label. Before a negative label is seen: -1 and 1.
    n_seen_, n_updates_, n_mistakes_ : int
    expert_weights_ : ndarray of shape (L, E)
    expert_names_ : list of E strings
        Of the pool.
    expert_path_ : (ndarray of shape (T,), ndarray of shape (T, L, E))
        Trials at which the pool wrote its weights down, and the weights.

    Notes
    -----
    The pool's log loss exceeds that of its best expert by at most log E + log(T + 1) over T trials, and that of the best sequence of
    experts by log((E - 1)(T + 1)) more for every switch: fixed share (Herbster and Warmuth, "Tracking the best expert", 1998)
    with share 1 / (t + 1), for a loss that is mixable with step 1. Its y_bar is 2 P(y = 1) - 1. Low-rank experts are refitted from all
    pairs seen at growing times, a little at every one of the pairs that follow, so that memory is
    that of the pairs and no pair of a long stream waits for a refit. For the learner of the paper alone (experts=None):
    mistakes exceed those of a matrix U by at most 4 sqrt(2 D log(N) T) / gamma in expectation (Theorem 1, paper's tuning), D smaller
    the better the side information fits U. The defaults, found by experiment, have no such proof. A prediction costs a few products
    with the two kernels and the observations. Source: Herbster, Pasteris and Tse, "Online Matrix Completion with Side Information",
    NeurIPS 2020, Algorithms 1 and 2.

    Examples
    --------
    >>> from lacunar.completion import OnlineMatrixClassifier
    >>> model = OnlineMatrixClassifier()
    >>> for film in ("Alien", "Heat", "Ran"):
    ...     for who, likes in (("ann", True), ("bob", False)):
    ...         updated = model.learn_one(who, film, likes)
    >>> model.predict_one("ann", "Solaris"), model.predict_one("bob", "Solaris")
    (True, False)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "rows": [SideInformation, list, None],
        "cols": [SideInformation, list, None],
        "gamma": [Interval(Real, 0, 1, closed="right"), StrOptions({"theory"})],
        "step": [StrOptions({"anytime", "fixed", "theory"}), Interval(Real, 0, None, closed="neither")],
        "step_scale": [Interval(Real, 0, None, closed="neither")],
        "d": [StrOptions({"neutral", "theory"}), Interval(Real, 1, None, closed="left")],
        "conservative": ["boolean"],
        "horizon": [Interval(Integral, 1, None, closed="left"), tuple, None],
        "blocks": [Interval(Integral, 1, None, closed="left"), tuple, None],
        "thresholds": [StrOptions({"auto"}), Real, "array-like", None],
        "experts": [StrOptions({"pool", "auto"}), list, None],
        "calibrate": ["boolean"],
        "unseen": [StrOptions({"grow", "raise", "prior"})],
        "options": [StrOptions({"paper"}), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        rows: SideInformation | list[SideInformation] | None = None,
        cols: SideInformation | list[SideInformation] | None = None,
        *,
        gamma: Any = 1 / 3,
        step: Any = "anytime",
        step_scale: float = 1.0,
        d: Any = "neutral",
        conservative: bool = False,
        horizon: int | tuple[int, int, int] | None = None,
        blocks: Any = None,
        thresholds: Any = None,
        experts: Any = "pool",
        calibrate: bool = True,
        unseen: str = "grow",
        options: str | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.rows = rows
        self.cols = cols
        self.gamma = gamma
        self.step = step
        self.step_scale = step_scale
        self.d = d
        self.conservative = conservative
        self.horizon = horizon
        self.blocks = blocks
        self.thresholds = thresholds
        self.experts = experts
        self.calibrate = calibrate
        self.unseen = unseen
        self.options = options
        self.verbose = verbose
        self.random_state = random_state

    # -- learning -----------------------------------------------------------------------------------------------------

    @changes
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Start afresh and learn pairs once, in their order.

        Parameters
        ----------
        X : (row, column) pairs
            Array or list of shape (n, 2), frame of two columns, or the tuple (rows, cols).
        y : array-like of shape (n,)
            bool, 0/1, -1/1, any two labels, or ratings with `thresholds`.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            What are no pairs of ids or no two labels, options out of range, ids that the side information does not know.
            After an error the classifier is as before.
        """
        pairs = read_pairs(X)
        if not pairs[0]:
            raise ValueError("X must hold at least one pair; got none (0 samples). Pass observations.")
        require_y(self, y, "Pass one label a pair.")
        for name in LEARNED:
            self.__dict__.pop(name, None)
        self._learn(*pairs, y, None, values=False)
        return self

    @changes
    def partial_fit(
        self, rows: Any, cols: Any, y: ArrayLike | None = None, classes: Sequence[Any] | None = None
    ) -> Self:
        """Learn pairs once, in their order, going on from what was learned.

        Parameters
        ----------
        rows, cols : sequences of n ids, or (row, column) pairs X and labels y
        y : array-like of shape (n,)
            Left out where X and y came first.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.

        Returns
        -------
        self
            The same as n calls of `learn_one`. After an error or an interrupt it has learned nothing of
            the call; new ids may stay known, which changes no prediction.
        """
        of_rows, of_cols, labels = _stream_of(rows, cols, y)
        self._learn(of_rows, of_cols, labels, classes, values=False)
        return self

    def fit_batches(self, batches: Iterable[Any], *, classes: Sequence[Any] | None = None) -> Self:
        """Fit in one pass over batches of pairs, in their order; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of (X, y)
            Pairs and their labels: what `read_pair_batches` yields, or any generator.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator. After an error as after the batch before, or as
            before the call if it was the first.
        """

        def learn(batch: Any) -> None:
            X, y = labelled(batch)
            self.partial_fit(*read_pairs(X), y, classes)

        one_pass(self, batches, learn)
        return self

    @changes
    def learn_one(self, row: Hashable, col: Hashable, y: Any) -> bool:
        """Learn the label of one pair; a new id gets a vertex.

        Parameters
        ----------
        row, col : hashable
        y : label

        Returns
        -------
        updated : bool
            Whether the learner changed: conservative learners change at mistakes only, others below the margin too.

        Raises
        ------
        ValueError, TypeError
            A label of no class, an id that the side information cannot take; the model is then as before.

        Notes
        -----
        Costs one prediction, or nothing but the update when `decision_one` of the same pair was the last call.
        """
        model = self._live()
        pair = (read_id(row, "row"), read_id(col, "col"))
        known = model.told.get(y) if isinstance(y, _PLAIN) else None
        if known is not None:
            return model.learn_one(pair, known, self.calibrate, self._signs)
        coding = self._coding()
        signs, coding = read_y([y], 1, coding, coding.thresholds)
        updated = model.learn_one(pair, signs[0].tolist(), self.calibrate, self._signs)
        self._adopt_coding(coding)
        if coding.settled and isinstance(y, _PLAIN) and len(model.told) < MOST_LEVELS:
            model.told[y] = signs[0].tolist()
        return updated

    @changes
    def add_row(self, row: Hashable, value: Any) -> Self:
        """Make an unseen row known by what the side information wants of it: features, or a point of the kernel's domain.

        Parameters
        ----------
        row : hashable
            A new id.
        value : object
            Features by name, or a point.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When the id is known, or the side information does not grow.
        """
        self._live().add("rows", read_id(row, "row"), value)
        return self

    @changes
    def add_col(self, col: Hashable, value: Any) -> Self:
        """Make an unseen column known, before any entry of it comes.

        Parameters
        ----------
        col : hashable
            A new id.
        value : object
            What the side information of columns wants of it.

        Returns
        -------
        self
        """
        self._live().add("cols", read_id(col, "col"), value)
        return self

    @changes
    def score_stream(
        self,
        rows: Any,
        cols: Any,
        y: ArrayLike | None = None,
        classes: Sequence[Any] | None = None,
        *,
        comparator: Any = None,
    ) -> StreamScore:
        """`partial_fit`, with what was predicted before each label was seen: progressive validation.

        Parameters
        ----------
        rows, cols : sequences of n ids, or (row, column) pairs X and labels y
        y : array-like of shape (n,)
            Left out where X and y came first.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.
        comparator : None, "majority" or array-like of n labels, default=None
            What the regret is measured against: the most frequent label in hindsight, or U at the pairs (Theorem 1).

        Returns
        -------
        score : StreamScore
            One row a pair: values are y_bar, loss is the mean of -log P(y), regret the mistakes less those of the comparator.
            With calibrate=False loss is None.
        """
        of_rows, of_cols, labels = _stream_of(rows, cols, y)
        ids, y = (of_rows, of_cols), labels
        if comparator is not None:
            self._check_comparator(ids, y, classes, comparator)
        trials, signs = self._learn(*ids, y, classes, values=True)
        wrong = trials.wrong.astype(np.int64)
        running = np.cumsum(wrong)
        mistakes, regret = int(wrong.sum()), None
        if comparator is not None:
            others = comparator_mistakes(comparator, read_labels(y, len(wrong)), self._coding())
            regret = np.cumsum(wrong - others).astype(float)
        loss = None if trials.probabilities is None else mean_log_loss(trials.probabilities, signs)
        last = None if regret is None else float(regret[-1]) if len(regret) else 0.0
        values, reached = (None if v is None else v[:, 0] if v.shape[1] == 1 else v for v in trials[:2])
        assert values is not None
        return StreamScore(len(wrong), mistakes, loss, last, values, running, regret, reached, trials.updated)

    def _check_comparator(self, pairs: Pairs, y: Any, classes: Any, comparator: Any) -> None:
        """Refused before anything is learned."""
        coding = self._at_work(y, classes)[1]
        _, coding = read_y(y, len(pairs[0]), coding, coding.thresholds, classes)
        comparator_mistakes(comparator, read_labels(y, len(pairs[0])), coding)

    def _learn(self, rows: list[Any], cols: list[Any], y: Any, classes: Any, *, values: bool) -> tuple[Trials, Floats]:
        """A stream through the model: its trials, and the labels as signs (n, L)."""
        if len(rows) != len(cols):
            raise ValueError(f"rows and cols must be of one length; got {len(rows)} and {len(cols)}.")
        model, coding = self._at_work(y, classes)
        known = coding if coding.settled or model.n_seen else None
        signs, coding = read_y(y, len(rows), known, coding.thresholds, classes)
        stream = (rows, cols), signs, self.calibrate, self._signs
        trials = self._adopted(
            model, coding, lambda: model.learn(*stream, values=values or self._draws, verbose=self.verbose)
        )
        return trials, signs

    def _at_work(self, y: Any, classes: Any) -> tuple[Model, Coding]:
        """The model and its coding, or new ones for labels y, which are not adopted."""
        if self.__sklearn_is_fitted__():
            return self._live(), self._coding()
        self._validate_params()
        return self._begin(rating_levels(y, classes) if self._automatic_ratings else None)

    # -- predictions --------------------------------------------------------------------------------------------------

    @changes
    def decision_function(self, X: Any) -> Floats:
        """y_bar of pairs.

        Parameters
        ----------
        X : n (row, column) pairs

        Returns
        -------
        y_bar : ndarray of shape (n,), or (n, L) with L > 1 thresholds
            Few pairs cost a prediction each; many share one eigendecomposition where the matrices allow it.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._live().scores(read_pairs(X), self.unseen)

    @changes
    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of pairs; with given thresholds, how many each pair reaches. Shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, 2)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self._scores(X)
        return self._coding().labels(self._signs(scores, self._live().n_seen))

    @changes
    def predict_proba(self, X: Any) -> Floats:
        """P(class) of pairs, shape (n, 2) or (n, L + 1), in the order of `classes_`.

        From the logistic curve fitted online; with calibrate=False from the randomised rule, (gamma + y_bar) / (2 gamma) cut to
        [0, 1], which is no calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n, 2)

        Returns
        -------
        probabilities : ndarray of shape (n, 2) or (n, L + 1)
        """
        scores = self._scores(X)
        return class_probabilities(self._reached(self._live(), scores))

    @changes
    def predict_expected(self, X: Any) -> Floats:
        """The mean of `classes_` under `predict_proba`: with thresholds="auto", the expected rating.

        Parameters
        ----------
        X : array-like of shape (n, 2)

        Returns
        -------
        expected : ndarray of shape (n,)

        Raises
        ------
        TypeError
            Where classes are no numbers.
        """
        made = self.predict_proba(X)
        if self.classes_.dtype.kind not in "iufb":
            raise TypeError(
                f"classes must be numbers to have a mean; got {self.classes_.tolist()!r}. Use predict_proba."
            )
        expected: Floats = made @ self.classes_.astype(np.float64)
        return expected

    @changes
    def score(self, X: Any, y: ArrayLike, sample_weight: Any = None) -> float:
        """Share of pairs predicted rightly; ratings count as the thresholds they reach.

        Parameters
        ----------
        X : array-like of shape (n, 2)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        score : float
        """
        coded = self._coding().coded(read_labels(y, len(read_pairs(X)[0])))
        return float(np.average(self.predict(X) == coded, weights=refuse_masked(sample_weight, "sample_weight")))

    @changes
    def decision_one(self, row: Hashable, col: Hashable) -> Any:
        """y_bar of one pair, before or after any learning.

        Parameters
        ----------
        row, col : hashable
            Ids; unseen ones by the policy `unseen`.

        Returns
        -------
        y_bar : float, or ndarray of shape (L,) with L > 1 thresholds
            From -1 upwards; above 0 means the positive label.

        Raises
        ------
        ValueError
            An id without a vertex, where `unseen` or the side information gives it none.
        """
        scores = self._decide_one(row, col)
        return float(scores[0]) if len(scores) == 1 else scores

    def _decide_one(self, row: Hashable, col: Hashable) -> Floats:
        """y_bar of every task, (L,); the experts' scores are kept for the `learn_one` that may follow."""
        model = self._live()
        pair = (read_id(row, "row"), read_id(col, "col"))
        scores = model.score_one(pair, self.unseen)
        # Under "prior" the score of an unseen id is not that of the vertex it gets when it is learned.
        model.asked = None if self.unseen == "prior" else (pair, model.n_seen, scores)
        return np.array([model.combine(scores[k : k + 1], k)[0] for k in range(len(scores))])

    @changes
    def predict_one(self, row: Hashable, col: Hashable) -> Any:
        """The label predicted for one pair: the sign of `decision_one`.

        As printed the draw belongs to the trial: asking again gives the same answer until something is learned. With
        calibrate=False and no experts the value is not computed, only on which side of 0 it lies: a third to a fifth of the work.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.

        Returns
        -------
        label : object
            One of `classes_`, or how many thresholds are reached.
        """
        if not (self._draws or self.calibrate):  # else a `learn_one` that follows wants the value
            signs = self._live().sign_one((read_id(row, "row"), read_id(col, "col")), self.unseen)
            if signs is not None:
                return self._coding().labels(signs[None])[0].item()
        scores = self._decide_one(row, col)[None]
        return self._coding().labels(self._signs(scores, self._live().n_seen))[0].item()

    @changes
    def predict_proba_one(self, row: Hashable, col: Hashable) -> dict[Any, float]:
        """P(label) of one pair by label, as `predict_proba`.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.

        Returns
        -------
        probabilities : dict of label to float
        """
        scores = self._decide_one(row, col)[None]
        made = class_probabilities(self._reached(self._live(), scores))[0]
        return dict(zip(self.classes_.tolist(), made.tolist(), strict=True))

    @changes
    def recommend(
        self, row: Hashable, n: int = 10, *, cols: Sequence[Hashable] | None = None, exclude: Sequence[Hashable] = ()
    ) -> list[tuple[Any, float]]:
        """The columns a row most probably says yes to.

        Parameters
        ----------
        row : hashable
        n : int, default=10
            At most so many.
        cols : sequence of ids, default=None
            Candidates; None: every column known.
        exclude : sequence of ids, default=()
            Left out, such as what the row has judged already.

        Returns
        -------
        best : list of (column id, y_bar)
            Highest first, equal ones in the order of `cols`; with thresholds, the mean y_bar.

        Raises
        ------
        ValueError
            n below 1, or an unknown id under unseen="raise".

        Warns
        -----
        UserWarning
            Once, where the side information does not know an id: the pool then says what it says of unknown ones.
        """
        if not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(f"n must be a positive integer; got {n!r}.")
        model = self._live()
        left = set(read_ids(exclude, "exclude"))
        known = list(model.tables[1].number) if cols is None else read_ids(cols, "cols")
        candidates = [each for each in known if each not in left]
        if not candidates:
            return []
        pairs = [read_id(row, "row")] * len(candidates), candidates
        scores, order = self._ranked(model, pairs)
        return [(candidates[k], float(scores[k])) for k in order[:n]]

    def _ranked(self, model: Model, pairs: Pairs) -> tuple[Floats, NDArray[np.intp]]:
        """Scores and their order; by the pool's prior, with one warning, where the side information gives an id no vertex."""
        try:
            return model.ranking(pairs, self.unseen)
        except ValueError as error:
            if self.unseen != "grow" or not self._pooled:
                raise
            warnings.warn(
                f"ids without side information are ranked by the pool's prior: {error}", UserWarning, stacklevel=4
            )
            return model.ranking(pairs, "prior")

    # -- from scores to predictions ----------------------------------------------------------------------------------

    def _signs(self, scores: Floats, first: int) -> Floats:
        """Predicted signs of scores (n, L) answered as trials first, first + 1, ...; a score of 0 is positive."""
        bar = np.zeros((len(scores), 1))
        if self._draws:
            bar = self._live().gammas[0] * trial_draws(self.seed_, first, len(scores))[:, None]
        return np.where(scores >= bar, 1.0, -1.0)

    def _reached(self, model: Model, scores: Floats) -> Floats:
        """P(y = 1) of every task, (n, L): calibrated, or the share of the randomised rule."""
        if not (self.calibrate or self._pooled):
            gamma = model.gammas[0]
            made: Floats = np.clip((gamma + scores) / (2 * gamma), 0.0, 1.0)
            return made
        return model.probabilities(scores)

    @property
    def _draws(self) -> bool:
        """Whether predictions are against a random threshold: as printed, unless updates are conservative."""
        return self.options == "paper" and not self.conservative

    # -- counts -----------------------------------------------------------------------------------------------------

    @property
    @changes
    def n_seen_(self) -> int:
        """Pairs learned so far."""
        return self._live().n_seen if self.__sklearn_is_fitted__() else 0

    @property
    @changes
    def n_updates_(self) -> int:
        """Pairs that changed the learner."""
        return self._live().n_updates if self.__sklearn_is_fitted__() else 0

    @property
    @changes
    def n_mistakes_(self) -> int:
        """Pairs predicted wrongly before they were learned."""
        return self._live().n_mistakes if self.__sklearn_is_fitted__() else 0

    @property
    @changes
    def expert_weights_(self) -> NDArray[np.float64]:
        """Weights of the experts, shape (L, E)."""
        return self._live().weights

    @property
    @changes
    def expert_names_(self) -> list[str]:
        """Names of the pool's experts, E of them, in the order of their weights."""
        return self._pool().names

    @property
    @changes
    def expert_path_(self) -> tuple[NDArray[np.int64], Floats]:
        """The pool's weights in the course of the stream: trials (T,), and weights (T, L, E) at each of them."""
        return self._pool().path()

    def _pool(self) -> PoolModel:
        model = self._live()
        if not isinstance(model, PoolModel):
            raise AttributeError(f"only the pool has it; experts is {self.experts!r}. Use experts='pool'.")
        return model

    # -- beginning, going on, files -----------------------------------------------------------------------------------

    def _begin(self, levels: NDArray[Any] | None = None) -> tuple[Model, Coding]:
        """A model that has learned nothing, all options checked; the estimator is not touched. levels: of ratings, for "auto"."""
        self._validate_params()
        if self._automatic_ratings and levels is None:
            raise ValueError(
                "the ratings must be known for thresholds='auto' before anything is asked; got none. Learn a batch first."
            )
        thresholds = self._thresholds(levels)
        n_tasks = 1 if thresholds is None else len(thresholds)
        classes = np.array([-1, 1]) if thresholds is None else np.arange(n_tasks + 1)
        coding = Coding(classes if levels is None else levels, thresholds is not None, thresholds)
        model = PoolModel(self, n_tasks) if self._pooled else Model(self._experts(), n_tasks)
        return model, coding

    @property
    def _automatic_ratings(self) -> bool:
        return isinstance(self.thresholds, str)

    def _thresholds(self, levels: NDArray[Any] | None) -> Floats | None:
        """As given, or all ratings but the lowest."""
        if not self._automatic_ratings:
            return read_thresholds(self.thresholds)
        assert levels is not None
        return np.asarray(levels[1:], dtype=np.float64)

    @property
    def _pooled(self) -> bool:
        """Whether the experts are the pool; as printed there is one learner."""
        return isinstance(self.experts, str) and self.experts == "pool" and self.options != "paper"

    def _experts(self) -> list[Any]:
        """The classifiers whose options the learners have; the first decides the scale of scores."""
        if self.experts is None or self.experts == "pool":
            made = [self]
        elif isinstance(self.experts, str):
            made = self._automatic()
        else:
            made = list(self.experts)
            if not made:
                raise ValueError("experts must hold at least one classifier; got none. Use None, or 'auto'.")
            for k, each in enumerate(made):
                if not isinstance(each, type(self)) or not (each.experts is None or each._pooled):
                    raise TypeError(
                        f"experts must be {type(self).__name__} without experts of their own; got {each!r} at position {k}."
                    )
        if self.options == "paper" and not (self.experts is None or self.experts == "pool"):
            raise ValueError(f"experts must be None as printed; got {self.experts!r}. Leave out options='paper'.")
        return made

    def _automatic(self) -> list[Any]:
        """The side information as given, and none, at a few step scales."""
        made = []
        for given in (True, False) if (self.rows, self.cols) != (None, None) else (True,):
            for scale in AUTO_SCALES:
                sides = (
                    (self.rows, self.cols) if given else (None, None)
                )  # not copies: experts share the tables of ids of one object
                options = dict(self.get_params(deep=False), experts=None, step_scale=scale * self.step_scale)
                options["rows"], options["cols"] = sides
                made.append(type(self)(**options))
        return made

    def _adopt(self, model: Model, coding: Coding, *, seed: int | None = None) -> None:
        self._engine = model
        self.seed_ = int(generator(self.random_state).integers(2**31)) if seed is None else seed
        self._adopt_coding(coding)

    @all_or_nothing
    def _adopted(self, model: Model, coding: Coding, learn: Callable[[], Trials]) -> Trials:
        """What `learn` returns, model and coding adopted before; where it fails they are not."""
        if not self.__sklearn_is_fitted__():
            self._adopt(model, coding)
        self._adopt_coding(coding)
        return learn()

    def _adopt_coding(self, coding: Coding) -> None:
        self.classes_, self.settled_ = coding.classes, coding.settled

    def _coding(self) -> Coding:
        return Coding(self.classes_, self.settled_, self._thresholds(self.classes_))

    def _live(self) -> Model:
        """The model at work; begun if nothing was learned yet, or from `state_` after loading."""
        if "_engine" not in self.__dict__:
            if "state_" in self.__dict__:
                self._engine = self._restored({"classes": self.classes_, **self.state_})
                del self.state_
            else:
                self._adopt(*self._begin())
        return self._engine

    def __sklearn_is_fitted__(self) -> bool:
        # In this order: a thread that resumes sets the one before it drops the other.
        return "state_" in self.__dict__ or "_engine" in self.__dict__

    @changes
    def snapshot(self) -> dict[str, Any]:
        """All that was learned, as plain data: numbers, arrays, strings, lists and dicts.

        Returns
        -------
        snapshot : dict
            For `restore` of a classifier with the same parameters. `lacunar.persistence.save_model` stores parameters and
            snapshot together; this is for side information that no file holds, such as a kernel that is a function.
        """
        learned = self._live().snapshot(ids=True)
        return {**learned, "classes": self.classes_, "settled": self.settled_, "seed": self.seed_}

    @changes
    @all_or_nothing
    def restore(self, snapshot: Mapping[str, Any]) -> Self:
        """Go on from what `snapshot` gave, to the bit as if there had been no break.

        Parameters
        ----------
        snapshot : dict

        Returns
        -------
        self

        Raises
        ------
        ValueError
            When it is of other side information, another number of thresholds or experts, or no snapshot. The
            classifier is then as before.
        """
        model = self._restored(snapshot)
        thresholds = self._thresholds(np.asarray(snapshot["classes"]))
        coding = Coding(np.asarray(snapshot["classes"]), bool(snapshot["settled"]), thresholds)
        sound = isinstance(snapshot["seed"], int) and isinstance(snapshot["settled"], bool | np.bool_)
        if thresholds is not None and not self._automatic_ratings:
            sound &= np.array_equal(coding.classes, np.arange(len(thresholds) + 1))
        if not sound or coding.classes.shape != (coding.n_tasks + 1,):
            raise ValueError(
                f"the snapshot must hold {coding.n_tasks + 1} classes and a seed; it does not. Take it again."
            )
        self.__dict__.pop("state_", None)
        self._adopt(model, coding, seed=snapshot["seed"])
        return self

    def _restored(self, snapshot: Mapping[str, Any]) -> Model:
        """A model that goes on from a snapshot; the estimator is not touched."""
        levels = np.asarray(snapshot.get("classes", ())) if self._automatic_ratings else None
        if levels is not None:
            levels = rating_levels(levels, None)
        model, _ = self._begin(levels)
        try:
            model.restore(snapshot)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ValueError(
                f"the snapshot must be of a classifier with these parameters and this side information; {error}. Restore it with "
                "those it was taken with, or fit again."
            ) from None
        return model

    @changes
    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        model = state.pop("_engine", None)
        if model is not None:
            state["state_"] = model.snapshot(ids=True)
        return state

    def _check_loaded(self) -> None:
        """A model file is refused here, not in use."""
        if "state_" in self.__dict__:
            kept = {"classes": self.classes_, "settled": self.settled_, "seed": self.seed_}
            self.restore(kept | self.state_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # pairs of ids, not features
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.classifier_tags.multi_class = np.size(self.thresholds) > 1 if self.thresholds is not None else False
        return tags


def _stream_of(rows: Any, cols: Any, y: Any) -> tuple[list[Any], list[Any], Any]:
    """Ids of rows and columns and labels, of (rows, cols, y) or of (X, y)."""
    if y is None:
        return (*read_pairs(rows), cols)
    return read_ids(rows, "rows"), read_ids(cols, "cols"), y


def trial_draws(seed: int, first: int, n: int) -> NDArray[np.float64]:
    """Uniform numbers in [-1, 1) of trials first, ..., first + n - 1: the same however the stream is cut."""
    blocks = range(first // _BLOCK, (first + max(n, 1) - 1) // _BLOCK + 1)
    drawn = np.concatenate([_block(seed, block) for block in blocks])
    start = first - blocks[0] * _BLOCK
    return drawn[start : start + n]


@lru_cache(maxsize=8)
def _block(seed: int, block: int) -> NDArray[np.float64]:
    made = generator((seed + block) % (2**32 - 1)).uniform(-1.0, 1.0, _BLOCK)
    made.flags.writeable = False
    return made
