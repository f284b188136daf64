"""Mutations of bytes, of text by tokens, of JSON by nodes and of arrays by values, dtypes and shapes."""

from __future__ import annotations

import copy
import re
import struct
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX = 200_000  # bytes of an input
INTEGERS = [0, 1, -1, 2, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 2, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, -(2**31), -(2**63)]  # fmt: skip
NODES: list[Any] = [
    None, True, False, *INTEGERS, 10**400, 0.0, -0.0, 0.5, -2.5, 1e308, 5e-324, float("nan"), float("inf"), "", "a", "a0", "nan", "\0",
    "\ud800", "x" * 300, [], [0], [[]], {}, {"t": "list", "items": []}, {"t": "float", "value": "nan"}, {"t": "tuple", "items": [1, 2]},
    {"t": "type", "name": "int"}, {"t": "dict", "items": [[1, 2]]}, {"t": "dict", "items": [[{"t": "list", "items": []}, 2]]},
]  # fmt: skip
WORDS = [
    "nan", "inf", "-inf", "1e400", "-1e308", "5e-324", "-0", "1_0", "٣", "0x10", "1:1", "0:0", "-1:2", "2147483647:1", "4294967296:1",
    "9223372036854775808:1", "99999999:1", "1:nan", "1:inf", ":", "1:", ":1", "qid:1", "#", "'", '"', '"" "', "\0", "\ufeff", "\r", "\u2028",
    "\u202e", "\x1b[31m", "é", "\U0001f600", ",", ";", "\t", "\n", "\n\n", "?", "", "@attribute", "@attribute a numeric\n", "@data", "{0 1}",
    "%", "\\", "1" * 400, "a" * 3000, "1e5000", "9" * 5000,
]  # fmt: skip


