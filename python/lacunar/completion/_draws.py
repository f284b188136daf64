"""The threshold Y_t of the randomised prediction: a property of the trial, not of how often it is asked about."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lacunar._random import generator

_BLOCK = 4096


def trial_draws(seed: int, first: int, n: int) -> NDArray[np.float64]:
    """Uniform numbers in [-1, 1) of trials first, ..., first + n - 1: the same however the stream is cut."""
    blocks = range(first // _BLOCK, (first + max(n, 1) - 1) // _BLOCK + 1)
    drawn = np.concatenate([_block(seed, block) for block in blocks])
    start = first - blocks[0] * _BLOCK
    return drawn[start : start + n]


@lru_cache(maxsize=8)
def _block(seed: int, block: int) -> NDArray[np.float64]:
    made = generator((seed + block) % (2**32 - 1)).uniform(-1.0, 1.0, _BLOCK)
    made.flags.writeable = False
    return made
