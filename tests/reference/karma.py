"""The KARMA kernel from Definition 4 and Theorem 4 of Hazan, Livni, Mansour (2015)."""

from itertools import product

import numpy as np


def karma_gram(X, Y, gamma, count_scale=1.0, constant=0.0, indicators=0.0):
    """Theorem 4 with the constant feature as a real column; X (n, d), Y (m, d) with NaN."""
    if constant:
        X, Y = (np.column_stack([Z, np.full(len(Z), constant)]) for Z in (X, Y))
    s = np.nan_to_num(X) @ np.nan_to_num(Y).T
    n = (~np.isnan(X)).astype(float) @ (~np.isnan(Y)).T.astype(float)
    u = n / count_scale
    whole = int(gamma)  # between integers the mixture of the two neighbours
    g = sum(u**power for power in range(whole)) + (gamma - whole) * u**whole
    return (s + indicators * n) * g


def embedding(x, gamma):
    """Definition 4: one coordinate for every sequence of at most gamma columns."""
    d = len(x)
    sequences = [s for length in range(1, gamma + 1) for s in product(range(d), repeat=length)]
    seen = ~np.isnan(x)
    return np.array([x[s[-1]] if all(seen[k] for k in s) else 0.0 for s in sequences])
