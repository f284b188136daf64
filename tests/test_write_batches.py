"""`Observed` archives written batch by batch are those that `save` writes, whole or not there at all."""

import mmap
import os
import shutil
import signal
import time

import numpy as np
import pytest

from lacunar import Observed
from lacunar.observed import read_batches, write_batches


def table(n=300, d=9, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(dtype)
    X[rng.random(X.shape) < 0.6] = np.nan
    X[[0, 17, n - 1]] = np.nan
    return Observed.from_dense(X)


def content(path):
    """Bytes of a file, or of the files of a folder by name."""
    return {each.name: each.read_bytes() for each in sorted(path.iterdir())} if path.is_dir() else path.read_bytes()


@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_batches_make_the_same_archive_as_save(size, dtype, as_folder, tmp_path):
    whole = table(dtype=dtype)
    whole.save(tmp_path / "saved", as_folder=as_folder)
    assert write_batches(tmp_path / "written", whole.iter_batches(size), as_folder=as_folder) is None
    if not as_folder:
        assert content(tmp_path / "written") == content(tmp_path / "saved")
    for mapped in (True, False):  # False compares checksums
        assert Observed.load(tmp_path / "written", mmap=mapped) == whole
    base = Observed.load(tmp_path / "written").values
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap), "aligned, so that it can be mapped"
    assert {each.name for each in tmp_path.iterdir()} == {"saved", "written"}


def test_labels_are_handed_back(tmp_path):
    whole, y = table(), np.arange(300) % 4
    labels = write_batches(tmp_path / "t", read_batches(whole, size=40, target=y, dtype=np.float32))
    np.testing.assert_array_equal(labels, y)
    assert Observed.load(tmp_path / "t") == whole.astype(np.float32)


def test_no_entries_and_no_columns(tmp_path):
    for empty in (Observed.from_dense(np.full((3, 2), np.nan)), Observed.from_dense(np.zeros((3, 0)))):
        for as_folder in (False, True):
            path = tmp_path / f"{empty.shape} {as_folder}"
            write_batches(path, [empty, empty], as_folder=as_folder)
            assert Observed.load(path, mmap=False) == Observed.vstack([empty, empty])


@pytest.mark.parametrize("as_folder", [False, True])
def test_a_failed_write_leaves_the_old_archive(as_folder, tmp_path):
    whole = table()
    path = tmp_path / "t"
    write_batches(path, [whole], as_folder=as_folder)
    before = content(path)
    bad = {
        "batches must hold at least one": [],
        "got 4 columns of float64 in batch 1 after 9 of float64": [whole, Observed.from_dense(np.ones((2, 4)))],
        "got 9 columns of float32 in batch 1 after 9 of float64": [whole, whole.astype(np.float32)],
        "batch 1 has none": [(whole, np.zeros(300)), (whole, None)],
    }
    for message, batches in bad.items():
        with pytest.raises(ValueError, match=message):
            write_batches(path, batches, as_folder=as_folder)
    with pytest.raises(TypeError, match=r"got ndarray in batch 0\. Use Observed\.from_dense"):
        write_batches(path, [np.ones((2, 9))], as_folder=as_folder)

    def interrupted():
        yield whole
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_batches(path, interrupted(), as_folder=as_folder)
    assert content(path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["t"], "nothing is left behind"


def test_a_folder_of_something_else_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="a folder with other content"):
        write_batches(tmp_path, iter([table()]), as_folder=True)
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def write_for_ever(path, as_folder):
    for k in range(1, 10**9):
        write_batches(path, [Observed.from_dense(np.full((500, 20), float(k)))] * 5, as_folder=as_folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills a forked writer")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
@pytest.mark.parametrize("as_folder", [False, True])
def test_killed_at_any_moment_the_archive_is_whole(as_folder, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "t"
    write_batches(path, [Observed.from_dense(np.zeros((500, 20)))] * 5, as_folder=as_folder)
    for _ in range(15):
        child = os.fork()
        if not child:
            try:
                write_for_ever(path, as_folder)
            finally:
                os._exit(1)
        time.sleep(rng.uniform(0, 0.1))
        os.kill(child, signal.SIGKILL)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        if not path.exists():  # a folder moved aside, which is done in two steps
            (aside,) = [each for each in tmp_path.glob("t*.old") if each.is_dir()]
            os.replace(aside, path)
        found = Observed.load(path, mmap=False)
        assert found.shape == (2_500, 20)
        assert len(np.unique(found.values)) == 1
        for left in tmp_path.glob("t*.part*"):
            shutil.rmtree(left) if left.is_dir() else left.unlink()
