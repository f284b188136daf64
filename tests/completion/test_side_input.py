"""What side information accepts and what it refuses."""

import datetime

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from reference import side as slow

from lacunar.completion import Features, Graph, Identity, Kernel, KernelFunction, Mix

pl = pytest.importorskip("polars")  # it has no free-threaded wheel

RNG = np.random.default_rng(1)
GRAM = np.eye(4) + 0.5


def but(K, at, value):
    K = K.copy()
    K[at] = value
    return K


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (but(GRAM, (1, 2), np.nan), "finite; got nan in row 1, column 2"),
        (but(GRAM, (0, 3), np.inf), "finite; got inf in row 0, column 3"),
        (but(GRAM, (0, 1), 0.4), "symmetric; got 0.4 in row 0, column 1 and 0.5 in row 1"),
        (GRAM - 1.1, "semidefinite; its smallest eigenvalue is -1.4"),
        (but(GRAM, (2, 2), -1.0), "semidefinite; got -1 on its diagonal, row 2"),
        (np.ones((3, 4)), r"square.*shape \(3, 4\)"),
        (np.ones(4), "square"),
        (np.empty((0, 0)), "at least one id"),
        (np.zeros((2, 2)), "diagonal entry above 0"),
        ([["a", "b"], ["c", "d"]], "matrix of numbers"),
        (sp.eye_array(5000), "sparse K may have at most 4000"),
    ],
)
def test_kernels_refused(K, message):
    for normalize in (True, False):
        with pytest.raises((ValueError, TypeError), match=message):
            Kernel(K, normalize=normalize).begin()


def test_kernels_that_are_singular_or_nearly_symmetric_are_kernels():
    K = np.ones((3, 3)) + 1e-12 * RNG.normal(size=(3, 3))
    np.testing.assert_allclose(Kernel(K).begin().dense(), 1, atol=1e-11)
    assert Kernel(sp.csr_array(GRAM)).begin().dense()[0, 1] == pytest.approx(1 / 3)
    with pytest.warns(UserWarning, match="zero for 1 of 3 ids .first: number 1"):
        side = Kernel(np.diag([2.0, 0.0, 1.0])).begin()
    np.testing.assert_array_equal(side.dense(), np.eye(3))


@pytest.mark.parametrize("n", [5, 60])
def test_single_precision_says_the_same(n):
    """Kernels, graphs and features of float32: what float64 gives, to the digits they have."""
    X = RNG.normal(size=(n, 3)).astype(np.float32)
    K = X @ X.T * np.float32(0.3)
    K[0, 1] *= np.float32(1 + 2e-7)  # somebody's rounding
    np.testing.assert_allclose(Kernel(K).begin().dense(), Kernel((K + K.T) / 2.0).begin().dense(), atol=1e-6)
    with pytest.raises(ValueError, match="symmetric"):
        Kernel(K.astype(np.float64)).begin()
    W = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    W[0, 1] *= np.float32(1 + 2e-7)
    np.testing.assert_allclose(
        Graph(W, kind="pinv").begin().dense(), Graph((W + W.T) / 2.0, kind="pinv").begin().dense(), atol=1e-5
    )
    np.testing.assert_allclose(Features(X).begin().dense(), Features(X.astype(float)).begin().dense(), atol=1e-6)


def test_ids():
    frame = pd.DataFrame(GRAM, index=list("wxyz"), columns=list("wxyz"))
    assert Kernel(frame).begin().ids == list("wxyz")
    assert Kernel(GRAM, ids=np.arange(10, 14)).begin().ids == [10, 11, 12, 13]
    assert all(type(i) is int for i in Kernel(GRAM, ids=np.arange(4)).begin().ids)
    assert Kernel(GRAM).begin().ids is None
    with pytest.raises(ValueError, match="got 3 ids for 4 rows"):
        Kernel(GRAM, ids=list("abc")).begin()
    with pytest.raises(ValueError, match="'a' names rows 0 and 2"):
        Kernel(GRAM, ids=list("abac")).begin()
    with pytest.raises(TypeError, match=r"ids\[1\] must be hashable.*got list"):
        Kernel(GRAM, ids=["a", [1], "b", "c"]).begin()
    with pytest.raises(ValueError, match="columns of K must be its index"):
        Kernel(frame[list("zyxw")]).begin()


