"""A learner with the columns it was fitted to: predicts frames, finds columns by name, lives in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score, r2_score

from lacunar._log import warn_user
from lacunar._state import all_or_nothing
from lacunar.comparison.cells import UserError, listed, pandas_module
from lacunar.comparison.learners import Learner, learner_named
from lacunar.comparison.problem import Problem, as_frame, as_text, values_of
from lacunar.comparison.rival import fitted_by_folds
from lacunar.encode import Remarks, TableEncoder
from lacunar.observed.cells import Reading, cut
from lacunar.observed.door import plain_target
from lacunar.observed.names import match_names
from lacunar.observed.rules import Anything, Rule
from lacunar.observed.sentinels import sentinels_known

if TYPE_CHECKING:
    import pandas as pd

_TASKS = ("classification", "regression")
_ANSWERS = {  # the method and the option at the shell, what they give, and of which task
    "predict_proba": ("predict_proba (--proba)", "probabilities", "classification"),
    "predict_interval": ("predict_interval (--interval)", "intervals", "regression"),
}


class TableModel(BaseEstimator):
    """Predict a column of a table from its other columns, found by name.

    Parameters
    ----------
    estimator : estimator of lacunar, default=None
        Fitted in place of a copy: the model owns it. None for a learner of another library: a model
        file then keeps its name, its seed and the training rows, and it is fitted again when it is
        first used after loading.

    Attributes
    ----------
    encoder_ : TableEncoder
        Makes numbers of the columns.
    target_ : str
        Name of the column predicted.
    task_ : str
        "classification" or "regression".
    classes_ : ndarray of shape (c,)
        Sorted labels in the type of the target's column, in the order of `predict_proba`.

    Examples
    --------
    >>> from lacunar.comparison import TableModel, load_problem
    >>> from lacunar.karma import KarmaClassifier
    >>> model = TableModel(KarmaClassifier()).fit(load_problem())
    >>> model.target_
    'class'
    """

    _schema: ClassVar[dict[str, Rule]] = {"labels_": Anything()}

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    @classmethod
    def of(cls, learner: Learner, problem: Problem, seed: int = 0) -> TableModel:
        """A learner fitted to all rows of a problem."""
        if learner.ours or learner.own:
            return cls(learner.make(seed)).fit(problem, frames=learner.frames)
        refuse_text_alone(problem)
        model = cls()
        model._columns_of(problem)
        model.learner_, model.seed_, model.X_, model.y_ = learner.name, seed, problem.X, problem.y
        model._engine = learner.make(seed).fit(problem.X, problem.y)
        return model

    @all_or_nothing
    def fit(self, problem: Problem, frames: bool = False) -> TableModel:
        """Fit to a problem that was read from a table; with `frames` to its columns as they are,
        otherwise to numbers made of them.
        """
        self._columns_of(problem)
        self.frames_ = frames
        if not frames:
            refuse_text_alone(problem)
        rows = fitted_columns(problem.frame, problem.source, problem.encoder, frames)[0] if frames else problem.X
        with sentinels_known():  # the notes of the problem have them
            fitted_by_folds(self.estimator, rows, problem.y, problem)
        return self

    def _columns_of(self, problem: Problem) -> None:
        self.encoder_, self.target_, self.task_ = problem.encoder, problem.target, problem.task
        self.labels_ = problem.labels

    def predict(self, X: Any) -> NDArray[Any]:
        """Predictions (m,) of a frame, in the type of the target: columns are found by name, others
        are not looked at. Warns of what is taken as missing.
        """
        predicted = np.asarray(self._ask("predict", X))
        labels = self._labels()
        return predicted if labels is None else labels[np.searchsorted(self.fitted().classes_, predicted)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities (m, c) of `classes_`, for learners that give some."""
        proba, labels = np.asarray(self._ask("predict_proba", X)), self._labels()
        return proba if labels is None else proba[:, np.argsort(labels)]

    def _labels(self) -> NDArray[Any] | None:
        """Labels in the order of the texts that the estimator learned; None where it learned them as they are."""
        return getattr(self, "labels_", None)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows of a frame whose label is predicted, or the coefficient of
        determination R^2 of predicted numbers.

        Labels are compared as they read: 1, 1.0 and "1" are the same.
        """
        known = values_of(pandas_module().Series(plain_target(y)))
        unknown = np.flatnonzero(np.isnan(known) if known.dtype.kind == "f" else known == "")
        if unknown.size:
            raise UserError(
                f"y must hold a value for every row; row {unknown[0]} has none. Leave such rows out of X and y."
            )
        predicted = np.asarray(self._ask("predict", X))
        if self.task_ == "regression":
            return float(r2_score(known, predicted, sample_weight=sample_weight))
        labels = np.array([label.strip() for label in as_text(known)])
        return float(accuracy_score(labels, predicted, sample_weight=sample_weight))

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        """Intervals (m, 2) that hold the target with this probability, for learners that give some."""
        return np.asarray(self._ask("predict_interval", X, level))

    @property
    def readings_(self) -> dict[str, Reading | None]:
        """How the columns of text were written in `fit`, by name: new rows are read in the same
        way.
        """
        return _readings_of(self.encoder_)

    @property
    def classes_(self) -> Any:
        """Sorted labels, in the order of `predict_proba`."""
        labels = self._labels()
        return self.fitted().classes_ if labels is None else np.sort(labels)

    def fitted(self) -> Any:
        """The estimator that predicts; one of another library is fitted again after loading."""
        if self.estimator is not None:
            return self.estimator
        if not hasattr(self, "_engine"):
            self._engine = learner_named(self.task_, self.learner_).make(self.seed_).fit(self.X_, self.y_)
        return self._engine

    def _ask(self, verb: str, X: Any, *more: Any) -> Any:
        model = self.fitted()
        if not hasattr(model, verb):
            raise UserError(self._no(verb))
        frames = getattr(self, "frames_", False)
        frame, notes = fitted_columns(X, "the table", self.encoder_, frames)
        for note in notes:
            warn_user(note)
        try:
            rows = frame if frames else np.asarray(self.encoder_.transform(frame))
            return getattr(model, verb)(rows, *more)
        except ValueError as error:
            raise UserError(f"the table: {error}") from None

    def _no(self, verb: str) -> str:
        """The message for a question that the model does not answer."""
        option, what, task = _ANSWERS.get(verb, (verb, verb, self.task_))
        target = cut(self.target_)
        if task != self.task_ == "classification":
            return f"{option}: the model predicts classes of {target!r}, and {what} are of numbers. predict_proba (--proba) gives probabilities of the classes."
        if task != self.task_:
            return f"{option}: the model predicts numbers, {target!r}, and {what} are of classes. predict_interval (--interval) gives the ends of an interval."
        name = getattr(self, "learner_", None) or type(self.estimator).__name__
        return f"{option}: {name} gives no {what}. Fit the learner lacunar, which does."

    def _check_loaded(self) -> None:
        """Refuse a model file whose parts do not fit together."""
        if not any(name.endswith("_") for name in vars(self)):
            return
        encoder = vars(self).get("encoder_")
        named = isinstance(encoder, TableEncoder) and hasattr(encoder, "feature_names_in_")
        if (
            not named
            or not isinstance(getattr(self, "target_", None), str)
            or getattr(self, "task_", None) not in _TASKS
        ):
            raise ValueError("the model file's encoder_ has no names of columns, or its target_ or task_ is no name")
        self._check_labels()
        n_columns = len(self.encoder_.get_feature_names_out())
        if self.estimator is None:
            self._check_rows(n_columns)
            return
        n_inputs = len(self.encoder_.kinds_) if getattr(self, "frames_", False) is True else n_columns
        if getattr(self.estimator, "n_features_in_", None) != n_inputs:
            raise ValueError(f"the estimator must be of the {n_inputs} columns of encoder_; it is not")

    def _check_labels(self) -> None:
        """Check that labels are as many as the classes learned, no two alike, and of a plain type."""
        labels = self._labels()
        if labels is None:
            return
        learned = (
            np.unique(vars(self).get("y_", ())) if self.estimator is None else getattr(self.estimator, "classes_", ())
        )
        plain = isinstance(labels, np.ndarray) and labels.dtype.kind in "biufU" and labels.ndim == 1
        if (
            self.task_ != "classification"
            or not plain
            or len(np.unique(labels)) != len(labels)
            or len(labels) != len(learned)
        ):
            raise ValueError("labels_ must be the different labels of the classes that were learned; they are not")

    def _trial_rows(self) -> list[pd.DataFrame]:
        """Frames of one row that hold what the columns held; none where a learner of another library would be fitted
        again for them.
        """
        if "encoder_" not in vars(self) or self.estimator is None:
            return []
        names = self.encoder_.feature_names_in_
        return [pandas_module().DataFrame(rows, columns=names) for rows in self.encoder_._trial_rows()]

    def _check_rows(self, n_columns: int) -> None:
        """Of a learner that is fitted again: a known name, a seed, and training rows."""
        attributes = dict(vars(self))
        X, y, seed = attributes.get("X_", 0), attributes.get("y_", 0), attributes.get("seed_")
        numbers = isinstance(X, np.ndarray) and X.dtype.kind == "f" and not np.isinf(X).any()
        labels = isinstance(y, np.ndarray) and y.dtype.kind == ("U" if self.task_ == "classification" else "f")
        if not numbers or not labels or X.shape != (len(y), n_columns) or not len(y):
            raise ValueError(
                f"X_ and y_ must be training rows of the {n_columns} columns of encoder_ and their targets; they are not"
            )
        if not isinstance(seed, int) or not isinstance(vars(self).get("learner_"), str):
            raise ValueError("the model file names no learner or no seed")


def refuse_text_alone(problem: Problem) -> None:
    """Refuse a problem without numbers for a learner that reads nothing else."""
    if not problem.X.shape[1]:
        raise UserError(
            f"{problem.source}: its columns hold text of many levels alone, which only learners that read text can learn from. Use --learner "
            "lacunar, or keep a column as categories with --use COLUMN."
        )


def fitted_columns(data: Any, source: str, encoder: TableEncoder, text: bool) -> tuple[pd.DataFrame, list[str]]:
    """The columns that the encoder was fitted to, in its order, and notes on what is taken as missing; those without
    numbers where `text` is read.
    """
    pd = pandas_module()
    frame, notes, _ = as_frame(data, source, known=_readings_of(encoder))
    kinds = dict(zip(encoder.feature_names_in_, encoder.kinds_, strict=True))
    read = [name for name, kind in kinds.items() if text or kind != "dropped"]
    absent, _ = match_names(list(frame.columns), read)  # what fit never saw, as the target, has no note
    if len(absent) == len(read):
        raise UserError(f"{source}: none of the model's columns is there; it wants {listed(read, 12)}.")
    if absent:
        notes.append(f"not in the table, taken as missing: {listed(absent)}")
    there = {name: frame[name] for name in read if name in frame}
    remarks = Remarks()
    try:
        columns = encoder._as_learned(
            pd.DataFrame({name: there.get(name, np.nan) for name in kinds}, index=frame.index), remarks
        )
    except (TypeError, ValueError) as error:
        raise UserError(f"{source}: {error}") from None
    return pd.DataFrame(columns, columns=[*kinds]), notes + remarks.sentences()


def _readings_of(encoder: TableEncoder) -> dict[str, Reading | None]:
    """By column; None for text that stays text. What was no text in `fit` is not among them: new text of it is read as
    it looks.
    """
    columns = zip(encoder.feature_names_in_, encoder.kinds_, encoder.readings_, strict=True)
    return {
        str(name): reading for name, kind, reading in columns if reading is not None or kind in ("category", "dropped")
    }
