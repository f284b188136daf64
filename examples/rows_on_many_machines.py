"""
Rows on many machines
=====================

A folder of Parquet files, of which no machine reads all: every worker keeps its files, and only sums leave it. The picture shows that
the weights are those of one machine. Here the workers are threads; with a `dask.distributed.Client` they are machines, and one may die.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lacunar.distributed import apply, fit_slrm
from lacunar.lowrank import SLRMRegressor

FILES, ROWS, COLUMNS = 6, 500, 30


def files(folder, seed=0):
    """Rows of rank 3 with half of the entries missing, and a yield known for half of the rows."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(3, COLUMNS))
    for number in range(FILES):
        factors = rng.normal(size=(ROWS, 3))
        X = factors @ loadings + 0.3 * rng.normal(size=(ROWS, COLUMNS))
        X[rng.random(X.shape) < 0.5] = np.nan
        target = np.where(rng.random(ROWS) < 0.5, factors[:, 0] + 0.1 * rng.normal(size=ROWS), np.nan)
        frame = pd.DataFrame(X, columns=[f"sensor {j}" for j in range(COLUMNS)])
        frame.assign(**{"yield": target}).to_parquet(Path(folder) / f"{number}.parquet")


def main():
    with tempfile.TemporaryDirectory() as folder:
        files(folder)
        model = SLRMRegressor(3, random_state=0)
        over = fit_slrm(model, folder, "yield")
        frame = pd.concat(pd.read_parquet(path) for path in sorted(Path(folder).glob("*.parquet")))
    X, y = frame.drop(columns="yield"), frame["yield"]
    whole = model.fit(X, y)
    parts = [X.iloc[k * ROWS : (k + 1) * ROWS] for k in range(FILES)]
    predicted = np.concatenate(apply(over, parts))  # where the rows are
    print(f"predictions differ by at most {np.abs(predicted - whole.predict(X)).max():.1e}")
    print(f"R^2 over known labels {over.score(X[y.notna()], y[y.notna()]):.3f}, {over.n_iter_} steps")

    axes = plt.subplots(figsize=(4.5, 4.2), layout="constrained")[1]
    axes.axline((0, 0), slope=1, color="0.8")
    axes.plot(whole.feature_coef_, over.feature_coef_, ".")
    axes.set(xlabel="weight of a sensor, one machine", ylabel="the same over six files")
    plt.show()


if __name__ == "__main__":
    main()
