"""`KarmaRegressorCV`: kernel and C of `KarmaRegressor` by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, _fit_context

from lacunar._snapshot import all_or_nothing
from lacunar.karma._base_cv import DEFAULT_CS, KarmaSearch
from lacunar.karma._regressor import KarmaRegressor
from lacunar.karma._weights import row_weights
from lacunar.observed.door import validate_X_y


class KarmaRegressorCV(RegressorMixin, KarmaSearch):  # type: ignore[misc]
    """`KarmaRegressor` whose kernel and C are chosen by exact leave-one-out.

    Every kernel of {indicators} x {normalize} x {gammas} costs one eigendecomposition, which gives the leave-one-out
    squared error of all values of C; sums and counts over pairs of rows are computed once for all kernels.

    Parameters
    ----------
    gammas : sequence of float, default=(1, 2, 3, 4)
        Values of gamma; 1 (imputation by the column mean) is always tried too.
    Cs : sequence of float, default=(1e-3, 1e-2, ..., 1e3)
        Values of C. Targets without noise want up to 1e6.
    indicators : sequence of bool, default=(False, True)
        Kernels without and with the observed-indicator part.
    normalize : sequence of {"trace", "cosine", None}, default=("trace", "cosine")
        Normalisations to try.
    scale, standardize, constant, sparse_missing, n_jobs
        As in `KarmaRegressor`.
    cv : "loo", "holdout", int, splitter or iterable of splits, default="loo"
        How grid points are scored; "holdout" is a quarter of the rows at random, as in [1]_.
    max_search_rows : int, default=2000
        Above it the search reads this many rows, drawn at random; the model is fitted to all.
        Where their Gram would exceed 2 GiB (11,585 rows), only kernels of gamma 1, 2 and 3 are tried, which "primal" fits.
    average : int, default=1
        Number of best kernels whose predictions are averaged.
    options : {"auto"} or None, default=None
        "auto" adds kernels whose columns are expanded, holes kept: a Gaussian of every column's values, and one indicator
        a level where a column has at most 8; the squares of kernels of gamma 1 and 2; and averages at least the best 5.
        `chosen_` says which.
    random_state : int, RandomState or None, default=None
        Draws the rows of "holdout", folds and the subsample, and orders those of "primal". None is a fixed draw.
    verbose : int, default=0
        1 prints every kernel with its score and the time left.

    Attributes
    ----------
    estimators_ : list of KarmaRegressor
        The `average` models, best first, fitted to all rows.
    chosen_ : list of dict
        Kernel and C of every model, best first.
    best_params_ : dict
        gamma, C, indicators and normalize of the best grid point.
    best_score_ : float
        Its negative mean squared error, in squared units of y.
    best_index_ : int
        Its place in `cv_results_`.
    zero_imputation_score_ : float
        Best score among gamma=1 without indicators, the kernel of 0-imputation.
    cv_results_ : dict of arrays
        As scikit-learn's searches: params, param_*, split*_test_score, mean_, std_ and rank_test_score.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        As `KarmaRegressor`; or cv leaves no split.

    Notes
    -----
    About 9 n^3 flops a kernel and three n x n float64 arrays. `sample_weight` means repetition, but leave-one-out
    leaves a row out with its whole weight.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar import KarmaRegressorCV
    >>> X = np.array([[2.0, np.nan], [1.0, 1.0], [-1.0, -1.0], [np.nan, -2.0], [1.5, 1.5], [np.nan, -0.5]])
    >>> model = KarmaRegressorCV().fit(X, [4.0, 2.0, -2.0, -4.0, 3.0, -1.0])
    >>> sorted(model.best_params_)
    ['C', 'degree', 'expand', 'gamma', 'indicators', 'normalize']
    >>> bool(model.predict([[2.0, 2.0]])[0] > 1)
    True
    """

    def __init__(
        self,
        gammas: Sequence[float] = (1, 2, 3, 4),
        *,
        Cs: Sequence[float] = DEFAULT_CS,
        indicators: Sequence[bool] = (False, True),
        normalize: Sequence[Literal["trace", "cosine"] | None] = ("trace", "cosine"),
        scale: float | Literal["mean", "raw"] = "mean",
        standardize: bool = True,
        constant: bool = True,
        cv: Any = "loo",
        max_search_rows: int = 2000,
        average: int = 1,
        options: Literal["auto"] | None = None,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.gammas = gammas
        self.Cs = Cs
        self.indicators = indicators
        self.normalize = normalize
        self.scale = scale
        self.standardize = standardize
        self.constant = constant
        self.cv = cv
        self.max_search_rows = max_search_rows
        self.average = average
        self.options = options
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaRegressorCV:
        """Search, then fit the best kernels to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,) or (n, t)
            Targets.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaRegressorCV
        """
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing, y_numeric=True, multi_output=True)
        target = target.astype(np.float64)
        weight = row_weights(sample_weight, table)
        centred = (target - np.average(target, axis=0, weights=weight)).reshape(len(target), -1)
        chosen = self._search(table, target, centred, weight, weight, None)
        self.estimators_ = [
            KarmaRegressor(C=C, **self._model_params(options)).fit(
                self._table_of(table, options.expand), target, weight
            )
            for options, C in chosen
        ]
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicted targets, the mean over `estimators_`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        y : ndarray of shape (m,) or (m, t)
        """
        return self._mean_of_models(X, "predict")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
