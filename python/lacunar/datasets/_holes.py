"""Holes in blocks: groups of columns that are seen or missed together, as with panels of a clinic or pages of a form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state


def make_block_holes(
    X: ArrayLike,
    blocks: Sequence[Sequence[int]],
    *,
    share_observed: float = 0.5,
    random_state: Any = None,
) -> NDArray[np.float64]:
    """Hide whole blocks of columns, row by row.

    Every row sees each block with probability `share_observed`, independently, given that it sees at least one block.
    O(n d).

    Parameters
    ----------
    X : array-like of shape (n, d)
        Table; its NaN stay.
    blocks : sequence of sequences of int
        Column numbers of every block. Columns in no block are always seen.
    share_observed : float, default=0.5
        Probability that a block is seen, in (0, 1].
    random_state : int, RandomState or None, default=None

    Returns
    -------
    holed : ndarray of shape (n, d)
        A copy, NaN where hidden.

    Raises
    ------
    ValueError
        When `share_observed` is outside (0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import make_block_holes
    >>> holed = make_block_holes(np.ones((4, 4)), [[0, 1], [2, 3]], random_state=0)
    >>> bool(np.array_equal(np.isnan(holed[:, 0]), np.isnan(holed[:, 1])))
    True
    """
    if not 0 < share_observed <= 1:
        raise ValueError(f"share_observed must lie in (0, 1]; got {share_observed!r}. Give 0.5 to see half.")
    generator = check_random_state(random_state)
    holed = np.array(X, dtype=float)
    seen = generator.uniform(size=(len(holed), len(blocks))) < share_observed
    while len(blocks) and not (complete := seen.any(axis=1)).all():  # draw again: conditional on one seen block
        seen[~complete] = generator.uniform(size=(int((~complete).sum()), len(blocks))) < share_observed
    for k, block in enumerate(blocks):
        holed[np.ix_(~seen[:, k], list(block))] = np.nan
    return holed
