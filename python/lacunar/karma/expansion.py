"""Columns expanded into bumps along them or indicators of their levels, so that sums of products say more of a pair of rows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lacunar._typing import Floats
from lacunar.observed import Observed
from lacunar.observed.rules import Rule, Word, check_parts, floats

Expansion = Literal["gaussian", "levels"]
EXPANSIONS: tuple[Expansion, ...] = ("gaussian", "levels")
_BUMPS = 6  # landmarks of a column's Gaussian kernel, at its quantiles
_MOST_LEVELS = 8
_MOST_ENTRIES = 2**25  # of an expanded table
_SAME = 1e-9
_AT_ONCE = 2**16  # entries whose maps are held at once


def fit_expansion(rows: Observed, kind: Expansion) -> dict[str, Any] | None:
    """What `expand` needs for standardised rows: points (d, m) and maps (d, m, m); None where it does not apply or fit.

    The kernel of the expanded table is KARMA's with s = sum over common columns of x x' + b(x, x'), b a Gaussian of the
    column's values or the equality of its levels; counts grow by one factor, which the count scale takes out.

    "gaussian": b(x, x') = exp(-(x - x')^2 / 2), through its values at m quantiles (Nystroem). "levels": one column a
    level for columns of at most 8 values; others stay single.
    """
    d = rows.shape[1]
    width = _BUMPS if kind == "gaussian" else _MOST_LEVELS
    if rows.nnz * (width + 1) > _MOST_ENTRIES:
        return None
    points, maps, columns = np.zeros((d, width)), np.zeros((d, width, width)), rows.columns
    for j in range(d):
        values = rows.values[columns.positions[columns.indptr[j] : columns.indptr[j + 1]]].astype(np.float64)
        of_column, map_ = (_bumps if kind == "gaussian" else _indicators)(np.unique(values))
        m = len(of_column)
        points[j, :m], maps[j, :m, :m] = of_column, map_
    return {"kind": kind, "points": points, "maps": maps} if maps.any() else None


def _bumps(levels: Floats) -> tuple[Floats, Floats]:
    """Points (m,) and map (m, m) of a Gaussian along a column with these sorted values; none where there is one value."""
    if len(levels) <= 1:
        return np.zeros(0), np.zeros((0, 0))
    points = np.unique(np.quantile(levels, np.linspace(0.05, 0.95, _BUMPS)))
    value, vector = np.linalg.eigh(np.exp(-((points[:, None] - points) ** 2) / 2))
    return points, vector / np.sqrt(np.maximum(value, 1e-8)) * (value > 1e-8)


def _indicators(levels: Floats) -> tuple[Floats, Floats]:
    """Points and map of the equality of levels; none for two levels, which a line tells apart, and for many."""
    m = len(levels) if 2 < len(levels) <= _MOST_LEVELS else 0
    return levels[:m], np.eye(m)


def check_expansion(fitted: Any, where: str, d: int) -> None:
    """Refuse what a model file says where it is no expansion of d columns."""
    rules: dict[str, Rule] = {
        "kind": Word(EXPANSIONS),
        "points": floats("d", "m"),
        "maps": floats("d", "m", "m"),
    }
    check_parts(fitted, rules, where, {"d": d})


def expand(rows: Observed, fitted: dict[str, Any] | None) -> Observed:
    """The expanded table, (m + 1) columns for each. O(nnz m^2)."""
    if fitted is None:
        return rows
    points, maps = fitted["points"], fitted["maps"]
    width = points.shape[1]
    entries = np.empty((rows.nnz, width + 1), rows.dtype)
    entries[:, 0] = rows.values
    for start in range(0, rows.nnz, _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        column = rows.indices[part]
        off = rows.values[part].astype(np.float64)[:, None] - points[column]
        near = np.exp(-(off**2) / 2) if fitted["kind"] == "gaussian" else (np.abs(off) <= _SAME).astype(np.float64)
        turned = near[:, :1] * maps[column, 0]
        for m in range(1, width):  # in one order whatever the number of entries, which einsum does not promise
            turned += near[:, m : m + 1] * maps[column, m]
        entries[part, 1:] = turned
    indices = (rows.indices.astype(np.int64) * (width + 1))[:, None] + np.arange(width + 1)
    shape = (rows.shape[0], rows.shape[1] * (width + 1))
    return Observed(rows.indptr * (width + 1), indices.ravel(), entries.ravel(), shape)
