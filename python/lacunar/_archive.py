"""Arrays and a JSON header in one file or folder: no pickle, checked before use, memory-mappable, written atomically.

Layout: ``header.json`` and one ``NAME.npy`` an array, either in a folder or as members of an uncompressed zip file.
The header lists every array with dtype, shape and CRC-32, so nothing is allocated or mapped that the file cannot hold.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import struct
import tempfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

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
    as_folder: bool = False,
) -> None:
    """Write under another name beside `path`, force it to the disk, then rename: killed or without power, the old file stays."""
    target = Path(path)
    packed = {name: np.ascontiguousarray(array).reshape(np.shape(array)) for name, array in arrays.items()}
    for name, array in packed.items():
        if not _NAME.fullmatch(name) or array.dtype.kind not in _KINDS:
            raise TypeError(f"an archive holds named arrays of numbers or text; got {name!r} of dtype {array.dtype}.")
    listing = {name: _describe(array) for name, array in packed.items()}
    text = header_text(kind, listing, header)
    if as_folder:
        _write_folder(target, text, packed)
    else:
        replace_file(target, lambda stream: _write_members(stream, text, packed))


def header_text(kind: str, listing: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """What header.json says: the arrays, and whatever else the kind wants."""
    whole = {"format_version": FORMAT_VERSION, "kind": kind, "arrays": dict(listing), "content": dict(content)}
    return json.dumps(whole, allow_nan=False)


def _describe(array: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": array.dtype.str, "shape": list(array.shape), "crc32": _checksum(array)}


def _checksum(array: NDArray[Any]) -> int:
    return zlib.crc32(array.view(np.uint8).data if array.ndim and array.size else array.tobytes())


def _write_members(stream: BinaryIO, text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as members:
        members.writestr("header.json", text)
        for name, array in arrays.items():
            with members.open(aligned_member(name, stream.tell()), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def replace_file(target: Path, write: Callable[[BinaryIO], None]) -> None:
    """A file written under another name beside `target` takes its place at the end."""
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())  # or the new name could reach the disk before the bytes
        os.chmod(temporary, _usual_mode(0o666))  # mkstemp keeps a file to its owner
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _to_disk(target.parent)


def _to_disk(path: Path) -> None:
    """Wait until the disk holds a file's bytes, or a folder's names; Windows has no such call for folders."""
    if os.name == "nt" and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def aligned_member(name: str, position: int) -> zipfile.ZipInfo:
    """A member whose bytes start at a multiple of 64, padded by an extra field, so that a map of them is aligned."""
    info = zipfile.ZipInfo(f"{name}.npy")
    fixed = position + 30 + len(info.filename) + 20 + 4  # local header, name, zip64 field, head of the padding field
    info.extra = struct.pack("<HH", 0xD935, -fixed % 64) + bytes(-fixed % 64)
    return info


def _usual_mode(mode: int) -> int:
    """The permissions a new file or folder would get; the mask can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mode & ~mask


def _write_folder(target: Path, text: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    check_folder(target)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=target.name, suffix=".part"))
    try:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
        replace_folder(temporary, target, text)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check_folder(target: Path) -> None:
    """A folder that is no archive is not overwritten."""
    if target.is_dir() and any(target.iterdir()) and not (target / "header.json").is_file():
        raise FileExistsError(f"{target} is a folder with other content. Choose another path.")


def replace_folder(temporary: Path, target: Path, text: str) -> None:
    """A folder of arrays gets its header and takes the place of an archive, or of nothing."""
    (temporary / "header.json").write_text(text, encoding="utf-8")
    for part in [*temporary.iterdir(), temporary]:
        _to_disk(part)
    os.chmod(temporary, _usual_mode(0o777))
    if target.is_dir():  # a folder cannot be replaced in one step: the old one is moved aside, never lost
        aside = Path(f"{temporary}.old")
        os.replace(target, aside)
        os.replace(temporary, target)
        _to_disk(target.parent)
        shutil.rmtree(aside)
    else:
        os.replace(temporary, target)
        _to_disk(target.parent)


def read_archive(
    path: str | os.PathLike[str], *, kind: str, mmap: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header's content and the arrays of an archive of this kind; ValueError for anything that is not one."""
    source = Path(path)
    if not source.exists():
        raise FileNotFoundError(f"no such file or folder: {os.fspath(path)!r}.")
    try:
        if source.is_dir():
            header = _parse(source, kind, (source / "header.json").read_bytes()[: _MAX_HEADER + 1])
            return header["content"], {n: _load(source / f"{n}.npy", 0, s, mmap) for n, s in header["arrays"].items()}
        return _read_file(source, kind, mmap)
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        RuntimeError,
        MemoryError,
        struct.error,
        OverflowError,
        NotImplementedError,
        KeyError,
        TypeError,
    ) as error:
        _refuse(source, str(error))


