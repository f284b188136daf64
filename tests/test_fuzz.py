"""Any small table, in every format, through every family: one answer or one error. LACUNAR_FUZZ sets the number of examples."""

import os
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from lacunar import KarmaClassifier, KarmaRegressor, Observed
from lacunar.baselines import GeomClassifier, MC1Classifier
from lacunar.features import KarmaFeatures
from lacunar.regression import MPCRRegressor, SLRMRegressor
from lacunar.stack import LowRankImputer
from lacunar.subspace import POPCA
from lacunar.tracking import GROUSE, PETRELS

EXAMPLES = int(os.environ.get("LACUNAR_FUZZ", "6"))
# Of few digits, so that float32 holds them too, and large enough for their squares.
CELLS = st.one_of(st.just(np.nan), st.just(0.0), st.integers(-64, 64).map(lambda k: k / 4))
TABLES = st.tuples(st.integers(1, 12), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=CELLS)
)
LEARNERS = [
    KarmaClassifier(),
    KarmaClassifier(loss="hinge", solver="primal", random_state=0),
    KarmaClassifier(2.5, loss="hinge", solver="online", random_state=0),
    KarmaRegressor(),
    KarmaRegressor(solver="primal", random_state=0),
    KarmaFeatures(3, n_components=8, random_state=0),
    POPCA(1, random_state=0),
    POPCA(2, refine=0, random_state=0),
    PETRELS(1, random_state=0),
    PETRELS(1, state="shared", random_state=0),
    GROUSE(1, random_state=0),
    SLRMRegressor(1, random_state=0),
    SLRMRegressor(1, solver="stochastic", random_state=0),
    MPCRRegressor(1, random_state=0),
    GeomClassifier(),
    MC1Classifier(lam=1.0, mu=1e-2, random_state=0),
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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # constant columns, no convergence: not the subject here
        try:
            model.fit(X, labels)
        except (ValueError, TypeError) as error:
            return type(error) if str(error) else error  # an error says something
        return np.asarray(next(getattr(model, name) for name in ANSWERS if hasattr(model, name))(X), dtype=float)


ANSWERS = ("decision_function", "transform", "predict")


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
@given(TABLES, st.integers(0, 3))
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
