"""The linear models of a default stack, whose value of a row does not depend on the rows that come with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV

from lacunar._products import row_product


class RowLogistic(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's logistic regression, evaluated row by row."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Values (m,), or (m, k) for more than two classes."""
        values: NDArray[np.float64] = row_product(np.asarray(X), self.coef_.T) + self.intercept_
        return values[:, 0] if values.shape[1] == 1 else values


class _RowValues:
    """Left of a linear regression."""

    coef_: NDArray[np.float64]
    intercept_: Any

    def _decision_function(self, X: Any) -> NDArray[np.float64]:
        made: NDArray[np.float64] = row_product(np.asarray(X), self.coef_.T) + self.intercept_
        return made


class RowRidge(_RowValues, RidgeCV):  # type: ignore[misc]
    """scikit-learn's ridge regression, evaluated row by row."""


class RowLeastSquares(_RowValues, LinearRegression):  # type: ignore[misc]
    """scikit-learn's least squares, evaluated row by row."""
