"""`BoostedGaussian`: a joint Gaussian, and gradient boosting of what it leaves of the target."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.utils.validation import check_is_fitted

from lacunar._threads import one_openmp_thread
from lacunar._trees import Trees, on_grid
from lacunar._typing import Floats
from lacunar.lowrank import GaussianRegressor
from lacunar.observed.door import TakesMissing, as_observed
from lacunar.observed.rules import Instance, Number, Rule, floats

_TREES, _RATE, _LEAVES, _LEAST_LEAF = 100, 0.06, 8, 10
_PAIRS = 8  # of drawn rows: one adds to what is expected what the other takes away
_LEAST_SHARE = 0.05  # of the Gaussian's variance that the trees leave
_MOST_NUMBERS = 2**20  # of drawn rows at once
_TINY = float(np.finfo(np.float64).tiny)


class BoostedGaussian(RegressorMixin, TakesMissing):
    """Numbers by a `GaussianRegressor` plus trees that predict what it leaves from columns that it completes.

    Where the law is linear the trees have little to add; where it is not they bend it. Trees learn from rows with
    expectations for missing entries. Their answer is a mean over draws of what is missing given what the row shows, so
    that it holds for masks that training did not have, and its spread widens the standard deviation.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "gaussian_": Instance(GaussianRegressor),
        "trees_": Instance(Trees),
        "residual_scale_": Number(low=0, above=True),
        "drawn_": floats("draws", "d"),
    }

    def fit(self, X: Any, y: Any, gaussian: GaussianRegressor | None = None) -> Self:
        """From rows (n, d) with missing entries and numbers (n,), and the `gaussian` fitted to them, where there is one."""
        self.gaussian_ = GaussianRegressor().fit(X, y) if gaussian is None else gaussian
        self.n_features_in_ = self.gaussian_.n_features_in_
        self.drawn_ = self.gaussian_._drawn_rows(_PAIRS)
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
        """Numbers (m,), and with `return_std` standard deviations, which also know what the trees make of missing entries."""
        check_is_fitted(self, "trees_")
        mean, std = self.gaussian_.predict(X, return_std=True)
        rows = as_observed(X).astype(np.float64).to_dense()
        share = np.ones(len(rows))
        at_once = max(1, _MOST_NUMBERS // max(2 * _PAIRS * rows.shape[1], 1))
        for first in range(0, len(rows), at_once):
            part = slice(first, first + at_once)
            trees, line = self._of_draws(rows[part])
            mean[part] += trees.mean(axis=1)
            share[part] += ((trees + line).var(axis=1) - line.var(axis=1)) / std[part] ** 2
        return (mean, std * np.sqrt(np.maximum(share, _LEAST_SHARE))) if return_std else mean

    def _of_draws(self, rows: Floats) -> tuple[Floats, Floats]:
        """Predictions of the trees and of the Gaussian for the draws of every row, (m, draws) each."""
        m, d = rows.shape
        patterns, own = np.unique(np.isnan(rows), axis=0, return_inverse=True)
        hidden = np.where(patterns[:, None], np.nan, self.drawn_)  # (patterns, pairs, d)
        deviation = (self.drawn_ - self.gaussian_.complete(hidden.reshape(-1, d)).reshape(hidden.shape))[own.ravel()]
        expected = self.gaussian_.complete(rows)[:, None]
        completed = np.concatenate([expected + deviation, expected - deviation], axis=1).reshape(-1, d)
        trees = self.trees_.sums(completed)[:, 0] * self.residual_scale_
        return trees.reshape(m, -1), self.gaussian_.predict(completed).reshape(m, -1)
