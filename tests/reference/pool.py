"""The pool of experts of online completion in plain NumPy: one bilinear expert, the mixers and the hedge with switching."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def moment_step(mean, P, h, y):
    """One step of assumed density filtering of a logistic model: P(y = 1) before it, mean and covariance after it."""
    z, variance = mean @ h, h @ P @ h
    kappa = 1 / np.sqrt(1 + np.pi / 8 * variance)
    p = sigmoid(kappa * z)
    g = P @ h
    return p, mean + kappa * ((y > 0) - p) * g, P - kappa**2 * max(p * (1 - p), 1e-4) * np.outer(g, g)


def biases(i, j, y, noise=0.0):
    """z = g + a_i + b_j, each with a variance of its own: P(y = 1) of every trial before its label."""
    mean, variance, out = {"all": 0.0}, {"all": 1.0}, []
    for r, c, label in zip(i, j, y, strict=True):
        keys = ["all", ("row", r), ("col", c)]
        m, v = (np.array([d.get(k, new) for k in keys]) for d, new in ((mean, 0.0), (variance, 1.0)))
        kappa = 1 / np.sqrt(1 + np.pi / 8 * v.sum())
        p = sigmoid(kappa * m.sum())
        out.append(p)
        m = m + kappa * ((label > 0) - p) * v
        v = v - kappa**2 * max(p * (1 - p), 1e-4) * v**2 + noise * np.array([0, 1, 1])
        mean.update(zip(keys, m, strict=True))
        variance.update(zip(keys, v, strict=True))
    return np.array(out)


def mixer(odds, y, variance):
    """Logistic mixing of log-odds (n, E) with a constant of .3 beside them: P(y = 1) before each label, and mean log-odds."""
    E = odds.shape[1]
    mean, P, out, z = np.append(np.full(E, 1 / E), 0), variance * np.eye(E + 1), [], []
    for x, label in zip(np.column_stack([odds, np.full(len(odds), 0.3)]), y, strict=True):
        z.append(mean @ x)
        p, mean, P = moment_step(mean, P, x, label)
        out.append(p)
    return np.array(out), np.array(z)


def correction(odds, z, y, variance, i, j):
    """What is added to the mixer's log-odds z, learned apart for every pair of (observations of the row, of the column): 0, 1-3, 4-15, more."""
    E, learned, rows, cols, out = odds.shape[1] + 1, {}, {}, {}, []
    X = np.column_stack([odds, np.full(len(odds), 0.3)])
    for x, before, label, r, c in zip(X, z, y, i, j, strict=True):
        key = tuple(np.searchsorted([1, 4, 16], seen, side="right") for seen in (rows.get(r, 0), cols.get(c, 0)))
        rows[r], cols[c] = rows.get(r, 0) + 1, cols.get(c, 0) + 1
        if 0 in key:  # the log-odds of pairs with a new row or column are of another mixer
            out.append(np.nan)
            continue
        mean, P = learned.get(key, (np.zeros(E), variance * np.eye(E)))
        # the mixer's own log-odds as one more input, whose weight of 1 is known
        known = np.pad(P, (0, 1))
        p, mean, P = moment_step(np.append(mean, 1), known, np.append(x, before), label)
        learned[key] = mean[:-1], P[:-1, :-1]
        out.append(p)
    return np.array(out)


def fixed_share(chances, y):
    """The mixture of P(y = 1) (n, E), a share 1 / (t + 1) of every weight given to the others after trial t = 1, 2, ..."""
    n, E = chances.shape
    w, out = np.full(E, 1 / E), np.empty(n)
    for t in range(n):
        out[t] = w @ chances[t]
        w = w * np.where(y[t] > 0, chances[t], 1 - chances[t])
        w /= w.sum()
        w = w * (1 - 1 / (t + 2)) + (1 - w) / (t + 2) / (E - 1)
    return out, w
