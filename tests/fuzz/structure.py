"""Changes inside a sound archive that keep it well formed: what a careful forger does, checksums and listings brought up to date.

Sizes that several arrays and numbers share change together or apart, ids repeat, indices and offsets leave their range, numbers
of the header and words of the model are exchanged.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

LENGTHS = [0, 1, 2, 3, 5, 64, 300, 4097]
WHOLES = [
    0,
    1,
    -1,
    2,
    3,
    7,
    63,
    65,
    1000,
    2**15,
    2**31 - 1,
    2**31,
    2**32 + 1,
    2_000_000_000,
    2**53,
    2**62,
    -(2**31),
    -(2**63),
]
REALS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    5e-324,
    1e-300,
    1e-30,
    1e30,
    1e300,
    -1e300,
    float("nan"),
    float("inf"),
    -float("inf"),
]
DTYPES = ["<f8", "<f4", "<f2", "<i8", "<i4", "<u4", "|i1", "|b1", "<U3"]


def change(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """One such change of the header's content and the arrays, in place."""
    kinds = [
        _lengths,
        _lengths,
        _repeats,
        _indices,
        _offsets,
        _columns,
        _reals,
        _scalars,
        _scalars,
        _words,
        _dtype,
        _references,
        _shape,
    ]
    rng.choice(kinds)(content, arrays, rng)


def _leaves(node: Any) -> Iterator[tuple[Any, Any]]:
    """Holder and key of every value that is no list and no dict."""
    for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        if isinstance(node[key], dict | list):
            yield from _leaves(node[key])
        else:
            yield node, key


def _nodes(node: Any, kind: str) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict) and node.get("t") == kind:
        yield node
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _nodes(child, kind)


def _named(arrays: Arrays, rng: Random, kinds: str = "iufbU", least: int = 1) -> str | None:
    fitting = sorted(name for name, values in arrays.items() if values.dtype.kind in kinds and values.size >= least)
    return rng.choice(fitting) if fitting else None


def _resized(values: NDArray[Any], axis: int, size: int) -> NDArray[Any]:
    """Cut, or continued by what there was; zeros after nothing."""
    had = values.shape[axis]
    if had == 0:
        shape = list(values.shape)
        shape[axis] = size
        return np.zeros(shape, values.dtype)
    return np.take(values, np.arange(size) % had, axis=axis)


