"""Algorithms 1 and 2 of Ganti and Willett, "Sparse Linear Regression With Missing Data", as printed; PETRELS and GROUSE."""

import numpy as np


def inverse_root(gram):
    """gram^(-1/2) of a symmetric positive definite matrix."""
    value, vector = np.linalg.eigh(gram)
    return (vector / np.sqrt(value)) @ vector.T


def code(U, seen, x, ridge=0.0, label=None, w=None, lam1=np.inf):
    """Step 5: argmin_a |x_O - U_O a|^2 + ridge |a|^2 + (label - w a)^2 / lam1, the last for a label; the shortest of several."""
    A, b = U[seen], x[seen]
    if ridge > 0:
        A, b = np.vstack([A, np.sqrt(ridge) * np.eye(U.shape[1])]), np.append(b, np.zeros(U.shape[1]))
    if label is not None and not np.isnan(label) and np.isfinite(lam1):
        A, b = np.vstack([A, w / np.sqrt(lam1)]), np.append(b, label / np.sqrt(lam1))
    return np.linalg.lstsq(A, b, rcond=1e-10)[0]


def modified_petrels(U, R_inv, seen, x, a):
    """Algorithm 2, row by row; U and R_inv are changed in place."""
    for j in np.flatnonzero(seen):
        v = R_inv[j] @ a
        R_inv[j] -= np.outer(v, v) / (1 + a @ v)
        U[j] += (x[j] - a @ U[j]) * (R_inv[j] @ a)


def step_size(rho, t, constant_until, schedule):
    """eta_t: rho, then rho t0 / t ("mairal") or rho / t ("literal")."""
    return rho if t <= constant_until else rho * (constant_until if schedule == "mairal" else 1) / t


def slrm(
    X, y, U, w, R_inv, *, lam1, lam2, lam3, rho, constant_until, schedule="mairal", ridge=0.0, orthonormalize=True
):
    """Algorithm 1, steps 4 to 8, one pass; returns U, w and the label-free predictions made before every step.

    A row with nothing observed is no step: the paper has none.
    """
    U, w, R_inv, before, t = U.copy(), w.copy(), R_inv.copy(), [], 0
    for x, label in zip(X, y, strict=True):
        seen = ~np.isnan(x)
        if not seen.any():
            before.append(0.0)
            continue
        t += 1
        before.append(code(U, seen, x, ridge) @ w)
        a = code(U, seen, x, ridge, label, w, lam1)
        modified_petrels(U, R_inv, seen, x, a)
        if orthonormalize:
            U = U @ inverse_root(U.T @ U)
        if not np.isnan(label):
            eta = step_size(rho, t, constant_until, schedule)
            moved = w - eta * (2 * (a * (a @ w) - label * a) + lam3 * w)
            w = np.sign(moved) * np.maximum(np.abs(moved) - eta * lam2, 0)
    return U, w, np.array(before)


def predicted(U, w, x, gamma):
    """(6): w a of the least-squares code, or 0 where |(U_O^T U_O)^-1| > D / (m (1 - gamma))."""
    seen = ~np.isnan(x)
    least = np.linalg.norm(U[seen], -2) ** 2 if seen.sum() >= U.shape[1] else 0.0
    if least == 0 or 1 / least > len(U) / (seen.sum() * (1 - gamma)):
        return 0.0
    return code(U, seen, x) @ w


