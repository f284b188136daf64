"""A full disk, no memory, hostile names: what was there before is there after."""

import contextlib
import errno
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from faulty import Fault, calls_of

from lacunar import KarmaOnlineClassifier, KarmaOnlineRegressor, KarmaRegressor, Observed
from lacunar.lowrank import GROUSE, PETRELS, POPCA, SLRMOnlineRegressor
from lacunar.observed.container import read_archive
from lacunar.persistence import load_model, save_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)) @ RNG.normal(size=(3, 8))
Y = (X[:, 0] > 0).astype(int)
X[RNG.random(X.shape) < 0.4] = np.nan


class FullDisk:
    """A file that takes `room` bytes and no more."""

    def __init__(self, stream, room):
        self.stream, self.room = stream, room

    def __getattr__(self, name):
        return getattr(self.stream, name)

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.stream.close()

    def write(self, data):
        self.room -= len(data)
        if self.room < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self.stream.write(data)


def saves():
    model = KarmaRegressor().fit(X, Y.astype(float))
    return {"model": (lambda path: save_model(model, path)), "table": Observed.from_dense(X).save}


def contents(path):
    """What a file holds: of an archive its members by name, for an archive also says when it was written."""
    if not zipfile.is_zipfile(path):
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.parametrize("what", ["model", "table"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(what, tmp_path, monkeypatch):
    save, path = saves()[what], tmp_path / "file"
    save(path)
    size, before = path.stat().st_size, path.read_bytes()
    real = os.fdopen
    for room in np.linspace(0, size - 1, 15).astype(int):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdopen", lambda *args, room=room: FullDisk(real(*args), room))
            with pytest.raises(OSError, match="No space left") as raised:
                save(path)
        assert raised.value.errno == errno.ENOSPC
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["file"]
    whole = contents(path)
    save(path)
    assert contents(path) == whole


@pytest.mark.parametrize("what", ["model", "table"])
def test_a_folder_that_is_not_there_is_named(what, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no such folder; make it first: '.*there'$"):
        saves()[what](tmp_path / "there" / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be forced to the disk there")
def test_bytes_are_on_the_disk_before_their_name(tmp_path, monkeypatch):
    """A power cut keeps what was forced to the disk; a name that came first would point to nothing."""
    calls, fsync, replace = [], os.fsync, os.replace

    def forced(descriptor):
        inode = os.fstat(descriptor).st_ino
        everything = [tmp_path, *tmp_path.rglob("*")]
        calls.append(next(path.name for path in everything if path.stat().st_ino == inode))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(os, "replace", lambda old, new: (calls.append(f"> {Path(new).name}"), replace(old, new)))
    Observed.from_dense(X).save(tmp_path / "t")
    renamed = calls.index("> t")
    written, after = calls[:renamed], calls[renamed + 1 :]
    assert after == [tmp_path.name]
    assert len(written) == 1
    assert written[0].endswith(".part")


def saved(model, path):
    """All that a model is, to be compared."""
    save_model(model, path)
    header, arrays = read_archive(path, kind="model")
    return json.dumps(in_order(header, arrays), sort_keys=True)


def in_order(node, arrays):
    """Arrays in place of their names, which go by the order in which attributes were made."""
    if isinstance(node, dict):
        return {key: in_order(value, arrays) for key, value in node.items()}
    if isinstance(node, list):
        return [in_order(value, arrays) for value in node]
    return arrays[node].tobytes().hex() if isinstance(node, str) and node in arrays else node


STREAMS = {
    "karma-primal": (lambda: KarmaOnlineClassifier(2, random_state=0), (X, Y)),
    "karma-online": (lambda: KarmaOnlineClassifier(2.5, budget=10**6, random_state=0), (X, Y)),
    "karma-regressor": (
        lambda: KarmaOnlineRegressor(2, loss="absolute", random_state=0),
        (X, Y * 1.0),
    ),
    "popca": (lambda: POPCA(2, refine=0, random_state=0), (X,)),
    "petrels": (lambda: PETRELS(2, random_state=0), (X,)),
    "grouse": (lambda: GROUSE(2, random_state=0), (X,)),
    "slrm": (lambda: SLRMOnlineRegressor(2, random_state=0), (X, Y * 1.0)),
}


def started(name):
    make, data = STREAMS[name]
    options = {"classes": [0, 1]} if name in {"karma-primal", "karma-online"} else {}
    return make().partial_fit(*(part[:30] for part in data), **options), [part[30:] for part in data]


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_after_a_fit_without_memory_the_next_fit_is_a_fresh_one(name, tmp_path):
    make, data = STREAMS[name]
    fresh = saved(make().fit(*data), tmp_path / "fresh")
    for number in np.linspace(1, calls_of(lambda: make().fit(*data)), 12).astype(int):
        model = started(name)[0]
        with contextlib.suppress(MemoryError), Fault(number):
            model.fit(*data)
        assert saved(model.fit(*data), tmp_path / "again") == fresh


def test_a_failed_batch_with_new_columns_can_be_gone_on_from(tmp_path):
    """They once kept slots in a pool that was never made longer: the next batch wrote beyond its end."""
    table = X.copy()
    table[:30, 5:] = np.nan
    model, twin = (PETRELS(2, random_state=0).partial_fit(table[:30]) for _ in range(2))
    beyond = table[30:].copy()
    beyond[10, 5:] = 1e200
    with pytest.raises(ValueError, match="must stay finite"):
        model.partial_fit(beyond)
    twin.partial_fit(table[30:40])
    saved(model, tmp_path / "model")
    model = load_model(tmp_path / "model")
    for each in (model, twin):
        each.partial_fit(table[40:])
    np.testing.assert_array_equal(model.transform(X), twin.transform(X))
