"""Files: round trips, and nothing but ValueError from a damaged or hostile one."""

import io
import json
import zipfile

import numpy as np
import pytest

from lacunar import Observed
from lacunar.observed.container import read_archive, write_archive


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6))
    X[rng.random(X.shape) < 0.5] = np.nan
    return Observed.from_dense(X)


def test_round_trip(tmp_path, table):
    table.save(tmp_path / "t")
    table.save(tmp_path / "t")  # over an old one
    assert Observed.load(tmp_path / "t") == table
    assert [path.name for path in tmp_path.iterdir()] == ["t"]


def test_every_single_byte_change_is_caught_or_harmless(tmp_path, table):
    path = tmp_path / "t"
    table.save(path)
    sound = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(sound), size=400):
        damaged = bytearray(sound)
        damaged[position] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(damaged))
        try:
            loaded = Observed.load(path)
        except ValueError:
            continue
        assert loaded == table


def test_truncated_files(tmp_path, table):
    path = tmp_path / "t"
    table.save(path)
    sound = path.read_bytes()
    for size in range(0, len(sound), 97):
        path.write_bytes(sound[:size])
        with pytest.raises(ValueError, match="not a sound lacunar file"):
            Observed.load(path)


def craft(path, header, arrays, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as members:
        members.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=True)
            members.writestr(f"{name}.npy", stream.getvalue())


@pytest.mark.parametrize(
    ("spec", "array"),
    [
        ({"dtype": "|O8", "shape": [1], "crc32": 0}, np.array([{}], dtype=object)),
        ({"dtype": "<f8", "shape": [2**60], "crc32": 0}, np.zeros(3)),
        ({"dtype": "<f8", "shape": [4], "crc32": 0}, np.zeros(3)),
        ({"dtype": "<f8", "shape": [-3], "crc32": 0}, np.zeros(3)),
        ({"dtype": "<f8", "shape": [3], "crc32": 1}, np.zeros(3)),
    ],
)
def test_crafted_arrays_are_refused(tmp_path, spec, array):
    header = {"format_version": 1, "kind": "k", "arrays": {"a": spec}, "content": {}}
    craft(tmp_path / "t", header, {"a": array})
    with pytest.raises(ValueError, match="not a sound lacunar file"):
        read_archive(tmp_path / "t", kind="k")


@pytest.mark.parametrize(
    "change", [{"format_version": 99}, {"kind": "other"}, {"arrays": []}, {"content": None}, {"surplus": 1}]
)
def test_unknown_headers_are_refused(tmp_path, change):
    header = {"format_version": 1, "kind": "k", "arrays": {}, "content": {}} | change
    craft(tmp_path / "t", header, {})
    with pytest.raises(ValueError, match="not a sound lacunar file"):
        read_archive(tmp_path / "t", kind="k")


def test_compressed_members_are_refused(tmp_path):
    craft(tmp_path / "t", {"format_version": 1, "kind": "k", "arrays": {}, "content": {}}, {}, zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match="compressed"):
        read_archive(tmp_path / "t", kind="k")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    write_archive(tmp_path / "t", kind="k", header={}, arrays={"a": np.arange(3)})
    with pytest.raises(TypeError, match="numbers or text"):
        write_archive(tmp_path / "t", kind="k", header={}, arrays={"a": np.array([{}], dtype=object)})
    with pytest.raises(ValueError, match="JSON"):
        write_archive(tmp_path / "t", kind="k", header={"x": float("nan")}, arrays={})
    assert read_archive(tmp_path / "t", kind="k")[1]["a"].tolist() == [0, 1, 2]
    assert len(list(tmp_path.iterdir())) == 1
