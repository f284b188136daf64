"""Algorithm 1 of Hazan, Livni and Mansour as printed: the coefficients of every row, decayed at every step."""

import numpy as np

from reference.karma import embedding


def slope(loss, f, y, epsilon=0.1):
    """(Sub)gradient of the loss in f."""
    return {
        "hinge": -y * (y * f < 1),
        "squared_hinge": -2 * y * max(0, 1 - y * f),
        "logistic": -y / (1 + np.exp(y * f)),
        "squared": 2 * (f - y),
        "absolute": np.sign(f - y),
        "epsilon_insensitive": np.sign(f - y) * (abs(f - y) > epsilon),
    }[loss]


def rate(loss, t, k, rho, eta, eta0):
    """eta_t, capped by the curvature where the slope is not bounded; "printed" is 1 / (rho t) for every loss."""
    plain = {"theory": 1 / (rho * t), "printed": 1 / (rho * t), "constant": eta0}[eta]
    return min(plain, 1 / (rho + 2 * k)) if loss in ("squared", "squared_hinge") and eta != "printed" else plain


def proximal_slope(f, y, epsilon, most):
    """The slope of |f' - y| or its tube at f' = f - most s, where the step of slope s ends."""
    beyond = np.sign(f - y) * max(abs(f - y) - epsilon, 0)
    return np.clip(beyond / most, -1, 1)


def algorithm_1(gram, y, rho, *, loss="hinge", eta="theory", eta0=0.1, weight=None):
    """Values before every step (n,), and coefficients of v_1, ..., v_(n+1) (n + 1, n), for f = gram @ alpha."""
    n = len(y)
    alpha, values, iterates = np.zeros(n), np.zeros(n), [np.zeros(n)]
    for t in range(1, n + 1):
        i, w = t - 1, 1.0 if weight is None else weight[t - 1]
        values[i] = gram[i] @ alpha
        step = rate(loss, t, w * gram[i, i], rho, eta, eta0)
        alpha = (1 - step * rho) * alpha
        s = slope(loss, values[i], y[i])
        if eta == "theory" and loss in ("absolute", "epsilon_insensitive"):
            tube = 0.1 if loss == "epsilon_insensitive" else 0
            s = proximal_slope(gram[i] @ alpha, y[i], tube, step * w * gram[i, i])
        alpha[i] -= step * w * s
        iterates.append(alpha)
    return values, np.array(iterates)


def iterate_of(iterates, kind):
    """v_(T+1); the mean of v_1 to v_T (Theorem 2, item 2); the mean of v_2 to v_(T+1) with weights 1 to T."""
    T = len(iterates) - 1
    if kind == "last":
        return iterates[-1]
    return (
        iterates[:-1].mean(axis=0)
        if kind == "average"
        else np.average(iterates[1:], axis=0, weights=np.arange(1, T + 1))
    )


def as_printed(X, y, X_new, gamma, rho, loss, eta=None):
    """Algorithm 1 with eta_t = 1 / (rho t), or eta(t), on the features of Definition 4 themselves: the values of v_t at row t, and those of
    the plain mean of v_1, ..., v_T at new rows (Theorem 2, item 2). X (n, d) with NaN, as it enters the kernel."""
    features, new = (np.array([embedding(x, gamma) for x in Z]) for Z in (X, X_new))
    v, total, values = np.zeros(features.shape[1]), np.zeros(features.shape[1]), []
    for t, (phi, target) in enumerate(zip(features, y, strict=True), 1):
        total += v
        values.append(v @ phi)
        step = 1 / (rho * t) if eta is None else eta(t)
        v = (1 - step * rho) * v - step * slope(loss, values[-1], target) * phi
    return np.array(values), new @ total / len(y)
