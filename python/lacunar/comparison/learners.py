"""The learners that are compared: ours, what people do today, and boosting libraries where they are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, count
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # its import lets the next one be
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.svm import SVC, SVR

from lacunar.comparison.cells import UserError, cut

_NEAREST = 10  # columns that predict a missing entry in iterative imputation: keeps wide tables affordable
_SVM_ROWS = 10_000  # beyond which an SVM takes minutes, in one call that no time limit can end
SHORT = {"karma-2": "KARMA gamma=2", "boosting": "gradient boosting"}  # more names at the shell


@dataclass(frozen=True)
class Learner:
    """A competitor: its name, whether it is of this package, one line on what it does, and a
    function that makes one from a seed.

    `frames` says that it takes the columns of the file as they are, text and dates included;
    `seconds`, of an estimator with a parameter `time_limit`, the most that a fit may take;
    `most_rows`, the rows above which it is left out, because its cost grows with their square;
    `slow`, that it is tried after the others, because a fit may be long on few rows too; `own`,
    that it is an estimator of the user's.
    """

    name: str
    ours: bool
    about: str
    make: Callable[[int], Any]
    baseline: bool = False
    frames: bool = False
    seconds: float | None = None
    most_rows: int | None = None
    slow: bool = False
    own: bool = False


def of_the_user(estimators: Any, taken: list[str]) -> list[Learner]:
    """Competitors of a user's own: estimators under the names of their classes, or a dict of them by name. Raises
    TypeError, ValueError.
    """
    named = estimators if isinstance(estimators, Mapping) else None
    items = [*named.items()] if named is not None else [(type(e).__name__, e) for e in estimators]
    used, learners = set(taken), []
    for name, estimator in items:
        if isinstance(estimator, type) or not all(
            hasattr(estimator, verb) for verb in ("fit", "predict", "get_params")
        ):
            raise TypeError(
                f"learners must be estimators of scikit-learn's kind; got {cut(repr(estimator))}. Make an instance of one."
            )
        if named is not None and name in used:
            raise ValueError(
                f"learners must have names of their own; got {name!r}, which another learner has. Choose another."
            )
        title = next(t for t in chain([name], (f"{name} {k}" for k in count(2))) if t not in used)
        used.add(title)
        learners.append(Learner(title, False, "an estimator of your own", partial(_copy, estimator), own=True))
    return learners


def _copy(estimator: Any, seed: int) -> Any:
    """A clone, whose seed is set if it is None."""
    copy = clone(estimator)
    seeds = {
        name: seed
        for name, value in copy.get_params().items()
        if name.rpartition("__")[2] == "random_state" and value is None
    }
    return copy.set_params(**seeds)


def _ours(module: str, name: str, seed: int, **options: Any) -> Any:
    return getattr(import_module(f"lacunar.{module}"), name)(random_state=seed, **options)


def _linear(task: str) -> Any:
    if task == "regression":
        return RidgeCV(alphas=np.logspace(-3, 4, 15))
    return GridSearchCV(LogisticRegression(max_iter=500), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=3)


def _imputed(task: str, indicator: bool, seed: int) -> Any:
    fill = SimpleImputer(add_indicator=indicator, keep_empty_features=True)
    return make_pipeline(fill, StandardScaler(), _linear(task))


def _iterative(task: str, seed: int) -> Any:
    fill = IterativeImputer(random_state=seed, n_nearest_features=_NEAREST, keep_empty_features=True)
    return make_pipeline(StandardScaler(), fill, _linear(task))


def _svm(task: str, seed: int) -> Any:
    """C = 1 and scikit-learn's width of the kernel: on standardised columns, and a standardised target, a fair guess."""
    head = SVC() if task == "classification" else TransformedTargetRegressor(SVR(), transformer=StandardScaler())
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler(), head)


