"""random_state -> a generator: the only module that makes one."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def generator(random_state: Any) -> np.random.Generator:
    """A new generator seeded by scikit-learn's `random_state`: the same for the same int, the next one of a RandomState."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1, size=4))


def fixed_seed(random_state: Any) -> Any:
    """What draws folds, hidden cells and orders of rows: seed 0 where none is set, so that no default is left to chance."""
    return 0 if random_state is None else random_state


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """Plain data from which `generator_at` makes a generator that goes on with the same draws."""
    return dict(rng.bit_generator.state)


def generator_at(state: dict[str, Any]) -> np.random.Generator:
    """The generator whose `state_of` this is."""
    bits = np.random.PCG64(0)
    vars_of: Any = bits  # the stubs want a TypedDict, and a file gives a dict
    vars_of.state = state
    return np.random.Generator(bits)
