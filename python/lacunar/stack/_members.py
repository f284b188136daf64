"""What both stacks share: members of their own where none are given, weights that reach them, rows scikit-learn can cut."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from lacunar.observed import Observed


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
        tags = super().__sklearn_tags__()  # of all steps; only the first sees sparse input and holes
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def completed(linear: Any) -> CompletedModel:
    """Low-rank completion, columns of unit variance, then a linear model."""
    from sklearn.preprocessing import StandardScaler

    from lacunar.stack._completion import LowRankImputer

    steps = [("completion", LowRankImputer(random_state=0)), ("scale", StandardScaler()), ("linear", linear)]
    return CompletedModel(steps)


class DefaultMembers:
    """Left of a Stacking class: `estimators=None` stands for `_default_members()` wherever the base reads `estimators`."""

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
