"""Subspaces and regressions through them: sums over pairs, codes of rows, trackers, POPCA, SLRM, active acquisition."""

from functools import partial

import numpy as np

from hot import case
from hot.data import dense_and_mask, low_rank
from lacunar.active import MBEG
from lacunar.regression import SLRMRegressor
from lacunar.subspace import POPCA
from lacunar.tracking import GROUSE, PETRELS


def missed(components, basis):
    """Share of the true basis (d, k) outside the learned rows (k, d)."""
    learned, true = np.linalg.qr(components.T)[0], np.linalg.qr(basis)[0]
    return 1 - np.linalg.norm(learned.T @ true) ** 2 / true.shape[1]


def close_to(basis, most, model):
    share = missed(model.components_, basis)
    assert share < most, f"{share} of the subspace is missed, {most} is allowed"


@case("pair sums", small={"n": 400, "d": 40}, large={"n": 50_000, "d": 300})
def pair_sums(n, d, share=4):
    """POPCA in closed form: X^T X over rows, divided by the chance that a pair is seen together."""
    rows, _, _, _ = low_rank(n, d, 3, d // share, dtype=np.float64)

    def check(model):
        values, seen = dense_and_mask(rows)
        p = seen.mean()
        second = (values.T @ values) / n / np.where(np.eye(d, dtype=bool), p, p * p)
        expected = np.linalg.eigh(second)[1][:, -3:]
        assert missed(model.components_, expected) < 1e-9

    made = partial(POPCA, 3, center=False, weights="global", pseudo_count=0, refine=0, solver="dense")
    return lambda: made().fit(rows), check


@case("fit, POPCA", small={"n": 400, "d": 40, "solver": "dense"}, large={"n": 20_000, "d": 300, "solver": "dense"})
@case(
    "fit, POPCA matrix-free",
    small={"n": 400, "d": 40, "solver": "matrix-free"},
    large={"n": 20_000, "d": 3000, "solver": "matrix-free"},
)
def popca(n, d, solver, share=4):
    rows, _, _, basis = low_rank(n, d, 3, d // share, dtype=np.float64)
    made = partial(POPCA, 3, solver=solver, random_state=0)
    return lambda: made().fit(rows), partial(close_to, basis, 0.01)


@case("row codes", small={"n": 200, "d": 60, "rank": 8}, large={"n": 20_000, "d": 400, "rank": 16})
def row_codes(n, d, rank, share=2):
    rows = low_rank(n, d, rank, d // share, noise=0.0, dtype=np.float64)[0]
    model = POPCA(rank, center=False, codes="ls", random_state=0).fit(rows)

    def check(codes):
        values, seen = dense_and_mask(rows)
        for i in range(5):
            o = seen[i] > 0
            expected = np.linalg.lstsq(model.components_[:, o].T, values[i, o], rcond=None)[0]
            np.testing.assert_allclose(codes[i], expected, rtol=1e-6, atol=1e-8)

    return partial(model.transform, rows), check


TRACKERS = {
    "PETRELS per-row": partial(PETRELS, init="random", random_state=0),
    "PETRELS shared": partial(PETRELS, state="shared", init="random", random_state=0),
    "GROUSE": partial(GROUSE, init="random", random_state=0),
}


@case(
    "RLS, per row (PETRELS)", small={"name": "PETRELS per-row"}, large={"name": "PETRELS per-row", "n": 6000, "d": 1000}
)
@case("RLS, shared (PETRELS)", small={"name": "PETRELS shared"}, large={"name": "PETRELS shared", "n": 6000, "d": 1000})
@case("GROUSE step", small={"name": "GROUSE"}, large={"name": "GROUSE", "n": 6000, "d": 1000})
def tracker(name, n=500, d=60, rank=4):
    rows, _, _, basis = low_rank(n, d, rank, max(20, d // 10), noise=0.0, dtype=np.float64)
    return lambda: TRACKERS[name](rank).partial_fit(rows), partial(close_to, basis, 0.02)


SLRM = {
    "paper": {"solver": "paper", "lam1": 10.0, "max_iter": 3, "center": False, "scale": False, "clip": None},
    "stochastic": {"solver": "stochastic", "max_iter": 3},
    "als": {"solver": "als", "ridge": 0.1, "max_iter": 5, "tol": 0.0},
}


@case("fit, SLRM as in the paper", small={"solver": "paper"}, large={"solver": "paper", "n": 6000, "d": 1000})
@case("fit, SLRM stochastic", small={"solver": "stochastic"}, large={"solver": "stochastic", "n": 6000, "d": 1000})
@case("fit, SLRM by ALS", small={"solver": "als"}, large={"solver": "als", "n": 3000, "d": 400})
def slrm(solver, n=400, d=60, rank=4):
    rows, _, codes, _ = low_rank(n, d, rank, max(30, d // 10), dtype=np.float64)
    y = codes @ np.arange(1.0, rank + 1)

    def check(model):
        score = model.score(rows, y)
        assert score > 0.8, f"R^2 {score}"

    return lambda: SLRMRegressor(rank, random_state=0, **SLRM[solver]).fit(rows, y), check


@case("MBEG lazy step", small={"d": 40, "m": 40}, large={"d": 200, "m": 640}, counted=False)
def mbeg(d, m):
    """Rows on one of two atoms, paid for two entries at a time; the atoms are found."""
    basis = np.zeros((2, d))
    basis[0, :2] = basis[1, 2:4] = 0.5**0.5

    def run():
        rng = np.random.default_rng(0)

        def oracle(indices):
            return (rng.choice([-1.0, 1.0]) * basis[rng.integers(2)])[indices]

        return MBEG(d, 2, refresh=64, random_state=0).run(oracle, m)

    def check(model):
        assert model.n_told_ == m
        weights = model.result().components_
        np.testing.assert_allclose(weights @ weights.T, np.eye(2), atol=1e-9)

    return run, check
