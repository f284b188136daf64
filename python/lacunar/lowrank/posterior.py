"""The Gaussian posterior of latent coordinates of partially observed rows, and ridge regression on its moments.

`LowRankPosterior` knows two models of which entries are missing: at random, or each by its own value (self-masking).
Both are Gaussian, so that what a row does not show has an exact posterior.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.base import BaseEstimator

from lacunar._cuts import Cut
from lacunar._latent import LatentRows, latent_rows
from lacunar._products import row_product
from lacunar._random import fixed_seed, generator
from lacunar._typing import Bools, Floats
from lacunar.lowrank.em import WeightedRows, and_one, column_sums, fit_em, relaxed, run_em, unpacked
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.ridge import RidgeFit, fold_ridge, solve_ridge
from lacunar.observed import Observed
from lacunar.observed.columns import standardised
from lacunar.observed.memory import mark_private
from lacunar.observed.rules import COUNT, Array, Instance, Number, Optional, Rule, Word, floats

Kind = Literal["latent", "latent and mask", "completed and mask"]

_RELAX = 1.8  # length of a step of EM, in units of the step
_FEW_ROWS = 1500  # on which the first two thirds of the steps are made
_LARGEST_RANK, _RANK_SHARE = 40, 0.8  # the share is of the columns
_ALL_BUT_ONE = 12  # columns up to which the rank is one less than the columns
_ROWS_A_RANK = 4  # rows for each component at least
_LEAST_SIDES = 30  # observed and missing entries that a column needs for a masking function of its own
_QUANTILES = 64  # that stand for the observed entries of a column
_MASK_STEPS = 5  # of L-BFGS, in every step of EM
# Of sigma^2. Without noise in the table the estimate is rounding, and completions of more components than the rank
# follow it: by 5e-4 between machines at a least variance of 1e-12, by 1e-7 at this one.
_LEAST_NOISE = 1e-7
_LEAST_PIVOT = 1e-9  # ridge of a column's normal equations, in units of a row
# Of the logit of the height, centre, and log variance of a masking function.
_BOUNDS = ((-8.0, 8.0), (-6.0, 6.0), (-3.0, 5.0))
_MASKED_ITER = 24  # of self-masking, which starts from entries missing at random
_MASKED_SECONDS = 40  # that these and the ridges on them take at most, in units of the ridges without self-masking
_CHUNK = 2**15  # rows completed at once
_MASK_SHARE = 0.005  # a column's mask tells something if both of its values are more frequent than this
# When self-masking is tried: rows, share missing, error with masks over that without.
_MASK_ROWS, _MASK_ENTRIES, _MASK_GAIN = 1000, 0.05, 0.995


class Masking(NamedTuple):
    """P(missing | x) = height exp(-(x - center)^2 / (2 variance)) of every column; `has_masking` says which columns
    have a function.
    """

    height: Floats  # (p,)
    center: Floats  # (p,)
    variance: Floats  # (p,)
    has_masking: Bools  # (p,)

    def tempered(self, sigma2: float) -> Floats:
        """Weight (p,) of a missing entry as an observation of its centre, in units of an observed entry's."""
        return sigma2 / (sigma2 + self.variance)


