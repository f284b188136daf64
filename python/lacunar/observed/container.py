"""Arrays and a JSON header in one file: no pickle, checked before use, written atomically.

Layout: ``header.json`` and one ``NAME.npy`` an array, as members of an uncompressed zip file. The header lists every
array with dtype, shape and CRC-32. No two members share bytes, and an array takes those of its member: nothing is
allocated that the file cannot hold. Numbers are little-endian in the file, and in the machine's own order once they are
read. First such archives, then arrays out of .npy and .npz files from elsewhere.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

FORMAT_VERSION = 1
_MAX_HEADER = 16 * 2**20
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,199}")
_KINDS = "biufU"  # plain numbers and text: never objects


def write_archive(
    path: str | os.PathLike[str],
    *,
    kind: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write an archive as `replace_file` does: killed or without power, the old file stays."""
    packed = {name: _little_endian(array) for name, array in arrays.items()}
    for name, array in packed.items():
        if not _NAME.fullmatch(name) or array.dtype.kind not in _KINDS:
            raise TypeError(f"an archive holds named arrays of numbers or text; got {name!r} of dtype {array.dtype}.")
    listing = {name: _describe(array) for name, array in packed.items()}
    whole = {"format_version": FORMAT_VERSION, "kind": kind, "arrays": listing, "content": dict(header)}
    text = json.dumps(whole, allow_nan=False)
    if len(text) > _MAX_HEADER:  # bytes, too: what is not ASCII stands as its escape
        raise ValueError(
            f"an archive must have a header of at most {_MAX_HEADER:,} characters, names of columns and words of text "
            f"among them; got {len(text):,}. Shorten them."
        )
    replace_file(Path(path), lambda stream: _write_members(stream, text, packed))


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    """The values in C order, lowest byte first, whatever the machine or the file they came from."""
    values = np.ascontiguousarray(array).reshape(np.shape(array))
    return values.astype(values.dtype.newbyteorder("<"), copy=False)


def _describe(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "crc32": _checksum(array)}


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.view(np.uint8).data if array.ndim and array.size else array.tobytes())


