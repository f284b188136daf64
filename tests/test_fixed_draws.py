"""Defaults are never left to chance: folds and hidden cells are fixed unless random_state says otherwise, and C is chosen by its loss."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

from lacunar import KarmaClassifier, KarmaClassifierCV, KarmaOnlineClassifier, KarmaRegressor, KarmaRegressorCV
from lacunar.baselines import MatrixCompletionClassifier, MatrixCompletionRegressor
from lacunar.learner import LacunarClassifier
from lacunar.lowrank import POPCA, LowRankImputer, SLRMRegressorCV
from lacunar.model_selection import ColdColumnKFold, ColdRowKFold, EntryKFold


def table(n=90, d=6, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 2))
    X = Z @ rng.normal(size=(2, d)) + 0.3 * rng.normal(size=(n, d))
    X[rng.random(X.shape) < 0.3] = np.nan
    return X, Z[:, 0] + 0.8 * rng.normal(size=n)


LOGISTIC = KarmaClassifierCV(
    gammas=(2,),
    Cs=(1e-2, 0.1, 1.0, 10.0),
    indicators=(False,),
    normalize=("trace",),
    options=None,
    average=1,
    refit_loss="logistic",
)
DRAWN = {
    "logistic": LOGISTIC,
    "folds": KarmaClassifierCV(cv=4),
    "subsample": KarmaClassifierCV(max_search_rows=40),
    "holdout": KarmaRegressorCV(cv="holdout"),
    "table": KarmaRegressor(solver="primal"),
    "stored rows": KarmaOnlineClassifier(solver="support"),
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


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("seed", [None, 3])
def test_the_logistic_loss_chooses_C_by_log_loss(classes, seed):
    X, y = table(120)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    model = clone(LOGISTIC).set_params(random_state=seed).fit(X, labels)
    found, gamma = [], model.chosen_[0]["gamma"]
    for C in model.Cs:
        total = 0.0
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed or 0).split(X, labels):
            each = KarmaClassifier(gamma, C=C, loss="logistic").fit(X[train], labels[train])
            total += log_loss(labels[test], each.predict_proba(X[test]), labels=range(classes), normalize=False)
        found.append(total)
    assert model.Cs[int(np.argmin(found))] == model.estimators_[0].C


def test_a_class_that_a_fold_lacks_is_no_error():
    X, _ = table(60)
    labels = np.zeros(60, int)
    labels[:30], labels[59] = 1, 2
    model = clone(LOGISTIC).set_params(Cs=(0.1, 10.0)).fit(X, labels)
    assert np.isfinite(model.predict_proba(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_an_error_of_the_ridge_names_the_C_that_was_given():
    X, y = table()
    KarmaRegressor(1.5, C=1e4).fit(X, y)  # a mixture of kernels is a kernel
    with pytest.raises(np.linalg.LinAlgError, match=r"C=1e\+18 .*Lower C"):
        KarmaRegressor(C=1e18, normalize=None).fit(1e3 * X, y)
    with pytest.raises(np.linalg.LinAlgError, match=r"C=1e\+18 .*Lower C"):
        KarmaClassifier(C=1e18, normalize=None).fit(1e3 * X, y > 0)
