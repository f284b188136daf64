"""The pool of experts of online completion in plain NumPy: one bilinear expert, the mixers and the hedge with switching."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def moment_step(mean, P, h, y, trials=1):
    """One step of assumed density filtering of a logistic model: P(y = 1) before it, mean and covariance after it. Of several trials y is the sum."""
    z, variance = mean @ h, h @ P @ h
    kappa = 1 / np.sqrt(1 + np.pi / 8 * variance)
    p = sigmoid(kappa * z)
    g, curvature = P @ h, kappa**2 * max(p * (1 - p), 1e-4)
    precision = (
        trials * curvature / (1 - curvature * variance)
    )  # a Gaussian observation of which would take as much off
    share = precision / (1 + precision * variance) / curvature
    return p, mean + share * kappa * (((trials + y) / 2 / trials) - p) * g, P - share * curvature * np.outer(g, g)


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
        v = v - kappa**2 * max(p * (1 - p), 1e-4) * v**2 + noise * np.array([0.02, 1, 1])
        mean.update(zip(keys, m, strict=True))
        variance.update(zip(keys, v, strict=True))
    return np.array(out)


def products(phi, psi, i, j, y, variance):
    """z = w . (1, phi_i) x (1, psi_j), all coefficients of one variance: P(y = 1) of every trial before its label."""
    a, b = (np.column_stack([np.ones(len(side)), side]) for side in (phi, psi))
    size = a.shape[1] * b.shape[1]
    mean, P, out = np.zeros(size), variance * np.eye(size), []
    for r, c, label in zip(i, j, y, strict=True):
        p, mean, P = moment_step(mean, P, np.outer(a[r], b[c]).ravel(), label)
        out.append(p)
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


def refitted_biases(i, j, y, share, first=32, growth=1.25, sweeps=8, trials=1):
    """`biases` whose posterior is refitted at trial `first` and whenever the stream has grown by `growth`, spread over a `share` of the trials so far: P(y = 1) of every trial before its label."""
    blocks, lists, priors, out = ({}, {}, {"all": (0.0, 1.0)}), ({}, {}), [1.0, 1.0], []
    refit, credit, quota, due = iter(()), 0.0, 0.0, first
    for n, (r, c, label) in enumerate(zip(i, j, y, strict=True), 1):
        at = ((0, r), (1, c), (2, "all"))
        mean, variance = np.transpose([blocks[s].get(v, (0.0, priors[min(s, 1)])) for s, v in at])
        p, mean, P = moment_step(mean, np.diag(variance), np.ones(3), label, trials)
        out.append(p)
        for (s, v), m, new in zip(at, mean, np.diag(P), strict=True):
            blocks[s][v] = m, new
        lists[0].setdefault(r, []).append((c, label))
        lists[1].setdefault(c, []).append((r, label))
        if n >= due and not quota:
            due, credit = np.ceil(due * growth), 0.0
            refit = _sweeps(blocks, lists, priors, sweeps, trials)
            work = sweeps * (2 + 2 * 81 * n + 21 * (len(blocks[0]) + len(blocks[1]))) + -(-sweeps // 4) * (22 + 81 * n)
            quota = work / max(1, np.ceil(share * n))
        credit += quota
        while quota and credit > 0:
            step = next(refit, None)
            credit, quota = (credit - step, quota) if step else (0.0, 0.0)
    return np.array(out)


def _sweeps(blocks, lists, priors, sweeps, trials):
    """Coordinate ascent of Jaakkola and Jordan's bound over rows and columns, and the constant in every fourth sweep; after each piece its work. Observations may come in between."""
    for sweep in range(sweeps):
        for side in (0, 1):
            squares, at = 0.0, 0
            while at < len(blocks[side]):
                v = list(blocks[side])[at]
                H, b, seen, at = 1 / priors[side], 0.0, 0, at + 1
                while v is not None:
                    other, label = lists[side][v][seen]
                    known = blocks[2]["all"][0] + blocks[1 - side][other][0]
                    w = trials * _bound(known + blocks[side][v][0])
                    H, b, seen, work = H + w, b + 0.5 * label - w * known, seen + 1, 81
                    if seen == len(lists[side][v]):
                        blocks[side][v] = b / H, 1 / H
                        squares, v, work = squares + (b / H) ** 2 + 1 / H, None, 81 + 21
                    yield work
            priors[side] = (squares + 2) / (at + 2)
            yield 1
        if sweep % 4 < 3 and sweep + 1 < sweeps:
            continue
        H, b, at = 1.0, 0.0, 0
        while at < len(blocks[0]):
            v, seen = list(blocks[0])[at], 0
            while v is not None:
                other, label = lists[0][v][seen]
                known = blocks[0][v][0] + blocks[1][other][0]
                w = trials * _bound(known + blocks[2]["all"][0])
                H, b, seen = H + w, b + 0.5 * label - w * known, seen + 1
                v = None if seen == len(lists[0][v]) else v
                yield 81
            at += 1
        blocks[2]["all"] = b / H, 1 / H
        yield 22


def _bound(z):
    return 0.25 if abs(z) < 1e-4 else np.tanh(abs(z) / 2) / (2 * abs(z))
