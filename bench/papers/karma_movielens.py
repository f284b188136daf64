"""Who is the user? MovieLens-1M by the KARMA paper: `LACUNAR_DATA=... python bench/papers/karma_movielens.py`.

Gender, occupation (error rates) and age (a quarter of the squared error over the variance, the paper's unit) of 6,040 users from
their ratings of 3,706 films, 80/20 splits. `KarmaClassifierCV` and `KarmaRegressorCV` choose among gamma 1 to 3 with and without
indicators, by cosine or trace; beside them a linear model on [ratings, seen] with rows of length 1, and LightGBM if there.
"""

import argparse
import os
import sys
import time
import warnings

import numpy as np
import scipy.sparse as sp
from karma_table1 import load
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import normalize

from lacunar import KarmaClassifierCV, KarmaRegressorCV

PAPER = {"gender": (0.22, 0.26, 0.28), "age": (0.16, 0.22, 0.25), "occupation": (0.81, 0.87, 0.86)}
GAMMAS, RIDGES = (1, 2, 3), np.logspace(-3, 3, 13)


def seen_and_rated(X, center):
    """Centred ratings and what was rated, every row of length 1."""
    rated = X.tocsr().copy()
    mask = rated.copy()
    mask.data = np.ones_like(mask.data)
    rated.data = rated.data - center[rated.indices]
    return normalize(sp.hstack([normalize(rated), normalize(mask)]).tocsr())


def linear(task, X, y, train, test):
    part = X[train].tocsc()
    center = np.asarray(part.sum(axis=0)).ravel() / np.maximum(np.diff(part.indptr), 1)
    A, B = seen_and_rated(X[train], center), seen_and_rated(X[test], center)
    gram, across = (A @ A.T).toarray(), (B @ A.T).toarray()
    value, vector = np.linalg.eigh(gram)
    kept = value > 1e-8 * value[-1]
    whiten = vector[:, kept] / np.sqrt(value[kept])
    model = RidgeCV(RIDGES) if task == "age" else RidgeClassifierCV(RIDGES)
    return model.fit(gram @ whiten, y[train]).predict(across @ whiten)


def karma(task, X, y, train, test):
    kind = KarmaRegressorCV if task == "age" else KarmaClassifierCV
    model = kind(GAMMAS, max_search_rows=2000, random_state=0, n_jobs=1)
    made = model.fit(X[train], y[train]).predict(X[test])
    print(f"  chosen: {model.best_params_}")
    return made


def lightgbm(task, X, y, train, test):
    from lightgbm import LGBMClassifier, LGBMRegressor

    dense = np.full(X.shape, np.nan, dtype=np.float32)
    coo = X.tocoo()
    dense[coo.row, coo.col] = coo.data
    kind = LGBMRegressor if task == "age" else LGBMClassifier
    model = kind(n_estimators=200 if task != "occupation" else 40, learning_rate=0.05, n_jobs=1, verbose=-1)
    return model.fit(dense[train], y[train]).predict(dense[test])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=list(PAPER))
    parser.add_argument("--without", nargs="*", default=[])
    options = parser.parse_args()
    if not os.environ.get("LACUNAR_DATA"):
        sys.exit("LACUNAR_DATA is not set: no real tables to read")
    models = {"karma": karma, "linear": linear, "LightGBM": lightgbm}
    for task in options.tasks:
        X, y, _ = load(f"movielens1m:{task}")
        X, found = sp.csr_array(X), {name: [] for name in models if name not in options.without}
        for seed in range(options.splits):
            train, test = train_test_split(
                np.arange(len(y)), test_size=0.2, random_state=seed, stratify=None if task == "age" else y
            )
            for name in found:
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made = models[name](task, X, y, train, test)
                wrong = np.mean((made - y[test]) ** 2) / np.var(y) / 4 if task == "age" else np.mean(made != y[test])
                found[name].append(wrong)
                print(f"  {task} split {seed} {name}: {wrong:.4f} in {time.perf_counter() - start:.0f} s", flush=True)
        ours = ", ".join(
            f"{name} {np.mean(each):.3f} ({np.std(each) / max(len(each) - 1, 1) ** 0.5:.3f})"
            for name, each in found.items()
        )
        print(
            f"{task}: {ours}; paper karma {PAPER[task][0]}, 0-imputation {PAPER[task][1]}, completion {PAPER[task][2]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
