"""Columns that know the target too well: those that may not be known when a prediction is wanted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.model_selection import cross_val_predict
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from lacunar.comparison.cells import as_numbers, cut

if TYPE_CHECKING:
    import pandas as pd

_ROWS, _COLUMNS, _FEWEST = 2000, 300, 30  # that are looked at, at most and at least
_ALONE = 0.05  # of the error without columns, or of the variance: what one column alone may leave
_ONE_CLASS = 0.98  # share of the rows with a column present that are of one class
_CHANCE = 1e-4  # that this happens by accident, over all columns
_TIME = re.compile(
    r"(^|[_ .-])(time|days|months|weeks|duration|tenure|follow.?up|fu|survival|os|pfs)($|[_ .-])|follow.?up",
    re.IGNORECASE,
)
_EVENT = re.compile(r"death|died|dead|event|surviv|relapse|recurr|churn|censor|default|fail|status", re.IGNORECASE)


def leaks(frame: pd.DataFrame, y: NDArray[Any], target: str, task: str) -> list[str]:
    """Sentences on columns that may not be known when a prediction is wanted, each with its remedy. O(d n log n) on at
    most 2,000 rows.
    """
    if len(y) < _FEWEST:
        return []
    rows = np.linspace(0, len(y) - 1, min(len(y), _ROWS)).astype(int)
    sample, known = frame.iloc[rows, :_COLUMNS], y[rows]
    sentences = []
    for name in sample.columns:
        why = _one_class(sample[name], known, sample.shape[1]) if task == "classification" else None
        why = why or _alone(sample[name], known, task)
        if why:
            sentences.append(
                f"{cut(name)} {why}. If it is not known before {cut(target)} is, it gives the target away: --drop {cut(name)!r} leaves it out."
            )
    if frame.shape[1] > _COLUMNS:
        sentences.append(
            f"only the first {_COLUMNS} columns were searched for ones that give {cut(target)} away. Leave columns out with --drop."
        )
    return [*sentences, *_follow_up(frame, y, target, task)]


def _alone(column: pd.Series[Any], y: NDArray[Any], task: str) -> str | None:
    levels = as_numbers(column)
    if not np.isfinite(levels).any():
        return None
    leaf = max(2, len(y) // 200)
    kind = DecisionTreeClassifier if task == "classification" else DecisionTreeRegressor
    counts = np.unique(y, return_counts=True)[1]
    if task == "classification" and counts.min() < 3:
        return None
    predicted = cross_val_predict(kind(min_samples_leaf=leaf, random_state=0), levels[:, None], y, cv=3)
    if task == "classification":
        wrong, without = float(np.mean(predicted != y)), 1 - counts.max() / len(y)
        return f"alone predicts {1 - wrong:.0%} of the rows right" if wrong <= _ALONE * without else None
    unexplained = float(np.mean((predicted - y) ** 2) / max(float(np.var(y)), np.finfo(float).tiny))
    return f"alone explains {1 - unexplained:.1%} of the variance" if unexplained <= _ALONE / 5 else None


def _one_class(column: pd.Series[Any], y: NDArray[Any], d: int) -> str | None:
    seen = column.notna().to_numpy()
    if seen.all() or seen.sum() < 10:
        return None
    labels, counts = np.unique(y[seen], return_counts=True)
    best, prior = int(counts.argmax()), float(np.mean(y == labels[counts.argmax()]))
    if counts[best] < _ONE_CLASS * seen.sum():
        return None
    chance = stats.binom.sf(counts[best] - 1, int(seen.sum()), prior) * d
    return f"is present almost only where the target is {cut(labels[best])!r}" if chance < _CHANCE else None


def _follow_up(frame: pd.DataFrame, y: NDArray[Any], target: str, task: str) -> list[str]:
    if task != "classification" or len(np.unique(y)) != 2 or not _EVENT.search(target):
        return []
    times = [name for name in frame.columns if frame[name].dtype.kind in "iuf" and _TIME.search(str(name))]
    return [
        f"{cut(name)} may be the time until {cut(target)} or the end of observation, which nobody knows beforehand. --drop {cut(name)!r} "
        "leaves it out; to predict such times take a library for survival analysis."
        for name in times
    ]
