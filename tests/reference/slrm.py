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


def petrels(X, U, R_inv, forget=1.0, ridge=0.0):
    """Chi, Eldar and Calderbank (2012), every R_j discounted at every step."""
    U, R_inv = U.copy(), R_inv.copy()
    for x in X:
        seen = ~np.isnan(x)
        R_inv /= forget
        modified_petrels(U, R_inv, seen, x, code(U, seen, x, ridge))
    return U


def grouse(X, U, damping=1.0):
    """Balzano, Nowak and Recht (2010), greedy step; damping scales its angle."""
    for x in X:
        seen = ~np.isnan(x)
        a = code(U, seen, x)
        residual = np.where(seen, x - U @ a, 0.0)
        p, r, size = U @ a, np.linalg.norm(residual), np.linalg.norm(a)
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
