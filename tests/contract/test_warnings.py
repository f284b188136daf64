"""Warnings point at a line of the user's, through decorators and scikit-learn, and a search repeats none."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.inspection import permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from lacunar import KarmaClassifier, LacunarClassifier
from lacunar._log import warn_user
from lacunar.lowrank import POPCA, SLRMRegressor


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] > 0).astype(int)
    # Columns 1 and 2 are missing together, and 3 where the first is large: a permuted column breaks both.
    X[rng.random(300) < 0.4, 1:3] = np.nan
    X[X[:, 0] > 0.5, 3] = np.nan
    return X, y


@pytest.fixture(scope="module")
def model(rows):
    return LacunarClassifier(members=["logistic", "boosting"], random_state=0).fit(*rows)


def caught(act):
    with warnings.catch_warnings(record=True, action="always") as said:
        act()
    return said


def test_a_search_warns_once_at_our_line(model, rows):
    said = caught(lambda: permutation_importance(model, *rows, n_repeats=3, random_state=0))
    masks = [each for each in said if "lack other entries" in str(each.message)]
    assert [each.filename for each in masks] == [__file__]
    assert all(each.filename == __file__ for each in said)


def test_other_lines_are_warned_too(model, rows):
    other = np.where(np.arange(4) == 1, np.nan, rows[0])
    answers = (
        lambda: model.predict(other),
        lambda: model.predict_proba(other),
    )
    for said in map(caught, answers):
        assert [each.filename for each in said if "lack other entries" in str(each.message)] == [__file__]


def counts():
    return sp.csr_array(np.eye(30, 6)[np.arange(30) % 5])


ACTS = {
    "karma, sparse counts": lambda: KarmaClassifier().fit(counts(), np.arange(30) % 2),
    "popca, unseen": lambda: POPCA(1, unseen="drop").fit(
        np.c_[np.random.default_rng(0).normal(size=(30, 3)), [np.nan] * 30]
    ),
    "slrm, in a pipeline": lambda: make_pipeline(FunctionTransformer(), SLRMRegressor(1)).fit(
        counts(), np.arange(30.0)
    ),
}


@pytest.mark.parametrize("name", ACTS)
def test_the_line_is_ours(name):
    said = caught(ACTS[name])
    assert said
    assert {each.filename for each in said} == {__file__}


def test_filters_of_python_hold():
    """One line warns once by default, and an error where that is asked for."""
    with warnings.catch_warnings(record=True, action="default") as said:
        for _ in range(3):
            warn_user("a message of this test")
    assert len(said) == 1
    with (
        warnings.catch_warnings(action="error", category=RuntimeWarning),
        pytest.raises(RuntimeWarning, match="another"),
    ):
        warn_user("another", RuntimeWarning)


def test_without_a_line_of_the_user():
    """At the top level of a process."""
    code = "from lacunar._log import warn_user\nwarn_user('said')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "<string>:2: UserWarning: said" in found.stderr