def algorithm_1(X, y, X_val, y_val, U, w, *, lam1, lam2, lam3, rho, delta, gamma, constant_until, passes=1):
    """Algorithm 1 whole: steps 1 to 14, the validation of 9 to 13 after every step; the best U and w, and the errors."""
    R_inv, errors, best = np.tile(delta * np.eye(U.shape[1]), (len(U), 1, 1)), [], (U, w)
    U, w = U.copy(), w.copy()
    for t, (x, label) in enumerate(zip(np.tile(X, (passes, 1)), np.tile(y, passes), strict=True), start=1):
        seen = ~np.isnan(x)
        a = code(U, seen, x, 0.0, label, w, lam1)
        modified_petrels(U, R_inv, seen, x, a)
        U = U @ inverse_root(U.T @ U)
        eta = step_size(rho, t, constant_until, "literal")
        moved = w - eta * (2 * (a * (a @ w) - label * a) + lam3 * w)
        w = np.sign(moved) * np.maximum(np.abs(moved) - eta * lam2, 0)
        made = np.array([predicted(U, w, row, gamma) for row in X_val])
        errors.append(np.mean((made - y_val) ** 2))
        if errors[-1] < min(errors[:-1], default=np.inf):
            best = U.copy(), w
    return *best, errors


def lasso(A, y, lam, steps=200_000):
    """(4): argmin_w |y - A w|^2 / n + lam |w|_1 by proximal gradient steps."""
    eta, w = len(y) / (2 * np.linalg.norm(A, 2) ** 2), np.zeros(A.shape[1])
    for _ in range(steps):
        old, moved = w, w - eta * 2 * A.T @ (A @ w - y) / len(y)
        w = np.sign(moved) * np.maximum(np.abs(moved) - eta * lam, 0)
        if np.abs(w - old).max() < 1e-15:
            break
    return w


def smpcr(X, y, U, w, *, lam, rho, delta, constant_until, passes):
    """Section 6: PETRELS for (3), and then stochastic proximal steps for (4); PETRELS' basis, and w in it."""
    U, R_inv = U.copy(), np.tile(delta * np.eye(U.shape[1]), (len(U), 1, 1))
    for _ in range(passes):
        for x in X:
            seen = ~np.isnan(x)
            modified_petrels(U, R_inv, seen, x, code(U, seen, x))
    codes = np.array([code(U, ~np.isnan(x), x) for x in X])
    for t, (a, label) in enumerate(zip(np.tile(codes, (passes, 1)), np.tile(y, passes), strict=True), start=1):
        eta = step_size(rho, t, constant_until, "literal")
        moved = w - eta * 2 * (a * (a @ w) - label * a)
        w = np.sign(moved) * np.maximum(np.abs(moved) - eta * lam, 0)
    return U, w


def mpcr(X, y, U, lam, sweeps):
    """Section 4: alternating minimisation of (3), and then the lasso (4) on the codes, without an intercept."""
    for _ in range(sweeps):
        A = np.array([code(U, ~np.isnan(x), x) for x in X])
        U = np.array([np.linalg.lstsq(A[~np.isnan(c)], c[~np.isnan(c)], rcond=None)[0] for c in X.T])
        U = np.linalg.qr(U)[0]
    A = np.array([code(U, ~np.isnan(x), x) for x in X])
    return U, lasso(A, y, lam)


def petrels(X, U, R_inv, forget=1.0, ridge=0.0):
    """Chi, Eldar and Calderbank (2012), every R_j discounted at every step."""
    U, R_inv = U.copy(), R_inv.copy()
    for x in X:
        seen = ~np.isnan(x)
        R_inv /= forget
        modified_petrels(U, R_inv, seen, x, code(U, seen, x, ridge))
    return U


def grouse(X, U, damping=1.0):
    """Balzano, Nowak and Recht (2010), greedy step; damping scales its angle. A residual or a code of 0 is no step."""
    for x in X:
        seen = ~np.isnan(x)
        a = code(U, seen, x)
        residual = np.where(seen, x - U @ a, 0.0)
        p, r, size = U @ a, np.linalg.norm(residual), np.linalg.norm(a)
        if r == 0 or size == 0:
            continue
        angle = damping * np.arctan2(r, np.linalg.norm(p))
        U = U + np.outer((np.cos(angle) - 1) * p / np.linalg.norm(p) + np.sin(angle) * residual / r, a / size)
    return U


