"""Probabilities of the logistic loss."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.metaestimators import available_if


def _is_logistic(estimator: Any) -> bool:
    if estimator.loss != "logistic":
        raise AttributeError(
            f"predict_proba needs loss='logistic'; got loss={estimator.loss!r}. Refit with loss='logistic', or wrap the "
            "classifier in sklearn.calibration.CalibratedClassifierCV."
        )
    return True


class Probabilities:
    """`predict_proba` from `decision_function`."""

    classes_: NDArray[Any]

    @available_if(_is_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Probabilities of the classes; only with `loss="logistic"`.

        For more than two classes those of one class against the rest, divided by their sum.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        probabilities : ndarray of shape (m, k)
        """
        values = self.decision_function(X)  # type: ignore[attr-defined]
        if len(self.classes_) == 1:
            return np.ones((len(values), 1))
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        each = expit(values)
        total = each.sum(axis=1, keepdims=True)
        shares: NDArray[np.float64] = each / np.where(total > 0, total, 1.0)
        return shares
