"""The dual problems written down and solved by brute force: L-BFGS and projected gradient."""

import numpy as np
from scipy.optimize import minimize


def primal(K, y, upper, coef, loss):
    """1/2 coef K coef + sum upper loss(y K coef)."""
    f = K @ coef
    m = y * f
    value = {
        "hinge": np.maximum(0, 1 - m),
        "squared_hinge": np.maximum(0, 1 - m) ** 2,
        "logistic": np.logaddexp(0, -m),
    }[loss]
    return coef @ f / 2 + upper @ value


def dual(K, y, upper, coef, loss):
    """The dual at alpha = y coef; upper > 0 on every row that counts."""
    on = upper > 0
    a, u = (y * coef)[on], upper[on]
    norm = coef @ K @ coef / 2
    if loss == "logistic":
        return -norm - np.sum(a * np.log(a / u) + (u - a) * np.log1p(-a / u))
    return a.sum() - norm - (np.sum(a**2 / (4 * u)) if loss == "squared_hinge" else 0)


def solve(K, y, upper, loss):
    """Coefficients from scipy's L-BFGS-B on the dual, the logistic one kept off the ends of its box."""
    on = np.flatnonzero(upper > 0)
    u, Q = upper[on], (y[:, None] * K * y)[np.ix_(on, on)]

    def negative(a):
        if loss == "logistic":
            return a @ Q @ a / 2 + np.sum(a * np.log(a / u) + (u - a) * np.log1p(-a / u)), Q @ a + np.log(a / (u - a))
        r = 1 / (2 * u) if loss == "squared_hinge" else 0
        return a @ Q @ a / 2 + np.sum(r * a**2) / 2 - a.sum(), Q @ a + r * a - 1

    ends = {"hinge": (0, 1), "squared_hinge": (0, np.inf), "logistic": (1e-9, 1 - 1e-9)}[loss]
    bounds = [(ends[0] * c, ends[1] * c) for c in u]
    start = u / 2 if loss == "logistic" else np.zeros(len(u))
    options = {"maxiter": 20000, "maxfun": 100000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 50}
    coef = np.zeros(len(K))
    coef[on] = y[on] * minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return coef


def multiclass_primal(K, label, upper, coef):
    f = K @ coef
    margins = f + (np.arange(coef.shape[1]) != label[:, None]) - f[np.arange(len(K)), label][:, None]
    return np.sum(coef * f) / 2 + upper @ margins.max(axis=1)


def multiclass_dual(K, label, coef):
    return coef[np.arange(len(K)), label].sum() - np.sum(coef * (K @ coef)) / 2


def project_rows(target, cap):
    """Nearest points with row sums 0 below cap, by bisection on the shift of every row."""
    high = (np.abs(target) + np.abs(cap)).max(axis=1, keepdims=True) + 1
    low = -high
    for _ in range(60):
        shift = (low + high) / 2
        short = np.minimum(cap, target + shift).sum(axis=1, keepdims=True) < 0
        low, high = np.where(short, shift, low), np.where(short, high, shift)
    return np.minimum(cap, target + (low + high) / 2)


def solve_multiclass(K, label, n_classes, upper, n_steps=2000):
    """Projected gradient on the Crammer-Singer dual, step 1 / largest eigenvalue."""
    hot = np.eye(n_classes)[label]
    tau, step = np.zeros_like(hot), 1 / np.linalg.eigvalsh(K)[-1]
    for _ in range(n_steps):
        before, tau = tau, project_rows(tau - step * (K @ tau + 1 - hot), upper[:, None] * hot)
        if np.abs(tau - before).max() < 1e-9:
            break
    return tau
