"""Files: round trips, and nothing but ValueError from a damaged or hostile one."""

import io
import json
import os
import stat
import struct
import threading
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from lacunar import KarmaClassifier, Observed, save_model
from lacunar.observed import write_batches
from lacunar.observed.container import _mode_after, read_archive, read_npz, write_archive
from lacunar.uncertainty.hypertext import write_whole


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


def test_long_text_comes_back_in_memory_near_the_size_of_the_file(tmp_path):
    long = np.array(["x" * 10**6, "ß"])
    write_archive(tmp_path / "t", kind="k", header={}, arrays={"a": long})
    tracemalloc.start()
    try:
        read = read_archive(tmp_path / "t", kind="k")[1]["a"]
        assert tracemalloc.get_traced_memory()[1] < 2 * (tmp_path / "t").stat().st_size
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(read, long)


@pytest.mark.parametrize("dtype", ["<U1000000", "<U536870911", "<U999999999", "<U9999999999"])
def test_claims_of_long_text_are_compared_with_the_file(tmp_path, dtype):
    spec = {"dtype": dtype, "shape": [3], "crc32": 0}
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": dtype, "fortran_order": False, "shape": (3,)})
    with zipfile.ZipFile(tmp_path / "t", "w") as members:
        members.writestr(
            "header.json", json.dumps({"format_version": 1, "kind": "k", "arrays": {"a": spec}, "content": {}})
        )
        members.writestr("a.npy", member.getvalue() + b"x\0\0\0" * 3)
    with pytest.raises(ValueError, match="not a sound lacunar file"):
        read_archive(tmp_path / "t", kind="k")


def test_a_header_that_could_not_be_read_again_is_not_written(tmp_path):
    write_archive(tmp_path / "t", kind="k", header={"name": "short"}, arrays={})
    with pytest.raises(ValueError, match=r"at most 16,777,216 characters.*Shorten"):
        write_archive(tmp_path / "t", kind="k", header={"name": "ß" * 3 * 10**6}, arrays={})  # six characters each
    assert read_archive(tmp_path / "t", kind="k")[0] == {"name": "short"}


# -- zip files whose members share bytes --------------------------------------------------------------------------------


def local_entry(name, data):
    sizes = (zlib.crc32(data), len(data), len(data), len(name), 0)
    return struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0x21, *sizes) + name + data


def central_entry(name, data, offset, size=None):
    sizes = (zlib.crc32(data), len(data) if size is None else size, len(data), len(name), 0, 0, 0, 0, 0, offset)
    return struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0x21, *sizes) + name


def zip_of(entries, directory):
    """A zip file of entries one after the other, and of a directory that says (name, data, offset, packed size) of each member."""
    body = b"".join(local_entry(name, data) for name, data in entries)
    listed = b"".join(central_entry(*each) for each in directory)
    return (
        body
        + listed
        + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, len(directory), len(directory), len(listed), len(body), 0)
    )


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def bomb(copies, text, data):
    """A file with one array, which many names of the directory point to."""
    names = [f"a{k}.npy".encode() for k in range(copies)]
    head = [(b"header.json", text, 0)] if text else []
    at = len(local_entry(b"header.json", text)) if text else 0
    return zip_of([each[:2] for each in head] + [(names[0], data)], [*head, *((name, data, at) for name in names)])


def test_members_that_share_bytes_are_refused_before_any_is_read(tmp_path):
    array = np.zeros(2**17)
    spec = {"dtype": "<f8", "shape": [len(array)], "crc32": zlib.crc32(array.tobytes())}
    header = {"format_version": 1, "kind": "k", "arrays": {f"a{k}": spec for k in range(100)}, "content": {}}
    (tmp_path / "t").write_bytes(bomb(100, json.dumps(header).encode(), npy(array)))
    (tmp_path / "t.npz").write_bytes(bomb(100, b"", npy(array)))
    for read in (lambda: read_archive(tmp_path / "t", kind="k"), lambda: read_npz(tmp_path / "t.npz")):
        tracemalloc.start()
        with pytest.raises(ValueError, match="lie on one another"):
            read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < array.nbytes


def test_the_sum_of_the_members_is_not_above_the_file(tmp_path):
    """A name twice, a member that claims more than it takes, elements of no size."""
    data = npy(np.arange(3.0))
    (tmp_path / "twice.npz").write_bytes(zip_of([(b"a.npy", data)] * 2, [(b"a.npy", data, 0), (b"a.npy", data, 0)]))
    (tmp_path / "claims.npz").write_bytes(zip_of([(b"a.npy", data)], [(b"a.npy", data, 0, 3)]))
    for name, message in (("twice", "same name"), ("claims", "another size than it takes")):
        with pytest.raises(ValueError, match=message):
            read_npz(tmp_path / f"{name}.npz")
    nothing = io.BytesIO()
    np.lib.format.write_array_header_1_0(nothing, {"descr": "<U0", "fortran_order": False, "shape": (10**9,)})
    spec = {"dtype": "<U0", "shape": [10**9], "crc32": 0}
    text = json.dumps({"format_version": 1, "kind": "k", "arrays": {"a": spec}, "content": {}}).encode()
    at = len(local_entry(b"header.json", text))
    members = [(b"header.json", text), (b"a.npy", nothing.getvalue())]
    (tmp_path / "t").write_bytes(zip_of(members, [(*members[0], 0), (*members[1], at)]))
    with pytest.raises(ValueError, match="no size"):
        read_archive(tmp_path / "t", kind="k")


