"""`SLRMOnlineRegressor`: Algorithm 1 of Ganti and Willett (2015) as printed, and regression along a stream of rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from lacunar._codes import row_codes
from lacunar._log import say
from lacunar._random import generator
from lacunar._snapshot import all_or_nothing
from lacunar._turns import changes
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.labels import lasso_on_sums
from lacunar.lowrank.parts import Whole
from lacunar.lowrank.regression import (
    Subspace,
    SubspaceRegression,
    gate_passes,
    given_start,
    refuse_extra,
    shortest_codes,
)
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls, SharedRls, Tracker, forgetting
from lacunar.observed import Observed
from lacunar.observed.batches import labelled, one_pass

_Floats = NDArray[np.float64]
_Pairs = tuple[Observed, _Floats]  # rows and their labels (n,)

GAMMA = 1e-3  # of (6), what section 6 sets
LAM1 = 10.0  # lambda_1 must be finite; the paper prints no value
PENALTY = 1e-3  # lambda_2 and lambda_3, which must be positive; the paper prints no value
_HELD = 0.25  # share of the rows that `options="paper"` validates on where `fit` gets none
# On codes of a stream: where a shared correlation starts to learn it, and what those of single columns keep.
_RIDGE = 1e-3


def _streams(estimator: SLRMOnlineRegressor) -> bool:
    if estimator.options is not None:
        raise AttributeError(
            f"partial_fit and fit_batches need options=None; got options={estimator.options!r}. Set it, or call fit on all rows."
        )
    return True


class SLRMOnlineRegressor(SubspaceRegression):
    """SLRM one row after the other: recursive least squares along a stream, or the published algorithm to the letter.

    The model is that of `SLRMRegressor`. By default rows stream through recursive least squares with a learned ridge, and label
    weights come from sums over the labelled rows. `options="paper"` is Algorithm 1 of [1]_, for reproduction.

    Parameters
    ----------
    n_components : int or None, default=None
        At most the number of columns and 64. None is 10, or the number of columns where there are fewer.
    options : {"paper"} or None, default=None
        "paper" is Algorithm 1 of [1]_ to the letter; `SLRMRegressor` is more accurate and 10 to 30 times faster. Then
        `rho`, `validate`, `gate` and the further arguments of `fit` count; columns and labels are neither centred nor scaled, there
        is no ridge and no intercept, and rows that `gate` refuses are predicted as 0. "As printed" in the documentation lists
        every difference.
    lam1 : "auto", "inf" or float, default="auto"
        Weight of the entries against the label while the subspace is learned (lambda_1 of (5)). Infinite: the subspace
        does not see labels. "auto" is "inf", and 10 for `options="paper"`, where [1]_ asks for a finite one and prints no value.
    alpha : "auto" or float, default="auto"
        Penalty on w, as in scikit-learn's ElasticNet. "auto" is a ridge chosen by exact leave-one-out in `fit` and next to none in
        `partial_fit`; for `options="paper"` it is lambda_2 = lambda_3 = 1e-3.
    l1_ratio : float, default=0.0
        Share of the l1 norm in that penalty: lambda_2 = 2 alpha l1_ratio and lambda_3 = alpha (1 - l1_ratio) of (5).
    correlation : {"shared", "per-column"}, default="shared"
        Of the stream: one correlation for all columns, or an inverse correlation (d, d) for each.
    forget : "window", "auto" or float, default="window"
        Of the stream: what a step multiplies the past by; the growing window 1 - 3 / (t + 300), what `PETRELS` learns with
        "auto" while the subspace moves, or a number in (0, 1].
    rho : float, default=1e-3
        Of `options="paper"`: eta_t is rho in the first pass, then rho / t.
    validate : {"step", "pass"} or None, default="step"
        Of `options="paper"`: steps 9 to 13 after every step, as printed, or after every pass, which is faster by as much as there
        are rows in a pass and chooses no worse. With None no row is held out and the last iterate is kept.
    max_iter : int or None, default=None
        Passes of `fit`. None is 4, and 1 for `options="paper"`, as in Algorithm 1; section 6 has up to 500.
    gate : float or None, default=None
        gamma of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gate get the mean label. None is no gate, and 0.001 for
        `options="paper"`, as in section 6: that refuses nearly every row with a missing entry.
    standardize : bool, default=True
        Subtract column means, divide by standard deviations, over observed entries, and clip at 8. In a stream means and
        deviations are those of the first batch.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
    n_jobs : int, default=None
        Threads of predictions. The result does not depend on it.
    verbose : int, default=0
        Whether to report validations.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace of the standardised rows.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        The same in units of the data's columns.
    intercept_ : float
    sizes_ : ndarray of shape (d,)
        Lengths of the columns of the basis in which codes have variance `tau_`.
    tau_, ridge_ : float
        Variance of a code, and the ridge on codes.
    mean_, scale_, observed_columns_ : ndarrays of shape (D,)
        Mean and standard deviation of the columns, and whether one was ever observed.
    n_features_in_ : int
    sigma2_ : float or None
        Variance of an entry's noise (standardised); None for `options="paper"` and `correlation="per-column"`.
    state_ : dict
        What the stream goes on from.
    validation_errors_ : list of float
        Of `options="paper"`, by step or pass.
    progressive_mse_ : float
        Of the stream: mean squared error on rows before they were learned from, last pass.

    Raises
    ------
    ValueError
        In `fit`: infinite entries; more than one target; `n_components` above the number of columns; with `options="paper"`
        parameters that the algorithm does not have. In `partial_fit`: another number of columns, values that overflow; the model
        is then as it was.

    See Also
    --------
    SLRMRegressor : From all rows at once, with several targets and standard deviations.
    PETRELS : The subspace alone, along a stream.

    Notes
    -----
    A row costs O(o d^2 + d^3) for o entries, whatever D is.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Algorithms 1 and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.lowrank import SLRMOnlineRegressor
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(400, 2))
    >>> X = a @ rng.normal(size=(2, 12)) + 0.1 * rng.normal(size=(400, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> y = a[:, 0]
    >>> model = SLRMOnlineRegressor(2, random_state=0)
    >>> for start in range(0, 300, 50):
    ...     model = model.partial_fit(X[start : start + 50], y[start : start + 50])
    >>> bool(model.score(X[300:], y[300:]) > 0.9)
    True
    """

    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "options": [StrOptions({"paper"}), None],
        "lam1": [StrOptions({"auto", "inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "correlation": [StrOptions({"shared", "per-column"})],
        "forget": [StrOptions({"window", "auto"}), Interval(Real, 0, 1, closed="right")],
        "rho": [Interval(Real, 0, None, closed="neither")],
        "validate": [StrOptions({"step", "pass"}), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        options: Literal["paper"] | None = None,
        lam1: float | Literal["auto", "inf"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        l1_ratio: float = 0.0,
        correlation: Literal["shared", "per-column"] = "shared",
        forget: float | Literal["window", "auto"] = "window",
        rho: float = 1e-3,
        validate: Literal["step", "pass"] | None = "step",
        max_iter: int | None = None,
        gate: float | None = None,
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.options = options
        self.lam1 = lam1
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.correlation = correlation
        self.forget = forget
        self.rho = rho
        self.validate = validate
        self.max_iter = max_iter
        self.gate = gate
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @changes
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def fit(
        self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None, U0: Any = None, w0: Any = None
    ) -> SLRMOnlineRegressor:
        """Pass over the rows `max_iter` times, the later passes of a stream in random order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.
        X_val, y_val : array-likes as X and y, default=None
            Of `options="paper"`: the hold-out set of steps 9 to 13. Without them a quarter of the rows is held out.
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
        rows, labels = self._begin(X, y)
        self._check_streamed(labels, "SLRMRegressor")
        if self._printed:
            held = None
            if X_val is not None:
                table = self._check_rows(X_val)
                held = table, self._check_labels(y_val, table)[0][:, 0]
            self._fit_paper(rows, labels, held, *given_start(U0, w0, rows.shape[1], self.n_components_))
        else:
            self._fit_stream(rows, labels)
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator]
    @changes
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any) -> SLRMOnlineRegressor:
        """Follow further rows; only with `options=None`.

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
        if hasattr(self, "state_"):
            rows = self._check_rows(X)
            rows, labels = self._standardised(rows), self._check_labels(y, rows)[0] - self.label_mean_
            tracker: Any = self._tracker_class.of(self.state_)
        else:
            rows, labels = self._begin(X, y)
            self._check_streamed(labels, "SLRMRegressor")
            tracker = self._start_stream(rows, generator(self.random_state))
        with tracker.undone(rows):
            self._follow(tracker, rows, labels[:, 0], None)
            self.labelled_ = self.labelled_ | ~np.isnan(labels).all(axis=0)
            self._read_stream(tracker, rows, labels)
        return self

    @available_if(_streams)  # type: ignore[untyped-decorator]
    def fit_batches(self, batches: Iterable[Any]) -> SLRMOnlineRegressor:
        """Fit in one pass over batches; memory is that of the model and one batch. Only with `options=None`.

        Parameters
        ----------
        batches : iterable of (X, y)
            Rows and their labels, NaN where unknown: what `lacunar.observed.read_batches` yields with a target, or any generator.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator. After an error as after the batch before, or as
            before the call if it was the first.
        """
        one_pass(self, batches, lambda batch: self.partial_fit(*labelled(batch)))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def _gamma(self) -> float | None:
        return GAMMA if self._printed and self.gate is None else self.gate

    def _lam1(self) -> float:
        if self.lam1 == "auto":
            return LAM1 if self._printed else np.inf
        return float(self.lam1)

    def _penalties(self) -> tuple[float, float]:
        """lambda_2 and lambda_3 of (5)."""
        if self.alpha == "auto":
            return (PENALTY, PENALTY) if self._printed else (0.0, 0.0)
        return 2 * float(self.alpha) * self.l1_ratio, float(self.alpha) * (1 - self.l1_ratio)

    # -- Algorithm 1 ------------------------------------------------------------------------------------------------

    def _fit_paper(
        self, rows: Observed, labels: _Floats, held: _Pairs | None, U: _Floats | None, w: _Floats | None
    ) -> None:
        """Steps 1 to 14 from U and w."""
        self._refuse_unprinted(correlation=("shared",), forget=("window", 1))
        rng, y = generator(self.random_state), labels[:, 0]
        train = np.arange(rows.shape[0])
        if held is None:
            share = 0.0 if self.validate is None else _HELD
            out = np.sort(rng.permutation(len(train))[: round(share * len(train))])
            held, train = (rows[out], y[out]), np.setdiff1d(train, out)
        learned = rows[train], y[train]
        U = first_basis(learned[0], self.n_components_, rng)[0] if U is None else U
        w = first_weights(*learned, U, self._penalties()[0]) if w is None else w
        found = self._descend(learned, held, U, w)
        self._adopt(found, Whole((rows, labels)), 0.0, 0.0)

    def _descend(self, learned: _Pairs, held: _Pairs, U: _Floats, w: _Floats) -> Subspace:
        """Steps 3 to 13: the iterate with the least validation error, and the last one without rows to validate on."""
        (rows, y), known = learned, np.flatnonzero(~np.isnan(held[1]))
        held_rows, held_labels = held[0][known], held[1][known]
        n, passes, gamma = rows.shape[0], self._passes(), float(self._gamma() or 0.0)
        lam2, lam3 = self._penalties()
        tracker = PerColumnRls(
            U, w, lam1=self._lam1(), lam2=lam2, lam3=lam3, rho=float(self.rho), orthonormal=True,
            constant_until=max(n, 1), continuous=False,
        )  # fmt: skip
        best, self.validation_errors_ = (U, w), list[float]()
        for step, cut in enumerate(_cuts(n, passes, self.validate), start=1):
            try:
                tracker.run(rows[cut], np.ascontiguousarray(y[cut]), undo=False)
            except NotFiniteError as error:
                self._settle_for_best(step, error)
                break
            if len(known):
                now, before = (tracker.basis(), tracker.w.copy()), min(self.validation_errors_, default=np.inf)
                found = validation_error(held_rows, held_labels, *now, gamma)
                best = now if found < before else best
                self.validation_errors_.append(found)
                say(self.verbose, "SLRM paper, validation %d: error %.3g", step, found)
        U, w = best if self.validation_errors_ else (tracker.basis(), tracker.w.copy())
        return Subspace(U, np.zeros(len(U)), 0.0, None, 1.0, w[:, None], passes, True, tracker.n_singular)

    def _settle_for_best(self, step: int, error: NotFiniteError) -> None:
        """Weights overflow: a warning where an iterate before was finite, otherwise an error."""
        if np.isfinite(min(self.validation_errors_, default=np.inf)):
            warnings.warn(
                f"the weights overflow after validation {step - 1} with rho={self.rho:g}; what was best on held-out rows is kept. "
                "Use a smaller rho.",
                ConvergenceWarning,
                stacklevel=2,
            )
            return
        raise NotFiniteError(
            f"rho must keep the weights finite; with rho={self.rho:g} they overflow at the start. Use a smaller rho, or "
            "smaller values in X."
        ) from error

    def _passes(self) -> int:
        return int(self.max_iter) if self.max_iter is not None else 1 if self._printed else 4

    # -- the stream -------------------------------------------------------------------------------------------------

    @property
    def _tracker_class(self) -> type[Tracker]:
        return SharedRls if self.correlation == "shared" else PerColumnRls

    def _fit_stream(self, rows: Observed, labels: _Floats) -> None:
        rng = generator(self.random_state)
        tracker = self._start_stream(rows, rng)
        for number in range(self._passes()):
            order = None if number == 0 else rng.permutation(rows.shape[0])
            self._follow(tracker, rows, labels[:, 0], order)
        self._read_stream(tracker, rows, labels, refit=True)

    def _start_stream(self, rows: Observed, rng: np.random.Generator) -> PerColumnRls | SharedRls:
        """A tracker from the singular vectors of the first rows."""
        basis, _ = first_basis(rows, self.n_components_, rng)
        options: dict[str, Any] = {"lam1": self._lam1(), "ridge": _RIDGE, **forgetting(self.forget)}
        if self.correlation == "shared":
            return SharedRls(basis, automatic=True, **options)
        return PerColumnRls(basis, **options)

    def _follow(self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: _Floats, order: Any) -> None:
        predictions, _ = tracker.run(rows, np.ascontiguousarray(labels), order)
        known = ~np.isnan(labels)
        self.progressive_mse_ = float(np.mean((predictions - labels)[known] ** 2)) if known.any() else float("nan")
        weights = stream_weights(tracker, *self._penalties())
        if weights is not None:
            tracker.w[:] = weights  # what the next rows are predicted with, and coded when lam1 is finite

    def _read_stream(
        self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: _Floats, *, refit: bool = False
    ) -> None:
        """The tracker's subspace and weights; `refit` regresses on the codes of the rows at hand, which old sums are not."""
        self.state_ = tracker.state()
        found = None if refit else stream_weights(tracker, *self._penalties())
        ridge, sigma2 = tracker.ridge(), tracker.sigma2()
        tau = sigma2 / ridge if sigma2 is not None and ridge > 0 else 1.0
        mean, weights = np.zeros(len(tracker.v)), None if found is None else found[:, None]
        subspace = Subspace(tracker.v, mean, ridge, sigma2, tau, weights, 1, True, tracker.n_singular).rotated()
        self._adopt(subspace, Whole((rows, labels)), self.alpha, self.l1_ratio)

    def _check_loaded(self) -> None:
        """One target, and a state of these columns and components."""
        super()._check_loaded()
        if "state_" in vars(self):
            shape = self.n_features_in_, self.n_components_
            self.state_ = self._tracker_class.renewed(self.state_, shape)
            self._tracker_class.check(self.state_, shape)