def _lengths(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """A size that arrays share, in all of them or in some, and in the numbers of the header that say it."""
    name = _named(arrays, rng, least=0)
    if name is None or not arrays[name].ndim:
        return
    size = rng.choice(arrays[name].shape)
    wanted = rng.choice([*LENGTHS, size + 1, max(size - 1, 0), 2 * size])
    share, told = rng.choice([1.0, 1.0, 0.5, 0.0]), rng.random() < 0.5
    for other, axis in [
        (n, axis) for n in sorted(arrays) for axis in range(arrays[n].ndim) if arrays[n].shape[axis] == size
    ]:
        small = arrays[other].size // max(size, 1) * wanted <= 30_000
        if small and (other == name or rng.random() < share):
            arrays[other] = _resized(arrays[other], axis, wanted)
    for holder, key in list(_leaves(content)) if told else ():
        if type(holder[key]) is int and holder[key] == size:
            holder[key] = wanted


def _repeats(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """Ids, labels or categories that come twice, or everywhere."""
    name = _named(arrays, rng, "iuU", 2) or _named(arrays, rng, least=2)
    if name is not None:
        made = arrays[name].copy()
        value, places = made.flat[rng.randrange(made.size)], rng.choice([1, made.size])
        made.flat[: made.size if places > 1 else 0] = value
        made.flat[rng.randrange(made.size)] = value
        arrays[name] = made


def _indices(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """A whole number just past its range, far past it, or below it."""
    name = _named(arrays, rng, "iu")
    if name is not None:
        made, info = arrays[name].copy(), np.iinfo(arrays[name].dtype)
        wish = rng.choice([int(made.max()) + 1, int(made.min()) - 1, made.size, len(made) if made.ndim else 1, *WHOLES])
        made.flat[rng.randrange(made.size)] = min(max(wish, info.min), info.max)
        arrays[name] = made


def _offsets(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """Ascending whole numbers in another order, shifted, or flat."""
    names = [n for n in sorted(arrays) if arrays[n].dtype.kind in "iu" and arrays[n].ndim == 1 and len(arrays[n]) > 1]
    names = [n for n in names if (np.diff(arrays[n].astype(np.float64)) >= 0).all()] or names
    if names:
        name = rng.choice(names)
        made, at = arrays[name].copy(), rng.randrange(len(arrays[name]))
        kind = rng.randrange(4)
        if kind == 0:
            made[at:] += made.dtype.type(1)
        elif kind == 1:
            made[:at] = made[at]
        elif kind == 2:
            made = made[::-1].copy()
        else:
            made[at], made[0] = made[0], made[at]
        arrays[name] = made


def _columns(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """Stored rows of another width, the last entry of every row in the last column."""
    nodes = [*_nodes(content, "observed"), *_nodes(content, "sparse")]
    holder = rng.choice(nodes) if nodes else content
    if isinstance(holder.get("shape"), list) and len(holder["shape"]) == 2:
        width = rng.choice([0, 1, 3, 5, 1000, 2_000_000_000, 2**31 - 1, 2**31])
        holder["shape"][1] = width
        names = [holder.get("indices", "indices"), holder.get("indptr", "indptr")]
        if all(
            isinstance(n, str) and n in arrays and arrays[n].dtype.kind == "i" and arrays[n].ndim == 1 for n in names
        ):
            made, ends = arrays[names[0]].copy(), arrays[names[1]][1:] - 1
            ends = ends[(ends >= 0) & (ends < len(made))]
            made[ends] = min(max(width - 1, 0), np.iinfo(made.dtype).max)
            arrays[names[0]] = made


def _reals(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """One number, a row of them or all: huge, tiny, of the other sign, no number."""
    name = _named(arrays, rng, "f")
    if name is not None:
        made = arrays[name].copy()
        part = rng.choice([slice(None), slice(rng.randrange(made.size), None), rng.randrange(made.size)])
        with np.errstate(over="ignore"):
            if rng.random() < 0.5:
                made.flat[part] = rng.choice(REALS)
            else:
                made *= made.dtype.type(rng.choice([-1.0, 1e-20, 1e20, 1e150]) if made.dtype != np.float16 else -1.0)
        arrays[name] = made


def _scalars(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """A number of the header."""
    places = [(h, k) for h, k in _leaves(content) if type(h[k]) in (int, float, bool)]
    if places:
        holder, key = rng.choice(places)
        value = holder[key]
        if type(value) is bool:
            holder[key] = rng.choice([not value, 2, None])
        elif type(value) is int:
            holder[key] = rng.choice([*WHOLES, value + 1, value - 1, float(value), None])
        else:
            new = rng.choice([*REALS, -value, int(value) if abs(value) < 1e9 else 0, None])
            unusual = isinstance(new, float) and not np.isfinite(new)
            holder[key] = {"t": "float", "value": repr(new)} if unusual else new


def _words(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """A word in the place of another: other losses, solvers, classes, names of attributes."""
    places = [(h, k) for h, k in _leaves(content) if isinstance(h[k], str) and k not in ("t", "name")]
    if len(places) > 1:
        (holder, key), (other, place) = rng.sample(places, 2)
        kept = [
            "squared",
            "hinge",
            "primal",
            "online",
            "gram",
            "last",
            "average",
            "float32",
            "float64",
            "shared",
            "per-column",
            "cosine",
            "levels",
        ]
        holder[key] = rng.choice([other[place], rng.choice(kept)])


def _dtype(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    name = _named(arrays, rng, "iufb", 0)
    if name is not None:
        with np.errstate(all="ignore"):
            arrays[name] = arrays[name].astype(rng.choice(DTYPES))


def _references(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """Two arrays, or two branches of the model, in each other's place; or one a copy of the other."""
    nodes = [n for kind in ("array", "observed", "record", "list", "estimator") for n in _nodes(content, kind)]
    if len(nodes) > 1 and rng.random() < 0.4:
        one, other = rng.sample(nodes, 2)
        kept, moved = copy.deepcopy(one), copy.deepcopy(other)
        one.clear(), one.update(moved)
        if rng.random() < 0.5:
            other.clear(), other.update(kept)
    elif len(arrays) > 1:
        one, other = rng.sample(sorted(arrays), 2)
        arrays[one], arrays[other] = arrays[other], arrays[one] if rng.random() < 0.7 else arrays[other]


def _shape(content: dict[str, Any], arrays: Arrays, rng: Random) -> None:
    """The same numbers in another shape."""
    name = _named(arrays, rng, least=0)
    if name is not None:
        values = arrays[name]
        arrays[name] = rng.choice(
            [
                values.reshape(-1),
                values[None],
                values[..., None],
                values.T.copy(),
                values.reshape(-1)[:1].reshape(()) if values.size else values,
            ]
        )