def test_an_array_is_as_long_as_its_member(tmp_path):
    """A header of .npy inside a member may not reach into the next one."""
    array = np.arange(400.0)
    whole = npy(array)
    spec = {"dtype": "<f8", "shape": [400], "crc32": zlib.crc32(array.tobytes())}
    text = json.dumps({"format_version": 1, "kind": "k", "arrays": {"a": spec, "b": spec}, "content": {}}).encode()
    short = whole[:128]  # its numbers are those of the bytes behind it
    at = len(local_entry(b"header.json", text))
    entries = [(b"header.json", text), (b"a.npy", short), (b"b.npy", whole)]
    places = [0, at, at + len(local_entry(b"a.npy", short))]
    (tmp_path / "t").write_bytes(zip_of(entries, [(*e, p) for e, p in zip(entries, places, strict=True)]))
    with pytest.raises(ValueError, match="claims shape"):
        read_archive(tmp_path / "t", kind="k")


def test_files_hold_one_order_of_bytes(tmp_path):
    arrays = {
        "a": np.arange(5, dtype=">i4"),
        "b": np.array(["ß", "long"], dtype=">U4"),
        "c": np.array(2.5, dtype=">f8"),
    }
    write_archive(tmp_path / "t", kind="k", header={}, arrays=arrays)
    assert b">i4" not in (tmp_path / "t").read_bytes()
    _, read = read_archive(tmp_path / "t", kind="k")
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype.isnative


# -- the place of a file ------------------------------------------------------------------------------------------------

FILE_WRITERS = {
    "archive": lambda path: write_archive(path, kind="k", header={}, arrays={"a": np.arange(3)}),
    "model": lambda path: save_model(KarmaClassifier(), path),
    "table": lambda path: Observed.from_dense(np.eye(3)).save(path),
    "batches": lambda path: write_batches(path, [Observed.from_dense(np.eye(3))]),
    "text": lambda path: write_whole(path, "ä\n"),
}
on_posix = pytest.mark.skipif(os.name == "nt", reason="permissions and links are of POSIX systems")


@on_posix
@pytest.mark.parametrize("name", FILE_WRITERS)
def test_permissions_are_those_of_the_file_that_is_replaced(name, tmp_path):
    write, path = FILE_WRITERS[name], tmp_path / "file"
    old = os.umask(0o027)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640, "a new file follows the umask"
        for mode in (0o600, 0o664, 0o444):
            path.chmod(mode)
            write(path)
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(old)


@on_posix
@pytest.mark.parametrize("name", FILE_WRITERS)
def test_a_link_stays_and_what_is_behind_it_is_replaced(name, tmp_path):
    write, folder = FILE_WRITERS[name], tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(b"old")
    (folder / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("folder/file")
    (tmp_path / "twice").symlink_to("link")
    (tmp_path / "dangling").symlink_to("folder/new")
    for link, target in (("twice", "file"), ("dangling", "new")):
        write(tmp_path / link)
        assert (tmp_path / link).is_symlink()
        assert (folder / target).read_bytes() not in (b"", b"old")
    assert stat.S_IMODE((folder / "file").stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["dangling", "file", "folder", "link", "new", "twice"]


@on_posix
def test_owner_and_group_stay_where_the_system_allows(tmp_path, monkeypatch):
    path, asked = tmp_path / "file", []
    path.write_bytes(b"old")
    path.chmod(0o664)
    monkeypatch.setattr(os, "chown", lambda file, owner, group: asked.append((owner, group)))
    FILE_WRITERS["archive"](path)
    before = path.stat()
    assert asked == [(before.st_uid, before.st_gid)]

    def refuse(file, owner, group):
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)
    FILE_WRITERS["archive"](path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o664  # the group is the same all the same
    other = os.stat_result((0o100664, 0, 0, 1, before.st_uid + 1, before.st_gid + 1, 0, 0, 0, 0))
    assert _mode_after(str(path), other) == 0o644, "another group gets what everybody has"


@on_posix
def test_what_cannot_be_replaced(tmp_path):
    """A folder is an error before anything is written; a pipe is written to."""
    with pytest.raises(IsADirectoryError):
        FILE_WRITERS["text"](tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        FILE_WRITERS["text"](tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    FILE_WRITERS["text"](tmp_path / "pipe")
    reader.join(timeout=10)
    assert read == ["ä\n".encode()]
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["loop", "pipe"]