def shared_petrels(X, U, inverse, keep=1.0, ridge=0.0):
    """PETRELS with R_j ~ (c_j / c) R: one correlation, columns weighted by how often they were seen."""
    U, P, c, counts = U.copy(), inverse.copy(), 0.0, np.zeros(len(U))
    for x in X:
        seen = ~np.isnan(x)
        a = code(U, seen, x, ridge)
        P = P / keep
        gain, share = P @ a, (c + 1) / (counts[seen] + 1)
        U[seen] += np.outer((x[seen] - U[seen] @ a) * share / (1 + share * (a @ gain)), gain)
        P -= np.outer(gain, gain) / (1 + a @ gain)
        c, counts = keep * c + 1, keep * counts + seen
    return U


MEMORY_FACTORS = np.array([0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0])


def memory_weights(weights, loss, count, own, trust=0.25, freedom=2.0):
    """Weights (8,) after squared errors (8,) that are worth `count` entries: Student's likelihood, then a share for all alike."""
    share = min(2 / max(own, 1), 0.05)
    likelihood = (1 + count / freedom * loss / (weights @ loss)) ** (-trust * (freedom + count) / 2)
    return (1 - share) * weights * likelihood / (weights @ likelihood) + share / len(weights)


def subspace_lost(averages, watched, relative, free):
    """Fast and slow averages of what rows leave over, in logs, after one more row; whether the first is three times the second."""
    level = np.log(max(relative / free, 1e-12))
    fast, slow = averages if watched else (level, level)
    fast += free * max(0.1, 1 / (watched + 1)) * (np.clip(level, slow - 9, slow + 9) - fast)
    slow += free * max(0.01, 1 / (watched + 1)) * (level - slow)
    return (fast, slow), watched + 1 > 50 and fast > slow + 1.1


def tracking_memory(X, U, delta, most):
    """PETRELS that forgets as every fourth column, learned at eight factors, says, with a ridge of `most` at most; U, factors, weights."""
    D, d = U.shape
    U, R_inv, small = U.copy(), np.tile(delta * np.eye(d), (D, 1, 1)), np.arange(D) % 4 == 0
    V, P = np.tile(U, (8, 1, 1)), np.tile(delta * np.eye(d), (8, 1, 1))
    counts, rows, weights = np.zeros((8, D)), np.zeros(8), np.full(8, 1 / 8)
    own, averages, watched, every_keep = 0.0, (0.0, 0.0), 0, []
    for x in X:
        seen = ~np.isnan(x)
        noise = np.exp(max(averages)) if watched > 50 else 1.0
        square = max(np.mean(np.sum(U[seen] ** 2, axis=1)), 0.01 * d / D)
        learned = noise / (1 - noise) * square if noise < 1 else np.inf
        ridge = min(most, learned)
        a, looked = code(U, seen, x, ridge), np.flatnonzero(seen & small)
        loss, squares = np.zeros(8), np.zeros(len(looked))
        for k, j in enumerate(looked):
            without = code(U, seen & (np.arange(D) != j), x, ridge)
            loss += (x[j] - V[:, j] @ without) ** 2
            squares[k] = (x[j] - U[j] @ without) ** 2
        if len(looked):
            count = min(3 * np.sum(squares) ** 2 / np.sum(squares**2), len(looked))  # of entries of equal noise
            weights = memory_weights(weights, loss, count, own)
        wanted = 1.4 * np.exp(weights @ np.log(np.maximum(MEMORY_FACTORS * rows, 1)))
        relative, free = np.sum((x - U @ a)[seen] ** 2) / np.sum(x[seen] ** 2), 1 - d / seen.sum()
        if free > 0:
            averages, lost = subspace_lost(averages, watched, relative, free)
            wanted, watched = 0.0 if lost else wanted, watched + 1
        wanted = max(wanted, 0.5 * d * D / seen.sum())
        keep = np.clip(wanted / own, 0.5, 1) if own > 1 else 1.0
        keeps = np.minimum(MEMORY_FACTORS, np.maximum(2 * own / np.maximum(rows, 1e-9), 0.5) if rows[0] > 1 else 1)
        own, rows, counts = keep * own + 1, keeps * rows + 1, keeps[:, None] * counts
        counts[:, looked] += 1
        for m in range(8):
            gain, share = P[m] @ a / keeps[m], rows[m] / counts[m, looked]
            error = (x[looked] - V[m, looked] @ a) * share / (1 + share * (a @ gain))
            V[m, looked] += np.outer(error, gain)
            P[m] = P[m] / keeps[m] - np.outer(gain, gain) / (1 + a @ gain)
        largest = np.max(np.diagonal(R_inv, axis1=1, axis2=2), axis=1)
        R_inv *= np.clip(delta / largest, 1, 1 / keep)[:, None, None]  # none grows beyond what a new column starts from
        modified_petrels(U, R_inv, seen, x, a)
        every_keep.append(keep)
    return U, np.array(every_keep), weights


