"""The synthetic table of section 6."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from lacunar._random import generator
from lacunar.datasets.hide import check_count, check_number, hide_mcar


def make_sparse_regression(
    n_samples: int = 1600,
    n_features: int = 100,
    rank: int = 30,
    *,
    n_nonzero: int = 10,
    share_observed: float = 0.75,
    share_test: float = 0.75,
    sigma_x: float = 0.0,
    sigma_y: float = 0.0,
    n_validation: int = 1000,
    n_test: int = 2000,
    random_state: Any = None,
) -> Bunch:
    """Noisy rows near a subspace, a target sparse in its coordinates, three sets: Figure 1 of the
    SLRM paper.

    X = A U' + E_x and y = A w + e_y with standard normal A, orthonormal U and a w with `n_nonzero`
    normal entries. Training, validation and test rows share U and w. O(n d rank).

    Parameters
    ----------
    n_samples, n_features, rank : int, default=1600, 100 and 30
        n, D and d of the paper.
    n_nonzero : int, default=10
        Entries of w that are not 0, at most `rank`.
    share_observed, share_test : float, default=0.75
        The paper's p for training rows and q for validation and test rows.
    sigma_x, sigma_y : float, default=0.0
        Standard deviations of the noise on entries and on targets.
    n_validation, n_test : int, default=1000 and 2000
        Rows of the other sets; may be 0.
    random_state : int, RandomState or None, default=None

    Returns
    -------
    data : Bunch
        data, target, complete : ndarray of shape (n, D), (n,) and (n, D)
            Training rows with missing entries, targets, and the complete rows, noise included.
        validation, test : Bunch
            The same three of the other sets.
        basis : ndarray of shape (D, rank)
            U.
        weights : ndarray of shape (rank,)
            w.
        latent : ndarray of shape (n, rank)
            A.

    Raises
    ------
    TypeError, ValueError
        When a size, a share or a standard deviation is out of range.

    References
    ----------
    Ganti and Willett, "Sparse Linear Regression With Missing Data", 2015, Section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import make_sparse_regression
    >>> data = make_sparse_regression(200, sigma_x=0.1, random_state=0)
    >>> data.test.data.shape, int(np.count_nonzero(data.weights))
    ((2000, 100), 10)
    """
    for name, sigma in (("sigma_x", sigma_x), ("sigma_y", sigma_y)):
        if not 0 <= check_number(name, sigma, "a number of at least 0") < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0; got {sigma!r}.")
    check_count("n_nonzero", n_nonzero, least=0, most=check_count("rank", rank, most=n_features))
    rng = generator(random_state)
    U = np.linalg.qr(rng.normal(size=(check_count("n_features", n_features), rank)))[0]
    w = np.zeros(rank)
    w[rng.choice(rank, n_nonzero, replace=False)] = rng.normal(size=n_nonzero)

    def drawn(n: int, share: float) -> Bunch:
        latent = rng.normal(size=(n, rank))
        complete = latent @ U.T + sigma_x * rng.normal(size=(n, n_features))
        target = latent @ w + sigma_y * rng.normal(size=n)
        hidden = hide_mcar(complete, share, random_state=int(rng.integers(2**31 - 1)))
        return Bunch(data=hidden.data, target=target, complete=complete, latent=latent)

    train = drawn(check_count("n_samples", n_samples), share_observed)
    validation = drawn(check_count("n_validation", n_validation, least=0), share_test)
    test = drawn(check_count("n_test", n_test, least=0), share_test)
    return Bunch(**train, validation=validation, test=test, basis=U, weights=w)
