"""Samples of rows drawn by a hash of their entries and labels, so that neither the order of the rows, nor their
storage, nor the cut into batches changes which rows are drawn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._typing import Floats
from lacunar.lowrank.parts import FileParts, InMemory, RowParts
from lacunar.observed import Observed
from lacunar.observed.columns import row_blocks

_BLOCK = 2**20  # entries whose hashes are held at once
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)  # of splitmix64
_DIGITS = 2.0**26  # keys times it have as many binary digits before the point as behind it


class DrawnRows(NamedTuple):
    """Rows, their labels (n, targets), NaN where unknown, and their keys (n,) in [0, 1)."""

    rows: Observed
    labels: Floats
    keys: Floats


class Shares(NamedTuple):
    """The shares of labelled and of unlabelled rows to draw, and the seed of the hash."""

    labelled: float
    others: float
    seed: int

    @property
    def all_rows(self) -> bool:
        return min(self.labelled, self.others) >= 1


def drawn(part: tuple[Observed, Floats], shares: Shares) -> DrawnRows:
    """The sampled rows of a part (rows, labels, ...), with their labels and keys. O(nnz)."""
    rows, labels = part[:2]
    keys = row_keys(rows, labels, shares.seed)
    known = (~np.isnan(labels)).any(axis=1)
    if shares.all_rows:
        return DrawnRows(rows, labels, keys)
    chosen = np.flatnonzero(keys < np.where(known, shares.labelled, shares.others))
    return DrawnRows(rows[chosen], labels[chosen], keys[chosen])


def gathered(parts: RowParts) -> RowParts:
    """A file's drawn rows as one part in memory, as every step would otherwise read the file; other parts are returned
    unchanged.
    """
    if not isinstance(parts, FileParts):
        return parts
    pieces: list[DrawnRows] = parts.each(DrawnRows._make)
    labels, keys = (np.concatenate([piece[k] for piece in pieces]) for k in (1, 2))
    return InMemory(DrawnRows(Observed.vstack(piece.rows for piece in pieces), labels, keys))


def folds_of(keys: Floats, k: int) -> NDArray[np.intp]:
    """The fold, 0 to k - 1, of each row (n,); a row stays in its fold whatever share of the rows is drawn."""
    folds: NDArray[np.intp] = np.minimum(np.modf(keys * _DIGITS)[0] * k, k - 1).astype(np.intp)
    return folds


def row_keys(rows: Observed, labels: Floats, seed: int) -> Floats:
    """Numbers (n,) in [0, 1) by a hash of the observed entries, as float32, and the labels of a row."""
    keys = np.empty(rows.shape[0])
    start = _mixed(np.full(1, seed, np.uint64))
    step = max(_BLOCK * max(rows.shape[0], 1) // max(rows.nnz, 1), 1)
    for piece in row_blocks(rows, step):
        at = slice(int(rows.indptr[piece.start]), int(rows.indptr[piece.stop]))
        hashes = _mixed(_bits(rows.values[at]) ^ (rows.indices[at].astype(np.uint64) << np.uint64(32)) ^ start)
        ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
        edges = rows.indptr[piece.start : piece.stop + 1] - at.start
        total = ends[edges[1:]] - ends[edges[:-1]]  # modulo 2^64
        for target in np.nan_to_num(labels[piece]).T:
            total = _mixed(total ^ _bits(target))
        keys[piece] = (_mixed(total + start) >> np.uint64(11)) * 2.0**-53
    return keys


def _bits(values: NDArray[np.floating]) -> NDArray[np.uint64]:
    """The bits of values (n,) as float32, the same ones for 0 and -0."""
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32) + np.float32(0)
    bits: NDArray[np.uint64] = narrow.view(np.uint32).astype(np.uint64)
    return bits


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hashes of numbers (splitmix64)."""
    with np.errstate(over="ignore"):
        numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
        numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    mixed: NDArray[np.uint64] = numbers ^ (numbers >> np.uint64(31))
    return mixed
