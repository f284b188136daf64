"""The synthetic tables of sections 5.1.1 and 5.1.2, and the matrix (1) of Problem G."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.datasets.hide import check_count, check_rate, hide_blocks, hide_mcar


def make_subspace_regression(
    n_samples: int = 1000,
    n_features: int = 20,
    rank: int = 10,
    *,
    share_observed: float = 0.5,
    random_state: Any = None,
) -> Bunch:
    """Rows in a random subspace, a linear target, entries missing completely at random: Figure 2 of
    the KARMA paper.

    x = U z, z standard normal, U a random basis; the target is linear in x and has mean 0 and
    variance 1 over the rows. O(n d rank).

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1000, 20 and 10
        n, d and r of the paper's m, d and r.
    share_observed : float, default=0.5
        Probability that an entry is observed; the paper's p.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data : ndarray of shape (n, d)
            NaN where missing.
        target : ndarray of shape (n,)
            Of variance 1.
        complete : ndarray of shape (n, d)
            With no entry missing.
        basis : ndarray of shape (d, rank)
            U, of orthonormal columns.
        coef, intercept : ndarray of shape (d,) and float
            target = complete @ coef + intercept.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, `rank` exceeds `n_features`, or the share is outside
        [0, 1].

    References
    ----------
    Hazan, Livni and Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Section
    5.1.1.

    Examples
    --------
    >>> from lacunar.papers.karma import make_subspace_regression
    >>> data = make_subspace_regression(100, share_observed=0.7, random_state=0)
    >>> data.data.shape, bool(abs(data.target.std() - 1) < 1e-12)
    ((100, 20), True)
    """
    rng = generator(random_state)
    U, complete = _subspace_rows(rng, n_samples, n_features, rank)
    coef = U @ rng.normal(size=rank)
    raw = complete @ coef
    spread = raw.std() or 1.0
    hidden = hide_mcar(complete, share_observed, random_state=int(rng.integers(2**31 - 1)))
    return Bunch(
        data=hidden.data,
        target=(raw - raw.mean()) / spread,
        complete=complete,
        basis=U,
        coef=coef / spread,
        intercept=float(-raw.mean() / spread),
    )


def make_block_margin(
    n_samples: int = 1000,
    n_features: int = 200,
    rank: int = 20,
    *,
    n_blocks: int = 3,
    share_observed: float = 1 / 3,
    margin: float | None = None,
    random_state: Any = None,
) -> Bunch:
    """Rows in a random subspace whose columns are seen in blocks: the large-margin experiment of
    Figure 3 of the KARMA paper.

    A random division of columns into blocks, each of which tells the whole row as long as it has
    `rank` columns. Every row sees each block with probability `share_observed`, independently,
    given that it sees one at least. O(n d rank), times the draws a margin needs.

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1000, 200 and 20
    n_blocks : int, default=3
    share_observed : float, default=1/3
        Probability that a block is seen, in (0, 1].
    margin : float or None, default=None
        None: the target is w.x, of variance 1. Otherwise it is the sign of w.x, and only rows with
        abs(w.x) >= margin, in standard deviations and at most 3, are drawn.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, target, complete, basis
            As of `make_subspace_regression`.
        coef : ndarray of shape (d,)
            w: E (w.x)^2 = 1 before rows are refused for their margin.
        blocks : list of list of int
            Columns of every block.
        seen : ndarray of shape (n, n_blocks), bool
            Which blocks a row sees.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, `rank` or `n_blocks` exceed `n_features`, the share
        is outside (0, 1] or the margin outside [0, 3].

    References
    ----------
    Hazan, Livni and Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Section
    5.1.2.

    Examples
    --------
    >>> from lacunar.papers.karma import make_block_margin
    >>> data = make_block_margin(100, margin=1.0, random_state=0)
    >>> bool(((data.complete @ data.coef) * data.target).min() >= 1)
    True
    """
    check_count("n_blocks", n_blocks, most=check_count("n_features", n_features))
    rng = generator(random_state)
    if margin is not None:
        check_rate("margin", margin, high=3.0)
    U, complete = _subspace_rows(rng, n_samples, n_features, rank)
    direction = rng.normal(size=rank)
    coef = U @ (direction / np.linalg.norm(direction))
    while margin is not None and (weak := np.abs(complete @ coef) < margin).any():
        complete[weak] = rng.normal(size=(int(weak.sum()), rank)) @ U.T
    order = rng.permutation(n_features)
    blocks = [sorted(int(j) for j in order[k::n_blocks]) for k in range(n_blocks)]
    hidden = hide_blocks(complete, blocks, share_observed, random_state=int(rng.integers(2**31 - 1)))
    value = complete @ coef
    target = value if margin is None else np.where(value >= 0, 1, -1)
    return Bunch(
        data=hidden.data, target=target, complete=complete, basis=U, coef=coef, blocks=blocks, seen=hidden.seen
    )


def make_rank_conflict(copies: int = 1) -> Bunch:
    """The matrix (1): Problem G, the completion of least rank, leaves the label of its last row
    open, though every row says its own.

    Three kinds of rows, `[1, *, 1, *]`, `[*, -1, *, -1]` and `[1, -1, 1, -1]` with labels 1, -1 and
    1, and one row of the first kind without a label. No completion of the labelled matrix has rank
    one, and those of rank two disagree. O(copies).

    Parameters
    ----------
    copies : int, default=1
        How often each of the three kinds is there with its label.

    Returns
    -------
    data : Bunch
        data : ndarray of shape (3 copies + 1, 4)
            NaN where missing; the last row has no label.
        target : ndarray of shape (3 copies + 1,)
            -1 and 1, and NaN for the last row.
        answer : int
            1, the label of all rows that are equal to the last one.
        completions : list of ndarray of shape (3 copies + 1, 5)
            Completions of rank two, labels last: columns constant with either label for the last
            row, and rows constant.

    Raises
    ------
    TypeError, ValueError
        When `copies` is not a positive integer.

    References
    ----------
    Hazan, Livni and Mansour, "Classification with Low Rank and Missing Data", ICML 2015, Problem G
    and equation (1).

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import make_rank_conflict
    >>> data = make_rank_conflict()
    >>> [(int(np.linalg.matrix_rank(Z)), float(Z[-1, -1])) for Z in data.completions]
    [(2, 1.0), (2, -1.0), (2, 1.0)]
    """
    check_count("copies", copies)
    kinds = np.array([[1, np.nan, 1, np.nan], [np.nan, -1, np.nan, -1], [1, -1, 1, -1]])
    X = np.vstack([np.repeat(kinds, copies, axis=0), kinds[:1]])
    labels = np.repeat([1.0, -1.0, 1.0], copies)
    by_columns = np.tile([1.0, -1.0, 1.0, -1.0], (len(X), 1))
    by_rows = np.repeat(np.append(labels, 1.0)[:, None], 5, axis=1)
    by_rows[2 * copies : 3 * copies] = [1, -1, 1, -1, 1]
    completions = [np.column_stack([by_columns, np.append(labels, last)]) for last in (1.0, -1.0)]
    return Bunch(data=X, target=np.append(labels, np.nan), answer=1, completions=[*completions, by_rows])


def _subspace_rows(rng: np.random.Generator, n: int, d: int, rank: int) -> tuple[Floats, Floats]:
    """A random basis (d, rank) and rows (n, d) of standard normal coordinates in it."""
    sizes = check_count("n_features", d), check_count("rank", rank, most=d)
    U = np.asarray(np.linalg.qr(rng.normal(size=sizes))[0])
    return U, rng.normal(size=(check_count("n_samples", n), rank)) @ U.T
