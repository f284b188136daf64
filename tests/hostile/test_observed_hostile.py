"""What SciPy, files and frames can smuggle past a format: caught at the door, at the place."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score

from lacunar import KarmaClassifier, LacunarClassifier, Observed
from lacunar.observed.container import read_archive, write_archive
from lacunar.observed.contract import check_positions


@pytest.fixture
def twice():
    return sp.coo_array((np.array([1.0, 2.0, 3.0, 4.0]), ([0, 1, 1, 2], [0, 2, 2, 1])), shape=(3, 3))


def uncanonical(twice, kind):
    """The same entries, the cell (1, 2) stored twice."""
    if kind == "coo":
        return twice
    indices, indptr = (np.array([0, 2, 2, 1]), np.array([0, 1, 3, 4]))
    if kind == "csr":
        return sp.csr_array((twice.data, indices, indptr), shape=(3, 3))
    if kind == "bsr":
        return sp.bsr_array((twice.data.reshape(-1, 1, 1), indices, indptr), shape=(3, 3))
    return sp.csc_array((twice.data, np.array([0, 2, 1, 1]), np.array([0, 1, 2, 4])), shape=(3, 3))


@pytest.mark.parametrize("sparse_missing", ["absent", "nan"])
@pytest.mark.parametrize("kind", ["coo", "csr", "csc", "bsr"])
def test_duplicates_are_never_summed(twice, kind, sparse_missing):
    X = uncanonical(twice, kind)
    with pytest.raises(ValueError, match="row 1, column 2"):
        Observed.from_scipy(X, sparse_missing=sparse_missing)
    with pytest.raises(ValueError, match="row 1, column 2"):
        KarmaClassifier(sparse_missing=sparse_missing).fit(X, [0, 1, 0])
    with pytest.raises(ValueError, match="row 1, column 2"):
        LacunarClassifier(sparse_missing=sparse_missing).fit(X, [0, 1, 0])


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize(
    ("attribute", "position", "value", "message"),
    [("indices", 2, 9, "got 9 in"), ("indices", 2, -4, "got -4 in"), ("indptr", 1, 40, "never fall")],
)
def test_broken_compressed_matrices_never_reach_scipys_converters(kind, attribute, position, value, message):
    X = sp.eye_array(4, format="csr").asformat(kind)
    getattr(X, attribute)[position] = value
    for sparse_missing in ("absent", "nan"):
        with pytest.raises(ValueError, match=message):
            Observed.from_scipy(X, sparse_missing=sparse_missing)


def test_one_by_one_blocks_are_read():
    X = sp.csr_array(([1.0, 0.0], ([0, 1], [1, 0])), shape=(2, 2))
    assert Observed.from_scipy(X.tobsr((1, 1))) == Observed.from_scipy(X)


def test_writing_to_the_source_does_not_reach_the_table():
    X = sp.csr_array(([1.0, 2.0], ([0, 1], [1, 0])), shape=(2, 2))
    table = Observed.from_scipy(X)
    values = np.array([5.0, 6.0])
    other = table.with_values(values)
    X.data[:], X.indices[:], values[:] = np.inf, 77, np.inf
    np.testing.assert_array_equal(table.to_dense(), [[np.nan, 1.0], [2.0, np.nan]])
    np.testing.assert_array_equal(other.values, [5.0, 6.0])


@pytest.mark.parametrize("line", ["1 2:1 2:3", "1 99999999999:1", f"1 {2**70}:1", "1 1:inf"])
def test_svmlight_lines_that_no_table_holds(tmp_path, line):
    (tmp_path / "t").write_text(f"1 1:1\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2"):
        Observed.from_svmlight(tmp_path / "t")


def test_a_missing_id_is_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"u": ["a", None], "f": ["x", "y"], "v": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"'u'.*line 1"):
        Observed.from_long_frame(frame, row="u", col="f", value="v")


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float32"])
def test_nullable_pandas_columns(dtype):
    pd = pytest.importorskip("pandas")
    table = Observed.from_frame(pd.DataFrame({"a": pd.array([1, None, 0], dtype=dtype)}))
    np.testing.assert_array_equal(table.to_dense(), [[1.0], [np.nan], [0.0]])


def test_scikit_learn_searches_over_observed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.3] = np.nan
    table = Observed.from_dense(X)
    np.testing.assert_array_equal(
        cross_val_score(KarmaClassifier(), table, y, cv=3), cross_val_score(KarmaClassifier(), X, y, cv=3)
    )
    search = GridSearchCV(KarmaClassifier(), {"gamma": [1, 2]}, cv=3).fit(table, y)
    assert search.predict(table).shape == y.shape


def test_one_warning_for_counts_and_none_for_floats():
    counts = sp.random_array((30, 20), density=0.1, random_state=0)
    y = np.arange(30) % 2
    KarmaClassifier().fit(counts, y)  # warnings are errors here
    counts.data[:] = 1.0
    with pytest.warns(UserWarning, match="sparse_missing") as caught:
        KarmaClassifier().fit(counts.tocsr(), y)
    assert len(caught) == 1


def test_every_bit_of_a_small_archive_flipped(tmp_path):
    path = tmp_path / "t"
    write_archive(path, kind="k", header={"n": 1}, arrays={"a": np.arange(3.0)})
    sound = path.read_bytes()
    refused = 0
    for position in range(len(sound)):
        damaged = bytearray(sound)
        damaged[position] ^= 1 << (position % 8)
        path.write_bytes(damaged)
        try:
            content, arrays = read_archive(path, kind="k")
        except ValueError:
            refused += 1
        else:
            assert content == {"n": 1}
            np.testing.assert_array_equal(arrays["a"], np.arange(3.0))
    assert refused > len(sound) / 4


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_files_get_the_usual_permissions(tmp_path):
    (tmp_path / "plain").touch()
    write_archive(tmp_path / "t", kind="k", header={}, arrays={"a": np.arange(3)})
    assert (tmp_path / "t").stat().st_mode & 0o066 == (tmp_path / "plain").stat().st_mode & 0o066


def test_offsets_whose_differences_do_not_fit_are_refused():
    """A segmentation fault in SciPy, once: 10 to -2**31 rises, where 32 bits count."""
    A = sp.csr_array((np.ones(10), np.zeros(10, np.int32), np.arange(0, 14, 2, dtype=np.int32).clip(max=10)), (6, 6))
    A.indptr[-1] = -(2**31)
    with pytest.raises(ValueError, match=r"indptr of X must start at 0, never fall .* near row 5"):
        check_positions(A, "X")
