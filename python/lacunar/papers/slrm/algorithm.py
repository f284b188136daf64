"""`PrintedSLRM`: Algorithm 1 of Ganti and Willett (2015), with Algorithm 2, to the letter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from lacunar._latent import latent_rows
from lacunar._lock import changes
from lacunar._log import warn_user
from lacunar._random import generator
from lacunar._state import all_or_nothing, copied
from lacunar._typing import Floats
from lacunar.lowrank.em import first_basis
from lacunar.lowrank.ridge import lasso_on_sums
from lacunar.lowrank.trackers import NotFiniteError, PerColumnRls
from lacunar.observed import Observed
from lacunar.observed.batches import labelled, one_pass
from lacunar.observed.rules import Anything, Number, Rule, Sometimes
from lacunar.papers.slrm.base import PrintedRegression, check_start, shortest_latent

_HELD_OUT = 0.25  # share of the rows that `fit` validates on where it gets no others
_MANY = 0.5  # share of rows refused by the gate from which a warning says so


class PrintedSLRM(PrintedRegression):
    """Algorithm 1 of [1]_ with Algorithm 2: subspace and label weights by stochastic steps, the
    best iterate on validation rows.

    `lacunar.lowrank.SLRMRegressor` minimises the same kind of objective more accurately and faster.
    Here, nothing is centred or scaled, there is no intercept, and rows that the gate of (6) refuses
    are predicted as 0.

    Parameters
    ----------
    d : int or None, default=None
        Dimension of the subspace, at most the number of columns and 1024. None is 10, or the number
        of columns where there are fewer.
    lambda_1 : float, default=10.0
        Weight of the entries against the label in latent coordinates, in (5). Finite; [1]_ prints
        no value.
    lambda_2, lambda_3 : float, default=1e-3
        Weights of the l1 norm and of the squared l2 norm of w, in (5). [1]_ prints no value. Step 8
        adds lambda_3 w, half of the gradient of that norm, so that it is (5) with lambda_3 / 2
        which the steps descend.
    rho : float, default=1e-3
        Step of w: eta_t is rho for `constant_rounds` rounds, then rho / t.
    constant_rounds : int or None, default=None
        None is the number of training rows, one pass; of those of the first call in a stream.
    delta : float, default=10.0
        Every inverse correlation R_j of Algorithm 2 starts as delta I; [1]_ prints no value.
    gamma : float, default=0.001
        Of (6): rows with lambda_min(U_O^T U_O) D / o < 1 - gamma for o observed entries are
        predicted as 0. The default is that of section 6, which refuses nearly every row with a
        missing entry; a warning says how many where it is half of them or more.
    max_iter : int, default=1
        Passes over the training rows. Algorithm 1 makes one, section 6 up to 500.
    validate : {"step", "pass"} or None, default="step"
        Steps 9 to 13 after every step, as printed, or after every pass, which is faster by as much
        as there are rows in a pass and chooses no worse. With None `fit` holds no row out, and the
        last iterate is kept.
    U0 : array-like of shape (D, d), default=None
        Where U starts, with orthonormal columns. None is the singular vectors of the rows filled
        with zeros (section 4.2).
    w0 : array-like of shape (d,), default=None
        Where w starts. None is the lasso (4) on the projections of the rows on U0.
    random_state : int, RandomState or None, default=None
        Draws the rows that are held out.

    Attributes
    ----------
    components_ : ndarray of shape (d, D)
        U^T: orthonormal rows.
    coef_ : ndarray of shape (d,)
        w.
    feature_coef_ : ndarray of shape (D,)
        U w, the weights of the columns of complete rows.
    validation_errors_ : list of float
        Mean squared errors on the rows held out, by step or pass.
    n_components_, n_features_in_ : int
        Numbers of components and of columns of X.
    best_error_ : float
        The least of them, which `components_` and `coef_` have; infinite without any.
    state_ : dict
        The last iterate and the R_j, from which `partial_fit` goes on.
    n_iter_, n_singular_ : int
        Passes, and rows whose latent coordinates were not unique.

    Raises
    ------
    ValueError
        In `fit` and `partial_fit`: infinite entries, more than one target, d above the number of
        columns, another number of columns than before, one of `X_val` and `y_val` alone, or steps
        that overflow at once. The model is as it was.

    Warns
    -----
    UserWarning
        Where the gate refuses half of the rows or more: those of `fit`, or of a prediction.
    ConvergenceWarning
        Where the weights overflow after an iterate that was validated, which is kept.

    See Also
    --------
    lacunar.lowrank.SLRMRegressor : The same model, to predict with.
    lacunar.lowrank.SLRMOnlineRegressor : The same model along a stream, without steps to choose.

    Notes
    -----
    A step costs O(o d^2 + d^3) for o entries, a validation as much for every row that is validated
    on. O(D d^2) numbers are kept.

    References
    ----------
    .. [1] R. Ganti, R. Willett, "Sparse Linear Regression With Missing Data", 2015, Algorithms 1
       and 2.

    Examples
    --------
    >>> import numpy as np
    >>> from lacunar.papers.slrm import PrintedSLRM
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=(400, 2))
    >>> X = a @ rng.normal(size=(2, 12))
    >>> X[rng.random(X.shape) < 0.5] = np.nan
    >>> model = PrintedSLRM(
    ...     2, gamma=0.99, rho=0.01, max_iter=5, validate="pass", random_state=0
    ... ).fit(X[:300], a[:300, 0])
    >>> bool(model.score(X[300:], a[300:, 0]) > 0.9)
    True
    """

    _written: ClassVar[tuple[str, ...]] = ("state_",)
    _schema: ClassVar[dict[str, Rule]] = {
        **PrintedRegression._schema,
        "state_": Sometimes(Anything()),
        "best_error_": Sometimes(Number(low=0, finite=False)),
    }
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **PrintedRegression._parameter_constraints,
        **{name: [Interval(Real, 0, None, closed="neither")] for name in ("lambda_1", "lambda_2", "lambda_3")},
        "gamma": [Interval(Real, 0, 1, closed="left")],
        "validate": [StrOptions({"step", "pass"}), None],
    }

    def __init__(
        self,
        d: int | None = None,
        *,
        lambda_1: float = 10.0,
        lambda_2: float = 1e-3,
        lambda_3: float = 1e-3,
        rho: float = 1e-3,
        constant_rounds: int | None = None,
        delta: float = 10.0,
        gamma: float = 1e-3,
        max_iter: int = 1,
        validate: Literal["step", "pass"] | None = "step",
        U0: Any = None,
        w0: Any = None,
        random_state: Any = None,
    ) -> None:
        self.d = d
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.lambda_3 = lambda_3
        self.rho = rho
        self.constant_rounds = constant_rounds
        self.delta = delta
        self.gamma = gamma
        self.max_iter = max_iter
        self.validate = validate
        self.U0 = U0
        self.w0 = w0
        self.random_state = random_state

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None) -> PrintedSLRM:
        """Steps 1 to 14, over the rows in their order.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
        y : array-like of shape (n,)
            NaN where unknown.
        X_val, y_val : array-likes as X and y, default=None
            The hold-out set of steps 9 to 13. Without them a quarter of the rows is held out,
            unless `validate` is None.

        Returns
        -------
        self
        """
        rows, labels = self._begin(X, y)
        rng, held_out = generator(self.random_state), self._held_out(X_val, y_val)
        if X_val is None:
            share, order = 0.0 if self.validate is None else _HELD_OUT, np.arange(rows.shape[0])
            chosen = np.sort(rng.permutation(len(order))[: round(share * len(order))])
            held_out, train = known_rows(rows[chosen], labels[chosen]), np.setdiff1d(order, chosen)
            rows, labels = rows[train], labels[train]
        self._follow(self._start(rows, labels, rng), rows, labels, held_out, int(self.max_iter))
        self._predictable(rows)  # for its warning
        return self

    @changes
    @_fit_context(prefer_skip_nested_validation=True)
    @all_or_nothing
    def partial_fit(self, X: Any, y: Any, *, X_val: Any = None, y_val: Any = None) -> PrintedSLRM:
        """Steps 4 to 13 for further rows, once; the first call makes the start of step 1 from its
        own rows.

        Parameters
        ----------
        X : array-like with NaN, frame, sparse matrix or Observed, shape (n, D)
            Any number of rows; how they are split between calls makes no difference but rounding
            after the first.
        y : array-like of shape (n,)
            NaN where unknown: such a row moves the subspace alone. The first call has a label at
            least.
        X_val, y_val : array-likes as X and y, default=None
            The hold-out set of steps 9 to 13: an iterate is kept where its error is below
            `best_error_`. Without them the last iterate is kept, and what was best is forgotten.

        Returns
        -------
        self
        """
        if hasattr(self, "components_") and not hasattr(self, "state_"):
            raise ValueError(
                "partial_fit goes on from the last iterate, and this model has none: its weights overflowed, or its file is "
                "of an earlier version. Fit again, with a smaller rho if they overflowed."
            )
        if not hasattr(self, "state_"):
            rows, labels = self._begin(X, y)
            tracker = self._start(rows, labels, generator(self.random_state))
        else:
            rows = self._standardised(self._check_rows(X))
            labels = self._check_labels(y, rows, "all")
            self.validation_errors_ = list(vars(self).get("validation_errors_", []))
            tracker = PerColumnRls.from_state(copied(self.state_))
        self._follow(tracker, rows, labels, self._held_out(X_val, y_val), 1)
        return self

    def fit_batches(self, batches: Iterable[Any]) -> PrintedSLRM:
        """Fit in one pass over batches, without rows to validate on; memory is that of the model
        and one batch.

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

    def _held_out(self, X_val: Any, y_val: Any) -> tuple[Observed, Floats] | None:
        """The rows to validate on that have a label, and those labels."""
        if (X_val is None) != (y_val is None):
            raise ValueError("X_val and y_val must be given together; got one of them. Pass both, or none.")
        if X_val is None:
            return None
        rows = self._check_rows(X_val)
        return known_rows(self._standardised(rows), self._check_labels(y_val, rows))

    def _start(self, rows: Observed, labels: Floats, rng: np.random.Generator) -> PerColumnRls:
        """Steps 1 and 2: the first iterate, which is the best so far."""
        U, w = check_start(self.U0, self.w0, rows.shape[1], self.n_components_)
        U = first_basis(rows, self.n_components_, rng)[0] if U is None else U
        w = first_weights(rows, labels, U, float(self.lambda_2)) if w is None else w
        self.best_error_, self.validation_errors_ = np.inf, list[float]()
        self._store(U, w, 0, 0)
        return PerColumnRls(
            U, w, lam1=float(self.lambda_1), lam2=float(self.lambda_2), lam3=float(self.lambda_3), rho=float(self.rho),
            delta=float(self.delta), constant_until=self.constant_rounds or max(rows.shape[0], 1), continuous=False,
            orthonormal=True,
        )  # fmt: skip

    def _follow(
        self,
        tracker: PerColumnRls,
        rows: Observed,
        labels: Floats,
        held_out: tuple[Observed, Floats] | None,
        n_passes: int,
    ) -> None:
        """Steps 3 to 13: keeps the iterate with the least validation error, the last one without rows to validate on."""
        errors, best, overflown = self.validation_errors_, None, False
        held = held_out if held_out is not None and len(held_out[1]) else None
        size = 1 if self.validate == "step" and held is not None else max(rows.shape[0], 1)
        for part in _rounds(rows.shape[0], n_passes, size):
            try:
                tracker.run(rows[part], np.ascontiguousarray(labels[part]))
            except NotFiniteError as error:
                self._stop_at_overflow(errors if held is not None else [], error)
                overflown = True
                break
            if held is not None:
                iterate = tracker.basis(), tracker.w.copy()
                errors.append(validation_error(*held, *iterate, float(self.gamma)))
                if errors[-1] < self.best_error_:
                    best, self.best_error_ = iterate, errors[-1]
        if held is None:
            best, self.best_error_ = (tracker.basis(), tracker.w.copy()), np.inf
        if best is not None:
            self._store(*best, 0, 0)
        self.n_iter_, self.n_singular_ = n_passes, tracker.n_singular
        self.__dict__.pop("state_", None)
        if not overflown:  # what is not finite is nothing to go on from
            self.state_ = tracker.state()

    def _stop_at_overflow(self, errors: list[float], error: NotFiniteError) -> None:
        """A warning where an iterate before was finite, otherwise an error."""
        if not np.isfinite(min(errors, default=np.inf)):
            raise NotFiniteError(
                f"rho must keep the weights finite; with rho={self.rho:g} they overflow at the start. Use a smaller rho, or "
                "smaller values in X."
            ) from error
        warn_user(
            f"the weights overflow after validation {len(errors)} with rho={self.rho:g}; what was best on held-out rows is kept. "
            "Use a smaller rho.",
            ConvergenceWarning,
        )

    def _predictable(self, rows: Observed) -> NDArray[np.bool_]:
        """Rows (n,) that the gate lets through; a warning where it refuses many of those with an entry."""
        passes, filled = gate_passes(rows, self.components_.T, float(self.gamma)), rows.row_counts > 0
        refused = float(np.mean(~passes[filled])) if filled.any() else 0.0
        if refused >= _MANY:
            warn_user(
                f"the gate of (6) refuses {refused:.0%} of the rows with gamma={self.gamma:g}, and 0 is predicted for them. Use a "
                "gamma nearer to 1, which opens it."
            )
        return passes

    def _check_loaded(self) -> None:
        """A state of these columns and components."""
        if "state_" in vars(self):
            PerColumnRls.check(self.state_, (self.n_features_in_, self.n_components_))


