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
    """Indicators of the commonest levels of columns of text, whose entries are places among `levels`; a column of two
    levels needs none, for its places are 0 and 1.
    """
    parts, source, names_of_levels = [np.empty((len(table), 0))], [], []
    for j, names in enumerate(levels):
        if names is None or len(names) < 3:
            continue
        seen = table[~np.isnan(table[:, j]), j].astype(np.intp)
        common = np.sort(np.argsort(-np.bincount(seen, minlength=len(names)), kind="stable")[:_LEVELS])
        places = table[:, [j]]
        parts.append(np.where(np.isnan(places), np.nan, places == common))
        source += [j] * len(common)
        names_of_levels += [str(names[k]) for k in common]
    return Indicators(np.hstack(parts), np.array(source, dtype=np.intp), tuple(names_of_levels))


class _Predictors(NamedTuple):
    """Columns of numbers with NaN (n, q), each of which may foresee gaps; the column of the table that each is made of,
    and the words for its high and its low values.
    """

    table: Floats
    source: Ints
    signs: list[tuple[str, str]]


def foresights(table: Floats, levels: list[NDArray[Any] | None], indicators: Indicators) -> tuple[Foresight, ...]:
    """For every column the three others that foresee its gaps best, among the significant ones."""
    missing = np.isnan(table)
    predictors = _predictors_of(table, missing, levels, indicators)
    auc, p = _ranks_compared(predictors, missing)
    flat = holm(p.ravel()).reshape(p.shape)
    return tuple(foresight for j in range(table.shape[1]) for foresight in _strongest(j, predictors, auc[j], flat[j]))


def _strongest(column: int, predictors: _Predictors, auc: Floats, p: Floats) -> list[Foresight]:
    """The three columns that foresee the gaps of one best, each by its strongest predictor."""
    strongest: dict[int, Foresight] = {}
    strength = np.where(p < _ALPHA, np.abs(auc - 0.5), -1.0)
    for k in np.argsort(-strength, kind="stable")[: int((strength >= 0).sum())]:
        by, sign = int(predictors.source[k]), predictors.signs[k][int(auc[k] < 0.5)]
        strongest.setdefault(by, Foresight(column, by, sign, 0.5 + float(strength[k]), float(p[k])))
    return list(strongest.values())[:_STRONGEST]


def _predictors_of(
    table: Floats, missing: Bools, levels: list[NDArray[Any] | None], indicators: Indicators
) -> _Predictors:
    ordered = np.array([names is None for names in levels], dtype=bool)
    pairs = [j for j, names in enumerate(levels) if names is not None and len(names) == 2]
    first = np.unique(_groups(missing), return_index=True)[1]  # of columns that always lack together one speaks for all
    gaps = first[missing[:, first].any(axis=0) & ~missing[:, first].all(axis=0)]
    numbers = np.flatnonzero(ordered)
    source = np.concatenate([numbers, np.array(pairs, dtype=np.intp), indicators.source, gaps])
    of_pairs = [(f"is {names[1]}", f"is {names[0]}") for j in pairs if (names := levels[j]) is not None]
    of_levels = [(f"is {level}", f"is not {level}") for level in indicators.levels]
    signs = [("high", "low")] * len(numbers) + of_pairs + of_levels + [("missing", "observed")] * len(gaps)
    return _Predictors(
        np.hstack([table[:, numbers], table[:, pairs], indicators.table, missing[:, gaps]]), source, signs
    )


def _groups(missing: Bools) -> Ints:
    """Numbers of groups of columns (d,) that have one mask."""
    return np.unique(missing, axis=1, return_inverse=True)[1].ravel()


def _ranks_compared(predictors: _Predictors, missing: Bools) -> tuple[Floats, Floats]:
    """Mann and Whitney's AUC and p (d, q), with ties, of the gaps of every column by every predictor, over rows that show
    the predictor; NaN where too few rows have the gap or lack it.
    """
    seen = ~np.isnan(predictors.table)
    ranks = np.where(seen, rankdata(predictors.table, axis=0, nan_policy="omit"), 0.0)
    n = seen.sum(axis=0)
    mean = (n + 1) / 2
    centred = np.where(seen, ranks - mean, 0.0)
    gaps = missing.astype(np.float64)
    n_gaps = gaps.T @ seen
    n_shown = n - n_gaps
    with np.errstate(invalid="ignore", divide="ignore"):
        total = gaps.T @ centred
        sd = np.sqrt(np.square(centred).sum(axis=0) / n * n_gaps * n_shown / (n - 1))
        auc, z = 0.5 + total / (n_gaps * n_shown), total / sd
    tested = (np.minimum(n_gaps, n_shown) >= _LEAST) & (sd > 0)
    groups = _groups(missing)
    tested &= groups[predictors.source] != groups[:, None]
    return np.where(tested, auc, np.nan), np.where(tested, 2 * norm.sf(np.abs(z)), np.nan)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p-values; NaN stays."""
    adjusted = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1.0)
    return adjusted