def _refuse(source: Path, reason: str) -> NoReturn:
    raise ValueError(f"{str(source)!r} is not a sound lacunar file: {reason}. Write it again with save.") from None


def _read_file(source: Path, kind: str, mmap: bool) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with zipfile.ZipFile(source) as members:
        infos = {info.filename: info for info in members.infolist()}
        if any(info.compress_type != zipfile.ZIP_STORED for info in infos.values()):
            _refuse(source, "it has compressed members")
        if "header.json" not in infos or infos["header.json"].file_size > _MAX_HEADER:
            _refuse(source, "it has no header, or one beyond 16 MiB")
        header = _parse(source, kind, members.read("header.json"))
        if set(infos) != {"header.json"} | {f"{name}.npy" for name in header["arrays"]}:
            _refuse(source, "its members are not those its header lists")
    arrays = {}
    for name, spec in header["arrays"].items():
        arrays[name] = _load(source, _data_offset(source, infos[f"{name}.npy"]), spec, mmap)
    return header["content"], arrays


def _data_offset(source: Path, info: zipfile.ZipInfo) -> int:
    """Where a stored member's bytes begin: past its local header of 30 bytes, name and extra field."""
    with open(source, "rb") as stream:
        stream.seek(info.header_offset)
        fixed = stream.read(30)
        if len(fixed) < 30 or fixed[:4] != b"PK\x03\x04":
            _refuse(source, f"member {info.filename} has no local header")
        name_length, extra_length = struct.unpack("<HH", fixed[26:30])
    return info.header_offset + 30 + int(name_length) + int(extra_length)


def _parse(source: Path, kind: str, raw: bytes) -> dict[str, Any]:
    try:
        header = json.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        _refuse(source, f"its header is no JSON ({type(error).__name__})")
    if not isinstance(header, dict) or set(header) != {"format_version", "kind", "arrays", "content"}:
        _refuse(source, "its header has other keys than format_version, kind, arrays, content")
    if header["format_version"] != FORMAT_VERSION:
        _refuse(source, f"it is of format version {header['format_version']!r} and this lacunar reads {FORMAT_VERSION}")
    if header["kind"] != kind:
        _refuse(source, f"it holds {header['kind']!r}, not {kind!r}")
    if not isinstance(header["arrays"], dict) or not isinstance(header["content"], dict):
        _refuse(source, "its header lists no arrays or no content")
    for name, spec in header["arrays"].items():
        _check_spec(source, name, spec)
    return header


def _check_spec(source: Path, name: str, spec: Any) -> None:
    sound = (
        _NAME.fullmatch(name)
        and isinstance(spec, dict)
        and set(spec) == {"dtype", "shape", "crc32"}
        and isinstance(spec["dtype"], str)
        and re.fullmatch(r"[<|>][biufU]\d{1,6}", spec["dtype"])
        and isinstance(spec["shape"], list)
        and all(type(size) is int and 0 <= size < 2**62 for size in spec["shape"])
    )
    if not sound:
        _refuse(source, f"the header's entry for array {name!r} is not understood")


def _load(source: Path, offset: int, spec: Mapping[str, Any], mmap: bool) -> NDArray[Any]:
    dtype, shape = np.dtype(spec["dtype"]), tuple(spec["shape"])
    with open(source, "rb") as stream:
        stream.seek(offset)
        _match_npy_header(source, stream, dtype, shape)
        start = stream.tell()
        n_bytes = math.prod(shape) * dtype.itemsize
        if start + n_bytes > os.fstat(stream.fileno()).st_size:
            _refuse(source, f"it ends before the array of shape {shape} does")
        if mmap and n_bytes and start % dtype.alignment == 0:  # the core must not read misaligned numbers
            return np.memmap(source, dtype=dtype, mode="r", offset=start, shape=shape)
        array = np.fromfile(stream, dtype=dtype, count=math.prod(shape)).reshape(shape)
    if _checksum(array) != spec["crc32"]:
        _refuse(source, "an array does not match its checksum")
    return array


def _match_npy_header(source: Path, stream: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        found_shape, fortran, found_dtype = read(stream)
    except (ValueError, SyntaxError, tokenize.TokenError, RecursionError, Warning) as error:
        _refuse(source, f"an array's header is damaged ({error})")
    if found_dtype != dtype or tuple(found_shape) != shape or (fortran and len(shape) > 1):
        _refuse(source, f"an array is {found_dtype} {found_shape} and the header says {dtype} {shape}")
