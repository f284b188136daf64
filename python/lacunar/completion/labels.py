"""Labels of any of the usual kinds to signs -1 and +1, and back; what they say of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.observed.door import plain_target, read_labels

Floats = NDArray[np.float64]
Labels = NDArray[Any]
MOST_LEVELS = 20  # of ratings, each of which but the first is a question of its own


class Coding(NamedTuple):
    """Two classes, or thresholds.

    classes: (negative, positive), or codes 0..L of thresholds. settled: whether a negative label was seen: 1 alone may belong to
    0/1 or to -1/1.
    """

    classes: Labels
    settled: bool
    thresholds: Floats | None

    @property
    def n_tasks(self) -> int:
        """Binary questions asked: one, or one a threshold."""
        return 1 if self.thresholds is None else len(self.thresholds)

    def signs(self, target: Labels) -> Floats:
        """-1 and +1, (n, L)."""
        if self.thresholds is not None:
            return np.where(np.asarray(target, dtype=np.float64)[:, None] >= self.thresholds, 1.0, -1.0)
        positive = target == self.classes[1]
        wrong = np.flatnonzero(~(positive | (target == self.classes[0])))
        if wrong.size:
            raise ValueError(
                f"y must hold the labels {self.classes[0]} and {self.classes[1]} of what came before; got "
                f"{target[wrong[0]]} at position {wrong[0]}. Recode it, use thresholds= for ratings, or fit again."
            )
        return np.where(positive, 1.0, -1.0)[:, None]

    def labels(self, signs: Floats) -> Labels:
        """Labels (n,) of predicted signs (n, L): for thresholds, the class of how many are reached."""
        made: Labels = self.classes[(signs > 0).sum(axis=1)]
        return made

    def coded(self, target: Labels) -> Labels:
        """Observed labels in the terms of `labels`."""
        return self.labels(self.signs(target)) if self.thresholds is not None else target


def read_thresholds(thresholds: Any) -> Floats | None:
    """One threshold or ascending ones, (L,)."""
    if thresholds is None:
        return None
    given = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if given.ndim != 1 or not given.size or not np.isfinite(given).all() or (np.diff(given) <= 0).any():
        raise ValueError(
            f"thresholds must be a finite number or ascending ones; got {thresholds!r}. Use 4, or [2, 3, 4, 5]."
        )
    return given


def rating_levels(y: Any, classes: Sequence[Any] | None) -> Labels:
    """The ratings there are, ascending: named, or those of the first batch."""
    given = np.asarray(plain_target(y if classes is None else list(classes)))
    if given.dtype.kind not in "iufb":
        raise TypeError(f"y must be ratings, numbers, with thresholds='auto'; got dtype {given.dtype}. Encode them.")
    levels = np.unique(given)
    if not 2 <= len(levels) <= MOST_LEVELS or not np.isfinite(levels.astype(np.float64)).all():
        raise ValueError(
            f"thresholds='auto' must find 2 to {MOST_LEVELS} ratings in the first batch; got {len(levels)}. Name them by classes=, or "
            "pass thresholds."
        )
    return levels


def read_y(
    y: Any, n: int, coding: Coding | None, thresholds: Floats | None, classes: Sequence[Any] | None = None
) -> tuple[Floats, Coding]:
    """Signs (n, L) of the labels, and the coding as it is after them."""
    target = read_labels(y, n)
    if thresholds is not None:
        if target.dtype.kind not in "iufb":
            raise TypeError(f"y must be ratings, numbers, with thresholds; got dtype {target.dtype}. Encode them.")
        coding = coding or Coding(np.arange(len(thresholds) + 1), True, thresholds)
        return coding.signs(target), coding
    if classes is not None:
        coding = _named(classes, coding)
    elif coding is None:
        coding = _settle(target)
    elif not coding.settled and (target.dtype.kind == "b" or not (target == 1).all()):
        settled = _settle(target)
        coding = settled if settled.classes[1] == 1 else coding  # where it is not, signs() says so
    return coding.signs(target), coding


def _named(classes: Sequence[Any], coding: Coding | None) -> Coding:
    given = np.unique(np.asarray(plain_target(classes)))
    if given.shape != (2,):
        raise ValueError(f"classes must be two labels; got {list(classes)!r}. Use thresholds= for ratings.")
    if coding is not None and coding.settled and not np.array_equal(given, coding.classes):
        raise ValueError(f"classes must be those of the first call, {coding.classes}; got {given}. Leave it out.")
    return Coding(given, True, None)


def _settle(target: Labels) -> Coding:
    """The two classes of the first labels: bool, 0/1, -1/1, or any two."""
    if target.dtype.kind == "b":
        return Coding(np.array([False, True]), True, None)
    found = np.unique(target)
    if target.dtype.kind in "iuf":
        kind = found.dtype.type
        for low in (-1, 0):
            if np.isin(found, [low, 1]).all() and low in found:
                return Coding(np.array([low, 1], dtype=kind), True, None)
        if (found == 1).all():
            return Coding(np.array([-1, 1]), False, None)
    if len(found) != 2 or np.array_equal(found, [-1, 0]):
        raise ValueError(
            f"Unknown label type: only binary classification is supported. y must hold two labels (bool, 0/1, -1/1, or any two in the first batch); got {found[:5].tolist()!r}. Use "
            "thresholds= for ratings, classes= where the first batch shows one of them."
        )
    return Coding(found, True, None)


def class_probabilities(reached: Floats) -> Floats:
    """P of each class (n, L + 1) from P of reaching each threshold (n, L), made to fall with the threshold."""
    falling = np.minimum.accumulate(reached, axis=1)
    bounds = np.column_stack([np.ones(len(falling)), falling, np.zeros(len(falling))])
    made: Floats = bounds[:, :-1] - bounds[:, 1:]
    return made


def mean_log_loss(reached: Floats, signs: Floats) -> float:
    """Mean of -log P(class) of labels as signs (n, L), where 0 costs what 1e-15 costs; 0 for no trial."""
    if not len(signs):
        return 0.0
    each = class_probabilities(reached)[np.arange(len(signs)), (signs > 0).sum(axis=1)]
    return float(-np.log(np.maximum(each, 1e-15)).mean())


def comparator_mistakes(comparator: Any, target: NDArray[Any], coding: Coding) -> NDArray[np.int64]:
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
