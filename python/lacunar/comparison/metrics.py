"""Scores of predictions: what decides a comparison, and what is told beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from lacunar.comparison.cells import UserError

Chances = NDArray[np.floating[Any]]  # (rows, classes)


@dataclass(frozen=True)
class Metric:
    """A score: its name in the table, whether less is better, and what computes it from y, predictions, probabilities
    and classes.
    """

    name: str
    lower: bool
    of: Callable[[NDArray[Any], NDArray[Any], Chances | None, list[str]], float]

    @property
    def sign(self) -> int:
        """1 where less is better, -1 where more is."""
        return 1 if self.lower else -1


def _of_labels(function: Callable[..., float]) -> Callable[..., float]:
    return lambda y, predicted, proba, classes: float(function(y, predicted))


def _of_chances(function: Callable[..., float]) -> Callable[..., float]:
    return lambda y, predicted, proba, classes: np.nan if proba is None else float(function(y, proba, classes))


def _log_loss(y: NDArray[Any], proba: Chances, classes: list[str]) -> Any:
    """As scikit-learn's, whose checks of every call cost a hundred times the sum."""
    least = max(float(np.finfo(proba.dtype).eps), 1e-15)
    right = proba[np.arange(len(y)), np.searchsorted(classes, y)].astype(np.float64)
    return -np.log(np.clip(right, least, 1 - least)).mean()


def _brier(y: NDArray[Any], proba: Chances, classes: list[str]) -> Any:
    return ((proba - (y[:, None] == np.array(classes))) ** 2).sum(axis=1).mean()


def _auc(y: NDArray[Any], proba: Chances, classes: list[str]) -> Any:
    """Mean over the classes of one against the rest; classes that the rows lack are left out."""
    flags = y[:, None] == np.array(classes)
    scored = [k for k in range(len(classes)) if flags[:, k].any() and not flags[:, k].all()]
    scored = scored[:1] if len(classes) == 2 else scored
    return np.mean([metrics.roc_auc_score(flags[:, k], proba[:, k]) for k in scored]) if scored else np.nan


def _balanced_error(y: NDArray[Any], predicted: NDArray[Any]) -> Any:
    return 1 - metrics.recall_score(y, predicted, labels=np.unique(y), average="macro")


METRICS: dict[str, dict[str, Metric]] = {
    "classification": {
        "error": Metric("error rate", True, _of_labels(lambda y, p: np.mean(y != p))),
        "balanced-error": Metric("balanced error", True, _of_labels(_balanced_error)),
        "log-loss": Metric("log loss", True, _of_chances(_log_loss)),
        "brier": Metric("Brier score", True, _of_chances(_brier)),
        "auc": Metric("AUC", False, _of_chances(_auc)),
    },
    "regression": {
        "rmse": Metric("RMSE", True, _of_labels(metrics.root_mean_squared_error)),
        "mae": Metric("MAE", True, _of_labels(metrics.mean_absolute_error)),
        "r2": Metric("R²", False, _of_labels(metrics.r2_score)),
    },
}
_SECOND = {"classification": ("auc", "log-loss"), "regression": ("r2", "r2")}  # of two classes, of more


def chosen_metrics(task: str, wish: str | None, n_classes: int) -> tuple[Metric, Metric]:
    """The metric that decides, and one beside it."""
    known = METRICS[task]
    first = next(iter(known)) if wish is None else wish
    if first not in known:
        raise UserError(f"--metric {wish!r}: for {task} there are {', '.join(known)}.", 2)
    second = _SECOND[task][n_classes > 2]
    return known[first], known[next(iter(known)) if second == first else second]
