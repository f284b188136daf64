"""Distributions for which partial information is dear: those behind Theorems 4 and 12."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar._typing import Floats
from lacunar.datasets.hide import check_count, check_rate, hide_mcar


def make_coins(
    n_samples: int = 1000,
    n_features: int = 8,
    n_coins: int = 1,
    *,
    eps: float = 0.01,
    share_observed: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """The family behind Theorem 4: k coins of bias 16 eps, of which a learner must find the sides
    that fall more often.

    A row is, times a random sign, u_j = (e_j + e_{j+k}) / sqrt 2 where coin j shows heads and
    u_{j+k} = (e_{j+k} - e_j) / sqrt 2 where it shows tails, j uniform among the k coins. The best
    subspace holds the likelier side of every coin, and the excess of the other side is 16 eps / k.
    Single entries tell nothing: only pairs (j, j + k) do. O(n d).

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 8
    n_coins : int, default=1
        k, at most half of `n_features`.
    eps : float, default=0.01
        Accuracy for which the family is hard, in [0, 1/16]; heads have probability (1 + 16 eps) / 2
        or (1 - 16 eps) / 2.
    share_observed : float, default=1.0
        Probability that an entry is observed: r/d of the passive model.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray of shape (n, d)
            Rows with missing entries, and complete.
        components : ndarray of shape (k, d)
            Orthonormal rows of the best subspace.
        second_moment : ndarray of shape (d, d)
            E x x'.
        heads : ndarray of shape (k,)
            Probabilities of heads.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, 2 k exceeds `n_features`, or an option is out of
        range.

    References
    ----------
    Gonen, Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR
    2016, Theorems 4 and 5.

    Examples
    --------
    >>> from lacunar.papers.subspace import make_coins
    >>> data = make_coins(100, 8, 2, eps=0.02, random_state=0)
    >>> data.complete.shape, data.components.shape
    ((100, 8), (2, 8))
    """
    d, k = check_count("n_features", n_features, least=2), check_count("n_coins", n_coins, most=n_features // 2)
    bias = 16 * check_rate("eps", eps, high=1 / 16)
    rng = generator(random_state)
    heads = (1 + bias * rng.choice([-1, 1], size=k)) / 2
    atoms = np.zeros((2, k, d))
    own = np.arange(k)
    atoms[0, own, own] = atoms[0, own, own + k] = atoms[1, own, own + k] = 0.5**0.5
    atoms[1, own, own] = -(0.5**0.5)
    coin = rng.integers(k, size=check_count("n_samples", n_samples))
    tails = (rng.random(len(coin)) >= heads[coin]).astype(int)
    complete = atoms[tails, coin] * rng.choice([-1.0, 1.0], size=(len(coin), 1))
    moment = np.einsum("sj,sja,sjb->ab", np.stack([heads, 1 - heads]) / k, atoms, atoms)
    likelier = atoms[(heads < 0.5).astype(int), own]
    return _with_missing(rng, complete, share_observed, components=likelier, second_moment=moment, heads=heads)


def make_unit_vectors(
    n_samples: int = 1000,
    n_features: int = 20,
    *,
    eps: float = 0.01,
    c: float = 4.0,
    share_observed: float = 1.0,
    random_state: Any = None,
) -> Bunch:
    """The family behind Theorem 12: rows that are almost always zero, and one unit vector
    otherwise.

    A row is e_s with probability c eps and 0 otherwise, s one column drawn for the table. The best
    direction is e_s, and whoever does not find it loses c eps. O(n d).

    Parameters
    ----------
    n_samples, n_features : int, default=1000 and 20
    eps : float, default=0.01
        Accuracy for which the family is hard.
    c : float, default=4.0
        Of the proof, above 2; c eps is at most 1.
    share_observed : float, default=1.0
        Probability that an entry is observed: r/d of the passive model.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, complete : ndarray of shape (n, d)
            Rows with missing entries, and complete.
        components : ndarray of shape (1, d)
            e_s.
        second_moment : ndarray of shape (d, d)
            E x x'.

    Raises
    ------
    TypeError, ValueError
        When a size is not a positive integer, or an option is out of range.

    References
    ----------
    Gonen, Rosenbaum, Eldar and Shalev-Shwartz, "Subspace Learning with Partial Information", JMLR
    2016, Appendix C.

    Examples
    --------
    >>> from lacunar.papers.subspace import make_unit_vectors
    >>> data = make_unit_vectors(1000, 5, eps=0.05, random_state=0)
    >>> print(data.complete.sum(axis=1).mean().round(1))
    0.2
    """
    d, n = check_count("n_features", n_features), check_count("n_samples", n_samples)
    rate = check_rate("c * eps", c * eps)
    if not c > 2:
        raise ValueError(f"c must be above 2; got {c!r}.")
    rng = generator(random_state)
    component = np.eye(d)[[rng.integers(d)]]
    complete = (rng.random((n, 1)) < rate) * component
    return _with_missing(
        rng, complete, share_observed, components=component, second_moment=rate * component.T @ component
    )


def _with_missing(rng: np.random.Generator, complete: Floats, share: float, **others: Any) -> Bunch:
    hidden = hide_mcar(complete, share, random_state=int(rng.integers(2**31 - 1)))
    return Bunch(data=hidden.data, complete=complete, **others)
