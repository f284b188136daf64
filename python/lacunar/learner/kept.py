"""Training rows that a model keeps, for what `fit` need not know and a question may want: it is learned when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.learner.views import TrainingSet
from lacunar.observed import Observed
from lacunar.observed.rules import Flag, ObservedTable, Rule, floats

_KEPT_ENTRIES = 100_000  # of Z
_Learned = TypeVar("_Learned")


class KeptRows(BaseEstimator):
    """Rows as they came, their targets, or the numbers of their classes in one column, and whether they are independent."""

    _schema: ClassVar[dict[str, Rule]] = {
        "table_": ObservedTable(("n", "t")),
        "target_": floats("n", "q"),
        "independent_": Flag(),
    }

    def fit(self, training: TrainingSet, seed: int) -> Self:
        """Keep rows at random, as many as have 100,000 entries."""
        n_rows = min(_KEPT_ENTRIES // training.view.Z.shape[1], training.n)
        rows = np.sort(generator(seed).permutation(training.n)[:n_rows])
        self.table_ = Observed.from_dense(training.as_came.T[rows])
        labels = training.labels
        self.target_ = training.Y[rows] if labels is None else labels[rows, None].astype(np.float64)
        self.independent_ = training.independent
        return self

    @property
    def T(self) -> Floats:
        """The rows (n, t), NaN where an entry is missing."""
        return self.table_.to_dense()

    def answer(self, question: str, learn: Callable[[], _Learned]) -> _Learned:
        """What `learn` makes of the rows; it is asked once. Neither copies nor files hold it."""
        asked: dict[str, Any] = self.__dict__.setdefault("_asked", {})
        if question not in asked:
            asked[question] = learn()
        return asked[question]  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_asked", None)
        return state
