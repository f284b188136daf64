"""Low-rank completion recovers what is recoverable."""

import numpy as np
import pytest

from lacunar import Observed
from lacunar.lowrank import LowRankImputer


def at_random(n=500, d=20, rank=4, share=0.7, seed=0):
    """A low-rank table whose entries are missing at random: completion's case."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y = X @ rng.normal(size=d)
    holes = np.where(rng.random(X.shape) < share, X, np.nan)
    return holes, y / y.std(), X


def test_completion_recovers_a_low_rank_table():
    holes, _, X = at_random()
    made = LowRankImputer(4, random_state=0).fit_transform(holes)
    seen = ~np.isnan(holes)
    np.testing.assert_array_equal(made[seen], holes[seen])
    assert np.mean((made - X)[~seen] ** 2) < 0.05 * np.var(X)


def test_rank_is_chosen_by_hidden_cells():
    full, _, X = at_random(n=600, rank=10, share=0.7)
    chosen = LowRankImputer(random_state=0).fit(full)
    assert 10 <= len(chosen.components_) <= 19
    missing = np.isnan(full)
    small = LowRankImputer(4, random_state=0).fit_transform(full)
    assert np.mean((chosen.transform(full) - X)[missing] ** 2) < 0.2 * np.mean((small - X)[missing] ** 2)
    ranks, errors = chosen.rank_errors_.T
    assert len(chosen.components_) <= ranks[np.argmin(errors)]
    assert errors[list(ranks).index(len(chosen.components_))] < 1.1 * errors.min()
    noisy = at_random(n=80, rank=2, share=0.3)[0] + np.random.default_rng(1).normal(size=(80, 20))
    assert len(LowRankImputer(random_state=0).fit(noisy).components_) <= 4
    again = LowRankImputer(random_state=0).fit(full)
    np.testing.assert_array_equal(again.components_, chosen.components_)


def test_completion_of_degenerate_tables():
    holes, _, _ = at_random(n=30)
    holes[:, 3], holes[4], holes[:, 5] = np.nan, np.nan, 2.0
    made = LowRankImputer(50, random_state=0).fit_transform(Observed.from_dense(holes))
    assert np.isfinite(made).all()
    np.testing.assert_array_equal(made[:, 3], 0)
    np.testing.assert_allclose(made[:, 5], 2.0)


@pytest.mark.parametrize("rank", ["auto", 2, 5])
def test_components_that_few_entries_support_are_shrunk(rank):
    """Smooth spectra, a tenth and a fifth seen: EM alone missed 1.02 (rank 1) to 1.55 (rank 5) of the variance."""
    for seed, share in ((0, 0.1), (1, 0.2)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(200, 30)) * 0.92 ** np.arange(30) @ np.linalg.qr(rng.normal(size=(30, 30)))[0]
        seen = np.where(rng.random(X.shape) < share, X, np.nan)
        missed = (LowRankImputer(rank, random_state=0).fit_transform(seen) - X)[np.isnan(seen)]
        assert np.mean(missed**2) < (1.08 if share == 0.1 else 1.015) * X.var()
