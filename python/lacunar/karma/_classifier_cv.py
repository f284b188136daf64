"""`KarmaClassifierCV`: kernel and C of `KarmaClassifier` by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from lacunar._snapshot import all_or_nothing
from lacunar.karma._base_cv import DEFAULT_CS, KarmaSearch
from lacunar.karma._classifier import LOSSES, KarmaClassifier
from lacunar.karma._final_loss import choose_C
from lacunar.karma._kernel_form import KernelOptions
from lacunar.karma._solve import one_vs_rest
from lacunar.karma._weights import class_weights, row_weights
from lacunar.observed import Observed
from lacunar.observed.door import validate_X_y

_Floats = NDArray[np.float64]


def _refits_logistic(search: KarmaClassifierCV) -> bool:
    if search.refit_loss != "logistic":
        raise AttributeError(
            f"predict_proba needs refit_loss='logistic'; got {search.refit_loss!r}. Refit with it, or wrap the classifier "
            "in sklearn.calibration.CalibratedClassifierCV."
        )
    return True


class KarmaClassifierCV(ClassifierMixin, KarmaSearch):  # type: ignore[misc]
    """`KarmaClassifier` whose kernel and C are chosen by exact leave-one-out.

    Every kernel of {indicators} x {normalize} x {gammas} costs one eigendecomposition, which gives the leave-one-out
    squared error (classes coded +-1, one against the rest) of all values of C; sums and counts over pairs of rows are
    computed once for all kernels.

    Parameters
    ----------
    gammas : sequence of float, default=(1, 2, 3, 4)
        Values of gamma; 1 (imputation by the column mean) is always tried too.
    Cs : sequence of float, default=(1e-3, 1e-2, ..., 1e3)
        Values of C.
    indicators : sequence of bool, default=(False, True)
        Kernels without and with the observed-indicator part.
    normalize : sequence of {"trace", "cosine", None}, default=("trace", "cosine")
        Normalisations to try.
    scale, standardize, constant, class_weight, tol, max_iter, sparse_missing, n_jobs
        As in `KarmaClassifier`.
    cv : "loo", "holdout", int, splitter or iterable of splits, default="loo"
        How grid points are scored; "holdout" is a quarter of the rows at random, as in [1]_. Integers make stratified
        folds, plain ones where a class has fewer members.
    max_search_rows : int, default=2000
        Above it the search reads this many rows, drawn at random by class; the model is fitted to all.
        Where their Gram would exceed 2 GiB (11,585 rows), only kernels of gamma 1, 2 and 3 are tried, which "primal" fits.
    average : int, default=1
        Number of best kernels whose decision values are averaged.
    options : {"auto"} or None, default=None
        "auto" adds kernels whose columns are expanded, holes kept: a Gaussian of every column's values, and one indicator
        a level where a column has at most 8; the squares of kernels of gamma 1 and 2; and averages at least the best 5.
        `chosen_` says which.
    refit_loss : {"squared", "hinge", "squared_hinge", "logistic", "crammer_singer"} or None, default=None
        Loss of the final model; C is then chosen anew on 5 folds, by log loss for "logistic" and by the error for the others.
        None is "squared".
    random_state : int, RandomState or None, default=None
        Draws the rows of "holdout", folds and the subsample, and orders those of "primal". None is a fixed draw.
    verbose : int, default=0
        1 prints every kernel with its score and the time left.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        Labels, sorted.
    estimators_ : list of KarmaClassifier
        The `average` models, best first, fitted to all rows.
    chosen_ : list of dict
        Kernel and C of every model, best first.
    best_params_ : dict
        gamma, C, indicators and normalize of the best grid point.
    best_score_ : float
        Its negative mean squared error of the codes +-1.
    best_index_ : int
        Its place in `cv_results_`.
    zero_imputation_score_ : float
        Best score among gamma=1 without indicators, the kernel of 0-imputation.
    cv_results_ : dict of arrays
        As scikit-learn's searches: params, param_*, split*_test_score, mean_, std_ and rank_test_score.
    n_iter_ : int
        Iterations of the final models, the largest.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (d,)
        Only when X has column names.

    Raises
    ------
    ValueError
        As `KarmaClassifier`; or cv leaves no split.

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
    >>> from lacunar import KarmaClassifierCV
    >>> X = np.array([[2.0, np.nan], [1.5, 1.0], [1.0, 2.0], [-1.0, np.nan], [np.nan, -2.0], [-1.5, -1.0]])
    >>> model = KarmaClassifierCV().fit(X, ["yes", "yes", "yes", "no", "no", "no"])
    >>> model.predict([[np.nan, 3.0], [-2.0, np.nan]])
    array(['yes', 'no'], dtype='<U3')
    >>> len(model.cv_results_["params"])  # 16 kernels, 7 values of C
    112
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **KarmaSearch._parameter_constraints,
        "refit_loss": [StrOptions(set(LOSSES)), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

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
        class_weight: Any = None,
        cv: Any = "loo",
        max_search_rows: int = 2000,
        average: int = 1,
        options: Literal["auto"] | None = None,
        refit_loss: Literal["squared", "hinge", "squared_hinge", "logistic", "crammer_singer"] | None = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
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
        self.class_weight = class_weight
        self.cv = cv
        self.max_search_rows = max_search_rows
        self.average = average
        self.options = options
        self.refit_loss = refit_loss
        self.tol = tol
        self.max_iter = max_iter
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> KarmaClassifierCV:
        """Search, then fit the best kernels to all rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        y : array-like of shape (n,)
            Labels: numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Repetitions of the rows, >= 0.

        Returns
        -------
        self : KarmaClassifierCV
        """
        table, target = validate_X_y(self, X, y, sparse_missing=self.sparse_missing)
        check_classification_targets(target)
        weight = row_weights(sample_weight, table)
        self.classes_ = np.unique(target[weight > 0])
        # A row of weight 0 may have a label of its own: it is given any code and takes part in nothing.
        codes = np.minimum(np.searchsorted(self.classes_, target), len(self.classes_) - 1)
        balance = class_weights(self.class_weight, self.classes_, codes, weight)
        targets = one_vs_rest(codes, len(self.classes_))
        chosen = self._search(table, target, targets, weight, weight * balance, codes)
        self.estimators_ = [
            self._refit(self._table_of(table, options.expand), target, codes, weight, options, C)
            for options, C in chosen
        ]
        self.n_iter_ = max(model.n_iter_ for model in self.estimators_)
        return self

    def _refit(
        self, X: Observed, y: NDArray[Any], codes: NDArray[np.intp], weight: _Floats, options: KernelOptions, C: float
    ) -> KarmaClassifier:
        loss = self.refit_loss or "squared"
        model = KarmaClassifier(
            C=C,
            loss=loss,
            class_weight=self.class_weight,
            tol=self.tol,
            max_iter=self.max_iter,
            **self._model_params(options),
        )
        if loss != "squared" and len(self.classes_) > 1:
            each = weight * class_weights(self.class_weight, self.classes_, codes, weight)
            model.C = choose_C(model, X, codes, each, self._values_of_C(), self.max_search_rows, self.random_state)
        model.fit(X, y, weight)
        return model

    def decision_function(self, X: Any) -> _Floats:
        """Mean over `estimators_` of the values of the classes; for two classes one value, positive for `classes_[1]`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        values : ndarray of shape (m,) or (m, k)
        """
        return self._mean_of_models(X, "decision_function")

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        values = self.decision_function(X)
        codes = (values > 0).astype(np.intp) if values.ndim == 1 else values.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(_refits_logistic)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> _Floats:
        """Mean over `estimators_` of the probabilities; only with `refit_loss="logistic"`.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)

        Returns
        -------
        probabilities : ndarray of shape (m, k)
        """
        return self._mean_of_models(X, "predict_proba")
