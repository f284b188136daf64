"""Labels of rows as columns of a stacked matrix."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from lacunar._snapshot import all_or_nothing
from lacunar.baselines._completion import MatrixCompletion, hidden_rows
from lacunar.baselines._stacked import Loss
from lacunar.observed.door import check_partial_labels, validate_X

_Floats = NDArray[np.float64]
_Self = TypeVar("_Self", bound="CompletionClassifier")


class CompletionClassifier(ClassifierMixin, MatrixCompletion):  # type: ignore[misc]
    """Known labels as 0/1 columns under the logistic loss; one column for two classes."""

    _loss: ClassVar[Loss] = "logistic"

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self: _Self, X: Any, y: ArrayLike) -> _Self:
        """Complete a table and its labels.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Labelled rows and those to predict.
        y : array-like of shape (n,)
            Numbers or strings; NaN, None or NA where unknown.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass NaN for unlabelled rows."
            )
        table = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        target, known = check_partial_labels(y)
        check_consistent_length(table, target)
        check_classification_targets(target[known])
        self.classes_, found = np.unique(target[known], return_inverse=True)
        codes = np.zeros(len(target), dtype=np.intp)
        codes[known] = found
        labels = np.full((len(target), 1 if len(self.classes_) <= 2 else len(self.classes_)), np.nan)
        labels[known] = (found[:, None] == self._columns()).astype(np.float64)
        if len(self.classes_) == 1:
            labels[known] = 0.5  # whose log odds are 0: a constant predictor, and no bias that grows for ever
        hide = hidden_rows(known, codes, self.holdout, self.random_state)

        def score(values: _Floats, hidden: NDArray[np.bool_]) -> float:
            return float(np.mean(self._decide(values[hidden]) != codes[hidden]))

        self.transduction_ = self.classes_[self._decide(self._complete(table, labels, hide, score))]
        return self

    def _columns(self) -> NDArray[np.intp]:
        """Class that every label column says yes to."""
        n_classes = len(self.classes_)
        return np.arange(n_classes) if n_classes > 2 else np.array([n_classes - 1])

    def _decide(self, values: _Floats) -> NDArray[np.intp]:
        if values.shape[1] > 1:
            return np.asarray(values.argmax(axis=1), dtype=np.intp)
        return np.where(values[:, 0] > 0, len(self.classes_) - 1, 0)

    def decision_function(self, X: Any) -> _Floats:
        """Values of the classes for unseen rows; for two classes one value, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, k)
            Log odds under the logistic loss.
        """
        values = self._values(X)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every unseen row, completed against the learned row space.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        values = self._values(X)
        labels: NDArray[Any] = self.classes_[self._decide(values)]
        return labels
