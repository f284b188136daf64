"""Defaults are never left to chance: folds and hidden cells are fixed unless random_state says otherwise, and C is chosen by its loss."""

import numpy as np
import pytest
from sklearn.base import clone

from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaOnlineClassifier, KarmaRegressor, KarmaRegressorCV
from lacunar.learner import LacunarClassifier
from lacunar.lowrank import POPCA, LowRankImputer, SLRMRegressorCV
from lacunar.model_selection import ColdColumnKFold, ColdRowKFold, EntryKFold
from lacunar.papers.karma import MatrixCompletionClassifier, MatrixCompletionRegressor


def table(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    X = Z @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, Z[:, 0] + 0.8 * rng.normal(size=n)


DRAWN = {
    "folds": KarmaClassifierCV(cv=4),
    "subsample": KarmaClassifierCV(max_search_rows=40),
    "holdout": KarmaRegressorCV(cv="holdout"),
    "table": KarmaRegressor(solver="primal"),
    "stored rows": KarmaOnlineClassifier(budget=10**6),
    "slrm cells": SLRMRegressorCV([1, 2], over="cells", cv=3),
    "mc-1": MatrixCompletionClassifier(mu_min=1e-2),
    "mc-b": MatrixCompletionRegressor("bias", mu_min=1e-2),
    "rank": LowRankImputer(),
    "learner": LacunarClassifier(members=["gaussian", "kernels", "forest"]),
    "popca": POPCA("holdout"),
}


@pytest.mark.parametrize("name", DRAWN)
def test_defaults_are_not_left_to_chance(name):
    X, y = table()
    made = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002 what an unset random_state would draw from
        model = clone(DRAWN[name])
        model.fit(X, y > 0 if hasattr(model, "classes_") or "Classifier" in type(model).__name__ else y)
        value = next(m for m in ("predict_proba", "decision_function", "predict", "transform") if hasattr(model, m))
        made.append(getattr(model, value)(X))
    np.testing.assert_array_equal(made[0], made[1])


@pytest.mark.parametrize("folds", [EntryKFold, ColdRowKFold, ColdColumnKFold])
def test_folds_of_pairs_are_fixed(folds):
    pairs = [(i, j) for i in range(12) for j in range(7)]
    made = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        made.append([test.tolist() for _, test in folds(3).split(pairs)])
    assert made[0] == made[1]
    assert made[0] != [test.tolist() for _, test in folds(3, random_state=5).split(pairs)]


def test_an_error_of_the_ridge_names_the_C_that_was_given():
    X, y = table()
    KarmaRegressor(1.5, C=1e4).fit(X, y)  # a mixture of kernels is a kernel
    with pytest.raises(np.linalg.LinAlgError, match=r"C=1e\+18 .*Lower C"):
        KarmaRegressor(C=1e18, normalize=None).fit(1e3 * X, y)
    with pytest.raises(np.linalg.LinAlgError, match=r"C=1e\+18 .*Lower C"):
        KarmaClassifier(C=1e18, normalize=None).fit(1e3 * X, y > 0)
