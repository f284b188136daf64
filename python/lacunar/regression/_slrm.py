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

from lacunar._one_pass import labelled, one_pass
from lacunar._parts import Whole
from lacunar._random import generator
from lacunar._undo import all_or_nothing
from lacunar.regression._base import SubspaceRegression
from lacunar.regression._batch import BatchFits
from lacunar.regression._streams import StreamedFits

_Floats = NDArray[np.float64]


def _streams(estimator: SLRMRegressor) -> bool:
    if estimator.solver != "stochastic":
        raise AttributeError(
            f"partial_fit and fit_batches need solver='stochastic'; got solver={estimator.solver!r}. Set it, or call fit on all rows."
        )
    return True


class SLRMRegressor(BatchFits, StreamedFits, SubspaceRegression):
    """Linear regression through a low-dimensional subspace that rows with holes share.

    Rows are x = U a + noise, seen in part, and labels y = w a + noise. Subspace, weights and the ridge that codes need are
    learned together ([1]_); labels may be missing (NaN) too. A row is predicted from the code of what it shows.

    Parameters
    ----------
    n_components : int, default=10
        Dimension d of the subspace; at most the number of columns is used. With a learned ridge, too many cost little.
    solver : {"em", "als", "stochastic", "paper"}, default="em"
        "em" is maximum likelihood (factor analysis with one noise variance), "als" alternating least squares with a learned
        ridge, both on all rows; "stochastic" streams rows through recursive least squares and is the solver of `partial_fit`;
        "paper" is Algorithm 1 of [1]_ as printed, for reproduction: the others are more accurate and 10 to 30 times faster.
    lam1 : "inf" or float, default="inf"
        Weight of the entries against the label while the subspace is learned (lambda_1 of (5)). Infinite: the subspace
        does not see labels. A small one helps where y hangs on a direction of little variance.
    alpha : "auto" or float, default="auto"
        Penalty on w, as in scikit-learn's ElasticNet. "auto" is a ridge chosen by exact leave-one-out, and for
        `solver="paper"` lambda_2 = 1e-3 and lambda_3 = 0.
    l1_ratio : float, default=0.0
        Share of the l1 norm in that penalty: lambda_2 = 2 alpha l1_ratio and lambda_3 = alpha (1 - l1_ratio) of (5). It cannot
        make latent factors sparse: see Notes.
    ridge : "auto" or float, default="auto"
        Ridge on codes; "auto" is noise over signal, learned. `solver="em"` always learns it; "paper" takes "auto" as 0.
    state : {"shared", "per-row"}, default="shared"
        Of "stochastic": one correlation for all columns, or an inverse correlation (d, d) for each.
    forget : "window", "auto" or float, default="window"
        Of "stochastic": what a step multiplies the past by; the growing window 1 - 3 / (t + 300), an adaptive one that follows
        abrupt changes, or a number in (0, 1].
    orthonormalize : {"literal", "consistent", "none"}, default="literal"
        Of "paper", step 7: as printed (without turning R_j and w), or only when U is read out. Turning R_j and w with U
        gives the subspace of "none", so that "consistent" is computed as "none".
    delta : float, default=10.0
        What the inverse correlations start from, times the identity.
    rho : float, default=1e-3
        Of "paper": step of w, constant for `constant_passes` passes, then falling as 1 / t.
    constant_passes : int, default=1
    validation_fraction : float, default=0.25
        Of "paper": share of rows held out, on which the best pass is chosen.
    max_iter : int, default=100
        Steps of "em", sweeps of "als", passes of "stochastic" (at most 4 by default) and "paper".
    tol : float, default=1e-4
        Relative change of the basis at which "em" and "als" stop; "paper" stops after 5 passes without improvement.
    gate : float or None, default=None
        gamma of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gate get the mean label. The printed 0.001 rejects every row
        with a hole; a ridge does better than any gate.
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
        Steps, and rows whose code needed rescue.
    converged_ : bool
    validation_errors_ : list of float
        Of "paper", by pass.
    progressive_mse_ : float
        Of "stochastic" and "paper": mean squared error on rows before they were learned from, last pass.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (D,)

    Raises
    ------
    ValueError
        In `fit`: infinite entries, more components than columns. In `predict`: no label was known. In `partial_fit`: another
        number of columns, values that overflow; the model is then as it was.

    See Also
    --------
    SLRMRegressorCV : Chooses n_components, lam1 and alpha.
    lacunar.tracking.PETRELS : The subspace alone, along a stream.

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
        "solver": [StrOptions({"em", "als", "stochastic", "paper"})],
        "lam1": [StrOptions({"inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "ridge": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "state": [StrOptions({"shared", "per-row"})],
        "forget": [StrOptions({"window", "auto"}), Interval(Real, 0, 1, closed="right")],
        "orthonormalize": [StrOptions({"literal", "consistent", "none"})],
        "delta": [Interval(Real, 0, None, closed="neither")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "constant_passes": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "precision": [StrOptions({"float64", "float32"})],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        solver: Literal["em", "als", "stochastic", "paper"] = "em",
        lam1: float | Literal["inf"] = "inf",
        alpha: float | Literal["auto"] = "auto",
        l1_ratio: float = 0.0,
        ridge: float | Literal["auto"] = "auto",
        state: Literal["shared", "per-row"] = "shared",
        forget: float | Literal["window", "auto"] = "window",
        orthonormalize: Literal["literal", "consistent", "none"] = "literal",
        delta: float = 10.0,
        rho: float = 1e-3,
        constant_passes: int = 1,
        validation_fraction: float = 0.25,
        max_iter: int = 100,
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
        self.solver = solver
        self.lam1 = lam1
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.ridge = ridge
        self.state = state
        self.forget = forget
        self.orthonormalize = orthonormalize
        self.delta = delta
        self.rho = rho
        self.constant_passes = constant_passes
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
    def fit(self, X: Any, y: Any) -> SLRMRegressor:
        """Fit to rows and labels, both with holes.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,) or (n, targets)
            NaN where unknown.

        Returns
        -------
        self
        """
        if self.solver in ("em", "als"):
            self._fit_parts(Whole((X, y)))
            return self
        rows = self._check_rows(X, reset=True)
        labels, self.one_target_ = self._check_labels(y, rows)
        d = self._check_rank(rows.shape[1])
        self._fit_columns(rows)
        rows = self._standardised(rows)
        self._center_labels(labels)
        labels = labels - self.label_mean_
        if self.solver == "stochastic":
            self._fit_stream(rows, labels)
        else:
            self._fit_paper(rows, labels, d)
        return self

    def _center_labels(self, labels: _Floats) -> None:
        known = ~np.isnan(labels)
        self.labelled_ = known.any(axis=0)
        total = np.where(known, labels, 0.0).sum(axis=0)
        self.label_mean_ = total / np.maximum(known.sum(axis=0), 1)

    def _progress(self) -> Any:
        if not self.verbose:
            return None
        word = "validation error" if self.solver == "paper" else "change"
        return lambda step, value: print(f"[lacunar] SLRM {self.solver} step {step}: {word} {value:.3g}")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self.solver in ("em", "als")
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