@pytest.mark.parametrize(
    ("descriptor", "message"),
    [
        (Identity(0), "n must be at least 1"),
        (Identity(2.5), "n must be an integer"),
        (Identity(True), "n must be an integer"),
        (KernelFunction("cosine"), "f must be one of min, gaussian, linear, partition or a function"),
        (KernelFunction(length_scale=0.0), "length_scale must be above 0"),
        (KernelFunction(length_scale=np.nan), "length_scale must be finite"),
        (KernelFunction("linear", epsilon=-1.0), "epsilon must be finite and at least 0; got -1"),
        (KernelFunction("min", r=1.0), "r must be above 1"),
        (KernelFunction(points=[[0.0]], ids=["a", "b"]), "got 2 ids for 1 rows"),
        (Mix(Identity(), info=0.5), "must sum to 1"),
        (Mix(Identity(), info=1.2, const=-0.4), "info must be from 0 to 1"),
        (Mix("graph"), "must be side information"),
        (Features(np.ones((3, 2)), own=0.7, const=0.7), "at most 1"),
        (Features(np.ones((3, 2)), own="all"), "own must be a number"),
        (Features(np.array([[1.0], [np.inf]])), "finite where observed; got inf in row 1, column '0'"),
        (Features(np.ones((3, 0))), "at least one feature"),
        (Features({}), "at least one feature"),
        (Features({"a": [1], "b": [1, 2]}), "got lengths"),
        (Features(np.ones((3, 2)), ids=["a"]), "got 1 ids for 3 rows"),
        (Features(np.array([1j])), "numbers or categories"),
        (Features({"a": [("x",), "b"]}), "hold numbers, text or dates; got"),
        (
            Features({"t": np.array(["2020-01-01"], "M8[D]")}),
            "column 't' must hold numbers or categories; got dtype datetime64",
        ),
        (
            Features({"t": [datetime.date(2020, 1, 1)]}),
            "column 't' must hold numbers, booleans or categories; it holds dates",
        ),
        (Features(pd.DataFrame({"t": pd.to_datetime(["2020-01-01"])})), "column 't' must hold numbers"),
        (Features(np.full((3, 2), np.nan), normalize=False), "missing or zero"),
    ],
)
def test_descriptors_refused(descriptor, message):
    with pytest.raises((ValueError, TypeError), match=message):
        descriptor.begin()


GENRE, YEAR, OLD = ["war", None, "love", "war"], [1990.0, 2001.0, np.nan, 1987.0], [True, False, None, True]


def frames():
    yield {"genre": GENRE, "year": YEAR, "old": OLD}
    yield {"genre": np.array(GENRE, dtype=object), "year": np.array(YEAR), "old": np.array([1.0, 0.0, np.nan, 1.0])}
    yield pd.DataFrame({"genre": GENRE, "year": YEAR, "old": pd.array(OLD, dtype="boolean")})
    yield pd.DataFrame(
        {"genre": pd.Categorical(GENRE), "year": pd.array(YEAR, dtype="Float64"), "old": [1.0, 0.0, None, 1.0]}
    )
    yield pl.DataFrame({"genre": GENRE, "year": YEAR, "old": OLD})
    yield pl.DataFrame({"genre": pl.Series(GENRE, dtype=pl.Categorical), "year": YEAR, "old": OLD})
    yield np.array([GENRE, YEAR, OLD], dtype=object).T


