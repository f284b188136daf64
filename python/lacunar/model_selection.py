"""Folds for completion that do not leak: over entries, over rows never seen before, over columns never seen before."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from lacunar._random import fixed_seed, generator
from lacunar._typing import Ints
from lacunar.observed.ids import read_pairs

__all__ = ["ColdColumnKFold", "ColdRowKFold", "EntryKFold"]


class _PairFolds(BaseCrossValidator):
    """Folds of observations of which those with the same key stay together."""

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds. X, y and groups are not used.

        Parameters
        ----------
        X, y, groups : object
            Ignored.

        Returns
        -------
        n_splits : int
        """
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Ints, Ints]]:
        """Training and test indices of each fold, both in the order of the observations.

        Parameters
        ----------
        X : (row, column) pairs
            Array or list of shape (n, 2), frame of two columns, or the tuple (rows, cols). Ids are
            hashable.
        y, groups : ignored
        """
        fold = self._folds(_numbered(self._keys(*read_pairs(X))))
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _keys(self, rows: list[Hashable], cols: list[Hashable]) -> list[Hashable]:
        raise NotImplementedError

    def _folds(self, numbers: Ints) -> Ints:
        """The fold of each observation: keys, heaviest first, go to the lightest fold. O(n + keys log keys)."""
        counts = np.bincount(numbers) if numbers.size else np.zeros(0, dtype=np.intp)
        if not isinstance(self.n_splits, int | np.integer) or not 2 <= self.n_splits <= len(counts):
            raise ValueError(
                f"n_splits must be 2 to the number of {self._what}, {len(counts)}; got {self.n_splits!r}. Use fewer folds."
            )
        order = np.arange(len(counts))
        if self.shuffle:
            order = generator(fixed_seed(self.random_state)).permutation(order)
        order = order[np.argsort(-counts[order], kind="stable")]
        loads = [(0, k) for k in range(self.n_splits)]
        fold_of_key = np.empty(len(counts), dtype=np.intp)
        for key in order:
            load, k = heapq.heappop(loads)
            fold_of_key[key] = k
            heapq.heappush(loads, (load + int(counts[key]), k))
        return fold_of_key[numbers]

    _what = "distinct keys"


class EntryKFold(_PairFolds):
    """Folds over entries: all observations of a cell are on one side, so that a repeat never gives
    the answer away.

    Rows and columns of the test entries have usually been seen with other entries: the easy case of
    completion.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
        Draw the folds; False assigns cells in the order of their first observation.
    random_state : int, RandomState or None, default=None
        Order that folds are filled in. None is a fixed draw.

    Raises
    ------
    ValueError
        When there are fewer distinct cells than folds, or X is no list of pairs.

    Notes
    -----
    Folds differ by at most the largest number of repeats of one cell. O(n log n). Training indices
    keep the order of the observations, which an online learner follows.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.model_selection import EntryKFold
    >>> X = np.array([["ann", "film"], ["ann", "book"], ["bob", "film"], ["ann", "film"]])
    >>> [test.tolist() for _, test in EntryKFold(2, shuffle=False).split(X)]
    [[0, 3], [1, 2]]
    """

    _what = "distinct cells"

    def _keys(self, rows: list[Hashable], cols: list[Hashable]) -> list[Hashable]:
        return list(zip(rows, cols, strict=True))


class ColdRowKFold(_PairFolds):
    """Folds over rows: no row of a test fold was seen in training, as when new users arrive.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
        Break ties among rows of the same number of observations at random.
    random_state : int, RandomState or None, default=None
        Order that folds are filled in. None is a fixed draw.

    Raises
    ------
    ValueError
        When there are fewer rows than folds, or X is no list of pairs.

    Notes
    -----
    Rows, heaviest first, go to the fold with the fewest observations so far. O(n + m log m).

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.model_selection import ColdRowKFold
    >>> X = np.array([["ann", "film"], ["ann", "book"], ["bob", "film"], ["cy", "film"]])
    >>> [test.tolist() for _, test in ColdRowKFold(2, shuffle=False).split(X)]
    [[0, 1], [2, 3]]
    """

    _what = "rows"

    def _keys(self, rows: list[Hashable], cols: list[Hashable]) -> list[Hashable]:
        return rows


class ColdColumnKFold(_PairFolds):
    """Folds over columns: no column of a test fold was seen in training, as when new items arrive.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=True
        Break ties among columns of the same number of observations at random.
    random_state : int, RandomState or None, default=None
        Order that folds are filled in. None is a fixed draw.

    Raises
    ------
    ValueError
        When there are fewer columns than folds, or X is no list of pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.model_selection import ColdColumnKFold
    >>> X = np.array([["ann", "film"], ["ann", "book"], ["bob", "film"], ["cy", "film"]])
    >>> [test.tolist() for _, test in ColdColumnKFold(2, shuffle=False).split(X)]
    [[0, 2, 3], [1]]
    """

    _what = "columns"

    def _keys(self, rows: list[Hashable], cols: list[Hashable]) -> list[Hashable]:
        return cols


def _numbered(keys: list[Hashable]) -> Ints:
    """Numbers 0, 1, ... of keys by first appearance."""
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.intp)
