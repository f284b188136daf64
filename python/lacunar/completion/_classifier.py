"""`OnlineMatrixClassifier`: a matrix of yes and no, completed while its entries come."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lacunar._snapshot import all_or_nothing
from lacunar.completion._batches import PairBatches
from lacunar.completion._labels import read_y
from lacunar.completion._model import Pairs, Trials
from lacunar.completion._side import SideInformation
from lacunar.completion._stream import StreamScore, class_probabilities, comparator_mistakes, mean_log_loss
from lacunar.completion._verbs import OneByOne
from lacunar.observed.door import read_ids, read_labels, read_pairs

Floats = NDArray[np.float64]
LEARNED = ("_engine", "state_", "classes_", "settled_", "seed_")


class OnlineMatrixClassifier(PairBatches, OneByOne, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Online completion of a binary matrix with side information, by matrix exponentiated gradient.

    Rows and columns are ids of any hashable kind (users and films, voters and bills, vertices and vertices); each observation is a
    pair with a label. Every pair is predicted, then learned; pairs may come again and contradict what came before.

    Parameters
    ----------
    rows, cols : side information, default=None
        `Identity`, `Kernel`, `KernelFunction`, `Features`, `Graph` or `Mix`; None is `Identity()`, which knows nothing and takes any id.
    gamma : float in (0, 1] or "theory", default=1/3
        Margin: pairs right by more than gamma are not learned. "theory": 1/sqrt(min(k, l)) of `blocks`.
    step : {"anytime", "fixed", "theory"} or float in (0, 1], any positive one as printed, default="anytime"
        "anytime": min(1, step_scale sqrt(N log N / (2 t))) at trial t with N ids. "fixed": the same with `horizon` for t.
        "theory": sqrt(D log N / (2 horizon)) of Theorem 1, or gamma when conservative.
    step_scale : float, default=1.0
    d : {"neutral", "theory"} or float >= 1, default="neutral"
        Quasi-dimension D, the scale of the first weights. "neutral": the first prediction is `prior`. "theory": the bound of Theorem 3 for `blocks`.
    prior : float in (-1, inf), default=0.0
        y_bar before anything is learned, for d="neutral"; the answer for unknown ids under unseen="prior".
    conservative : bool, default=False
        Learn at mistakes only (y y_bar <= 0): for labels without noise.
    horizon : int, default=None
        Trials planned; needed by "fixed" and "theory" steps.
    blocks : int, (int, int) or (row_classes, col_classes), default=None
        Blocks k x l of the matrix, or the class of every row and column; needed by "theory" (d="theory": the classes).
    randomized : bool, default=False
        Predict sign(y_bar - Y), Y uniform in (-gamma, gamma), as Theorem 1 has it. sign(y_bar) is right more often.
    thresholds : float or ascending floats, default=None
        Labels are ratings: one question "rating >= threshold" each. Classes are then 0..L, the number of thresholds reached.
    experts : None, "auto" or list of OnlineMatrixClassifier, default=None
        A hedge: the prediction follows the better experts. "auto": the side information and none at all, two step scales each.
    calibrate : bool, default=True
        Fit P(y = 1) as a logistic curve in y_bar, online. False: streams run up to three times faster.
    unseen : {"grow", "raise", "prior"}, default="grow"
        Cold start: what predictions about ids without observations or side information do. "grow": use what the side
        information says of them, an error where it says nothing; "raise": ValueError; "prior": the prior.
    options : {"paper"}, default=None
        "paper" is Algorithm 1 (2 where ids come) as printed: `step` a number or "theory", uncapped; `d` a number or "theory"; sign(y_bar - Y)
        with Y uniform, or 0 when conservative. Exact ties: updates at y y_bar < gamma as printed, but at y y_bar <= 0 when conservative:
        the proof of (6) needs one at every mistake, and sign(0) counts as +1. docs/as-printed.md lists what else differs.
    n_ids : (int, int), default=None
        Rows m and columns n at most, as Algorithm 2 wants them: the N = m + n of `d` and of "fixed" and "theory" steps. None: those that
        the side information knows at the beginning.
    tol : float, default=1e-10
        Relative error of y_bar + 1.
    verbose : int, default=0
    random_state : int, RandomState or None, default=None
        For randomized=True.

    Attributes
    ----------
    classes_ : ndarray of shape (2,) or (L + 1,)
        Negative and positive label. Before a negative label is seen: -1 and 1.
    n_seen_, n_updates_, n_mistakes_ : int
    expert_weights_ : ndarray of shape (L, E)

    Notes
    -----
    Mistakes exceed those of a matrix U by at most 4 sqrt(2 D log(N) T) / gamma in expectation (Theorem 1, paper's tuning), D smaller
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
        "rows": [SideInformation, None],
        "cols": [SideInformation, None],
        "gamma": [Interval(Real, 0, 1, closed="right"), StrOptions({"theory"})],
        "step": [StrOptions({"anytime", "fixed", "theory"}), Interval(Real, 0, None, closed="neither")],
        "step_scale": [Interval(Real, 0, None, closed="neither")],
        "d": [StrOptions({"neutral", "theory"}), Interval(Real, 1, None, closed="left")],
        "prior": [Interval(Real, -1, None, closed="neither")],
        "conservative": ["boolean"],
        "horizon": [Interval(Integral, 1, None, closed="left"), None],
        "blocks": [Interval(Integral, 1, None, closed="left"), tuple, None],
        "randomized": ["boolean"],
        "thresholds": [Real, "array-like", None],
        "experts": [StrOptions({"auto"}), list, None],
        "calibrate": ["boolean"],
        "unseen": [StrOptions({"grow", "raise", "prior"})],
        "options": [StrOptions({"paper"}), None],
        "n_ids": [tuple, None],
        "tol": [Interval(Real, 0, 1e-2, closed="neither")],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        rows: SideInformation | None = None,
        cols: SideInformation | None = None,
        *,
        gamma: Any = 1 / 3,
        step: Any = "anytime",
        step_scale: float = 1.0,
        d: Any = "neutral",
        prior: float = 0.0,
        conservative: bool = False,
        horizon: int | None = None,
        blocks: Any = None,
        randomized: bool = False,
        thresholds: Any = None,
        experts: Any = None,
        calibrate: bool = True,
        unseen: str = "grow",
        options: str | None = None,
        n_ids: tuple[int, int] | None = None,
        tol: float = 1e-10,
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        self.rows = rows
        self.cols = cols
        self.gamma = gamma
        self.step = step
        self.step_scale = step_scale
        self.d = d
        self.prior = prior
        self.conservative = conservative
        self.horizon = horizon
        self.blocks = blocks
        self.randomized = randomized
        self.thresholds = thresholds
        self.experts = experts
        self.calibrate = calibrate
        self.unseen = unseen
        self.options = options
        self.n_ids = n_ids
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state

    # -- learning -----------------------------------------------------------------------------------------------------

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
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        for name in LEARNED:
            self.__dict__.pop(name, None)
        self._learn(*pairs, y, None, values=False)
        return self

    def partial_fit(
        self, rows: Sequence[Any], cols: Sequence[Any], y: ArrayLike, classes: Sequence[Any] | None = None
    ) -> Self:
        """Learn pairs once, in their order, going on from what was learned.

        Parameters
        ----------
        rows, cols : sequences of n ids
        y : array-like of shape (n,)
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.

        Returns
        -------
        self
            The same as n calls of `learn_one`. After an error or an interrupt it has learned nothing of
            the call; new ids may stay known, which changes no prediction.
        """
        self._learn(read_ids(rows, "rows"), read_ids(cols, "cols"), y, classes, values=False)
        return self

    def score_stream(
        self,
        rows: Sequence[Any],
        cols: Sequence[Any],
        y: ArrayLike,
        classes: Sequence[Any] | None = None,
        *,
        comparator: Any = None,
    ) -> StreamScore:
        """`partial_fit`, with what was predicted before each label was seen: progressive validation.

        Parameters
        ----------
        rows, cols, y, classes
            As in `partial_fit`.
        comparator : None, "majority" or array-like of n labels, default=None
            What the regret is measured against: the most frequent label in hindsight, or U at the pairs (Theorem 1).

        Returns
        -------
        score : StreamScore
            n_trials, mistakes, error, running_mistakes, regret, running_regret, log_loss, values, probabilities, updated.
        """
        ids = read_ids(rows, "rows"), read_ids(cols, "cols")
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
        return StreamScore(len(wrong), mistakes, running, last, regret, loss, values, reached, trials.updated)

    def _check_comparator(self, pairs: Pairs, y: Any, classes: Any, comparator: Any) -> None:
        """Refused before anything is learned."""
        coding = self._coding() if self.__sklearn_is_fitted__() else self._begin()[1]
        _, coding = read_y(y, len(pairs[0]), coding, coding.thresholds, classes)
        comparator_mistakes(comparator, read_labels(y, len(pairs[0])), coding)

    def _learn(self, rows: list[Any], cols: list[Any], y: Any, classes: Any, *, values: bool) -> tuple[Trials, Floats]:
        """A stream through the model: its trials, and the labels as signs (n, L)."""
        if len(rows) != len(cols):
            raise ValueError(f"rows and cols must be of one length; got {len(rows)} and {len(cols)}.")
        model, coding = (self._live(), self._coding()) if self.__sklearn_is_fitted__() else self._begin()
        known = coding if coding.settled or model.n_seen else None
        signs, coding = read_y(y, len(rows), known, coding.thresholds, classes)
        stream = (rows, cols), signs, self.calibrate, self._signs
        trials = self._adopted(model, coding, lambda: model.learn(*stream, values=values or self._draws))
        if self.verbose:
            print(f"{model.n_seen} pairs: {model.n_mistakes} mistakes, {model.n_updates} updates", flush=True)
        return trials, signs

    # -- answers ------------------------------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Floats:
        """y_bar of pairs.

        Parameters
        ----------
        X : (row, column) pairs, as in `fit`

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

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of pairs, as in `fit`; with thresholds, how many each pair reaches. Shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, 2)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self._scores(X)
        return self._coding().labels(self._signs(scores, self._live().n_seen))

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
        return float(np.average(self.predict(X) == coded, weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # pairs of ids, not features
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.classifier_tags.multi_class = np.size(self.thresholds) > 1 if self.thresholds is not None else False
        return tags
