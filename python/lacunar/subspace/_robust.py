"""What is done to rows before their moments are taken: winsorised cells, rescaled rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_TO_SD = 1.4826  # of a median absolute deviation, for normal data


def location(rows: Observed) -> tuple[_Floats, _Floats]:
    """Median and scaled median absolute deviation (d,) of observed entries; scale 1 where it is 0."""
    d = rows.shape[1]
    middle, spread = np.zeros(d), np.ones(d)
    columns = rows.columns
    values = rows.values.astype(np.float64)[columns.positions]
    for j in np.flatnonzero(np.diff(columns.indptr)):
        part = values[columns.indptr[j] : columns.indptr[j + 1]]
        middle[j] = np.median(part)
        spread[j] = _TO_SD * np.median(np.abs(part - middle[j])) or 1.0
    return middle, spread


def tamed(rows: Observed, how: object) -> Observed:
    """Rows with cells clipped at `c` deviations from the median ("winsor", c), or with long rows shortened ("rows")."""
    middle, spread = location(rows)
    with np.errstate(over="ignore"):
        z = (rows.values.astype(np.float64) - middle[rows.indices]) / spread[rows.indices]
    if isinstance(how, tuple):
        z = np.clip(z, -how[1], how[1])
    else:
        size = _lengths(rows, z)
        usual = np.median(size[rows.row_counts > 0]) if rows.nnz else 1.0
        index = np.repeat(np.arange(rows.shape[0]), rows.row_counts)
        z /= np.maximum(1.0, size / (usual or 1.0))[index]
    return rows.with_values(z * spread[rows.indices] + middle[rows.indices])


def _lengths(rows: Observed, z: _Floats) -> _Floats:
    """Root mean square (n,) of the observed entries z of every row, by its largest: squares of 1e200 would overflow."""
    index = np.repeat(np.arange(rows.shape[0]), rows.row_counts)
    if len(far := np.flatnonzero(~np.isfinite(z))):
        row, column = int(index[far[0]]), int(rows.indices[far[0]])
        raise ValueError(
            "robust='rows' needs entries whose distance to the column's median, in its deviations, float64 holds; got "
            f"{rows.values[far[0]]:.3g} in row {row}, column {column}. Correct it, or pass robust=('winsor', 3)."
        )
    largest = np.zeros(rows.shape[0])
    np.maximum.at(largest, index, np.abs(z))
    unit = np.where(largest > 0, largest, 1.0)
    squares = np.bincount(index, (z / unit[index]) ** 2, minlength=rows.shape[0])
    made: _Floats = unit * np.sqrt(squares / np.maximum(rows.row_counts, 1))
    return made
