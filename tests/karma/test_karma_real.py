"""KARMA on real tables, read from the folder in LACUNAR_DATA: exact solutions of scikit-learn, accuracy bars."""

import os
import sys

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from test_karma import grams

from lacunar import KarmaClassifier, KarmaClassifierCV

pytestmark = pytest.mark.slow


@pytest.fixture
def real():
    """Loader of the real tables in LACUNAR_DATA."""
    folder = os.environ.get("LACUNAR_DATA")
    if not folder:
        pytest.skip("LACUNAR_DATA is not set: no real tables")
    sys.path.insert(0, folder)
    try:
        import load
    finally:
        sys.path.remove(folder)
    return load.load


@pytest.mark.parametrize("name", ["hepatitis", "wisconsin"])
def test_hinge_errs_like_svc_on_real_tables(real, name):
    """The same objective but for SVC's free bias: errors within one standard error of each other."""
    X, y, _ = real(name)
    ours, theirs = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        kept = np.nanstd(X[train], axis=0) > 0
        gram, across = grams(X[train][:, kept], X[test][:, kept], gamma=2)
        model = KarmaClassifier(loss="hinge").fit(X[train], y[train])
        exact = SVC(C=1.0, kernel="precomputed").fit(gram, y[train])
        ours.append(np.mean(model.predict(X[test]) != y[test]))
        theirs.append(np.mean(exact.predict(across) != y[test]))
    spread = np.sqrt(np.mean(theirs) * (1 - np.mean(theirs)) / len(y))
    assert abs(np.mean(ours) - np.mean(theirs)) <= spread


@pytest.mark.parametrize("name", ["hepatitis", "wisconsin"])
def test_squared_loss_is_kernel_ridge_on_real_tables(real, name):
    X, y, _ = real(name)
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    gram, across = grams(X[train], X[test], gamma=2)
    exact = KernelRidge(alpha=0.5, kernel="precomputed").fit(gram, np.where(y[train] > 0, 1.0, -1.0))
    model = KarmaClassifier().fit(X[train], y[train])
    np.testing.assert_allclose(model.decision_function(X[test]), exact.predict(across), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "bar"), [("hepatitis", 0.175), ("dermatology", 0.032)])
def test_default_search_meets_its_bar(real, name, bar):
    """Mean error over five repeats of five stratified folds."""
    X, y, _ = real(name)
    errors = [
        np.mean(KarmaClassifierCV().fit(X[train], y[train]).predict(X[test]) != y[test])
        for seed in range(5)
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
    ]
    assert np.mean(errors) <= bar