@pytest.mark.parametrize("X", list(frames()), ids=range(7))
def test_tables_of_every_kind_say_the_same(X):
    year = np.array(YEAR)
    year = np.nan_to_num((year - np.nanmean(year)) / np.nanstd(year))
    K = slow.cosine(np.column_stack([slow.one_hot(GENRE), year, [1.0, 0.0, 0.0, 1.0]]))
    side = Features(X).begin()
    np.testing.assert_allclose(side.dense(), K, atol=1e-14)
    names = ["0", "1", "2"] if isinstance(X, np.ndarray) else ["genre", "year", "old"]
    by_name = side.grow(dict(zip(names, ["love", 1990.0, True], strict=True)))
    by_place = side.grow(["love", 1990.0, True])
    assert side.columns([by_name])[by_place, 0] == pytest.approx(1, abs=1e-15)


def test_holes_make_no_two_ids_alike():
    side = Features({"a": ["x", None, "x", None], "b": ["u", "v", None, None]}).begin()
    K = side.dense()
    assert K[0, 2] == pytest.approx(np.sqrt(0.5))  # alike in all that both show
    assert K[1, 2] == 0  # nothing seen of both
    np.testing.assert_array_equal(K[3], [0, 0, 0, 1])  # nothing known: an id of its own
    unknown = side.grow({"a": "never met", "b": "u"})
    assert side.columns([unknown])[0, 0] == pytest.approx(np.sqrt(0.5))
    assert side.columns([side.grow({})])[3, 0] == 1  # alike to its kind only


def test_vectors_sparse_matrices_and_constant_columns():
    np.testing.assert_array_equal(Features(["m", "f", "m"]).begin().dense(), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])
    X = (RNG.random((6, 4)) < 0.5) * 1.0
    np.testing.assert_array_equal(Features(sp.csr_array(X)).begin().dense(), Features(X).begin().dense())
    flat = np.column_stack([RNG.normal(size=6), np.full(6, 7.5)])
    np.testing.assert_allclose(Features(flat).begin().dense(), slow.cosine(flat[:, :1] - flat[:, 0].mean()), atol=1e-15)
    raw = Features(X + 1, standardize=False, normalize=False).begin()
    np.testing.assert_allclose(raw.dense(), (X + 1) @ (X + 1).T / ((X + 1) ** 2).sum(axis=1).max(), atol=1e-15)
    with pytest.raises(ValueError, match="at most the squared length"):
        raw.grow([9.0, 9.0, 9.0, 9.0])


def test_frames_name_their_ids():
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0]}, index=["ann", "bob", "cyd"])
    assert Features(frame).begin().ids == ["ann", "bob", "cyd"]
    assert Features(frame.reset_index(drop=True)).begin().ids is None
    assert Features(pl.DataFrame({"age": [20.0, 30.0]})).begin().ids is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colour": "red"}, "known at the beginning; got 'colour'"),
        ([1.0], "must have 3 features"),
        ({"year": np.inf}, "finite where observed; got inf"),
        ({"year": "old"}, "'year' must be a number"),
    ],
)
def test_features_of_one_more_id_refused(values, message):
    side = Features({"genre": GENRE, "year": YEAR, "old": OLD}).begin()
    with pytest.raises(ValueError, match=message):
        side.grow(values)
    assert side.size == 4


def test_columns_of_a_frame_may_be_named_by_numbers():
    pd = pytest.importorskip("pandas")
    points = np.arange(6.0).reshape(3, 2) + 1
    named = Features(pd.DataFrame(points, columns=["a", "b"])).begin()
    np.testing.assert_array_equal(Features(pd.DataFrame(points)).begin().columns([0, 1]), named.columns([0, 1]))


def test_features_read_a_frame_as_its_types_say():
    """Numbers of a categorical column are names, objects that are numbers are numbers, empty text is missing."""
    frame = pd.DataFrame(
        {
            "name": pd.Categorical([1, 2, None]),
            "text": ["a", "", "b"],
            "flag": pd.Series([True, None, False], dtype=object),
            "none": pd.Series([None] * 3, dtype="string"),
        }
    )
    levels = [column["levels"] for column in Features(frame).begin().table_columns]
    assert levels == [["1", "2"], ["a", "b"], None, None]