def proposal_2(squares, u, freedom):
    """(deviation of residuals by Huber's proposal 2, number of squares that were cut, none beyond the first u): the root
    of sum min(squares, u) = .516 freedom u by Newton's steps; a normal number keeps .516 of its square.
    """
    entries, none_beyond = 0.516 * freedom, not np.any(squares > u)
    for step in range(8):
        before, total, cut = u, np.sum(np.minimum(squares, u)), np.sum(squares > u)
        if step == 0 and none_beyond:
            u = total / freedom
        elif cut < 0.8 * entries:
            u = (total - cut * u) / (entries - cut)
        else:
            cut, u = (0, np.sum(squares) / freedom) if step == 0 else (cut, total / entries)
        if step > 0 and 0.64 * before <= u <= before:
            break
    return np.sqrt(u), cut, none_beyond


def screened(x, V, deviation, in_row, level, ridge):
    """The row without far cells of a Huber code; `deviation` and `in_row` (D,) and `level` (3,) are changed in place."""
    seen = np.flatnonzero(~np.isnan(x))
    m, d = len(seen), V.shape[1]
    if m <= d + 1:
        return x
    A, known = V[seen], np.sort(deviation[seen][deviation[seen] > 0])
    gram = A.T @ A + ridge * np.eye(d)
    scale = np.where(deviation[seen] > 0, deviation[seen], known[len(known) // 2] if len(known) else 1.0)
    a = np.linalg.solve(gram, A.T @ x[seen])
    z = (x[seen] - A @ a) / scale
    usual = level[0]
    size, cut, none_far = proposal_2(z**2, 9 * usual**2, m - d)
    for _ in range(0 if none_far else 2):
        reach = m / max(m - cut, m / 2)
        a = a + reach * np.linalg.solve(gram, A.T @ (np.clip(z, -size, size) * scale))
        z = (x[seen] - A @ a) / scale
        before = size
        size, cut, _ = proposal_2(z**2, size**2, m - d)
        if size < 1.5 * usual or size >= 0.8 * before:
            break
    level[0] = size if level[0] == 0 else level[0] * np.exp(0.1 * np.clip(np.log(size / level[0]), -3, 3))
    move = np.minimum(z**2 / (0.516 * size**2 * (m - d) / m), 1 / 0.516) - 1
    back = np.clip(0.005 * (1 - scale.mean()), -0.05, 0.05)
    deviation[seen] = scale * (1 + 0.025 * move + back)
    unit = max(level[0], size) if m >= 2 * d else level[0]
    if level[2] == 0:
        level[1:] = 0.0125, 20
    share, far = level[1], (np.abs(z) > 4 * unit) & (not none_far)
    beyond = far & (np.abs(z) > unit * np.clip(np.sqrt(0.2 / share), 4, 12))
    in_row[seen] = np.where(beyond, in_row[seen] + 1, 0)
    out = beyond & (in_row[seen] <= np.log(1e-4) / np.log(share))
    level[1:] = np.clip(share + max(0.002, 1 / level[2]) * (far.mean() - share), 1e-3, 0.5), level[2] + 1
    x = x.copy()
    x[seen[out]] = np.nan
    return x
