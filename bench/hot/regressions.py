"""Regressions through a hidden subspace, and trackers of one that moves."""

from functools import partial

import numpy as np

from bench.hot import case
from bench.hot.data import low_rank
from bench.hot.subspaces import close_to
from lacunar.lowrank import (
    GROUSE,
    PETRELS,
    GaussianRegressor,
    SLRMOnlineRegressor,
    SLRMRegressor,
    SLRMRegressorCV,
)
from lacunar.papers.slrm import MPCR, SMPCR, PrintedSLRM

TRACKERS = {
    "PETRELS per-column": partial(PETRELS, init="random", random_state=0),
    "PETRELS shared": partial(PETRELS, correlation="shared", init="random", random_state=0),
    "GROUSE": partial(GROUSE, init="random", random_state=0),
}


@case(
    "RLS, per column (PETRELS)",
    small={"name": "PETRELS per-column"},
    large={"name": "PETRELS per-column", "n": 6000, "d": 1000},
)
@case("RLS, shared (PETRELS)", small={"name": "PETRELS shared"}, large={"name": "PETRELS shared", "n": 6000, "d": 1000})
@case("GROUSE step", small={"name": "GROUSE"}, large={"name": "GROUSE", "n": 6000, "d": 1000})
def tracker(name, n=500, d=60, rank=4):
    rows, _, _, basis = low_rank(n, d, rank, max(20, d // 10), noise=0.0, dtype=np.float64)
    return lambda: TRACKERS[name](rank).partial_fit(rows), partial(close_to, basis, 0.02)


SLRM = {
    "paper": partial(PrintedSLRM, max_iter=3, validate="pass", gamma=0.999),
    "stream": partial(SLRMOnlineRegressor, max_iter=3),
    "als": partial(SLRMRegressor, solver="als", max_iter=5, tol=0.0),
    "em": partial(SLRMRegressor, solver="em", max_iter=10, tol=0.0),
}


@case("fit, SLRM as in the paper", small={"solver": "paper"}, large={"solver": "paper", "n": 6000, "d": 1000})
@case("fit, SLRM stochastic", small={"solver": "stream"}, large={"solver": "stream", "n": 6000, "d": 1000})
@case("fit, SLRM by ALS", small={"solver": "als"}, large={"solver": "als", "n": 3000, "d": 400})
@case("fit, SLRM by EM", small={"solver": "em"}, large={"solver": "em", "n": 3000, "d": 400}, counted=False)
def slrm(solver, n=400, d=60, rank=4):
    rows, _, codes, _ = low_rank(n, d, rank, max(30, d // 10), dtype=np.float64)
    y = codes @ np.arange(1.0, rank + 1)

    def check(model):
        score = model.score(rows, y)
        assert score > 0.8, f"R^2 {score}"

    return lambda: SLRM[solver](rank, random_state=0).fit(rows, y), check


def regression(n, d, rank=4):
    rows, _, codes, _ = low_rank(n, d, rank, max(30, d // 10), dtype=np.float64)
    return rows, codes @ np.arange(1.0, rank + 1), codes


def explains(rows, y, model, least=0.8):
    score = model.score(rows, y)
    assert score > least, f"R^2 {score}"


FITS = {
    "SLRMRegressorCV": partial(SLRMRegressorCV, (2, 4, 6), cv=3, max_iter=10, tol=1e-2),
    "MPCR": partial(MPCR, 4, max_iter=10, tol=1e-12),
    "SMPCR": partial(SMPCR, 4, rho=1e-2, max_iter=3),
}


@case(
    "fit, SLRMRegressorCV",
    small={"name": "SLRMRegressorCV"},
    large={"name": "SLRMRegressorCV", "n": 2000},
    counted=False,
)
@case("fit, MPCR", small={"name": "MPCR"}, large={"name": "MPCR", "n": 3000, "d": 400}, counted=False)
@case("fit, SMPCR", small={"name": "SMPCR"}, large={"name": "SMPCR", "n": 6000, "d": 1000})
def relatives(name, n=300, d=60):
    rows, y, _ = regression(n, d)
    return lambda: FITS[name](random_state=0).fit(rows, y), partial(explains, rows, y, least=0.7)


@case("fit, SLRM of six targets", small={"n": 300, "d": 60}, large={"n": 3000, "d": 400}, counted=False)
def many_targets(n, d):
    rows, _, codes = regression(n, d)
    Y = codes @ np.random.default_rng(0).normal(size=(codes.shape[1], 6))
    return lambda: SLRMRegressor(4, max_iter=10, tol=1e-3, random_state=0).fit(rows, Y), partial(explains, rows, Y)


@case("fit, Gaussian", small={"n": 300, "d": 60}, large={"n": 3000, "d": 60}, counted=False)
def gaussian(n, d):
    rows, y, _ = regression(n, d)
    return lambda: GaussianRegressor().fit(rows, y), partial(explains, rows, y)


@case("predict, SLRM", small={"n": 300, "d": 60}, large={"n": 20_000, "d": 400}, counted=False)
def predicted(n, d):
    rows, y, _ = regression(n, d)
    model = SLRMRegressor(4, max_iter=10, tol=1e-3, random_state=0).fit(rows[:300], y[:300])

    def check(found):
        mean, std = found
        assert np.mean((mean - y) ** 2) < 0.2 * np.var(y)
        assert np.all(std > 0)

    return partial(model.predict, rows, return_std=True), check


@case("tracker scores and imputes", small={"n": 300, "d": 60}, large={"n": 20_000, "d": 400}, counted=False)
def tracked(n, d):
    rows, _, codes, basis = low_rank(n, d, 4, max(20, d // 10), noise=0.0, dtype=np.float64)
    model = PETRELS(4, init="random", max_iter=4, random_state=0).fit(rows)

    def check(found):
        residual, filled = found
        whole = codes @ basis.T
        assert np.median(residual) < 0.02
        assert np.mean((filled - whole) ** 2) < 0.05 * np.mean(whole**2)

    return lambda: (model.score_samples(rows), model.impute(rows)), check
