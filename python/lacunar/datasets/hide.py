"""Mechanisms of missingness: entries of complete tables, dense or sparse, are hidden, independent of values or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar._typing import Bools
from lacunar.observed.contract import check_dense

Floats = NDArray[np.floating[Any]]
Groups = Sequence[Sequence[int]]
CALIBRATED_ON = 1_000_000  # entries, at most, on which the intercept of a logistic mechanism is found


def hide_mcar(X: Any, share_observed: float | ArrayLike = 0.5, *, random_state: Any = None) -> Bunch:
    """Hide entries completely at random: every entry is kept with the same probability, or that of
    its column.

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
            A copy with NaN where hidden; of a sparse matrix, the entries that are kept, stored
            zeros among them.
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
    >>> data = hide_mcar(np.ones((1000, 10)), 0.3, random_state=0).data
    >>> print(round(float(np.isnan(data).mean()), 1))
    0.7
    """
    entries = entries_of(X)
    if np.ndim(share_observed) == 0:
        shares = np.full(entries.shape[1], check_rate("share_observed", share_observed))
    else:
        shares = _shares("share_observed", share_observed, entries.shape[1], "columns")
    return _drawn(entries, shares[entries.columns], random_state)


def hide_by_row(X: Any, shares: ArrayLike, *, random_state: Any = None) -> Bunch:
    """Hide entries at random at a rate of its own for every row: some people answer much, others
    little.

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

    The uniform design of active learners with a budget of r attributes a row (*Subspace Learning
    with Partial Information*).

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
        shown = np.argsort(np.argsort(drawn, axis=1), axis=1) < n_observed
    else:
        order = np.lexsort((drawn, entries.rows))  # row after row: ranks within a row count from where the row begins
        shown = np.empty(len(order), dtype=bool)
        shown[order] = np.arange(len(order)) - entries.complete.indptr[:-1][entries.rows] < n_observed
    return Bunch(data=entries.keep(shown), complete=entries.complete)


def hide_mar(
    X: Any,
    share_observed: float = 0.5,
    *,
    drivers: ArrayLike = (0,),
    strength: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """Hide entries at random given what is observed: whether an entry is kept depends on columns
    that are always kept.

    Entry (i, j) outside the drivers is kept with probability sigmoid(b - strength s_i), s_i the sum
    of the row's standardised drivers over the root of their number; b makes the expected share
    right.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    share_observed : float, default=0.5
        Expected share of the other columns' entries that is kept, in (0, 1).
    drivers : array-like of int, default=(0,)
        Columns that decide, and stay. A driver that is missing counts as its mean.
    strength : float, default=1.0
        Log-odds by which one standard deviation makes missing entries likelier; 0 is MCAR.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        `data` and `complete` as of `hide_mcar`; probability : ndarray of shape (n,), with which the
        row's entries were kept.

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
    score = check_number("strength", strength, "a number") * total / np.sqrt(deciding.sum())
    chance = expit(_intercept(score, share_observed) - score)
    hidden = _drawn(entries, np.where(deciding[entries.columns], 1.0, chance[entries.rows]), random_state)
    return Bunch(**hidden, probability=chance)


def hide_mnar(X: Any, share_observed: float = 0.5, *, strength: float = 1.0, random_state: Any = None) -> Bunch:
    """Hide entries for what they are: large values are missing more often, and nothing observed
    tells.

    Entry x_ij is kept with probability sigmoid(b - strength z_ij), z_ij = x_ij standardised in its
    column; b makes the expected share right.

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    share_observed : float, default=0.5
        Expected share of entries that is kept, in (0, 1).
    strength : float, default=1.0
        Log-odds by which one standard deviation makes a missing entry likelier; 0 is MCAR, below 0
        small values go missing.
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
    score = check_number("strength", strength, "a number") * entries.standardised()
    rng = generator(random_state)
    sample = score.ravel()
    if sample.size > CALIBRATED_ON:
        sample = sample[rng.integers(sample.size, size=CALIBRATED_ON)]
    chance = expit(_intercept(sample, share_observed) - score)
    return Bunch(data=entries.keep(entries.draw(rng) < chance), complete=entries.complete)


def hide_blocks(X: Any, blocks: Groups, share_observed: float = 0.5, *, random_state: Any = None) -> Bunch:
    """Hide whole blocks of columns, row by row: panels of a clinic, pages of a form.

    Every row sees each block with probability `share_observed`, independently, given that it sees
    at least one (Hazan, Livni, Mansour 2015, Section 5.1.2, with probability 1/3 and three blocks).
    O(blocks times entries).

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
        Complete table. What is missing in it (NaN; entries not stored) stays so.
    blocks : sequence of sequences of int
        Column numbers of every block. A column of several blocks is seen with any of them, one in
        no block always.
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
    """Show every row one panel of columns only: versions of a questionnaire, laboratories with
    different assays.

    Columns of different panels are never seen together but for those in several. O(panels times
    entries).

    Parameters
    ----------
    X : array-like of shape (n, d) or sparse matrix
    panels : int or sequence of sequences of int, default=2
        Columns of every panel; a column in none is always seen. A number k: `overlap` of the
        columns, drawn at random, are in all k panels, and the others are dealt out evenly.
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
        When a panel names what is not a column, or weights are not k finite numbers of at least 0
        with a positive sum.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.datasets import hide_panels
    >>> data = hide_panels(np.ones((100, 10)), 2, overlap=0.2, random_state=0)
    >>> (
    ...     np.unique(np.isfinite(data.data).sum(axis=1)),
    ...     len(set(data.panels[0]) & set(data.panels[1])),
    ... )
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
    data = entries.keep(_visible(entries, np.eye(len(groups), dtype=bool)[panel], member))
    return Bunch(data=data, complete=entries.complete, panel=panel, panels=[[int(j) for j in g] for g in groups])


def load_digit_quadrants(
    *, n_rows: int = 900, share_observed: float = 0.5, random_state: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64], list[str]]:
    """Handwritten digits, 8 x 8 pixels, of which four cameras see a quadrant each, and some do not
    work.

    The quadrants say different things, so that a missing one cannot be filled in from the others:
    real images, with artificial missing entries.

    Parameters
    ----------
    n_rows : int, default=900
        Of the 1,797 digits of scikit-learn, from the first.
    share_observed : float, default=0.5
        Probability that a camera works, given that one does.
    random_state : int, default=0
        Draws which.

    Returns
    -------
    X : ndarray of shape (n_rows, 64)
        Brightness from 0 to 16, NaN where missing.
    y : ndarray of shape (n_rows,)
        The digit.
    names : list of str
        Row and column of every pixel.

    Examples
    --------
    >>> from lacunar.datasets import load_digit_quadrants
    >>> load_digit_quadrants()[0].shape
    (900, 64)
    """
    data, pixels = load_digits(), np.arange(64).reshape(8, 8)
    quadrants = [pixels[i : i + 4, j : j + 4].ravel().tolist() for i in (0, 4) for j in (0, 4)]
    X = hide_blocks(data.data[:n_rows], quadrants, share_observed, random_state=random_state).data
    return X, data.target[:n_rows].astype(np.int64), [f"pixel {i} {j}" for i in range(8) for j in range(8)]


