"""An encoder and an estimator in one: what `lacunar fit` writes and `lacunar predict` reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from lacunar.compare._problem import Problem
from lacunar.compare._tables import Table


class TableModel(BaseEstimator):  # type: ignore[misc]
    """Predict a column of a table from its other columns, found by name.

    Parameters
    ----------
    estimator : estimator of lacunar, default=None
        Fitted in place of a copy: the model owns it.

    Attributes
    ----------
    encoder_ : TableEncoder
    target_ : str
        Name of the column predicted.
    task_ : str
        "classification" or "regression".

    Examples
    --------
    >>> from lacunar.compare import TableModel, load_problem
    >>> from lacunar.karma import KarmaClassifier
    >>> model = TableModel(KarmaClassifier()).fit(load_problem(None))
    >>> model.target_
    'class'
    """

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, problem: Problem) -> TableModel:
        """Fit to a problem that was read from a table."""
        self.encoder_, self.target_, self.task_ = problem.encoder, problem.target, problem.task
        self.estimator.fit(problem.X, problem.y)
        return self

    def predict(self, table: Table) -> tuple[NDArray[Any], list[str]]:
        """Predictions (m,) and notes on columns that did not fit."""
        X, notes = self.encoder_.transform(table)
        return np.asarray(self.estimator.predict(X)), notes

    def check(self) -> None:
        """Try one row with nothing observed: parts of a file that do not fit together show here. Raises ValueError."""
        try:
            nothing = Table(self.encoder_.names_[:1], [np.array([np.nan])], "the model")
            self.predict(nothing)
            assert isinstance(self.target_, str)
        except Exception as error:
            raise ValueError(f"the parts of the model do not fit together ({type(error).__name__}: {error})") from None