def stream_weights(tracker: PerColumnRls | SharedRls, lam1: float, lam2: float) -> _Floats | None:
    """Weights (d,) of (4) from a tracker's sums over labelled rows, in its own coordinates; None without any.

    The search starts at the minimiser without |w|_1 and not at the weights before: batches of other sizes end at the same bits.
    """
    second, first, labels = tracker.label_sums()
    if not labels > 0:
        return None
    unit = float(np.trace(second)) / len(first) / labels
    start: _Floats = np.zeros(len(first))
    lam2 = max(lam2, 1e-9 * unit)
    if lam2 > 0:
        start = np.asarray(np.linalg.solve(second / labels + lam2 * np.eye(len(first)), first / labels))
    return lasso_on_sums(second, first, labels, lam1, lam2, start)


def first_weights(rows: Observed, y: _Floats, U: _Floats, lam2: float) -> _Floats:
    """Step 1: the lasso (4) of the known labels on the projections of their rows."""
    known = ~np.isnan(y)
    if not known.any():
        return np.zeros(U.shape[1])
    codes = shortest_codes(rows[np.flatnonzero(known)], U)
    start = np.zeros(U.shape[1])
    return lasso_on_sums(codes.T @ codes, codes.T @ y[known], len(codes), lam2, 0.0, start, sweeps=100_000)


def validation_error(rows: Observed, y: _Floats, U: _Floats, w: _Floats, gamma: float) -> float:
    """Step 9: mean squared error of (6), which is 0 for rows that the gate refuses."""
    made, passes = np.zeros(len(y)), np.flatnonzero(gate_passes(rows, U, gamma))
    made[passes] = row_codes(rows[passes], U, 0.0).code @ w
    with np.errstate(over="ignore"):
        return float(np.mean((made - y) ** 2))


def _cuts(n: int, passes: int, validate: str | None) -> Iterator[slice]:
    """Rows between two validations, in the order of the rows."""
    size = 1 if validate == "step" else n
    for _ in range(passes):
        for start in range(0, n, size):
            yield slice(start, start + size)