class LowRankPosterior(BaseEstimator):
    """Rows x = mean + W a + noise with latent coordinates a of unit variance, learned by EM from what is observed.

    `n_components` None is min(40, 0.8 p, n / 4), p - 1 for p <= 12 columns: more than needed, since the posterior
    shrinks what is too much. EM takes `max_iter` steps, each 1.8 times as long as its own, on `max_rows` rows drawn at
    random; the first two thirds see at most 1,500. With `self_masking` an entry is missing with probability
    `mask_height_` exp(-(x - `mask_center_`)^2 / (2 `mask_variance_`)) of its own value x, learned for the columns
    `masked_` (p,), which have 30 observed and 30 missing entries: a missing entry then counts as an observation of the
    centre with noise of that variance. Entries missing at random are the limit of a large variance. `mean_` (p,),
    `components_` = W^T (k, p) and `noise_variance_` are the model. O(n p k^2 + n k^3) a step.

    Tipping and Bishop, "Probabilistic Principal Component Analysis", 1999, with missing entries; the masking function
    is that of Le Morvan, Josse, Moreau, Scornet and Varoquaux, "NeuMiss networks", 2020, section 3.3 (proposition 3.2
    gives the posterior).
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "mean_": floats("p"),
        "components_": floats("k", "p"),
        "noise_variance_": Number(low=0, above=True),
        "mask_height_": Optional(floats("p", low=0, high=1)),
        "mask_center_": Optional(floats("p")),
        "mask_variance_": Optional(floats("p", low=0)),
        "masked_": Array("b", ("p",)),
        "n_iter_": COUNT,
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        self_masking: bool = False,
        max_iter: int = 36,
        max_rows: int = 4000,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.self_masking = self_masking
        self.max_iter = max_iter
        self.max_rows = max_rows
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self, Z: Floats, weight: Floats | None = None, start: LowRankPosterior | LowRankGaussian | None = None
    ) -> LowRankPosterior:
        """Learn from rows Z (n, p), standardised and NaN where missing, of which one of weight w counts as w equal rows;
        from the fitted model `start` of the same columns, whose rank is kept, where there is one.
        """
        rng = generator(fixed_seed(self.random_state))
        drawn = rng.permutation(len(Z))[: self.max_rows]
        model = start.gaussian() if isinstance(start, LowRankPosterior) else start
        first = drawn[:_FEW_ROWS]
        last_steps = -(-self.max_iter // 3)
        stages = [(first, self.max_iter - last_steps), (drawn, last_steps)]
        masking = self._begin_masking(Z[drawn]) if self.self_masking else None
        n_iter = 0
        for rows, steps in stages if len(first) < len(drawn) else [(drawn, self.max_iter)]:
            row_weight = None if weight is None else np.ascontiguousarray(weight[rows], dtype=np.float64)
            if masking is None:
                model = self._at_random(Z[rows], row_weight, steps, rng, model)
            else:
                model = model or self._at_random(Z[rows], row_weight, max(steps // 4, 1), rng, None)
                model, masking = fit_self_masking(Z[rows], row_weight, model, masking, steps, self.n_jobs)
            n_iter += steps
        assert model is not None
        self._store(model, masking, n_iter)
        return self

    def _at_random(
        self, Z: Floats, weight: Floats | None, steps: int, rng: np.random.Generator, start: LowRankGaussian | None
    ) -> LowRankGaussian:
        rank = self._rank(*Z.shape)
        options: dict[str, Any] = {"max_iter": steps, "tol": 1e-6, "mean": True, "relax": _RELAX, "n_jobs": self.n_jobs}
        options["least_noise"] = _LEAST_NOISE
        return fit_em(
            Observed.from_dense(Z, dtype=np.float64), rank, rng=rng, start=start, weight=weight, **options
        ).model

    def _rank(self, n: int, p: int) -> int:
        if self.n_components is not None:
            return min(self.n_components, p)
        share = p - 1 if p <= _ALL_BUT_ONE else int(_RANK_SHARE * p)
        return max(1, min(_LARGEST_RANK, share, n // _ROWS_A_RANK))

    def _begin_masking(self, Z: Floats) -> Masking:
        missing = np.isnan(Z).sum(axis=0)
        has_masking = np.minimum(missing, len(Z) - missing) >= _LEAST_SIDES
        p = Z.shape[1]
        return Masking(np.full(p, 0.5), np.zeros(p), np.full(p, np.exp(2.0)), has_masking)

    def _store(self, model: LowRankGaussian, masking: Masking | None, n_iter: int) -> None:
        self.mean_, self.noise_variance_ = np.array(model.mean), float(model.ridge)
        self.components_ = np.ascontiguousarray(model.components)
        self.mask_height_ = None if masking is None else masking.height
        self.mask_center_ = None if masking is None else masking.center
        self.mask_variance_ = None if masking is None else masking.variance
        self.masked_ = np.zeros(len(self.mean_), dtype=bool) if masking is None else masking.has_masking
        self.n_iter_ = n_iter

    def gaussian(self) -> LowRankGaussian:
        """The model of the rows, masking functions left out."""
        noise = self.noise_variance_
        return LowRankGaussian(self.mean_, self.components_, noise, noise)

    def _masking(self) -> Masking | None:
        if self.mask_height_ is None:
            return None
        functions = (self.mask_height_, self.mask_center_, self.mask_variance_)
        return Masking(*functions, self.masked_)  # type: ignore[arg-type]

    def latent(self, Z: Floats) -> Floats:
        """Posterior means (n, k) of the latent coordinates of rows (n, p). O(p k^2 + k^3) a row."""
        return self._latent(Z, inverse=False).latent

    def features(self, Z: Floats) -> tuple[Floats, Floats]:
        """Posterior means (n, k) of the latent coordinates and, over the noise variance, their covariances (n,
        k, k).
        """
        posterior = self._latent(Z, inverse=True)
        return posterior.latent, unpacked(posterior.inverse, posterior.latent.shape[1])

    def variances(self, Z: Floats, weights: Floats) -> Floats:
        """Posterior variances (n, q) of sums of the latent coordinates with weights (k, q)."""
        row, column = np.tril_indices(len(weights))
        products = weights[row] * weights[column] * np.where(row == column, 1.0, 2.0)[:, None]
        return self.noise_variance_ * row_product(self._latent(Z, inverse=True).inverse, products, self.n_jobs)

    def complete(self, Z: Floats) -> Floats:
        """Rows (n, p) with posterior means for what is missing."""
        completed = np.array(Z, dtype=np.float64)
        for start in range(0, len(Z), _CHUNK):
            part = completed[start : start + _CHUNK]
            part[:] = self.filled(part, self.latent(part))
        return completed

    def filled(self, Z: Floats, latent: Floats) -> Floats:
        """Rows (n, p) completed from their latent coordinates (n, k)."""
        completed = row_product(latent, self.components_, self.n_jobs) + self.mean_
        masking = self._masking()
        if masking is not None:
            pull = np.where(masking.has_masking, masking.tempered(self.noise_variance_), 0.0)
            completed += pull * (masking.center - completed)
        return np.where(np.isnan(Z), completed, Z)

    def _latent(self, Z: Floats, *, inverse: bool) -> LatentRows:
        model, masking = self.gaussian(), self._masking()
        if masking is None:
            basis, rows = model.basis, standardised(Observed.from_dense(Z, dtype=np.float64), model.mean)
        else:
            basis, rows = masked_system(masked_table_of(Z, masking.has_masking), model, masking)
        return latent_rows(rows, basis, self.noise_variance_, inverse=inverse, n_jobs=self.n_jobs)


# -- tables -------------------------------------------------------------------------------------------------------


def masked_table_of(Z: Floats, has_masking: Bools) -> Observed:
    """The table (n, 2 p) of observed entries, then ones where an entry is missing that has a masking function."""
    missing = np.isnan(Z)
    both = np.concatenate([np.where(missing, np.nan, Z), np.where(missing & has_masking, 1.0, np.nan)], axis=1)
    return Observed.from_dense(both, dtype=np.float64)


def masked_system(table: Observed, model: LowRankGaussian, masking: Masking) -> tuple[Floats, Observed]:
    """Basis (2 p, k) and rows (n, 2 p) in which missing entries are observations of their centre, of less weight."""
    root = np.sqrt(masking.tempered(model.ridge))
    basis = np.concatenate([model.basis, root[:, None] * model.basis])
    shift = np.concatenate([-model.mean, root * (masking.center - model.mean)])
    p = len(root)
    values = np.where(table.indices < p, table.values, 0.0) + shift[table.indices]
    return basis, Observed._trusted(table.indptr, table.indices, mark_private(values), table.shape)


# -- self-masking ---------------------------------------------------------------------------------------------------


def fit_self_masking(
    Z: Floats, weight: Floats | None, model: LowRankGaussian, masking: Masking, steps: int, n_jobs: int | None
) -> tuple[LowRankGaussian, Masking]:
    """Steps of EM for rows (n, p) whose entries hide by their own values.

    Given the latent coordinates, an observed entry has its density and a missing one N(center; mean + W a, noise +
    variance) times the height times sqrt(variance / (variance + noise)). The M-step for a column of W and its mean is a
    weighted regression on latent coordinates, that for its masking function a few steps of L-BFGS.
    """
    table = WeightedRows(masked_table_of(Z, masking.has_masking), weight)
    facts = _column_facts(Z, weight, masking.has_masking)

    def step(state: tuple[LowRankGaussian, Masking]) -> tuple[tuple[LowRankGaussian, Masking], float]:
        return _masked_step(*state, table, facts, n_jobs), np.inf

    return run_em(step, (model, masking), max_iter=steps)[0]


def _masked_step(
    model: LowRankGaussian, masking: Masking, table: WeightedRows, facts: _Facts, n_jobs: int | None
) -> tuple[LowRankGaussian, Masking]:
    """The model and masking functions after a step of EM over the rows of a `masked_table_of`."""
    d = model.basis.shape[1]
    seen, hidden, products = _masked_sums(model, masking, table, n_jobs)
    pull = masking.tempered(model.ridge)
    old = np.column_stack([model.basis, model.mean])
    loadings = _columns(seen, products, hidden, pull, masking.center)
    residual = facts.squares - 2 * np.sum(loadings * products, axis=1)
    residual += np.einsum("jk,jkl,jl->j", loadings, seen, loadings)
    noise = max(float(residual.sum()) / max(float(facts.seen.sum()), 1.0), _LEAST_NOISE)
    loadings, noise = relaxed(old, loadings, model.ridge, noise, _RELAX, _LEAST_NOISE)
    first = np.einsum("jk,jk->j", loadings, hidden[:, :, d])
    second = np.einsum("jk,jkl,jl->j", loadings, hidden, loadings)
    model = LowRankGaussian(loadings[:, d].copy(), np.ascontiguousarray(loadings[:, :d]).T, noise, noise)
    return model, _next_masking(facts, first, second, noise, masking)


def _masked_sums(
    model: LowRankGaussian, masking: Masking, table: WeightedRows, n_jobs: int | None
) -> tuple[Floats, Floats, Floats]:
    """Second moments (p, k + 1, k + 1) of latent coordinates and 1 over observed and over missing entries, and products
    with the former.
    """
    p, d = model.basis.shape
    basis, rows = masked_system(table.rows, model, masking)
    posterior = latent_rows(rows, basis, model.ridge, inverse=True, n_jobs=n_jobs)
    latent = and_one(posterior.latent)
    covariance = np.zeros((len(latent), latent.shape[1] * (latent.shape[1] + 1) // 2))
    covariance[:, : posterior.inverse.shape[1]] = model.ridge * posterior.inverse
    packed, products = column_sums(table, latent, covariance)
    return unpacked(packed[:p], d + 1), unpacked(packed[p:], d + 1), products[:p]


class _Facts(NamedTuple):
    """Totals by column: weights of observed and of missing entries, weighted squares, and quantiles of the observed
    entries.
    """

    seen: Floats  # (p,)
    hidden: Floats  # (p,)
    squares: Floats  # (p,)
    quantiles: Floats  # (columns with a function, Q)


def _column_facts(Z: Floats, weight: Floats | None, has_masking: Bools) -> _Facts:
    weight = np.ones(len(Z)) if weight is None else weight
    missing = np.isnan(Z)
    levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    quantiles = np.array([np.quantile(Z[~missing[:, j], j], levels) for j in np.flatnonzero(has_masking)])
    squares = weight @ np.where(missing, 0.0, Z) ** 2
    return _Facts(weight @ ~missing, weight @ missing, squares, quantiles.reshape(-1, _QUANTILES))


def _columns(seen: Floats, products: Floats, hidden: Floats, pull: Floats, center: Floats) -> Floats:
    """Weights (p, k + 1) of every column on latent coordinates and 1: observed entries, and missing ones as their
    centre with weight `pull`.
    """
    d = seen.shape[1]
    grams = seen + pull[:, None, None] * hidden
    right = products + (pull * center)[:, None] * hidden[:, :, d - 1]
    known = seen[:, d - 1, d - 1] > 0  # the last coordinate is 1: number of observed entries
    loadings = np.zeros_like(right)
    loadings[known] = solve_ridge(grams[known], right[known], _LEAST_PIVOT)
    return loadings


def _next_masking(facts: _Facts, first: Floats, second: Floats, sigma2: float, masking: Masking) -> Masking:
    """Masking functions after a step of ascent on their expected likelihood; the arguments are sums (p,) over missing
    entries of expected values and squares.
    """
    has_masking = masking.has_masking
    if not has_masking.any():
        return masking
    height = np.clip(masking.height[has_masking], 1e-4, 1 - 1e-4)
    old = np.concatenate(
        [np.log(height / (1 - height)), masking.center[has_masking], np.log(masking.variance[has_masking])]
    )
    counts = (facts.seen[has_masking], facts.hidden[has_masking])
    nearer = minimize(
        mask_loss,
        old,
        args=(facts.quantiles, *counts, first[has_masking], second[has_masking], sigma2),
        jac=True,
        method="L-BFGS-B",
        bounds=np.repeat(_BOUNDS, has_masking.sum(), axis=0),
        options={"maxiter": _MASK_STEPS},
    ).x
    logit, center, log_variance = np.clip((old + 1.5 * (nearer - old)).reshape(3, -1).T, *np.array(_BOUNDS).T).T
    new = masking._replace(height=masking.height.copy(), center=masking.center.copy(), variance=masking.variance.copy())
    new.height[has_masking], new.center[has_masking], new.variance[has_masking] = (
        1 / (1 + np.exp(-logit)),
        center,
        np.exp(log_variance),
    )
    return new


def mask_loss(
    packed: Floats, quantiles: Floats, seen: Floats, hidden: Floats, first: Floats, second: Floats, sigma2: float
) -> tuple[float, Floats]:
    """Minus the expected log likelihood of the masks, an entry, and its gradient; `packed` are logit height, center,
    log variance.

    A weak prior, worth about one row, keeps columns finite whose masks tell nothing.
    """
    logit, center, log_variance = packed.reshape(3, -1)
    height, variance = 1 / (1 + np.exp(-logit)), np.exp(log_variance)
    wide = sigma2 + variance
    square = hidden * center**2 - 2 * center * first + second
    value = hidden * (np.log(height) + 0.5 * (log_variance - np.log(wide))) - square / (2 * wide)
    by_logit, by_center = hidden * (1 - height), (first - hidden * center) / wide
    by_variance = variance * (hidden / 2 * (1 / variance - 1 / wide) + square / (2 * wide**2))
    deviations = quantiles - center[:, None]
    chance = np.minimum(height[:, None] * np.exp(-(deviations**2) / (2 * variance[:, None])), 1 - 1e-9)
    share = (seen / quantiles.shape[1])[:, None]
    value += np.sum(share * np.log1p(-chance), axis=1)
    odds = -share * chance / (1 - chance)
    by_logit += np.sum(odds, axis=1) * (1 - height)
    by_center += np.sum(odds * deviations, axis=1) / variance
    by_variance += np.sum(odds * deviations**2, axis=1) / (2 * variance)
    value -= (log_variance - 1) ** 2 + logit**2 / 4 + center**2 / 8
    slopes = [by_logit - logit / 2, by_center - center / 4, by_variance - 2 * (log_variance - 1)]
    total = float(np.sum(seen) + np.sum(hidden))
    return -float(np.sum(value)) / total, -np.concatenate(slopes) / total


# -- ridge ------------------------------------------------------------------------------------------------------------


class PosteriorRidge(BaseEstimator):
    """Ridge regression on what a `LowRankPosterior` tells of a row, its form chosen by exact values of rows that are left
    out.

    Features are posterior means of latent coordinates, these and the mask, or the completed row and the mask (of the
    columns `mask_columns_`): `kind_`. Where masks help to predict, a posterior with self-masking is learned as well,
    offers the same three, and is `posterior_` where it is used. `self_masking` "auto" tries it from 1,000 rows with 5 %
    of the entries missing on, if the mask lowers the error by half a percent. `errors_` has the mean squared error out
    of fold of every form that was tried; `coef_` (features, q), `intercept_` (q,) and `penalty_` are the best. O(n f^2)
    for f features, and one factorisation for each penalty and fold.
    """

    _schema: ClassVar[dict[str, Rule]] = {
        "kind_": Word(("latent", "latent and mask", "completed and mask")),
        "penalty_": Number(low=0),
        "coef_": floats("features", "q"),
        "intercept_": floats("q"),
        "mask_columns_": Array("b", ("p",)),
        "posterior_": Optional(Instance(LowRankPosterior)),
    }

    def __init__(self, *, self_masking: Literal["auto"] | bool = "auto") -> None:
        self.self_masking = self_masking

    def fit(
        self,
        Z: Floats,
        Y: Floats,
        cuts: Sequence[Cut],
        posterior: LowRankPosterior,
        weight: Floats | None = None,
        deadline: float = np.inf,
        note: Callable[[str], None] | None = None,
    ) -> Floats:
        """Fit to targets Y (n, q) of rows Z (n, p), standardised and NaN where missing, with a posterior fitted to rows
        like these; predictions (tested rows, q), by ascending numbers of rows, of the test rows of every cut by what it
        learns from. No row is tested twice.

        Self-masking is not tried where it would end after the `deadline`, a time of `perf_counter`; `note` is called
        with a text that says so.
        """
        missing = np.isnan(Z)
        share = missing.mean(axis=0)
        self.mask_columns_ = (share > _MASK_SHARE) & (share < 1 - _MASK_SHARE)
        self.errors_: dict[str, float] = {}
        started = perf_counter()
        candidates = self._candidates(Z, Y, cuts, posterior, weight)
        seconds = perf_counter() - started
        if self._wants_masking(missing, candidates):
            if deadline < np.inf and perf_counter() + _MASKED_SECONDS * seconds > deadline:
                if note is not None:
                    note("without self-masking")
            else:
                masked = LowRankPosterior(self_masking=True, max_iter=_MASKED_ITER).fit(Z, weight, start=posterior)
                candidates += self._candidates(Z, Y, cuts, masked, weight)
        best = min(candidates, key=lambda candidate: candidate.fit.error)
        self.posterior_ = None if best.posterior is posterior else best.posterior
        self.kind_, self.penalty_ = best.kind, best.fit.penalty
        self.coef_, self.intercept_ = best.fit.coef, best.fit.intercept
        return best.fit.oof

    def predict(self, Z: Floats, posterior: LowRankPosterior) -> Floats:
        """Predictions (m, q) of rows (m, p) from the posterior given to `fit`, or the one with self-masking learned
        there.
        """
        features = self._features(Z, self.posterior_ or posterior, self.kind_)
        return row_product(features, self.coef_) + self.intercept_

    def _kinds(self) -> list[Kind]:
        kinds: list[Kind] = ["latent", "latent and mask", "completed and mask"]
        return kinds if self.mask_columns_.any() else ["latent", "completed and mask"]

    def _candidates(
        self,
        Z: Floats,
        Y: Floats,
        cuts: Sequence[Cut],
        posterior: LowRankPosterior,
        weight: Floats | None,
    ) -> list[_Candidate]:
        latent = posterior.latent(Z)
        candidates = []
        for kind in self._kinds():
            fit = fold_ridge(self._features(Z, posterior, kind, latent), Y, cuts, weight)
            name = f"{kind}, self-masking" if posterior.self_masking else kind
            self.errors_[name] = fit.error
            candidates.append(_Candidate(kind, posterior, fit))
        return candidates

    def _wants_masking(self, missing: Bools, candidates: list[_Candidate]) -> bool:
        if self.self_masking != "auto":
            return bool(self.self_masking)
        enough = len(missing) >= _MASK_ROWS and missing.mean() > _MASK_ENTRIES and self.mask_columns_.any()
        latent, with_mask = candidates[:2]
        return bool(enough and with_mask.fit.error < _MASK_GAIN * latent.fit.error)

    def _features(self, Z: Floats, posterior: LowRankPosterior, kind: Kind, latent: Floats | None = None) -> Floats:
        latent = posterior.latent(Z) if latent is None else latent
        if kind == "latent":
            return latent
        mask = np.isnan(Z)[:, self.mask_columns_].astype(np.float64)
        return np.concatenate([posterior.filled(Z, latent) if kind == "completed and mask" else latent, mask], axis=1)


class _Candidate(NamedTuple):
    """A ridge regression, the kind of its features, and the posterior that they come from."""

    kind: Kind
    posterior: LowRankPosterior
    fit: RidgeFit
