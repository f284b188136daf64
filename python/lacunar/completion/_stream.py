"""Progressive validation: every pair is predicted, then learned."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar.completion._calibration import log_losses
from lacunar.completion._labels import Coding
from lacunar.observed.door import read_labels

Floats = NDArray[np.float64]


class StreamScore(NamedTuple):
    """What `OnlineMatrixClassifier.score_stream` returns; everything was predicted before its label was seen.

    Attributes
    ----------
    n_trials : int
    mistakes : int
    running_mistakes : ndarray of shape (n,), int64
        Mistakes up to and including each trial.
    regret : float or None
        `mistakes` minus those of the comparator on the same pairs; None without one.
    running_regret : ndarray of shape (n,) or None
    log_loss : float or None
        Mean of -log P(y); None with calibrate=False.
    values : ndarray of shape (n,), or (n, L) with L > 1 thresholds
        y_bar.
    probabilities : ndarray of shape (n,) or (n, L), or None
        P(y = positive), or of reaching each threshold.
    updated : ndarray of shape (n,), bool
        Whether the trial changed the learner.
    """

    n_trials: int
    mistakes: int
    running_mistakes: NDArray[np.int64]
    regret: float | None
    running_regret: Floats | None
    log_loss: float | None
    values: Floats
    probabilities: Floats | None
    updated: NDArray[np.bool_]

    @property
    def error(self) -> float:
        """Share of mistakes."""
        return self.mistakes / max(self.n_trials, 1)


def class_probabilities(reached: Floats) -> Floats:
    """P of each class (n, L + 1) from P of reaching each threshold (n, L), made to fall with the threshold."""
    falling = np.minimum.accumulate(reached, axis=1)
    bounds = np.column_stack([np.ones(len(falling)), falling, np.zeros(len(falling))])
    made: Floats = bounds[:, :-1] - bounds[:, 1:]
    return made


def mean_log_loss(reached: Floats, signs: Floats) -> float:
    """Mean of -log P(class) of labels as signs (n, L); 0 for no trial."""
    if not len(signs):
        return 0.0
    if signs.shape[1] == 1:
        return float(log_losses(reached[:, 0], signs[:, 0]).mean())
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
