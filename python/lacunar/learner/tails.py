"""Whether targets go on as straight lines in the far ends of columns, by errors out of fold."""

from __future__ import annotations

import numpy as np

from lacunar._cuts import cuts_among, tested_rows
from lacunar._typing import Floats, Ints
from lacunar.learner.added import LearnedFrom
from lacunar.learner.folds import error_of_sum
from lacunar.lowrank.ridge import fold_ridge

_FEWEST_BEYOND = 10  # rows with a number beyond the cut
_SURE = 2.0  # standard errors of the gain


def go_on_straight(whole: Floats, trial: Floats, learned: LearnedFrom) -> bool:
    """Whether ridge regression on `whole` (n, p) is clearly better, out of fold, than on `trial`, in which numbers are cut.

    Judged by the rows that differ in the two and by all rows, each by the logarithm of its error, so that no far row decides alone, and by the squared error.
    """
    known = np.flatnonzero(~np.isnan(learned.Y).any(axis=1))
    cuts = cuts_among(learned.cuts, known, len(learned.Y))
    tested = tested_rows(cuts)
    beyond = ((whole != trial) & ~np.isnan(whole)).any(axis=1)[known[tested]]
    if beyond.sum() < _FEWEST_BEYOND:
        return False
    weight, Y = learned.weight[known], learned.Y[known]

    def sizes(Z: Floats) -> Floats:
        inputs = np.hstack([np.nan_to_num(Z[known]), np.isnan(Z[known])])
        errors: Floats = fold_ridge(inputs, Y, cuts, weight).oof - Y[tested]
        return np.asarray(np.sqrt((errors**2).mean(axis=1)))

    straight, cut = sizes(whole), sizes(trial)
    unit = np.median(cut) + np.finfo(np.float64).tiny
    weight = weight[tested]
    falls = weight * np.log((cut + unit) / (straight + unit))
    groups = None if learned.groups is None else learned.groups[known][tested]
    clear = _is_clear(falls, groups) and _is_clear(falls[beyond], None if groups is None else groups[beyond])
    return clear and bool(weight @ straight**2 < weight @ cut**2)


def _is_clear(falls: Floats, groups: Ints | None) -> bool:
    return bool(falls.sum() > _SURE * error_of_sum(falls[:, None], groups))
