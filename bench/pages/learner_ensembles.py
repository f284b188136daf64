"""Ensembles beside ours in `learner.py`: stacking by scikit-learn, and AutoGluon and FLAML in the seconds that ours took."""

from __future__ import annotations

import tempfile
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
)
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SHORTEST = 2.0  # seconds: in less, neither ends with a model
LABEL = "its target"


def stacking(X: Any, y: Any, classes: bool) -> Any:
    """Boosting, a forest and a linear model, weighted by a linear model over five folds."""
    mean, flags = SimpleImputer(keep_empty_features=True), SimpleImputer(keep_empty_features=True, add_indicator=True)
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    forest = RandomForestClassifier if classes else RandomForestRegressor
    linear = LogisticRegression(max_iter=1000) if classes else RidgeCV(np.logspace(-2, 4, 13))
    members = [
        ("boosting", make_pipeline(VarianceThreshold(), boosting(random_state=0))),  # a fold may lack a column
        ("forest", make_pipeline(mean, forest(200, random_state=0, max_features="sqrt" if classes else 0.33))),
        ("linear", make_pipeline(flags, StandardScaler(), linear)),
    ]
    return (StackingClassifier if classes else StackingRegressor)(members, cv=5)


class AutoGluon(BaseEstimator):
    """Its quick preset on one processor; models whose library is not there are passed over by itself."""

    def __init__(self, classes: bool, seconds: float) -> None:
        self.classes = classes
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> AutoGluon:
        predictor = import_module("autogluon.tabular").TabularPredictor
        metric = "log_loss" if self.classes else "root_mean_squared_error"
        problem = ("binary" if len(np.unique(y)) == 2 else "multiclass") if self.classes else "regression"
        with tempfile.TemporaryDirectory() as folder:
            model = predictor(LABEL, eval_metric=metric, problem_type=problem, verbosity=0, path=folder)
            limits = {"time_limit": max(self.seconds, SHORTEST), "num_cpus": 1, "num_gpus": 0}
            model.fit(_frame(X).assign(**{LABEL: y}), presets="medium_quality", **limits)
            model.persist()
        self.model_ = model
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(_frame(X)).to_numpy()

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(_frame(X)).to_numpy()


class Flaml(BaseEstimator):
    """Its search over boosting libraries, forests and linear models, with its own score."""

    def __init__(self, classes: bool, seconds: float) -> None:
        self.classes = classes
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> Flaml:
        self.model_ = import_module("flaml").AutoML()
        task = "classification" if self.classes else "regression"
        budget = max(self.seconds, SHORTEST)
        self.model_.fit(_frame(X), y, task=task, time_budget=budget, n_jobs=1, verbose=0, seed=0)
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(_frame(X))

    def predict_proba(self, X: Any) -> Any:
        return self.model_.predict_proba(_frame(X))


def _frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X).rename(columns=str)
