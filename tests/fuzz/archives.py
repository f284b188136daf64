"""Archives taken apart, changed and put together again with the right lengths and checksums, so that a change gets past them."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz import mutate, structure
from lacunar.observed import blocks as blocks_of

STRUCTURED = 0.7  # share of the changes that keep an archive well formed
Parts = tuple[dict[str, Any], dict[str, NDArray[Any]]]


def unpack(data: bytes) -> Parts:
    """Header and arrays; ValueError for what is no zip file of them any more."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            header = json.loads(members.read("header.json"))
            names = [name for name in members.namelist() if name.endswith(".npy")]
            return header, {name[:-4]: _array(members.read(name)) for name in names}
    except Exception as error:
        raise ValueError(str(error)) from None


def _array(data: bytes) -> NDArray[Any]:
    return np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)


def npy(values: NDArray[Any]) -> bytes:
    """The bytes of a .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, values, allow_pickle=False)
    return stream.getvalue()


def pack(header: dict[str, Any], arrays: dict[str, NDArray[Any]], *, listed: bool = True) -> bytes:
    """An archive of the parts; `listed` brings dtype, shape and checksum of every array up to date."""
    if listed and isinstance(header.get("arrays"), dict):
        for name, values in arrays.items():
            described = {"dtype": values.dtype.str, "shape": list(values.shape), "crc32": zlib.crc32(values.tobytes())}
            header["arrays"][name] = described
    return zipped(
        {"header.json": json.dumps(header).encode("utf-8", "surrogatepass")}
        | {f"{n}.npy": npy(v) for n, v in arrays.items()}
    )


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as made:
        for name, content in members.items():
            made.writestr(zipfile.ZipInfo(name), content, compression)  # a fixed date: the same input, the same bytes
    return stream.getvalue()


def change(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """A few changes of header and arrays, or of plain bytes where the input is no archive any more."""
    try:
        header, arrays = unpack(data)
    except ValueError:
        return mutate.raw(data, rng, others)
    if isinstance(header.get("content"), dict) and rng.random() < STRUCTURED:
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            structure.change(header["content"], arrays, rng)
        made = pack(header, arrays)
        return made if len(made) <= mutate.MAX else data
    kind = rng.random()
    if kind < 0.1:
        return mutate.raw(data, rng, others)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if rng.random() < 0.5 and arrays:
            name = rng.choice(sorted(arrays))
            arrays[name] = mutate.array(arrays[name], rng, [arrays[n] for n in sorted(arrays)])
        else:
            mutate.tree(header if rng.random() < 0.2 else header.get("content", header), rng)
    if kind < 0.2 and isinstance(header.get("arrays"), dict):  # lengths that the file does not hold
        for spec in header["arrays"].values():
            if isinstance(spec, dict) and isinstance(spec.get("shape"), list) and rng.random() < 0.5:
                spec["shape"] = [rng.choice(mutate.INTEGERS) for _ in spec["shape"]]
    made = pack(header, arrays, listed=kind > 0.25)
    return made if len(made) <= mutate.MAX else data


_NUMBERS = [0, 1, 2, 3, 7, 8, 127, 128, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**62, 2**63, 2**64 - 1]


def change_rows(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """A file of blocks of rows: numbers of heads, sections, the table of blocks and the header changed, checksums brought up to date."""
    try:
        header, table, blocks = _rows_apart(data)
    except (ValueError, KeyError, TypeError, OverflowError):
        return mutate.raw(data, rng, others)
    if rng.random() < 0.1:
        return mutate.raw(data, rng, others)
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind, k = rng.randrange(6), rng.randrange(max(len(blocks), 1))
        if kind == 0 or not blocks:
            key = rng.choice(sorted(header))
            header[key] = rng.choice([None, [2, 3], [rng.choice(_NUMBERS), 5], "float32", "float64", True, 0.5, {}])
        elif kind == 1:
            table[rng.choice(table.dtype.names)][k] = rng.choice(_NUMBERS) % 2**32
        elif kind == 2 and len(blocks[k]) >= 24:
            at = 8 * rng.randrange(3)
            blocks[k][at : at + 8] = rng.choice(_NUMBERS).to_bytes(8, "little")
        else:
            at = rng.randrange(24, 34) if kind == 3 else rng.randrange(max(len(blocks[k]), 1))
            blocks[k][at : at + 1] = bytes([rng.choice(_NUMBERS) % 256])
    return _rows_together(header, table, blocks)


def _rows_apart(data: bytes) -> tuple[dict[str, Any], NDArray[Any], list[bytearray]]:
    tail = np.frombuffer(data[-32:], blocks_of._TAIL)[0]
    footer = data[int(tail["offset"]) : -32]
    length = int.from_bytes(footer[:8], "little")
    table = np.frombuffer(footer[8 + length :], blocks_of._TABLE).copy()
    blocks = [
        bytearray(data[o : o + size]) for o, size in zip(table["offset"].tolist(), table["size"].tolist(), strict=True)
    ]
    header = json.loads(footer[8 : 8 + length])
    if not isinstance(header, dict):
        raise ValueError("no header")
    return header, table, blocks


def _rows_together(header: dict[str, Any], table: NDArray[Any], blocks: list[bytearray]) -> bytes:
    for entry, block in zip(table, blocks, strict=True):
        split = max(len(block) - int(entry["labels"]) - int(entry["weights"]), 0)
        entry["crc32"], entry["more_crc32"] = zlib.crc32(block[:split]), zlib.crc32(block[split:])
    text = json.dumps(header).encode()
    footer = len(text).to_bytes(8, "little") + text + table.tobytes()
    body = blocks_of._MAGIC + b"".join(blocks)
    tail = np.array([(len(body), len(footer), zlib.crc32(footer), 0, blocks_of._END)], blocks_of._TAIL)
    return body + footer + tail.tobytes()


def change_npz(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Arrays of an .npz file changed, and headers that claim more than is there."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            content = {name: members.read(name) for name in members.namelist()}
        arrays = {name: _array(raw) for name, raw in content.items()}
    except Exception:
        return mutate.raw(data, rng, others)
    if rng.random() < 0.1:
        return mutate.raw(data, rng, others)
    for _ in range(rng.choice([1, 1, 2])):
        name = rng.choice(sorted(arrays)) if arrays else "X.npy"
        kind = rng.randrange(6)
        if kind <= 2 and arrays:
            arrays[name] = mutate.array(arrays[name], rng, [arrays[n] for n in sorted(arrays)])
            content[name] = npy(arrays[name])
        elif kind == 3:
            content.pop(name, None)
        elif kind == 4:
            content[rng.choice(["X.npy", "y.npy", "shape.npy", "feature_names.npy", "other.npy"])] = content.get(
                name, b""
            )
        elif name in content:
            shape = tuple(rng.choice([0, 1, 3, 2**20, 2**31, 2**40, 2**62]) for _ in range(rng.choice([1, 2])))
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(
                header, {"descr": rng.choice([*mutate.DTYPES, "|O"]), "fortran_order": False, "shape": shape}
            )
            content[name] = header.getvalue() + content[name][-rng.choice([1, 8, 64]) :]
    return zipped(content, rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))[: mutate.MAX]


def change_zip(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Texts inside a zip file changed, members dropped."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            content = {name: members.read(name) for name in members.namelist()}
    except Exception:
        return mutate.raw(data, rng, others)
    name = rng.choice(sorted(content) or [""])
    kind = rng.randrange(12)
    if kind == 0 or not content:
        return mutate.raw(data, rng, others)
    if kind == 1:
        content.pop(name)
    else:
        content[name] = mutate.text(content[name], rng, list(content.values()))
    return zipped(content, zipfile.ZIP_DEFLATED)[: mutate.MAX * 4]
