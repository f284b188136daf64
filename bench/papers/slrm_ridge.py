"""The default of `SLRMRegressor` against the best ridge in hindsight: `python bench/papers/slrm_ridge.py`.

n=3200, D=100, d=30 as in Figure 1; alternating least squares over a grid of ridges, the best chosen on the test rows, which no
user can, against the default, which learns its ridge. Prints mean squared errors over seeds and their ratio.
"""

import argparse

import numpy as np
from slrm_figure1 import RANK, World

from lacunar.regression import SLRMRegressor

SETTINGS = [(0.1, 0.4), (0.3, 0.4), (0.3, 0.75), (1.0, 0.75), (1.0, 0.3)]
GRID = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = parser.parse_args().seeds
    for sigma, p in SETTINGS:
        errors = []
        for seed in range(seeds):
            world = World({"n": 3200, "p": p, "sx2": sigma**2, "sy2": sigma**2}, seed)
            grid = [
                world.error(
                    SLRMRegressor(RANK, solver="als", ridge=ridge, max_iter=30, scale=False, random_state=0)
                    .fit(world.X, world.y)
                    .predict(world.X_new)
                )
                for ridge in GRID
            ]
            mine = world.error(SLRMRegressor(RANK, random_state=0).fit(world.X, world.y).predict(world.X_new))
            errors.append((min(grid), mine, world.bayes()))
        best, mine, bayes = np.mean(errors, axis=0)
        print(
            f"sigma={sigma} p={p}: best ridge {best:.4g}, default {mine:.4g}, ratio {mine / best:.3f}, Bayes {bayes:.4g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
