"""`MPCRRegressor` and `SMPCRRegressor`: principal component regression with missing entries, what SLRM is compared with."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._codes import row_codes
from lacunar._log import say
from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar.lowrank.em import first_basis, fit_als
from lacunar.lowrank.parts import Whole
from lacunar.lowrank.regression import (
    Subspace,
    SubspaceRegression,
    given_start,
    orthonormal_columns,
    refuse_extra,
    shortest_codes,
)
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls
from lacunar.observed import Observed

_Floats = NDArray[np.float64]
_PATIENCE = 5  # passes of SMPCR without a better validation error


class MPCRRegressor(SubspaceRegression):
    """Principal component regression with missing entries, in two steps: the subspace, then a lasso on the codes.

    Step 1 minimises the squared error of the observed entries (3) by alternating least squares, step 2 is (4) of [1]_. Labels
    have no part in step 1. With `ridge="auto"` codes are regularised as noise demands, which [1]_ does not do and which
    is what makes it work where rows show few more entries than there are directions.

    Parameters
    ----------
    n_components : int or None, default=None
        At most the number of columns. None is 10, or the number of columns where there are fewer.
    options : {"paper"} or None, default=None
        "paper" is the printed method: columns and labels are neither centred nor scaled nor clipped, and there is no intercept.
    lam : float, default=1e-3
        Weight of the l1 norm in (4).
    ridge : "auto" or float, default=0.0
        On codes; 0 is the published method.
    max_iter : int, default=100
        Sweeps.
    tol : float, default=1e-4
        Change of the subspace at which they stop.
    gate : float or None, default=None
        gamma of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gate get the mean label. None is no gate.
    standardize : bool, default=True
        Subtract column means and divide by standard deviations, over observed entries.
    clip : float or None, default=8.0
        Largest absolute value after standardising.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace of the standardised rows.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        The same in units of the data's columns.
    intercept_ : float
    ridge_ : float
        Ridge on codes.
    mean_, scale_ : ndarrays of shape (D,)
        Of the columns, over observed entries.
    n_iter_, n_singular_ : int
        Sweeps, and rows whose code was not unique.
    converged_ : bool
    n_features_in_ : int

    See Also
    --------
    SLRMRegressor : Learns the ridge, and lets labels shape the subspace.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import MPCRRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> bool(MPCRRegressor(2, random_state=0).fit(X[:200], a[:200, 0]).score(X[200:], a[200:, 0]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "options": [StrOptions({"paper"}), None],
        "lam": [Interval(Real, 0, None, closed="left")],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        options: Literal["paper"] | None = None,
        lam: float = 1e-3,
        ridge: float | Literal["auto"] = 0.0,
        max_iter: int = 100,
        tol: float = 1e-4,
        gate: float | None = None,
        standardize: bool = True,
        clip: float | None = 8.0,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.options = options
        self.lam = lam
        self.ridge = ridge
        self.max_iter = max_iter
        self.tol = tol
        self.gate = gate
        self.standardize = standardize
        self.clip = clip
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> MPCRRegressor:
        """Fit the subspace to all rows and the lasso to those with a label.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self : MPCRRegressor
        """
        if self._printed:
            self._refuse_unprinted(ridge=(0,))
        rows, labels = self._begin(X, y)
        ridge = None if self.ridge == "auto" else float(self.ridge)
        model = fit_als(
            rows,
            self.n_components_,
            rng=generator(self.random_state),
            ridge=ridge,
            max_iter=self.max_iter,
            tol=self.tol,
            n_jobs=self.n_jobs,
            progress=self._progress("MPCR sweep"),
        )
        found = Subspace.of(model, rows.shape[1])._replace(ridge=model.ridge if ridge is None else ridge)
        self._adopt(found, Whole((rows, labels)), self.lam / 2, 1.0)  # (4) has 1 / n where ElasticNet has 1 / 2n
        return self


class SMPCRRegressor(SubspaceRegression):
    """Stochastic principal component regression with missing entries: PETRELS, then stochastic steps for the lasso.

    The stochastic form of MPCR that [1]_ measures SLRM against: the subspace by PETRELS without labels, w by the
    proximal steps of (4). Without a ridge it diverges where rows show few more entries than there are directions.

    Parameters
    ----------
    n_components : int or None, default=None
        At most the number of columns and 64. None is 10, or the number of columns where there are fewer.
    options : {"paper"} or None, default=None
        "paper" is the printed method: `max_iter` passes of PETRELS, and after them `max_iter` passes of proximal steps on the codes
        of its last basis, on all rows, from w = 0. Columns and labels are neither centred nor scaled nor clipped, and there
        is no intercept. None takes a step of w with every row of PETRELS, and keeps the pass that is best on held-out rows.
    lam : float, default=1e-3
        Weight of the l1 norm in (4).
    rho : float, default=1e-3
        Step of w, constant in the first pass, then falling as 1 / t: rho t0 / t, and with `options="paper"` rho / t.
    ridge : float, default=0.0
        On codes.
    max_iter : int, default=100
        Passes; the best on held-out rows is kept.
    validation_fraction : float, default=0.25
    gate : float or None, default=None
        gamma of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gate get the mean label. None is no gate.
    standardize : bool, default=True
        Subtract column means and divide by standard deviations, over observed entries.
    clip : float or None, default=8.0
        Largest absolute value after standardising.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace of the standardised rows.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        The same in units of the data's columns.
    intercept_ : float
    mean_, scale_ : ndarrays of shape (D,)
        Of the columns, over observed entries.
    n_iter_, n_singular_ : int
        Passes, and rows whose code was not unique.
    validation_errors_ : list of float
        Mean squared error on held-out rows after each pass.
    n_features_in_ : int

    See Also
    --------
    SLRMRegressor : Lets labels shape the subspace; `lam1` says how much.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import SMPCRRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(400, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.3] = np.nan
    >>> model = SMPCRRegressor(2, rho=1e-2, random_state=0).fit(X[:300], a[:300, 0])
    >>> bool(model.score(X[300:], a[300:, 0]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "options": [StrOptions({"paper"}), None],
        "lam": [Interval(Real, 0, None, closed="left")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        options: Literal["paper"] | None = None,
        lam: float = 1e-3,
        rho: float = 1e-3,
        ridge: float = 0.0,
        max_iter: int = 100,
        validation_fraction: float = 0.25,
        gate: float | None = None,
        standardize: bool = True,
        clip: float | None = 8.0,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.options = options
        self.lam = lam
        self.rho = rho
        self.ridge = ridge
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.gate = gate
        self.standardize = standardize
        self.clip = clip
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(self, X: Any, y: Any, *, U0: Any = None, w0: Any = None) -> SMPCRRegressor:
        """Pass over the rows until held-out errors stop falling; with `options="paper"` as often as `max_iter` says.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.
        U0 : array-like of shape (D, d), default=None
            Of `options="paper"`: where PETRELS starts, with orthonormal columns. Without it, the singular vectors of the rows
            filled with zeros.
        w0 : array-like of shape (d,), default=None
            Of `options="paper"`: where w starts. Without it, 0.

        Returns
        -------
        self : SMPCRRegressor
        """
        if self._printed:
            self._refuse_unprinted(ridge=(0,))
        else:
            refuse_extra(U0=U0, w0=w0)
        rows, labels = self._begin(X, y)
        self._check_streamed(labels, "MPCRRegressor or SLRMRegressor")
        rng = generator(self.random_state)
        if self._printed:
            found = self._fit_printed(rows, labels[:, 0], *given_start(U0, w0, rows.shape[1], self.n_components_), rng)
        else:
            found = self._fit_interleaved(rows, labels[:, 0], rng)
        self._adopt(found, Whole((rows, labels)), 0.0, 0.0)
        return self

    def _fit_printed(
        self, rows: Observed, y: _Floats, U: _Floats | None, w: _Floats | None, rng: np.random.Generator
    ) -> Subspace:
        """PETRELS over all rows, then stochastic proximal steps for the lasso (4) on the codes of its last basis."""
        d = self.n_components_
        tracker = PerColumnRls(first_basis(rows, d, rng)[0] if U is None else U)
        for _ in range(self.max_iter):
            tracker.run(rows, undo=False)
        used = np.flatnonzero(~np.isnan(y) & (rows.row_counts > 0))
        codes, w = shortest_codes(rows[used], tracker.v), np.zeros(d) if w is None else w
        w = _proximal_steps(codes, y[used], w, float(self.lam), float(self.rho), self.max_iter)
        if not np.isfinite(w).all():
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={self.rho:g} they overflow. Use a smaller rho, or smaller values in X."
            )
        Q, root = orthonormal_columns(tracker.v)
        zero, singular = np.zeros(len(Q)), tracker.n_singular
        return Subspace(Q, zero, 0.0, None, 1.0, (root @ w)[:, None], self.max_iter, True, singular)

    def _fit_interleaved(self, rows: Observed, y: _Floats, rng: np.random.Generator) -> Subspace:
        """PETRELS with a proximal step of w after every row; the pass that is best on held-out rows."""
        n, ridge = rows.shape[0], float(self.ridge)
        held = np.sort(rng.permutation(n)[: round(self.validation_fraction * n)])
        train = np.setdiff1d(np.arange(n), held)
        basis, _ = first_basis(rows[train], self.n_components_, rng)
        lam2 = float(self.lam)
        tracker = PerColumnRls(
            basis, _first_weights(rows[train], y[train], basis, lam2), lam2=lam2, rho=float(self.rho),
            ridge=ridge, constant_until=max(len(train), 1),
        )  # fmt: skip
        best, errors, waited = None, list[float](), 0
        for number in range(1, self.max_iter + 1):
            order = train if number == 1 else rng.permutation(train)
            try:
                tracker.run(rows, np.ascontiguousarray(y), order.astype(np.int64), undo=False)
            except NotFiniteError as error:
                if best is not None:  # a pass that overflows ends the search; what was best on held-out rows stays
                    break
                raise NotFiniteError(
                    f"rho must keep the weights finite; with rho={self.rho:g} they overflow in pass {number}. Use a smaller rho, or "
                    "standardize=True."
                ) from error
            U, root = orthonormal_columns(tracker.v)
            w = root @ tracker.w
            errors.append(_validation(rows, y, held if len(held) else train, U, w, ridge))
            say(self.verbose, "SMPCR pass %d: error %.3g", number, errors[-1])
            if errors[-1] <= min(errors):
                best, waited = (U, w), 0
            else:
                waited += 1
            if waited >= _PATIENCE or not np.isfinite(errors[-1]):
                break
        assert best is not None
        (U, w), self.validation_errors_ = best, errors
        return Subspace(U, np.zeros(len(U)), ridge, None, 1.0, w[:, None], len(errors), True, tracker.n_singular)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags


def _proximal_steps(codes: _Floats, labels: _Floats, w: _Floats, lam: float, rho: float, passes: int) -> _Floats:
    """w after a step of step 8, without lambda_3, for every row and pass; the step is rho in the first pass, then rho / t."""
    n = len(labels)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks at the end
        for t in range(1, passes * n + 1):
            a, label = codes[(t - 1) % n], labels[(t - 1) % n]
            eta = rho if t <= n else rho / t
            w = w - 2 * eta * (a @ w - label) * a
            w = np.sign(w) * np.maximum(np.abs(w) - eta * lam, 0.0)
    return w


def _first_weights(rows: Observed, y: _Floats, basis: _Floats, lam2: float) -> _Floats:
    """The lasso (4) of the known labels on the codes of their rows."""
    from sklearn.linear_model import Lasso

    codes, known = row_codes(rows, basis, 0.0).code, ~np.isnan(y)
    if not known.any():
        return np.zeros(basis.shape[1])
    return np.asarray(Lasso(alpha=max(lam2 / 2, 1e-9), fit_intercept=False).fit(codes[known], y[known]).coef_)


def _validation(rows: Observed, y: _Floats, held: NDArray[np.intp], U: _Floats, w: _Floats, ridge: float) -> float:
    known = held[~np.isnan(y[held])]
    if not len(known):
        return 0.0
    codes = row_codes(rows[known], U, ridge).code
    return float(np.mean((codes @ w - y[known]) ** 2))
