"""Base of the classifiers of pairs: their methods over a `PairModel`."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from lacunar._lock import WholeRows, changes
from lacunar._state import all_or_nothing
from lacunar._stream import StreamScore
from lacunar._typing import Floats
from lacunar.completion.coding import (
    MOST_LEVELS,
    Coding,
    class_probabilities,
    comparator_mistakes,
    mean_log_loss,
    rating_levels,
    read_thresholds,
    read_y,
)
from lacunar.completion.pair_model import Batch, OneTrial, PairModel, Trials
from lacunar.completion.side import SideInformation
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.door import read_labels, refuse_masked, require_y
from lacunar.observed.ids import read_id, read_ids, read_pairs

_LEARNED = ("_engine", "state_", "classes_", "settled_")
_PLAIN = (bool, int, float, str)  # labels whose signs are kept


# Questions are alone at the model, too: one about a new id makes tables and engines grow.
class PairClassifier(ClassifierMixin, BaseEstimator):
    """Methods of a classifier of pairs; `_model` makes its `PairModel`."""

    rows: SideInformation | list[SideInformation] | None
    cols: SideInformation | list[SideInformation] | None
    _engine: PairModel
    thresholds: str | ArrayLike | None = None
    unseen: str = "grow"
    verbose: int = 0

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
            What are no pairs of ids or no two labels, options out of range, ids that the side
            information does not know. After an error the classifier is as before.
        """
        pairs = read_pairs(X)
        if not pairs[0]:
            raise ValueError("X must hold at least one pair; got none (0 samples). Pass observations.")
        require_y(self, y, "Pass one label a pair.")
        for name in _LEARNED:
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
            The pairs, in the order of their trials.
        y : array-like of shape (n,)
            Left out where X and y came first.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.

        Returns
        -------
        self
            The same as n calls of `learn_one`. After an error or an interrupt it has learned the
            first pairs of the call, each of them whole, as many as `n_seen_` has gone up; of the
            first call nothing. New ids may stay known, which changes no prediction.
        """
        self._learn(*_stream_of(rows, cols, y), classes, values=False)
        return self

    def fit_batches(self, batches: Iterable[Any], *, classes: Sequence[Any] | None = None) -> Self:
        """Fit in one pass over batches of pairs, in their order; memory is that of the model and
        one batch.

        Parameters
        ----------
        batches : iterable of (X, y)
            Pairs and their labels: what `read_pair_batches` yields, or any generator.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator. After an error as after
            the batch before, or as before the call if it was the first.
        """

        def learn(model: PairClassifier, batch: Any) -> None:
            X, y = labelled(batch)
            model.partial_fit(*read_pairs(X), y, classes)

        one_pass(self, batches, learn)
        return self

    @changes
    def learn_one(self, row: Hashable, col: Hashable, y: Any) -> bool:
        """Learn the label of one pair; a new id gets a vertex.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.
        y : label

        Returns
        -------
        updated : bool
            Whether the learner changed: conservative learners change at mistakes only, others below
            the margin too.

        Raises
        ------
        ValueError, TypeError
            A label of no class, an id that the side information cannot take; the model is then as
            before.

        Notes
        -----
        Costs one prediction, or nothing but the update when `decision_one` of the same pair was the
        last call.
        """
        model = self._live()
        pair = (read_id(row, "row"), read_id(col, "col"))
        known = model.signs_of.get(y) if isinstance(y, _PLAIN) else None
        if known is not None:
            trial = model.one(pair, known)
            with WholeRows(self, trial.keep):
                trial.run()
            return trial.updated
        coding = self._coding()
        signs, coding = read_y([y], 1, coding)
        trial = model.one(pair, signs[0].tolist())
        with self._whole_pairs(trial, model, coding):
            trial.run()
        if coding.settled and isinstance(y, _PLAIN) and len(model.signs_of) < MOST_LEVELS:
            model.signs_of[y] = signs[0].tolist()
        return trial.updated

    @changes
    def add_row(self, row: Hashable, value: Any) -> Self:
        """Make an unseen row known by what the side information wants of it: features, or a point
        of the kernel's domain.

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
        comparator: str | ArrayLike | None = None,
    ) -> StreamScore:
        """`partial_fit`, with what was predicted before each label was seen: progressive
        validation.

        Parameters
        ----------
        rows, cols : sequences of n ids, or (row, column) pairs X and labels y
            The pairs, in the order of their trials.
        y : array-like of shape (n,)
            Left out where X and y came first.
        classes : two labels, default=None
            Needed where the first batch holds one label only, other than bool, 0/1 or -1/1.
        comparator : None, "majority" or array-like of n labels, default=None
            What the regret is measured against: the most frequent label in hindsight, or U at the
            pairs (Theorem 1).

        Returns
        -------
        score : StreamScore
            One row a pair: values are y_bar, loss is the mean of -log P(y), regret the mistakes
            less those of the comparator. Where probabilities are no fitted ones loss is None.
        """
        of_rows, of_cols, target = _stream_of(rows, cols, y)
        mistakes = None if comparator is None else self._mistakes_of(comparator, target, len(of_rows), classes)
        trials, signs = self._learn(of_rows, of_cols, target, classes, values=True)
        running = np.cumsum(trials.wrong.astype(np.int64))
        regret = None if mistakes is None else np.cumsum(trials.wrong - mistakes).astype(float)
        loss = None if trials.probabilities is None else mean_log_loss(trials.probabilities, signs)
        values, reached = (None if v is None else v[:, 0] if v.shape[1] == 1 else v for v in trials[:2])
        assert values is not None
        at_end = None if regret is None else float(regret[-1]) if len(regret) else 0.0
        n_wrong = int(trials.wrong.sum())
        return StreamScore(len(running), n_wrong, loss, at_end, values, running, regret, reached, trials.updated)

    def _mistakes_of(
        self, comparator: str | ArrayLike, y: Any, n: int, classes: Sequence[Any] | None
    ) -> NDArray[np.int64]:
        """`comparator_mistakes`, before anything is learned; raises what labels or a comparator that do not fit raise."""
        coding = self._at_work(y, classes)[1]
        _, coding = read_y(y, n, coding, classes)
        return comparator_mistakes(comparator, read_labels(y, n), coding)

    def _learn(
        self, rows: list[Any], cols: list[Any], y: ArrayLike, classes: Sequence[Any] | None, *, values: bool
    ) -> tuple[Trials, Floats]:
        """A stream through the model: its trials, and the labels as signs (n, L). The first one is learned whole or not
        at all.
        """
        learn = PairClassifier._learn_pairs
        if not self.__sklearn_is_fitted__():
            learn = all_or_nothing(learn)
        return learn(self, rows, cols, y, classes, values=values)

    def _learn_pairs(
        self, rows: list[Any], cols: list[Any], y: ArrayLike, classes: Sequence[Any] | None, *, values: bool
    ) -> tuple[Trials, Floats]:
        if len(rows) != len(cols):
            raise ValueError(f"rows and cols must be of one length; got {len(rows)} and {len(cols)}.")
        model, coding = self._at_work(y, classes)
        known = coding if coding.settled or model.n_seen else None
        signs, coding = read_y(y, len(rows), known, classes)
        batch = model.batch((rows, cols), signs, values=values)
        with self._whole_pairs(batch, model, coding):
            batch.run(self.verbose)
        self._store(model, coding)
        return batch.trials(), signs

    def _whole_pairs(self, steps: OneTrial | Batch, model: PairModel, coding: Coding) -> WholeRows:
        """A block that learns pairs, each of them whole or not at all; the coding is stored where any was learned."""
        before = model.n_seen

        def keep() -> None:
            steps.keep()
            if model.n_seen > before:
                self._store(model, coding)

        return WholeRows(self, keep)

    def _at_work(self, y: ArrayLike, classes: Sequence[Any] | None) -> tuple[PairModel, Coding]:
        """The model and its coding, or new ones for labels y, which are not stored."""
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
            Few pairs cost a prediction each; many share one eigendecomposition where the matrices
            allow it.
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
        model = self._live()
        return self._coding().labels(model.signs(scores, model.n_seen))

    @changes
    def predict_proba(self, X: Any) -> Floats:
        """P(class) of pairs, shape (n, 2) or (n, L + 1), in the order of `classes_`.

        Of the pool, its mixture's; of `MatrixExponentiatedGradient`, from a logistic curve fitted
        online or, with calibrate=False and as printed, from the randomised rule, (gamma + y_bar) /
        (2 gamma) cut to [0, 1], which is no calibrated probability.

        Parameters
        ----------
        X : array-like of shape (n, 2)

        Returns
        -------
        probabilities : ndarray of shape (n, 2) or (n, L + 1)
        """
        scores = self._scores(X)
        return class_probabilities(self._live().probabilities(scores))

    @changes
    def predict_expected(self, X: Any) -> Floats:
        """The mean of `classes_` under `predict_proba`: with thresholds="auto", the expected
        rating.

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
        probabilities = self.predict_proba(X)
        if self.classes_.dtype.kind not in "iufb":
            raise TypeError(
                f"classes must be numbers to have a mean; got {self.classes_.tolist()!r}. Use predict_proba."
            )
        expected: Floats = probabilities @ self.classes_.astype(np.float64)
        return expected

    @changes
    def score(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
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
        target = read_labels(y, len(read_pairs(X)[0]))
        if not len(target):
            raise ValueError("X must hold at least one pair to be scored; got none. Pass observations.")
        weight = refuse_masked(sample_weight, "sample_weight")
        weight = _check_sample_weight(weight, target, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight must be above 0 for a pair at least; got only zeros. Leave it out.")
        return float(np.average(self.predict(X) == self._coding().coded(target), weights=weight))

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
        """y_bar of every task, (L,)."""
        return self._live().score_one((read_id(row, "row"), read_id(col, "col")), self.unseen)

    @changes
    def predict_one(self, row: Hashable, col: Hashable) -> Any:
        """The label predicted for one pair: the sign of `decision_one`.

        Parameters
        ----------
        row, col : hashable
            Ids, seen before or not.

        Returns
        -------
        label : object
            One of `classes_`, or how many thresholds are reached.
        """
        signs = self._live().signs_one((read_id(row, "row"), read_id(col, "col")), self.unseen)
        return self._coding().labels(signs[None])[0].item()

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
        probabilities = class_probabilities(self._live().probabilities(scores))[0]
        return dict(zip(self.classes_.tolist(), probabilities.tolist(), strict=True))

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
        return self._live().counts.updates if self.__sklearn_is_fitted__() else 0

    @property
    @changes
    def n_mistakes_(self) -> int:
        """Pairs predicted wrongly before they were learned."""
        return self._live().counts.mistakes if self.__sklearn_is_fitted__() else 0

    # -- beginning, going on, files -----------------------------------------------------------------------------------

    def _model(self, n_tasks: int) -> PairModel:
        """A model that has learned nothing, of checked parameters."""
        raise NotImplementedError

    def _begin(self, levels: NDArray[Any] | None = None) -> tuple[PairModel, Coding]:
        """A model that has learned nothing, all parameters checked; the estimator is not touched. levels: of ratings,
        for "auto".
        """
        self._validate_params()
        if self._automatic_ratings and levels is None:
            raise ValueError(
                "the ratings must be known for thresholds='auto' before anything is asked; got none. Learn a batch "
                "first."
            )
        thresholds = self._thresholds(levels)
        n_tasks = 1 if thresholds is None else len(thresholds)
        classes = np.array([-1, 1]) if thresholds is None else np.arange(n_tasks + 1)
        rated = levels is not None
        coding = Coding(classes if levels is None else levels, thresholds is not None, thresholds, rated)
        model = self._model(n_tasks)
        model.thresholds = self.thresholds
        return model, coding

    @property
    def _automatic_ratings(self) -> bool:
        return isinstance(self.thresholds, str) and self.thresholds == "auto"

    def _thresholds(self, levels: NDArray[Any] | None) -> Floats | None:
        """The thresholds (L,) of the parameter; with "auto" all of the ratings `levels` but the lowest."""
        if not self._automatic_ratings:
            return read_thresholds(self.thresholds)
        assert levels is not None
        return np.asarray(levels[1:], dtype=np.float64)

    def _store(self, model: PairModel, coding: Coding) -> None:
        self.__dict__.update(_engine=model, classes_=coding.classes, settled_=coding.settled)

    def _coding(self) -> Coding:
        return Coding(self.classes_, self.settled_, self._thresholds(self.classes_), self._automatic_ratings)

    def _live(self) -> PairModel:
        """The model at work; begun if nothing was learned yet, or from `state_` after loading."""
        if "_engine" not in self.__dict__:
            if "state_" in self.__dict__:
                self._engine = self._restored({"classes": self.classes_, **self.state_})
                del self.state_
            else:
                self._store(*self._begin())
        before = self._engine.thresholds
        if self.thresholds is not before and not np.array_equal(np.asarray(self.thresholds), np.asarray(before)):
            raise ValueError(
                f"thresholds must stay {before!r}, with which the classifier learned; got {self.thresholds!r}. Set "
                "them back, or fit again."
            )
        return self._engine

    def __sklearn_is_fitted__(self) -> bool:
        # In this order: a thread that resumes sets the one before it drops the other.
        return "state_" in self.__dict__ or "_engine" in self.__dict__

    @changes
    def state(self) -> dict[str, Any]:
        """All that was learned, as plain data: numbers, arrays, strings, lists and dicts.

        Returns
        -------
        state : dict
            For `from_state` with the same parameters. `lacunar.persistence.save_model` stores
            parameters and state together; this is for side information that no file holds, such as
            a kernel that is a function.
        """
        return {**self._live().state(), "classes": self.classes_, "settled": self.settled_}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], rows: Any = None, cols: Any = None, **params: Any) -> Self:
        """A classifier that goes on from what `state` gave, to the bit as if there had been no
        break.

        Parameters
        ----------
        state : dict
        rows, cols : side information, default=None
            What the state was learned with.
        **params : dict
            The other parameters that it was learned with.

        Returns
        -------
        classifier

        Raises
        ------
        ValueError
            When it is of other side information or another number of thresholds, or no state.
        """
        learner = cls(rows, cols, **params)
        learner._store(*learner._checked(state))
        return learner

    def _checked(self, state: Mapping[str, Any]) -> tuple[PairModel, Coding]:
        """The model of a state and its coding; ValueError where its classes do not fit the parameters."""
        model = self._restored(state)
        thresholds = self._thresholds(np.asarray(state["classes"]))
        classes, settled = np.asarray(state["classes"]), bool(state["settled"])
        coding = Coding(classes, settled, thresholds, self._automatic_ratings)
        sound = isinstance(state["settled"], bool | np.bool_)
        sound &= thresholds is None or coding.settled
        if thresholds is not None and not self._automatic_ratings:
            sound &= np.array_equal(coding.classes, np.arange(len(thresholds) + 1))
        if not sound or coding.classes.shape != (coding.n_tasks + 1,):
            raise ValueError(f"the state must hold {coding.n_tasks + 1} classes; it does not. Take it again.")
        return model, coding

    def _restored(self, state: Mapping[str, Any]) -> PairModel:
        """A model that goes on from a state; the estimator is not touched."""
        levels = np.asarray(state.get("classes", ())) if self._automatic_ratings else None
        if levels is not None:
            levels = rating_levels(levels, None)
        model, _ = self._begin(levels)
        try:
            model.take(state)
        except (KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            raise ValueError(
                f"the state must be of a classifier with these parameters and this side information; {error}. Go on "
                "from it with those it was taken with, or fit again."
            ) from None
        return model

    @changes
    def __getstate__(self) -> dict[str, Any]:
        attributes: dict[str, Any] = dict(super().__getstate__())
        if attributes.pop("_engine", None) is not None:
            attributes["state_"] = self._live().state()
        return attributes

    def _check_loaded(self) -> None:
        """Makes the model of `state_`, so that a bad model file is refused on loading and not in use."""
        if "state_" in self.__dict__:
            model_and_coding = self._checked({"classes": self.classes_, "settled": self.settled_, **self.state_})
            del self.state_
            self._store(*model_and_coding)

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