class DenseEntries:
    """Entries of an ndarray (n, d); NaN is missing already."""

    def __init__(self, X: Any) -> None:
        X, out_dtype = check_dense(X)
        self.complete = X.astype(out_dtype, copy=False)
        self.shape: tuple[int, int] = self.complete.shape
        refuse_infinity(self.complete, lambda at: (at // self.shape[1], at % self.shape[1]))
        # Row and column of every entry, of shapes that broadcast to that of `draw` and `standardised`.
        self.rows, self.columns = np.ogrid[: self.shape[0], : self.shape[1]]

    def draw(self, rng: np.random.Generator) -> Floats:
        return rng.random(self.shape)

    def standardised(self) -> Floats:
        """Every column to mean 0 and variance 1 over what is there; a constant column and a missing entry are 0."""
        seen = ~np.isnan(self.complete)
        count = np.maximum(seen.sum(axis=0), 1)
        centred = np.where(seen, self.complete - np.where(seen, self.complete, 0).sum(axis=0) / count, 0.0)
        spread = np.sqrt((centred**2).sum(axis=0) / count)
        return np.asarray(centred / np.where(spread > 0, spread, 1))

    def row_sums(self, values: Floats, columns: NDArray[np.bool_]) -> Floats:
        """Sums (n,) of entries' values over the chosen columns."""
        return np.asarray(values[:, columns].sum(axis=1))

    def keep(self, shown: NDArray[np.bool_]) -> Floats:
        """A copy with NaN where not kept."""
        return np.asarray(np.where(shown, self.complete, self.complete.dtype.type(np.nan)))


class SparseEntries:
    """Stored entries of a sparse matrix (n, d), as vectors (nnz,); what is not stored is missing already."""

    def __init__(self, X: Any) -> None:
        table = sp.csr_array(X)
        if not table.has_canonical_format:
            table = table.copy()
            table.sum_duplicates()
        if table.nnz != X.nnz:
            raise ValueError(f"X must store every entry once; {X.nnz - table.nnz} are stored twice. Sum or drop them.")
        if not np.issubdtype(table.dtype, np.floating):
            table = table.astype(np.float64)
        refuse_infinity(table.data, lambda at: (np.searchsorted(table.indptr, at, "right") - 1, table.indices[at]))
        self.complete = table
        self.shape: tuple[int, int] = table.shape
        self.rows, self.columns = np.repeat(np.arange(self.shape[0]), np.diff(table.indptr)), table.indices

    def draw(self, rng: np.random.Generator) -> Floats:
        return np.asarray(rng.random(self.complete.nnz))

    def standardised(self) -> Floats:
        columns, d = self.columns, self.shape[1]
        count = np.maximum(np.bincount(columns, minlength=d), 1)
        centred = self.complete.data - (np.bincount(columns, self.complete.data, d) / count)[columns]
        spread = np.sqrt(np.bincount(columns, centred**2, d) / count)
        return np.asarray(centred / np.where(spread > 0, spread, 1)[columns])

    def row_sums(self, values: Floats, columns: NDArray[np.bool_]) -> Floats:
        chosen = columns[self.columns]
        return np.asarray(np.bincount(self.rows[chosen], values[chosen], self.shape[0]), dtype=np.float64)

    def keep(self, shown: NDArray[np.bool_]) -> sp.csr_array:
        """The stored entries that are kept."""
        shown = np.broadcast_to(shown, self.rows.shape)
        before = np.concatenate([[0], np.cumsum(shown)])[self.complete.indptr]
        parts = self.complete.data[shown], self.complete.indices[shown], before.astype(self.complete.indptr.dtype)
        return sp.csr_array(parts, shape=self.shape)


def refuse_infinity(values: Floats, place: Callable[[int], tuple[Any, Any]]) -> None:
    wrong = np.isinf(values)
    if wrong.any():
        row, column = place(int(np.argmax(wrong)))
        raise ValueError(f"X must hold finite values or NaN; got inf in row {row}, column {column}. Make it NaN.")


Entries = DenseEntries | SparseEntries


def entries_of(X: Any) -> Entries:
    return SparseEntries(X) if sp.issparse(X) else DenseEntries(X)


def _drawn(entries: Entries, chance: Any, random_state: Any) -> Bunch:
    return Bunch(data=entries.keep(entries.draw(generator(random_state)) < chance), complete=entries.complete)


def _intercept(score: Floats, share: float) -> float:
    """b with mean sigmoid(b - score) = share."""
    if score.size == 0:
        return 0.0
    low, high = float(score.min()) - 40, float(score.max()) + 40
    return float(brentq(lambda b: expit(b - score).mean() - share, low, high, xtol=1e-8))


def _shares(name: str, shares: ArrayLike, length: int, of: str) -> Floats:
    rates = np.asarray(shares, dtype=np.float64)
    if rates.shape != (length,):
        raise ValueError(f"{name} must hold one probability for each of the {length} {of}; got shape {rates.shape}.")
    if not np.all((rates >= 0) & (rates <= 1)):
        first = int(np.flatnonzero(~((rates >= 0) & (rates <= 1)))[0])
        raise ValueError(f"{name} must lie in [0, 1]; got {rates[first]} at {first}.")
    return rates


def _columns(name: str, columns: ArrayLike, d: int) -> Any:
    """The chosen columns as a mask (d,)."""
    numbers = np.atleast_1d(np.asarray(columns))
    if numbers.size == 0 or not np.issubdtype(numbers.dtype, np.integer) or numbers.min() < 0 or numbers.max() >= d:
        raise ValueError(f"{name} must be numbers of columns, 0 to {d - 1}, at least one; got {columns!r}.")
    mask = np.zeros(d, dtype=bool)
    mask[numbers] = True
    if mask.all():
        raise ValueError(f"{name} must leave a column whose entries can be hidden; got all {d}.")
    return mask


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
    visible: Bools = np.broadcast_to(free[entries.columns], np.broadcast(entries.rows, entries.columns).shape)
    for shown, columns in zip(seen.T, member, strict=True):
        visible = visible | (shown[entries.rows] & columns[entries.columns])
    return visible


# -- arguments, with one wording of errors -----------------------------------------------------------------------


def check_rate(name: str, value: Any, *, high: float = 1.0, closed: str = "both") -> float:
    """A number from 0 to `high`; `closed` is "both", "left", "right" or "neither"."""
    brackets = ("[" if closed in {"both", "left"} else "(") + f"0, {high:g}"
    brackets += "]" if closed in {"both", "right"} else ")"
    number = check_number(name, value, f"a number in {brackets}")
    above = number >= 0 if closed in {"both", "left"} else number > 0
    below = number <= high if closed in {"both", "right"} else number < high
    if not (above and below):
        raise ValueError(f"{name} must lie in {brackets}; got {value!r}.")
    return number


def check_count(name: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """An integer between `least` and `most`, both allowed."""
    wish = f"an integer of at least {least}" + (f" and at most {most}" if most is not None else "")
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be {wish}; got {value!r}.")
    if value < least or (most is not None and value > most):
        raise ValueError(f"{name} must be {wish}; got {value!r}.")
    return int(value)


def check_number(name: str, value: Any, wish: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be {wish}; got {value!r}.")
    return float(value)
