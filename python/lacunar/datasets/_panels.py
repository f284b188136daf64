"""Holes in groups of columns: blocks of which a row sees some, panels of which it sees one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar.datasets._entries import Entries, entries_of
from lacunar.datasets._options import check_count, check_rate

Groups = Sequence[Sequence[int]]
Bools = NDArray[np.bool_]


def hide_blocks(X: Any, blocks: Groups, share_observed: float = 0.5, *, random_state: Any = None) -> Bunch:
    """Hide whole blocks of columns, row by row: panels of a clinic, pages of a form.

    Every row sees each block with probability `share_observed`, independently, given that it sees at least one (Hazan, Livni,
    Mansour 2015, Section 5.1.2, with probability 1/3 and three blocks). O(blocks times entries).

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
        Complete table. What is missing in it (NaN; entries not stored) stays so.
    blocks : sequence of sequences of int
        Column numbers of every block. A column of several blocks is seen with any of them, one in no block always.
    share_observed : float, default=0.5
        Probability that a block is seen, in (0, 1].
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray or csr_array of shape (n, d)
            As of `hide_mcar`.
        seen : ndarray of shape (n, len(blocks)), bool
            Which blocks a row sees.

    Raises
    ------
    TypeError, ValueError
        When `share_observed` is outside (0, 1] or a block names what is not a column.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_blocks
    >>> data = hide_blocks(np.ones((4, 4)), [[0, 1], [2, 3]], random_state=0)
    >>> bool(np.array_equal(np.isnan(data.data[:, 0]), np.isnan(data.data[:, 1])))
    True
    """
    check_rate("share_observed", share_observed, closed="right")
    entries, rng = entries_of(X), generator(random_state)
    n, d = entries.shape
    member = _member("blocks", blocks, d)
    seen = rng.random((n, len(blocks))) < share_observed
    while len(blocks) and not (complete := seen.any(axis=1)).all():  # draw again: conditional on one seen block
        seen[~complete] = rng.random((int((~complete).sum()), len(blocks))) < share_observed
    return Bunch(data=entries.keep(_visible(entries, seen, member)), complete=entries.complete, seen=seen)


def hide_panels(
    X: Any,
    panels: int | Groups = 2,
    *,
    overlap: float = 0.2,
    weights: ArrayLike | None = None,
    random_state: Any = None,
) -> Bunch:
    """Show every row one panel of columns only: versions of a questionnaire, laboratories with different assays.

    Columns of different panels are never seen together but for those in several. O(panels times entries).

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    panels : int or sequence of sequences of int, default=2
        Columns of every panel; a column in none is always seen. A number k: `overlap` of the columns, drawn at random, are in all
        k panels, and the others are dealt out evenly.
    overlap : float, default=0.2
        Share of columns in all panels, in [0, 1]; read when `panels` is a number.
    weights : array-like of shape (k,) or None, default=None
        Probabilities of the panels, up to a factor; None: all alike.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray or csr_array of shape (n, d)
            As of `hide_mcar`.
        panel : ndarray of shape (n,), int64
            The panel of every row.
        panels : list of list of int
            Columns of every panel.

    Raises
    ------
    TypeError, ValueError
        When a panel names what is not a column, or weights are not k finite numbers of at least 0 with a positive sum.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_panels
    >>> data = hide_panels(np.ones((100, 10)), 2, overlap=0.2, random_state=0)
    >>> np.unique(np.isfinite(data.data).sum(axis=1)), len(set(data.panels[0]) & set(data.panels[1]))
    (array([6]), 2)
    """
    entries, rng = entries_of(X), generator(random_state)
    n, d = entries.shape
    groups = panels if isinstance(panels, Sequence) else _dealt(rng, d, panels, overlap)
    member = _member("panels", groups, d)
    chances = np.ones(len(groups)) if weights is None else np.asarray(weights, dtype=np.float64)
    if chances.shape != (len(groups),) or not np.all(np.isfinite(chances) & (chances >= 0)) or chances.sum() <= 0:
        raise ValueError(f"weights must be {len(groups)} numbers of at least 0, not all 0; got {weights!r}.")
    panel = rng.choice(len(groups), size=n, p=chances / chances.sum())
    kept = entries.keep(_visible(entries, np.eye(len(groups), dtype=bool)[panel], member))
    return Bunch(data=kept, complete=entries.complete, panel=panel, panels=[[int(j) for j in g] for g in groups])


def _dealt(rng: np.random.Generator, d: int, k: int, overlap: float) -> Groups:
    check_count("panels", k, most=d)
    order = rng.permutation(d)
    shared = round(check_rate("overlap", overlap) * d)
    return [sorted([*order[:shared], *order[shared + j :: k]]) for j in range(k)]


def _member(name: str, groups: Groups, d: int) -> Bools:
    """Which group (row) has which column."""
    member = np.zeros((len(groups), d), dtype=bool)
    for k, group in enumerate(groups):
        columns = np.asarray(group, dtype=np.int64 if len(group) == 0 else None)
        if columns.ndim != 1 or not np.issubdtype(columns.dtype, np.integer) or np.any((columns < 0) | (columns >= d)):
            raise ValueError(f"{name}[{k}] must hold numbers of columns, 0 to {d - 1}; got {group!r}.")
        member[k, columns] = True
    return member


def _visible(entries: Entries, seen: Bools, member: Bools) -> Bools:
    """Of every entry: whether its column is free, or in a group that its row sees."""
    free: Bools = ~np.asarray(member.any(axis=0))
    found: Bools = np.broadcast_to(free[entries.columns], np.broadcast(entries.rows, entries.columns).shape)
    for shown, columns in zip(seen.T, member, strict=True):
        found = found | (shown[entries.rows] & columns[entries.columns])
    return found
