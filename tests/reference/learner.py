"""Slow twins of the one learner's own parts, from their definitions."""

import numpy as np
from scipy.optimize import minimize


def summed_trees(trees, rows):
    """Leaf values of `Trees`, one row and one tree at a time."""
    out = np.tile(trees.start_, (len(rows), 1))
    for i, row in enumerate(rows):
        for root, output in zip(trees.roots_, trees.outputs_, strict=True):
            node = root
            while trees.feature_[node] >= 0:
                x = row[trees.feature_[node]]
                if np.isnan(x):
                    left = trees.missing_left_[node]
                elif trees.category_set_[node] >= 0:
                    left = trees.sets_[trees.category_set_[node], int(x) // 32] >> int(x) % 32 & 1
                else:
                    left = x <= trees.threshold_[node]
                node = trees.left_[node] if left else trees.right_[node]
            value = trees.values_[trees.left_[node]]
            out[i, output : output + len(value)] += value
    return out


def log_pool(logs, codes):
    """argmin over w >= 0 of n log loss + (1 + 400/n) M |w - 1/M|^2, and the log probabilities of the pool."""
    members, n, _ = logs.shape

    def mixed(w):
        raw = sum(w[m] * logs[m] for m in range(members))
        return raw - np.log(np.exp(raw).sum(axis=1, keepdims=True))

    def loss(w):
        return -mixed(w)[np.arange(n), codes].sum() + (1 + 400 / n) * members * ((w - 1 / members) ** 2).sum()

    w = minimize(
        loss, np.full(members, 1 / members), bounds=[(0, None)] * members, method="L-BFGS-B", options={"ftol": 1e-14}
    ).x
    return w, mixed(w)
