"""`KarmaClassifierCV(options="auto")` against LightGBM tuned on the same folds: `LACUNAR_DATA=... python bench/papers/karma_peers.py`.

The six small classification tables, five stratified folds, repeated; LightGBM (needs the package lightgbm) chooses leaves, rate and
regularisation by 5 folds inside each training part. Prints error rates with standard errors over repeats, and the means.
"""

import argparse
import os
import sys
import warnings

import numpy as np
from joblib import Parallel, delayed
from karma_table1 import load
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from lacunar import KarmaClassifierCV

TABLES = ("hepatitis", "horses", "wisconsin", "mammographic", "cleveland", "dermatology")


def lightgbm():
    from lightgbm import LGBMClassifier

    grid = {"num_leaves": [4, 15], "learning_rate": [0.03, 0.1], "reg_lambda": [0.1, 5.0]}
    model = LGBMClassifier(n_estimators=150, min_child_samples=5, n_jobs=1, verbose=-1, random_state=0)
    return GridSearchCV(model, grid, cv=StratifiedKFold(5, shuffle=True, random_state=0))


MODELS = {"default": KarmaClassifierCV, "auto": lambda: KarmaClassifierCV(options="auto"), "LightGBM": lightgbm}


def fold(X, y, train, test):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [np.mean(make().fit(X[train], y[train]).predict(X[test]) != y[test]) for make in MODELS.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if not os.environ.get("LACUNAR_DATA"):
        sys.exit("LACUNAR_DATA is not set: no real tables to read")
    means = []
    for name in TABLES:
        X, y, _ = load(name)
        splits = [
            split
            for seed in range(options.repeats)
            for split in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
        ]
        errors = np.array(Parallel(n_jobs=options.jobs)(delayed(fold)(X, y, *split) for split in splits))
        by_repeat = errors.reshape(options.repeats, 5, -1).mean(axis=1)
        spread = by_repeat.std(axis=0) / np.sqrt(max(options.repeats - 1, 1))
        means.append(by_repeat.mean(axis=0))
        cells = "  ".join(f"{m} {e:.3f} ({s:.3f})" for m, e, s in zip(MODELS, means[-1], spread, strict=True))
        print(f"{name:14s} {cells}", flush=True)
    print("mean           " + "  ".join(f"{m} {e:.4f}" for m, e in zip(MODELS, np.mean(means, axis=0), strict=True)))


if __name__ == "__main__":
    main()
