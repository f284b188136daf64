"""`SLRMRegressor`: regression through a hidden subspace, from rows with holes and labels with holes."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar.lowrank.parts import Whole
from lacunar.observed.batches import labelled, one_pass
from lacunar.regression._base import SubspaceRegression
from lacunar.regression._batch import BatchFits
from lacunar.regression._paper import GAMMA, LAM1, refuse_extra
from lacunar.regression._streams import StreamedFits

_Floats = NDArray[np.float64]


def _streams(estimator: SLRMRegressor) -> bool:
    if estimator.solver != "stochastic" or estimator.options is not None:
        raise AttributeError(
            f"partial_fit and fit_batches need solver='stochastic' and options=None; got solver={estimator.solver!r} and "
            f"options={estimator.options!r}. Set them, or call fit on all rows."
        )
    return True


class SLRMRegressor(BatchFits, StreamedFits, SubspaceRegression):
    """Linear regression through a low-dimensional subspace that rows with holes share.

    Rows are x = U a + noise, seen in part, and labels y = w a + noise. Subspace, weights and the ridge that codes need are
    learned together ([1]_); labels may be missing (NaN) too. A row is predicted from the code of what it shows.

    Parameters
    ----------
    n_components : int or None, default=None
        Dimension d of the subspace, at most the number of columns. None is 10, or the number of columns where there are fewer.
        With a learned ridge, too many cost little.
    options : {"paper"} or None, default=None
        "paper" is Algorithm 1 of [1]_ to the letter, for reproduction; the solvers below are more accurate and 10 to 30 times
        faster. Then `lam1`, `alpha`, `l1_ratio`, `delta`, `rho`, `constant_passes`, `max_iter`, `gate`, `validate` and the
        extra arguments of `fit` count; columns and labels are neither centred nor scaled nor clipped, there is no ridge and no
        intercept, and rows that `gate` refuses are predicted as 0. "As printed" in the documentation lists every difference.
    solver : {"em", "als", "stochastic"}, default="em"
        "em" is maximum likelihood (factor analysis with one noise variance), "als" alternating least squares with a learned
        ridge, both on all rows; "stochastic" streams rows through recursive least squares and is the solver of `partial_fit`.
    lam1 : "auto", "inf" or float, default="auto"
        Weight of the entries against the label while the subspace is learned (lambda_1 of (5)). Infinite: the subspace
        does not see labels. A small one helps where y hangs on a direction of little variance. "auto" is "inf", and 10 for
        `options="paper"`, where [1]_ asks for a finite one and prints no value.
    alpha : "auto" or float, default="auto"
        Penalty on w, as in scikit-learn's ElasticNet. "auto" is a ridge chosen by exact leave-one-out, and for
        `options="paper"` lambda_2 = lambda_3 = 1e-3.
    l1_ratio : float, default=0.0
        Share of the l1 norm in that penalty: lambda_2 = 2 alpha l1_ratio and lambda_3 = alpha (1 - l1_ratio) of (5). It cannot
        make latent factors sparse: see Notes.
    ridge : "auto" or float, default="auto"
        Ridge on codes; "auto" is noise over signal, learned. `solver="em"` always learns it.
    state : {"shared", "per-row"}, default="shared"
        Of "stochastic": one correlation for all columns, or an inverse correlation (d, d) for each.
    forget : "window", "auto" or float, default="window"
        Of "stochastic": what a step multiplies the past by; the growing window 1 - 3 / (t + 300), an adaptive one that follows
        abrupt changes, or a number in (0, 1].
    delta : float, default=10.0
        What the inverse correlations start from, times the identity.
    rho : float, default=1e-3
        Of `options="paper"`: eta_t = rho for `constant_passes` passes, then rho / t.
    constant_passes : int, default=1
    validate : {"step", "pass"}, default="step"
        Of `options="paper"`: steps 9 to 13 after every step, as printed, or after every pass, which is faster by as much as there
        are rows in a pass and chooses no worse.
    validation_fraction : float, default=0.25
        Of `options="paper"`: share of the rows held out for that when `fit` gets no `X_val`. With 0 the last iterate is kept.
    max_iter : int or None, default=None
        Steps of "em", sweeps of "als" (None: 100), passes of "stochastic" (4) and of `options="paper"` (1, as Algorithm 1; section
        6 has up to 500).
    tol : float, default=1e-4
        Relative change of the basis at which "em" and "als" stop.
    gate : float or None, default=None
        gamma of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gate get the mean label. None is no gate, and 0.001 for
        `options="paper"`, as in section 6: that refuses nearly every row with a missing entry. A ridge does better than any gate.
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
        Threads of "em", "als" and of predictions. The result does not depend on it.
    verbose : int, default=0
        Whether to report steps.

    Attributes
    ----------
    U_ : ndarray of shape (D, d)
        Orthonormal basis of the subspace of the standardised rows.
    coef_ : ndarray of shape (d,) or (d, targets)
        w in the coordinates of `U_`.
    feature_coef_ : ndarray of shape (D,) or (D, targets)
        U w in units of the data: what to show and interpret; no rotation of the subspace changes it.
    intercept_ : float or ndarray of shape (targets,)
    sigma2_ : float or None
        Variance of an entry's noise (standardised); None where the solver learns none.
    tau_ : float
        Variance of a code, so that `ridge_` = sigma2_ / tau_.
    ridge_ : float
    center_, scale_, observed_columns_ : ndarrays of shape (D,)
    label_variance_ : ndarray of shape (targets,)
        Of y around w a.
    n_components_ : int
    n_iter_, n_singular_ : int
        Steps, and rows whose code was not unique.
    converged_ : bool
    validation_errors_ : list of float
        Of `options="paper"`, by step or pass.
    progressive_mse_ : float
        Of "stochastic": mean squared error on rows before they were learned from, last pass.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (D,)

    Raises
    ------
    ValueError
        In `fit`: infinite entries; `n_components` above the number of columns; with `options="paper"` parameters that the
        algorithm does not have. In `predict`: no label was known. In `partial_fit`: another
        number of columns, values that overflow; the model is then as it was.

    See Also
    --------
    SLRMRegressorCV : Chooses n_components, lam1 and alpha.
    lacunar.lowrank.PETRELS : The subspace alone, along a stream.

    Notes
    -----
    (5) is unchanged by U -> U Q, a -> Q^T a, w -> Q^T w but for the l1 norm, which is least for a w with one entry that is
    not 0: the penalty shrinks the length of w and selects nothing. Classification is `KarmaClassifier`'s.

    A step of "em" costs O(nnz d^2 + n d^3), a sweep of "als" O(nnz d^2 + (n + D) d^3), a row of "stochastic" O(o d^2 + d^3) for
    o entries, whatever D is.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.regression import SLRMRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(300, 2))
    >>> X = a @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(300, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> y = a[:, 0]
    >>> model = SLRMRegressor(2, random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "options": [StrOptions({"paper"}), None],
        "solver": [StrOptions({"em", "als", "stochastic"})],
        "lam1": [StrOptions({"auto", "inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "state": [StrOptions({"shared", "per-row"})],
        "forget": [StrOptions({"window", "auto"}), Interval(Real, 0, 1, closed="right")],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "constant_passes": [Interval(Integral, 1, None, closed="left")],
        "validate": [StrOptions({"step", "pass"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        options: Literal["paper"] | None = None,
        solver: Literal["em", "als", "stochastic"] = "em",
        lam1: float | Literal["auto", "inf"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        l1_ratio: float = 0.0,
        ridge: float | Literal["auto"] = "auto",
        state: Literal["shared", "per-row"] = "shared",
        forget: float | Literal["window", "auto"] = "window",
        delta: float = 10.0,
        rho: float = 1e-3,
        constant_passes: int = 1,
        validate: Literal["step", "pass"] = "step",
        validation_fraction: float = 0.25,
        max_iter: int | None = None,
        tol: float = 1e-4,
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
        self.solver = solver
        self.lam1 = lam1
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.ridge = ridge
        self.state = state
        self.forget = forget
        self.delta = delta
        self.rho = rho
        self.constant_passes = constant_passes
        self.validate = validate
        self.validation_fraction = validation_fraction
        self.max_iter = max_iter
        self.tol = tol
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
    def fit(
        self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None, U0: Any = None, w0: Any = None
    ) -> SLRMRegressor:
        """Fit to rows and labels, both with holes.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.
        X_val, y_val : array-likes as X and y, default=None
            Of `options="paper"`: the hold-out set of steps 9 to 13. Without them a share of the rows is held out.
        U0 : array-like of shape (D, d), default=None
            Of `options="paper"`: where U starts, with orthonormal columns. Without it, the singular vectors of the rows filled
            with zeros (section 4.2).
        w0 : array-like of shape (d,), default=None
            Of `options="paper"`: where w starts. Without it, the lasso (4) on the projections of the rows on `U0`.

        Returns
        -------
        self
        """
        if not self._printed:
            refuse_extra(X_val=X_val, y_val=y_val, U0=U0, w0=w0)
        elif (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; got one of them. Pass both, or none.")
        if self.solver in ("em", "als") and not self._printed:
            self._fit_parts(Whole((X, y)))
            return self
        rows = self._check_rows(X, reset=True)
        labels, self.one_target_ = self._check_labels(y, rows)
        self._check_rank(rows.shape[1])
        self._fit_columns(rows)
        rows = self._standardised(rows)
        self._center_labels(labels)
        labels = labels - self.label_mean_
        if self._printed:
            held = None if X_val is None else self._check_held(X_val, y_val)
            self._fit_paper(rows, labels, held, U0, w0)
        else:
            self._fit_stream(rows, labels)
        return self

    def _check_held(self, X: Any, y: Any) -> tuple[Any, _Floats]:
        rows = self._check_rows(X, reset=False)
        return rows, self._check_labels(y, rows)[0][:, 0]

    def _gamma(self) -> float | None:
        return GAMMA if self._printed and self.gate is None else self.gate

    def _lam1(self) -> float:
        if self.lam1 == "auto":
            return LAM1 if self._printed else np.inf
        return float(self.lam1)

    def _passes(self) -> int:
        """Steps, sweeps or passes."""
        if self.max_iter is not None:
            return int(self.max_iter)
        return 1 if self._printed else 4 if self.solver == "stochastic" else 100

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        word = "paper, validation {}: error" if self._printed else f"{self.solver} step {{}}: change"
        return lambda step, value: print(f"[lacunar] SLRM {word.format(step)} {value:.3g}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.solver in ("em", "als") and not self._printed
        return tags

    @available_if(_streams)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> SLRMRegressor:
        """Follow further rows; only with `solver="stochastic"`.

        The first call fixes the column means and scales, the label mean and the start; later ones go on.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.

        Returns
        -------
        self
            After an error the model is as before the call.
        """
        self._add_batch(X, y, first=not hasattr(self, "tracker_"))
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def fit_batches(self, batches: Iterable[Any]) -> SLRMRegressor:
        """Fit in one pass over batches; memory is that of the model and one batch. Only with `solver="stochastic"`.

        Parameters
        ----------
        batches : iterable of (X, y)
            As in `partial_fit`: what `lacunar.observed.read_batches` yields with a target, or any generator.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator. After an error as after the batch before, or as
            before the call if it was the first.
        """
        one_pass(self, batches, lambda batch: self.partial_fit(*labelled(batch)))
        return self

    def _add_batch(self, X: Any, y: Any, *, first: bool) -> None:
        rows = self._check_rows(X, reset=first)
        labels, one = self._check_labels(y, rows)
        if first:
            self._check_rank(rows.shape[1])
            self._refuse_for_streams(labels)
            self.one_target_ = one
            self._fit_columns(rows)
            self._center_labels(labels)
        table, labels = self._standardised(rows), labels - self.label_mean_
        tracker = self._start_stream(table, generator(self.random_state)) if first else self._tracker()
        with tracker.undone(table):
            self._follow(tracker, table, labels[:, 0], None)
            self.labelled_ = self.labelled_ | ~np.isnan(labels).all(axis=0)
            self._read_stream(tracker, table, labels)
