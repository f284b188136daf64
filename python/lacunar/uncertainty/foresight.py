"""Which column predicts the gaps of another best: by its value, by one of its levels, or by its own gaps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

from lacunar._typing import Bools, Floats, Ints

_LEVELS = 10  # of a column of text that have an indicator each: the commonest
_LEAST = 10  # rows on either side that a comparison needs
_STRONGEST = 3  # of a column
_ALPHA = 0.05


class Indicators(NamedTuple):
    """Columns of 0 and 1, one for a level of a column of text, NaN where its entry is missing."""

    table: Floats  # (n, q)
    source: Ints  # (q,), the column that they are of
    levels: tuple[str, ...]


class Foresight(NamedTuple):
    """One column foresees the gaps of another.

    Attributes
    ----------
    column : int
        Whose entries are missing.
    by : int
        The column that foresees it; never one that lacks the same rows.
    sign : str
        Where entries are missing: "high" or "low" values of that column, "missing" or "observed" ones, or
        "is LEVEL", "is not LEVEL".
    auc : float
        How well, at least 1/2.
    p_value : float
        Of ranks, with Holm's factor over all pairs.
    """

    column: int
    by: int
    sign: str
    auc: float
    p_value: float


def indicators_of(table: Floats, levels: list[NDArray[Any] | None]) -> Indicators:
    """Of columns of text, whose entries are places among these levels; two levels need none, as the place says it."""
    parts, source, words = [np.empty((len(table), 0))], [], []
    for j, names in enumerate(levels):
        if names is None or len(names) < 3:
            continue
        seen = table[~np.isnan(table[:, j]), j].astype(np.intp)
        common = np.sort(np.argsort(-np.bincount(seen, minlength=len(names)), kind="stable")[:_LEVELS])
        places = table[:, [j]]
        parts.append(np.where(np.isnan(places), np.nan, places == common))
        source += [j] * len(common)
        words += [str(names[k]) for k in common]
    return Indicators(np.hstack(parts), np.array(source, dtype=np.intp), tuple(words))


class _Looks(NamedTuple):
    """What may foresee: columns of numbers with NaN (n, q), the column that each is of, and its two signs."""

    table: Floats
    source: Ints
    signs: list[tuple[str, str]]


def foresights(table: Floats, levels: list[NDArray[Any] | None], indicators: Indicators) -> tuple[Foresight, ...]:
    """Of every column the strongest three that are significant, one of a column that foresees it."""
    missing = np.isnan(table)
    looks = _looks(table, missing, levels, indicators)
    auc, p = _ranks_compared(looks, missing)
    flat = holm(p.ravel()).reshape(p.shape)
    return tuple(found for j in range(table.shape[1]) for found in _strongest(j, looks, auc[j], flat[j]))


def _strongest(column: int, looks: _Looks, auc: Floats, p: Floats) -> list[Foresight]:
    """The strongest look of each of three columns."""
    found: dict[int, Foresight] = {}
    away = np.where(p < _ALPHA, np.abs(auc - 0.5), -1.0)
    for k in np.argsort(-away, kind="stable")[: int((away >= 0).sum())]:
        by, sign = int(looks.source[k]), looks.signs[k][int(auc[k] < 0.5)]
        found.setdefault(by, Foresight(column, by, sign, 0.5 + float(away[k]), float(p[k])))
    return list(found.values())[:_STRONGEST]


def _looks(table: Floats, missing: Bools, levels: list[NDArray[Any] | None], indicators: Indicators) -> _Looks:
    ordered = np.array([names is None for names in levels], dtype=bool)
    pairs = [j for j, names in enumerate(levels) if names is not None and len(names) == 2]
    first = np.unique(_groups(missing), return_index=True)[1]  # of columns that always lack together one speaks for all
    gaps = first[missing[:, first].any(axis=0) & ~missing[:, first].all(axis=0)]
    numbers = np.flatnonzero(ordered)
    source = np.concatenate([numbers, np.array(pairs, dtype=np.intp), indicators.source, gaps])
    of_pairs = [(f"is {names[1]}", f"is {names[0]}") for j in pairs if (names := levels[j]) is not None]
    of_levels = [(f"is {level}", f"is not {level}") for level in indicators.levels]
    signs = [("high", "low")] * len(numbers) + of_pairs + of_levels + [("missing", "observed")] * len(gaps)
    return _Looks(np.hstack([table[:, numbers], table[:, pairs], indicators.table, missing[:, gaps]]), source, signs)


def _groups(missing: Bools) -> Ints:
    """Numbers of groups of columns (d,) that have one mask."""
    return np.unique(missing, axis=1, return_inverse=True)[1].ravel()


def _ranks_compared(looks: _Looks, missing: Bools) -> tuple[Floats, Floats]:
    """AUC and p of every mask (d) by every look (q): Mann-Whitney's, with ties, where the look is there; NaN where it cannot be told."""
    seen = ~np.isnan(looks.table)
    ranks = np.where(seen, rankdata(looks.table, axis=0, nan_policy="omit"), 0.0)
    n = seen.sum(axis=0)
    mean = (n + 1) / 2
    away = np.where(seen, ranks - mean, 0.0)
    gone = missing.astype(np.float64)
    n_gone = gone.T @ seen
    n_there = n - n_gone
    with np.errstate(invalid="ignore", divide="ignore"):
        total = gone.T @ away
        sd = np.sqrt(np.square(away).sum(axis=0) / n * n_gone * n_there / (n - 1))
        auc, z = 0.5 + total / (n_gone * n_there), total / sd
    told = (np.minimum(n_gone, n_there) >= _LEAST) & (sd > 0)
    groups = _groups(missing)
    told &= groups[looks.source] != groups[:, None]
    return np.where(told, auc, np.nan), np.where(told, 2 * norm.sf(np.abs(z)), np.nan)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p-values; NaN stays."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted
