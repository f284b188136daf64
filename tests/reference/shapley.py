"""Shapley values by their definition: all sets of the entries that a row shows, each hidden from the model in turn."""

from itertools import combinations
from math import factorial

import numpy as np


def shapley(predict, row):
    """Base (q,) and values (d, q) of one row with NaN; `predict` takes rows and gives (m, q)."""
    shown = np.flatnonzero(~np.isnan(row))
    k, sets = len(shown), [set(s) for size in range(len(shown) + 1) for s in combinations(shown, size)]
    rows = np.array([[x if j in s else np.nan for j, x in enumerate(row)] for s in sets])
    v = dict(zip(map(frozenset, sets), predict(rows), strict=True))
    values = np.zeros((len(row), len(v[frozenset()])))
    for j in shown:
        for s in sets:
            if j not in s:
                weight = factorial(len(s)) * factorial(k - 1 - len(s)) / factorial(k)
                values[j] += weight * (v[frozenset(s | {j})] - v[frozenset(s)])
    return v[frozenset()], values
