"""How one column depends on the others: least squares, multinomial logistic and proportional odds, each with a draw of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from lacunar import _core, _linalg
from lacunar._typing import Floats, Ints

PRIOR = 1 / 2.5**2  # precision of a logistic coefficient: a normal of standard deviation 2.5 (Gelman et al. 2008)
_INTERCEPT_PRIOR = 1e-4
_FAR = 0.5  # root mean square change of the linear predictor beyond which second derivatives are taken anew
_LONGEST = 4.0  # change of a linear predictor in one step
_MOST_STEPS = 25
_CLOSE = 0.1  # of a step's gain for each parameter: what the step leaves is a tenth of a posterior standard deviation or less
_CHEAP = 2e6  # operations of second derivatives that are taken in every sweep
_OLDEST = 5  # sweeps after which dearer ones are
_SKETCH = 2000  # rows that give second derivatives on the way to the mode
REACH = 0.2  # standard deviations of the residuals, within which donors of matching lie
_TINY = 1e-12
_ALL = np.empty(0, dtype=np.int64)  # of the donors, rather than a sample
_NO_FACTOR = "X must hold numbers of moderate size; sums of their squares are not finite. Use other units."


def draw_around(factor: Floats, rng: np.random.Generator) -> Floats:
    """A normal draw (p,) with the inverse covariance L L^T, of which `factor` is L."""
    return np.asarray(lapack.dtrtrs(factor, rng.standard_normal(len(factor)), lower=1, trans=1)[0])


def factor_of(matrix: Floats) -> Floats:
    """Cholesky factor of a symmetric matrix, whose diagonal grows until it has one."""
    size = max(float(matrix.diagonal().max(initial=0.0)), _TINY)
    for power in range(-12, 1):
        factor, failed = lapack.dpotrf(matrix.T, lower=1)
        if not failed:
            return np.asarray(factor)
        matrix = matrix + 10.0**power * size * np.eye(len(matrix))
    raise ValueError(_NO_FACTOR)


# -- numbers ------------------------------------------------------------------------------------------------------------------


@dataclass
class Line:
    """A regression: coefficients by ridge, a draw of them, and a draw of the standard deviation of the residuals."""

    coef: Floats  # (p,), 0 where a column of the design is not used
    drawn: Floats
    sigma: float


def fit_line(gram: Floats, target: int, unused: Ints, n_rows: int, ridge: float, rng: np.random.Generator) -> Line:
    """Least squares of one column of a design from its Gram matrix (p, p), which is written over.

    `unused` columns take no part, the target among them. O(p^3).
    """
    p = len(gram)
    chi_square = rng.chisquare(max(n_rows - (p - len(unused)), 1))
    lines, unused = np.empty((3, p)), np.asarray(unused, dtype=np.intp)  # int32 on Windows before NumPy 2
    sigma = _linalg.fit_line(gram, target, unused, ridge, _TINY, chi_square, rng.standard_normal(p), lines)
    if sigma < 0:
        raise ValueError(_NO_FACTOR)
    return Line(lines[0], lines[1], sigma)


def nearest(fits: Floats, targets: Floats, k: int, reach: float, rng: np.random.Generator) -> Ints:
    """For each target one of the k positions whose fits are nearest, drawn at random.

    Where some of the k are further than `reach`, donors are few, and draws that all took the same ones would not tell how uncertain
    they are: these targets draw from a bootstrap of the positions, and only from those within `reach`, or the nearest.
    Equal fits are in random order, not in that of rows, so that none is preferred. O((n + m k) log n).
    """
    k, order = min(k, len(fits)), fits.argsort()
    ascending = fits[order]
    if (ascending[1:] == ascending[:-1]).any():
        order = rng.permutation(len(fits)).astype(np.int64)  # int32 on Windows before NumPy 2
        order = order[np.argsort(fits[order], kind="stable")]
    picks, is_far = _core.draw_nearest(ascending, order, _ALL, targets, rng.random(len(targets)), k, reach)
    far = is_far.nonzero()[0]
    if far.size:
        sample, uniform = rng.integers(len(fits), size=len(fits)), rng.random(len(far))
        picks[far] = _core.draw_nearest(ascending, order, sample, targets[far], uniform, k, reach)[0]
    return picks


# -- levels -------------------------------------------------------------------------------------------------------------------


@dataclass
class Newton:
    """Where Newton's steps for one column stand between sweeps: parameters, and the factor of second derivatives."""

    parameters: Floats
    factor: Floats | None = None
    age: int = 0

    def factor_at(self, operations: float) -> Floats | None:
        """The factor that is good enough for the first step of a sweep; None where it is taken anew."""
        self.age += 1
        return None if operations < _CHEAP or self.age > _OLDEST else self.factor

    def keep(self, factor: Floats, *, is_rough: bool) -> Floats:
        """Store second derivatives of this sweep; those of a few rows are good for this sweep only."""
        self.factor, self.age = factor, _OLDEST if is_rough else 0
        return factor


