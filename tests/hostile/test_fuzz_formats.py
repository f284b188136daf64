"""Every learner, every dtype and container: one answer or one error. LACUNAR_FUZZ sets the number of examples."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from doors import every_other_cell, read_only
from faulty import LEARNERS, answer, quiet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from lacunar import Observed
from lacunar.completion import OnlineMatrixClassifier

EXAMPLES = int(os.environ.get("LACUNAR_FUZZ", "3"))
RELAXED = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
# Whole numbers from 0, so that every dtype holds them.
CELLS = st.one_of(st.just(np.nan), st.integers(0, 9).map(float))
TABLES = st.tuples(st.integers(1, 12), st.integers(1, 7)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.one_of(CELLS, st.integers(0, 9).map(float)))
)


def holes(X):
    """Columns of numbers and None."""
    return {f"c{j}": [None if np.isnan(v) else int(v) for v in column] for j, column in enumerate(X.T)}


def stored(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return sp.coo_array((X[rows, columns], (rows, columns)), shape=X.shape)


def shuffled(X):
    table = stored(X)
    order = np.random.default_rng(0).permutation(table.nnz)
    return sp.coo_array((table.data[order], (table.row[order], table.col[order])), shape=X.shape)


def wide_indices(X):
    table = stored(X).tocsr()
    parts = table.data.astype(np.int32), table.indices.astype(np.int64), table.indptr.astype(np.int64)
    return sp.csr_array(parts, shape=X.shape)


def frame(X, dtype):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({name: pandas.array(column, dtype=dtype) for name, column in holes(X).items()})


def polars(X):
    library = pytest.importorskip("polars")
    return library.DataFrame({n: library.Series(column, dtype=library.Int16) for n, column in holes(X).items()})


def arrow(X):
    return pytest.importorskip("pyarrow").table(holes(X))


FORMATS = {
    "Observed": Observed.from_dense,
    "csr_matrix": lambda X: sp.csr_matrix(stored(X)),
    "csc": lambda X: stored(X).tocsc(),
    "coo": shuffled,
    "csr of integers": wide_indices,
    "fortran": np.asfortranarray,
    "strided": every_other_cell,
    "read-only": read_only,
    "big-endian": lambda X: X.astype(">f8"),
    "float16": lambda X: X.astype(np.float16),
    "longdouble": lambda X: X.astype(np.longdouble),
    "object": lambda X: np.where(np.isnan(X), None, X.astype(object)),
    "Int64": lambda X: frame(X, "Int64"),
    "Float64": lambda X: frame(X, "Float64"),
    "polars": polars,
    "arrow": arrow,
}
WHOLE = {name: (lambda X, name=name: X.astype(name)) for name in ("int8", "uint8", "int32", "int64", "uint64", ">i4")}


def outcome(learner, X, labels):
    """The answers on the rows learned from, or the type of the error."""
    model = clone(learner)
    with quiet():
        try:
            return answer(model.fit(X, labels), X, ("decision_function", "transform", "predict"))
        except (ValueError, TypeError) as error:
            return type(error) if str(error) else error  # an error says something


@pytest.mark.parametrize("name", LEARNERS)
@RELAXED
@given(TABLES, st.lists(st.sampled_from([*FORMATS]), min_size=5, max_size=5, unique=True), st.sampled_from([*WHOLE]))
def test_every_dtype_has_one_outcome(name, X, some, whole):
    labels = np.arange(len(X)) % 2
    makers = {each: FORMATS[each] for each in some}
    if not np.isnan(X).any():
        makers[whole] = WHOLE[whole]
    expected = outcome(LEARNERS[name], X, labels)
    for each, make in makers.items():
        other = outcome(LEARNERS[name], make(X), labels)
        if isinstance(expected, type) or isinstance(other, type):
            assert other is expected, each
        else:
            assert np.isfinite(expected).all()
            # float16 becomes float32, in which a Gram of few digits is made
            atol = (5e-3 if each == "float16" else 1e-9) * max(1.0, np.abs(expected).max(initial=0))
            np.testing.assert_allclose(other, expected, rtol=0, atol=atol, err_msg=each)


def pair_formats(pairs):
    pandas = pytest.importorskip("pandas")
    return {
        "list": pairs.tolist(),
        "tuples": [tuple(pair) for pair in pairs.tolist()],
        "columns": (pairs[:, 0].tolist(), pairs[:, 1]),
        "int8": pairs.astype(np.int8),
        "uint64": pairs.astype(np.uint64),
        "fortran": np.asfortranarray(pairs),
        "object": pairs.astype(object),
        "frame": pandas.DataFrame(pairs, columns=["row", "col"]),
        "Int64": pandas.DataFrame(pairs).astype("Int64"),
    }


@RELAXED
@given(arrays(np.int64, st.tuples(st.integers(1, 20), st.just(2)), elements=st.integers(0, 6)), st.integers(0, 9))
def test_pairs_in_every_container(pairs, seed):
    labels = np.random.default_rng(seed).choice([-1, 1], len(pairs))
    expected = OnlineMatrixClassifier().fit(pairs, labels).decision_function(pairs)
    for name, each in pair_formats(pairs).items():
        got = OnlineMatrixClassifier().fit(each, labels).decision_function(each)
        np.testing.assert_array_equal(got, expected, err_msg=name)
    if len(np.unique(labels)) == 1:
        return  # of other kinds than -1 and 1, one label does not tell which it is
    for kind in (bool, np.int8, float, object, str):
        kinds = np.where(labels > 0, "yes", "no") if kind is str else (labels > 0).astype(kind)
        got = OnlineMatrixClassifier().fit(pairs, kinds).decision_function(pairs)
        np.testing.assert_array_equal(got, expected, err_msg=str(kind))
