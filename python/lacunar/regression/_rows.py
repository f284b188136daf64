"""What a fit does to a part of the rows and their labels: steps over parts, which may lie on other machines."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from lacunar._codes import row_codes
from lacunar.observed import Observed
from lacunar.observed.columns import ColumnScale, scale_columns
from lacunar.observed.door import columns_of

_Floats = NDArray[np.float64]
Labelled = tuple[Observed, _Floats]  # rows, and labels (n, targets), NaN where unknown


class Opened(NamedTuple):
    """A part that was checked."""

    rows: Observed
    labels: _Floats
    one_target: bool
    columns: tuple[int, Any]


def opened(part: tuple[Any, Any], checker: Any) -> Opened:
    """X and y of a part, checked by an estimator of its own."""
    table, y = part
    checker = clone(checker)
    rows = checker._check_rows(table, reset=True)
    labels, one = checker._check_labels(y, rows)
    return Opened(rows, labels, one, columns_of(checker))


def facts_of(part: Opened) -> tuple[tuple[int, Any], tuple[int, bool]]:
    """What must agree with the other parts: columns, targets."""
    return part.columns, (part.labels.shape[1], part.one_target)


def rows_of(part: Opened | Labelled) -> Observed:
    return part[0]


def labels_seen(part: Opened) -> tuple[_Floats, _Floats]:
    """Number and sum of the known labels of every target."""
    return np.sum(~np.isnan(part.labels), axis=0, dtype=np.float64), np.nansum(part.labels, axis=0)


def standardised(rows: Observed, columns: ColumnScale, clip: float | None) -> Observed:
    """Rows with standardised columns, clipped."""
    made = scale_columns(rows, columns)
    if clip is None or not made.nnz or np.abs(made.values).max() <= clip:
        return made
    return made.with_values(np.clip(made.values, -clip, clip))


def ready(part: Opened, columns: ColumnScale, clip: float | None, label_mean: _Floats) -> Labelled:
    """Standardised rows and centred labels."""
    return standardised(part.rows, columns, clip), part.labels - label_mean


class Coded(NamedTuple):
    """Codes of rows with their labels, and by target the sum of the packed inverses of rows that have it."""

    code: _Floats  # (n, d)
    labels: _Floats  # (n, targets)
    inverse: _Floats  # (targets, d (d + 1) / 2), or (targets, 0)


def code_labelled(
    part: Labelled, mean: _Floats, basis: _Floats, ridge: float, inverse: bool, n_jobs: int | None
) -> Coded:
    """Codes of the rows less a mean."""
    rows, labels = part
    if mean.any():
        rows = rows.with_values(rows.values - mean[rows.indices])
    found = row_codes(rows, basis, ridge, inverse=inverse, n_jobs=n_jobs)
    known = (~np.isnan(labels)).T.astype(np.float64)
    return Coded(found.code, labels, known @ found.inverse if inverse else np.zeros((labels.shape[1], 0)))


def codes_and_labels(part: Coded) -> tuple[_Floats, _Floats]:
    return part.code, part.labels


def label_sums(part: Coded, weights: _Floats, shift: _Floats) -> tuple[_Floats, _Floats, _Floats]:
    """By target, of the rows that have it: their number, squares of residuals, and packed inverses."""
    left = part.labels - shift - part.code @ weights
    return np.sum(~np.isnan(left), axis=0, dtype=np.float64), np.nansum(left**2, axis=0), part.inverse
