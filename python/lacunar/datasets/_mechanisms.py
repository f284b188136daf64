"""Mechanisms of missingness: holes for complete tables, dense or sparse, independent of values or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar.datasets._entries import DenseEntries, Entries, Floats, entries_of
from lacunar.datasets._options import as_number, check_count, check_rate

CALIBRATED_ON = 1_000_000  # entries, at most, on which the intercept of a logistic mechanism is found


def hide_mcar(X: Any, share_observed: float | ArrayLike = 0.5, *, random_state: Any = None) -> Bunch:
    """Hide entries completely at random: every entry is kept with the same probability, or that of its column.

    O(entries), as all mechanisms here.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
        Complete table. What is missing in it (NaN; entries not stored) stays so.
    share_observed : float or array-like of shape (d,), default=0.5
        Probability that an entry is kept, in [0, 1].
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data : ndarray or csr_array of shape (n, d)
            A copy with NaN where hidden; of a sparse matrix, the entries that are kept, stored zeros among them.
        complete : ndarray or csr_array
            X.

    Raises
    ------
    TypeError, ValueError
        When X is not a table, stores an entry twice, or a probability is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_mcar
    >>> print(round(float(np.isnan(hide_mcar(np.ones((1000, 10)), 0.3, random_state=0).data).mean()), 1))
    0.7
    """
    entries = entries_of(X)
    if np.ndim(share_observed) == 0:
        shares = np.full(entries.shape[1], check_rate("share_observed", share_observed))
    else:
        shares = _shares("share_observed", share_observed, entries.shape[1], "columns")
    return _drawn(entries, shares[entries.columns], random_state)


def hide_by_row(X: Any, shares: ArrayLike, *, random_state: Any = None) -> Bunch:
    """Hide entries at random at a rate of its own for every row: some people answer much, others little.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    shares : array-like of shape (n,)
        Probability that an entry of the row is kept, in [0, 1].
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        `data` and `complete` as of `hide_mcar`.

    Raises
    ------
    ValueError
        When there is not one probability a row, or one is outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_by_row
    >>> hide_by_row(np.ones((2, 3)), [1, 0]).data
    array([[ 1.,  1.,  1.],
           [nan, nan, nan]])
    """
    entries = entries_of(X)
    return _drawn(entries, _shares("shares", shares, entries.shape[0], "rows")[entries.rows], random_state)


def hide_all_but(X: Any, n_observed: int, *, random_state: Any = None) -> Bunch:
    """Keep the same number of entries in every row, chosen uniformly without replacement.

    The uniform design of active learners with a budget of r attributes a row (*Subspace Learning with Partial Information*).

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    n_observed : int
        Entries to keep in a row, r. A row that has fewer keeps them all.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        `data` and `complete` as of `hide_mcar`.

    Raises
    ------
    TypeError, ValueError
        When `n_observed` is not an integer between 1 and d.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_all_but
    >>> np.isfinite(hide_all_but(np.ones((3, 5)), 2, random_state=0).data).sum(axis=1)
    array([2, 2, 2])
    """
    entries = entries_of(X)
    check_count("n_observed", n_observed, most=entries.shape[1])
    drawn = entries.draw(generator(random_state))
    if isinstance(entries, DenseEntries):
        drawn[np.isnan(entries.complete)] = 2.0  # after all that are there
        kept = np.argsort(np.argsort(drawn, axis=1), axis=1) < n_observed
    else:
        order = np.lexsort((drawn, entries.rows))  # row after row: ranks within a row count from where the row begins
        kept = np.empty(len(order), dtype=bool)
        kept[order] = np.arange(len(order)) - entries.complete.indptr[:-1][entries.rows] < n_observed
    return Bunch(data=entries.keep(kept), complete=entries.complete)


def hide_mar(
    X: Any,
    share_observed: float = 0.5,
    *,
    drivers: ArrayLike = (0,),
    strength: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Hide entries at random given what is observed: whether an entry is kept depends on columns that are always kept.

    Entry (i, j) outside the drivers is kept with probability sigmoid(b - strength s_i), s_i the sum of the row's
    standardised drivers over the root of their number; b makes the expected share right.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    share_observed : float, default=0.5
        Expected share of the other columns' entries that is kept, in (0, 1).
    drivers : array-like of int, default=(0,)
        Columns that decide, and stay. A driver that is missing counts as its mean.
    strength : float, default=1.0
        Log-odds by which one standard deviation makes holes likelier; 0 is MCAR.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        `data` and `complete` as of `hide_mcar`; probability : ndarray of shape (n,), with which the row's entries were kept.

    Raises
    ------
    TypeError, ValueError
        When a driver is not a column, all columns are drivers, or an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_mar
    >>> X = np.arange(1000.0).repeat(2).reshape(1000, 2)
    >>> seen = np.isfinite(hide_mar(X, 0.5, strength=3, random_state=0).data)
    >>> bool(seen[:, 0].all()), bool(seen[:500, 1].mean() > seen[500:, 1].mean() + 0.5)
    (True, True)
    """
    entries = entries_of(X)
    check_rate("share_observed", share_observed, closed="neither")
    deciding = _columns("drivers", drivers, entries.shape[1])
    total = entries.row_sums(entries.standardised(), deciding)
    score = as_number("strength", strength, "a number") * total / np.sqrt(deciding.sum())
    chance = expit(_intercept(score, share_observed) - score)
    made = _drawn(entries, np.where(deciding[entries.columns], 1.0, chance[entries.rows]), random_state)
    return Bunch(**made, probability=chance)


