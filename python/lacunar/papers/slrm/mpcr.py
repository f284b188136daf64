"""`MPCR` and `SMPCR`: principal component regression with missing entries, what Ganti and Willett (2015) compare SLRM with."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import _fit_context

from lacunar._latent import latent_rows
from lacunar._random import generator
from lacunar._state import all_or_nothing, whole_answers
from lacunar._typing import Floats
from lacunar.lowrank.em import first_basis, fit_als
from lacunar.lowrank.ridge import fit_labels
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls
from lacunar.papers.slrm.base import PrintedRegression, check_start, shortest_latent


@whole_answers
class MPCR(PrintedRegression):
    """Principal component regression with missing entries, in two steps: the subspace, then a lasso
    on the latent coordinates.

    Step 1 minimises the squared error of the observed entries (3) by alternating least squares,
    step 2 is (4) of [1]_. Labels have no part in step 1. Latent coordinates have no ridge, so
    that it fails where rows show few more entries than there are directions.

    Parameters
    ----------
    d : int or None, default=None
        Dimension of the subspace, at most the number of columns. None is 10, or the number of
        columns where there are fewer.
    lam : float, default=1e-3
        lambda of (4), the weight of the l1 norm.
    max_iter : int, default=100
        Sweeps.
    tol : float, default=1e-4
        Change of the subspace at which they stop.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        Weights of the columns of complete rows.
    n_components_, n_features_in_ : int
        Numbers of components and of columns of X.
    n_iter_, n_singular_ : int
        Sweeps, and rows whose latent coordinates were not unique.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, more than one target, no known label, d above the number of
        columns. The model is as it was.

    See Also
    --------
    lacunar.lowrank.SLRMRegressor : Learns a ridge, and lets labels shape the subspace.

    Notes
    -----
    A sweep costs O(o d^2 + d^3) for every row of o entries, and the same for every column; the
    lasso O(n d^2) once.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import MPCR
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> bool(MPCR(2, random_state=0).fit(X[:200], a[:200, 0]).score(X[200:], a[200:, 0]) > 0.9)
    True
    """

    def __init__(
        self,
        d: int | None = None,
        *,
        lam: float = 1e-3,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.lam = lam
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> MPCR:
        """Fit the subspace to all rows and the lasso to those with a label.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.

        Returns
        -------
        self
        """
        rows, labels = self._begin(X, y)
        d, rng = self.n_components_, generator(self.random_state)
        fit = fit_als(rows, d, rng=rng, ridge=0.0, max_iter=self.max_iter, tol=self.tol)
        latent = latent_rows(rows, fit.model.basis, 0.0).latent
        # (4) has 1 / n where the elastic net has 1 / 2n.
        lasso = fit_labels((latent, labels[:, None]), float(self.lam) / 2, 1.0, intercept=False)
        self._store(fit.model.basis, lasso.weights[:, 0], fit.n_iter, fit.n_singular)
        return self


@whole_answers
class SMPCR(PrintedRegression):
    """Stochastic principal component regression with missing entries: PETRELS, then stochastic
    proximal steps for the lasso.

    The stochastic form of MPCR that [1]_ measures SLRM against: `max_iter` passes of PETRELS
    without labels, and after them as many passes of proximal steps for (4) on the latent
    coordinates in its last basis. Without a ridge it diverges where rows show few more entries than
    there are directions.

    Parameters
    ----------
    d : int or None, default=None
        Dimension of the subspace, at most the number of columns and 1024. None is 10, or the number
        of columns where there are fewer.
    lam : float, default=1e-3
        lambda of (4), the weight of the l1 norm.
    rho : float, default=1e-3
        Step of w: rho for `constant_rounds` rounds, then rho / t.
    constant_rounds : int or None, default=None
        None is the number of rows with a label and an entry, one pass.
    delta : float, default=10.0
        Every inverse correlation R_j of PETRELS starts as delta I.
    max_iter : int, default=100
        Passes of PETRELS, and then of w.
    U0 : array-like of shape (D, d), default=None
        Where PETRELS starts, with orthonormal columns. None is the singular vectors of the rows
        filled with zeros.
    w0 : array-like of shape (d,), default=None
        Where w starts. None is 0.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        Weights of the columns of complete rows.
    n_components_, n_features_in_ : int
        Numbers of components and of columns of X.
    n_iter_, n_singular_ : int
        Passes, and rows whose latent coordinates were not unique.

    Raises
    ------
    ValueError
        In `fit`: infinite entries, more than one target, no known label, d above the number of
        columns, a `U0` or `w0` that does not fit, or steps that overflow. The model is as it was.

    See Also
    --------
    lacunar.lowrank.SLRMRegressor : Lets labels shape the subspace; `lam1` says how much.

    Notes
    -----
    A row of o entries costs O(o d^2 + d^3) in a pass of PETRELS and O(d) in a pass of proximal
    steps; O(D d^2) memory.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import SMPCR
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(400, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = SMPCR(2, rho=1e-2, random_state=0).fit(X[:300], a[:300, 0])
    >>> bool(model.score(X[300:], a[300:, 0]) > 0.9)
    True
    """

    def __init__(
        self,
        d: int | None = None,
        *,
        lam: float = 1e-3,
        rho: float = 1e-3,
        constant_rounds: int | None = None,
        delta: float = 10.0,
        max_iter: int = 100,
        U0: Any = None,
        w0: Any = None,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.lam = lam
        self.rho = rho
        self.constant_rounds = constant_rounds
        self.delta = delta
        self.max_iter = max_iter
        self.U0 = U0
        self.w0 = w0
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> SMPCR:
        """Follow the rows, then step along those with a label, all of them `max_iter` times in
        their order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.

        Returns
        -------
        self
        """
        rows, labels = self._begin(X, y)
        d = self.n_components_
        U, w = check_start(self.U0, self.w0, rows.shape[1], d)
        U = first_basis(rows, d, generator(self.random_state))[0] if U is None else U
        tracker = PerColumnRls(U, delta=float(self.delta))
        for _ in range(self.max_iter):
            tracker.run(rows)
        labelled = np.flatnonzero(~np.isnan(labels) & (rows.row_counts > 0))
        latent = shortest_latent(rows[labelled], tracker.v)
        w = self._proximal_steps(latent, labels[labelled], np.zeros(d) if w is None else w)
        if not np.isfinite(w).all():
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={self.rho:g} they overflow. Use a smaller rho, or smaller values in X."
            )
        basis, root = orthonormal_columns(tracker.v)
        self._store(basis, root @ w, int(self.max_iter), tracker.n_singular)
        return self

    def _proximal_steps(self, latent: Floats, labels: Floats, w: Floats) -> Floats:
        """w (d,) after a step of step 8, without lambda_3, for latent coordinates (n, d) and every pass."""
        n, rho, lam = len(labels), float(self.rho), float(self.lam)
        constant = self.constant_rounds or n
        with np.errstate(over="ignore", invalid="ignore"):  # the caller looks at the end
            for t in range(1, self.max_iter * n + 1):
                a, label = latent[(t - 1) % n], labels[(t - 1) % n]
                eta = rho if t <= constant else rho / t
                w = w - 2 * eta * (a @ w - label) * a
                w = np.sign(w) * np.maximum(np.abs(w) - eta * lam, 0.0)
        return w


def orthonormal_columns(V: Floats) -> tuple[Floats, Floats]:
    """U = V S with S = (V^T V)^(-1/2), and S: weights w of latent coordinates in V are S w of those in U."""
    u, s, right = np.linalg.svd(V, full_matrices=False)
    return u @ right, (right.T / np.where(s > 0, s, 1.0)) @ right
