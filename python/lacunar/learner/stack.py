"""`KarmaStackClassifier` and `KarmaStackRegressor`: scikit-learn's stacking with members that take missing entries."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from lacunar._products import row_product
from lacunar._snapshot import all_or_nothing
from lacunar.karma import KarmaClassifierCV, KarmaRegressorCV
from lacunar.lowrank import LowRankImputer
from lacunar.observed import Observed
from lacunar.observed.door import check_target


def dense(X: Any) -> Any:
    """What scikit-learn's folds can cut: an Observed becomes an array with NaN, anything else stays."""
    return X.to_dense() if isinstance(X, Observed) else X


def weighted_rows(X: Any, y: Any, fit_params: dict[str, Any], cv: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Rows without those of weight 0, which would leave folds with one class; all where `cv` names rows by number."""
    weight = fit_params.get("sample_weight")
    if weight is None or not (cv is None or isinstance(cv, Integral)):
        return X, y, fit_params
    weight = np.asarray(weight)
    if weight.shape != (len(y),) or weight.all() or not weight.any():
        return X, y, fit_params  # what does not fit is refused by the members
    kept = np.flatnonzero(weight)
    return _safe_indexing(X, kept), _safe_indexing(y, kept), {**fit_params, "sample_weight": weight[kept]}


class CompletedModel(Pipeline):  # type: ignore[misc]
    """A pipeline whose `fit` hands sample_weight to its last step, as a stack without metadata routing asks of members."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> CompletedModel:
        if sample_weight is not None:
            params[f"{self.steps[-1][0]}__sample_weight"] = sample_weight
        super().fit(X, y, **params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # of all steps; only the first sees sparse input and missing entries
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def completed(linear: Any) -> CompletedModel:
    """Low-rank completion, columns of unit variance, then a linear model."""
    steps = [("completion", LowRankImputer(random_state=0)), ("scale", StandardScaler()), ("linear", linear)]
    return CompletedModel(steps)


class DefaultMembers:
    """Comes before a Stacking class among the bases: `estimators=None` stands for `_default_members()` wherever the base reads `estimators`."""

    estimators: Any

    def _default_members(self) -> list[tuple[str, Any]]:
        raise NotImplementedError

    def _explicit(self) -> Any:
        """A shallow copy that names its default members."""
        twin = copy(self)
        twin.estimators = self._default_members()
        return twin

    def _validate_estimators(self) -> Any:
        if self.estimators is None:
            return self._explicit()._validate_estimators()
        return super()._validate_estimators()  # type: ignore[misc]

    @property
    def named_estimators(self) -> Any:
        """Members by name, not fitted."""
        return self._explicit().named_estimators if self.estimators is None else super().named_estimators  # type: ignore[misc]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: class and member, and the number of the class where there are more than two.

        Parameters
        ----------
        input_features : object
            Ignored.

        Returns
        -------
        names : ndarray of str
        """
        if self.estimators is None:
            return np.asarray(self._explicit().get_feature_names_out(input_features))
        return np.asarray(super().get_feature_names_out(input_features))  # type: ignore[misc]

    def get_metadata_routing(self) -> Any:
        """Routing of the members; see scikit-learn's user guide.

        Returns
        -------
        routing : MetadataRouter
        """
        if self.estimators is None:
            return self._explicit().get_metadata_routing()
        return super().get_metadata_routing()  # type: ignore[misc]

    def __sklearn_tags__(self) -> Any:
        if self.estimators is not None:
            return super().__sklearn_tags__()  # type: ignore[misc]
        tags = self._explicit().__sklearn_tags__()
        tags.input_tags.sparse = True  # the default members take it, which scikit-learn 1.6.0 does not ask them
        return tags


class RowLogistic(LogisticRegression):  # type: ignore[misc]
    """scikit-learn's logistic regression, evaluated row by row."""

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Values (m,), or (m, k) for more than two classes."""
        values: NDArray[np.float64] = row_product(np.asarray(X), self.coef_.T) + self.intercept_
        return values[:, 0] if values.shape[1] == 1 else values


class _RowValues:
    """Comes before a linear regression among the bases of a class."""

    coef_: NDArray[np.float64]
    intercept_: Any

    def _decision_function(self, X: Any) -> NDArray[np.float64]:
        made: NDArray[np.float64] = row_product(np.asarray(X), self.coef_.T) + self.intercept_
        return made


class RowRidge(_RowValues, RidgeCV):  # type: ignore[misc]
    """scikit-learn's ridge regression, evaluated row by row."""


class RowLeastSquares(_RowValues, LinearRegression):  # type: ignore[misc]
    """scikit-learn's least squares, evaluated row by row."""


class KarmaStackClassifier(DefaultMembers, StackingClassifier):  # type: ignore[misc]
    """KARMA, a low-rank completion with a linear model, and any others, combined on out-of-fold predictions.

    It is `sklearn.ensemble.StackingClassifier` with members of its own by default, and follows the better of them. KARMA is that
    where what is missing has structure, completion where entries of a low-rank table are missing at random.

    Parameters
    ----------
    estimators : list of (str, estimator), default=None
        Members; None is `KarmaClassifierCV()` and `LowRankImputer()` with a logistic regression.
    final_estimator : estimator, default=None
        Combines the members' out-of-fold decision values or probabilities; None is a logistic regression.
    cv, stack_method, n_jobs, passthrough, verbose
        As in `sklearn.ensemble.StackingClassifier`.

    Attributes
    ----------
    estimators_, final_estimator_, classes_, named_estimators_, n_features_in_
        As there.

    Notes
    -----
    `sample_weight` reaches KARMA, the linear model behind the completion and the combination; the completion itself weighs
    rows equally. A stack may hold any scikit-learn model, so `save_model` does not write it: save its members, or use
    skops or joblib. Folds + 1 fits of every member.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.learner import KarmaStackClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 6))
    >>> y = X[:, 0] > 0
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> bool(KarmaStackClassifier().fit(X[:90], y[:90]).score(X[90:], y[90:]) > 0.8)
    True
    """

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            estimators,
            final_estimator,
            cv=cv,
            stack_method=stack_method,
            n_jobs=n_jobs,
            passthrough=passthrough,
            verbose=verbose,
        )

    _parameter_constraints = {**StackingClassifier._parameter_constraints, "estimators": [list, None]}  # noqa: RUF012

    def _default_members(self) -> list[tuple[str, Any]]:
        return [("karma", KarmaClassifierCV()), ("completion", completed(RowLogistic(max_iter=1000)))]

    def _validate_final_estimator(self) -> None:
        if self.final_estimator is None:
            self._clone_final_estimator(default=RowLogistic())
        else:
            super()._validate_final_estimator()

    @all_or_nothing
    def fit(self, X: Any, y: Any, **fit_params: Any) -> KarmaStackClassifier:
        """Fit the members, and the combination on their out-of-fold predictions.

        Parameters
        ----------
        X : array-like with NaN, frame, or Observed, shape (n, d)
        y : array-like of shape (n,)
        **fit_params : dict
            Routed to the members.

        Returns
        -------
        self : KarmaStackClassifier
        """
        if y is not None:
            check_target(y)
        given = y
        X, y, fit_params = weighted_rows(dense(X), y, fit_params, self.cv)
        if y is not given and len(np.unique(y)) == 1:
            raise ValueError(
                f"sample_weight must be positive in rows of at least two classes; got {np.unique(y)[0]!r} only. Give rows of another class a "
                "weight, or use KarmaClassifierCV, which takes one class."
            )
        super().fit(X, y, **fit_params)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Members' predictions (m, members or members x classes).

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (m, members) or (m, members x classes)
        """
        made: NDArray[np.float64] = super().transform(dense(X))
        return made

    def predict(self, X: Any, **predict_params: Any) -> NDArray[Any]:
        """Label of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.
        **predict_params : dict
            For the combination.

        Returns
        -------
        labels : ndarray of shape (m,)
        """
        check_is_fitted(self)
        made: NDArray[Any] = super().predict(dense(X), **predict_params)
        return made


class KarmaStackRegressor(DefaultMembers, StackingRegressor):  # type: ignore[misc]
    """KARMA, a low-rank completion with a ridge, and any others, combined on out-of-fold predictions.

    `sklearn.ensemble.StackingRegressor` with members of its own by default; see `KarmaStackClassifier`.

    Parameters
    ----------
    estimators : list of (str, estimator), default=None
        Members; None is `KarmaRegressorCV()` and `LowRankImputer()` with a ridge.
    final_estimator : estimator, default=None
        Combines their out-of-fold predictions; None is least squares with weights that are not negative.
    cv, n_jobs, passthrough, verbose
        As in `sklearn.ensemble.StackingRegressor`.

    Attributes
    ----------
    estimators_, final_estimator_, named_estimators_, n_features_in_
        As there; `final_estimator_.coef_` are the weights of the members.

    Notes
    -----
    `sample_weight` reaches KARMA, the linear model behind the completion and the combination; the completion itself weighs
    rows equally. A stack may hold any scikit-learn model, so `save_model` does not write it: save its members, or use
    skops or joblib. Folds + 1 fits of every member.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.learner import KarmaStackRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 6))
    >>> y = X[:, 0].copy()
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> bool(KarmaStackRegressor().fit(X[:90], y[:90]).score(X[90:], y[90:]) > 0.8)
    True
    """

    def __init__(
        self,
        estimators: Any = None,
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(estimators, final_estimator, cv=cv, n_jobs=n_jobs, passthrough=passthrough, verbose=verbose)

    _parameter_constraints = {**StackingRegressor._parameter_constraints, "estimators": [list, None]}  # noqa: RUF012

    def _default_members(self) -> list[tuple[str, Any]]:
        return [("karma", KarmaRegressorCV()), ("completion", completed(RowRidge(np.logspace(-3, 4, 15))))]

    def _validate_final_estimator(self) -> None:
        self._clone_final_estimator(default=RowLeastSquares(positive=True))

    @all_or_nothing
    def fit(self, X: Any, y: Any, **fit_params: Any) -> KarmaStackRegressor:
        """Fit the members, and the combination on their out-of-fold predictions.

        Parameters
        ----------
        X : array-like with NaN, frame, or Observed, shape (n, d)
        y : array-like of shape (n,)
        **fit_params : dict
            Routed to the members.

        Returns
        -------
        self : KarmaStackRegressor
        """
        X, y, fit_params = weighted_rows(dense(X), y, fit_params, self.cv)
        super().fit(X, y, **fit_params)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Members' predictions (m, members).

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.

        Returns
        -------
        predictions : ndarray of shape (m, members)
        """
        made: NDArray[np.float64] = super().transform(dense(X))
        return made

    def predict(self, X: Any, **predict_params: Any) -> NDArray[np.float64]:
        """Predicted number of every row.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (m, d)
            Rows.
        **predict_params : dict
            For the combination.

        Returns
        -------
        values : ndarray of shape (m,)
        """
        check_is_fitted(self)
        made: NDArray[np.float64] = super().predict(dense(X), **predict_params)
        return made