class _EncodedLabels:
    """Classes as numbers for a library that wants them so."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Any, y: Any) -> _EncodedLabels:
        self.encoder_ = LabelEncoder().fit(y)
        self.classes_ = self.encoder_.classes_
        self.model.fit(X, self.encoder_.transform(y))
        return self

    def predict(self, X: Any) -> Any:
        return self.encoder_.inverse_transform(np.ravel(self.model.predict(X)).astype(int))

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X)


def _library(module: str, stem: str, task: str, options: dict[str, Any], seed: int) -> Any:
    model = getattr(import_module(module), stem + _ending(task))(random_state=seed, **options)
    return _EncodedLabels(model) if task == "classification" else model


_LIBRARIES = {  # name -> module, class without its ending, options that silence it and keep it to one thread
    "LightGBM": ("lightgbm", "LGBM", {"verbose": -1, "n_jobs": 1}),
    "XGBoost": ("xgboost", "XGB", {"verbosity": 0, "n_jobs": 1}),
    "CatBoost": ("catboost", "CatBoost", {"verbose": 0, "thread_count": 1, "allow_writing_files": False}),
}


def _ending(task: str) -> str:
    return "Classifier" if task == "classification" else "Regressor"


def learners(task: str, *, seconds: float | None = None) -> list[Learner]:
    """The competitors for "classification" or "regression", ours first.

    `seconds` is the time that a fit of the one learner may take.

    Examples
    --------
    >>> from lacunar.comparison import learners
    >>> [learner.name for learner in learners("regression")][:2]
    ['lacunar', 'KARMA']
    """
    classes, ending = task == "classification", _ending(task)
    model = "logistic regression" if classes else "ridge regression"
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    forest = RandomForestClassifier if classes else RandomForestRegressor
    dummy = DummyClassifier if classes else DummyRegressor
    return [
        Learner(
            "lacunar", True, "kernels, a low-rank Gaussian, boosting, a forest and a linear model, pooled; what fills gaps is weighed against what does not",
            partial(_ours, "learner", f"Lacunar{ending}", time_limit=seconds), frames=True, seconds=seconds,
        ),
        Learner("KARMA", True, "kernels of shared columns, and of column means beside flags; chosen by exact leave-one-out, the best averaged", partial(_ours, "karma", f"Karma{ending}CV")),
        Learner("KARMA gamma=2", True, "a fixed kernel of shared columns, C = 1", partial(_ours, "karma", f"Karma{ending}", gamma=2)),
        Learner("mean + linear", False, f"column means for what is missing, {model}", partial(_imputed, task, False)),
        Learner("mean + flags + linear", False, f"the same with a flag for each missing entry, {model}", partial(_imputed, task, True)),
        Learner("iterative + linear", False, f"missing entries predicted from other columns in turn, {model}", partial(_iterative, task), slow=True),
        Learner("mean + SVM", False, "column means for what is missing, a support vector machine, C = 1", partial(_svm, task), most_rows=_SVM_ROWS),
        Learner(
            "random forest", False, "scikit-learn's, 100 trees, missing entries sent down a branch", lambda seed: forest(random_state=seed),
        ),
        Learner(
            "gradient boosting", False, "scikit-learn's HistGradientBoosting, missing entries sent down a branch",
            lambda seed: boosting(random_state=seed),
        ),
        *(
            Learner(name, False, f"{name} with its defaults", partial(_library, module, stem, task, options))
            for name, (module, stem, options) in _LIBRARIES.items()
            if find_spec(module) is not None
        ),
        Learner("no columns", False, "the commonest class" if classes else "the mean of the target", lambda seed: dummy(), True),
    ]  # fmt: skip


def learner_named(task: str, name: str) -> Learner:
    """The learner of this name: as the table of scores prints it, in any case, or short as at the shell. Raises
    UserError.
    """
    key = SHORT.get(name.lower(), name).lower()
    known = {learner.name.lower(): learner for learner in learners(task)}
    if key not in known:
        close = get_close_matches(key, known, 1)
        hint = f"Did you mean {known[close[0]].name!r}? " if close else ""
        names = ", ".join(repr(learner.name) for learner in [*known.values()])
        raise UserError(
            f"--learner {name!r}: no learner of this name is here. {hint}There are {names}.",
            2,
        )
    return known[key]
