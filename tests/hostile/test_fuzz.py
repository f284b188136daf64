"""Any small table, in every format, through every family: one answer or one error. LACUNAR_FUZZ sets the number of examples."""

import os
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from lacunar import KarmaClassifier, KarmaOnlineClassifier, KarmaRegressor, Observed
from lacunar.karma import KarmaFeatures
from lacunar.lowrank import GROUSE, PETRELS, POPCA, LowRankImputer, SLRMOnlineRegressor, SLRMRegressor
from lacunar.papers.karma import GeomClassifier, MatrixCompletionClassifier
from lacunar.papers.slrm import MPCR

EXAMPLES = int(os.environ.get("LACUNAR_FUZZ", "6"))
# Of few digits, so that float32 holds them too, and large enough for their squares.
CELLS = st.one_of(st.just(np.nan), st.just(0.0), st.integers(-64, 64).map(lambda k: k / 4))
TABLES = st.tuples(st.integers(1, 12), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=CELLS)
)
LEARNERS = [
    KarmaClassifier(),
    KarmaClassifier(loss="hinge", solver="primal", random_state=0),
    KarmaOnlineClassifier(2.5, random_state=0),
    KarmaRegressor(),
    # In float32 the solver stops elsewhere, and the distance to the optimum goes with the root of the gap.
    KarmaRegressor(solver="primal", tol=1e-8, random_state=0),
    KarmaFeatures(3, n_components=8, random_state=0),
    POPCA(1, random_state=0),
    POPCA(2, refine=0, random_state=0),
    PETRELS(1, random_state=0),
    PETRELS(1, correlation="shared", random_state=0),
    GROUSE(1, random_state=0),
    SLRMRegressor(1, random_state=0),
    SLRMOnlineRegressor(1, random_state=0),
    MPCR(1, random_state=0),
    GeomClassifier(),
    MatrixCompletionClassifier(lam=1.0, mu=1e-2, random_state=0),
    LowRankImputer(random_state=0),
]


def stored(X, order):
    """csr with the entries of each row in the given order of columns."""
    columns = np.concatenate([[j for j in order if not np.isnan(row[j])] for row in X]).astype(np.int32)
    counts = (~np.isnan(X)).sum(axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sp.csr_array((X[np.repeat(np.arange(len(X)), counts), columns], columns, indptr), shape=X.shape)


def formats(X):
    d = X.shape[1]
    made = {
        "Observed": Observed.from_dense(X),
        "csr": stored(X, range(d)),
        "csr reordered": stored(X, range(d)[::-1]),
        "coo": stored(X, range(d)).tocoo(),
        "fortran": np.asfortranarray(X),
        "float32": X.astype(np.float32),
        "list": X.tolist(),
    }
    try:
        import pandas
    except ImportError:
        return made
    return made | {"frame": pandas.DataFrame(X)}


def outcome(learner, X, labels):
    """The answer on the rows learned from, or the type of the error."""
    model = clone(learner)
    with warnings.catch_warnings(action="ignore"):  # constant columns, no convergence: not the subject here
        try:
            model.fit(X, labels)
        except (ValueError, TypeError) as error:
            return type(error) if str(error) else error  # an error says something
        return np.asarray(next(getattr(model, name) for name in ANSWERS if hasattr(model, name))(X), dtype=float)


ANSWERS = ("decision_function", "transform", "predict")


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
@given(TABLES, st.integers(0, 3))
@example(np.array([[np.nan, 1.0, 2.0], [np.nan] * 3, [np.nan, 0.0, 1.0], [np.nan, 3.0, -1.0]]), 0)
@example(np.full((3, 2), np.nan), 0)
@example(np.zeros((4, 2)), 0)
def test_every_format_has_one_outcome(learner, X, seed):
    labels = np.random.default_rng(seed).integers(2, size=len(X))
    labels[: min(2, len(labels))] = [0, 1][: len(labels)]
    dense = outcome(learner, X, labels)
    for name, table in formats(X).items():
        other = outcome(learner, table, labels)
        if isinstance(dense, type) or isinstance(other, type):
            assert other is dense, name
        else:
            assert np.isfinite(dense).all()
            scale = max(1.0, np.abs(dense).max(initial=0))
            np.testing.assert_allclose(other, dense, rtol=0, atol=scale * (1e-3 if name == "float32" else 1e-9))


@pytest.mark.parametrize("learner", [x for x in LEARNERS if hasattr(x, "partial_fit")], ids=repr)
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(st.integers(0, 7), st.integers(0, 4), st.sampled_from([np.inf, -np.inf]))
def test_a_refused_batch_changes_no_bit(learner, row, column, value):
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(16, 5)), np.arange(16) % 2
    X[rng.random(X.shape) < 0.3] = np.nan
    options = {"classes": [0, 1]} if isinstance(learner, KarmaOnlineClassifier) else {}
    model = clone(learner)
    with warnings.catch_warnings(action="ignore"):
        model.partial_fit(X, labels, **options)
    before = pickle.dumps(model)
    bad = X[:8].copy()
    bad[row, column] = value
    for batch in (bad, bad[:, :4], bad.astype(str)):
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(batch, labels[:8])
        assert pickle.dumps(model) == before
