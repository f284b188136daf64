"""Rows of files larger than memory, in batches: every source gives the same rows, and models the same fit."""

import numpy as np
import pytest

from lacunar import KarmaClassifier, Observed
from lacunar.observed import Triplets, read_batches
from lacunar.subspace import POPCA

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def table(n=430, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < 0.5] = np.nan
    X[[3, 4, n - 2]] = np.nan  # rows without entries
    return X, y


def wide(X, y):
    return pa.table({**{f"c{j}": X[:, j] for j in range(X.shape[1])}, "y": y}, metadata=None)


def lines(X):
    row, col = np.nonzero(~np.isnan(X))
    return pa.table({"row": row, "col": col, "value": X[row, col]})


def stacked(batches):
    rows, labels = zip(*batches, strict=True)
    return Observed.vstack(rows), None if labels[0] is None else np.concatenate(labels)


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_every_source_gives_the_same_rows(size, tmp_path):
    X, y = table()
    whole = Observed.from_dense(X)
    folder = tmp_path / "wide"
    folder.mkdir()
    for k in range(3):
        pq.write_table(wide(X, y).slice(150 * k, 150), folder / f"{k}.parquet")
    pq.write_table(lines(X), tmp_path / "triplets.parquet")
    whole.save(tmp_path / "t.observed")
    mapped = Observed.load(tmp_path / "t.observed", mmap=True)
    for source in (folder, wide(X, y), wide(X, y).to_batches(max_chunksize=64), wide(X, y).to_reader()):
        made, labels = stacked(read_batches(source, size=size, target="y"))
        assert made == whole
        np.testing.assert_array_equal(labels, y)
    made, labels = stacked(read_batches(mapped, size=size, target=y))
    assert made == whole
    np.testing.assert_array_equal(labels, y)
    made, labels = stacked(read_batches(tmp_path / "triplets.parquet", size=size, triplets=Triplets(7)))
    assert labels is None
    assert made == whole
    for rows, _ in read_batches(folder, size=size):
        assert rows.shape[0] <= size
        assert rows.shape[1] == 8  # the labels are a column without a target


def test_models_fit_from_batches_as_from_the_table(tmp_path):
    X, y = table(n=2000)
    pq.write_table(wide(X, y), tmp_path / "w.parquet", row_group_size=300)
    options = {"classes": [0, 1]}
    by_file = KarmaClassifier(loss="hinge").fit_batches(
        read_batches(tmp_path / "w.parquet", size=500, target="y"), **options
    )
    by_table = KarmaClassifier(loss="hinge").fit_batches(
        read_batches(Observed.from_dense(X), size=500, target=y), **options
    )
    assert by_file.n_rows_seen_ == by_table.n_rows_seen_ == 2000
    pq.write_table(lines(X), tmp_path / "t.parquet")
    streamed, whole = POPCA(2, refine=0), POPCA(2, refine=0).partial_fit(X)
    for rows, _ in read_batches(tmp_path / "t.parquet", size=500, triplets=Triplets(7)):
        streamed.partial_fit(rows)
    np.testing.assert_allclose(streamed.get_covariance(), whole.get_covariance(), atol=1e-10)


def test_what_is_no_batch_is_refused(tmp_path):
    X, y = table(20)
    with pytest.raises(ValueError, match="size must be at least 1 row; got 0"):
        next(read_batches(Observed.from_dense(X), size=0))
    with pytest.raises(ValueError, match=r"target must be a column; got 'z' among \['c0'"):
        next(read_batches(wide(X, y), target="z"))
    with pytest.raises(ValueError, match="a label for every row; got 3 and 20 rows"):
        next(read_batches(Observed.from_dense(X), target=[1, 2, 3]))
    back = pa.table({"row": [0, 2, 1], "col": [0, 1, 2], "value": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="by ascending row; row 1 comes after a later one"):
        list(read_batches(back, triplets=Triplets(3)))
    with pytest.raises(ValueError, match="target must be None with triplets"):
        next(read_batches(back, triplets=Triplets(3), target="y"))
    with pytest.raises(ValueError, match="row 0, column 1 comes more than once"):
        list(read_batches(pa.table({"row": [0, 0], "col": [1, 1], "value": [1.0, 2.0]}), triplets=Triplets(3)))
