"""`KarmaClassifierCV` and `KarmaRegressorCV`: kernel and C by exact leave-one-out."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from lacunar._log import say
from lacunar._snapshot import all_or_nothing
from lacunar.karma.base import KarmaBatch, KernelOptions, class_weights, label_of, row_weights
from lacunar.karma.classifier import LOSSES, KarmaClassifier
from lacunar.karma.expand import check_expansion, expand, fit_expansion
from lacunar.karma.regressor import KarmaRegressor
from lacunar.karma.scoring import (
    SearchData,
    best_kernels,
    choose_C,
    composed,
    kernel_grid,
    kernel_params,
    make_splits,
    results_table,
    search,
    search_rows,
)
from lacunar.karma.solvers import gram_bytes, one_vs_rest
from lacunar.karma.table import has_map
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, fit_columns, scale_columns
from lacunar.observed.door import validate_X, validate_X_y
from lacunar.observed.rules import (
    COLUMNS,
    COUNT,
    LABELS,
    Array,
    Instance,
    Items,
    Number,
    Rule,
    check_parts,
)

_Floats = NDArray[np.float64]
_MEMORY = 2**31  # memory_limit of the models that are refitted
_AUTO_AVERAGE = 5  # models of options="auto"
DEFAULT_CS = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)


class KarmaSearch(BaseEstimator):  # type: ignore[misc]
    """Search over kernels and C; `estimators_` are the models fitted to all rows with the best of them."""

    expansions_: dict[str, Any]

    _held: ClassVar[dict[str, Rule]] = {
        **{name: Number(finite=False) for name in ("best_score_", "zero_imputation_score_")},
        "classes_": LABELS,
        "best_index_": COUNT,
        "n_iter_": COUNT,
        "columns_": Items(Array("fb", ("d",)), 3),
        "chosen_": Items(Instance(dict), "models"),
        "estimators_": Items(Instance(KarmaBatch), "models"),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "gammas": ["array-like"],
        "Cs": ["array-like"],
        "indicators": ["array-like"],
        "normalize": ["array-like"],
        "count_scale": [StrOptions({"mean", "raw"}), Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "cv": [
            StrOptions({"loo", "holdout"}),
            Interval(Integral, 2, None, closed="left"),
            HasMethods(["split", "get_n_splits"]),
            "array-like",
        ],
        "max_search_rows": [Interval(Integral, 1, None, closed="left")],
        "options": [StrOptions({"auto"}), None],
        "average": [Interval(Integral, 1, None, closed="left")],
        "sparse_missing": [StrOptions({"absent", "nan"})],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def _search(
        self, X: Observed, y: NDArray[Any], targets: _Floats, weight: _Floats, loss_weight: _Floats, codes: Any
    ) -> list[tuple[KernelOptions, float]]:
        """Score the grid, fill the report, return the best kernels with their C."""
        Cs = self._values_of_C()
        kept = search_rows(np.flatnonzero(weight), codes, self.max_search_rows, self.random_state)
        columns = fit_columns(X[kept], weight[kept], standardize=self.standardize)
        rows = scale_columns(X[kept], columns)
        splits = make_splits(self.cv, y, codes, kept, self.random_state)
        labels = (targets[kept], weight[kept], loss_weight[kept], splits)
        n_rows = int(np.count_nonzero(weight))
        grid = self._grid(None, n_rows)
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "verbose": int(self.verbose)}
        scores = [search(SearchData(rows, *labels), grid, Cs, **options)]
        self._fit_expansions(X, weight)
        for kind in self.expansions_:
            more = self._grid(kind, n_rows)
            scores.append(search(SearchData(self._table_of(X[kept], kind), *labels), more, Cs, **options))
            grid = grid + more
        chosen = self._report(grid, Cs, np.concatenate(scores))
        kinds = {options.expand for options, _ in chosen}
        self.expansions_ = {kind: fitted for kind, fitted in self.expansions_.items() if kind in kinds}
        return chosen

    def _grid(self, kind: str | None, n_rows: int) -> list[KernelOptions]:
        """Kernels on one table. Where the Gram of all rows does not fit, only those that a weight table can hold."""
        grid = kernel_grid(self.gammas, self.indicators, self.normalize, self.count_scale, kind)
        if self.options == "auto":
            grid += composed(grid)
        return grid if gram_bytes(n_rows) <= _MEMORY else [options for options in grid if has_map(options)]

    def _fit_expansions(self, X: Observed, weight: _Floats) -> None:
        """Columns and expansions of all rows: a subsample is searched with those the models will use."""
        self.expansions_ = {}
        if self.options != "auto":
            return
        used = np.flatnonzero(weight)
        columns = fit_columns(X[used], weight[used], standardize=self.standardize)
        self.columns_: list[Any] = list(columns)
        rows = scale_columns(X[used], columns)
        found = {kind: fit_expansion(rows, kind) for kind in ("gaussian", "levels")}
        self.expansions_ = {kind: fitted for kind, fitted in found.items() if fitted is not None}

    def _table_of(self, X: Observed, kind: str | None) -> Observed:
        """The table a model on `kind` reads."""
        if kind is None:
            return X
        return expand(scale_columns(X, ColumnScale(*self.columns_)), self.expansions_[kind])

    def _check_loaded(self) -> None:
        """Expansions of this many columns, and a model for every choice that reads its table and says its classes."""
        if "estimators_" not in vars(self):
            return
        d, widths = self.n_features_in_, dict[str | None, int]({None: 1})
        for kind, fitted in self.expansions_.items():
            widths[kind] = check_expansion(fitted, f"expansions_[{kind!r}]", d)
        if len(widths) > 1:
            check_parts(dict(zip(COLUMNS, self.columns_, strict=True)), COLUMNS, "columns_", {"d": d})
        for chosen, model in zip(self.chosen_, self.estimators_, strict=True):
            wanted = d * widths.get(chosen.get("expand"), 0)
            alike = np.array_equal(getattr(self, "classes_", 0), getattr(model, "classes_", 0))
            if getattr(model, "n_features_in_", None) != wanted or not alike:
                raise ValueError(
                    f"estimators_ must be of the columns and classes of the search; {model!r} is not. Fit again"
                )

    def _values_of_C(self) -> _Floats:
        Cs = np.sort(np.asarray(self.Cs, dtype=np.float64).ravel())
        if not len(Cs) or not (np.isfinite(Cs).all() and Cs[0] > 0):
            raise ValueError(
                f"Cs must be one or more finite numbers > 0; got {self.Cs!r}. Leave it out for 1e-3 to 1e3."
            )
        return Cs

    def _report(self, grid: list[KernelOptions], Cs: _Floats, scores: _Floats) -> list[tuple[KernelOptions, float]]:
        self.cv_results_ = results_table(grid, Cs, scores)
        chosen = [(grid[k], float(Cs[c])) for k, c in best_kernels(scores, self._n_models())]
        self.chosen_ = [{"gamma": o.gamma, "C": C, **kernel_params(o)} for o, C in chosen]
        say(self.verbose, "chosen, best first: %s", self.chosen_)
        mean = self.cv_results_["mean_test_score"]
        self.best_index_ = self.cv_results_["params"].index(
            {"gamma": chosen[0][0].gamma, "C": chosen[0][1], **kernel_params(chosen[0][0])}
        )
        self.best_params_ = dict(self.cv_results_["params"][self.best_index_])
        self.best_score_ = float(mean[self.best_index_])
        imputed = (self.cv_results_["param_gamma"] == 1) & ~self.cv_results_["param_indicators"].astype(bool)
        imputed &= (self.cv_results_["param_expand"] == "None") & (self.cv_results_["param_degree"] == 1)
        self.zero_imputation_score_ = float(mean[imputed].max()) if imputed.any() else float("nan")
        return chosen

    def _n_models(self) -> int:
        return max(int(self.average), _AUTO_AVERAGE if self.options == "auto" else 1)

    def _model_params(self, options: KernelOptions) -> dict[str, Any]:
        """Parameters of the refitted model that this search shares with it."""
        shared = {
            name: getattr(self, name)
            for name in ("count_scale", "standardize", "sparse_missing", "random_state", "n_jobs")
        }
        if options.expand is not None:  # columns are standardised before they are expanded, and not after
            shared["standardize"] = False
        return {
            "gamma": options.gamma,
            "indicators": options.indicators,
            "normalize": options.normalize,
            "degree": options.degree,
            **shared,
        }

    def _mean_of_models(self, X: Any, method: str) -> _Floats:
        """Mean over `estimators_` of a method's values."""
        check_is_fitted(self)
        table = validate_X(self, X, reset=False, sparse_missing=self.sparse_missing)
        kinds = [each["expand"] for each in self.chosen_]
        tables = {kind: self._table_of(table, kind) for kind in kinds}
        each = [getattr(model, method)(tables[kind]) for model, kind in zip(self.estimators_, kinds, strict=True)]
        values: _Floats = np.mean(each, axis=0)
        return values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


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
    count_scale, standardize, class_weight, tol, max_iter, sparse_missing, n_jobs
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
        "auto" adds kernels whose columns are expanded, missing entries stay missing: a Gaussian of every column's values, and one indicator
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
        count_scale: float | Literal["mean", "raw"] = "mean",
        standardize: bool = True,
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
        self.count_scale = count_scale
        self.standardize = standardize
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
        return label_of(self.decision_function(X), self.classes_)

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
    count_scale, standardize, sparse_missing, n_jobs
        As in `KarmaRegressor`.
    cv : "loo", "holdout", int, splitter or iterable of splits, default="loo"
        How grid points are scored; "holdout" is a quarter of the rows at random, as in [1]_.
    max_search_rows : int, default=2000
        Above it the search reads this many rows, drawn at random; the model is fitted to all.
        Where their Gram would exceed 2 GiB (11,585 rows), only kernels of gamma 1, 2 and 3 are tried, which "primal" fits.
    average : int, default=1
        Number of best kernels whose predictions are averaged.
    options : {"auto"} or None, default=None
        "auto" adds kernels whose columns are expanded, missing entries stay missing: a Gaussian of every column's values, and one indicator
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
        count_scale: float | Literal["mean", "raw"] = "mean",
        standardize: bool = True,
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
        self.count_scale = count_scale
        self.standardize = standardize
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
