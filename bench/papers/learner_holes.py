"""`LacunarRegressor` beside two of its members where each of them wins: `python bench/papers/learner_holes.py [--quick]`.

Entries missing at random from a low-rank table (Figure 2 of the KARMA paper: d = 20, rank 10), where completion wins, and
blocks of columns missing (Figure 3: d = 200, rank 20, three blocks), where KARMA does. Mean squared error of a target of unit
variance on 2000 fresh rows, with the standard error over seeds; the pool's excess over the better of the two, paired by seed.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lacunar import LacunarRegressor

NAMES = ("kernels", "gaussian", "pool", "IterativeImputer")


def at_random(rng, n, share, d=20, rank=10):
    """Rows U z and the target w.x; each entry is seen with probability `share`."""
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    X = rng.normal(size=(n, rank)) @ basis.T
    y = X @ rng.normal(size=d)
    return np.where(rng.random(X.shape) < share, X, np.nan), y / y.std()


def blocks(rng, n, d=200, rank=20):
    """Each of three blocks of columns is seen with probability 1/3, given that one is."""
    kind = rng.integers(3, size=d)
    basis = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    X = rng.normal(size=(n, rank)) @ basis.T
    y = X @ rng.normal(size=d)
    patterns = np.array([[(p >> b) & 1 for b in range(3)] for p in range(1, 8)], bool)
    weight = np.array([(1 / 3) ** p.sum() * (2 / 3) ** (3 - p.sum()) for p in patterns])
    seen = patterns[rng.choice(7, size=n, p=weight / weight.sum())][:, kind]
    return np.where(seen, X, np.nan), y / y.std()


def errors(X, y, n):
    """Errors on the rows after the first n: of two members, the pool and a peer; weights of the pool, and seconds of it and the peer."""
    peer = make_pipeline(
        IterativeImputer(max_iter=5, n_nearest_features=min(X.shape[1], 40), random_state=0, keep_empty_features=True),
        StandardScaler(),
        RidgeCV(np.logspace(-3, 4, 15)),
    )
    models = [LacunarRegressor(members=["kernels"]), LacunarRegressor(members=["gaussian"]), LacunarRegressor(), peer]
    found, seconds = [], []
    for model in models:
        start = time.process_time()
        model.fit(X[:n], y[:n])
        seconds.append(time.process_time() - start)
        found.append(np.mean((model.predict(X[n:]) - y[n:]) ** 2))
    return found, models[2].weights_, seconds[2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    n, test = (300, 500) if options.quick else (1000, 2000)
    seeds = 2 if options.quick else options.seeds
    cases = [(f"at random, {p:.1f} seen", lambda rng, m, p=p: at_random(rng, m, p)) for p in (0.3, 0.5, 0.7, 0.9)]
    warnings.simplefilter("ignore")
    for name, make in [*cases, ("blocks", blocks)]:
        runs = [errors(*make(np.random.default_rng(seed), n + test), n) for seed in range(seeds)]
        found, weights, seconds = (np.array(part) for part in zip(*runs, strict=True))
        excess = found[:, 2] - found[:, :2].min(axis=1)
        spread = found.std(axis=0) / np.sqrt(max(seeds - 1, 1))
        cells = "  ".join(f"{m} {e:.4f} ({s:.4f})" for m, e, s in zip(NAMES, found.mean(axis=0), spread, strict=True))
        print(
            f"{name:19s} {cells}  excess {excess.mean():+.4f} ({excess.std() / np.sqrt(max(seeds - 1, 1)):.4f})"
            f"  weights {weights.mean(axis=0).round(2)}  CPU s {seconds.mean(axis=0).round(1)}",
            flush=True,
        )
        assert np.isfinite(found).all()


if __name__ == "__main__":
    main()
