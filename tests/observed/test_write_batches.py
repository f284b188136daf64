"""`Observed` archives written batch by batch are those that `save` writes, whole or not there at all."""

import os
import signal
import time

import numpy as np
import pytest

from lacunar import Observed
from lacunar.observed import blocks, read_batches, write_batches


def table(n=300, d=9, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) < 0.6] = np.nan
    X[[0, 17, n - 1]] = np.nan
    return Observed.from_dense(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_batches_make_the_same_file_as_save(size, dtype, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_ENTRIES", 200)  # several blocks
    whole = table(dtype=dtype)
    whole.save(tmp_path / "saved")
    assert write_batches(tmp_path / "written", whole.iter_batches(size)).read() == whole
    assert (tmp_path / "written").read_bytes() == (tmp_path / "saved").read_bytes()
    assert {each.name for each in tmp_path.iterdir()} == {"saved", "written"}


def test_labels_are_in_the_file(tmp_path):
    whole, y = table(), np.arange(300) % 4
    file = write_batches(tmp_path / "t", read_batches(whole, size=40, target=y, dtype=np.float32))
    np.testing.assert_array_equal(file.labels(), y)
    assert Observed.load(tmp_path / "t") == whole.astype(np.float32)


def test_no_entries_and_no_columns(tmp_path):
    for empty in (Observed.from_dense(np.full((3, 2), np.nan)), Observed.from_dense(np.zeros((3, 0)))):
        path = tmp_path / f"{empty.shape}"
        write_batches(path, [empty, empty])
        assert Observed.load(path) == Observed.vstack([empty, empty])


def test_a_failed_write_leaves_the_old_archive(tmp_path):
    whole = table()
    path = tmp_path / "t"
    write_batches(path, [whole])
    before = path.read_bytes()
    bad = {
        "batches must hold at least one": [],
        "got 4 columns of float64 in batch 1 after 9 of float64": [whole, Observed.from_dense(np.ones((2, 4)))],
        "got 9 columns of float32 in batch 1 after 9 of float64": [whole, whole.astype(np.float32)],
        "labels must come with every batch or with none; batch 1 has none": [(whole, np.zeros(300)), (whole, None)],
        "weights must come with every batch or with none; batch 0 has none": [
            (whole, np.zeros(300)),
            (whole, np.zeros(300), np.ones(300)),
        ],
        "labels must be one a row; got shape": [(whole, np.zeros(299))],
        "weights must be finite numbers of at least 0": [(whole, np.zeros(300), -np.ones(300))],
    }
    for message, batches in bad.items():
        with pytest.raises(ValueError, match=message):
            write_batches(path, batches)
    with pytest.raises(TypeError, match=r"got ndarray in batch 0\. Use Observed\.from_dense"):
        write_batches(path, [np.ones((2, 9))])

    def interrupted():
        yield whole
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_batches(path, interrupted())
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["t"], "nothing is left behind"


def write_for_ever(path):
    for k in range(1, 10**9):
        write_batches(path, [Observed.from_dense(np.full((500, 20), float(k)))] * 5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked writer")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_killed_at_any_moment_the_archive_is_whole(tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "t"
    write_batches(path, [Observed.from_dense(np.zeros((500, 20)))] * 5)
    for _ in range(15):
        child = os.fork()
        if not child:
            try:
                write_for_ever(path)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        found = Observed.load(path)
        assert found.shape == (2_500, 20)
        assert len(np.unique(found.values)) == 1
        for left in tmp_path.glob("t*.part*"):
            left.unlink()
