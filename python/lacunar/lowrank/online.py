"""`SLRMOnlineRegressor`: regression through a hidden subspace, along a stream of rows."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.linalg import block_diag
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._lock import WholeRows, changes
from lacunar._random import generator
from lacunar._state import all_or_nothing
from lacunar._typing import Floats
from lacunar.lowrank.em import Fit, first_basis
from lacunar.lowrank.model import LowRankGaussian
from lacunar.lowrank.regression import SubspaceRegression, carried_rank
from lacunar.lowrank.ridge import LabelFit, lasso_on_sums
from lacunar.lowrank.supervised import append_labels
from lacunar.lowrank.trackers import PerColumnRls, SharedRls, Trace, forgetting
from lacunar.observed import Observed
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.columns import scale_columns
from lacunar.observed.rules import COUNT, Anything, Number, Rule, floats

# On latent coordinates of a stream: where a shared correlation starts to learn it, and what those of single columns keep.
_RIDGE = 1e-3
_CONSTANT = 3.0  # of the further column, in standard deviations of the others
_SCALE_ROWS = 2**14  # of a table, by which its columns are divided by one number or each by its own


class SLRMOnlineRegressor(SubspaceRegression):
    """SLRM one row after the other: recursive least squares along a stream.

    The model is that of `SLRMRegressor`. Rows stream through recursive least squares with a learned
    ridge, and label weights come from sums over the labelled rows. Algorithm 1 of [1]_ as printed
    is `lacunar.papers.slrm.PrintedSLRM`.

    Parameters
    ----------
    n_components : int or None, default=None
        At most the number of columns and 64. None is 10, or the number of columns where there are
        fewer, and in `fit` less where columns have few entries, as of `SLRMRegressor`.
    lam1 : "auto", "inf" or float, default="auto"
        Weight of the entries against the label, in standard deviations of y, while the subspace is
        learned (lambda_1 of (5)). Infinite: the subspace does not see labels. "auto" is "inf".
    alpha : "auto" or float, default="auto"
        Penalty on w, as in scikit-learn's ElasticNet of y in its standard deviations. "auto" is a
        ridge chosen by exact leave-one-out in `fit` and next to none in `partial_fit`.
    l1_ratio : float, default=0.0
        Share of the l1 norm in that penalty: lambda_2 = 2 alpha l1_ratio and lambda_3 = alpha (1 -
        l1_ratio) of (5).
    correlation : {"shared", "per-column"}, default="shared"
        One correlation for all columns, or an inverse correlation (d, d) for each.
    forget : "window", "auto" or float, default="window"
        What a step multiplies the past by; the growing window 1 - 3 / (t + 300), what `PETRELS`
        learns with "auto" while the subspace moves, or a number in (0, 1].
    max_iter : int, default=4
        Passes of `fit`.
    standardize : bool, default=True
        Subtract column means, divide by standard deviations, over observed entries, and clip at 8.
        In a stream deviations, also that of y, are those of the first batch, and means are learned
        from there on: a column of one value there is divided by the size of that value (at least
        1), and one that grows along the stream, as time stamps do, is better passed as differences.
        `fit`, and a first batch with enough entries for its components, divide all columns by their
        largest deviation where their noise is then more alike.
    sparse_missing : {"absent", "nan"}, default="absent"
        What a sparse X does not store: missing, or zero.
    random_state : int, RandomState or None, default=None
        Seed of what is drawn; an int gives the same result again.
    n_jobs : int, default=None
        Threads of predictions. The result does not depend on it.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        Orthonormal rows that span the subspace of the standardised rows.
    coef_ : ndarray of shape (d,)
        Weights in the coordinates of `components_`.
    feature_coef_ : ndarray of shape (D,)
        The same in units of the data's columns.
    intercept_ : float
        The prediction where all latent coordinates are 0.
    sizes_ : ndarray of shape (d,)
        Lengths of the columns of the basis in which latent coordinates have variance `tau_`.
    tau_, ridge_ : float
        Variance of a latent coordinate, and the ridge on them.
    mean_, scale_, observed_columns_ : ndarrays of shape (D,)
        Mean of the columns, what they are divided by, and whether one is used: not where it was
        never observed (in the first batch), or `fit` saw one value in all rows.
    first_mean_ : ndarray of shape (D,)
        Mean of the columns in `fit` or the first batch, to which the stream adds what it learns.
    label_mean_, label_scale_ : ndarrays of shape (1,)
        Mean and standard deviation of y in `fit` or the first batch, the latter 1 where it is
        constant.
    n_features_in_ : int
        Number of columns of X.
    sigma2_ : float or None
        Variance of an entry's noise (standardised); None for `correlation="per-column"`.
    state_ : dict
        What the stream goes on from.
    progressive_mse_ : float
        Mean squared error on rows before they were learned from, last pass.
    n_samples_seen_ : int
        Rows learned since the first call or `fit`, once a pass.

    Raises
    ------
    ValueError
        In `fit`: infinite entries; more than one target; `n_components` above the number of
        columns. In `partial_fit`: another number of columns: the model is then as it was; values
        that overflow: the rows before are learned.

    See Also
    --------
    SLRMRegressor : From all rows at once, with several targets and standard deviations.
    PETRELS : The subspace alone, along a stream.

    Notes
    -----
    A row costs O(o d^2 + d^3) for o entries, whatever D is.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Algorithms 1
       and 2.

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

    _several_targets: ClassVar[bool] = False
    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _schema: ClassVar[dict[str, Rule]] = {
        **SubspaceRegression._schema,
        "state_": Anything(),
        "first_mean_": floats("d"),
        "progressive_mse_": Number(finite=False),
        "n_samples_seen_": COUNT,
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **SubspaceRegression._parameter_constraints,
        "lam1": [StrOptions({"auto", "inf"}), Interval(Real, 0, None, closed="neither")],
        "alpha": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "correlation": [StrOptions({"shared", "per-column"})],
        "forget": [StrOptions({"window", "auto"}), Interval(Real, 0, 1, closed="right")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam1: float | Literal["auto", "inf"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        l1_ratio: float = 0.0,
        correlation: Literal["shared", "per-column"] = "shared",
        forget: float | Literal["window", "auto"] = "window",
        max_iter: int = 4,
        standardize: bool = True,
        sparse_missing: Literal["absent", "nan"] = "absent",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.lam1 = lam1
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.correlation = correlation
        self.forget = forget
        self.max_iter = max_iter
        self.standardize = standardize
        self.sparse_missing = sparse_missing
        self.random_state = random_state
        self.n_jobs = n_jobs

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any) -> SLRMOnlineRegressor:
        """Pass over the rows `max_iter` times, the later passes in random order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.

        Returns
        -------
        self
        """
        checked = self._read(X, y)
        rows, labels = self._begin_with(*checked)
        self._check_streamed(labels, "SLRMRegressor")
        rows, tracker = self._in_suited_units(checked[0], rows, labels)
        tracker = tracker or self._run(rows, labels)
        self._store_stream(tracker, rows, labels, refit=True)
        self.n_samples_seen_ = rows.shape[0] * self.max_iter
        return self

    def _in_suited_units(
        self, checked: Observed, rows: Observed, labels: Floats
    ) -> tuple[Observed, PerColumnRls | SharedRls | None]:
        """Standardised rows, divided by one number where that suits the model of 2^14 of them better; and a tracker
        that has learned them, where there was one.
        """
        shown = np.linspace(0, len(labels) - 1, min(len(labels), _SCALE_ROWS)).astype(np.intp)
        some = (rows, labels) if len(shown) == len(labels) else (rows[shown], labels[shown])
        tracker = self._run(*some)
        if self._find_one_scale(self._model_of(tracker), some):
            return self._standardised(checked), None
        return rows, tracker if len(shown) == len(labels) else None

    def _run(self, rows: Observed, labels: Floats) -> PerColumnRls | SharedRls:
        """A new tracker that has passed over standardised rows `max_iter` times."""
        rng = generator(self.random_state)
        tracker, extended = self._start(rows, rng), self._with_constant(rows)
        for number in range(self.max_iter):
            order = None if number == 0 else rng.permutation(rows.shape[0])
            self._weigh(tracker, tracker.run(extended, labels[:, 0].copy(), order), labels[:, 0])
        return tracker

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any) -> SLRMOnlineRegressor:
        """Follow further rows.

        The first call fixes the column means and scales, the label mean and the start; later ones
        go on.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.

        Returns
        -------
        self
            The first call learns all of its rows or none. After an error or an interrupt in a later
            one its first rows are learned, each of them whole: `n_samples_seen_` says how many in
            all.
        """
        if not hasattr(self, "state_"):
            return self._follow_first(X, y)
        rows = self._check_rows(X)
        labels = self._check_labels(y, rows)[0] - self.label_mean_
        columns, clip = self._columns()
        rows = scale_columns(rows, columns._replace(mean=self.first_mean_), clip, n_jobs=self.n_jobs)
        self._follow(self._tracker_class.from_state(self.state_), rows, labels)
        return self

    @all_or_nothing
    def _follow_first(self, X: Any, y: Any) -> SLRMOnlineRegressor:
        checked = self._read(X, y)
        rows, labels = self._begin_with(*checked, later=True)
        self._check_streamed(labels, "SLRMRegressor")
        if self.standardize and self.n_components_ <= carried_rank(np.bincount(rows.indices).astype(np.float64)):
            rows = self._in_suited_units(checked[0], rows, labels)[0]
        self.n_samples_seen_ = 0
        self._follow(self._start(rows, generator(self.random_state)), rows, labels)
        return self

    def fit_batches(self, batches: Iterable[Any]) -> SLRMOnlineRegressor:
        """Fit in one pass over batches; memory is that of the model and one batch.

        Parameters
        ----------
        batches : iterable of (X, y)
            Rows and their labels, NaN where unknown: what `lacunar.observed.read_batches` yields
            with a target, or any generator.

        Returns
        -------
        self
            The same as `partial_fit` batch by batch on a fresh estimator. After an error in the
            first batch as before the call.
        """
        one_pass(self, batches, lambda model, batch: model.partial_fit(*labelled(batch)))
        return self

    def _penalties(self) -> tuple[float, float]:
        """lambda_2 and lambda_3 of (5), for y in its own unit."""
        if self.alpha == "auto":
            return 0.0, 0.0
        return 2 * float(self.alpha) * self.l1_ratio * float(self.label_scale_[0]), float(self.alpha) * (
            1 - self.l1_ratio
        )

    @property
    def _tracker_class(self) -> type[PerColumnRls] | type[SharedRls]:
        return SharedRls if self.correlation == "shared" else PerColumnRls

    def _start(self, rows: Observed, rng: np.random.Generator) -> PerColumnRls | SharedRls:
        """A tracker from the singular vectors of the first rows, and a direction of its own for the constant."""
        self.first_mean_ = self.mean_
        basis, _ = first_basis(rows, self.n_components_, rng)
        basis = block_diag(basis, np.ones((1, 1))) if self.standardize else basis
        lam1 = np.inf if self.lam1 == "auto" else float(self.lam1) * float(self.label_scale_[0]) ** 2
        options: dict[str, Any] = {"lam1": lam1, "ridge": _RIDGE, **forgetting(self.forget)}
        if self.correlation == "shared":
            return SharedRls(basis, automatic=True, **options)
        return PerColumnRls(basis, **options)

    def _with_constant(self, rows: Observed) -> Observed:
        """Rows with a further column of ones: where rows lie near x = mean + V a, these lie near a subspace of one dimension
        more, so that a tracker learns the mean with it. Means of the first rows are none of that subspace.
        """
        if not self.standardize:
            return rows
        return append_labels((rows, np.where(rows.row_counts > 0, _CONSTANT, np.nan)[:, None]), np.ones(1))

    def _follow(self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: Floats) -> None:
        trace, seen = Trace.of(rows), self.n_samples_seen_

        def keep() -> None:
            n = trace.n_learned
            if n == 0 and rows.shape[0] > 0:
                return
            self._weigh(tracker, Trace(trace.prediction[:n], trace.residual[:n]), labels[:n, 0])
            self.labelled_ = self.labelled_ | ~np.isnan(labels[:n]).all(axis=0)
            self._store_stream(tracker, rows[:n], labels[:n])
            self.n_samples_seen_ = seen + n

        with WholeRows(self, keep):
            tracker.run(self._with_constant(rows), labels[:, 0].copy(), None, trace)

    def _weigh(self, tracker: PerColumnRls | SharedRls, trace: Trace, labels: Floats) -> None:
        """The error of a pass, and the label weights that its rows give."""
        known = ~np.isnan(labels)
        errors = (trace.prediction - labels)[known]
        self.progressive_mse_ = float(np.mean(errors**2)) if known.any() else float("nan")
        affine = _Affine.of(tracker.v, self.standardize)
        fit = stream_weights(tracker, affine, *self._penalties())
        if fit is not None:  # what the next rows are predicted with, and coded when lam1 is finite
            tracker.w[:] = affine.turn @ np.concatenate(fit)

    def _store_stream(
        self, tracker: PerColumnRls | SharedRls, rows: Observed, labels: Floats, *, refit: bool = False
    ) -> None:
        """The tracker's subspace and weights; `refit` regresses on the latent coordinates of the rows at hand, which old sums are not."""
        self.state_, self.mean_ = tracker.state(), self.first_mean_
        affine = _Affine.of(tracker.v, self.standardize)
        stream = None if refit else stream_weights(tracker, affine, *self._penalties())
        weights, shift = (None, np.zeros(1)) if stream is None else (stream.weights[:, None], stream.intercept)
        fit = Fit(self._model_of(tracker), 1, True, tracker.n_singular, weights).rotated()
        self._store(fit, (rows, labels), self.alpha, self.l1_ratio, float(shift.sum()))

    def _model_of(self, tracker: PerColumnRls | SharedRls) -> LowRankGaussian:
        """The model of standardised rows that a tracker has learned."""
        affine, ridge, sigma2 = _Affine.of(tracker.v, self.standardize), tracker.ridge(), tracker.sigma2()
        tau = sigma2 / ridge if sigma2 is not None and ridge > 0 else 1.0
        return LowRankGaussian(affine.mean, affine.basis.T, ridge, sigma2, tau)

    def _check_loaded(self) -> None:
        """One target, and a state of these columns and components."""
        super()._check_loaded()
        if "state_" in vars(self):
            more = int(self.standardize)
            self._tracker_class.check(self.state_, (self.n_features_in_ + more, self.n_components_ + more))


class _Affine(NamedTuple):
    """Rows x = mean + basis b as a tracker has them, whose latent coordinates are a: (b, 1) is turn.T @ a, or b where there is
    no column of ones.
    """

    mean: Floats  # (D,)
    basis: Floats  # (D, d)
    turn: Floats  # (of a, d + 1) or (d, d)

    @classmethod
    def of(cls, v: Floats, constant: bool) -> _Affine:
        """From a tracker's basis, whose last row is that of the column of ones where there is a `constant`."""
        if not constant:
            return cls(np.zeros(len(v)), v, np.eye(v.shape[1]))
        last = v[-1] / _CONSTANT
        size = float(np.linalg.norm(last))
        mirror = last.copy()
        mirror[0] += np.copysign(size, last[0])  # Householder's reflection takes the first axis to `last`
        others = (np.eye(len(last)) - 2 * np.outer(mirror, mirror) / (mirror @ mirror))[:, 1:]
        return cls(v[:-1] @ last / size**2, v[:-1] @ others, np.column_stack([others, last]))


def stream_weights(tracker: PerColumnRls | SharedRls, affine: _Affine, lam1: float, lam2: float) -> LabelFit | None:
    """Weights (d,) of (4) from a tracker's sums over labelled rows, and the intercept of a constant; None without any.

    The search starts at the minimiser without |w|_1 and not at the weights before: batches of other sizes end at the same bits.
    """
    second, first, labels = tracker.label_sums()
    if not labels > 0:
        return None
    second, first, d = affine.turn.T @ second @ affine.turn, affine.turn.T @ first, affine.basis.shape[1]
    line, total, size = second[d:, :d], first[d:], max(float(second[d:, d:].sum()), np.finfo(np.float64).tiny)
    second, first = second[:d, :d] - line.T @ line / size, first[:d] - total @ line / size
    unit = float(np.trace(second)) / d / labels
    start: Floats = np.zeros(d)
    lam2 = max(lam2, 1e-9 * unit)
    if lam2 > 0:
        start = np.asarray(np.linalg.solve(second / labels + lam2 * np.eye(d), first / labels))
    weights = lasso_on_sums(second, first, labels, lam1, lam2, start)
    return LabelFit(weights, (total - line @ weights) / size)
