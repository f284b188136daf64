"""How predictive side information is for what was seen: do ids that it calls alike have like entries?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.completion.side import SideInformation, SideState


@dataclass(frozen=True)
class Predictiveness:
    """The result of `predictiveness`.

    correlation: of K_ik with how alike the entries of i and k are in common places, weighted by
    their number, beyond what each place's own mean explains. p_value: the share of random exchanges
    of ids (and of the ids as they are) whose correlation is at least that: near 0 for side
    information that predicts, near 1 for one that misleads. agreement_near, agreement_all: share of
    equal entries among the tenth of pairs that are most alike, and among all pairs. n_ids, n_pairs:
    ids compared, pairs of them with a place in common.
    """

    correlation: float
    p_value: float
    agreement_near: float
    agreement_all: float
    n_ids: int
    n_pairs: int


def predictiveness(
    side: SideInformation | SideState,
    index: ArrayLike,
    other: ArrayLike,
    y: ArrayLike,
    *,
    n_permutations: int = 199,
    max_ids: int = 1000,
    random_state: Any = 0,
) -> Predictiveness:
    """How predictive side information is for the entries seen so far, before trusting it with the
    next.

    Parameters
    ----------
    side : side information, or its begun state
        Of the rows, say.
    index, other : array-like of int, shape (t,)
        Row and column of every entry seen: vertices 0 to size - 1, and any numbers from 0. Exchange
        them to ask about columns.
    y : array-like of shape (t,)
        Entries: two labels, or numbers. A cell seen again counts with its mean.
    n_permutations : int, default=199
        Random exchanges of ids for the p-value.
    max_ids : int, default=1000
        Ids compared at most, drawn among those with entries.
    random_state : int, RandomState instance or None, default=0

    Returns
    -------
    Predictiveness
        Correlation, p-value and agreements. NaN where no two ids have a place in common or K says
        nothing.

    Raises
    ------
    ValueError
        When lengths differ, a vertex is unknown, y is not finite or has more than two labels that
        are no numbers.

    Notes
    -----
    O(ids^2 (columns + permutations)) and max_ids columns of K.

    Examples
    --------
    >>> from lacunar.completion import Features, predictiveness
    >>> rows, columns = [0, 0, 1, 1, 2, 2, 3, 3], [0, 1] * 4
    >>> found = predictiveness(
    ...     Features(["a", "a", "b", "b"]), rows, columns, [1, 0, 1, 0, 0, 1, 0, 1]
    ... )
    >>> found.agreement_near, found.correlation > 0
    (1.0, True)
    """
    state: SideState = side.begin() if isinstance(side, SideInformation) else side
    seen = _table(state.size, index, other, y)
    rng = generator(random_state)
    ids = np.flatnonzero(np.diff(seen.indptr))
    if len(ids) > max_ids:
        ids = np.sort(rng.choice(ids, max_ids, replace=False))
    K = np.ascontiguousarray(state.columns(ids)[ids])
    alike, weight, equal = _likeness(seen[ids])
    pairs = np.triu(weight > 0, 1)
    if not pairs.any():
        nan = float("nan")
        return Predictiveness(nan, nan, nan, nan, len(ids), 0)
    correlation = _correlation(K, alike, weight)
    shuffled = [
        _correlation(K[p][:, p], alike, weight) for p in (rng.permutation(len(ids)) for _ in range(n_permutations))
    ]
    p_value = (1 + sum(c >= correlation for c in shuffled)) / (1 + n_permutations)
    near = pairs & (np.quantile(K[pairs], 0.9) <= K)
    agreement_near, agreement_all = (float(equal[p].sum() / weight[p].sum()) for p in (near, pairs))
    return Predictiveness(correlation, p_value, agreement_near, agreement_all, len(ids), int(pairs.sum()))


def _table(size: int, index: ArrayLike, other: ArrayLike, y: ArrayLike) -> sp.csr_array:
    """Entries as a csr_array (size, places), two labels as -1 and 1; a cell seen again has its mean."""
    rows, places, labels = np.asarray(index), np.asarray(other), np.asarray(y)
    if not rows.shape == places.shape == labels.shape or rows.ndim != 1 or not len(rows):
        raise ValueError(
            f"index, other and y must be as long as each other; got {rows.shape}, {places.shape}, {labels.shape}."
        )
    for name, numbers, top in (("index", rows, size), ("other", places, np.iinfo(np.int32).max)):
        if numbers.dtype.kind not in "iu":
            raise ValueError(f"{name} must be vertex numbers from 0; got dtype {numbers.dtype}.")
        if numbers.min() < 0 or numbers.max() >= top:
            raise ValueError(f"{name} must be vertex numbers 0 to {top - 1}; got {numbers.min()} to {numbers.max()}.")
    levels = np.unique(labels)
    if len(levels) == 2:
        values = np.where(labels == levels[1], 1.0, -1.0)
    elif labels.dtype.kind in "fiub" and np.isfinite(labels.astype(np.float64)).all():
        values = labels.astype(np.float64)
    else:
        raise ValueError(
            f"y must have two labels or be finite numbers; got {len(levels)} labels of dtype {labels.dtype}."
        )
    shape = (size, int(places.max()) + 1)
    counts = sp.csr_array((np.ones(len(rows)), (rows, places)), shape=shape)
    table = sp.csr_array((values, (rows, places)), shape=shape)
    table.data /= counts.data  # both were summed in one order
    return table


def _likeness(seen: sp.csr_array) -> tuple[Floats, Floats, Floats]:
    """(alike, weight, equal) of pairs of rows (n, n): products of entries less their place's mean, places in common,
    signs equal.
    """
    mask = sp.csr_array((np.ones_like(seen.data), seen.indices, seen.indptr), shape=seen.shape)
    mean = np.asarray(seen.sum(axis=0)).ravel() / np.maximum(np.asarray(mask.sum(axis=0)).ravel(), 1)
    deviations = sp.csr_array((seen.data - mean[seen.indices], seen.indices, seen.indptr), shape=seen.shape)
    side_of = sp.csr_array((np.sign(seen.data), seen.indices, seen.indptr), shape=seen.shape)
    products, weight, signs = ((A @ A.T).toarray() for A in (deviations, mask, side_of))
    for A in (products, weight, signs):
        np.fill_diagonal(A, 0.0)
    return products / np.maximum(weight, 1.0), weight, (weight + signs) / 2


def _correlation(K: Floats, alike: Floats, weight: Floats) -> float:
    """Weighted over pairs; 0 where one of them does not vary."""
    total = weight.sum()
    k, a = K - (weight * K).sum() / total, alike - (weight * alike).sum() / total
    spread = np.sqrt((weight * k * k).sum() * (weight * a * a).sum())
    return float((weight * k * a).sum() / spread) if spread > 1e-12 * total else 0.0
