"""Who competes: ours beside what people use today, each an estimator on arrays with NaN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar.compare._tables import UserError

_NEAREST = 10  # columns that predict a hole in iterative imputation: keeps wide tables affordable


@dataclass(frozen=True)
class Learner:
    """A name, whether it is ours, one line on what it does, and how to make one from a seed."""

    name: str
    ours: bool
    about: str
    make: Callable[[int], Any]
    baseline: bool = False


def _karma(task: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from lacunar import karma

        name = "KarmaClassifierCV" if task == "classification" else "KarmaRegressorCV"
        return getattr(karma, name)()

    return make


def _karma_fixed(task: str, gamma: float) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        from lacunar import karma

        name = "KarmaClassifier" if task == "classification" else "KarmaRegressor"
        return getattr(karma, name)(gamma=gamma)

    return make


def _linear(task: str) -> Any:
    if task == "regression":
        return RidgeCV(alphas=np.logspace(-3, 4, 15))
    return GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3)


def _imputed(task: str, indicator: bool = False) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        fill = SimpleImputer(add_indicator=indicator, keep_empty_features=True)
        return make_pipeline(fill, StandardScaler(), _linear(task))

    return make


def _iterative(task: str) -> Callable[[int], Any]:
    def make(seed: int) -> Any:
        fill = IterativeImputer(random_state=seed, n_nearest_features=_NEAREST, keep_empty_features=True)
        return make_pipeline(StandardScaler(), fill, _linear(task))

    return make


_ALSO = {  # at the shell -> name, class without "Classifier" or "Regressor", what it does
    "mc-1": ("mc-1", "MC1", "labels and columns completed as one matrix of low rank, with a column of ones"),
    "mc-b": ("mc-b", "MCB", "labels and columns completed as one matrix of low rank, with a bias"),
    "geom": ("geom", "Geom", "support vectors, every row's margin in its own columns; two classes only"),
}


def _baseline(task: str, name: str) -> Learner:
    if name == "geom" and task == "regression":
        raise UserError("--also geom: it tells two classes apart, and the task is regression. Leave it out.", 2)
    shown, stem, about = _ALSO[name]
    kind = "Classifier" if task == "classification" else "Regressor"

    def make(seed: int) -> Any:
        from lacunar import baselines

        return getattr(baselines, stem + kind)(**({} if name == "geom" else {"random_state": seed}))

    return Learner(shown, False, about, make)


def learners(task: str, also: Sequence[str] = ()) -> list[Learner]:
    """The competitors for "classification" or "regression", ours first; `also` names more: "mc-1", "mc-b", "geom".

    Examples
    --------
    >>> from lacunar.compare import learners
    >>> [learner.name for learner in learners("regression")][:2]
    ['KARMA', 'KARMA gamma=2']
    """
    classes = task == "classification"
    model = "logistic regression" if classes else "ridge regression"
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    dummy = DummyClassifier if classes else DummyRegressor
    return [
        Learner("KARMA", True, "kernel, gamma and C chosen by exact leave-one-out; nothing imputed", _karma(task)),
        Learner("KARMA gamma=2", True, "fixed kernel, C = 1; nothing imputed", _karma_fixed(task, 2)),
        Learner("mean + linear", False, f"column means into the holes, {model}", _imputed(task)),
        Learner("mean + flags + linear", False, f"the same with a flag for each hole, {model}", _imputed(task, True)),
        Learner("iterative + linear", False, f"holes predicted from other columns in turn, {model}", _iterative(task)),
        Learner(
            "gradient boosting",
            False,
            "HistGradientBoosting, holes sent down a branch",
            lambda seed: boosting(random_state=seed),
        ),
        *(_baseline(task, name) for name in dict.fromkeys(also)),
        Learner(
            "no columns",
            False,
            "the commonest class" if classes else "the mean of the target",
            lambda seed: dummy(),
            True,
        ),
    ]


def own_learner(task: str, name: str) -> Learner:
    """One of ours by its short name at the shell: "karma" or "karma-2"."""
    return learners(task)[{"karma": 0, "karma-2": 1}[name]]