def share_of_step(move: Floats) -> float:
    """How much of a step that changes linear predictors by `move` is taken: separated levels would have them grow without end."""
    return min(1.0, _LONGEST / max(float(move.max()), -float(move.min()), _TINY))


def softmax(X: Floats, coef: Floats) -> Floats:
    """Probabilities (n, k + 1) of levels from a design (n, p) and coefficients (k, p); those of level 0 are 0."""
    return _softmax(coef @ X.T).T


def _softmax(scores: Floats) -> Floats:
    """Probabilities (k + 1, n) of levels from scores (k, n) of all but the first, in this order since sums over levels then run along rows."""
    top = np.maximum(scores.max(axis=0), 0.0)
    chances = np.empty((len(scores) + 1, scores.shape[1]))
    np.subtract(scores, top, out=chances[1:])
    np.negative(top, out=chances[0])
    np.exp(chances, out=chances)
    chances /= chances.sum(axis=0)
    return chances


def fit_multinomial(X: Floats, hot: Floats, weight: Floats | None, state: Newton, rng: np.random.Generator) -> Floats:
    """A draw (k, p) of the coefficients of a multinomial logistic model with a normal prior, from around its mode.

    `hot` (n, k) says which level each row has; rows of level 0 have none. Steps begin at the mode of the sweep before and are
    capped: separated levels get finite coefficients. Second derivatives are kept while steps are short. O(n p^2 k^2).
    """
    (n, p), k = X.shape, hot.shape[1]
    prior = np.full((k, p), PRIOR)
    prior[:, 0] = _INTERCEPT_PRIOR
    coef, far = state.parameters.reshape(k, p), 0.0
    scores, hot = coef @ X.T, np.ascontiguousarray(hot.T)
    factor = state.factor_at(n * p * p * k * (k + 1) / 2)
    is_first = state.factor is None
    for _ in range(_MOST_STEPS):
        chances = _softmax(scores)[1:]
        error = hot - chances
        if weight is not None:
            error *= weight
        slope = (error @ X - prior * coef).ravel()
        if factor is None or far > _FAR:
            every = max(n // _SKETCH, 1) if is_first or far > _FAR else 1
            factor = state.keep(factor_of(_curvature(X, chances, weight, prior, every)), is_rough=every > 1)
        step = lapack.dpotrs(factor, slope, lower=1)[0].reshape(k, p)
        if slope @ step.ravel() < _CLOSE * k * p:
            coef = coef + step
            break
        move = step @ X.T
        far = float(np.sqrt(np.mean(move * move)))
        length = share_of_step(move)
        coef, scores = coef + length * step, scores + length * move
    state.parameters = coef.ravel()
    assert factor is not None
    return np.asarray(coef + draw_around(factor, rng).reshape(k, p))


def _curvature(X: Floats, chances: Floats, weight: Floats | None, prior: Floats, every: int) -> Floats:
    """Second derivatives (k p, k p), block by block; each is a product of a matrix with itself, half the work of another.

    Those of one row in `every` stand for all. Products are in single precision, in half the time: their error, 1e-7 of a sum over rows,
    is small beside the prior up to millions of rows.
    """
    k, p = prior.shape
    X, chances, weight = X[::every].astype(np.float32), chances[:, ::every], None if weight is None else weight[::every]
    hessian, scaled = np.empty((k, p, k, p)), np.empty_like(X)
    for a in range(k):
        for b in range(a + 1):
            share = chances[a] * (1 - chances[a]) if a == b else chances[a] * chances[b]
            share = np.sqrt(share if weight is None else share * weight).astype(np.float32)
            np.multiply(X, share[:, None], out=scaled)
            block = every * (scaled.T @ scaled).astype(np.float64)
            hessian[a, :, b] = hessian[b, :, a] = block if a == b else -block
    whole = hessian.reshape(k * p, k * p)
    whole.flat[:: k * p + 1] += prior.ravel()
    return whole


def fit_one_against_rest(
    X: Floats, hot: Floats, weight: Floats | None, states: list[Newton], rng: np.random.Generator
) -> Floats:
    """Draws (levels, p) of a logistic model of every level against all others: of many levels, whose square is dear."""
    draws = [fit_multinomial(X, hot[:, [j]], weight, state, rng) for j, state in enumerate(states)]
    return np.vstack(draws)


def shares(X: Floats, coef: Floats) -> Floats:
    """Probabilities (n, levels) of levels that were learned one against the rest."""
    chances = expit(X @ coef.T) + _TINY
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def draw_levels(chances: Floats, rng: np.random.Generator) -> Floats:
    """A level for every row (n,) by its probabilities."""
    below = chances.T.cumsum(axis=0)[:-1]
    return np.asarray((rng.random(len(chances)) > below).sum(axis=0), dtype=np.float64)


# -- levels in an order -------------------------------------------------------------------------------------------------------


def fit_odds(X: Floats, places: Ints, weight: Floats | None, state: Newton, k: int, rng: np.random.Generator) -> Floats:
    """A draw (k - 1 + p,) of the cuts and coefficients of proportional odds: P(level <= j) = logistic(cut_j - x b).

    Fisher's scoring, from the mode of the sweep before. X (n, p) has no column of ones, for which the cuts stand.
    """
    p = X.shape[1]
    prior = np.r_[np.full(k - 1, _INTERCEPT_PRIOR), np.full(p, PRIOR)]
    theta = state.parameters
    for _ in range(_MOST_STEPS):
        slope, information = _odds_slope(X, places, weight, theta, k)
        factor, slope = factor_of(information + np.diag(prior)), slope - prior * theta
        step = lapack.dpotrs(factor, slope, lower=1)[0]
        theta = _ascending_step(theta, step, X, k)
        if slope @ step < _CLOSE * len(theta):
            break
    state.parameters = theta
    drawn: Floats = theta + draw_around(factor, rng)
    drawn[: k - 1] = np.maximum.accumulate(drawn[: k - 1])
    return drawn


def _ascending_step(theta: Floats, step: Floats, X: Floats, k: int) -> Floats:
    """The parameters after a step, or the part of it that keeps cuts in order and predictors near."""
    step = step * share_of_step(np.r_[X @ step[k - 1 :], step[: k - 1]])
    while (np.diff((theta + step)[: k - 1]) <= 0).any():
        step = step / 2
    return theta + step


def odds(X: Floats, theta: Floats, k: int) -> Floats:
    """Probabilities (n, k) of levels in an order."""
    below = expit(theta[: k - 1] - (X @ theta[k - 1 :])[:, None])
    return np.asarray(np.diff(below, axis=1, prepend=0.0, append=1.0))


def _odds_slope(X: Floats, places: Ints, weight: Floats | None, theta: Floats, k: int) -> tuple[Floats, Floats]:
    """First derivatives of the log likelihood, and Fisher's information, of cuts and then coefficients."""
    n = len(X)
    below = np.zeros((n, k + 1))
    below[:, 1:k], below[:, k] = expit(theta[: k - 1] - (X @ theta[k - 1 :])[:, None]), 1.0
    slopes = below * (1 - below)  # of each cut's probability
    chances = np.maximum(np.diff(below, axis=1), _TINY)
    w = np.ones(n) if weight is None else weight
    rows = np.arange(n)
    own = w / chances[rows, places]
    by_cut = np.zeros((n, k + 1))
    by_cut[rows, places + 1] += own * slopes[rows, places + 1]
    by_cut[rows, places] -= own * slopes[rows, places]
    by_score = own * (slopes[rows, places] - slopes[rows, places + 1])
    slope = np.r_[by_cut[:, 1:k].sum(axis=0), by_score @ X]
    return slope, _odds_information(X, slopes, chances, w)


def _odds_information(X: Floats, slopes: Floats, chances: Floats, w: Floats) -> Floats:
    k = chances.shape[1]
    change = np.diff(slopes, axis=1)  # of each level's probability, by the linear predictor, less its sign
    inner = slopes[:, 1:k]
    size = k - 1 + X.shape[1]
    information = np.zeros((size, size))
    own = (w[:, None] * inner**2 * (1 / chances[:, :-1] + 1 / chances[:, 1:])).sum(axis=0)
    information[np.arange(k - 1), np.arange(k - 1)] = own
    beside = -(w[:, None] * inner[:, :-1] * inner[:, 1:] / chances[:, 1:-1]).sum(axis=0)
    information[np.arange(k - 2), np.arange(1, k - 1)] = information[np.arange(1, k - 1), np.arange(k - 2)] = beside
    mixed = w[:, None] * inner * (change[:, 1:] / chances[:, 1:] - change[:, :-1] / chances[:, :-1])
    information[: k - 1, k - 1 :] = mixed.T @ X
    information[k - 1 :, : k - 1] = information[: k - 1, k - 1 :].T
    scaled = X * np.sqrt(w * (change**2 / chances).sum(axis=1))[:, None]
    information[k - 1 :, k - 1 :] = scaled.T @ scaled
    return information


def start_of(kind: str, counts: Floats, p: int) -> Any:
    """Where Newton's steps begin: cuts at the observed shares of ordered levels, and 0."""
    k = len(counts)
    if kind == "ordered":
        below = np.cumsum(counts)[:-1] / counts.sum()
        return Newton(np.r_[np.log(below / (1 - below)), np.zeros(p)])
    if kind == "rest":
        return [Newton(np.zeros(p)) for _ in range(k)]
    return Newton(np.zeros((k - 1) * p))
