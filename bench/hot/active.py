"""Subspaces of rows that are paid for an entry at a time."""

import numpy as np

from bench.hot import case
from bench.hot.subspaces import missed
from lacunar.active import MBEG, ActivePOPCA
from lacunar.papers.subspace import PrintedMBEG


def atoms(d):
    """Two directions, each on two attributes of its own, and what answers for a row on one of them."""
    basis = np.zeros((2, d))
    basis[0, :2] = basis[1, 2:4] = 0.5**0.5
    rng = np.random.default_rng(0)

    def oracle(indices):
        return (rng.choice([-1.0, 1.0]) * basis[rng.integers(2)])[indices]

    return basis, oracle


@case("MBEG lazy step", small={"d": 40, "m": 40}, large={"d": 200, "m": 640}, counted=False)
@case(
    "MBEG literal step",
    small={"d": 20, "m": 20, "printed": True},
    large={"d": 200, "m": 20, "printed": True},
    counted=False,
)
def mbeg(d, m, printed=False):
    """Rows on one of two atoms, paid for two entries at a time."""

    def run():
        model = PrintedMBEG(d, 2, m=10**6, alpha=0.3, random_state=0) if printed else MBEG(d, 2, random_state=0)
        return model.run(atoms(d)[1], m)

    def check(model):
        assert model.n_told_ == m
        weights = model.result().components_
        np.testing.assert_allclose(weights @ weights.T, np.eye(2), atol=1e-9)

    return run, check


@case("active POPCA, uniform", small={"d": 8, "m": 2000}, large={"d": 32, "m": 40_000}, counted=False)
@case(
    "active POPCA, adaptive",
    small={"d": 8, "m": 1000, "strategy": "adaptive"},
    large={"d": 64, "m": 20_000, "strategy": "adaptive"},
    counted=False,
)
def acquired(d, m, strategy="uniform"):
    """The atoms are found."""

    def run():
        return ActivePOPCA(d, 2, 2, strategy=strategy, center=False, random_state=0).run(atoms(d)[1], m)

    return run, lambda model: found(atoms(d)[0], model.result())


def found(basis, result, most=0.1):
    share = missed(result.components_, basis.T)
    assert share < most, f"{share} of the subspace is missed, {most} is allowed"
