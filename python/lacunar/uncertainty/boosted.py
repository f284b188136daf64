"""`BoostedGaussian`: a joint Gaussian, and gradient boosting of what it leaves of the target."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from lacunar._threads import one_openmp_thread
from lacunar._trees import Trees, on_grid
from lacunar.lowrank import GaussianRegressor
from lacunar.observed.door import TakesMissing
from lacunar.observed.rules import Instance, Number, Rule

_TREES, _RATE, _LEAVES, _LEAST_LEAF = 100, 0.06, 8, 10
_TINY = float(np.finfo(np.float64).tiny)


class BoostedGaussian(RegressorMixin, TakesMissing):  # type: ignore[misc]
    """Numbers by a `GaussianRegressor` plus trees that predict what it leaves from columns that it completes.

    Where the law is linear the trees have little to add; where it is not they bend it. A tree sees a missing entry as
    its expectation given what the row shows, so that it also answers for masks that training did not have.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "gaussian_": Instance(GaussianRegressor),
        "trees_": Instance(Trees),
        "residual_scale_": Number(low=0, above=True),
    }

    def fit(self, X: Any, y: Any) -> Self:
        """From rows (n, d) with missing entries and numbers (n,). EM begins at the Gaussian that is there."""
        start: GaussianRegressor = vars(self).get("gaussian_", GaussianRegressor(warm_start=True))
        self.gaussian_ = start.fit(X, y)
        self.n_features_in_ = self.gaussian_.n_features_in_
        residuals = np.asarray(y, dtype=np.float64) - self.gaussian_.predict(X)
        self.residual_scale_ = max(float(residuals.std()), _TINY)
        boosting = HistGradientBoostingRegressor(
            max_iter=_TREES,
            learning_rate=_RATE,
            max_leaf_nodes=_LEAVES,
            min_samples_leaf=_LEAST_LEAF,
            early_stopping=False,
            random_state=0,
        )
        completed = self.gaussian_.complete(X)
        with one_openmp_thread():
            boosting.fit(completed, on_grid(residuals / self.residual_scale_))
        self.trees_ = Trees.of_boosting([boosting], np.zeros(completed.shape[1], dtype=bool))
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Numbers (m,), and with `return_std` the standard deviations that the Gaussian has without the trees."""
        check_is_fitted(self, "trees_")
        mean, std = self.gaussian_.predict(X, return_std=True)
        mean = mean + self.trees_.sums(self.gaussian_.complete(X))[:, 0] * self.residual_scale_
        return (mean, std) if return_std else mean
