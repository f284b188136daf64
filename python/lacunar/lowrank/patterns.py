"""Rows grouped by the columns that they lack."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Bools

PATTERN_NUMBERS = 2**22  # numbers of inverses held at once


class MaskPattern(NamedTuple):
    """Rows that lack the same columns, or the rows of several patterns that lack equally many columns."""

    rows: NDArray[np.int64]  # (n,)
    own: NDArray[np.int64]  # (n,): pattern of each row
    columns: NDArray[np.int64]  # (patterns, m): what is missing


def patterns_of(missing: Bools) -> list[MaskPattern]:
    """The `MaskPattern`s of all rows with a missing entry; a group is split where its inverses would hold over four
    million numbers.
    """
    patterns = []
    counts = missing.sum(axis=1)
    for m in np.unique(counts[counts > 0]):
        rows = np.flatnonzero(counts == m)
        columns = np.nonzero(missing[rows])[1].reshape(-1, m)
        packed = np.packbits(missing[rows], axis=1)
        _, first, own = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(own.ravel(), kind="stable")
        rows, own = rows[order], own.ravel()[order]
        step = max(PATTERN_NUMBERS // int(m) ** 2, 1)
        cuts = np.searchsorted(own, np.arange(0, len(first), step))
        for k, (start, stop) in enumerate(zip(cuts, [*cuts[1:], len(own)], strict=True)):
            patterns.append(
                MaskPattern(rows[start:stop], own[start:stop] - k * step, columns[first[k * step : (k + 1) * step]])
            )
    return patterns