def known_rows(rows: Observed, labels: Floats) -> tuple[Observed, Floats]:
    """The rows that have a label, and the labels."""
    known = np.flatnonzero(~np.isnan(labels))
    return rows[known], labels[known]


def _rounds(n: int, n_passes: int, size: int) -> Iterator[slice]:
    """Rows between two validations, `size` of n, in the order of the rows."""
    for _ in range(n_passes):
        for start in range(0, n, size):
            yield slice(start, start + size)


def first_weights(rows: Observed, labels: Floats, U: Floats, lambda_2: float) -> Floats:
    """Step 1: the lasso (4) of the known labels on the projections of their rows."""
    known, start = ~np.isnan(labels), np.zeros(U.shape[1])
    if not known.any():
        return start
    latent = shortest_latent(rows[np.flatnonzero(known)], U)
    second, first = latent.T @ latent, latent.T @ labels[known]
    return lasso_on_sums(second, first, len(latent), lambda_2, 0.0, start, sweeps=100_000)


def validation_error(rows: Observed, labels: Floats, U: Floats, w: Floats, gamma: float) -> float:
    """Step 9: mean squared error of (6), which is 0 for rows that the gate refuses."""
    predictions, passes = np.zeros(len(labels)), np.flatnonzero(gate_passes(rows, U, gamma))
    predictions[passes] = latent_rows(rows[passes], U, 0.0).latent @ w
    with np.errstate(over="ignore"):
        return float(np.mean((predictions - labels) ** 2))


def gate_passes(rows: Observed, U: Floats, gamma: float) -> NDArray[np.bool_]:
    """The indicator of (6) by row: whether lambda_min(U_O^T U_O) D / o >= 1 - gamma. O(o d^2 + d^3) a row."""
    D, d = U.shape
    counts, least = rows.row_counts, np.zeros(rows.shape[0])
    enough = np.flatnonzero(counts >= d)  # the matrix of others is singular
    for start in range(0, len(enough), 1024):
        block = enough[start : start + 1024]
        parts = (U[rows.indices[rows.indptr[i] : rows.indptr[i + 1]]] for i in block)
        least[block] = np.linalg.eigvalsh(np.stack([part.T @ part for part in parts]))[:, 0]
    passes: NDArray[np.bool_] = (counts > 0) & (least * D >= (1 - gamma) * counts)
    return passes
