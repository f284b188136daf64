"""Cuts of rows into those that are learned from and those that are tested."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lacunar._typing import Floats, Ints

Cut = tuple[Ints, Ints]  # rows to learn from, and rows to test on, which are none of them


def cuts_of(folds: Sequence[Ints], n: int) -> list[Cut]:
    """For every fold of n rows a cut that tests it and learns from all other rows."""
    return [(left_out((fold, fold), n), fold) for fold in folds]


def left_out(cut: Cut, n: int) -> Ints:
    """The rows, of n, that a cut does not learn from, in ascending order."""
    among = np.ones(n, dtype=bool)
    among[cut[0]] = False
    return np.flatnonzero(among)


def tested_rows(cuts: Sequence[Cut]) -> Ints:
    """Rows that some cut tests, in ascending order."""
    return np.sort(_test_rows(cuts))


def in_order(cuts: Sequence[Cut], values: Sequence[Floats]) -> Floats:
    """Values of the test rows of every cut, one array a cut, as one array in the order of `tested_rows`."""
    return np.asarray(np.concatenate(values)[np.argsort(_test_rows(cuts), kind="stable")])


def cuts_among(cuts: Sequence[Cut], rows: Ints, n: int) -> list[Cut]:
    """The cuts of n rows among some of them, by their places; a cut that keeps no test row is dropped."""
    place = np.full(n, -1)
    place[rows] = np.arange(len(rows))
    sides = [(places_of(place, train), places_of(place, test)) for train, test in cuts]
    return [(train, test) for train, test in sides if len(test)]


def places_of(place: Ints, rows: Ints) -> Ints:
    """The places of those of the rows that have one, which are not -1."""
    return place[rows][place[rows] >= 0]


def _test_rows(cuts: Sequence[Cut]) -> Ints:
    return np.concatenate([*(test for _, test in cuts), np.zeros(0, dtype=np.intp)]).astype(np.intp)
