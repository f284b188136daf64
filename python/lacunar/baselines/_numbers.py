"""Targets of rows as columns of a stacked matrix."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils.validation import check_consistent_length

from lacunar._snapshot import all_or_nothing
from lacunar.baselines._completion import MatrixCompletion, hidden_rows
from lacunar.baselines._stacked import Loss
from lacunar.observed.door import check_partial_targets, validate_X
from lacunar.observed.rules import Array, Flag, Rule, floats

_Floats = NDArray[np.float64]
_Self = TypeVar("_Self", bound="CompletionRegressor")


class CompletionRegressor(RegressorMixin, MatrixCompletion):  # type: ignore[misc]
    """Known targets, standardised, under the squared loss."""

    _held: ClassVar[dict[str, Rule]] = {
        **MatrixCompletion._held,
        "one_target_": Flag(),
        "target_mean_": floats("o"),
        "target_scale_": floats("o"),
        "transduction_": Array("f", ("n",), finite=False),
    }
    _loss: ClassVar[Loss] = "squared"

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self: _Self, X: Any, y: ArrayLike) -> _Self:
        """Complete a table and its targets.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
            Rows with a target and those to predict.
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass NaN for unlabelled rows."
            )
        table = validate_X(self, X, reset=True, sparse_missing=self.sparse_missing)
        target = check_partial_targets(y)
        check_consistent_length(table, target)
        self.one_target_, target = target.ndim == 1, target.reshape(len(target), -1)
        self.target_mean_, spread = np.nanmean(target, axis=0), np.nanstd(target, axis=0)
        self.target_scale_ = np.where(spread > 0, spread, 1.0)
        labels = (target - self.target_mean_) / self.target_scale_
        hide = hidden_rows(~np.isnan(labels).all(axis=1), None, self.holdout, self.random_state)

        def score(values: _Floats, hidden: NDArray[np.bool_]) -> float:
            return float(np.nanmean(np.square(values - labels)[hidden]))

        self.transduction_ = self._in_units(self._complete(table, labels, hide, score))
        return self

    def _in_units(self, values: _Floats) -> _Floats:
        made: _Floats = values * self.target_scale_ + self.target_mean_
        return made[:, 0] if self.one_target_ else made

    def predict(self, X: Any) -> _Floats:
        """Targets of unseen rows, completed against the learned row space.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,) or (m, targets)
        """
        return self._in_units(self._values(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