def raw(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Bytes changed, cut, repeated or joined with another input."""
    made = bytearray(data or b"\0")
    for _ in range(rng.choice([1, 1, 2, 4, 16])):
        at = rng.randrange(len(made) or 1)
        until = min(len(made), at + int(2 ** rng.uniform(0, 10)))
        kind = rng.randrange(8)
        if kind == 0 and made:
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and made:
            made[at] = rng.randrange(256)
        elif kind == 2:
            del made[at:until]
        elif kind == 3:
            made[at:at] = made[at:until] * rng.choice([1, 2, 50])
        elif kind == 4:
            code = rng.choice(["<H", "<I", "<Q", ">I"])
            packed = struct.pack(code, rng.choice(INTEGERS) % 256 ** struct.calcsize(code))
            made[at : at + len(packed)] = packed
        elif kind == 5:
            del made[at:]
        elif kind == 6:
            made[at:until] = rng.randbytes(until - at)
        elif others:
            other = rng.choice(others)
            made[at:] = other[min(at, len(other)) :]
    return bytes(made[:MAX])


def text(data: bytes, rng: Random, others: Sequence[bytes]) -> bytes:
    """Tokens and lines changed; now and then written in another encoding, or plain bytes changed."""
    if rng.random() < 0.15:
        return raw(data, rng, others)
    tokens = re.findall(r"[^\s,;:]+|[\s,;:]", data.decode("utf-8", "replace")) or [""]
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(len(tokens))
        until = at + int(2 ** rng.uniform(0, 6))
        kind = rng.randrange(7)
        if kind <= 1:
            tokens[at] = rng.choice(WORDS)
        elif kind == 2:
            tokens.insert(at, rng.choice(WORDS))
        elif kind == 3:
            del tokens[at:until]
        elif kind == 4:
            tokens[at:at] = tokens[at:until] * rng.choice([1, 3, 300])
        elif kind == 5:
            tokens[at] = f"{rng.choice(INTEGERS)}{rng.choice(['', ':1', '.5'])}"
        else:
            tokens[at:at] = [rng.choice(WORDS), rng.choice([",", "\n", " "])] * rng.choice([1, 10, 3000])
        tokens = tokens[: MAX // 2] or [""]
    encoding = rng.choices(["utf-8", "utf-16", "utf-8-sig", "latin-1"], [30, 1, 1, 1])[0]
    return "".join(tokens).encode(encoding, "replace" if encoding == "latin-1" else "surrogatepass")[:MAX]


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield node, key
        yield from _places(node[key])


def tree(node: Any, rng: Random) -> None:
    """One change in place: a leaf, a key, a branch swapped, dropped, doubled."""
    places = list(_places(node))
    if not places:
        return
    holder, key = rng.choice(places)
    kind, value = rng.randrange(8), holder[key]
    if kind <= 1:
        holder[key] = rng.choice(NODES)
    elif kind == 2 and type(value) in (int, float):
        holder[key] = value + rng.choice([-1, 1, 0.5, value])
    elif kind == 2 and isinstance(value, str):
        holder[key] = rng.choice([value + "x", value[:-1], value[::-1], value.upper(), rng.choice(NODES)])
    elif kind == 3:
        del holder[key]
    elif kind == 4:
        other, place = rng.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(value)  # never one inside itself
    elif kind == 5:
        other, place = rng.choice(places)
        if place in other if isinstance(other, dict) else place < len(other):
            holder[key] = copy.deepcopy(other[place])
    elif kind == 6 and isinstance(holder, dict):
        holder[rng.choice(places)[1] if rng.random() < 0.5 else "extra_"] = holder.pop(key)
    elif isinstance(holder, list):
        holder[key:key] = [value] * rng.choice([1, 2, 20])
    else:
        holder[key] = [value]


DTYPES = [
    "<f8",
    "<f4",
    "<i8",
    "<i4",
    "<i2",
    "|i1",
    "<u8",
    "<u4",
    "|u1",
    "|b1",
    "<f2",
    "<f16",
    "<U1",
    "<U7",
    ">f8",
    ">i8",
]


def array(values: NDArray[Any], rng: Random, others: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One change of values, dtype or shape."""
    kind = rng.randrange(9)
    flat = values.ravel().copy()
    if kind <= 2 and flat.size:
        for _ in range(rng.choice([1, 1, 3, flat.size])):
            _set(flat, rng.randrange(flat.size), rng)
        return flat.reshape(values.shape)
    if kind == 3:
        with np.errstate(all="ignore"):
            try:
                return values.astype(rng.choice(DTYPES))
            except (ValueError, TypeError, OverflowError):
                return values
    if kind == 4:
        return flat[: rng.randrange(flat.size + 1)] if rng.random() < 0.5 else np.concatenate([flat, flat[:3]])
    if kind == 5 and values.ndim:
        axis = rng.randrange(values.ndim)
        return rng.choice(
            [values[..., None], values.T, values[:0], values.reshape(-1), np.concatenate([values, values], axis)]
        )
    if kind == 6:
        return np.zeros(rng.choice([(), (0,), (1,), (0, 3), (2, 2), (1, 1, 1), (len(flat),)]), rng.choice(DTYPES))
    if kind == 7 and others:
        return rng.choice(others)
    rng.shuffle(shuffled := flat.tolist())
    return np.array(shuffled, dtype=values.dtype).reshape(values.shape) if flat.size else values


def _set(flat: NDArray[Any], at: int, rng: Random) -> None:
    kind = flat.dtype.kind
    if kind == "f":
        with np.errstate(over="ignore"):
            flat[at] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-300, 1e30, -float(flat[at])])
    elif kind in "iu":
        info = np.iinfo(flat.dtype)
        wanted = rng.choice([*INTEGERS, int(flat[at]) + 1, int(flat[at]) - 1])
        flat[at] = min(max(wanted, info.min), info.max)
    elif kind == "b":
        flat.view(np.uint8)[at] = rng.choice([0, 1, 2, 255])
    elif kind == "U" and flat.dtype.itemsize:
        flat.view(np.uint32)[at * flat.dtype.itemsize // 4] = rng.choice([0, 65, 0xD800, 0x10FFFF, 0x110000, 2**32 - 1])
