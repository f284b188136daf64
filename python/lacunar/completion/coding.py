"""Labels of pairs as signs: two classes, or one question for each threshold; and probabilities of classes from those of signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lacunar._typing import Floats
from lacunar.observed.door import plain_target, read_labels, read_target

Labels = NDArray[Any]
MOST_LEVELS = 20  # of ratings, each of which but the first is a question of its own
_LEAST_SHARE = 0.05  # of probability that several classes have in even parts at least


class Coding(NamedTuple):
    """The coding of labels as signs: two classes, or one question for each threshold.

    classes: (negative, positive), labels 0..L of thresholds, or ratings. settled: whether a negative label was seen: 1
    alone may belong to 0/1 or to -1/1. rated: whether classes are ratings, of which thresholds are all but the lowest.
    """

    classes: Labels
    settled: bool
    thresholds: Floats | None
    rated: bool = False

    @property
    def n_tasks(self) -> int:
        """Binary questions asked: one, or one a threshold."""
        return 1 if self.thresholds is None else len(self.thresholds)

    def signs(self, target: Labels) -> Floats:
        """-1 and +1, (n, L)."""
        if self.thresholds is None or self.rated:
            self._refuse_unknown(target)
        if self.thresholds is not None:
            return np.where(np.asarray(target, dtype=np.float64)[:, None] >= self.thresholds, 1.0, -1.0)
        return np.where(target == self.classes[1], 1.0, -1.0)[:, None]

    def _refuse_unknown(self, target: Labels) -> None:
        unknown = np.flatnonzero(~np.logical_or.reduce([target == label for label in self.classes]))
        if unknown.size:
            known = " and ".join(map(str, self.classes)) if self.thresholds is None else self.classes.tolist()
            kind, remedy = (
                ("ratings", "name all by classes=") if self.rated else ("labels", "use thresholds= for ratings")
            )
            raise ValueError(
                f"y must hold the {kind} {known} of what came before; got {target[unknown[0]]} at position "
                f"{unknown[0]}. Recode it, {remedy}, or fit again."
            )

    def labels(self, signs: Floats) -> Labels:
        """Labels (n,) of predicted signs (n, L): for thresholds, the class of how many are reached."""
        labels: Labels = self.classes[(signs > 0).sum(axis=1)]
        return labels

    def coded(self, target: Labels) -> Labels:
        """Observed labels in the terms of `labels`."""
        return target if self.thresholds is None or self.rated else self.labels(self.signs(target))


def read_thresholds(thresholds: str | ArrayLike | None) -> Floats | None:
    """Thresholds as ascending numbers (L,), None for None; ValueError for what is no threshold."""
    if thresholds is None:
        return None
    try:
        bounds = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    except (TypeError, ValueError):
        bounds = np.zeros(0)
    if bounds.ndim != 1 or not bounds.size or not np.isfinite(bounds).all() or (np.diff(bounds) <= 0).any():
        raise ValueError(
            f"thresholds must be a finite number or ascending ones; got {thresholds!r}. Use 4, or [2, 3, 4, 5]."
        )
    return bounds


def rating_levels(y: ArrayLike, classes: Sequence[Any] | None) -> Labels:
    """The ratings there are, ascending: named, or those of the first batch."""
    ratings = read_target(y, item="position").values if classes is None else np.asarray(plain_target(list(classes)))
    if ratings.dtype.kind not in "iufb":
        raise TypeError(f"y must be ratings, numbers, with thresholds='auto'; got dtype {ratings.dtype}. Encode them.")
    levels = np.unique(ratings)
    if not 2 <= len(levels) <= MOST_LEVELS or not np.isfinite(levels.astype(np.float64)).all():
        raise ValueError(
            f"thresholds='auto' must find 2 to {MOST_LEVELS} ratings in the first batch; got {len(levels)}. Name them "
            "by classes=, or pass thresholds."
        )
    return levels


def read_y(y: Any, n: int, coding: Coding | None, classes: Sequence[Any] | None = None) -> tuple[Floats, Coding]:
    """Signs (n, L) of the labels, and the coding as it is after them."""
    target = read_labels(y, n)
    if coding is not None and coding.thresholds is not None:
        if target.dtype.kind not in "iufb":
            raise TypeError(f"y must be ratings, numbers, with thresholds; got dtype {target.dtype}. Encode them.")
        if coding.rated and classes is not None and not np.array_equal(rating_levels(y, classes), coding.classes):
            _refuse_classes(coding, classes)
        return coding.signs(target), coding
    if classes is not None:
        coding = _named(classes, coding)
    elif coding is None:
        coding = _two_classes(target)
    elif not coding.settled and (target.dtype.kind == "b" or not (target == 1).all()):
        settled = _two_classes(target)
        coding = settled if settled.classes[1] == 1 else coding  # where it is not, signs() says so
    return coding.signs(target), coding


def _named(classes: Sequence[Any], coding: Coding | None) -> Coding:
    labels = np.unique(np.asarray(plain_target(classes)))
    if labels.shape != (2,):
        raise ValueError(f"classes must be two labels; got {list(classes)!r}. Use thresholds= for ratings.")
    if coding is not None and coding.settled and not np.array_equal(labels, coding.classes):
        _refuse_classes(coding, labels)
    return Coding(labels, True, None)


def _refuse_classes(coding: Coding, classes: Any) -> NoReturn:
    raise ValueError(f"classes must be those of the first call, {coding.classes}; got {classes}. Leave it out.")


def _two_classes(target: Labels) -> Coding:
    """The two classes of the first labels: bool, 0/1, -1/1, or any two."""
    if target.dtype.kind == "b":
        return Coding(np.array([False, True]), True, None)
    values = np.unique(target)
    if target.dtype.kind in "iuf":
        kind = values.dtype.type
        for low in (-1, 0):
            if np.isin(values, [low, 1]).all() and low in values:
                return Coding(np.array([low, 1], dtype=kind), True, None)
        if (values == 1).all():
            return Coding(np.array([-1, 1]), False, None)
    if len(values) != 2 or np.array_equal(values, [-1, 0]):
        raise ValueError(
            "Unknown label type: only binary classification is supported. y must hold two labels (bool, 0/1, -1/1, "
            f"or any two in the first batch); got {values[:5].tolist()!r}. Use "
            "thresholds= for ratings, classes= where the first batch shows one of them."
        )
    return Coding(values, True, None)


def class_probabilities(reached: Floats) -> Floats:
    """P of each class (n, L + 1) from P of reaching each threshold (n, L).

    Thresholds are learned apart, so that P may rise from one to the next: no class has less than a small share.
    """
    n, L = reached.shape
    bounds = np.column_stack([np.ones(n), reached, np.zeros(n)])
    falls: Floats = bounds[:, :-1] - bounds[:, 1:]
    if L == 1:
        return falls
    falls = np.maximum(falls, _LEAST_SHARE / (L + 1))
    probabilities: Floats = falls / falls.sum(axis=1, keepdims=True)
    return probabilities


def mean_log_loss(reached: Floats, signs: Floats) -> float:
    """Mean of -log P(class) of labels as signs (n, L), where 0 costs what 1e-15 costs; 0 for no trial."""
    if not len(signs):
        return 0.0
    probabilities = class_probabilities(reached)[np.arange(len(signs)), (signs > 0).sum(axis=1)]
    return float(-np.log(np.maximum(probabilities, 1e-15)).mean())


def comparator_mistakes(comparator: str | ArrayLike, target: NDArray[Any], coding: Coding) -> NDArray[np.int64]:
    """1 where the comparator is wrong, (n,): the most frequent label in hindsight, or given labels."""
    coded = coding.coded(target)
    if isinstance(comparator, str):
        if comparator != "majority":
            raise ValueError(f"comparator must be None, 'majority' or a label for each pair; got {comparator!r}.")
        labels, counts = np.unique(coded, return_counts=True)
        guess = np.repeat(labels[np.argmax(counts)], len(coded)) if len(labels) else coded
    else:
        guess = read_labels(comparator, len(target))
        coding.signs(guess)  # refuses what is no label
        guess = coding.coded(guess)
    wrong: NDArray[np.int64] = (guess != coded).astype(np.int64)
    return wrong
