"""Definitions 1 to 4, Corollary 2 and h(x_o) written out, to check and to teach with on few columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lacunar._typing import Floats
from lacunar.kernels import check_kernel_options, check_same_columns
from lacunar.observed.door import as_observed, check_numbers

_MOST = 2**27  # numbers of an embedding: 1 GiB
_RCOND = 1e-10  # singular values of Q_oo below this share of the largest are 0


def regularity(basis: ArrayLike, observed: ArrayLike) -> float:
    """Definition 1: by how much every set of observed columns tells the whole row of a subspace.

    lambda is the smallest eigenvalue above 0 of Q_oo over all rows' observed columns o, Q = P_E the
    projection on the subspace E; its square root is the least singular value of P_o P_E of which
    item 4 speaks. It is 0 where a row's columns do not determine the others (item 3: the kernel of
    P_o P_E is larger than that of P_E). `truncation_bound` and the other bounds take it.

    Parameters
    ----------
    basis : array-like of shape (d, r)
        Columns that span E, linearly independent; `components_.T` of a fitted model.
    observed : array-like of shape (n, d), bool
        Which entries each row shows. Items 1 and 2 of the definition, |P_o x| <= 1 and x in E, are
        about values and not looked at.

    Returns
    -------
    regularity : float
        lambda, in [0, 1]; 0 where the low rank assumption fails.

    Raises
    ------
    ValueError
        Dependent columns of `basis`, or masks of another width.

    Notes
    -----
    O(d r^2) for each of the different masks. Source: [1]_, Definition 1; its proof of Lemma 2 needs
    the eigenvalues.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> from lacunar.papers.karma import regularity
    >>> line = [[0.6], [0.8]]
    >>> round(regularity(line, [[True, False], [True, True]]), 2)
    0.36
    >>> regularity(line, [[False, False]])
    0.0
    """
    vectors = check_numbers(basis, "basis")
    masks = np.unique(np.asarray(observed, dtype=bool), axis=0)
    d, r = vectors.shape
    if masks.ndim != 2 or masks.shape[1] != d:
        raise ValueError(f"observed must have {d} columns, one for each row of basis; got shape {masks.shape}.")
    if np.linalg.matrix_rank(vectors) < r:
        raise ValueError(f"basis must have independent columns; got shape {vectors.shape} of lower rank. Drop columns.")
    Q = np.linalg.qr(vectors)[0]
    # P_o P_E has the singular values of the rows o of an orthonormal basis.
    least = min((_least_singular_value(Q[mask]) for mask in masks), default=1.0)
    return float(least**2) if least > d * np.finfo(float).eps else 0.0


def _least_singular_value(rows: Floats) -> float:
    """Least singular value of a matrix (o, r); 0 where it has fewer rows than columns."""
    return float(np.linalg.svd(rows, compute_uv=False).min()) if len(rows) >= rows.shape[1] else 0.0


def linear_predictor(X: Any, w: ArrayLike, Q: ArrayLike) -> Floats:
    """Definition 2: f_{w,Q}(x_o) = (P_o w) . Q_oo^+ (P_o x), the linear predictor w on the subspace
    of the projection Q.

    With Q = P_E and w and x in E it is w . x, whatever is observed, as long as `regularity` is
    above 0 (Lemma 1).

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    w : array-like of shape (d,)
    Q : array-like of shape (d, d)
        A projection: Q Q = Q.

    Returns
    -------
    values : ndarray of shape (n,)

    Raises
    ------
    ValueError
        Infinite entries, shapes that do not fit, or a Q that is no projection.

    See Also
    --------
    truncated_predictor : What KARMA's kernel can represent of it.

    Notes
    -----
    One pseudo-inverse for each of the different sets of observed columns, O(d^3) each.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Definition 2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import linear_predictor
    >>> u = np.array([0.6, 0.8])
    >>> linear_predictor([[3.0, 4.0], [3.0, np.nan]], w=u, Q=np.outer(u, u)).round(9)
    array([5., 5.])
    """
    table, weights, projection = _checked(X, w, Q)
    values = np.zeros(len(table))
    masks, member = np.unique(~np.isnan(table), axis=0, return_inverse=True)
    for number, o in enumerate(masks):
        rows = member.ravel() == number
        inverse = np.linalg.pinv(projection[np.ix_(o, o)], rcond=_RCOND)
        values[rows] = table[np.ix_(rows, o)] @ (inverse.T @ weights[o])
    return values


def truncated_predictor(X: Any, w: ArrayLike, Q: ArrayLike, gamma: int) -> Floats:
    """Definition 3: f^gamma_{w,Q}(x_o) = (P_o w) . (sum of Q_oo^j for j < gamma) (P_o x).

    With I - P_E for Q it is within (1 - lambda)^gamma / lambda of `linear_predictor` with P_E
    (Lemma 2, `truncation_bound`), and an inner product with `embedding` (Lemma 3).

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    w : array-like of shape (d,)
    Q : array-like of shape (d, d)
        A projection: Q Q = Q.
    gamma : int
        Number of powers, >= 1.

    Returns
    -------
    values : ndarray of shape (n,)

    Raises
    ------
    ValueError
        Infinite entries, shapes that do not fit, a Q that is no projection, or a gamma that is not
        whole.

    Notes
    -----
    By Horner's rule on all rows at once, O(gamma n d^2).

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Definition 3.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import truncated_predictor
    >>> u = np.array([0.6, 0.8])
    >>> truncated_predictor([[3.0, np.nan]], w=u, Q=np.eye(2) - np.outer(u, u), gamma=30).round(4)
    array([5.])
    """
    _check_whole(gamma, "It counts powers of Q.")
    table, weights, projection = _checked(X, w, Q)
    seen = ~np.isnan(table)
    rows = np.where(seen, table, 0.0)
    total = rows
    for _ in range(int(gamma) - 1):
        total = rows + seen * (total @ projection.T)
    return np.asarray(total @ weights)


def _check_whole(gamma: float, reason: str) -> None:
    if gamma != int(gamma) or gamma < 1:
        raise ValueError(f"gamma must be a whole number >= 1; got {gamma!r}. {reason}")


def _checked(X: Any, w: ArrayLike, Q: ArrayLike) -> tuple[Floats, Floats, Floats]:
    """X (n, d) with NaN, w (d,) and the projection Q (d, d)."""
    table = as_observed(X).astype(np.float64).to_dense()
    d = table.shape[1]
    weights, projection = check_numbers(w, "w", ensure_2d=False), check_numbers(Q, "Q")
    if weights.shape != (d,) or projection.shape != (d, d):
        raise ValueError(
            f"w and Q must have shapes ({d},) and ({d}, {d}), as X has {d} columns; got {weights.shape} and "
            f"{projection.shape}."
        )
    if not np.allclose(projection @ projection, projection, rtol=0.0, atol=1e-8 * max(1.0, np.abs(projection).max())):
        raise ValueError("Q must be a projection, Q @ Q = Q; it is not. Take U @ U.T of an orthonormal basis U.")
    return table, weights, projection


def embedding(X: Any, gamma: float = 2) -> Floats:
    """phi_gamma of every row: one coordinate a sequence s of at most gamma columns, x at the last
    of s where all of s is observed.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
    gamma : float, default=2
        Longest sequence, > 0. Between integers the longest sequences are weighed by the square root
        of gamma's fraction, so that the product is `karma_kernel`'s mixture.

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
    lacunar.kernels.karma_kernel : The same inner products without the features.
    lacunar.karma.KarmaFeatures : Far fewer features with the same inner products, for gamma 1 and
        2.

    Notes
    -----
    Definition 4 of [1]_. O(n d^gamma).

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.kernels import karma_kernel
    >>> from lacunar.papers.karma import embedding
    >>> X = np.array([[1.0, 2.0], [3.0, np.nan]])
    >>> embedding(X, 2)
    array([[1., 2., 1., 2., 1., 2.],
           [3., 0., 3., 0., 0., 0.]])
    >>> features = embedding(X, 3)
    >>> bool((features @ features.T == karma_kernel(X, gamma=3, count_scale="raw")).all())
    True
    """
    check_kernel_options([float(gamma)])
    rows = as_observed(X)
    n, d = rows.shape
    lengths = int(np.ceil(gamma))
    if n * sum(d**length for length in range(1, lengths + 1)) > _MOST:
        raise ValueError(
            f"gamma must keep n (d + ... + d^gamma) at most {_MOST} numbers; got gamma={gamma:g} with {n} rows of {d} "
            "columns. Use karma_kernel, which has their inner products, or fewer columns."
        )
    table = rows.astype(np.float64).to_dense()
    seen = ~np.isnan(table)
    parts = [np.where(seen, table, 0.0)]
    for _ in range(lengths - 1):  # one more column before every sequence
        parts.append((seen[:, :, None] * parts[-1][:, None, :]).reshape(n, -1))
    if gamma < lengths:
        parts[-1] = parts[-1] * np.sqrt(gamma - (lengths - 1))
    return np.hstack(parts)


def embedding_weights(w: ArrayLike, Q: ArrayLike, gamma: int) -> Floats:
    """The v of Corollary 2: weights of `embedding`, with which its product is
    `truncated_predictor`.

    v_s = w_{s_1} Q_{s_1 s_2} ... Q_{s_{l-1} s_l} of a sequence s of l columns, which is Lemma 3.

    Parameters
    ----------
    w : array-like of shape (d,)
    Q : array-like of shape (d, d)
        A projection: Q Q = Q.
    gamma : int
        Longest sequence, >= 1.

    Returns
    -------
    v : ndarray of shape (d + d^2 + ... + d^gamma,)
        Sequences in the order of `embedding`.

    Raises
    ------
    ValueError
        Shapes that do not fit, a Q that is no projection, a gamma that is not whole, or more than
        2^27 numbers.

    See Also
    --------
    embedding : What these weights belong to.

    Notes
    -----
    O(d^gamma). The proof of |v| <= sqrt(Gamma) |w| has |Q_ij| <= 1: that is so where Q is
    symmetric, as P_E and I - P_E are.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, Corollary 2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import embedding, embedding_weights, truncated_predictor
    >>> Q, w, X = np.full((2, 2), 0.5), [1.0, 0.0], [[3.0, 4.0], [3.0, np.nan]]
    >>> embedding(X, 3) @ embedding_weights(w, Q, 3)
    array([10.  ,  5.25])
    >>> truncated_predictor(X, w, Q, 3)
    array([10.  ,  5.25])
    """
    _check_whole(gamma, "It is the length of sequences.")
    weights = check_numbers(w, "w", ensure_2d=False)
    projection = _checked(np.zeros((1, len(weights))), weights, Q)[2]
    d = len(weights)
    if sum(d**length for length in range(1, int(gamma) + 1)) > _MOST:
        raise ValueError(
            f"gamma must keep d + ... + d^gamma at most {_MOST} numbers; got gamma={gamma:g} for {d} columns. Use "
            "truncated_predictor, which has their products, or fewer columns."
        )
    parts = [weights]
    for _ in range(int(gamma) - 1):  # one more column after every sequence
        parts.append((parts[-1].reshape(-1, d)[:, :, None] * projection).ravel())
    return np.concatenate(parts)


def block_predictor(X: Any, blocks: Sequence[Sequence[int]], weights: ArrayLike) -> Floats:
    """h(x_o) of section 5.1.2: what a row's blocks say of its target, each counted as if it were
    the only one.

    The sum over nonempty sets of observed blocks of (-1)^(size + 1) / size times the sum of their
    w^{A_i} . x. Where each w^{A_i}, on the columns of A_i alone, gives the target of every row that
    shows A_i, h gives it of every row that shows a block.

    Parameters
    ----------
    X : array-like with NaN, frame, sparse matrix or Observed, shape (n, d)
        Rows that show blocks whole; a block with a missing entry counts as missing.
    blocks : sequence of sequences of int
        Columns of A_1, A_2, ...; the paper has three.
    weights : array-like of shape (number of blocks, d)
        The w^{A_i}; only entries within the block count.

    Returns
    -------
    values : ndarray of shape (n,)
        0 for a row without a whole block.

    Raises
    ------
    ValueError
        Infinite entries, or weights of another shape.

    See Also
    --------
    make_block_margin : Rows of which this is the target.

    Notes
    -----
    O(n d 2^b) for b blocks. For three of them it is v . phi_3(x_o) with |v| <= 7/3 sum |w^{A_i}|.
    The paper prints the last term without its 1/3: with it the target comes out three times over
    where all blocks are seen, and the norm would be 3, not the 7/3 that it names. The sum over i_1
    != i_2 is over pairs, each once.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015, section 5.1.2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import block_predictor
    >>> X = [[2.0, np.nan, np.nan], [np.nan, 2.0, 2.0], [2.0, 2.0, 2.0]]
    >>> block_predictor(X, [[0], [1], [2]], 5 * np.eye(3))
    array([10., 10., 10.])
    """
    table = as_observed(X).astype(np.float64).to_dense()
    vectors = check_numbers(weights, "weights")
    if vectors.shape != (len(blocks), table.shape[1]):
        raise ValueError(
            f"weights must have shape ({len(blocks)}, {table.shape[1]}), a row for each block; got {vectors.shape}."
        )
    parts = [list(block) for block in blocks]
    is_whole = np.column_stack([~np.isnan(table[:, part]).any(axis=1) for part in parts])
    filled = np.where(np.isnan(table), 0.0, table)
    products = np.column_stack([filled[:, part] @ vectors[k, part] for k, part in enumerate(parts)])
    total = np.zeros(len(table))
    for size in range(1, len(parts) + 1):
        for subset in map(list, combinations(range(len(parts)), size)):
            chi = is_whole[:, subset].all(axis=1)
            total += chi * products[:, subset].sum(axis=1) * (-1) ** (size + 1) / size
    return total


def kernel_sum(X: Any, Y: Any = None, *, gamma: int = 2) -> Floats:
    """The kernel as the sum it is before Theorem 4: of x_end x'_end over all sequences of columns
    observed in both rows.

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
    lacunar.kernels.karma_kernel : The same values in closed form, with `count_scale="raw"`.

    Notes
    -----
    [1]_, Section 4.2 and the proof of Theorem 4. Every sequence is visited: O(v^gamma) for a pair
    with v common columns.

    References
    ----------
    .. [1] E. Hazan, R. Livni, Y. Mansour, "Classification with Low Rank and Missing Data", ICML
       2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.karma import kernel_sum
    >>> kernel_sum([[1.0, 2.0, np.nan], [3.0, np.nan, 1.0]], gamma=3)
    array([[35.,  9.],
           [ 9., 70.]])
    """
    _check_whole(gamma, "Use karma_kernel for other gamma.")
    x = as_observed(X)
    y = x if Y is None else as_observed(Y)
    check_same_columns(x, y)
    x_dense, y_dense = (rows.astype(np.float64).to_dense() for rows in (x, y))
    return np.array([[_pair_sum(a, b, int(gamma)) for b in y_dense] for a in x_dense]).reshape(
        len(x_dense), len(y_dense)
    )


def _pair_sum(a: Floats, b: Floats, gamma: int) -> float:
    common = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
    products = {k: float(a[k] * b[k]) for k in common}
    return sum(products[s[-1]] for length in range(1, gamma + 1) for s in product(common, repeat=length))
