"""`KarmaStackClassifier` and `KarmaStackRegressor`: scikit-learn's stacking with members that know holes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from lacunar import KarmaClassifierCV, KarmaRegressorCV
from lacunar._snapshot import all_or_nothing
from lacunar.stack._members import DefaultMembers, completed, dense, weighted_rows


class KarmaStackClassifier(DefaultMembers, StackingClassifier):  # type: ignore[misc]
    """KARMA, a low-rank completion with a linear model, and any others, combined on out-of-fold predictions.

    It is `sklearn.ensemble.StackingClassifier` with members of its own by default, and follows the better of them. KARMA is that
    where holes have structure, completion where entries of a low-rank table are missing at random.

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
    >>> from lacunar.stack import KarmaStackClassifier
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
        from lacunar.stack._linear import RowLogistic

        return [("karma", KarmaClassifierCV()), ("completion", completed(RowLogistic(max_iter=1000)))]

    def _validate_final_estimator(self) -> None:
        from lacunar.stack._linear import RowLogistic

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
            check_array(y, ensure_2d=False, dtype=None, input_name="y")
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
    >>> from lacunar.stack import KarmaStackRegressor
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
        from lacunar.stack._linear import RowRidge

        return [("karma", KarmaRegressorCV()), ("completion", completed(RowRidge(np.logspace(-3, 4, 15))))]

    def _validate_final_estimator(self) -> None:
        from lacunar.stack._linear import RowLeastSquares

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
