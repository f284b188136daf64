"""A block of a file of rows, plainly: what cpp/include/lacunar/blocks/blocks.hpp says, entry by entry."""

from itertools import pairwise

import numpy as np

DTYPES = [
    "<f8",
    "<f4",
    "<f2",
    "<i1",
    "<i1",
]  # by kind; the last two are whole numbers and multiples of a column's scale
DOUBLES, FLOATS, HALVES, WHOLE, SCALED = range(5)


def padded(data):
    return data + bytes(-len(data) % 8)


def encode(indptr, indices, values, d, *, gap_bytes, kind):
    """A block with gaps of so many bytes (0: bits) and values of this kind."""
    lengths = np.diff(indptr)
    wide = 1 if lengths.max(initial=0) < 256 else 2 if lengths.max() < 65536 else 4
    gaps = np.concatenate([np.diff(indices[a:b], prepend=-1) for a, b in pairwise(indptr)] or [[]])
    if gap_bytes:
        large = gaps >= 256**gap_bytes
        columns, escapes = np.where(large, 0, gaps).astype(f"<u{gap_bytes}").tobytes(), gaps[large].astype("<u4")
    else:
        bits = np.zeros((len(lengths), d), bool)
        bits[np.repeat(np.arange(len(lengths)), lengths), indices] = True
        columns, escapes = np.packbits(bits, axis=1, bitorder="little").tobytes(), np.zeros(0, "<u4")
    scales = np.zeros(d if kind == SCALED else 0, np.float32)
    if kind == SCALED:
        np.maximum.at(scales, indices, np.abs(values).astype(np.float32))
        scales /= np.float32(127)
        unit = np.where(scales > 0, scales, 1)[indices]
        values = np.clip(np.rint(values.astype(np.float32) / unit), -127, 127)
    head = np.array([len(lengths), len(indices), len(escapes)], "<u8").tobytes() + bytes(
        [wide, gap_bytes, kind] + [0] * 5
    )
    stored = (values.astype(np.float32) if kind == HALVES else values).astype(DTYPES[kind])
    sections = [lengths.astype(f"<u{wide}"), escapes, scales, columns, stored]
    return head + b"".join(padded(each if isinstance(each, bytes) else each.tobytes()) for each in sections)


def decode(data, d, dtype):
    """indptr, indices and values of a sound block."""
    n, entries, n_escapes = np.frombuffer(data, "<u8", 3).astype(int)
    wide, gap_bytes, kind = data[24:27]
    at = 32

    def section(kind, count):
        nonlocal at
        found = np.frombuffer(data, kind, count, at)
        at += -(-found.nbytes // 8) * 8
        return found

    indptr = np.concatenate([[0], np.cumsum(section(f"<u{wide}", n).astype(np.int64))])
    escapes = list(section("<u4", n_escapes))
    scales = section("<f4", d if kind == SCALED else 0)
    if gap_bytes:
        gaps = [int(gap) or int(escapes.pop(0)) for gap in section(f"<u{gap_bytes}", entries)]
        rows = [np.cumsum(gaps[a:b]) - 1 for a, b in pairwise(indptr)]
        indices = np.concatenate([*rows, []]).astype(np.int32)
    else:
        width = -(-d // 8)
        bits = section("u1", n * width).reshape(n, width)
        indices = np.nonzero(np.unpackbits(bits, axis=1, bitorder="little"))[1].astype(np.int32)
    values = section(DTYPES[kind], entries)
    return indptr, indices, (values.astype(np.float32) * scales[indices] if kind == SCALED else values).astype(dtype)