def _write_members(stream: BinaryIO, text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as members:
        members.writestr("header.json", text)
        for name, array in arrays.items():
            with members.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def replace_file(target: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill a file beside `target`, force it to the disk, and give it the place of `target` at the end.

    Every writer of the package ends here. A file that is replaced passes on its permissions, and its owner and group
    where the system allows that; a new one follows the umask. Of a symbolic link the file behind it is replaced, and
    the link stays. A pipe or a device cannot be replaced: it is written to.
    """
    replaced = None
    with contextlib.suppress(FileNotFoundError):
        replaced = os.stat(target)
    if replaced is not None and stat.S_ISDIR(replaced.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    if replaced is not None and not stat.S_ISREG(replaced.st_mode):
        with open(target, "wb") as stream:
            write(stream)
        return
    place = Path(os.path.realpath(target))
    if not place.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder; make it first", os.fspath(place.parent))
    descriptor, temporary = tempfile.mkstemp(dir=place.parent, prefix=place.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())  # or the new name could reach the disk before the bytes
        os.chmod(temporary, _mode_after(temporary, replaced))  # mkstemp keeps a file to its owner
        os.replace(temporary, place)
    except BaseException:  # an interrupt, too, leaves no half of a file behind
        Path(temporary).unlink(missing_ok=True)
        raise
    _to_disk(place.parent)


def _mode_after(temporary: str, replaced: os.stat_result | None) -> int:
    """Permissions of the file at `temporary`, which gets the owner and the group of the one that it replaces where that
    is allowed.
    """
    if replaced is None:
        return _usual_mode(0o666)
    mode = stat.S_IMODE(replaced.st_mode) & 0o777
    for owner, group in ((replaced.st_uid, replaced.st_gid), (-1, replaced.st_gid)):
        with contextlib.suppress(OSError, AttributeError):  # Windows knows no owners
            os.chown(temporary, owner, group)
            return mode
    if os.stat(temporary).st_gid != replaced.st_gid:  # another group than the one that was let in
        mode &= 0o707 | (mode & 0o007) << 3
    return mode


def _to_disk(path: Path) -> None:
    """Wait until the disk holds a file's bytes, or a folder's names; Windows has no such call for folders."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _usual_mode(mode: int) -> int:
    """The permissions a new file would get; the mask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask


def read_archive(path: str | os.PathLike[str], *, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header's content and the arrays of an archive of this kind; ValueError for anything that is not one."""
    with open_plain(path) as stream:
        try:
            return _read_file(stream, kind)
        except MemoryError:
            raise  # the file does hold what is asked for
        except Exception as error:  # the parsers of zip and npy headers raise whatever a damaged byte leads them to
            raise ValueError(
                f"{os.fspath(path)!r} is not a sound lacunar file: {error}. Write it again with save."
            ) from None


def open_plain(path: str | os.PathLike[str], buffering: int = -1) -> BinaryIO:
    """A plain file, opened, without a buffer where `buffering` is 0; opening a pipe would wait for a writer."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"no such file: {os.fspath(path)!r}.")
    if not os.path.isfile(path):
        raise ValueError(f"{os.fspath(path)!r} is not a sound lacunar file: it is no plain file. Name another.")
    return open(path, "rb", buffering)


def _read_file(stream: BinaryIO, kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(stream) as members:
        infos = _members_by_name(members, os.fstat(stream.fileno()).st_size)
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos.values()):
            raise ValueError("it has compressed members")
        if "header.json" not in infos:
            raise ValueError("it has no header")
        with members.open("header.json") as member:
            header = _parse(kind, member.read(_MAX_HEADER + 1))
        if set(infos) != {"header.json"} | {f"{name}.npy" for name in header["arrays"]}:
            raise ValueError("its members are not those its header lists")
        # From the same open file: another may take its path meanwhile.
        arrays = {name: _load(stream, infos[f"{name}.npy"], spec) for name, spec in header["arrays"].items()}
    return header["content"], arrays


_LOCAL_HEADER = 30  # bytes before the name of a member


def _members_by_name(members: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
    """Members of a zip file of `size` bytes; ValueError where two share a name or bytes, so that all of them are no
    larger than the file.
    """
    infos = members.infolist()
    by_name = {info.filename: info for info in infos}
    if len(by_name) < len(infos):
        raise ValueError("two members have the same name")
    in_order = sorted(infos, key=lambda info: info.header_offset)
    ends = [info.header_offset + _LOCAL_HEADER + info.compress_size for info in in_order]
    starts = [*(info.header_offset for info in in_order[1:]), size]
    if any(end > start for end, start in zip(ends, starts, strict=True)):
        raise ValueError("its members lie on one another, or reach beyond its end")
    for info in infos:
        if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
            raise ValueError(f"{info.filename} is stored, and claims another size than it takes")
    return by_name


def _data_offset(stream: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: past its local header, name and extra field."""
    stream.seek(info.header_offset)
    fixed = stream.read(_LOCAL_HEADER)
    if len(fixed) < _LOCAL_HEADER or fixed[:4] != b"PK\x03\x04":
        raise ValueError(f"member {info.filename} has no local header")
    name_length, extra_length = struct.unpack("<HH", fixed[26:30])
    return info.header_offset + _LOCAL_HEADER + int(name_length) + int(extra_length)


def _parse(kind: str, raw: bytes) -> dict[str, Any]:
    if len(raw) > _MAX_HEADER:
        raise ValueError("its header is beyond 16 MiB")
    try:
        header = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, numbers of too many digits
        raise ValueError(f"its header is no JSON ({type(error).__name__})") from None
    if not isinstance(header, dict) or set(header) != {"format_version", "kind", "arrays", "content"}:
        raise ValueError("its header has other keys than format_version, kind, arrays, content")
    if header["format_version"] != FORMAT_VERSION:
        came = str(header["format_version"])[:20]
        raise ValueError(f"it is of format version {came!r} and this lacunar reads {FORMAT_VERSION}")
    if header["kind"] != kind:
        raise ValueError(f"it holds {str(header['kind'])[:80]!r}, not {kind!r}")
    if not isinstance(header["arrays"], dict) or not isinstance(header["content"], dict):
        raise ValueError("its header lists no arrays or no content")
    for name, spec in header["arrays"].items():
        _check_spec(name, spec)
    return header


def _check_spec(name: str, spec: Any) -> None:
    sound = (
        _NAME.fullmatch(name)
        and isinstance(spec, dict)
        and set(spec) == {"dtype", "shape", "crc32"}
        and isinstance(spec["dtype"], str)
        and re.fullmatch(r"[<|][biufU]\d{1,9}", spec["dtype"])  # NumPy's longest text has 536,870,911 characters
        and isinstance(spec["shape"], list)
        and len(spec["shape"]) <= MAX_DIMENSIONS
        and all(type(size) is int and 0 <= size < 2**62 for size in spec["shape"])
    )
    if not sound:
        raise ValueError(f"the header's entry for array {name[:80]!r} is not understood")


def _load(stream: BinaryIO, info: zipfile.ZipInfo, spec: Mapping[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(spec["dtype"]), tuple(spec["shape"])
    if dtype.itemsize == 0:  # any number of such elements takes no byte of the file
        raise ValueError(f"{info.filename} is of dtype {dtype}, whose elements have no size")
    offset = _data_offset(stream, info)
    stream.seek(offset)
    head = read_header(stream)
    if head.dtype != dtype or head.shape != shape or (head.fortran and len(shape) > 1):
        raise ValueError(f"an array is {head.dtype} {head.shape} and the header says {dtype} {shape}")
    start = stream.tell()
    if start + head.n_bytes != offset + info.file_size:
        raise ValueError(f"{info.filename} claims shape {shape} and holds {info.file_size} bytes")
    if start + head.n_bytes > os.fstat(stream.fileno()).st_size:
        raise ValueError(f"it ends before the array of shape {shape} does")
    array = np.fromfile(stream, dtype=dtype, count=math.prod(shape)).reshape(shape)
    if _checksum(array) != spec["crc32"]:
        raise ValueError("an array does not match its checksum")
    refuse_impossible(array)
    return array.astype(dtype.newbyteorder("="), copy=False)


MAX_DIMENSIONS = 32  # of NumPy 1


class NpyHeader(NamedTuple):
    """Dtype, shape and order of an array, from the head of its .npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool

    @property
    def n_bytes(self) -> int:
        """Bytes that the values take; a Python integer, which no claim makes wrap around."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: IO[bytes]) -> NpyHeader:
    """The head of a .npy file, the stream left where the values begin. Raises whatever a damaged byte leads to."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"it is of .npy version {version}, and 1.0 and 2.0 are read")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(stream)
    return NpyHeader(dtype, tuple(shape), bool(fortran))


def refuse_impossible(array: NDArray[Any]) -> None:
    """ValueError for bytes that are no truth value or no character: compiled code trusts a bool to be 0 or 1."""
    if array.dtype.kind == "b" and array.size and np.ascontiguousarray(array).view(np.uint8).max() > 1:
        raise ValueError("an array of truth values holds something else")
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if codes.max() > 0x10FFFF:
            raise ValueError("an array of text holds a number that is no character")


_FOREIGN_KINDS = "biufSU"
# Deflate cannot do better than 1032 to 1: who claims more lies, or packs one stream into several members.
_BEST_RATIO, _SMALL = 1032, 1024


def read_npz(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """Every array of the file, its length compared with what the file holds before anything is allocated for it.

    Raises OSError where the file cannot be opened, and ValueError, which names the file, where it is no such file, is
    damaged, holds anything but numbers, truth values and text, or claims more than it holds.
    """
    with open(path, "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as members:
                infos = [*_members_by_name(members, os.fstat(stream.fileno()).st_size).values()]
                _refuse_bombs(infos)
                return {info.filename.removesuffix(".npy"): _member(members, info) for info in infos}
        except MemoryError:
            raise
        except Exception as error:  # the parsers of zip and npy headers raise whatever a damaged byte leads them to
            raise ValueError(f"{os.fspath(path)!r} is no sound .npz file of numbers and text: {error}.") from None


def _refuse_bombs(infos: list[zipfile.ZipInfo]) -> None:
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{info.filename} is compressed in a way that NumPy does not write")
        if info.file_size > _BEST_RATIO * info.compress_size + _SMALL:
            raise ValueError(f"{info.filename} claims to hold more than its compressed bytes can")


def _member(members: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if not info.filename.endswith(".npy"):
        raise ValueError(f"{info.filename!r} is no array")
    with members.open(info) as stream:
        head = read_header(stream)
        if head.dtype.kind not in _FOREIGN_KINDS or head.dtype.itemsize == 0 or len(head.shape) > MAX_DIMENSIONS:
            raise ValueError(f"{info.filename} is of dtype {head.dtype} and shape {head.shape}")
        if stream.tell() + head.n_bytes != info.file_size:
            raise ValueError(f"{info.filename} claims shape {head.shape} and holds {info.file_size} bytes")
        raw = stream.read()  # to the end, where the checksum is compared
    array = np.frombuffer(raw, head.dtype).reshape(head.shape, order="F" if head.fortran else "C")
    refuse_impossible(array)
    return array
