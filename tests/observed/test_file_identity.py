"""A file of rows is read only while it is the one that was opened, and a pass ends in the process that began it."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from lacunar.lowrank import POPCA
from lacunar.observed import Observed, ObservedFile, blocks, read_batches, write_batches

X = np.random.default_rng(0).normal(size=(500, 6))
READS = {
    "read": lambda file: file.read(),
    "labels": lambda file: file.labels(),
    "weights": lambda file: file.weights(),
    "batches": lambda file: list(file.batches(start=3)),
    "prepared": lambda file: list(file.prepared(lambda part: part)),
    "read_batches": lambda file: list(read_batches(file, size=7)),
    "fit": lambda file: POPCA(2).fit(file),
    "transform": lambda file: POPCA(2).fit(X).transform(file),
}


def written(path, sign=1.0, *, bare=False):
    write_batches(
        path, [Observed.from_dense(sign * X) if bare else (Observed.from_dense(sign * X), X[:, 0], X[:, 1] ** 2)]
    )
    return ObservedFile(path)


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("way", READS)
def test_a_replaced_file_is_not_read(way, bare, tmp_path):
    file = written(tmp_path / "rows", bare=bare)
    READS[way](file)
    written(tmp_path / "rows", -1.0, bare=bare)
    with pytest.raises(ValueError, match=r"rows' was written anew since it was opened\. Open it again"):
        READS[way](file)


@pytest.mark.parametrize("way", READS)
def test_a_file_damaged_after_its_checksums_were_compared_is_not_read(way, tmp_path):
    file = written(tmp_path / "rows")
    READS[way](file)
    with open(tmp_path / "rows", "r+b") as stream:
        stream.seek(100)
        byte = stream.read(1)
        stream.seek(100)
        stream.write(bytes([byte[0] ^ 0x40]))
    with pytest.raises(ValueError, match="rows'"):
        READS[way](file)


def test_a_file_cut_short_is_not_read(tmp_path):
    for size in (0, 20, 1000):
        file = written(tmp_path / "rows")
        os.truncate(tmp_path / "rows", size)
        for way in READS:
            with pytest.raises(ValueError, match="written anew"):
                READS[way](file)


def test_a_file_that_changes_during_a_pass_ends_it(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_ENTRIES", 100)
    written(tmp_path / "rows")
    passing = blocks.BlockFile(tmp_path / "rows").blocks()
    next(passing)
    with open(tmp_path / "rows", "r+b") as stream:
        stream.seek(-40, os.SEEK_END)
        stream.write(b"0")
    with pytest.raises(ValueError, match="written anew"):
        next(passing)


def test_labels_and_weights_come_block_by_block(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "_ENTRIES", 100)
    file = written(tmp_path / "rows")
    np.testing.assert_array_equal(file.labels(), X[:, 0])
    np.testing.assert_array_equal(file.weights(), X[:, 1] ** 2)
    bare = written(tmp_path / "bare", bare=True)
    assert bare.labels() is None
    assert bare.weights() is None


# -- fork ---------------------------------------------------------------------------------------------------------------

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
BEGIN = """
    import os, signal, sys, threading
    import numpy as np
    from lacunar.observed import Observed, ObservedFile, write_batches

    path = sys.argv[1]
    rows = np.random.default_rng(0).normal(size=(60_000, 100)).astype(np.float32)
    write_batches(path, [Observed.from_dense(rows)])

    def in_child(step):
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            code = 1
            try:
                step()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def in_a_process_of_its_own(code, *args):
    code = textwrap.dedent(BEGIN) + textwrap.dedent(code)
    run = subprocess.run([sys.executable, "-c", code, *map(str, args)], timeout=300, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@forks
def test_a_forked_child_does_not_wait_for_its_parents_thread(tmp_path):
    code = """
        file = ObservedFile(path)
        passing = file.batches()
        first = next(passing)

        def child():
            try:
                next(passing)
            except RuntimeError as error:
                assert "forked child" in str(error) and "anew" in str(error)
            else:
                raise AssertionError
            assert sum(map(len, file.batches(start=len(first)))) == len(file) - len(first)

        in_child(child)
        assert len(first) + sum(map(len, passing)) == len(file)
    """
    in_a_process_of_its_own(code, tmp_path / "rows")


@pytest.mark.slow
def test_an_interpreter_ends_in_the_middle_of_a_pass(tmp_path):
    code = """
        passing = [iter(ObservedFile(path)) for _ in range(3)]
        for each in passing:
            next(each)
    """
    for _ in range(3):
        in_a_process_of_its_own(code, tmp_path / "rows")


@pytest.mark.slow
@forks
@pytest.mark.parametrize(
    "learner", ["completion.OnlineMatrixClassifier", "papers.completion.MatrixExponentiatedGradient"]
)
def test_a_model_at_work_when_its_process_forks_says_so_in_the_child(learner, tmp_path):
    home, _, learner = learner.rpartition(".")
    code = f"""
        from lacunar._lock import changes
        from lacunar.{home} import {learner}

        model = {learner}().partial_fit([0, 1, 2], [0, 1, 2], [1, -1, 1])
        inside, leave = threading.Event(), threading.Event()

        @changes
        def work(model):
            inside.set()
            leave.wait()

        worker = threading.Thread(target=work, args=(model,), daemon=True)
        worker.start()
        inside.wait()

        def child():
            try:
                model.predict(([0], [1]))
            except RuntimeError as error:
                assert "forks" in str(error) and "Load" in str(error)
            else:
                raise AssertionError

        in_child(child)
        leave.set()
        worker.join()
        expected = model.predict(([0], [1]))

        def answers():
            assert model.predict(([0], [1])) == expected
            model.partial_fit([0], [1], [1])

        in_child(answers)
    """
    in_a_process_of_its_own(code, tmp_path / "rows")
