"""Scores of many pairs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from lacunar.completion._engine import Engine


def many_log_scores(engine: Engine, i: NDArray[np.int32], j: NDArray[np.int32]) -> NDArray[np.float64] | None:
    """log(y_bar + 1) of pairs, or None when they are quicker one by one."""
    return None
