"""`MPCRRegressor` and `SMPCRRegressor`: principal component regression with holes, what SLRM is compared with."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._codes import LARGEST_CORE_RANK
from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.parts import Whole
from lacunar.regression._base import SubspaceRegression
from lacunar.regression._paper import fit_smpcr, given_start, refuse_extra
from lacunar.regression._solvers import Subspace, fit_batch, fit_interleaved


class _TwoSteps(SubspaceRegression):
    """Columns and labels as in SLRM; subclasses find the subspace without labels."""

    def _prepare(self, X: Any, y: Any) -> tuple[Any, Any, int]:
        rows = self._check_rows(X, reset=True)
        labels, self.one_target_ = self._check_labels(y, rows)
        d = self._check_rank(rows.shape[1])
        self._fit_columns(rows)
        self._center_labels(labels)
        return self._standardised(rows), labels - self.label_mean_, d


class MPCRRegressor(_TwoSteps):
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
        gamma of (6), as in `SLRMRegressor`.
    center, scale : bool, default=True
        Subtract column means and divide by standard deviations, over observed entries.
    clip : float or None, default=8.0
        Largest absolute value after that.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    U_, coef_, feature_coef_, intercept_, ridge_, center_, scale_, n_iter_, converged_, n_singular_, n_features_in_
        As in `SLRMRegressor`.

    See Also
    --------
    SLRMRegressor : Learns the ridge, and lets labels shape the subspace.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.regression import MPCRRegressor
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
        center: bool = True,
        scale: bool = True,
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
        self.center = center
        self.scale = scale
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
        rows, labels, d = self._prepare(X, y)
        found = fit_batch(
            Whole((rows, labels)),
            d,
            solver="als",
            lam1=np.inf,
            ridge=None if self.ridge == "auto" else float(self.ridge),
            max_iter=self.max_iter,
            tol=self.tol,
            mean=False,
            rng=generator(self.random_state),
            n_jobs=self.n_jobs,
            progress=(lambda step, value: print(f"[lacunar] MPCR sweep {step}: change {value:.3g}"))
            if self.verbose
            else None,
        )
        self._adopt(found, rows, labels, self.lam / 2, 1.0)  # (4) has 1 / n where ElasticNet has 1 / 2n
        return self


class SMPCRRegressor(_TwoSteps):
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
        Step of w, constant for `constant_passes` passes, then falling as 1 / t: rho t0 / t, and with `options="paper"` rho / t.
    constant_passes : int, default=1
    ridge : float, default=0.0
        On codes.
    delta : float, default=10.0
        What the inverse correlations start from, times the identity.
    max_iter : int, default=100
        Passes; the best on held-out rows is kept.
    validation_fraction : float, default=0.25
    gate : float or None, default=None
        gamma of (6), as in `SLRMRegressor`.
    center, scale : bool, default=True
        Subtract column means and divide by standard deviations, over observed entries.
    clip : float or None, default=8.0
        Largest absolute value after that.
    precision : {"float64", "float32"}, default="float64"
        Of stored inverse correlations.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
    verbose : int, default=0

    Attributes
    ----------
    U_, coef_, feature_coef_, intercept_, center_, scale_, n_iter_, n_singular_, validation_errors_, n_features_in_
        As in `SLRMRegressor`.

    See Also
    --------
    SLRMRegressor : Lets labels shape the subspace; `lam1` says how much.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.regression import SMPCRRegressor
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
        "constant_passes": [Interval(Integral, 1, None, closed="left")],
        "ridge": [Interval(Real, 0, None, closed="left")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        options: Literal["paper"] | None = None,
        lam: float = 1e-3,
        rho: float = 1e-3,
        constant_passes: int = 1,
        ridge: float = 0.0,
        delta: float = 10.0,
        max_iter: int = 100,
        validation_fraction: float = 0.25,
        gate: float | None = None,
        center: bool = True,
        scale: bool = True,
        clip: float | None = 8.0,
        precision: Literal["float64", "float32"] = "float64",
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.options = options
        self.lam = lam
        self.rho = rho
        self.constant_passes = constant_passes
        self.ridge = ridge
        self.delta = delta
        self.max_iter = max_iter
        self.validation_fraction = validation_fraction
        self.gate = gate
        self.center = center
        self.scale = scale
        self.clip = clip
        self.precision = precision
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
        rows, labels, d = self._prepare(X, y)
        if labels.shape[1] != 1:
            raise ValueError(
                f"SMPCRRegressor takes one target; y has {labels.shape[1]}. Use MPCRRegressor or SLRMRegressor."
            )
        if d > LARGEST_CORE_RANK:
            raise ValueError(
                f"n_components must be at most {LARGEST_CORE_RANK} for SMPCRRegressor; got {d}. Use fewer, or MPCRRegressor."
            )
        rng = generator(self.random_state)
        if self._printed:
            found = self._fit_printed(rows, labels[:, 0], *given_start(U0, w0, rows.shape[1], d), rng)
        else:
            found = self._fit_interleaved(rows, labels[:, 0], rng)
        self._adopt(found, rows, labels, 0.0, 0.0)
        return self

    def _fit_printed(self, rows: Any, y: Any, U: Any, w: Any, rng: np.random.Generator) -> Subspace:
        d = self.n_components_
        return fit_smpcr(
            rows,
            y,
            first_basis(rows, d, rng)[0] if U is None else U,
            np.zeros(d) if w is None else w,
            lam=float(self.lam),
            rho=float(self.rho),
            delta=float(self.delta),
            passes=self.max_iter,
            constant_passes=self.constant_passes,
            precision=self.precision,
        )

    def _fit_interleaved(self, rows: Any, y: Any, rng: np.random.Generator) -> Subspace:
        count = round(self.validation_fraction * rows.shape[0])
        found, self.validation_errors_ = fit_interleaved(
            rows,
            y,
            self.n_components_,
            lam2=float(self.lam),
            rho=float(self.rho),
            delta=float(self.delta),
            ridge=float(self.ridge),
            max_passes=self.max_iter,
            constant_passes=self.constant_passes,
            patience=5,
            holdout=np.sort(rng.permutation(rows.shape[0])[:count]),
            precision=self.precision,
            rng=rng,
            progress=(lambda step, value: print(f"[lacunar] SMPCR pass {step}: {value:.3g}")) if self.verbose else None,
        )
        return found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags
