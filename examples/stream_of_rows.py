"""
A stream of rows
================

A million rows are never in memory: learn from batches, watch the mistakes, ask about single rows. The picture counts mistakes on rows
that were predicted before they were learned.
"""

import matplotlib.pyplot as plt
import numpy as np

from lacunar import KarmaOnlineClassifier
from lacunar.plotting import RegretDisplay

COLUMNS, OBSERVED = 30, 12


def batches(count, size=2000, seed=0):
    """Rows of rank 3 with most entries missing, and whether their first factor is positive."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(3, COLUMNS))
    for _ in range(count):
        factors = rng.normal(size=(size, 3))
        X = factors @ loadings + 0.1 * rng.normal(size=(size, COLUMNS))
        X[rng.random(X.shape).argsort(axis=1) >= OBSERVED] = np.nan
        yield X, np.where(factors[:, 0] > 0, "up", "down")


def main():
    model = KarmaOnlineClassifier(rho=1e-4)
    stream = batches(10)
    X, y = next(stream)
    model.partial_fit(X, y, classes=["down", "up"])  # settles the scale of the columns
    wrong = []
    for X, y in stream:
        score = model.score_stream(X, y)  # predicts every row, then learns it
        wrong.append(model.classes_[(score.values[:, 0] > 0).astype(int)] != y)
        print(
            f"{model.n_rows_seen_:6d} rows: {score.mistakes / score.n_rows:.1%} mistakes, hinge loss {score.loss:.3f}"
        )
    display = RegretDisplay({"KarmaOnlineClassifier": np.concatenate(wrong)})
    display.plot(plt.subplots(figsize=(5.6, 3.6), layout="constrained")[1])
    plt.show()

    row = {3: 1.2, 7: -0.4, 20: 2.0}  # column number (or name): value; the other columns are missing
    print("one row:", model.predict_one(row))
    model.learn_one(row, "up")

    once = KarmaOnlineClassifier(rho=1e-4).fit_batches(batches(10), classes=["down", "up"])
    X, y = next(batches(1, seed=0))
    print(f"one pass over batches: {once.solver_}, {np.mean(once.predict(X) == y):.1%} right")


if __name__ == "__main__":
    main()
