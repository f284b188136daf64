"""The kernel as the paper defines it: the embedding itself, and the sum over sequences. To check and to teach with, on few columns."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lacunar._check import as_observed, check_kernel_options, check_same_columns

_Floats = NDArray[np.float64]
_MOST = 2**27  # numbers of an embedding: 1 GiB


def karma_embedding(X: Any, gamma: float = 2) -> _Floats:
    """phi_gamma of every row: one coordinate a sequence s of at most gamma columns, x at the last of s where all of s is observed.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    gamma : float, default=2
        Longest sequence, > 0. Between integers the longest sequences are weighed by the square root of gamma's fraction, so
        that the product is `karma_kernel`'s mixture.

    Returns
    -------
    features : ndarray of shape (n, d + d^2 + ... + d^ceil(gamma))
        Sequences by length, then in lexicographic order: (0), (1), ..., (0, 0), (0, 1), ...

    Raises
    ------
    ValueError
        More than 2^27 numbers; infinite entries; gamma <= 0.

    See Also
    --------
    karma_kernel : The same inner products without the features.
    lacunar.features.KarmaFeatures : Far fewer features with the same inner products, for gamma 1 and 2.

    Notes
    -----
    Definition 4 of [1]_. O(n d^gamma).

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_embedding, karma_kernel
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> karma_embedding(X, 2)
    array([[1., 2., 1., 2., 1., 2.],
           [3., 0., 3., 0., 0., 0.]])
    >>> features = karma_embedding(X, 3)
    >>> bool((features @ features.T == karma_kernel(X, gamma=3, scale="raw")).all())
    True
    """
    check_kernel_options([float(gamma)], "raw", 0.0, 0.0, None, "auto")
    rows = as_observed(X)
    n, d = rows.shape
    lengths = int(np.ceil(gamma))
    if n * sum(d**length for length in range(1, lengths + 1)) > _MOST:
        raise ValueError(
            f"gamma must keep n (d + ... + d^gamma) at most {_MOST} numbers; got gamma={gamma:g} with {n} rows of {d} columns. "
            "Use karma_kernel, which has their inner products, or fewer columns."
        )
    table = rows.astype(np.float64).to_dense()
    seen = ~np.isnan(table)
    parts = [np.where(seen, table, 0.0)]
    for _ in range(lengths - 1):  # one more column before every sequence
        parts.append((seen[:, :, None] * parts[-1][:, None, :]).reshape(n, -1))
    if gamma < lengths:
        parts[-1] = parts[-1] * np.sqrt(gamma - (lengths - 1))
    return np.hstack(parts)


def karma_kernel_sum(X: Any, Y: Any = None, *, gamma: int = 2) -> _Floats:
    """The kernel as the sum it is before Theorem 4: of x_end x'_end over all sequences of columns observed in both rows.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    Y : like X, of shape (m, d), optional
        Default X.
    gamma : int, default=2
        Longest sequence, >= 1.

    Returns
    -------
    values : ndarray of shape (n, m)

    Raises
    ------
    ValueError
        Infinite entries; differing numbers of columns; a gamma that is not whole.

    See Also
    --------
    karma_kernel : The same values in closed form, with `scale="raw"`.

    Notes
    -----
    [1]_, Section 4.2 and the proof of Theorem 4. Every sequence is visited: v + ... + v^gamma steps for a pair with v common columns.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_kernel_sum
    >>> karma_kernel_sum([[1.0, 2.0, np.nan], [3.0, np.nan, 1.0]], gamma=3)
    array([[35.,  9.],
           [ 9., 70.]])
    """
    if gamma != int(gamma) or gamma < 1:
        raise ValueError(f"gamma must be a whole number >= 1; got {gamma!r}. Use karma_kernel for those between.")
    x = as_observed(X)
    y = x if Y is None else as_observed(Y)
    check_same_columns(x, y)
    left, right = (rows.astype(np.float64).to_dense() for rows in (x, y))
    return np.array([[_pair_sum(a, b, int(gamma)) for b in right] for a in left]).reshape(len(left), len(right))


def _pair_sum(a: _Floats, b: _Floats, gamma: int) -> float:
    common = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
    products = {k: float(a[k] * b[k]) for k in common}
    return sum(products[s[-1]] for length in range(1, gamma + 1) for s in product(common, repeat=length))