def hide_mnar(X: Any, share_observed: float = 0.5, *, strength: float = 1.0, random_state: Any = None) -> Bunch:
    """Hide entries for what they are: large values are missing more often, and nothing observed tells.

    Entry x_ij is kept with probability sigmoid(b - strength z_ij), z_ij = x_ij standardised in its column; b makes the expected
    share right.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    share_observed : float, default=0.5
        Expected share of entries that is kept, in (0, 1).
    strength : float, default=1.0
        Log-odds by which one standard deviation makes a hole likelier; 0 is MCAR, below 0 small values go missing.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        `data` and `complete` as of `hide_mcar`.

    Raises
    ------
    TypeError, ValueError
        When an option is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_mnar
    >>> data = hide_mnar(np.arange(1000.0).reshape(1000, 1), strength=2, random_state=0)
    >>> bool(np.nanmean(data.data) < data.complete.mean() - 100)
    True
    """
    entries = entries_of(X)
    check_rate("share_observed", share_observed, closed="neither")
    score = as_number("strength", strength, "a number") * entries.standardised()
    rng = generator(random_state)
    some = score.ravel()
    if some.size > CALIBRATED_ON:
        some = some[rng.integers(some.size, size=CALIBRATED_ON)]
    chance = expit(_intercept(some, share_observed) - score)
    return Bunch(data=entries.keep(entries.draw(rng) < chance), complete=entries.complete)


def _drawn(entries: Entries, chance: Any, random_state: Any) -> Bunch:
    return Bunch(data=entries.keep(entries.draw(generator(random_state)) < chance), complete=entries.complete)


def _intercept(score: Floats, share: float) -> float:
    """b with mean sigmoid(b - score) = share."""
    if score.size == 0:
        return 0.0
    low, high = float(score.min()) - 40, float(score.max()) + 40
    return float(brentq(lambda b: expit(b - score).mean() - share, low, high, xtol=1e-8))


def _shares(name: str, shares: ArrayLike, length: int, of: str) -> Floats:
    found = np.asarray(shares, dtype=np.float64)
    if found.shape != (length,):
        raise ValueError(f"{name} must hold one probability for each of the {length} {of}; got shape {found.shape}.")
    if not np.all((found >= 0) & (found <= 1)):
        first = int(np.flatnonzero(~((found >= 0) & (found <= 1)))[0])
        raise ValueError(f"{name} must lie in [0, 1]; got {found[first]} at {first}.")
    return found


def _columns(name: str, columns: ArrayLike, d: int) -> Any:
    """The chosen columns as a mask (d,)."""
    found = np.atleast_1d(np.asarray(columns))
    if found.size == 0 or not np.issubdtype(found.dtype, np.integer) or found.min() < 0 or found.max() >= d:
        raise ValueError(f"{name} must be numbers of columns, 0 to {d - 1}, at least one; got {columns!r}.")
    mask = np.zeros(d, dtype=bool)
    mask[found] = True
    if mask.all():
        raise ValueError(f"{name} must leave a column in which to make holes; got all {d}.")
    return mask
