"""`StreamScore`: progressive validation, the same for every learner of streams."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats


class StreamScore(NamedTuple):
    """What `score_stream` returns: every row (of a completion: every pair) was predicted before it was learned.

    Attributes
    ----------
    n_rows : int
    mistakes : int or None
        Rows whose label was predicted wrongly; None where numbers are predicted.
    loss : float or None
        Mean over rows of the loss, summed over outputs; None where the learner gives no probabilities to measure by.
    regret : float or None
        `loss` (of a completion: `mistakes`) minus that of the best fixed solution on the same rows; None unless asked for.
    values : ndarray of shape (n,) or (n, outputs)
        Decision values before each row's own step.
    running_mistakes : ndarray of shape (n,), int64, or None
        Mistakes up to and including each row, of a completion.
    running_regret : ndarray of shape (n,) or None
    probabilities : ndarray of shape (n,) or (n, outputs), or None
    updated : ndarray of shape (n,), bool, or None
        Whether the row changed the learner.
    """

    n_rows: int
    mistakes: int | None
    loss: float | None
    regret: float | None
    values: Floats
    running_mistakes: NDArray[np.int64] | None = None
    running_regret: Floats | None = None
    probabilities: Floats | None = None
    updated: NDArray[np.bool_] | None = None

    @property
    def error(self) -> float | None:
        """Share of mistakes; None where numbers are predicted."""
        return None if self.mistakes is None else self.mistakes / max(self.n_rows, 1)
