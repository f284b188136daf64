"""Numbers that stand for a missing value: -999, 9999 and their like, far outside of the other values of a column."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lacunar._log import warn_user

__all__ = ["Sentinel", "sentinels_of"]

_NINES = [float("9" * k) for k in range(1, 8)]
# Other reasons of the same code book.
_COMPANIONS = [8.0, 88.0, 888.0, 8888.0, 98.0, 998.0, 9998.0, 97.0, 997.0, 9997.0]
_BROKEN = [99.9, 999.9, 9999.9, 99.99, 999.99, 9999.99]
_POSITIVE = [value for value in (*_NINES, *_COMPANIONS, *_BROKEN) if value > 9]  # 8 and 9 are ordinary numbers
_NEGATIVE = [-value for value in (1.0, *_NINES, *_COMPANIONS, *_BROKEN, 999.25)]
_FORMS = np.array(sorted({*_POSITIVE, *_NEGATIVE}), dtype=np.float32)  # as columns of either precision hold them
_FEWEST = 3  # rows that must hold the value
_OF_RANGE, _OF_IQR = 0.5, 1.0  # how far outside, in ranges and in interquartile ranges of the other values
_LEVELS, _OF_NEXT = 10, 2  # of -1: different values at least, and how many rows it has for each of the next value's
_SHOWN = 5  # columns in a message
_BEGINNING = "columns that may hold a number for what is missing: "


class Sentinel(NamedTuple):
    """A number that may stand for a missing value.

    Parameters
    ----------
    value : float
    rows : int
        In which it stands.
    low, high : float
        The least and the largest of the other values.
    """

    value: float
    rows: int
    low: float
    high: float

    def __str__(self) -> str:
        """ "-999 in 12 rows, far from its other values (0 to 93)"."""
        low, high = number(self.low), number(self.high)
        return f"{number(self.value)} in {self.rows:,} rows, far from its other values ({low} to {high})"


def sentinels_of(column: NDArray[Any]) -> list[Sentinel]:
    """Numbers of a column (n,) that may stand for a missing value.

    Such a number is of the usual form (a row of nines such as 99 or -999, its neighbours 98 and 97
    and rows of eights, 999.9, -1, -9), at least three rows hold it, and it lies outside of all
    other values: by half of their range and by their interquartile range; or it is the only
    negative number of its column. Of -1 only the latter counts, and it must be twice as frequent as
    the next value, of at least ten.

    Parameters
    ----------
    column : ndarray of shape (n,)
        Numbers; what is not finite is not looked at.

    Returns
    -------
    sentinels : list of Sentinel
        In ascending order.
    """
    finite = column[np.isfinite(column)].astype(np.float64, copy=False)
    if len(finite) < _FEWEST or not _has_form(np.array([finite.min(), finite.max()])).any():
        return []
    values, counts = np.unique(finite, return_counts=True)
    candidate = _has_form(values) & (counts >= _FEWEST)
    if (~candidate).sum() < 2:
        return []
    while True:  # a candidate inside the others, or too near to them, is one of them
        others = values[~candidate]
        low, high = float(others[0]), float(others[-1])
        iqr = float(np.subtract(*np.percentile(np.repeat(others, counts[~candidate]), [75, 25])))
        far = max(_OF_RANGE * (high - low), _OF_IQR * iqr)
        distance = np.maximum(low - values, values - high)
        apart = (distance >= far) & (distance > 0) & (values != -1)
        outside = candidate & (apart | _only_negative(values, counts, candidate, low))
        near = candidate & ~outside
        if not near.any():
            break
        candidate &= ~(near & (distance == distance[near].min()))
    return [Sentinel(float(v), int(n), low, high) for v, n in zip(values[candidate], counts[candidate], strict=True)]


def _has_form(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(over="ignore"):
        form: NDArray[np.bool_] = np.isin(values.astype(np.float32), _FORMS)
    return form


def _only_negative(
    values: NDArray[np.float64], counts: NDArray[np.intp], candidate: NDArray[np.bool_], low: float
) -> NDArray[np.bool_]:
    """Candidates below 0 in a column that is otherwise never below."""
    if low < 0:
        return np.zeros(len(values), dtype=bool)
    often = counts > _OF_NEXT * counts[~candidate][0]
    varied = int((~candidate).sum()) >= _LEVELS
    return np.asarray((values < 0) & ((values < -1) | (often & varied)), dtype=np.bool_)


def sentinels_in(names: Iterable[Any], columns: Iterable[NDArray[Any]]) -> list[tuple[str, Sentinel]]:
    """The sentinels of numeric columns, each with its column's name."""
    return [
        (str(name), sentinel)
        for name, column in zip(names, columns, strict=True)
        for sentinel in sentinels_of(np.asarray(column))
    ]


def warn_of_sentinels(names: Iterable[Any], columns: Iterable[NDArray[Any]]) -> None:
    """One warning that names the columns with a sentinel; nothing is replaced."""
    alarms = sentinels_in(names, columns)
    if alarms:
        sentences = [f"{name!r} holds {sentinel}" for name, sentinel in alarms[:_SHOWN]]
        more = f", and {len(alarms) - _SHOWN} more such values" if len(alarms) > _SHOWN else ""
        warn_user(
            f"{_BEGINNING}{'; '.join(sentences)}{more}. It is used as a number. If it means "
            "missing, put NaN in its place first.",
        )


@contextmanager
def sentinels_known() -> Iterator[None]:
    """Without `warn_of_sentinels`, for a caller that has told its user of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_BEGINNING)
        yield


def number(value: float) -> str:
    """A number as people write it: -999, not -999.0."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
