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


def symmetric_tree(codes, n_codes, categorical, pairs, penalty, depth):
    """Splits (column, code) of a symmetric tree, and the leaf of every row: every split of every level tried."""
    leaf, splits = np.zeros(codes.shape[1], dtype=int), []
    for _ in range(depth):
        scores = {}
        for column, of_column in enumerate(codes):
            for code in range(n_codes[column]):
                left = of_column == code if categorical[column] else of_column <= code
                sides = [pairs[2 * leaf + ~left == side].sum(axis=0) for side in range(2 * leaf.max() + 2)]
                scores[column, code] = sum((g**2 / (h + penalty)).sum() for g, h in (side.T for side in sides))
        column, code = max(scores, key=scores.get)  # the first of equals
        splits.append((column, code))
        leaf = 2 * leaf + ~(codes[column] == code if categorical[column] else codes[column] <= code)
    return splits, leaf


def ridge_out_of_fold(inputs, y, folds, penalty):
    """Every row predicted by ridge regression on the other folds; columns standardised by all rows, the intercept free."""
    columns = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    out = np.empty(len(y))
    for fold in folds:
        others = np.setdiff1d(np.arange(len(y)), fold)
        center, mean = columns[others].mean(axis=0), y[others].mean()
        rows = columns[others] - center
        coef = np.linalg.solve(rows.T @ rows + penalty * np.eye(rows.shape[1]), rows.T @ (y[others] - mean))
        out[fold] = mean + (columns[fold] - center) @ coef
    return out


def linear_pool(members, y):
    """argmin over w >= 0 of n MSE(w) / s + (1 + 1600/n) M |w - w0|^2 + 50 (sum w - 1)^2, s the least MSE of a member.

    w0 is proportional to exp(-z^2 / 8) of members that are z standard errors behind.
    """
    n, m = members.shape
    losses = (members - y[:, None]) ** 2
    best = losses.mean(axis=0).argmin()
    counts = np.ones(m)
    for k in range(m):
        behind = losses[:, k] - losses[:, best]
        if k != best:
            counts[k] = np.exp(-((behind.mean() / (behind.std() / np.sqrt(n))) ** 2) / 8)
    prior, scale = counts / counts.sum(), losses[:, best].mean()

    def loss(w):
        misfit = ((members @ w - y) ** 2).sum() / scale
        return misfit + (1 + 1600 / n) * m * ((w - prior) ** 2).sum() + 50 * (w.sum() - 1) ** 2

    return minimize(
        loss, prior, bounds=[(0, None)] * m, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10**4}
    ).x


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


def pair_means(first, second, y, ratios, rounds=3):
    """Means of a target by pair of levels, as a dictionary: an effect of either level, then of what both leave, each shrunk by its ratio of variances."""

    def shrunk(keys, values, ratio):
        sizes = {key: float(np.sum(keys == key)) for key in set(keys.tolist())}
        means = {key: values[keys == key].mean() for key in sizes}
        precision = {key: size / (1 + ratio * size) for key, size in sizes.items()}
        centre = sum(precision[key] * means[key] for key in sizes) / sum(precision.values())
        return {key: ratio * precision[key] * (means[key] - centre) for key in sizes}

    of_first, of_second = dict.fromkeys(first.tolist(), 0.0), dict.fromkeys(second.tolist(), 0.0)
    for _ in range(rounds):
        of_first = shrunk(first, y - [of_second[key] for key in second.tolist()], ratios[0])
        of_second = shrunk(second, y - [of_first[key] for key in first.tolist()], ratios[1])
    together = np.array([f"{a} {b}" for a, b in zip(first, second, strict=True)])
    left = y - [of_first[a] + of_second[b] for a, b in zip(first.tolist(), second.tolist(), strict=True)]
    of_pairs = shrunk(together, left, ratios[2])
    return {(a, b): of_first[a] + of_second[b] + of_pairs.get(f"{a} {b}", 0.0) for a in of_first for b in of_second}
